"""Comparison of what a paper prints with what follows: its distance, and what rounding explains."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from itertools import takewhile
from typing import Any

import numpy as np
import pandas as pd

from paperlib.core import FloatArray
from paperlib.report import format_cell, paper_table


def half_unit(printed: str, *, about: bool = False) -> float:
    """Half a unit of the last digit, 0 if whole; with ``about``, zeros at the end are rounding
    too.
    """
    number = Decimal(printed)
    last = int((number.normalize() if about else number).as_tuple().exponent)
    return float(Decimal(5).scaleb(last - 1)) if last < 0 or about else 0.0


@dataclass(frozen=True)
class Comparison:
    """What is printed, what follows, their distance (or the number of exceptions), and what is
    allowed.
    """

    printed: str
    follows: str
    off: float
    allowed: float = 0.0

    @property
    def fits(self) -> bool:
        """Whether the distance is explained, up to the rounding of floats."""
        return bool(self.off <= self.allowed + 1e-9)


def compare(
    printed: str, value: float, reach: float = 0.0, shown: str = "", *, about: bool = False
) -> Comparison:
    """A printed number beside the value that follows, give or take ``reach``."""
    allowed = half_unit(printed, about=about) + reach
    text = shown or format_cell(value, digits=4)
    if not shown and "." in text and "e" not in text:
        text = text.rstrip("0").rstrip(".")
    return Comparison(printed, text, abs(float(printed) - value), allowed)


def between(printed: str, low: float, high: float) -> Comparison:
    """A printed number beside the range that follows."""
    return compare(printed, (low + high) / 2, (high - low) / 2, f"{low:.4g} to {high:.4g}")


def worst(comparisons: Iterable[Comparison]) -> Comparison:
    """Of several comparisons the one that fits least, with the number that fit."""
    every = list(comparisons)
    least = max(every, key=lambda one: one.off - one.allowed)
    count = f" ({sum(one.fits for one in every)} of {len(every)} fit)" if len(every) > 1 else ""
    return Comparison(least.printed, least.follows + count, least.off, least.allowed)


def claim(printed: str, holds: Iterable[bool], more: str = "") -> Comparison:
    """A claim about several cases; what is off is the number of exceptions."""
    cases = [bool(case) for case in holds]
    return Comparison(printed, f"in {sum(cases)} of {len(cases)}{more}", len(cases) - sum(cases))


def cells(place: str) -> pd.DataFrame:
    """Rows of a shipped table as printed: ``place`` is its name, or its name, ``|`` and a pandas
    query.
    """
    name, _, query = (part.strip() for part in place.partition("|"))
    printed = paper_table(name, as_printed=True)
    return printed.loc[paper_table(name).query(query).index] if query else printed


def values(place: str) -> tuple[FloatArray, FloatArray]:
    """What follows from printed cells, and how far rounding reaches; place is
    ``table | query | terms``.
    """
    rows, _, terms = place.rpartition("|")
    tokens = terms.split()
    words = list(takewhile(_DONE.__contains__, tokens))
    signed = ["+", *tokens[len(words) :]]
    value, reach = np.zeros((2, len(cells(rows))))
    for sign, column in zip(signed[::2], signed[1::2], strict=True):
        value = value + cells(rows)[column].astype(float).to_numpy() * (-1 if sign == "-" else 1)
        reach = reach + cells(rows)[column].map(half_unit).to_numpy()
    for word in reversed(words):
        value, reach = _DONE[word](value, reach)
    return value, reach


_DONE: dict[str, Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]] = {
    "clipped": lambda value, reach: (np.maximum(0, value), reach),
    "half": lambda value, reach: (value / 2, reach / 2),
    "sum": lambda value, reach: (value.sum(keepdims=True), reach.sum(keepdims=True)),
    "product": lambda value, _: (value.prod(keepdims=True), np.zeros(1)),
    "count": lambda value, _: (np.array([float(value.size)]), np.zeros(1)),
}


def by_data(rule: str, printed: str, follows: str) -> Comparison:
    """A check that its row defines: numbers beside numbers, or a claim about the rows of a
    table.
    """
    if rule == "claim":
        name, query, condition = (part.strip() for part in follows.split("|"))
        holds: Any = paper_table(name).query(query or "index >= 0").eval(condition)
        return claim(printed, holds)
    rows, _, column = printed.rpartition("|")
    trios = zip(cells(rows)[column.strip()], *values(follows), strict=True)
    return worst(compare(text, value, reach, about=rule == "about") for text, value, reach in trios)
