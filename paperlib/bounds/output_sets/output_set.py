"""A set of scores on which to guess, and where to guess "member" inside it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from paperlib.core import FloatArray, IntArray, MembershipScores

Intervals = tuple[tuple[float, float], ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class OutputSet:
    """A region of the real line on which to guess, and where to guess "member" inside it.

    Attributes:
        intervals: Disjoint intervals, rising; guess inside, abstain outside.
        member_intervals: Intervals in which a guess, if made, is "member"; elsewhere it is "nonmember".
        objective: Value that the choice of the set maximised, in nats; -inf when the sampling error
            exceeds the accuracy.
        tau: Least |log p/q| in the set, in nats; 0 where the set is not chosen by a level.
        confidence: Confidence level in the objective, in (0, 1).
        accuracy: Share of right guesses among those made, under the densities or on the scores.
        mass: p(O) + q(O), under the densities or on the scores, in [0, 2].
    """

    intervals: Intervals
    member_intervals: Intervals
    objective: float
    tau: float
    confidence: float
    accuracy: float
    mass: float

    def contains(self, x: ArrayLike) -> NDArray[np.bool_]:
        """Whether each point lies in the set; same shape as ``x``."""
        return inside(self.intervals, x)

    def guess(self, x: ArrayLike) -> IntArray:
        """1 for member, -1 for nonmember, 0 for abstain; same shape as ``x``."""
        side = np.where(inside(self.member_intervals, x), 1, -1)
        return np.where(self.contains(x), side, 0).astype(np.int64)

    def __str__(self) -> str:
        parts = [f"({low:.4g}, {high:.4g})" for low, high in self.intervals] or ["no guess"]
        return f"{' u '.join(parts)}, tau = {self.tau:.4f}, objective = {self.objective:.4f}"


def intervals_of(cuts: FloatArray, within: NDArray[np.bool_], ends: tuple[float, float]) -> Intervals:
    """Intervals of a region that begins or ends at cuts, and whether points between its ends lie in it."""
    first = [ends[0]] if within[0] else []
    last = [ends[1]] if within[-1] else []
    flat = [*first, *(float(cut) for cut in cuts), *last]
    return tuple(zip(flat[::2], flat[1::2], strict=True))


def inside(intervals: Intervals, x: ArrayLike) -> NDArray[np.bool_]:
    """Whether each point lies in one of the disjoint, rising intervals [low, high)."""
    cuts = np.array(intervals, dtype=np.float64).ravel()
    return np.searchsorted(cuts, np.asarray(x, dtype=np.float64), side="right") % 2 == 1


def overlap(first: Intervals, second: Intervals) -> Intervals:
    """Where points lie in both of two sets of disjoint, rising intervals."""
    pairs = ((max(a, c), min(b, d)) for a, b in first for c, d in second)
    return tuple(sorted(pair for pair in pairs if pair[0] < pair[1]))


def count_guesses(chosen: OutputSet, scores: MembershipScores) -> tuple[int, int]:
    """Right guesses and guesses made by an output set on scores."""
    member, nonmember = chosen.guess(scores.member), chosen.guess(scores.nonmember)
    correct = int((member == 1).sum() + (nonmember == -1).sum())
    return correct, int((member != 0).sum() + (nonmember != 0).sum())
