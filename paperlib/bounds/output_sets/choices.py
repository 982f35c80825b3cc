"""An output set from selection scores, chosen in one of four ways."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, expit, logit

from paperlib.bounds.one_run.tails import refuted_log_odds
from paperlib.bounds.output_sets.densities import RatioEstimate, at_least, estimate_ratio, spread_of
from paperlib.bounds.output_sets.level_sets import Intervals, OutputSet, inside, overlap
from paperlib.core import FloatArray, IntArray, MembershipScores
from paperlib.core.checks import (
    check_choice,
    check_confidence,
    check_counts,
    check_delta,
    check_in,
    check_nonnegative,
    check_vector,
)
from paperlib.core.direction import check_scores
from paperlib.core.options import Sides

Method = Literal["optimal", "whole", "top_bottom", "dp_sniper"]
METHODS: tuple[Method, ...] = get_args(Method)

_EVERYWHERE: Intervals = ((-math.inf, math.inf),)
_CANDIDATES = 64  # counts compared at once
_MAX_TAIL = 2048  # tail sizes compared on each side; all of them up to this many scores
_ROUNDING = 1e-12  # a level reached by a flat stretch of the estimate takes all of it
_NEWTON_STEPS = 50  # at most
_RIDGE = 1e-6  # so that the slope stays finite where the classes do not overlap


@dataclass(frozen=True, kw_only=True)
class SelectionRule:
    """Settings of the choice of an output set from scores.

    Attributes:
        floor: Share of the highest peak, in (0, 1), to which lower densities are raised before
            their ratio is taken, so that a thin tail cannot look certain. None: the lower of 0.01
            and two kernels' height.
        min_density: The paper's rule instead: the ratio is used only where both densities exceed
            this value (0.01 in the paper), per unit of the score, 0 or more; None for the floor.
        error_divisor: Candidates are compared by their bound less the cost of this many times less
            error, 1 or more, since the highest of many bounds is more optimistic the fewer guesses
            are made; 1 takes the highest bound, as the paper does.
        guess: "both", as the paper does, or "members": only guesses "member" are made and counted.
            The set may then hold no point: no guess is made.
    """

    floor: float | None = None
    min_density: float | None = None
    error_divisor: float = 20.0
    guess: Sides = "both"

    def __post_init__(self) -> None:
        """Refuse (ValueError) an unknown side, and numbers out of range."""
        check_choice("guess", self.guess, Sides)
        if self.floor is not None:
            check_in("(0, 1)", "floor", self.floor)
        if self.min_density is not None:
            check_nonnegative("min_density", self.min_density)
        check_in("[1, inf)", "error_divisor", self.error_divisor)


DEFAULT_RULE = SelectionRule()


@dataclass(frozen=True, kw_only=True, eq=False)
class Selection:
    """Selection scores in rising order, with the estimated log-ratio and the guess it implies."""

    x: FloatArray  # scores, rising, shape (n,)
    is_member: NDArray[np.bool_]  # their membership
    estimate: RatioEstimate  # estimated log p/q, on a grid and at the scores
    total: int  # number of examples the choice will be evaluated on
    delta: float  # delta of (epsilon, delta)-DP, in [0, 1)
    confidence: float  # confidence level of the bound that the choice maximises, in (0, 1)
    rule: SelectionRule

    @property
    def right_and_made(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Whether the guess of each score, by p >= q estimated without the score itself, is right,
        and whether it is made; shapes (n,).
        """
        says_member = self.estimate.says_member
        made = says_member | (self.rule.guess == "both")
        return made & (says_member == self.is_member), made

    def bound(self, correct: ArrayLike, guesses: ArrayLike) -> FloatArray:
        """Bound that such counts, of shape (k,), would give on ``total`` examples, nats, (k,);
        below 0 where none holds.
        """
        plain, error = self._plain(correct, guesses), 1 - self.confidence
        if self.delta == 0:
            return plain
        k, n = (
            np.floor(np.asarray(x, float) * (self.total / self.x.size)) for x in (correct, guesses)
        )
        approximate = refuted_log_odds(k, n, error, self.total * self.delta)
        return np.where(approximate > 0, approximate, np.minimum(plain, 0.0))

    def value(self, correct: ArrayLike, guesses: ArrayLike) -> FloatArray:
        """Value that the choice maximises, nats, shape (k,): the bound of these counts, shape (k,),
        less what the search costs.

        The search costs the difference between the bound at the whole error and that at a part of
        it, one ``error_divisor``-th, as if so many sets had been tried.
        """
        cost = self._plain(correct, guesses) - self._plain(
            correct, guesses, self.rule.error_divisor
        )
        return self.bound(correct, guesses) - cost

    def _plain(self, correct: ArrayLike, guesses: ArrayLike, divisor: float = 1.0) -> FloatArray:
        """The bound at delta 0 of counts, shape (k,), scaled to ``total`` examples, at one
        ``divisor``-th of the error, nats, (k,); below 0 where none holds.
        """
        k, n = (np.asarray(x, float) * (self.total / self.x.size) for x in (correct, guesses))
        level = (1 - self.confidence) / divisor
        # The lower Clopper-Pearson limit of the accuracy, and its log-odds.
        accuracy = betaincinv(np.maximum(k, 0.5), np.maximum(n - k, 0.0) + 1.0, level)
        return np.asarray(logit(accuracy), dtype=np.float64)

    def result(self, intervals: Intervals, tau: float = 0.0) -> OutputSet:
        """The output set of these intervals with its counts on the selection scores.

        Args:
            intervals: Ends of the set's intervals, in the unit of the scores.
            tau: Threshold of the log-ratio that made the set, nats; the result only keeps it.
        """
        # Counted before the overlap, since member_intervals are of the estimate with all scores,
        # while these guesses, by which the set was chosen, leave out the score that they judge.
        in_set = inside(intervals, self.x)
        is_right, is_made = self.right_and_made
        right = int((in_set & is_right).sum())
        guesses = int((in_set & is_made).sum())
        if self.rule.guess == "members":
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
    scores: MembershipScores, rule: SelectionRule, *, total: int, delta: float, confidence: float
) -> Selection:
    """Sort the scores and estimate where and how strongly they tell members from nonmembers.

    Args:
        scores: Selection scores, in any order.
        total: Number of examples that the chosen set will be evaluated on, 1 or more.
        delta: Of (epsilon, delta)-DP, in [0, 1).
        confidence: Of the bound that the choice maximises, in (0, 1).

    Raises:
        ValueError: A number out of range, or fewer than two scores of a class.
    """
    x, is_member = scores.pooled()
    order = np.argsort(x, kind="stable")
    return Selection(
        x=x[order],
        is_member=is_member[order],
        estimate=estimate_ratio(
            x[order], is_member[order], floor=rule.floor, min_density=rule.min_density
        ),
        total=int(check_counts("total", total, minimum=1)),
        delta=check_delta(delta),
        confidence=check_confidence(confidence),
        rule=rule,
    )


