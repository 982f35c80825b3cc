"""Mixtures of normals: fit, distribution function, and the Epsilon* of two of them."""

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr, logsumexp, ndtr
from scipy.stats import kstest
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from paperlib.bounds.loss_rates.rates import ceiling, definition_terms
from paperlib.core import FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class NormalMixture:
    """A mixture of normals: weights with sum 1, means, and stds above 0, each of shape (k,)."""

    weights: FloatArray
    means: FloatArray
    stds: FloatArray

    def cdf(self, values: FloatArray) -> FloatArray:
        """Distribution function, shape of ``values``."""
        return ndtr(self._standard(values)) @ self.weights

    def log_cdf(self, values: FloatArray) -> FloatArray:
        return logsumexp(log_ndtr(self._standard(values)), b=self.weights, axis=-1)

    def log_sf(self, values: FloatArray) -> FloatArray:
        return logsumexp(log_ndtr(-self._standard(values)), b=self.weights, axis=-1)

    def sample(self, size: int, rng: np.random.Generator) -> FloatArray:
        """Independent draws, shape (size,)."""
        chosen = rng.choice(self.weights.size, size, p=self.weights)
        return rng.normal(self.means[chosen], self.stds[chosen])

    def central(self, delta: float) -> tuple[float, float]:
        """Where the distribution function is ``delta`` and where it is ``1 - delta``."""
        reach = 40 * self.stds.max()
        ends = float(self.means.min() - reach), float(self.means.max() + reach)
        level = math.log(delta)
        low, high = (
            float(brentq(lambda x, log=log: float(log(np.array([x]))[0]) - level, *ends, xtol=1e-13))
            for log in (self.log_cdf, self.log_sf)
        )
        return low, high

    def _standard(self, values: FloatArray) -> FloatArray:
        return (np.asarray(values)[..., None] - self.means) / self.stds


def fit_mixture(values: FloatArray, components: int, *, seed: int = 0) -> NormalMixture:
    """Fit a mixture of normals by expectation maximisation, k-means start; one normal in closed form."""
    mean, std = float(values.mean()), float(values.std())
    if not std > 0:
        raise ValueError(f"values: all {values.size} equal {mean:g}; a mixture needs some spread")
    if components == 1:
        return NormalMixture(weights=np.ones(1), means=np.array([mean]), stds=np.array([std]))
    # At scikit-learn's own tolerance, 1e-3, the means of two components that overlap can be a third of a
    # standard deviation off. In units of the deviation no component gets narrower than a thousandth.
    model: Any = GaussianMixture(components, tol=1e-4, max_iter=300, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = model.fit((values[:, None] - mean) / std)
    return NormalMixture(
        weights=fitted.weights_ / fitted.weights_.sum(),
        means=mean + std * fitted.means_[:, 0],
        stds=std * np.sqrt(fitted.covariances_[:, 0, 0]),
    )


def ks_p_value(values: FloatArray, mixture: NormalMixture) -> float:
    """One-sample Kolmogorov-Smirnov p-value, right for a mixture that was fixed without these values."""
    law: Any = mixture.cdf
    return float(kstest(values, law).pvalue)


def mixture_epsilon(train: NormalMixture, population: NormalMixture, *, delta: float) -> tuple[float, float]:
    """Epsilon* of two mixtures in nats, at least 0, and the threshold that attains it (Definition 2)."""
    if not 0 < delta < 0.5:
        raise ValueError(f"delta: expected a number in (0, 0.5), got {delta!r}")
    lows, highs = zip(train.central(delta), population.central(delta), strict=True)
    low, high = max(lows), min(highs)
    if low >= high:
        return ceiling(delta, 1 - delta, delta), (low + high) / 2
    # A grid that follows the components, then smaller ones around the best threshold.
    steps = np.linspace(-7, 7, 141)
    grids = [(part.means + np.multiply.outer(steps, part.stds)).ravel() for part in (train, population)]
    grid = np.unique(np.clip(np.concatenate([np.linspace(low, high, 1_001), *grids]), low, high))
    best, threshold = 0.0, low
    for _ in range(7):
        values = definition_terms(log_rates(train, population, grid), delta).max(axis=0)
        at = int(values.argmax())
        best, threshold = float(values[at]), float(grid[at])
        grid = np.linspace(grid[max(at - 1, 0)], grid[min(at + 1, grid.size - 1)], 65)
    return max(best, 0.0), threshold


def log_rates(train: NormalMixture, population: NormalMixture, thresholds: FloatArray) -> FloatArray:
    """Logs of TPR, FNR, FPR and TNR, shape (4, ...); "member" is a score above the threshold."""
    return np.stack([law(thresholds) for part in (train, population) for law in (part.log_sf, part.log_cdf)])
