"""Epsilon*: do normals, or mixtures of normals, fit the losses of trained models (Figure 6 of the
paper)?
"""

import math
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import log_ndtr, logsumexp, ndtr
from scipy.stats import ks_2samp, kstest
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from paperlib.bounds import epsilon_star
from paperlib.bounds.loss_rates.rates import ceiling, definition_terms
from paperlib.core import FloatArray
from paperlib.core.checks import check_at_least
from paperlib.data import Dataset
from paperlib.report import progress
from paperlib.reproduction.papers.epsilon_star.landscape_models import (
    LandscapeConfig,
    landscape_models,
    train_models,
)
from paperlib.training.private.accounting import paper_delta

TESTS = ("paper", "held out", "same sample")
"""Evaluation scores against as many draws of a mixture that was fitted to other scores (Appendix
B), against that mixture itself, and against one that was fitted to them."""


@dataclass(frozen=True, kw_only=True)
class FitConfig:
    """Settings of the tests of a fit."""

    components: tuple[int, ...] = tuple(
        range(1, 21)
    )  #: numbers of normals in a mixture, each 1 or more
    sample_sizes: tuple[int, ...] = (100, 300, 1_000)  #: numbers of scores that a fit is tested on
    repeats: int = (
        5  #: random partitions into fitting and evaluation scores, for each model, 1 or more
    )
    seed: int = 0  #: seed of partitions, fits and draws, 0 or more

    def __post_init__(self) -> None:
        """Refuse (ValueError) numbers out of range, and samples of fewer losses than components."""
        for name, values in (("components", self.components), ("sample_sizes", self.sample_sizes)):
            if not values or min(values) < 1:
                raise ValueError(f"{name}: expected numbers of at least 1, got {values}")
        check_at_least(1, repeats=self.repeats)
        if min(self.sample_sizes) < max(2, *self.components):
            raise ValueError(
                "sample_sizes: expected at least 2 and as many as components "
                f"({max(self.components)}), got {min(self.sample_sizes)}"
            )


@dataclass(frozen=True, eq=False)
class Scores:
    """Transformed losses of one model, higher means member, and its accuracy on the population
    part.
    """

    target_epsilon: float  # of DP-SGD; inf without DP
    seed: int
    accuracy: float
    train: FloatArray
    population: FloatArray

    @property
    def private(self) -> bool:
        """Whether it was trained with DP."""
        return math.isfinite(self.target_epsilon)

    @property
    def about(self) -> dict[str, Any]:
        """Which model it is, as columns of a table."""
        return {"private": self.private, "target_epsilon": self.target_epsilon, "seed": self.seed}