def fit_output_set(
    scores: MembershipScores,
    *,
    method: Method = "optimal",
    confidence: float = 0.95,
    delta: float = 0.0,
    total: int | None = None,
    rule: SelectionRule = DEFAULT_RULE,
) -> OutputSet:
    """Choose an output set from scores: by default the best level set of two kernel density
    estimates.

    The level has the best one-run bound on these same scores, each judged by estimates that leave
    it out. As it was searched for, this bound, in ``objective``, is not valid: audit other scores
    with the set.

    Args:
        scores: Selection scores in any direction, at least two of each class.
        method: "optimal" (level set of the estimated log-ratio), "whole" (guess everywhere),
            "top_bottom" (highest and lowest scores) or "dp_sniper" (threshold on a logistic
            posterior).
        confidence: Confidence level of the bound that is maximised, in (0, 1); ``delta`` is its
            delta.
        total: Number of examples the set will be evaluated on; as many as ``scores`` when None.
        rule: Settings of the choice.

    Raises:
        ValueError: An unknown method, a number out of range, or fewer than two scores of a class.

    Source:
        "Identifying Optimal Output Sets for Differential Privacy Auditing", Algorithm 1, with the
        scale-free floor.

    >>> rng = np.random.default_rng(0)
    >>> chosen = fit_output_set(MembershipScores(rng.normal(2, 1, 500), rng.normal(0, 1, 500)))
    >>> [bool(chosen.contains(x)) for x in (1.0, 3.0)]
    [False, True]
    """
    check_scores("scores", scores)
    check_choice("method", method, Method)
    total = len(scores) if total is None else total
    return CHOICES[method](
        selection_of(scores, rule, total=total, delta=delta, confidence=confidence)
    )


