"""Scores to choose an output set with: the densities they show, and the bound that counts would give."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, logit

from paperlib.bounds.one_run.tails import refuted_log_odds
from paperlib.bounds.output_sets.densities import RatioEstimate, estimate_ratio
from paperlib.bounds.output_sets.level_sets import Intervals, OutputSet, inside, overlap
from paperlib.core import FloatArray, MembershipScores, check_choice
from paperlib.core.checks import check_confidence, check_counts, check_delta, check_in, check_nonnegative
from paperlib.core.options import Sides


@dataclass(frozen=True, kw_only=True)
class SelectionRule:
    """Settings of the choice of an output set from scores.

    Attributes:
        floor: Share of the highest peak, in (0, 1), to which lower densities are raised before their ratio is
            taken, so that a thin tail cannot look certain. None: the lower of 0.01 and two kernels' height.
        min_density: The paper's rule instead: the ratio is used only where both densities exceed
            this value (0.01 in the paper), per unit of the score, 0 or more; None for the floor.
        error_divisor: Candidates are compared by their bound less the cost of this many times less error,
            1 or more, since the highest of many bounds is more optimistic the fewer guesses are made;
            1 takes the highest bound, as the paper does.
        guess: "both", as the paper does, or "members": only guesses "member" are made and counted. The set
            may then hold no point: no guess is made.
    """

    floor: float | None = None
    min_density: float | None = None
    error_divisor: float = 20.0
    guess: Sides = "both"

    def __post_init__(self) -> None:
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
    def guessed(self) -> NDArray[np.bool_]:
        """Whether a guess is made of each score that the set holds."""
        says_member = self.estimate.says_member
        return says_member if self.rule.guess == "members" else np.ones_like(says_member)

    @property
    def correct(self) -> NDArray[np.bool_]:
        """Whether the guess "member where p >= q", made without the score itself, is made and right."""
        return self.guessed & (self.estimate.says_member == self.is_member)

    def bound(self, correct: ArrayLike, guesses: ArrayLike) -> FloatArray:
        """Bound that such counts would give on ``total`` examples, nats; below 0 where none holds."""
        k, n = self._scaled(correct, guesses)
        error = 1 - self.confidence
        plain = self._plain(k, n, error)
        if self.delta == 0:
            return plain
        approximate = refuted_log_odds(np.floor(k), np.floor(n), error, self.total * self.delta)
        return np.where(approximate > 0, approximate, np.minimum(plain, 0.0))

    def value(self, correct: ArrayLike, guesses: ArrayLike) -> FloatArray:
        """Value that the choice maximises: the bound, less what the search costs (``error_divisor``)."""
        error, (k, n) = 1 - self.confidence, self._scaled(correct, guesses)
        cost = self._plain(k, n, error) - self._plain(k, n, error / self.rule.error_divisor)
        return self.bound(correct, guesses) - cost

    def _scaled(self, correct: ArrayLike, guesses: ArrayLike) -> tuple[FloatArray, FloatArray]:
        scale = self.total / self.x.size
        return np.asarray(correct, float) * scale, np.asarray(guesses, float) * scale

    def _plain(self, k: FloatArray, n: FloatArray, error: float) -> FloatArray:
        accuracy = betaincinv(np.maximum(k, 0.5), np.maximum(n - k, 0.0) + 1.0, error)
        return np.asarray(logit(accuracy), dtype=np.float64)

    def result(self, intervals: Intervals, tau: float = 0.0) -> OutputSet:
        """The output set with its counts on the selection scores."""
        made = inside(intervals, self.x) & self.guessed
        guesses, right = int(made.sum()), int((made & self.correct).sum())
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
    """Sort the scores and estimate where and how strongly they tell members from nonmembers."""
    x, is_member = scores.pooled()
    order = np.argsort(x, kind="stable")
    return Selection(
        x=x[order],
        is_member=is_member[order],
        estimate=ratio_of(scores, x[order], is_member[order], rule),
        total=int(check_counts("total", total, minimum=1)),
        delta=check_delta(delta),
        confidence=check_confidence(confidence),
        rule=rule,
    )


def ratio_of(
    scores: MembershipScores, x: FloatArray, is_member: NDArray[np.bool_], rule: SelectionRule
) -> RatioEstimate:
    """Estimated log p/q of selection scores, given pooled as well, in any order."""
    for name, values in (("member", scores.member), ("nonmember", scores.nonmember)):
        if values.size < 2:
            raise ValueError(f"selection scores: expected at least 2 {name} scores, got {values.size}")
    return estimate_ratio(x, is_member, floor=rule.floor, min_density=rule.min_density)
