"""The mechanisms of the output-set paper: their output distributions, draws, and true epsilon."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats
from scipy.optimize import brentq

from paperlib.bounds.output_sets.level_sets import line_of
from paperlib.core import FloatArray, MembershipScores, check_choice

MECHANISMS = ("laplace", "gaussian")

_SENSITIVITY = 6.0  # r (2 - eta) with |x| <= r = 4 and eta = 1/2, as Proposition C.1 has it
_COMPONENTS = {"laplace": ((-1.0, 2.0), (-2.0, 1.0)), "gaussian": ((-2.0, 1.0), (-1.0, 0.0))}


@dataclass(frozen=True)
class Mixture:
    """An even mixture of frozen scipy distributions."""

    components: tuple[Any, ...]

    def pdf(self, x: FloatArray) -> FloatArray:
        return np.mean([c.pdf(x) for c in self.components], axis=0)

    def draw(self, rng: np.random.Generator, size: int) -> FloatArray:
        counts = rng.multinomial(size, [1 / len(self.components)] * len(self.components))
        parts = (c.rvs(n, random_state=rng) for c, n in zip(self.components, counts, strict=True))
        return np.concatenate([np.atleast_1d(part) for part in parts])


@cache
def mixtures(mechanism: str, scale: float) -> tuple[Mixture, Mixture]:
    """The output distributions p and q of equations 9 to 12, with the given component scale."""
    check_choice("mechanism", mechanism, MECHANISMS)
    family = stats.laplace if mechanism == "laplace" else stats.norm
    p, q = (Mixture(tuple(family(c, scale) for c in centres)) for centres in _COMPONENTS[mechanism])
    return p, q


def draw_scores(rng: np.random.Generator, mechanism: str, scale: float, examples: int) -> MembershipScores:
    """Scores of ``examples`` examples whose membership fair coins decide (Definition B.1)."""
    p, q = mixtures(mechanism, scale)
    members = int(np.clip(rng.binomial(examples, 0.5), 2, examples - 2))
    return MembershipScores(p.draw(rng, members), q.draw(rng, examples - members))


def exact_epsilon(mechanism: str, scale: float, delta: float = 0.0) -> float:
    """Smallest epsilon for which the pair of output distributions is (epsilon, delta)-indistinguishable."""
    if delta == 0:  # the largest log-ratio: under Laplace noise p is q moved by 1
        return 1 / scale if mechanism == "laplace" else math.inf
    p, q = mixtures(mechanism, scale)
    reach = 3 + (60 if mechanism == "laplace" else 14) * scale
    # The hockey-stick divergence in both directions, by quadrature.
    line = line_of(p.pdf, q.pdf, (-reach, reach))
    share = 1 / (1 + np.exp(-line.ratio))
    masses = line.mass * share, line.mass * (1 - share)

    def excess(epsilon: float) -> float:
        stick = [np.maximum(a - math.exp(epsilon) * b, 0).sum() for a, b in (masses, masses[::-1])]
        return float(max(stick)) - delta

    return float(brentq(excess, 0.0, 700.0, xtol=1e-9)) if excess(0.0) > 0 else 0.0


def proposition_epsilon(mechanism: str, scale: float, delta: float = 0.0) -> float:
    """Epsilon by the paper's Proposition C.1, which bounds the size of the update."""
    if mechanism == "laplace":  # of noise b = 2 scale
        return _SENSITIVITY / (2 * scale)
    if delta == 0:
        return math.inf
    # The analytic Gaussian mechanism of deviation sqrt(5) / 2 sigma, sigma = 4 / sqrt(5) scale. The paper
    # prints the complement of the normal distribution function; the cited theorem has the function itself.
    ratio = _SENSITIVITY / (math.sqrt(5) / 2 * 4 / math.sqrt(5) * scale)

    def excess(epsilon: float) -> float:
        second = epsilon + float(stats.norm.logcdf(-ratio / 2 - epsilon / ratio))
        return float(stats.norm.cdf(ratio / 2 - epsilon / ratio)) - math.exp(second) - delta

    return float(brentq(excess, 0.0, 5000.0, xtol=1e-9)) if excess(0.0) > 0 else 0.0


def exact_epsilons(scales: Mapping[str, Sequence[float]], delta: float) -> pd.DataFrame:
    """Exact epsilon and Proposition C.1's of every pair: Laplace at delta 0, Gaussian at ``delta``."""
    at = {"laplace": 0.0, "gaussian": delta}
    return pd.DataFrame(
        {
            "mechanism": mechanism,
            "scale": scale,
            "exact_epsilon": exact_epsilon(mechanism, scale, at[mechanism]),
            "proposition_epsilon": proposition_epsilon(mechanism, scale, at[mechanism]),
        }
        for mechanism, some in scales.items()
        for scale in some
    )
