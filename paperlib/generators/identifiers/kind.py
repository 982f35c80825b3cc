"""Kinds of identifiers, and identifiers of a kind."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np


class Form(NamedTuple):
    """The notation of a value, such as "lower" or "checksum", which generated values keep."""

    name: str  # for a look-alike, the reason
    valid: bool  # False for a look-alike: no known generator makes such values


@dataclass(frozen=True, order=True)
class Identifier:
    """A value that a known random source made, and where it stands:
    ``text[start:end] == value``.
    """

    kind: str
    value: str
    start: int
    end: int


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of identifier: how to find it, how to tell a look-alike, and how to draw another
    one.

    Attributes:
        pattern: ASCII regular expression that Python's re and google-re2 read alike: no groups that
            capture, no looking around. Starts and ends at letters, digits or ``=``; may not match
            over a line end, nor more than 4,000 characters that pass ``check``.
        check: The form of a text that ``pattern`` matches.
        draw: Another value from the distribution of the one given; `generate_identifiers` draws
            again until the form is the same.
        bits: Entropy of what ``draw`` draws, in bits.
        not_beside: Characters barred right before and after, besides letters, digits and the
            underscore.
        fold_case: True if values that differ in letter case alone are the same.
    """

    name: str
    pattern: str
    check: Callable[[str], Form]
    draw: Callable[[str, np.random.Generator], str]
    bits: Callable[[str], float]
    example: str
    not_beside: str = ""
    fold_case: bool = False

    def key(self, value: str) -> str:
        """A key that two values share where they are the same identifier."""
        return value.lower() if self.fold_case else value


def cased_like(text: str, example: str) -> str:
    """``text`` in upper case if ``example`` has capital letters, else in lower case."""
    return text.lower() if example == example.lower() else text.upper()


def casing(text: str) -> str:
    """The case of a text's letters: "lower" (also without letters), "upper" or "mixed"."""
    if text == text.lower():
        return "lower"
    return "upper" if text == text.upper() else "mixed"
