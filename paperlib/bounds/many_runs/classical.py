"""Multi-run baselines: epsilon from the error rates of one test over many trainings."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, ndtri

from paperlib.bounds.many_runs.error_rates import ErrorCounts, fixed_test, upper_rate
from paperlib.bounds.one_run.tails import NUMERICAL_MARGIN
from paperlib.core import (
    AuditResult,
    FloatArray,
    MembershipScores,
    check_confidence,
    check_delta,
    round_down,
)

INDEPENDENT_RUNS = (
    "each score comes from its own training run, with the target record for members and without it for "
    "non-members; scores of many records under one model are not independent runs"
)


@dataclass(frozen=True, kw_only=True, eq=False)
class ClopperPearsonResult(AuditResult):
    """Lower bound from confidence intervals on both error rates.

    Attributes:
        epsilon: Lower bound, nats.
        false_positive_upper: Upper end for the false-positive rate.
        false_negative_upper: Upper end for the false-negative rate; both ends hold together.
        counts: Errors of the test.
        threshold: In the scores' own unit; None for counts.
        delta: Of (epsilon, delta)-DP.
        confidence: Of the bound.
    """

    epsilon: float
    false_positive_upper: float
    false_negative_upper: float
    counts: ErrorCounts
    threshold: float | None
    delta: float
    confidence: float

    @property
    def headline(self) -> str:
        return f"ε ≥ {round_down(self.epsilon):.3f} (δ = {self.delta:g}, confidence {self.confidence:g})"


@dataclass(frozen=True, kw_only=True, eq=False)
class GaussianDpResult(AuditResult):
    """Lower bound on mu of mu-Gaussian DP and the epsilon it means.

    Attributes:
        epsilon: Epsilon of mu-GDP at ``delta``, nats.
        mu: Lower bound on mu, at least 0.
        false_positive_upper: Upper end for the false-positive rate.
        false_negative_upper: Upper end for the false-negative rate; both ends hold together.
        counts: Errors of the test.
        threshold: In the scores' own unit; None for counts.
        delta: In (0, 1).
        confidence: Of the bound on mu.
    """

    epsilon: float
    mu: float
    false_positive_upper: float
    false_negative_upper: float
    counts: ErrorCounts
    threshold: float | None
    delta: float
    confidence: float

    @property
    def headline(self) -> str:
        return (
            f"mu ≥ {round_down(self.mu):.3f}, epsilon of that mu {round_down(self.epsilon):.3f} "
            f"(δ = {self.delta:g}, confidence {self.confidence:g})"
        )


def epsilon_from_rates(false_positive: ArrayLike, false_negative: ArrayLike, delta: ArrayLike = 0.0) -> Any:
    """Smallest epsilon that (epsilon, delta)-DP needs to allow these error rates.

    Args:
        false_positive: Rates in [0, 1]; broadcasts.
        false_negative: Rates in [0, 1]; broadcasts.
        delta: In [0, 1); broadcasts.

    Returns:
        ``max(0, log((1-delta-fnr)/fpr), log((1-delta-fpr)/fnr))``, nats, broadcast shape.

    Source:
        Kairouz, Oh and Viswanath (2015), Theorem 2.1.

    >>> round(float(epsilon_from_rates(0.1, 0.5)), 6)
    1.609438
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

    >>> round(float(clopper_pearson_epsilon(0, 1000, 0, 1000)), 6)
    5.600588
    """
    level = (1 - check_confidence(confidence)) / 2
    x, y = upper_rate(false_positives, nonmembers, level), upper_rate(false_negatives, members, level)
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
        threshold: Fixed in advance, in the scores' unit; None selects it on a random half.
        delta: In [0, 1).
        confidence: In (0, 1).
        seed: Of the split.

    Raises:
        ValueError: A number out of range, or too few scores to split.

    Source:
        Jagielski, Ullman and Oprea (2020), Theorem 2, with both directions of the definition.

    >>> audit_clopper_pearson(ErrorCounts(5, 1000, 500, 1000)).headline
    'ε ≥ 3.696 (δ = 0, confidence 0.95)'
    """
    delta, confidence = check_delta(delta), check_confidence(confidence)

    def bound(fp: Any, n0: Any, fn: Any, n1: Any) -> Any:
        return clopper_pearson_epsilon(fp, n0, fn, n1, delta=delta, confidence=confidence)

    test = fixed_test(observed, threshold, seed, bound)
    x, y = _upper_rates(test.counts, confidence)
    epsilon = float(bound(*_numbers(test.counts)))
    return ClopperPearsonResult(
        claim=(
            f"Lower bound on the mechanism: with confidence {confidence:g}, training is not "
            f"(epsilon, {delta:g})-DP for any epsilon below {round_down(epsilon):.3f}, under the adjacency "
            "of the runs with and without the target record (add/remove unless it was replaced)."
        ),
        assumptions=(INDEPENDENT_RUNS, test.chosen),
        epsilon=epsilon,
        false_positive_upper=x,
        false_negative_upper=y,
        counts=test.counts,
        threshold=test.threshold,
        delta=delta,
        confidence=confidence,
    )


