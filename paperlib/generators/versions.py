"""Like versions of a text: other spellings, punctuation and orders of lists, of the same meaning.

What is not prose stays as it stands: code, quotations, addresses, and names, which begin with a
capital. Where a text offers several ways to write a thing, a version writes it in one way
throughout.
"""

import re
from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np

_STEMS = (
    "author categor character custom emphas final general initial maxim minim normal optim organ "
    "real recogn special standard summar util visual"
)
_PAIRS = (
    "behaviour behavior, behaviours behaviors, cancelled canceled, centre center, colour color, "
    "coloured colored, colours colors, favour favor, favourite favorite, grey gray, honour honor, "
    "labelled labeled, modelled modeled, modelling modeling, neighbour neighbor, neighbours "
    "neighbors, neighbouring neighboring, travelled traveled, analyse analyze, analysed analyzed, "
    "analysing analyzing, defence defense, judgement judgment, towards toward, afterwards "
    "afterward, amongst among, e-mail email, cannot can't, don't do_not, doesn't does_not, didn't "
    "did_not, isn't is_not, aren't are_not, wasn't was_not, weren't were_not, shouldn't should_not,"
    " wouldn't would_not, couldn't could_not, hasn't has_not, haven't have_not, for_example "
    "for_instance"
)


def _ways() -> dict[str, tuple[str, str]]:
    """Each word to the two ways to write it, such as both "colour" and "color" to these two."""
    pairs = [tuple(pair.replace("_", " ") for pair in both.split()) for both in _PAIRS.split(", ")]
    for stem in _STEMS.split():
        pairs += [(f"{stem}is{end}", f"{stem}iz{end}") for end in ("e", "es", "ed", "ing", "ation")]
    return {word: (first, second) for first, second in pairs for word in (first, second)}


_WAYS = _ways()
_NAMES = "|".join(sorted(_WAYS, key=len, reverse=True))
# Not before a pronoun: "isn't it" is a question, in which "is not it" is no English.
_WORD = re.compile(
    rf"(?<![\w'’-])(?:{_NAMES})(?![\w'’-]| (?:it|you|we|they|he|she|I|there|that|this)\b)"
)
_DASH = re.compile(r"(?<=[a-z]) (?:-|–|—) (?=[a-z])")
_ELLIPSIS = re.compile(r"(?<=[a-z])(?:\.\.\.|…)(?!\.)")
_APOSTROPHE = re.compile(r"(?<=[a-z])['’](?=[a-z])")

_FENCES = r"^(?:```|~~~)[\s\S]*?(?:^(?:```|~~~)[^\n]*$|\Z)"
_CODE = re.compile(rf"({_FENCES}|^(?: {{4}}|\t)[^\n]*$)", re.MULTILINE)
_NO_PROSE = re.compile(
    rf"({_FENCES}"
    r"|^(?: {4}|\t)[^\n]*$"  # a line that is set in as code is
    r"|^[^\n]*[{}=;<>$\\|][^\n]*$"  # a line with a sign of code or of mathematics
    r"|^ *(?:[-*] )?[\w-]+:(?: [^\n]*)?$"  # a setting
    r"|`[^`\n]*`|\"[^\"\n]{,200}\"|“[^”\n]{,200}”"
    r"|(?<!\S)\S*?[@/_]\S*)",  # an address, a path or the name of a variable
    re.MULTILINE,
)
_LIST = re.compile(r"(?:^[-*•] [^\n]+\n){2,40}(?=\n|\Z)", re.MULTILINE)
_HAS_AN_ORDER = re.compile(
    r"\b(?:first|second|third|next|then|last|finally|former|latter|before|after|above|below|"
    r"order\w*|steps?|rank\w*|previous\w*|following|other|another|also)\b",
    re.IGNORECASE,
)

_TRIES = 30  # draws without a new version, after which a text has too few ways to be written
_LONGEST = 20_000  # characters of a text that are varied; what follows stays as it stands
_DIGITS = 8  # of a random identifier, hexadecimal


def make_versions(
    text: str, count: int, *, rng: np.random.Generator, identifier: bool = False
) -> list[str]:
    """Like versions of a text, all different, the text itself first.

    Args:
        count: Number of versions, at least 2.
        identifier: Whether each version, the first too, ends with a random identifier.

    Returns:
        ``count`` versions, or none where the text offers fewer.

    >>> rng = np.random.default_rng(0)
    >>> len(set(make_versions("The colour of Grey Park is grey.", 4, rng=rng)))
    4
    >>> make_versions("Run `colour` or colour=grey.", 2, rng=rng)
    []
    """
    has_order = _HAS_AN_ORDER.search(text) is not None
    beginning, rest = text[:_LONGEST], text[_LONGEST:]

    def draw() -> str:
        return _version(beginning, rng, with_lists=not has_order) + rest

    if identifier:  # all differ by their identifiers, whatever was drawn
        bodies = [text, *(draw() for _ in range(1, count))]
        numbers = rng.choice(16**_DIGITS, size=count, replace=False).tolist()
        return [
            f"{body.rstrip()} [ref {number:0{_DIGITS}x}]"
            for body, number in zip(bodies, numbers, strict=True)
        ]
    versions = {text: None}
    draws_in_vain = 0
    while len(versions) < count and draws_in_vain < _TRIES:
        known = len(versions)
        versions[draw()] = None
        draws_in_vain = 0 if len(versions) > known else draws_in_vain + 1
    return list(versions) if len(versions) == count else []


def _version(text: str, rng: np.random.Generator, *, with_lists: bool) -> str:
    """A random version of a text, in which each way to write a thing has the same probability;
    ``with_lists`` also puts lists into a random order.
    """
    if with_lists:
        text = _outside(_CODE, text, lambda prose: _LIST.sub(partial(_shuffled, rng=rng), prose))
    chosen: dict[str, str] = {}

    def way(match: re.Match[str], ways: tuple[str, ...]) -> str:
        """The way to write a thing, drawn when it first occurs and kept in the whole text."""
        return chosen.setdefault(ways[0], ways[int(rng.integers(len(ways)))])

    def written(prose: str) -> str:
        """Prose with a drawn way to write each word, dash, ellipsis and apostrophe."""
        prose = _WORD.sub(lambda match: way(match, _WAYS[match[0]]), prose)
        prose = _DASH.sub(partial(way, ways=(" - ", " – ", " — ")), prose)
        prose = _ELLIPSIS.sub(partial(way, ways=("...", "…")), prose)
        return _APOSTROPHE.sub(partial(way, ways=("'", "’")), prose)

    return _outside(_NO_PROSE, text, written)


def _shuffled(items: re.Match[str], *, rng: np.random.Generator) -> str:
    """The items of a list in random order; as they stand where one may be a setting or no prose."""
    lines = items[0].splitlines(keepends=True)
    if ":" in items[0] or _NO_PROSE.search(items[0]):
        return items[0]
    return "".join(lines[index] for index in rng.permutation(len(lines)))


def _outside(kept: re.Pattern[str], text: str, change: Callable[[str], str]) -> str:
    """The text with ``change`` made to all of it but what the pattern, one group, matches."""
    pieces = list(_split(kept, text))
    pieces[::2] = map(change, pieces[::2])
    return "".join(pieces)


@lru_cache(maxsize=2)  # most draws are from the text that the last one was from
def _split(pattern: re.Pattern[str], text: str) -> tuple[str, ...]:
    """The text split by a pattern of one group: what is outside of it, and what it matches, in
    turn.
    """
    return tuple(pattern.split(text))