def ratio_scores(
    selection_scores: MembershipScores, scores: ArrayLike, *, rule: SelectionRule = DEFAULT_RULE
) -> FloatArray:
    """Estimated log p/q at scores, nats, higher means member: the order in which falling levels
    take them in.

    A search over recall on the ratio instead of the score guesses inside the sets {log p/q >= tau}
    of every tau, and corrects for testing all of them, so that no level has to be chosen on the
    selection scores.

    Guarantee:
        A bound that holds for any order of the guesses fixed without the membership of the judged
        examples (`audit_one_run`, `audit_panoramia`) holds for this order.

    Args:
        selection_scores: Scores to estimate densities from, at least two of each class.
        scores: Scores of other examples, in the same direction and unit, shape (n,).
        rule: Settings of the densities, `floor` and `min_density` alone.

    Raises:
        ValueError: Fewer than two selection scores of a class, or scores that are not finite.

    >>> rng = np.random.default_rng(0)
    >>> member, centres = rng.normal(0, 0.5, 400), rng.choice([-2, 2], 400)
    >>> selection = MembershipScores(member, rng.normal(centres, 0.5))
    >>> (ratio_scores(selection, [-2.0, 0.0, 2.0]) > 0).tolist()
    [False, True, False]
    """
    x, is_member = selection_scores.pooled()
    estimate = estimate_ratio(x, is_member, floor=rule.floor, min_density=rule.min_density)
    return np.interp(check_vector("scores", scores), estimate.grid, estimate.ratio)


def choose_optimal(selection: Selection) -> OutputSet:
    """The level set {|log p/q| >= tau} of the estimates with the best bound on the selection
    scores.
    """
    level = selection.estimate.levels
    order = np.argsort(-level, kind="stable")  # the surest scores first
    ordered, right, guesses = level[order], *_counts(selection, order)
    # Scores of one level go in together: the last position of each level.
    last = np.append(np.flatnonzero(np.diff(ordered)), ordered.size - 1)
    best = int(last[_best(selection, right[last], guesses[last])[0]])
    tau = float(ordered[best]) * (1 - _ROUNDING)
    if tau <= 0:
        return selection.result(_EVERYWHERE)
    grid, ratio = selection.estimate.grid, selection.estimate.ratio
    intervals = at_least(grid, ratio, tau) + at_least(grid, -ratio, tau)
    return selection.result(tuple(sorted(intervals)), tau)


def _counts(selection: Selection, order: IntArray | slice) -> tuple[IntArray, IntArray]:
    """Right guesses and guesses among the first score of this order, the first two, and so on."""
    is_right, is_made = selection.right_and_made
    right = np.cumsum(is_right[order], dtype=np.int64)
    made = np.cumsum(is_made[order], dtype=np.int64)
    return right, made


def _best(selection: Selection, right: IntArray, guesses: IntArray) -> tuple[int, float]:
    """Position and value (nats) of the best of these counts, shape (n,): of 64 spread over all,
    then 64 around the best of them, and so on.
    """
    # Fewer candidates make the highest bound less optimistic, and each costs a bisection at delta >
    # 0.
    start, stop = 0, right.size
    while stop - start > _CANDIDATES:
        coarse = np.linspace(start, stop - 1, _CANDIDATES).astype(np.int64)
        best = int(np.argmax(selection.value(right[coarse], guesses[coarse])))
        # From the candidate before the best one to the candidate behind it.
        start = int(coarse[max(best - 1, 0)])
        stop = int(coarse[min(best + 1, _CANDIDATES - 1)]) + 1
    value = selection.value(right[start:stop], guesses[start:stop])
    return start + int(np.argmax(value)), float(value.max())


def choose_top_bottom(selection: Selection) -> OutputSet:
    """The set of the highest k+ and the lowest k- scores with the best bound on the selection
    scores, of all pairs of k+ and k- (Steinke et al. 2023, Algorithm 1).
    """
    # For each number of guesses the split between the ends with the most right guesses is kept, so
    # that the bound is computed once per number. Above 2048 scores the tail sizes tried are an even
    # grid of 2049.
    n = selection.x.size
    sizes = np.unique(np.linspace(0, n, min(n, _MAX_TAIL) + 1).astype(np.int64))
    # A tied block goes in whole.
    low = np.append(0, np.searchsorted(selection.x, selection.x[sizes[1:] - 1], side="right"))
    high = n - np.append(n, np.searchsorted(selection.x, selection.x[n - sizes[1:]], side="left"))
    # Right guesses, and guesses made, among the lowest and among the highest scores of each size.
    bottom, guessed_low = (np.append(0, counts)[low] for counts in _counts(selection, slice(None)))
    top, guessed_high = (
        np.append(0, counts)[high] for counts in _counts(selection, slice(None, None, -1))
    )
    # For each number of steps of the grid, both ends together: how many of them are at the bottom
    # in the best split, and its counts.
    split, right, guesses = np.zeros((3, sizes.size), dtype=np.int64)
    for count in range(1, sizes.size):
        fits = low[: count + 1] + high[count::-1] <= n
        pair = bottom[: count + 1] + top[count::-1]
        made = guessed_low[: count + 1] + guessed_high[count::-1]
        # Standard deviations by which right guesses exceed half of those made.
        excess = np.where(fits, (2 * pair - made) / np.sqrt(np.maximum(made, 1)), -np.inf)
        best_split = int(np.argmax(excess))
        split[count] = best_split
        if fits[best_split]:
            right[count], guesses[count] = pair[best_split], made[best_split]
        else:  # no split of so many fits: one wrong guess, which is never the best
            right[count], guesses[count] = 0, 1
    best = 1 + _best(selection, right[1:], guesses[1:])[0]
    return selection.result(
        _tails(selection.x, int(low[split[best]]), int(high[best - split[best]]))
    )