def paper_scores(
    train_losses: FloatArray, population_losses: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The transform of Appendix B: losses as x from 1 to 2 (min-max over both sets, plus 1), then
    the log-odds log p - log(1 - p) of p = exp(-x).

    ``train_losses`` and ``population_losses`` have shape (n,) and (m,), and so have their scores,
    nats, higher for members. Raises ValueError where all losses are equal, or one is not finite.
    """
    both = np.concatenate([train_losses, population_losses])
    low = float(both.min())
    spread = float(both.max() - both.min())
    if not 0 < spread < math.inf:
        raise ValueError(f"losses: expected finite values that differ, they span {spread}")
    scores = -np.log(np.expm1(1 + (both - low) / spread))
    return scores[: train_losses.size], scores[train_losses.size :]


def trained_scores(config: LandscapeConfig, data: Dataset, *, seed: int = 0) -> list[Scores]:
    """Train the models of a grid on ``data``, and transform their losses, in the grid's order.

    ``seed`` takes the place of the config's; grids of other seeds share no model's seed.
    """
    models = landscape_models(replace(config, seed=seed), data)
    trained = train_models([model.training for model in models], data)
    scores: list[Scores] = []
    for model, losses in zip(models, trained, strict=True):
        target = math.inf if model.target_epsilon is None else model.target_epsilon
        train, population = paper_scores(losses["train"], losses["population"])
        scores.append(Scores(target, model.training.seed, losses["accuracy"], train, population))
    return scores


def moments(scores: Iterable[Scores]) -> pd.DataFrame:
    """A row for each model: its accuracy, a share, and mean, standard deviation, skewness and
    excess kurtosis of its transformed training losses.
    """
    return pd.DataFrame(
        {
            **model.about,
            "accuracy": model.accuracy,
            "mean": model.train.mean(),
            "standard_deviation": model.train.std(),
            "skewness": pd.Series(model.train).skew(),
            "excess_kurtosis": pd.Series(model.train).kurt(),
        }
        for model in scores
    )


def p_values(scores: Iterable[Scores], config: FitConfig) -> pd.DataFrame:
    """Kolmogorov-Smirnov p-values of mixtures fitted to training scores.

    Returns:
        A row for each model (columns of `Scores.about`), repeat, number of components, sample size
            and one of `TESTS`, with its p_value.

    Raises:
        ValueError: A sample size above half of the scores of a model.
    """
    # Evaluation sets of one partition are nested; the fitting set is what the largest leaves.
    largest = max(config.sample_sizes)
    models = list(scores)
    least = min((model.train.size for model in models), default=2 * largest)
    if least < 2 * largest:
        raise ValueError(
            f"sample_sizes: expected at most half of the {least} scores, got {largest}"
        )

    rows: list[dict[str, Any]] = []
    partitions = list(product(models, range(config.repeats)))
    for model, repeat in progress(partitions, label="partitions"):
        rng = np.random.default_rng([config.seed, model.seed, model.private, repeat])
        shuffled = rng.permutation(model.train)
        fitting, evaluation = shuffled[largest:], shuffled[:largest]
        for components in config.components:
            mixture = fit_mixture(fitting, components, seed=config.seed)
            for size in config.sample_sizes:
                values = _p_value_of_each_test(
                    evaluation[:size], mixture, rng, components=components, seed=config.seed
                )
                tested = {
                    **model.about,
                    "repeat": repeat,
                    "components": components,
                    "sample_size": size,
                }
                rows += [tested | {"test": test, "p_value": values[test]} for test in TESTS]
    return pd.DataFrame(rows)


def false_rejection_rates(
    *, components: tuple[int, ...] = (1, 5), size: int = 200, draws: int = 200, seed: int = 0
) -> pd.DataFrame:
    """How often each Kolmogorov-Smirnov test rejects at 5 % where every mixture can fit: scores are
    standard normal. A row per number of components, a column per test.

    A mixture is fitted to the tested sample itself, to another one of its size (the other half), or
    to one 20 times as large; the paper tests against a sample drawn from a fit.
    """
    tests = ("same sample", "other half", "held out", "paper")
    rows: list[dict[str, float]] = []
    for count in components:
        rng = np.random.default_rng([seed, count])
        p_values = np.empty((draws, len(tests)))
        for draw in range(draws):
            sample = rng.normal(size=size)
            fitted_to = (sample, rng.normal(size=size), rng.normal(size=20 * size))
            same, half, large = (fit_mixture(values, count, seed=seed) for values in fitted_to)
            p_values[draw] = [
                ks_p_value(sample, same),
                ks_p_value(sample, half),
                ks_p_value(sample, large),
                float(ks_2samp(sample, large.sample(size, rng)).pvalue),
            ]
        shares = (p_values < 0.05).mean(axis=0)
        rows.append({"components": count, **dict(zip(tests, shares.tolist(), strict=True))})
    return pd.DataFrame(rows)


def epsilon_by_components(
    scores: Iterable[Scores], components: Iterable[int], *, seed: int = 0
) -> pd.DataFrame:
    """Parametric Epsilon* with k normals in place of one, beside p-values of the fits: a row per
    model and number of components.

    "epsilon_star" is in nats, "rate" the smallest of the four rates at its threshold. "half_low"
    and "half_high" are from fits to either half of the losses; "p_same" is the lower p-value of
    both fits on the losses they were fitted to, "p_other_half" of fits to one half on the other;
    "empirical" is Epsilon* without a fit, nats.
    """
    counts = tuple(components)
    rows: list[dict[str, Any]] = []
    for model in progress(list(scores), label="mixtures"):
        rng = np.random.default_rng([seed, model.seed, model.private])
        delta = paper_delta(model.train.size)
        empirical = epsilon_star(-model.train, -model.population, method="empirical").epsilon
        whole = (model.train, model.population)
        train_halves = np.array_split(rng.permutation(model.train), 2)
        population_halves = np.array_split(rng.permutation(model.population), 2)
        first_half, second_half = zip(train_halves, population_halves, strict=True)
        for count in counts:
            fits = _fit_both(whole, count, seed)
            first_fits = _fit_both(first_half, count, seed)
            second_fits = _fit_both(second_half, count, seed)
            epsilon, threshold = mixture_epsilon(*fits, delta=delta)
            of_halves = [
                mixture_epsilon(*first_fits, delta=delta)[0],
                mixture_epsilon(*second_fits, delta=delta)[0],
            ]
            numbers = {
                "components": count,
                "epsilon_star": epsilon,
                "half_low": min(of_halves),
                "half_high": max(of_halves),
                "rate": float(np.exp(log_rates(*fits, np.array(threshold)).min())),
                "p_same": min(map(ks_p_value, whole, fits)),
                "p_other_half": min(map(ks_p_value, second_half, first_fits)),
                "empirical": empirical,
            }
            rows.append(model.about | numbers)
    return pd.DataFrame(rows)


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
        """Log probability of a smaller value, nats, of each, in the shape of ``values``."""
        return logsumexp(log_ndtr(self._standard(values)), b=self.weights, axis=-1)

    def log_sf(self, values: FloatArray) -> FloatArray:
        """Log probability of a larger value, nats, of each, in the shape of ``values``."""
        return logsumexp(log_ndtr(-self._standard(values)), b=self.weights, axis=-1)

    def sample(self, size: int, rng: np.random.Generator) -> FloatArray:
        """Independent draws, shape (size,)."""
        chosen = rng.choice(self.weights.size, size, p=self.weights)
        return rng.normal(self.means[chosen], self.stds[chosen])

    def central(self, delta: float) -> tuple[float, float]:
        """Where the distribution function is ``delta``, in (0, 1), and where it is ``1 - delta``:
        two values.
        """
        reach = 40 * self.stds.max()  # beyond any quantile of a delta that a number can hold
        ends = float(self.means.min() - reach), float(self.means.max() + reach)
        level = math.log(delta)
        low, high = (
            float(
                brentq(lambda x, log=log: float(log(np.array([x]))[0]) - level, *ends, xtol=1e-13)
            )
            for log in (self.log_cdf, self.log_sf)
        )
        return low, high

    def _standard(self, values: FloatArray) -> FloatArray:
        """Values in deviations from the mean of each component, shape (..., k)."""
        return (np.asarray(values)[..., None] - self.means) / self.stds


def fit_mixture(values: FloatArray, components: int, *, seed: int = 0) -> NormalMixture:
    """Fit a mixture of so many normals to values, shape (n,), by expectation maximisation, which
    starts from k-means with the seed; one normal in closed form.

    Raises ValueError where all values are equal.
    """
    mean, std = float(values.mean()), float(values.std())
    if not std > 0:
        raise ValueError(f"values: all {values.size} equal {mean:g}; a mixture needs some spread")
    if components == 1:
        return NormalMixture(weights=np.ones(1), means=np.array([mean]), stds=np.array([std]))
    # At scikit-learn's own tolerance, 1e-3, the means of two components that overlap can be a third
    # of a standard deviation off. In units of the deviation no component gets narrower than a
    # thousandth.
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
    """One-sample Kolmogorov-Smirnov p-value of values, shape (n,), right for a mixture that was
    fixed without them.
    """
    law: Any = mixture.cdf
    return float(kstest(values, law).pvalue)


def _p_value_of_each_test(
    evaluation: FloatArray,
    mixture: NormalMixture,
    rng: np.random.Generator,
    *,
    components: int,
    seed: int,
) -> dict[str, float]:
    """p-values by `TESTS` of a mixture that was fitted to other scores than these."""
    fitted_to_these = fit_mixture(evaluation, components, seed=seed)
    draws = mixture.sample(evaluation.size, rng)
    return {
        "paper": float(ks_2samp(evaluation, draws).pvalue),
        "held out": ks_p_value(evaluation, mixture),
        "same sample": ks_p_value(evaluation, fitted_to_these),
    }


def _fit_both(
    pair: tuple[FloatArray, FloatArray], components: int, seed: int
) -> tuple[NormalMixture, NormalMixture]:
    """Mixtures fitted to training and to population scores."""
    train, population = pair
    fitted = fit_mixture(train, components, seed=seed)
    return fitted, fit_mixture(population, components, seed=seed)


def mixture_epsilon(
    train: NormalMixture, population: NormalMixture, *, delta: float
) -> tuple[float, float]:
    """Epsilon* of two mixtures in nats, at least 0, and the threshold that attains it (Definition
    2); where no threshold keeps all rates above ``delta``, the largest value there can be.

    Raises ValueError for a ``delta`` outside (0, 0.5).
    """
    if not 0 < delta < 0.5:
        raise ValueError(f"delta: expected a number in (0, 0.5), got {delta!r}")
    # Thresholds at which both error rates lie within (delta, 1 - delta); without any, the sets are
    # as far apart as can be told.
    lows, highs = zip(train.central(delta), population.central(delta), strict=True)
    low, high = max(lows), min(highs)
    if low >= high:
        return ceiling(delta, 1 - delta, delta), (low + high) / 2
    # A grid that follows the components, 7 deviations to each side by tenths, then seven smaller
    # ones, each around the best threshold of the one before.
    steps = np.linspace(-7, 7, 141)
    grids = [np.linspace(low, high, 1_001)]
    for mixture in (train, population):
        grids.append((mixture.means + np.multiply.outer(steps, mixture.stds)).ravel())
    grid = np.unique(np.clip(np.concatenate(grids), low, high))
    best, threshold = 0.0, low
    for _ in range(7):
        values = definition_terms(log_rates(train, population, grid), delta).max(axis=0)
        index = int(values.argmax())
        best = float(values[index])
        threshold = float(grid[index])
        grid = np.linspace(grid[max(index - 1, 0)], grid[min(index + 1, grid.size - 1)], 65)
    return max(best, 0.0), threshold


def log_rates(
    train: NormalMixture, population: NormalMixture, thresholds: FloatArray
) -> FloatArray:
    """Logs of TPR, FNR, FPR and TNR, in this order, nats, shape (4, ...) for thresholds of shape
    (...); "member" is a score above the threshold.
    """
    rates: list[FloatArray] = []
    for mixture in (train, population):
        rates += [mixture.log_sf(thresholds), mixture.log_cdf(thresholds)]
    return np.stack(rates)
