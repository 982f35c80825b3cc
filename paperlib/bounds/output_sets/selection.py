"""Four ways to choose, from selection scores, where to guess: level set, whole line, tails, posterior."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, expit, logit

from paperlib.bounds.one_run.tails import refuted_log_odds
from paperlib.bounds.output_sets.densities import RatioEstimate, at_least, estimate_ratio, spread_of
from paperlib.bounds.output_sets.level_sets import Intervals
from paperlib.core import FloatArray, IntArray, MembershipScores

METHODS = ("optimal", "whole", "top_bottom", "dp_sniper")
GUESSES = ("both", "members")
"""Which guesses an auditor makes: "member" and "nonmember", or "member" alone."""

_TRIED = 64  # counts tried at once
_MAX_TAIL = 2048  # tail sizes tried on each side; all of them up to this many scores
_ROUNDING = 1e-12  # a level reached by a flat stretch of the estimate takes all of it
_NEWTON_STEPS = 50
_RIDGE = 1e-6


@dataclass(frozen=True, kw_only=True, eq=False)
class OutputSet:
    """A region of the real line on which to guess, and where to guess "member" inside it.

    Attributes:
        intervals: Disjoint intervals, rising; guess inside, abstain outside.
        member_intervals: Where a guess, if made, is "member"; elsewhere it is "nonmember".
        objective: What the choice of the set maximised, in nats; -inf when the sampling error
            exceeds the accuracy.
        tau: Least |log p/q| in the set, in nats; 0 where the set is not chosen by a level.
        confidence: The confidence in the objective.
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


def inside(intervals: Intervals, x: ArrayLike) -> NDArray[np.bool_]:
    """Whether each point lies in one of the disjoint, rising intervals [low, high).

    >>> inside(((0.0, 1.0), (2.0, np.inf)), [0.5, 1.5, 9.0])
    array([ True, False,  True])
    """
    cuts = np.array(intervals, dtype=np.float64).ravel()
    return np.searchsorted(cuts, np.asarray(x, dtype=np.float64), side="right") % 2 == 1


def overlap(first: Intervals, second: Intervals) -> Intervals:
    """Where points lie in both of two sets of disjoint, rising intervals.

    >>> overlap(((0.0, 2.0), (3.0, 9.0)), ((1.0, 5.0),))
    ((1.0, 2.0), (3.0, 5.0))
    """
    pairs = ((max(a, c), min(b, d)) for a, b in first for c, d in second)
    return tuple(sorted(pair for pair in pairs if pair[0] < pair[1]))


@dataclass(frozen=True, kw_only=True, eq=False)
class Selection:
    """Selection scores in rising order, with the estimated log-ratio and the guess it implies.

    Attributes:
        x: Scores, rising, shape (n,).
        is_member: Their membership.
        estimate: Estimated log p/q, on a grid and at the scores.
        total: Examples the choice will be evaluated on.
        delta: Approximate-DP slack.
        confidence: Of the bound that the choice maximises.
        caution: By how much the search's luck is discounted, at least 1; 1 is not at all.
        guess: "both", or "members": who looks like a nonmember is an abstention.
    """

    x: FloatArray
    is_member: NDArray[np.bool_]
    estimate: RatioEstimate
    total: int
    delta: float
    confidence: float
    caution: float
    guess: str = "both"

    @property
    def guessed(self) -> NDArray[np.bool_]:
        """Whether a guess is made of each score that the set holds."""
        says_member = self.estimate.says_member
        return says_member if self.guess == "members" else np.ones_like(says_member)

    @property
    def correct(self) -> NDArray[np.bool_]:
        """Whether the guess "member where p >= q", made without the score itself, is made and right."""
        return self.guessed & (self.estimate.says_member == self.is_member)

    def bound(self, correct: ArrayLike, guesses: ArrayLike) -> FloatArray:
        """Bound that such counts would give on ``total`` examples, nats; below 0 where none holds."""
        return self._bound(correct, guesses, 1 - self.confidence)

    def value(self, correct: ArrayLike, guesses: ArrayLike) -> FloatArray:
        """What the choice maximises: the bound, less what the luck of a search is feared to add.

        The loss is that of asking for ``caution`` times less error at delta = 0: it is largest
        where few guesses are made.
        """
        error = 1 - self.confidence
        plain = self._plain(*self._scaled(correct, guesses), error)
        cautious = self._plain(*self._scaled(correct, guesses), error / self.caution)
        return self._bound(correct, guesses, error) - (plain - cautious)

    def _scaled(self, correct: ArrayLike, guesses: ArrayLike) -> tuple[FloatArray, FloatArray]:
        scale = self.total / self.x.size
        return np.asarray(correct, float) * scale, np.asarray(guesses, float) * scale

    def _plain(self, k: FloatArray, n: FloatArray, error: float) -> FloatArray:
        accuracy = betaincinv(np.maximum(k, 0.5), np.maximum(n - k, 0.0) + 1.0, error)
        return np.asarray(logit(accuracy), dtype=np.float64)

    def _bound(self, correct: ArrayLike, guesses: ArrayLike, error: float) -> FloatArray:
        k, n = self._scaled(correct, guesses)
        plain = self._plain(k, n, error)
        if self.delta == 0:
            return plain
        approximate = refuted_log_odds(np.floor(k), np.floor(n), error, self.total * self.delta)
        return np.where(approximate > 0, approximate, np.minimum(plain, 0.0))

    def result(self, intervals: Intervals, tau: float = 0.0) -> OutputSet:
        """The output set with its counts on the selection scores."""
        made = inside(intervals, self.x) & self.guessed
        guesses, right = int(made.sum()), int((made & self.correct).sum())
        if self.guess == "members":
            intervals = overlap(intervals, self.estimate.member_intervals)
        held = inside(intervals, self.x)
        return OutputSet(
            intervals=intervals,
            member_intervals=self.estimate.member_intervals,
            objective=float(self.bound(right, guesses)),
            tau=tau,
            confidence=self.confidence,
            accuracy=right / guesses if guesses else 0.0,
            mass=float(held[self.is_member].mean() + held[~self.is_member].mean()),
        )