def _tails(x: FloatArray, low_count: int, high_count: int) -> Intervals:
    """Intervals that hold the ``low_count`` lowest and ``high_count`` highest of the rising scores
    ``x``, shape (n,); cuts halfway to the next score, everywhere if they are all.
    """
    if low_count + high_count >= x.size:
        return _EVERYWHERE
    low = ((-math.inf, float(x[low_count - 1] / 2 + x[low_count] / 2)),) if low_count else ()
    high = ((float(x[-high_count - 1] / 2 + x[-high_count] / 2), math.inf),) if high_count else ()
    return low + high


def choose_dp_sniper(selection: Selection) -> OutputSet:
    """The scores whose logistic posterior of membership is above the best threshold, or below it,
    whichever has the better bound on the selection scores (Bichsel et al. 2021).
    """
    fit = logistic_fit(selection.x, selection.is_member)
    posterior = expit(fit.intercept + fit.slope * (selection.x - fit.centre) / fit.spread)
    best_value, intervals = -math.inf, _EVERYWHERE
    for sign in (1.0, -1.0):  # the highest posteriors first, then the lowest
        order = np.argsort(-sign * posterior, kind="stable")
        right, guesses = _counts(selection, order)
        # Scores of one posterior go in together: the last position of each.
        last = np.append(np.flatnonzero(np.diff(posterior[order])), order.size - 1)
        strongest, value = _best(selection, right[last], guesses[last])
        count = int(last[strongest]) + 1
        low, high = (0, count) if sign * fit.slope > 0 else (count, 0)
        if value > best_value:
            best_value, intervals = value, _tails(selection.x, low, high)
    return selection.result(intervals)


class LogisticFit(NamedTuple):
    """The log-odds of membership at x, nats: ``intercept + slope * (x - centre) / spread``."""

    slope: float
    intercept: float
    centre: float  # mean of the feature
    spread: float  # its standard deviation; 1 where it has none


def logistic_fit(x: FloatArray, is_member: NDArray[np.bool_]) -> LogisticFit:
    """Logistic regression of membership on one feature, by Newton steps with a slight ridge.

    Args:
        x: The feature, shape (n,).
        is_member: Membership, shape (n,).
    """
    centre, spread = float((x / x.size).sum()), spread_of(x) or 1.0
    z = (x - centre) / spread
    weights = np.zeros(2)
    for _ in range(_NEWTON_STEPS):
        chance = np.asarray(expit(weights[0] + weights[1] * z), dtype=np.float64)
        gradient = np.array([(is_member - chance).sum(), ((is_member - chance) * z).sum()])
        gradient[1] -= _RIDGE * z.size * weights[1]
        curvature = chance * (1 - chance)
        mixed = (curvature * z).sum()
        hessian = np.array([[curvature.sum(), mixed], [mixed, (curvature * z * z).sum()]])
        hessian += np.diag([1e-12, _RIDGE]) * z.size  # 1e-12: invertible where all chances are 0
        # At most 2 per step: a Newton step from a flat stretch would overshoot.
        step = np.clip(np.linalg.solve(hessian, gradient), -2.0, 2.0)
        weights = weights + step
        if float(np.abs(step).max()) < 1e-10:
            break
    return LogisticFit(float(weights[1]), float(weights[0]), centre, spread)


CHOICES: dict[Method, Callable[[Selection], OutputSet]] = {
    "optimal": choose_optimal,
    "whole": lambda selection: selection.result(_EVERYWHERE),
    "top_bottom": choose_top_bottom,
    "dp_sniper": choose_dp_sniper,
}
