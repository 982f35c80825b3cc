"""Finding identifiers in bytes, by one fast pass for all kinds and the checks of each; and drawing
others.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from paperlib.core.checks import check_at_least, check_choice
from paperlib.core.packages import optional_package
from paperlib.generators.identifiers.kind import Form, Identifier, Kind
from paperlib.generators.identifiers.kinds import checked_kinds

LONGEST = 4_000  # bytes of an identifier; what matches at more is none
_ATTEMPTS = 1_000  # to draw each value
_WORD = frozenset(b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_")


class Candidate(NamedTuple):
    """A match of a kind's pattern at the right boundaries; ``form.valid`` tells it from a
    look-alike.
    """

    start: int  # in bytes
    end: int
    kind: Kind
    value: str
    form: Form


def default_engine() -> str:
    """ "re2" where the package google-re2 is installed, which is 20 to 40 times faster, else
    "re".
    """
    return "re2" if find_spec("re2") else "re"


@dataclass(frozen=True)
class Scanner:
    """Finds candidates of some kinds by the engine "re2" (package google-re2) or "re"; both find
    the same.
    """

    kinds: Sequence[Kind]
    engine: str = field(default_factory=default_engine)

    def __post_init__(self) -> None:
        check_choice("engine", self.engine, ("re2", "re"))

    @property
    def pattern(self) -> str:
        """One expression that matches wherever a candidate starts."""
        return r"\b(?:" + "|".join(f"(?:{kind.pattern})" for kind in self.kinds) + ")"

    @cached_property
    def _starts(self) -> Any:
        """The compiled pattern that finds where an identifier of any kind may start."""
        pattern = self.pattern.encode()
        if self.engine == "re":
            return re.compile(pattern)
        re2 = optional_package("re2", "corpora", "the engine re2")
        options = re2.Options()
        options.encoding = re2.Options.Encoding.LATIN1  # bytes as they are; every pattern is ASCII
        options.never_capture = True
        return re2.compile(pattern, options)

    @cached_property
    def _matchers(self) -> list[tuple[Kind, "re.Pattern[bytes]", frozenset[int]]]:
        """Each kind, its compiled pattern, and the bytes that may not stand beside a match."""
        return [
            (kind, re.compile(kind.pattern.encode()), _WORD | frozenset(kind.not_beside.encode()))
            for kind in self.kinds
        ]

    def scan(self, data: bytes) -> list[Candidate]:
        """Candidates in a text, ASCII or UTF-8, in order; of overlapping ones identifiers stay
        before look-alikes, then the longest.
        """
        return resolve(self.candidates(data))

    def candidates(self, data: bytes) -> list[Candidate]:
        """All candidates in a text, ASCII or UTF-8, by their start, overlapping ones too."""
        search = self._starts.search
        candidates: list[Candidate] = []
        match = search(data, 0)
        while match is not None:
            start = match.start()
            candidates += self._starting_at(start, data)
            match = search(data, start + 1)
        return candidates

    def _starting_at(self, start: int, data: bytes) -> Iterator[Candidate]:
        """The candidates of every kind that start at byte ``start`` with no barred byte beside
        them, in the order of the kinds.
        """
        for kind, pattern, barred in self._matchers:
            match = pattern.match(data, start)
            if match is None or (start and data[start - 1] in barred):
                continue
            end = match.end()
            if end - start > LONGEST or (end < len(data) and data[end] in barred):
                continue
            value = data[start:end].decode("ascii")
            yield Candidate(start, end, kind, value, kind.check(value))


def resolve(candidates: Iterable[Candidate]) -> list[Candidate]:
    """The candidates, which come by their start, without those that overlap a better one: of
    overlapping ones identifiers stay before look-alikes, then the longest, then the first.
    """
    kept: list[Candidate] = []
    cluster: list[Candidate] = []  # neighbours that overlap, directly or through others
    reach = 0  # the farthest end in it
    for candidate in candidates:
        if cluster and candidate.start >= reach:
            kept += _best(cluster)
            cluster = []
        cluster.append(candidate)
        reach = max(reach, candidate.end)
    return kept + _best(cluster)


def _best(cluster: list[Candidate]) -> list[Candidate]:
    """The candidates of a cluster that stay, none overlapping another, by their start: one after
    the other the best that is left.
    """
    if len(cluster) == 1:
        return cluster
    disjoint: list[Candidate] = []
    for candidate in sorted(cluster, key=lambda c: (not c.form.valid, c.start - c.end, c.start)):
        if all(candidate.end <= other.start or other.end <= candidate.start for other in disjoint):
            disjoint.append(candidate)
    return sorted(disjoint, key=lambda c: c.start)


class StreamScanner:
    """Scans a text that comes in pieces, whose edges may fall within an identifier.

    Guarantee:
        The candidates are those of the whole text, each once, for any division into pieces.
    """

    def __init__(self, scanner: Scanner) -> None:
        self._scanner = scanner
        self._held = b""
        self._seen = 0  # leading bytes of those held that were scanned, and are kept as context

    def feed(self, piece: bytes, *, more: bool) -> list[Candidate]:
        """The candidates that no later piece can change, in order; ``more`` if pieces of the text
        follow. Their ``start`` and ``end`` count from an inner place, and say nothing of the text.
        """
        data = self._held + piece if self._held else piece
        candidates = self._scanner.candidates(data)
        new = [candidate for candidate in candidates if candidate.start >= self._seen]
        if not more:
            self._held = b""
            self._seen = 0
            return resolve(new)
        # What starts before the cut ends well before the end of the data, so nothing to come can
        # change it.
        cut = max(self._seen, len(data) - LONGEST - 1)
        # One that reaches over the cut waits for the next call, and so does all behind its start.
        for candidate in reversed(new):
            if candidate.start < cut < candidate.end:
                cut = candidate.start
        keep = max(0, cut - 1)  # one more byte, for the boundary on the left
        self._held = data[keep:]
        self._seen = cut - keep
        return resolve(candidate for candidate in new if candidate.end <= cut)


_scanner = cache(Scanner)


def find_identifiers(text: str, *, kinds: Iterable[str] | None = None) -> list[Identifier]:
    """Every identifier in a text, in order, none overlapping another.

    A match counts when no letter, digit or underscore (ASCII) stands beside it and the kind's check
    passes: checksums are right, decoded bytes are what they should be, and a random source would
    make such values. Of overlapping ones the longest is kept.

    Args:
        kinds: Keys of `KINDS`; None for all.

    Raises:
        ValueError: An unknown kind, or a text that is no str.

    Source:
        Natural identifiers, Appendix A; the kinds beyond the paper's six are ours.

    >>> text = "md5: 2f6b8d1c90e4a7353b1e64d7f08a5c92, id: 00000000000000000000000000000001"
    >>> find_identifiers(text)
    [Identifier(kind='md5', value='2f6b8d1c90e4a7353b1e64d7f08a5c92', start=5, end=37)]
    """
    if not isinstance(text, str):
        raise ValueError(f"text: expected a str, got {type(text).__name__}; decode bytes first")
    # One byte a character, so that offsets are the same; no pattern and no boundary has a "?".
    candidates = _scanner(checked_kinds(kinds)).scan(text.encode("ascii", "replace"))
    valid = [candidate for candidate in candidates if candidate.form.valid]
    return [Identifier(c.kind.name, c.value, c.start, c.end) for c in valid]


def as_identifier(value: str) -> Identifier:
    """The identifier that a whole text is; a ValueError if it is none, or holds more than one."""
    identifiers = find_identifiers(value)
    if len(identifiers) != 1 or identifiers[0].value != value:
        raise ValueError(f"value: expected the text of one identifier, got {value!r}")
    return identifiers[0]


def generate_identifiers(identifier: Identifier | str, count: int, seed: int) -> list[str]:
    """Draw identifiers that could have stood in the place of a found one.

    Guarantee:
        If the found value was drawn at random as its kind says, it and the generated ones are
        exchangeable. Letter case, prefix, version bits, length, sign and the leading bits of an RSA
        modulus are the same in all of them, and each passes the kind's check with the same form,
        checksums included.

    Args:
        count: Number of values, 0 or more; all differ, also from the found one, and in more than
            letter case where that says nothing.
        seed: At least 0. The value is part of the seed: two identifiers never share their draws.

    Raises:
        ValueError: A text that is no identifier, an unknown kind, a negative count or seed, or more
            values than the kind has.

    Source:
        Natural identifiers, Appendix A.

    >>> value = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
    >>> generate_identifiers(value, 1, seed=0) == generate_identifiers(value, 1, seed=0)
    True
    """
    check_at_least(0, count=count, seed=seed)
    genuine = as_identifier(identifier) if isinstance(identifier, str) else identifier
    (kind,) = checked_kinds([genuine.kind])
    form = _valid_form(kind, genuine.value)
    digest = hashlib.sha256(f"{kind.name} {genuine.value}".encode()).digest()
    rng = np.random.default_rng([seed, *np.frombuffer(digest, dtype=np.uint32).tolist()])
    seen = {kind.key(genuine.value)}
    drawn: list[str] = []
    failed = 0
    while len(drawn) < count:
        value = kind.draw(genuine.value, rng)
        if kind.key(value) not in seen and kind.check(value) == form:
            seen.add(kind.key(value))
            drawn.append(value)
            continue
        failed += 1
        if failed > _ATTEMPTS * (1 + len(drawn)):
            raise ValueError(
                f"count: found only {len(drawn)} of {count} values of the form {form.name!r} of "
                f"{kind.name}"
            )
    return drawn


def _valid_form(kind: Kind, value: str) -> Form:
    """The form of a value of this kind; refuses one that is no identifier."""
    fits = isinstance(value, str) and re.fullmatch(kind.pattern, value, re.ASCII)
    form = kind.check(value) if fits else Form("of another pattern", False)
    if not form.valid:
        raise ValueError(f"identifier: expected a valid {kind.name}, got {value!r} ({form.name})")
    return form
