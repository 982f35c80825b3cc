"""Epsilon from Clopper-Pearson intervals on the error rates of one test over many trainings."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from paperlib.bounds.many_runs.error_rates import (
    INDEPENDENT_RUNS,
    ErrorCounts,
    ManyRunsResult,
    could_refute,
    fixed_test,
    upper_rates,
)
from paperlib.bounds.one_run.tails import NUMERICAL_MARGIN
from paperlib.core import FloatArray, MembershipScores, check_confidence, check_delta, round_down


@dataclass(frozen=True, kw_only=True, eq=False)
class ClopperPearsonResult(ManyRunsResult):
    """Lower bound from confidence intervals on both error rates.

    Attributes:
        epsilon: Lower bound, nats.
        false_positive_upper: Upper end for the false-positive rate, in [0, 1].
        false_negative_upper: Upper end for the false-negative rate; both ends hold together.
    """

    epsilon: float
    false_positive_upper: float
    false_negative_upper: float

    @property
    def headline(self) -> str:
        return f"ε ≥ {round_down(self.epsilon):.3f} (δ = {self.delta:g}, confidence {self.confidence:g})"


def epsilon_from_rates(false_positive: ArrayLike, false_negative: ArrayLike, delta: ArrayLike = 0.0) -> Any:
    """Smallest epsilon that allows error rates in [0, 1] (Kairouz, Oh and Viswanath 2015); broadcasts."""
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
    seed: int = 0,
) -> ClopperPearsonResult:
    """Lower-bound epsilon from Clopper-Pearson intervals on both error rates.

    Guarantee:
        Exceeds epsilon with probability at most ``1 - confidence``.

    Args:
        observed: One score per training run, or the error counts of a fixed test.
        threshold: Threshold fixed in advance, in the scores' unit; None selects it on a random half.
        delta: Delta of (epsilon, delta)-DP, in [0, 1).
        confidence: Confidence level of the bound, in (0, 1).
        seed: Seed of the split, 0 or more.

    Raises:
        ValueError: A number out of range, or too few scores to split.

    Source:
        Jagielski, Ullman and Oprea (2020), Theorem 2, with both directions of the definition.

    >>> audit_clopper_pearson(ErrorCounts(5, 1000, 500, 1000)).headline
    'ε ≥ 3.696 (δ = 0, confidence 0.95)'
    """
    delta, confidence = check_delta(delta), check_confidence(confidence)
    bound = partial(clopper_pearson_epsilon, delta=delta, confidence=confidence)
    test = fixed_test(observed, threshold, seed, bound)
    x, y = upper_rates(*test.counts.numbers, confidence)
    epsilon = float(bound(*test.counts.numbers))
    ceiling = float(bound(0, test.counts.nonmembers, 0, test.counts.members))
    return ClopperPearsonResult(
        claim=(
            f"Lower bound on the mechanism: with confidence {confidence:g}, training is not "
            f"(epsilon, {delta:g})-DP for any epsilon below {round_down(epsilon):.3f}, under the adjacency "
            "of the runs with and without the target record (add/remove unless it was replaced)."
            + ("" if epsilon > 0 else could_refute(test.counts, ceiling))
        ),
        warnings=test.warnings,
        assumptions=(INDEPENDENT_RUNS, test.chosen),
        epsilon=epsilon,
        false_positive_upper=float(x),
        false_negative_upper=float(y),
        counts=test.counts,
        threshold=test.threshold,
        delta=delta,
        confidence=confidence,
    )
