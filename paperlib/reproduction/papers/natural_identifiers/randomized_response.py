"""Natural identifiers: the randomized-response example of the paper's Appendix G (Figure 4).

Nothing here is sampled except `simulated_scores`: hits are binomial, so means and error rates are
summed over all outcomes.
"""

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import binom

from paperlib.bounds import audit_ranks, rank_epsilon
from paperlib.bounds.ranks.p_values import rank_success_probability
from paperlib.core import FloatArray
from paperlib.core.checks import check_choice
from paperlib.core.options import DeltaTerm, RankBound

MECHANISMS = ("randomized response", "subset selection")
DELTA_TERMS: tuple[DeltaTerm, ...] = ("published", "sharp")


@dataclass(frozen=True)
class RandomizedResponseConfig:
    """Settings of Figure 4."""

    epsilons: tuple[float, ...] = (1.0, 5.0)  #: true epsilons of the mechanism, nats
    #: Pairs (cardinality c, rank threshold r), one curve each
    curves: tuple[tuple[int, int], ...] = ((2, 1), (8, 1), (64, 1), (8, 2), (64, 8))
    largest_sets: int = 100_000  #: right end of the axis; the left end is 10
    points: int = 17  #: points on the axis, log-spaced
    confidence: float = 0.99  #: confidence level of the bounds, in (0, 1)


@dataclass(frozen=True)
class DeltaConfig:
    """Settings of the delta curve: one audit of randomized response, judged at different deltas."""

    epsilon: float = 5.0  #: true epsilon of the mechanism, nats
    cardinalities: tuple[int, ...] = (2, 8, 32, 128)  #: set sizes c
    sets: int = 1_000  #: number of candidate sets m
    deltas: tuple[float, ...] = (1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)  #: values of delta
    confidence: float = 0.99  #: confidence level of the bounds, in (0, 1)


def success_rate(mechanism: str, cardinality: int, top: int, epsilon: float) -> float:
    """Chance that the best auditor finds the true value among its first ``top`` guesses.

    Args:
        mechanism: One of `MECHANISMS`.
        cardinality: Number of values that can be the true one.
        top: Number of guesses, below the cardinality.
        epsilon: Of the mechanism, nats.

    Raises:
        ValueError: An unknown mechanism.
    """
    check_choice("mechanism", mechanism, MECHANISMS)
    if mechanism == "subset selection":
        # It tells ``top`` values, with the true one among them as often as epsilon-DP allows.
        return float(rank_success_probability(cardinality, epsilon, top=top))
    # Randomized response tells one value; the other places are guesses among the rest.
    first = float(rank_success_probability(cardinality, epsilon))
    return first + (1 - first) * (top - 1) / (cardinality - 1)


def bounds_by_sets(config: RandomizedResponseConfig) -> pd.DataFrame:
    """Bound against the number of sets: Figure 4, and the same with the tight bound.

    Returns:
        A row for each mechanism, bound, epsilon, cardinality, top and number of sets, with the
            columns of `_outcomes`; bounds in nats.
    """
    sizes = np.geomspace(10, config.largest_sets, config.points).round().astype(int)
    grid = np.unique(sizes).tolist()
    bounds: tuple[RankBound, ...] = ("paper", "tight")
    rows: list[dict[str, Any]] = []
    curves = itertools.product(MECHANISMS, config.epsilons, config.curves, bounds)
    for mechanism, epsilon, (c, r), bound in curves:
        for sets in grid:
            setting = {
                "mechanism": mechanism,
                "bound": bound,
                "epsilon": epsilon,
                "cardinality": c,
                "top": r,
                "sets": sets,
            }
            outcomes = _outcomes(mechanism, bound, epsilon, c, r, sets, config.confidence)
            rows.append(setting | outcomes)
    return pd.DataFrame(rows)