def selection_of(
    scores: MembershipScores,
    *,
    floor: float | None,
    min_density: float | None,
    total: int,
    delta: float,
    confidence: float,
    caution: float,
    guess: str = "both",
) -> Selection:
    """Sort the scores and estimate where and how strongly they tell members from nonmembers."""
    x, is_member = scores.pooled()
    order = np.argsort(x, kind="stable")
    x, is_member = x[order], is_member[order]
    estimate = estimate_ratio(x, is_member, floor=floor, min_density=min_density)
    return Selection(
        x=x,
        is_member=is_member,
        estimate=estimate,
        total=total,
        delta=delta,
        confidence=confidence,
        caution=caution,
        guess=guess,
    )


def choose_optimal(chosen: Selection) -> OutputSet:
    """The level set {|log p/q| >= tau} of the estimates with the best bound on the selection scores."""
    level = chosen.estimate.levels
    order = np.argsort(-level, kind="stable")
    ordered, right, guesses = level[order], *_counts(chosen, order)
    last = np.append(np.flatnonzero(np.diff(ordered)), ordered.size - 1)
    best = int(last[_best(chosen, right[last], guesses[last])[0]])
    tau = float(ordered[best]) * (1 - _ROUNDING)
    if tau <= 0:
        return choose_whole(chosen)
    grid, ratio = chosen.estimate.grid, chosen.estimate.ratio
    intervals = at_least(grid, ratio, tau) + at_least(grid, -ratio, tau)
    return chosen.result(tuple(sorted(intervals)), tau)


def _counts(chosen: Selection, order: IntArray | slice) -> tuple[IntArray, IntArray]:
    """Right guesses and guesses among the first score of this order, the first two, and so on."""
    right, made = (np.cumsum(flags[order], dtype=np.int64) for flags in (chosen.correct, chosen.guessed))
    return right, made


def _best(chosen: Selection, right: IntArray, guesses: IntArray) -> tuple[int, float]:
    """Place and value of the best of these counts: 64 spread over all, 64 around the best of them, and so on.

    Fewer tries than all counts leave less to luck, and each costs a bisection at delta > 0.
    """
    start, stop = 0, right.size
    while stop - start > _TRIED:
        coarse = np.linspace(start, stop - 1, _TRIED).astype(np.int64)
        best = int(np.argmax(chosen.value(right[coarse], guesses[coarse])))
        nearer = int(coarse[max(best - 1, 0)]), int(coarse[min(best + 1, _TRIED - 1)]) + 1
        start, stop = nearer
    value = chosen.value(right[start:stop], guesses[start:stop])
    return start + int(np.argmax(value)), float(value.max())


def choose_whole(chosen: Selection) -> OutputSet:
    """Guess everywhere."""
    return chosen.result(((-math.inf, math.inf),))


