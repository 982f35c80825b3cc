"""Error counts of one test over many trainings, and epsilon from Clopper-Pearson intervals on their
rates.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from paperlib.bounds.one_run.tails import NUMERICAL_MARGIN
from paperlib.core import AuditResult, FloatArray, MembershipScores
from paperlib.core.checks import (
    check_choice,
    check_confidence,
    check_counts,
    check_delta,
    check_finite,
)
from paperlib.core.direction import check_scores, reversed_direction
from paperlib.core.facts import Refusal
from paperlib.core.intervals import upper_rate
from paperlib.words import directions
from paperlib.words.many_runs import (
    TestOrigin,
    assumptions,
    clopper_pearson_claim,
    clopper_pearson_headline,
    could_refute,
)

RunAdjacency = Literal["add/remove", "replace"]
"""What the runs without the target record were trained on: all other records, or another one in its
place.
"""


@dataclass(frozen=True)
class ErrorCounts:
    """How often one fixed test erred: members called non-members, and non-members called members.

    >>> ErrorCounts(5, 100, 20, 100).false_negative_rate
    0.2
    """

    false_positives: int
    nonmembers: int
    false_negatives: int
    members: int

    def __post_init__(self) -> None:
        """Refuse (ValueError) counts that are not whole, negative or above their total, and keep
        them as int.
        """
        for wrong, of in (("false_positives", "nonmembers"), ("false_negatives", "members")):
            count = int(check_counts(wrong, getattr(self, wrong)))
            total = int(check_counts(of, getattr(self, of), minimum=1))
            if count > total:
                raise ValueError(f"{wrong}: expected at most {of} = {total}, got {count}")
            object.__setattr__(self, wrong, count)
            object.__setattr__(self, of, total)

    @property
    def numbers(self) -> tuple[int, int, int, int]:
        """False positives, non-members, false negatives, members."""
        return self.false_positives, self.nonmembers, self.false_negatives, self.members

    @property
    def false_positive_rate(self) -> float:
        """Share of non-members called members."""
        return self.false_positives / self.nonmembers

    @property
    def false_negative_rate(self) -> float:
        """Share of members not called members."""
        return self.false_negatives / self.members

    @classmethod
    def from_scores(cls, scores: MembershipScores, threshold: float) -> "ErrorCounts":
        """Count the errors of "member if at least as member-like as ``threshold``", in the scores'
        own unit.

        >>> ErrorCounts.from_scores(MembershipScores([2.0, 1.0], [0.0, 1.0]), 1.0)
        ErrorCounts(false_positives=1, nonmembers=2, false_negatives=0, members=2)
        """
        check_finite("threshold", np.array([threshold], dtype=float))
        oriented = scores.oriented()
        cut = threshold if scores.higher_means_member else -threshold
        return cls(
            int((oriented.nonmember >= cut).sum()),
            oriented.nonmember.size,
            int((oriented.member < cut).sum()),
            oriented.member.size,
        )


def upper_rates(
    false_positives: ArrayLike,
    nonmembers: ArrayLike,
    false_negatives: ArrayLike,
    members: ArrayLike,
    confidence: float,
) -> tuple[Any, Any]:
    """Upper bounds on the false-positive and the false-negative rate, in [0, 1], which hold
    together at ``confidence``; counts of any shape, everything broadcasts.

    Raises:
        ValueError: ``confidence`` outside (0, 1).
    """
    level = (1 - check_confidence(confidence)) / 2
    return upper_rate(false_positives, nonmembers, level), upper_rate(
        false_negatives, members, level
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class ManyRunsResult(AuditResult):
    """A number from the errors of one test, whose threshold is None for counts, over many training
    runs.
    """

    counts: ErrorCounts
    threshold: float | None
    delta: float
    confidence: float
    total: int | None = None
    guesses: int | None = None
    correct: int | None = None
    ceiling: float | None = None


@dataclass(frozen=True)
class FixedTest:
    """One test whose errors were counted, and how it was settled before they were.

    Attributes:
        counts: Errors of the test.
        threshold: Scores at or above it were called members, in the scores' own unit; None for a
            test of which the counts alone are known.
        origin: How the test was settled.
        adjacency: What the runs with and without the target record differ in.
        refusals: Doubts about the direction of the scores.
    """

    counts: ErrorCounts
    threshold: float | None
    origin: TestOrigin
    adjacency: RunAdjacency
    refusals: tuple[Refusal, ...] = ()

    def facts(self, seed: int, method: str = "") -> dict[str, Any]:
        """Fields of a `ManyRunsResult` that the test settles, by name: refusals, adjacency,
        assumptions, counts and threshold.

        Args:
            seed: Seed of the random half that chose the threshold, which the assumptions name.
            method: What the method of the bound assumes beside; "" for nothing.
        """
        replaced = self.adjacency == "replace"
        return {
            "refusals": self.refusals,
            "adjacency": self.adjacency,
            "assumptions": assumptions(self.origin, seed, replaced=replaced, method=method),
            "counts": self.counts,
            "threshold": self.threshold,
        }

    def remark_on_zero(self, epsilon: float, ceiling: float) -> str:
        """What follows the claim of a bound of 0, with a space before it; "" for a larger one. Both
        the bound and its ``ceiling``, with which no error was made, are in nats.
        """
        if epsilon > 0:
            return ""
        return f" {could_refute(self.counts.members, self.counts.nonmembers, ceiling)}"


def fixed_test(
    observed: MembershipScores | ErrorCounts,
    threshold: float | None,
    seed: int,
    power: Callable[[Any, Any, Any, Any], Any],
    adjacency: RunAdjacency,
) -> FixedTest:
    """The test of an audit from many runs, and its errors.

    Args:
        observed: One score per training run, or the error counts of a test that was fixed before.
        threshold: A threshold fixed in advance, in the scores' unit; None lets a random half of the
            scores choose the one of largest ``power``, and the other half count its errors.
        seed: Seed of that half.
        power: Bound from false positives, non-members, false negatives and members; broadcasts.
        adjacency: What the runs with and without the target record differ in.

    Raises:
        ValueError: A threshold beside counts, an unknown adjacency, or too few scores to split.
    """
    check_choice("adjacency", adjacency, RunAdjacency)
    if isinstance(observed, ErrorCounts):
        if threshold is not None:
            raise ValueError(f"threshold: allowed with scores only, got {threshold!r} with counts")
        return FixedTest(observed, None, "counted", adjacency)
    refusals = directions.refusals(reversed_direction(check_scores("observed", observed)))
    origin: TestOrigin = "threshold"
    counted_on = observed
    if threshold is None:
        origin = "split"
        selection, counted_on = observed.split(seed=seed)
        threshold = _strongest_threshold(selection, power)
    counts = ErrorCounts.from_scores(counted_on, float(threshold))
    return FixedTest(counts, float(threshold), origin, adjacency, refusals)


def _strongest_threshold(
    scores: MembershipScores, power: Callable[[Any, Any, Any, Any], Any]
) -> float:
    """The threshold of largest ``power`` on these scores, in their own unit; ``power`` is a bound
    from false positives, non-members, false negatives and members, and broadcasts.
    """
    # The first point of the curve calls nobody a member.
    false_positive, true_positive, thresholds = (values[1:] for values in scores.roc())
    nonmembers, members = scores.nonmember.size, scores.member.size
    false_positives = np.rint(false_positive * nonmembers)
    false_negatives = np.rint((1 - true_positive) * members)
    strongest = int(np.argmax(power(false_positives, nonmembers, false_negatives, members)))
    oriented = float(thresholds[strongest])
    return oriented if scores.higher_means_member else -oriented


@dataclass(frozen=True, kw_only=True, eq=False)
class ClopperPearsonResult(ManyRunsResult):
    """Lower bound, nats, from upper ends of intervals on both error rates, which hold together."""

    epsilon: float
    false_positive_upper: float
    false_negative_upper: float

    @property
    def headline(self) -> str:
        return clopper_pearson_headline(self.epsilon, self.delta, self.confidence)


def epsilon_from_rates(
    false_positive: ArrayLike, false_negative: ArrayLike, delta: ArrayLike = 0.0
) -> Any:
    """Smallest epsilon that allows error rates in [0, 1] (Kairouz, Oh and Viswanath 2015).

    Returns:
        Nats, 0 or more, infinite where a rate of 0 allows none; in the shape to which the rates and
            ``delta``, in [0, 1], broadcast.
    """
    x, y, d = np.broadcast_arrays(
        *(np.asarray(values, float) for values in (false_positive, false_negative, delta))
    )
    return np.maximum(0.0, np.maximum(_log_ratio(1 - d - y, x), _log_ratio(1 - d - x, y)))[()]


def _log_ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """Log of the ratio; -inf without numerator, also over nothing: such a test refutes nothing."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(numerator > 0, np.log(numerator) - np.log(denominator), -np.inf)


