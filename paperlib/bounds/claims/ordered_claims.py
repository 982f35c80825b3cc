"""Claims in their order, such as those of more and more noise: how far one audit refutes them.

(Book, the claim of an accountant: claims of more noise.) The claims are cut into cells, and all of
a cell are tested by the bets against its least private claim: a more private one lets a bet win
less beyond its odds, so its p-value is lower. The cells are read from the most private one on, and
reading ends at the first cell that is not refuted as a whole. So the one true claim that could be
refuted first is tested once, in its own cell.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from paperlib.bounds.claims.bets import Limits, highest_stake, highest_stake_of_runs, limits_of
from paperlib.bounds.claims.curves import Profile
from paperlib.core import FloatArray

_AT_ONCE = 4  # cells in the first pass over the guesses; then twice as many in each
_MOST_AT_ONCE = 32
_HALVINGS = 8  # of the cell in which the refuted claims end


@dataclass(frozen=True, eq=False)
class ClaimTest:
    """The guesses of one audit, which curves are tested on."""

    right: NDArray[np.bool_]  # whether each guess is right, as for `highest_stake`, shape (n,)
    total: int  # examples of the audit, looks and abstentions included
    error: float  # of each test, in (0, 1)
    # The same of the runs that are read after the first one, where each may be the last look.
    later: tuple[NDArray[np.bool_], ...] | None = None

    def p_value(self, profile: Profile) -> float:
        """Largest chance of so strong an attack within the curve, in (0, 1]."""
        return min(1.0, self.error / float(self._stakes(self._limits([profile]))[0]))

    def refutes(self, profile: Profile) -> bool:
        """Whether the p-value is at most the error."""
        return bool(self._stakes(self._limits([profile]))[0] >= 1)

    def last_refuted(
        self, grid: FloatArray, profile_at: Callable[[float], Profile]
    ) -> float | None:
        """The value up to which all claims are refuted, together at the error; None where the
        first value of the grid is not.

        Args:
            grid: Least private values of the cells, the most private one first, shape (cells,),
                fixed before any score is seen.
            profile_at: The profile of the claim with a value; that of a more private one is
                nowhere above.
        """
        last = None
        for values in _pieces(grid):
            limits = self._limits([profile_at(value) for value in values])
            stakes = self._stakes(limits)
            # Number of cells that are refuted before the first that is not, which is its row too.
            refuted = int(np.argmin(np.append(stakes >= 1, False)))
            if refuted:
                last = values[refuted - 1]
            if refuted == len(values):
                continue
            if last is None:
                return None
            bets = _BetsOfCell(limits, refuted, float(stakes[refuted]), self.total, profile_at)
            return _end_in_cell(last, values[refuted], bets.refute)
        return last

    def _limits(self, profiles: list[Profile]) -> Limits:
        """What the claims of these profiles allow in an audit of this size and error."""
        return limits_of(profiles, self.total, self.error)

    def _stakes(self, limits: Limits) -> FloatArray:
        """The highest stake against each claim, shape (claims,); 1 or more refutes it."""
        if self.later is None:
            return highest_stake(self.right, limits)
        return highest_stake_of_runs((self.right, *self.later), limits)


@dataclass(frozen=True, eq=False)
class _BetsOfCell:
    """The bets against the least private claim of a cell, and what they reached."""

    limits: Limits
    row: int  # of the cell in the limits
    stake: float  # the highest one
    total: int  # examples of the audit
    profile_at: Callable[[float], Profile]  # of the claim with a value

    def refute(self, value: float) -> bool:
        """Whether they refute another claim of the cell, the one with this value."""
        # By this claim the same bets win less beyond their odds (`paid`), so that their stake
        # exceeds c (start + paid) with a chance of at most 1 / c; refuted at c = 1 / error.
        delta = self.profile_at(value)(self.limits.log_odds[self.row])
        paid = self.total * float(np.sum(self.limits.largest[self.row] * delta))
        return float(self.limits.start[self.row]) + paid <= self.limits.error * self.stake


def _end_in_cell(refuted: float, kept: float, is_refuted: Callable[[float], bool]) -> float:
    """The value of a cell at which the refuted claims end, from the refuted side, by bisection.

    Args:
        refuted: Value that the bets of the cell before refute, an end of this cell.
        kept: Value at the other end, which is not refuted.
        is_refuted: Whether the bets of this cell refute a value.
    """
    if not is_refuted(refuted):
        return refuted
    for _ in range(_HALVINGS):
        middle = (refuted + kept) / 2
        if is_refuted(middle):
            refuted = middle
        else:
            kept = middle
    return refuted


def _pieces(grid: FloatArray) -> Iterator[list[float]]:
    """The values of a grid in their order, a few at once and then more."""
    start, size = 0, _AT_ONCE
    while start < grid.size:
        yield [float(value) for value in grid[start : start + size]]
        start, size = start + size, min(2 * size, _MOST_AT_ONCE)