def _outcomes(
    mechanism: str,
    bound: RankBound,
    epsilon: float,
    cardinality: int,
    top: int,
    sets: int,
    confidence: float,
) -> dict[str, float]:
    """Mean, 5 % and 95 % quantiles of the bound, nats, and the probability that it exceeds epsilon,
    over all numbers of hits but those in tails of 1e-12.

    Args:
        mechanism: One of `MECHANISMS`.
        bound: "paper" (Theorem 2) or "tight".
        epsilon: Of the mechanism, nats.
        cardinality: Candidates of a set.
        top: Ranks, from 1 on, that count as a hit.
        sets: Number of sets that are judged.
        confidence: Of the bound, in (0, 1).
    """
    chance = success_rate(mechanism, cardinality, top, epsilon)
    low = int(binom.ppf(1e-12, sets, chance))
    high = int(binom.isf(1e-12, sets, chance))
    hits = np.arange(low, high + 1)
    weight = binom.pmf(hits, sets, chance)
    bounds = rank_epsilon(hits, sets, cardinality, top=top, confidence=confidence, bound=bound)
    reached = np.cumsum(weight)
    return {
        "mean": float((weight * bounds).sum() / weight.sum()),
        "low": float(bounds[np.searchsorted(reached, 0.05)]),
        "high": float(bounds[np.searchsorted(reached, 0.95)]),
        "error_rate": float(weight[bounds > epsilon].sum()),
    }


def limits(config: RandomizedResponseConfig) -> pd.DataFrame:
    """What each bound shows with infinitely many sets, nats: the true epsilon where it is tight.

    A row for each epsilon, pair of cardinality and top, and mechanism, with its success rate and
    the columns "paper" and "tight".
    """
    settings = itertools.product(config.epsilons, config.curves, MECHANISMS)
    table = pd.DataFrame(
        [
            (epsilon, c, r, name, success_rate(name, c, r, epsilon))
            for epsilon, (c, r), name in settings
        ],
        columns=["epsilon", "cardinality", "top", "mechanism", "success_rate"],
    )
    rate, c, r = (table[name] for name in ("success_rate", "cardinality", "top"))
    # With infinitely many sets the share of hits is the success rate. Each bound is then the
    # epsilon at which the rate that it allows, of e^epsilon = x, is this one: for Theorem 2
    # r x / (x + c - 1), and r x / (r x + c - r) for the tight one.
    paper = rate * (c - 1) / (r - rate)
    tight = rate * (c - r) / (r * (1 - rate))
    return table.assign(paper=np.log(paper), tight=np.log(tight))


def bounds_by_delta(config: DeltaConfig) -> pd.DataFrame:
    """The bound, nats, of one audit with the expected number of hits, as delta grows: a row for
    each cardinality, delta term and delta.
    """
    rows = [
        (c, term, delta, _expected_hits(config, c), _bound(config, c, term, delta))
        for c, term, delta in itertools.product(config.cardinalities, DELTA_TERMS, config.deltas)
    ]
    return pd.DataFrame(rows, columns=["cardinality", "delta_term", "delta", "hits", "bound"])


def vacuous_deltas(config: DeltaConfig) -> pd.DataFrame:
    """Smallest delta, to three digits, at which an audit with the expected hits shows nothing: a
    row per cardinality, a column per delta term.
    """
    rows = list[dict[str, float]]()
    for c in config.cardinalities:
        row: dict[str, float] = {"cardinality": c}
        for term in DELTA_TERMS:
            # Bisection of the log of delta: at ``low`` the audit shows a leak, at ``high`` none.
            low, high = 1e-12, 0.999
            while high / low > 1.001:
                middle = float(np.sqrt(low * high))
                low, high = (middle, high) if _bound(config, c, term, middle) > 0 else (low, middle)
            row[term] = high
        rows.append(row)
    return pd.DataFrame(rows)


def _bound(config: DeltaConfig, cardinality: int, delta_term: DeltaTerm, delta: float) -> float:
    """The bound in nats where as many identifiers as expected rank first among ``cardinality``
    candidates.
    """
    ranks = np.where(np.arange(config.sets) < _expected_hits(config, cardinality), 1, 2)
    options: dict[str, Any] = {
        "delta": delta,
        "confidence": config.confidence,
        "delta_term": delta_term,
    }
    return audit_ranks(ranks, cardinality, **options).epsilon


def _expected_hits(config: DeltaConfig, cardinality: int) -> int:
    return round(config.sets * success_rate("randomized response", cardinality, 1, config.epsilon))


def simulated_scores(
    cardinality: int, epsilon: float, sets: int, *, seed: int = 0
) -> tuple[FloatArray, FloatArray]:
    """Randomized response at ``epsilon``, nats: scores of the true values, (sets,), 1 where
    released, and of the alternatives, (sets, cardinality - 1).
    """
    rng = np.random.default_rng(seed)
    released = rng.random(sets) < rank_success_probability(cardinality, epsilon)
    alternatives = np.zeros((sets, cardinality - 1))
    lie = rng.integers(0, cardinality - 1, sets)
    alternatives[np.arange(sets), lie] = np.where(released, 0.0, 1.0)
    return released.astype(float), alternatives
