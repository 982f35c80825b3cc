"""Bayesian estimation of epsilon: the joint posterior of both error rates, pushed to epsilon."""

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import betainc, betaincc, betaincinv

from paperlib.bounds.many_runs.clopper_pearson import (
    ErrorCounts,
    ManyRunsResult,
    RunAdjacency,
    clopper_pearson_epsilon,
    fixed_test,
)
from paperlib.bounds.one_run.tails import last_refuted
from paperlib.core.checks import FloatArray, check_confidence, check_delta, check_nonnegative
from paperlib.core.scores import MembershipScores
from paperlib.words.many_runs import JEFFREYS_PRIOR, bayesian_claim, bayesian_headline

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)  # of each piece of the integral
_TAILS = np.concatenate([10.0 ** np.arange(-16, -1), np.linspace(0.1, 0.9, 17)])
# Quantiles of both posteriors at which the integral is cut, close together at the tails.
_BREAKS = np.concatenate([_TAILS, 1 - 10.0 ** np.arange(-2, -13, -1.0)])


@dataclass(frozen=True, kw_only=True, eq=False)
class BayesianResult(ManyRunsResult):
    """Posterior of epsilon, nats.

    Attributes:
        epsilon: It is above this with posterior probability ``confidence``.
        interval: Equal-tailed interval of posterior probability ``confidence``.
    """

    epsilon: float
    interval: tuple[float, float]
    median: float

    @property
    def headline(self) -> str:
        return bayesian_headline(self.epsilon, self.interval, self.delta, self.confidence)


def posterior_cdf(epsilon: float, counts: ErrorCounts, *, delta: float = 0.0) -> float:
    """Posterior probability, to 1e-10, that the error rates are allowed at ``epsilon``; Jeffreys'
    prior.

    Args:
        epsilon: Of (epsilon, delta)-DP, nats, 0 or more.
        counts: Errors of one fixed test, one training run for each score.
        delta: In [0, 1).

    Raises:
        ValueError: ``epsilon`` below 0 or not finite, or delta outside [0, 1).
    """
    # Allowed: ``fpr + e^eps fnr >= 1 - delta`` and ``e^eps fpr + fnr >= 1 - delta``
    # (Zanella-Beguelin et al. 2023, section 4). Its mass is an integral over the false-positive
    # rate, split where either factor bends.
    ratio = np.exp(check_nonnegative("epsilon", epsilon))
    whole = 1.0 - check_delta(delta)
    # The posteriors of both rates are Beta(a, b): 0 of false positives, 1 of false negatives.
    a0, b0 = 0.5 + counts.false_positives, 0.5 + counts.nonmembers - counts.false_positives
    a1, b1 = 0.5 + counts.false_negatives, 0.5 + counts.members - counts.false_negatives
    quantiles = betaincinv(a1, b1, _BREAKS)
    # The rates at which the least false-negative rate, below, passes a quantile: its inverse.
    bends = np.maximum(whole - ratio * quantiles, (whole - quantiles) / ratio)
    # And those at which the least rate itself has a kink, and reaches 0.
    bends = np.append(bends, [whole / (1 + ratio), whole])
    inside = np.clip(np.concatenate([betaincinv(a0, b0, _BREAKS), bends]), 0.0, 1.0)
    # Integrate over u = posterior CDF of the false-positive rate: no endpoint singularity.
    edges = np.unique(np.concatenate([[0.0], betainc(a0, b0, inside), [1.0]]))
    half = np.diff(edges)[:, None] / 2
    u = edges[:-1, None] + half * (1 + _NODES)
    fpr = betaincinv(a0, b0, u)
    least: FloatArray = np.maximum((whole - fpr) / ratio, whole - ratio * fpr)
    mass = betaincc(a1, b1, np.clip(least, 0.0, 1.0))
    return float(np.clip((half * _WEIGHTS * mass).sum(), 0.0, 1.0))


def posterior_quantile(probability: float, counts: ErrorCounts, *, delta: float = 0.0) -> float:
    """Posterior quantile of epsilon, nats, at least 0, rounded down by less than 1e-9.

    Args:
        probability: In (0, 1).
        counts: Errors of one fixed test, one training run for each score.
        delta: In [0, 1).

    Raises:
        ValueError: A delta outside [0, 1).
    """

    def below(epsilon: float) -> bool:
        """Whether the quantile lies above this epsilon, nats."""
        return posterior_cdf(epsilon, counts, delta=delta) < probability

    if not below(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while below(high):
        low, high = high, 2 * high
    return float(last_refuted(below, low, high, 1e-9))


def audit_bayesian(
    observed: MembershipScores | ErrorCounts,
    *,
    threshold: float | None = None,
    delta: float = 0.0,
    confidence: float = 0.95,
    adjacency: RunAdjacency = "add/remove",
    seed: int = 0,
) -> BayesianResult:
    """Posterior of epsilon from the error counts of one test.

    Guarantee:
        None over repetitions: the probability is Bayesian, under Jeffreys' prior. For randomized
        response at epsilon 1 and 2 (20 runs each) epsilon is too high in 13 % and 20 % of
        repetitions at a nominal 5 %.

    Args:
        observed: One score per training run, or the error counts of a fixed test.
        threshold: Threshold fixed in advance, in the scores' unit; None selects it on a random
            half, drawn by ``seed``.
        delta: Of (epsilon, delta)-DP, in [0, 1).
        confidence: Posterior probability, in (0, 1).
        adjacency: "add/remove" if the other runs were trained without the target record, "replace"
            if they were trained with another one in its place.

    Raises:
        ValueError: A number out of range, or too few scores to split.

    Source:
        Zanella-Beguelin et al. (2023), "Bayesian estimation of differential privacy".

    >>> audit_bayesian(ErrorCounts(5, 100, 50, 100)).headline
    'ε ≥ 1.625 with posterior probability 0.95 (interval 1.516 to 3.266; δ = 0)'
    """
    delta, confidence = check_delta(delta), check_confidence(confidence)
    bound = partial(clopper_pearson_epsilon, delta=delta, confidence=confidence)
    test = fixed_test(observed, threshold, seed, bound, adjacency)
    counts = test.counts
    tail = (1 - confidence) / 2
    epsilon, low, median, high = (
        posterior_quantile(p, counts, delta=delta) for p in (2 * tail, tail, 0.5, 1 - tail)
    )
    claim = bayesian_claim(epsilon, delta, confidence, adjacency)
    if epsilon <= 0:
        flawless = ErrorCounts(0, counts.nonmembers, 0, counts.members)
        ceiling = posterior_quantile(2 * tail, flawless, delta=delta)
        claim += test.remark_on_zero(epsilon, ceiling)
    return BayesianResult(
        claim=claim,
        epsilon=epsilon,
        interval=(low, high),
        median=median,
        delta=delta,
        confidence=confidence,
        **test.facts(seed, JEFFREYS_PRIOR),
    )