def clopper_pearson_epsilon(
    false_positives: ArrayLike,
    nonmembers: ArrayLike,
    false_negatives: ArrayLike,
    members: ArrayLike,
    *,
    delta: float = 0.0,
    confidence: float = 0.95,
) -> Any:
    """Lower bound on epsilon from error counts of one fixed test; everything broadcasts.

    Guarantee:
        Exceeds the epsilon of (epsilon, delta)-DP training with probability at most
        ``1 - confidence``: each rate has a one-sided interval at half the error, and both
        directions of the definition use the same two ends.

    Args:
        false_positives: Non-members called members, of ``nonmembers``.
        false_negatives: Members called non-members, of ``members``.
        delta: In [0, 1).
        confidence: In (0, 1).

    Returns:
        Nats, 0 or more.

    Raises:
        ValueError: ``confidence`` or ``delta`` out of range.

    >>> round(float(clopper_pearson_epsilon(0, 1000, 0, 1000)), 6)
    5.600588
    """
    x, y = upper_rates(false_positives, nonmembers, false_negatives, members, confidence)
    epsilon = epsilon_from_rates(x, y, check_delta(delta))
    return np.maximum(0.0, epsilon - NUMERICAL_MARGIN)[()]


def audit_clopper_pearson(
    observed: MembershipScores | ErrorCounts,
    *,
    threshold: float | None = None,
    delta: float = 0.0,
    confidence: float = 0.95,
    adjacency: RunAdjacency = "add/remove",
    seed: int = 0,
) -> ClopperPearsonResult:
    """Lower-bound epsilon from Clopper-Pearson intervals on both error rates.

    Guarantee:
        Exceeds epsilon with probability at most ``1 - confidence``.

    Args:
        observed: One score per training run, or the error counts of a fixed test.
        threshold: Threshold fixed in advance, in the scores' unit; None selects it on a random
            half.
        delta: Of (epsilon, delta)-DP, in [0, 1).
        confidence: In (0, 1).
        seed: Of that half.
        adjacency: "add/remove" if the other runs were trained without the target record, "replace"
            if they were trained with another one in its place: epsilon is then that of a
            replacement, up to twice the epsilon for adding or removing one record.

    Raises:
        ValueError: A number out of range, or too few scores to split.

    Source:
        Jagielski, Ullman and Oprea (2020), Theorem 2, with both directions of the definition.

    >>> audit_clopper_pearson(ErrorCounts(5, 1000, 500, 1000)).headline
    'ε ≥ 3.696 (δ = 0, confidence 0.95)'
    """
    delta, confidence = check_delta(delta), check_confidence(confidence)
    bound = partial(clopper_pearson_epsilon, delta=delta, confidence=confidence)
    test = fixed_test(observed, threshold, seed, bound, adjacency)
    counts = test.counts
    x, y = upper_rates(*counts.numbers, confidence)
    epsilon = float(bound(*counts.numbers))
    ceiling = float(bound(0, counts.nonmembers, 0, counts.members))
    claim = clopper_pearson_claim(epsilon, delta, confidence, adjacency)
    return ClopperPearsonResult(
        claim=claim + test.remark_on_zero(epsilon, ceiling),
        epsilon=epsilon,
        false_positive_upper=float(x),
        false_negative_upper=float(y),
        delta=delta,
        confidence=confidence,
        **test.facts(seed),
    )
