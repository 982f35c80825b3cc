"""Mu of Gaussian DP, and its epsilon, from the error rates of one test over many trainings."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, ndtri

from paperlib.bounds.many_runs.clopper_pearson import (
    ErrorCounts,
    ManyRunsResult,
    RunAdjacency,
    fixed_test,
    upper_rates,
)
from paperlib.bounds.one_run.tails import NUMERICAL_MARGIN
from paperlib.core import FloatArray, MembershipScores
from paperlib.core.checks import check_confidence, check_delta
from paperlib.words.many_runs import GAUSSIAN_CURVE, gaussian_dp_claim, gaussian_dp_headline


@dataclass(frozen=True, kw_only=True, eq=False)
class GaussianDpResult(ManyRunsResult):
    """Lower bound on mu of mu-Gaussian DP and its epsilon; other fields as in
    `ClopperPearsonResult`.
    """

    epsilon: float
    mu: float
    false_positive_upper: float
    false_negative_upper: float

    @property
    def headline(self) -> str:
        return gaussian_dp_headline(self.mu, self.epsilon, self.delta, self.confidence)


def gaussian_dp_mu(
    false_positives: ArrayLike,
    nonmembers: ArrayLike,
    false_negatives: ArrayLike,
    members: ArrayLike,
    *,
    confidence: float = 0.95,
) -> Any:
    """Lower bound on mu of mu-Gaussian DP from error counts, 0 below chance; everything
    broadcasts.

    Guarantee:
        Exceeds the mu of a mu-GDP training with probability at most ``1 - confidence``.

    Args:
        false_positives: Non-members called members by one fixed test, of ``nonmembers``.
        false_negatives: Members called non-members, of ``members``.
        confidence: In (0, 1).

    Raises:
        ValueError: ``confidence`` outside (0, 1).

    Source:
        Nasr et al. (2023), "Tight auditing of differentially private machine learning", section 4.
    """
    x, y = upper_rates(false_positives, nonmembers, false_negatives, members, confidence)
    mu: FloatArray = np.asarray(-ndtri(x) - ndtri(y), float)
    return np.maximum(0.0, mu - NUMERICAL_MARGIN)[()]


def gaussian_dp_epsilon(mu: ArrayLike, delta: ArrayLike) -> Any:
    """Epsilon of mu-Gaussian DP at delta, nats, rounded down by less than 1e-9; broadcasts.

    Args:
        mu: At least 0, of any shape.
        delta: In (0, 1), of a shape that broadcasts with it. Neither is checked.

    Source:
        Dong, Roth and Su (2019), Corollary 2.13.

    >>> round(float(gaussian_dp_epsilon(1.0, 1e-5)), 4)
    4.3772
    """
    m, d = np.broadcast_arrays(np.asarray(mu, float), np.asarray(delta, float))
    low = np.zeros(m.shape)
    high = m**2 / 2 + m * np.sqrt(2 * np.log(1 / d)) + 1e-9
    is_positive = (m > 0) & (_log_gaussian_delta(low, m) > np.log(d))
    for _ in range(60):
        middle = (low + high) / 2
        enough = _log_gaussian_delta(middle, m) >= np.log(d)
        low, high = np.where(enough, middle, low), np.where(enough, high, middle)
    return np.where(is_positive, low, 0.0)[()]


def _log_gaussian_delta(epsilon: FloatArray, mu: FloatArray) -> FloatArray:
    """Log of the delta at which mu-Gaussian DP has this epsilon, elementwise."""
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
    adjacency: RunAdjacency = "add/remove",
    seed: int = 0,
) -> GaussianDpResult:
    """Lower-bound mu of mu-Gaussian DP and convert it to epsilon at delta.

    Guarantee:
        If training is mu-GDP, the reported mu exceeds it with probability at most
        ``1 - confidence``. The epsilon is a lower bound only if the trade-off curve is Gaussian
        (DP-SGD with many steps nearly).

    Args:
        observed: One score per training run, or the error counts of a fixed test.
        delta: Delta of (epsilon, delta)-DP, in (0, 1); at 0 every mu above 0 means an infinite
            epsilon.
        threshold: Threshold fixed in advance, in the scores' unit; None selects it on a random
            half, drawn by ``seed``.
        confidence: In (0, 1).
        adjacency: "add/remove" if the other runs were trained without the target record, "replace"
            if they were trained with another one in its place.

    Raises:
        ValueError: A number out of range, or too few scores to split.

    Source:
        Nasr et al. (2023), "Tight auditing of differentially private machine learning", section 4.

    >>> audit_gaussian_dp(ErrorCounts(159, 1000, 500, 1000), delta=1e-5).headline
    'mu ≥ 0.824, epsilon of that mu 3.505 (δ = 1e-05, confidence 0.95)'
    """
    delta, confidence = check_delta(delta), check_confidence(confidence)
    if delta == 0:
        raise ValueError(
            "delta: expected a number in (0, 1), got 0; at delta = 0 every mu above 0 means an "
            "infinite epsilon"
        )
    bound = partial(gaussian_dp_mu, confidence=confidence)
    test = fixed_test(observed, threshold, seed, bound, adjacency)
    counts = test.counts
    x, y = upper_rates(*counts.numbers, confidence)
    mu = float(bound(*counts.numbers))
    ceiling = float(gaussian_dp_epsilon(bound(0, counts.nonmembers, 0, counts.members), delta))
    epsilon = float(gaussian_dp_epsilon(mu, delta))
    claim = gaussian_dp_claim(mu, epsilon, delta, confidence, adjacency)
    return GaussianDpResult(
        claim=claim + test.remark_on_zero(epsilon, ceiling),
        epsilon=epsilon,
        mu=mu,
        false_positive_upper=float(x),
        false_negative_upper=float(y),
        delta=delta,
        confidence=confidence,
        **test.facts(seed, GAUSSIAN_CURVE),
    )