def choose_top_bottom(chosen: Selection) -> OutputSet:
    """The top k+ and bottom k- scores with the best bound, over all pairs.

    For each number of guesses the split between the two ends with the most right guesses is
    kept, so the bound is computed once per number of guesses. Above 2048 scores the tail
    sizes tried are an even grid of 2049.

    Source:
        Steinke, Nasr and Jagielski (2023), Algorithm 1.
    """
    n = chosen.x.size
    sizes = np.unique(np.linspace(0, n, min(n, _MAX_TAIL) + 1).astype(np.int64))
    # A tied block goes in whole.
    low = np.append(0, np.searchsorted(chosen.x, chosen.x[sizes[1:] - 1], side="right"))
    high = n - np.append(n, np.searchsorted(chosen.x, chosen.x[n - sizes[1:]], side="left"))
    bottom, said_low = (np.append(0, counts)[low] for counts in _counts(chosen, slice(None)))
    top, said_high = (np.append(0, counts)[high] for counts in _counts(chosen, slice(None, None, -1)))
    split, right, guesses = np.zeros((3, sizes.size), dtype=np.int64)
    for count in range(1, sizes.size):
        fits = low[: count + 1] + high[count::-1] <= n
        pair = bottom[: count + 1] + top[count::-1]
        made = said_low[: count + 1] + said_high[count::-1]
        excess = np.where(fits, (2 * pair - made) / np.sqrt(np.maximum(made, 1)), -np.inf)
        i = split[count] = int(np.argmax(excess))
        right[count], guesses[count] = (pair[i], made[i]) if fits[i] else (0, 1)
    best = 1 + _best(chosen, right[1:], guesses[1:])[0]
    return chosen.result(_tails(chosen.x, int(low[split[best]]), int(high[best - split[best]])))


def _tails(x: FloatArray, low_count: int, high_count: int) -> Intervals:
    """Intervals that hold the lowest and the highest scores; cuts halfway to the next score."""
    if low_count + high_count >= x.size:
        return ((-math.inf, math.inf),)
    low = ((-math.inf, float(x[low_count - 1] / 2 + x[low_count] / 2)),) if low_count else ()
    high = ((float(x[-high_count - 1] / 2 + x[-high_count] / 2), math.inf),) if high_count else ()
    return low + high


def choose_dp_sniper(chosen: Selection) -> OutputSet:
    """The scores whose logistic posterior of membership is above, or below, the best threshold.

    Source:
        Bichsel et al. (2021), DP-Sniper, with the threshold search of Lu et al. (2022). The
        pair is tried in both directions, as DP-Sniper does.
    """
    slope, intercept, centre, spread = logistic_fit(chosen.x, chosen.is_member)
    posterior = expit(intercept + slope * (chosen.x - centre) / spread)
    best: tuple[float, Intervals] = (-math.inf, ((-math.inf, math.inf),))
    for sign in (1.0, -1.0):
        order = np.argsort(-sign * posterior, kind="stable")
        right, guesses = _counts(chosen, order)
        last = np.append(np.flatnonzero(np.diff(posterior[order])), order.size - 1)
        place, value = _best(chosen, right[last], guesses[last])
        count = int(last[place]) + 1
        low, high = (0, count) if sign * slope > 0 else (count, 0)
        if value > best[0]:
            best = value, _tails(chosen.x, low, high)
    return chosen.result(best[1])


def logistic_fit(x: FloatArray, is_member: NDArray[np.bool_]) -> tuple[float, float, float, float]:
    """Logistic regression on one feature by Newton steps, with a slight ridge on the slope.

    Args:
        x: Scores, shape (n,).
        is_member: Membership, shape (n,).

    Returns:
        Slope and intercept in standardised scores, and the centre and spread that standardise.

    >>> slope, _, _, _ = logistic_fit(np.array([0.0, 1.0, 2.0, 3.0]), np.array([False, True, False, True]))
    >>> slope > 0
    True
    """
    centre, spread = float((x / x.size).sum()), spread_of(x) or 1.0
    z = (x - centre) / spread
    weights = np.zeros(2)
    for _ in range(_NEWTON_STEPS):
        chance = np.asarray(expit(weights[0] + weights[1] * z), dtype=np.float64)
        gradient = np.array([(is_member - chance).sum(), ((is_member - chance) * z).sum()])
        gradient[1] -= _RIDGE * z.size * weights[1]
        curvature = chance * (1 - chance)
        off = (curvature * z).sum()
        hessian = np.array([[curvature.sum(), off], [off, (curvature * z * z).sum()]])
        hessian += np.diag([1e-12, _RIDGE]) * z.size
        step = np.clip(np.linalg.solve(hessian, gradient), -2.0, 2.0)
        weights = weights + step
        if float(np.abs(step).max()) < 1e-10:
            break
    return float(weights[1]), float(weights[0]), centre, spread


CHOICES: dict[str, Callable[[Selection], OutputSet]] = {
    "optimal": choose_optimal,
    "whole": choose_whole,
    "top_bottom": choose_top_bottom,
    "dp_sniper": choose_dp_sniper,
}
