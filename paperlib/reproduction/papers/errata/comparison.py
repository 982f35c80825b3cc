"""Comparison of what a paper prints with what follows: their distance, and what rounding explains.

The checks are the cells of ``notebooks/paper_checks.ipynb``; here is what they have in common.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from paperlib.report.tables import format_cell

_FLOAT_ERROR = 1e-9  # of a distance that is computed from decimal numbers


def half_unit(printed: str, *, approximate: bool = False) -> float:
    """Half a unit of the last printed digit: how far rounding may have moved the number.

    It is 0 for a whole number. With ``approximate`` ("about 48,000") the zeros at the end of the
    number are rounding, too.

    >>> half_unit("0.33"), half_unit("120"), half_unit("120", approximate=True)
    (0.005, 0.0, 5.0)
    """
    number = Decimal(printed)
    if approximate:
        number = number.normalize()
    last_digit = int(number.as_tuple().exponent)
    if last_digit >= 0 and not approximate:
        return 0.0
    return float(Decimal(5).scaleb(last_digit - 1))


@dataclass(frozen=True)
class Comparison:
    """What is printed and what follows, as text, with their distance and what is allowed of it.

    For a claim about several cases the distance is the number of exceptions.
    """

    printed: str
    follows: str
    off: float
    allowed: float = 0.0

    @property
    def fits(self) -> bool:
        """Whether the distance is explained, up to the rounding of floats."""
        return bool(self.off <= self.allowed + _FLOAT_ERROR)


def compare(
    printed: str, value: float, reach: float = 0.0, text: str = "", *, approximate: bool = False
) -> Comparison:
    """A printed number beside the value that follows from others.

    Args:
        printed: The number as it is printed.
        value: What follows, in the same unit.
        reach: How far rounding of the others may have moved the value; allowed beside half a unit
            of the printed number's last digit.
        text: What is shown of the value; empty shows the number.
        approximate: See `half_unit`.
    """
    allowed = half_unit(printed, approximate=approximate) + reach
    distance = abs(float(printed) - value)
    return Comparison(printed, text or _number_text(value), distance, allowed)


def _number_text(value: float) -> str:
    """A number in four digits, without zeros at the end of its decimals."""
    text = format_cell(value, digits=4)
    if "." in text and "e" not in text:
        return text.rstrip("0").rstrip(".")
    return text


def compare_printed(printed: str, other: str) -> Comparison:
    """Two printed numbers that should be one; both may be rounded."""
    return compare(printed, float(other), half_unit(other))


def between(printed: str, low: float, high: float) -> Comparison:
    """A printed number beside the range that follows."""
    middle = (low + high) / 2
    return compare(printed, middle, (high - low) / 2, f"{low:.4g} to {high:.4g}")


def worst(comparisons: Iterable[Comparison]) -> Comparison:
    """Of several comparisons the one that fits least, with the number of those that fit."""
    cases = list(comparisons)
    least = max(cases, key=lambda case: case.off - case.allowed)
    if len(cases) == 1:
        return least
    fitting = sum(case.fits for case in cases)
    follows = f"{least.follows} ({fitting} of {len(cases)} fit)"
    return Comparison(least.printed, follows, least.off, least.allowed)


def compare_claim(printed: str, holds: Iterable[bool], remark: str = "") -> Comparison:
    """A claim about several cases, with whether each holds; what is off is the number of
    exceptions.

    ``remark`` follows the count in the text, such as the cases that are exceptions.
    """
    cases = [bool(case) for case in holds]
    return Comparison(printed, f"in {sum(cases)} of {len(cases)}{remark}", len(cases) - sum(cases))
