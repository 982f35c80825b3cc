"""Epsilon*: simulations with known loss distributions (Figures 3, 4, 5 of the paper), interval coverage."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import ndtr
from scipy.stats import gamma, laplace

from paperlib.bounds import epsilon_star, epsilon_star_from_rates, epsilon_star_normals
from paperlib.bounds.loss_rates.audit import IntervalMethod, Method
from paperlib.core import FloatArray

EMPIRICAL_LOW = 0.001
"""Appendix B: the empirical version uses rates in (0.001, 0.999)."""

METHODS: tuple[Method, ...] = ("empirical", "parametric")

ALL_RATES = 1e-30
"""Stands for "every threshold": rates this small never attain the supremum, since delta is above them."""


@dataclass(frozen=True)
class CurveConfig:
    """What Figure 3 shows: N(0, 1) training losses against N(gap, 1) population losses.

    Attributes:
        gap: Distance of the means.
        size: Losses in each set; the paper does not say how many it drew.
        draws: Samples whose deviations from the true curve are averaged.
        smallest_rate: Error rates below this are left out.
        seed: Seed of the samples.
    """

    gap: float = 3.0
    size: int = 10_000
    draws: int = 50
    smallest_rate: float = 1e-9
    seed: int = 0


@dataclass(frozen=True)
class GammaConfig:
    """What Figures 4 and 5 vary: Gamma(shape, scale) training against Gamma(shape + d, scale) population.

    Attributes:
        shape: Shape k of the training losses.
        scale: Scale theta of both.
        shifts: Values of d.
        sizes: Losses in each set.
        repeats: Samples for each d and size.
        seed: Seed of the samples.
    """

    shape: float = 2.0
    scale: float = 5.0
    shifts: tuple[int, ...] = (0, 1, 2, 3)
    sizes: tuple[int, ...] = (1_000, 10_000, 100_000)
    repeats: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        if 0 not in self.shifts or max(self.shifts) <= 0 or min(self.shifts) < 0:
            raise ValueError(f"shifts: expected 0 and at least one number above it, got {self.shifts}")
        if not self.sizes or min(self.sizes) < 20:
            raise ValueError(f"sizes: expected numbers of losses of at least 20, got {self.sizes}")
        if self.repeats < 2:
            raise ValueError(f"repeats: expected at least 2, to have a spread, got {self.repeats}")


@dataclass(frozen=True)
class CoverageConfig:
    """Normal losses with a known Epsilon*, to see how often intervals hold it.

    Attributes:
        pairs: (gap of the means, ratio of the spreads) of population against training losses.
        size: Losses in each set.
        draws: Samples for each pair.
        delta: Delta of Definition 1.
        confidence: Nominal confidence of every interval.
        seed: Seed of the samples.
    """

    pairs: tuple[tuple[float, float], ...] = ((0.0, 1.0), (0.5, 1.0), (0.5, 1.2))
    size: int = 200
    draws: int = 100
    delta: float = 1e-4
    confidence: float = 0.95
    seed: int = 0


def paper_delta(size: int) -> float:
    """The paper's delta, 1 / (n log n).

    >>> round(paper_delta(100_000) * 1e7, 3)
    8.686
    """
    return 1 / (size * math.log(size))


def curve_terms(config: CurveConfig) -> pd.DataFrame:
    """The first two ratios of Equation 7 from the true distributions and from one sample (Figure 3).

    Returns:
        Columns source, tpr, fpr, position ((TPR + FPR) / 2), first and second (the ratios; missing where
        their denominator or numerator is too small to use).
    """
    rng = np.random.default_rng(config.seed)
    train, population = rng.normal(0, 1, config.size), rng.normal(config.gap, 1, config.size)
    tau = np.linspace(-6.5, config.gap + 6.5, 2_001)
    true = _two_terms(ndtr(tau), ndtr(-tau), ndtr(tau - config.gap), ndtr(config.gap - tau), config)
    seen = np.sort(np.concatenate([train, population]))
    tpr, fpr = _at_or_below(train, seen), _at_or_below(population, seen)
    sample = _two_terms(tpr, 1 - tpr, fpr, 1 - fpr, config)
    return pd.concat([true.assign(source="true"), sample.assign(source="empirical")], ignore_index=True)


def _two_terms(
    tpr: FloatArray, fnr: FloatArray, fpr: FloatArray, tnr: FloatArray, config: CurveConfig
) -> pd.DataFrame:
    delta, low = paper_delta(config.size), config.smallest_rate
    with np.errstate(divide="ignore", invalid="ignore"):
        first, second = (tpr - delta) / fpr, (tnr - delta) / fnr
    usable = (fpr >= low) & (fnr >= low)
    return pd.DataFrame(
        {
            "tpr": tpr,
            "fpr": fpr,
            "position": (tpr + fpr) / 2,
            "first": np.where(usable & (first > 0), first, np.nan),
            "second": np.where(usable & (second > 0), second, np.nan),
        }
    )


def _at_or_below(sample: FloatArray, points: FloatArray) -> FloatArray:
    return np.searchsorted(np.sort(sample), points, side="right") / sample.size


def curve_noise(config: CurveConfig) -> pd.DataFrame:
    """How far the empirical first two terms lie from the true ones, by the rate in their denominator.

    Returns:
        One row per decade of that rate: columns rate_from, rate_to, first and second (root mean square of
        the difference of logs, nats, over thresholds and draws where the sample has the term at all).
    """
    rng = np.random.default_rng(config.seed)
    tau = np.linspace(-4.5, config.gap + 4.5, 600)
    true = _two_terms(ndtr(tau), ndtr(-tau), ndtr(tau - config.gap), ndtr(config.gap - tau), config)
    gaps = {"first": np.empty((config.draws, tau.size)), "second": np.empty((config.draws, tau.size))}
    for draw in range(config.draws):
        tpr = _at_or_below(rng.normal(0, 1, config.size), tau)
        fpr = _at_or_below(rng.normal(config.gap, 1, config.size), tau)
        found = _two_terms(tpr, 1 - tpr, fpr, 1 - fpr, config)
        for term, rows in gaps.items():
            rows[draw] = np.log(found[term]) - np.log(true[term])
    rates = {"first": true["fpr"].to_numpy(), "second": 1 - true["tpr"].to_numpy()}
    edges = [1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0]
    return pd.DataFrame(
        [
            {"rate_from": low, "rate_to": high}
            | {
                term: _rms(rows[:, (rates[term] > low) & (rates[term] <= high)])
                for term, rows in gaps.items()
            }
            for low, high in itertools.pairwise(edges)
        ]
    )


def _rms(values: FloatArray) -> float:
    present = values[np.isfinite(values)]
    return float(np.sqrt(np.mean(present**2))) if present.size else math.nan


def true_gamma_value(config: GammaConfig, shift: float, *, delta: float, low: float) -> tuple[float, float]:
    """True Epsilon* over thresholds with both rates in [low, 1 - low], and the FPR that attains it.

    >>> value, rate = true_gamma_value(GammaConfig(), 1, delta=1e-6, low=1e-6)
    >>> round(value, 3), round(rate * 1e6, 3)
    (5.097, 1.0)
    """
    train, population = (
        gamma(config.shape, scale=config.scale),
        gamma(config.shape + shift, scale=config.scale),
    )
    left = max(train.ppf(low), population.ppf(low))
    right = min(train.isf(low), population.isf(low))
    tau = np.geomspace(left, right, 20_001)
    fpr, fnr = np.clip(population.cdf(tau), low, 1 - low), np.clip(train.sf(tau), low, 1 - low)
    values = epsilon_star_from_rates(fpr, fnr, delta=delta)
    return float(values.max()), float(fpr[values.argmax()])


def gamma_runs(config: GammaConfig) -> Iterator[dict[str, object]]:
    """One row per shift, size, repeat and method (Figures 4 and 5).

    Yields:
        shift, size, repeat, method, epsilon, false_positive_rate (where the supremum sits).
    """
    for shift in config.shifts:
        for size in config.sizes:
            rng = np.random.default_rng([config.seed, shift, size])
            for repeat in range(config.repeats):
                train = rng.gamma(config.shape, config.scale, size)
                population = rng.gamma(config.shape + shift, config.scale, size)
                for method in METHODS:
                    found = epsilon_star(train, population, method=method)
                    yield {
                        "shift": shift,
                        "size": size,
                        "repeat": repeat,
                        "method": method,
                        "epsilon": found.epsilon,
                        "false_positive_rate": found.false_positive_rate,
                    }


def gamma_summary(config: GammaConfig, runs: pd.DataFrame) -> pd.DataFrame:
    """Mean and standard deviation of each method beside three true values.

    Returns:
        Columns shift, size, method, mean, std, true (every threshold, Definition 1), true_delta_range
        (rates in [delta, 1 - delta]), true_own_range (rates in the method's own range) and typical_fpr
        (median place of the supremum).
    """
    rows: list[dict[str, object]] = []
    for shift, size, method in itertools.product(config.shifts, config.sizes, METHODS):
        chosen = (runs["shift"] == shift) & (runs["size"] == size) & (runs["method"] == method)
        delta = paper_delta(size)
        lows = {
            "true": ALL_RATES,
            "true_delta_range": delta,
            "true_own_range": EMPIRICAL_LOW if method == "empirical" else delta,
        }
        rows.append(
            {
                "shift": shift,
                "size": size,
                "method": method,
                "mean": runs["epsilon"][chosen].mean(),
                "std": runs["epsilon"][chosen].std(ddof=1),
                **{
                    name: true_gamma_value(config, shift, delta=delta, low=low)[0]
                    for name, low in lows.items()
                },
                "typical_fpr": runs["false_positive_rate"][chosen].median(),
            }
        )
    return pd.DataFrame(rows)


def laplace_values(gaps: tuple[float, ...], *, size: int, repeats: int, seed: int) -> pd.DataFrame:
    """Losses with Laplace tails of scale 1, a gap apart: the true Epsilon* is the gap, at any delta near 0.

    Returns:
        One row per gap: columns gap, true (every threshold), empirical and parametric (means over repeats),
        rejected (share of repeats whose normal fit is rejected).
    """
    rng, delta = np.random.default_rng(seed), paper_delta(size)
    rows: list[dict[str, float]] = []
    for gap in gaps:
        tau = np.linspace(-30, 30 + gap, 60_001)
        true = epsilon_star_from_rates(laplace.cdf(tau, gap), laplace.sf(tau), delta=delta).max()
        draws = [(rng.laplace(0, 1, size), rng.laplace(gap, 1, size)) for _ in range(repeats)]
        parametric = [epsilon_star(*draw) for draw in draws]
        rows.append(
            {
                "gap": gap,
                "true": float(true),
                "empirical": float(np.mean([epsilon_star(*d, method="empirical").epsilon for d in draws])),
                "parametric": float(np.mean([found.epsilon for found in parametric])),
                "rejected": float(np.mean([bool(found.fit_rejected) for found in parametric])),
            }
        )
    return pd.DataFrame(rows)


def value_over_thresholds(config: GammaConfig, shift: int, size: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Equation 7 at every threshold: true distributions, one sample, and the normals fitted to it.

    Returns:
        A table with columns source, false_positive_rate and epsilon, and a table with the fits: columns set,
        skewness_of_losses, skewness, kurtosis, ks_distance, ks_p_value.
    """
    delta = paper_delta(size)
    rng = np.random.default_rng([config.seed, shift, size])
    train, population = (
        rng.gamma(config.shape, config.scale, size),
        rng.gamma(config.shape + shift, config.scale, size),
    )
    fits = epsilon_star(train, population)
    grid = np.linspace(-7, 7, 1_201)
    a, b = fits.fit_train, fits.fit_population
    assert a is not None
    assert b is not None
    score = np.linspace(b.mean - 6 * b.std, b.mean + 6 * b.std, 1_201)
    true = gamma(config.shape + shift, scale=config.scale).ppf(ndtr(grid))
    seen = np.quantile(np.concatenate([train, population]), ndtr(np.linspace(-4.5, 4.5, 1_201)))
    curves = {
        "true": (ndtr(grid), gamma(config.shape, scale=config.scale).sf(true), delta),
        "empirical": (_at_or_below(population, seen), 1 - _at_or_below(train, seen), EMPIRICAL_LOW),
        "parametric": (ndtr((b.mean - score) / b.std), ndtr((score - a.mean) / a.std), delta),
    }
    frames = []
    for source, (fpr, fnr, low) in curves.items():
        kept = (np.minimum(fpr, fnr) >= low) & (np.maximum(fpr, fnr) <= 1 - low)
        values = epsilon_star_from_rates(fpr[kept], fnr[kept], delta=delta)
        frames.append(pd.DataFrame({"source": source, "false_positive_rate": fpr[kept], "epsilon": values}))
    rows = [
        {
            "set": name,
            "skewness_of_losses": float(np.mean(((losses - losses.mean()) / losses.std()) ** 3)),
            "skewness": fit.skewness,
            "kurtosis": fit.kurtosis,
            "ks_distance": fit.ks_distance,
            "ks_p_value": fit.ks_p_value,
        }
        for name, losses, fit in (("training", train, a), ("population", population, b))
    ]
    return pd.concat(frames, ignore_index=True), pd.DataFrame(rows)


INTERVALS: tuple[tuple[Method, IntervalMethod], ...] = (
    ("parametric", "region"),
    ("parametric", "delta"),
    ("parametric", "bca"),
    ("empirical", "band"),
    ("empirical", "bca"),
)


def interval_coverage(config: CoverageConfig, pair: tuple[float, float]) -> pd.DataFrame:
    """How often each interval holds the true value of one pair of normals.

    An interval that cannot be formed counts as a miss.

    Returns:
        One row per interval: gap, ratio, method, interval, true, coverage, standard_error, mean_width.
    """
    gap, ratio = pair
    true = {
        "parametric": epsilon_star_normals(0, 1, gap, ratio, delta=config.delta),
        "empirical": _true_clipped(gap, ratio, config.delta),
    }
    rng = np.random.default_rng(config.seed)
    draws = [
        (rng.normal(0, 1, config.size), rng.normal(gap, ratio, config.size)) for _ in range(config.draws)
    ]
    rows: list[dict[str, object]] = []
    for method, interval in INTERVALS:
        ends = np.array([_interval(config, draw, method, interval) for draw in draws])
        held = (ends[:, 0] <= true[method] + 1e-9) & (true[method] <= ends[:, 1] + 1e-9)
        rows.append(
            {
                "gap": gap,
                "ratio": ratio,
                "method": method,
                "interval": interval,
                "true": true[method],
                "coverage": held.mean(),
                "standard_error": math.sqrt(held.mean() * (1 - held.mean()) / config.draws),
                "mean_width": float(np.nanmean(ends[:, 1] - ends[:, 0])),
            }
        )
    return pd.DataFrame(rows)


def _interval(
    config: CoverageConfig, draw: tuple[FloatArray, FloatArray], method: Method, interval: IntervalMethod
) -> tuple[float, float]:
    try:
        found = epsilon_star(
            *draw,
            method=method,
            delta=config.delta,
            confidence=config.confidence,
            transform="none",
            interval_method=interval,
        ).interval
    except ValueError:
        if interval != "bca":
            raise
        return math.nan, math.nan
    assert found is not None
    return found


def _true_clipped(gap: float, ratio: float, delta: float) -> float:
    tau = np.linspace(-10, 10 + gap, 40_001)
    rates = (np.clip(r, EMPIRICAL_LOW, 1 - EMPIRICAL_LOW) for r in (ndtr((tau - gap) / ratio), ndtr(-tau)))
    return float(epsilon_star_from_rates(*rates, delta=delta).max())
