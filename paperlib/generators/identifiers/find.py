"""Identifiers of a text."""

from collections.abc import Iterable
from functools import cache

from paperlib.generators.identifiers.kind import Identifier
from paperlib.generators.identifiers.kinds import checked_kinds
from paperlib.generators.identifiers.scan import Scanner

_scanner = cache(Scanner)


def find_identifiers(text: str, *, kinds: Iterable[str] | None = None) -> list[Identifier]:
    """Every identifier in a text, in order, none overlapping another.

    A match counts when no letter, digit or underscore (ASCII) stands beside it and the kind's check
    passes: checksums are right, decoded bytes are what they should be, and the value is not of so few
    different letters that a random source would hardly make it. Of overlapping ones the longest is kept.

    Args:
        text: Any text.
        kinds: Names of the kinds to look for, keys of `KINDS`; None for all.

    Returns:
        The identifiers with their places in characters: ``text[found.start:found.end] == found.value``.

    Raises:
        ValueError: An unknown kind, or a text that is no str.

    Source:
        Natural identifiers, Appendix A; the kinds beyond the paper's six are ours.

    >>> find_identifiers("md5: 2f6b8d1c90e4a7353b1e64d7f08a5c92, id: 00000000000000000000000000000001")
    [Identifier(kind='md5', value='2f6b8d1c90e4a7353b1e64d7f08a5c92', start=5, end=37)]
    """
    if not isinstance(text, str):
        raise ValueError(f"text: expected a str, got {type(text).__name__}; decode bytes first")
    # One byte a character, so that offsets are the same; no pattern and no boundary has a "?".
    candidates = _scanner(checked_kinds(kinds)).scan(text.encode("ascii", "replace"))
    return [Identifier(one.kind.name, one.value, one.start, one.end) for one in candidates if one.form.valid]


def as_identifier(value: str) -> Identifier:
    """The identifier that a whole text is.

    Raises:
        ValueError: It is none, or holds more than one.

    >>> as_identifier("2f6b8d1c90e4a7353b1e64d7f08a5c92").kind
    'md5'
    """
    identifiers = find_identifiers(value)
    if len(identifiers) != 1 or identifiers[0].value != value:
        raise ValueError(f"value: expected the text of one identifier, got {value!r}")
    return identifiers[0]
