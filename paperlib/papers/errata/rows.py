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
    """Half a unit of the last digit, 0 if whole; with ``about``, zeros at the end are rounding too.

    >>> half_unit("2.440"), half_unit("48000"), half_unit("48000", about=True)
    (0.0005, 0.0, 500.0)
    """
    number = Decimal(printed)
    last = int((number.normalize() if about else number).as_tuple().exponent)
    return float(Decimal(5).scaleb(last - 1)) if last < 0 or about else 0.0


@dataclass(frozen=True)
class Comparison:
    """What is printed, what follows, their distance (or the number of exceptions), and what is allowed."""

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
    """A printed number beside the value that follows, give or take ``reach``.

    >>> compare("1.06", 3.63 - 2.508, 0.005 + 0.0005).fits
    False
    """
    allowed = half_unit(printed, about=about) + reach
    return Comparison(printed, shown or four_decimals(value), abs(float(printed) - value), allowed)


def four_decimals(value: float) -> str:
    """A value with up to four decimals, or as many digits where it is small, and no zeros at the end.

    >>> four_decimals(1.34), four_decimals(48841.0), four_decimals(0.05)
    ('1.34', '48841', '0.05')
    """
    text = format_cell(value, digits=4)
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text


def between(printed: str, low: float, high: float) -> Comparison:
    """A printed number beside the range that follows."""
    return compare(printed, (low + high) / 2, (high - low) / 2, f"{low:.4g} to {high:.4g}")


def worst(comparisons: Iterable[Comparison]) -> Comparison:
    """Of several comparisons the one that fits least, with the number that fit.

    >>> worst([compare("1.0", 1.0), compare("1.0", 2.0)]).follows
    '2 (1 of 2 fit)'
    """
    every = list(comparisons)
    least = max(every, key=lambda one: one.off - one.allowed)
    count = f" ({sum(one.fits for one in every)} of {len(every)} fit)" if len(every) > 1 else ""
    return Comparison(least.printed, least.follows + count, least.off, least.allowed)


def claim(printed: str, holds: Iterable[bool], more: str = "") -> Comparison:
    """A claim about several cases; what is off is the number of exceptions.

    >>> claim("below 0.1", [True, False])
    Comparison(printed='below 0.1', follows='in 1 of 2', off=1, allowed=0.0)
    """
    cases = [bool(case) for case in holds]
    return Comparison(printed, f"in {sum(cases)} of {len(cases)}{more}", len(cases) - sum(cases))


def cells(place: str) -> pd.DataFrame:
    """Rows of a shipped table as printed: ``place`` is its name, or its name, ``|`` and a pandas query."""
    name, _, query = (part.strip() for part in place.partition("|"))
    printed = paper_table(name, as_printed=True)
    return printed.loc[paper_table(name).query(query).index] if query else printed


def values(place: str) -> tuple[FloatArray, FloatArray]:
    """What follows from printed cells, and how far rounding reaches: ``place`` is ``table | query | terms``.

    Terms are columns joined by + or -, with words before: clipped (at 0), half, sum, product, count.

    >>> values("panoramia_table02 | dataset == 'CIFAR10' | count c_lb")[0]
    array([3.])
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
    """A check that its row defines: numbers beside numbers, or a claim about the rows of a table."""
    if rule == "claim":
        name, query, condition = (part.strip() for part in follows.split("|"))
        holds: Any = paper_table(name).query(query or "index >= 0").eval(condition)
        return claim(printed, holds)
    rows, _, column = printed.rpartition("|")
    trios = zip(cells(rows)[column.strip()], *values(follows), strict=True)
    return worst(compare(text, value, reach, about=rule == "about") for text, value, reach in trios)