def gaussian_dp_mu(
    false_positives: ArrayLike,
    nonmembers: ArrayLike,
    false_negatives: ArrayLike,
    members: ArrayLike,
    *,
    confidence: float = 0.95,
) -> Any:
    """Lower bound on mu of mu-Gaussian DP from error counts; everything broadcasts.

    Guarantee:
        Exceeds mu of a mu-GDP training with probability at most ``1 - confidence``. Below chance
        it is 0: never the absolute value.

    >>> round(float(gaussian_dp_mu(500, 1000, 500, 1000)), 6)
    0.0
    """
    level = (1 - check_confidence(confidence)) / 2
    x, y = upper_rate(false_positives, nonmembers, level), upper_rate(false_negatives, members, level)
    mu: FloatArray = np.asarray(-ndtri(x) - ndtri(y), float)
    return np.maximum(0.0, mu - NUMERICAL_MARGIN)[()]


def gaussian_dp_epsilon(mu: ArrayLike, delta: ArrayLike) -> Any:
    """Epsilon of mu-Gaussian DP at delta.

    Args:
        mu: At least 0, finite; broadcasts.
        delta: In (0, 1); broadcasts.

    Returns:
        Nats, rounded down by less than 1e-9, broadcast shape.

    Source:
        Dong, Roth and Su (2019), Corollary 2.13.

    >>> round(float(gaussian_dp_epsilon(1.0, 1e-5)), 4)
    4.3772
    """
    m, d = np.broadcast_arrays(np.asarray(mu, float), np.asarray(delta, float))
    low = np.zeros(m.shape)
    high = m**2 / 2 + m * np.sqrt(2 * np.log(1 / d)) + 1e-9
    some = (m > 0) & (_log_gaussian_delta(low, m) > np.log(d))
    for _ in range(60):
        middle = (low + high) / 2
        enough = _log_gaussian_delta(middle, m) >= np.log(d)
        low, high = np.where(enough, middle, low), np.where(enough, high, middle)
    return np.where(some, low, 0.0)[()]


def _log_gaussian_delta(epsilon: FloatArray, mu: FloatArray) -> FloatArray:
    m = np.where(mu > 0, mu, 1.0)  # the caller returns 0 there
    first, second = log_ndtr(-epsilon / m + m / 2), epsilon + log_ndtr(-epsilon / m - m / 2)
    with np.errstate(divide="ignore"):
        return first + np.log(-np.expm1(np.minimum(second - first, 0.0)))


def audit_gaussian_dp(
    observed: MembershipScores | ErrorCounts,
    *,
    delta: float,
    threshold: float | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> GaussianDpResult:
    """Lower-bound mu of mu-Gaussian DP and convert it to epsilon at delta.

    Guarantee:
        If training is mu-GDP, the reported mu exceeds it with probability at most
        ``1 - confidence``. The epsilon is a lower bound only if the mechanism's trade-off curve is
        the Gaussian one (full-batch Gaussian noise; DP-SGD with many steps nearly).

    Args:
        observed: One score per training run, or the error counts of a fixed test.
        delta: In (0, 1); at 0 every mu above 0 means an infinite epsilon.
        threshold: Fixed in advance, in the scores' unit; None selects it on a random half.
        confidence: In (0, 1).
        seed: Of the split.

    Raises:
        ValueError: A number out of range, delta = 0, or too few scores to split.

    Source:
        Nasr et al. (2023), "Tight auditing of differentially private machine learning", section 4.

    >>> audit_gaussian_dp(ErrorCounts(159, 1000, 500, 1000), delta=1e-5).headline
    'mu ≥ 0.824, epsilon of that mu 3.505 (δ = 1e-05, confidence 0.95)'
    """
    delta, confidence = check_delta(delta), check_confidence(confidence)
    if delta == 0:
        raise ValueError(
            "delta: expected a number in (0, 1), got 0; at delta = 0 every mu above 0 means an infinite "
            "epsilon"
        )

    def bound(fp: Any, n0: Any, fn: Any, n1: Any) -> Any:
        return gaussian_dp_mu(fp, n0, fn, n1, confidence=confidence)

    test = fixed_test(observed, threshold, seed, bound)
    x, y = _upper_rates(test.counts, confidence)
    mu = float(bound(*_numbers(test.counts)))
    epsilon = float(gaussian_dp_epsilon(mu, delta))
    return GaussianDpResult(
        claim=(
            f"Lower bound on the mechanism: with confidence {confidence:g}, training is not mu-GDP for any "
            f"mu below {round_down(mu):.3f}; if its trade-off curve is Gaussian, it is not "
            f"(epsilon, {delta:g})-DP for any epsilon below {round_down(epsilon):.3f}, under the adjacency "
            "of the runs with and without the target record (add/remove unless it was replaced)."
        ),
        assumptions=(
            INDEPENDENT_RUNS,
            test.chosen,
            "the mechanism's trade-off curve is that of mu-Gaussian DP",
        ),
        epsilon=epsilon,
        mu=mu,
        false_positive_upper=x,
        false_negative_upper=y,
        counts=test.counts,
        threshold=test.threshold,
        delta=delta,
        confidence=confidence,
    )


def _numbers(counts: ErrorCounts) -> tuple[int, int, int, int]:
    return counts.false_positives, counts.nonmembers, counts.false_negatives, counts.members


def _upper_rates(counts: ErrorCounts, confidence: float) -> tuple[float, float]:
    level = (1 - confidence) / 2
    return (
        float(upper_rate(counts.false_positives, counts.nonmembers, level)),
        float(upper_rate(counts.false_negatives, counts.members, level)),
    )
