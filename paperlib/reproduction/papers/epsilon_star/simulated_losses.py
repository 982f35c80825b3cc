"""Losses of known Epsilon*: normal (Figure 3, coverage), Gamma (Figures 4 and 5) and Laplace
ones.
"""

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtr
from scipy.stats import gamma, laplace

from paperlib.bounds import epsilon_star, epsilon_star_from_rates, epsilon_star_normals
from paperlib.bounds.loss_rates.audit import EpsilonStarResult, IntervalMethod, Method
from paperlib.bounds.loss_rates.rates import NormalFit
from paperlib.core import FloatArray
from paperlib.reproduction.papers.epsilon_star.landscape_measures import fits_of
from paperlib.training.private.accounting import paper_delta

EMPIRICAL_LOW = 0.001
"""Appendix B: the empirical version uses rates in (0.001, 0.999)."""

PAIRS = ((0.0, 1.0), (0.5, 1.0), (0.5, 1.2))
"""Gap of the means and ratio of the spreads of population against training losses."""

_INTERVALS: tuple[tuple[Method, IntervalMethod], ...] = (
    ("parametric", "region"),
    ("parametric", "delta"),
    ("parametric", "bca"),
    ("empirical", "band"),
    ("empirical", "bca"),
)
_DELTA = 1e-4  # of the intervals
_GAP = 3.0  # of the means of N(0, 1) training losses and N(gap, 1) population losses
_SMALLEST_RATE = 1e-9  # least error rate that is shown
_RATIOS = ("tpr_ratio", "tnr_ratio")


def curve_terms(*, size: int, seed: int = 0) -> pd.DataFrame:
    """Figure 3: rows of `_two_terms` from the true distributions and from one sample of ``size``
    losses of each kind, with the column source, "true" or "empirical".
    """
    train, population = _sample(np.random.default_rng(seed), size)
    # Thresholds as far out as rates of at least `_SMALLEST_RATE` reach.
    true = _true_terms(np.linspace(-6.5, _GAP + 6.5, 2_001), size)
    sample = _sampled_terms(train, population, np.sort(np.concatenate([train, population])))
    return pd.concat(
        [true.assign(source="true"), sample.assign(source="empirical")], ignore_index=True
    )


@dataclass(frozen=True, eq=False)
class RatioErrors:
    """Errors of one sampled ratio."""

    rates: FloatArray  #: true rate in the denominator at each threshold, shape (thresholds,)
    #: sampled less true log ratio, nats, shape (draws, thresholds); NaN where there is none
    errors: FloatArray

    def at(self, low: float, high: float) -> FloatArray:
        """Errors at rates above ``low`` and up to ``high``, nats, shape (draws, k)."""
        return self.errors[:, (self.rates > low) & (self.rates <= high)]

    def rms(self, low: float, high: float) -> FloatArray:
        """Root mean square of each draw at these rates, shape (draws,)."""
        return np.array([_rms(draw) for draw in self.at(low, high)])


def ratio_errors(*, size: int, draws: int, seed: int = 0) -> dict[str, RatioErrors]:
    """By the name of each ratio of `curve_terms`, the log of the sampled less that of the true one,
    at 600 thresholds, in each of so many draws of ``size`` losses of each kind.
    """
    rng = np.random.default_rng(seed)
    tau = np.linspace(-4.5, _GAP + 4.5, 600)  # from a rate of 3e-6 on; chosen
    true = _true_terms(tau, size)
    gaps = {term: np.empty((draws, tau.size)) for term in _RATIOS}
    for draw in range(draws):
        sample = _sampled_terms(*_sample(rng, size), tau)
        for term, rows in gaps.items():
            rows[draw] = np.log(sample[term]) - np.log(true[term])
    rates = {"tpr_ratio": true["fpr"].to_numpy(), "tnr_ratio": 1 - true["tpr"].to_numpy()}
    return {term: RatioErrors(rates[term], rows) for term, rows in gaps.items()}


def curve_noise(errors: Mapping[str, RatioErrors]) -> pd.DataFrame:
    """The root mean square of the errors of `ratio_errors`, nats: a row for each decade of the rate
    in the denominator, a column for each ratio.
    """
    rows: list[dict[str, float]] = []
    for low, high in itertools.pairwise([1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0]):
        of_decade = {term: _rms(of_term.at(low, high)) for term, of_term in errors.items()}
        rows.append({"rate_from": low, "rate_to": high, **of_decade})
    return pd.DataFrame(rows)


def _sample(rng: np.random.Generator, size: int) -> tuple[FloatArray, FloatArray]:
    """``size`` training losses from N(0, 1), and as many population losses from N(gap, 1)."""
    return rng.normal(0, 1, size), rng.normal(_GAP, 1, size)


def _true_terms(tau: FloatArray, size: int) -> pd.DataFrame:
    """`_two_terms` of the distributions of `_sample` at thresholds ``tau``, shape (n,)."""
    return _two_terms(ndtr(tau), ndtr(-tau), ndtr(tau - _GAP), ndtr(_GAP - tau), size)


def _sampled_terms(train: FloatArray, population: FloatArray, tau: FloatArray) -> pd.DataFrame:
    """`_two_terms` of the samples at thresholds ``tau``, shape (n,)."""
    tpr, fpr = share_at_or_below(train, tau), share_at_or_below(population, tau)
    return _two_terms(tpr, 1 - tpr, fpr, 1 - fpr, train.size)


def _two_terms(
    tpr: FloatArray, fnr: FloatArray, fpr: FloatArray, tnr: FloatArray, size: int
) -> pd.DataFrame:
    """The first two ratios of Equation 7, (TPR - delta) / FPR and (TNR - delta) / FNR, a row per
    threshold; NaN where an error rate is below `_SMALLEST_RATE` or a ratio is not positive.
    "position", the mean of TPR and FPR, tells how far along the thresholds a row is.

    All four rates are given, shape (n,), since 1 - rate would lose the small ones; ``size`` is the
    number of training records, which sets delta.
    """
    delta = paper_delta(size)
    with np.errstate(divide="ignore", invalid="ignore"):
        first, second = (tpr - delta) / fpr, (tnr - delta) / fnr
    usable = (fpr >= _SMALLEST_RATE) & (fnr >= _SMALLEST_RATE)
    return pd.DataFrame(
        {
            "tpr": tpr,
            "fpr": fpr,
            "position": (tpr + fpr) / 2,
            "tpr_ratio": np.where(usable & (first > 0), first, np.nan),
            "tnr_ratio": np.where(usable & (second > 0), second, np.nan),
        }
    )


def share_at_or_below(sample: FloatArray, points: FloatArray) -> FloatArray:
    """Share of a sample, shape (n,), at or below each point, shape of ``points``."""
    return np.searchsorted(np.sort(sample), points, side="right") / sample.size


def _rms(values: FloatArray) -> float:
    """Root mean square of the finite values; NaN without any."""
    present = values[np.isfinite(values)]
    return float(np.sqrt(np.mean(present**2))) if present.size else math.nan


def interval_coverage(
    pair: tuple[float, float], *, size: int, draws: int, confidence: float = 0.95, seed: int = 0
) -> pd.DataFrame:
    """How often each interval holds the true Epsilon* of one pair of normals, a row per interval.

    Args:
        pair: As in `PAIRS`: training losses are N(0, 1), population losses N(gap, ratio^2).
        size: Number of losses of each kind in a draw.
        draws: Number of draws.
    """
    gap, ratio = pair
    tau = np.linspace(-10, 10 + gap, 40_001)  # thresholds; at the ends rates are clipped
    # FPR and FNR in the range that the empirical version takes; only its truth is read off them.
    rates = (
        np.clip(r, EMPIRICAL_LOW, 1 - EMPIRICAL_LOW)
        for r in (ndtr((tau - gap) / ratio), ndtr(-tau))
    )
    true = {
        "parametric": epsilon_star_normals(0, 1, gap, ratio, delta=_DELTA),
        "empirical": float(epsilon_star_from_rates(*rates, delta=_DELTA).max()),
    }
    rng = np.random.default_rng(seed)
    samples = [(rng.normal(0, 1, size), rng.normal(gap, ratio, size)) for _ in range(draws)]
    rows: list[dict[str, object]] = []
    for method, interval in _INTERVALS:
        ends = np.array(
            [_interval_of(sample, method, interval, confidence) for sample in samples], dtype=float
        )
        # 1e-9: an end that is the true value but for rounding holds it.
        held = (ends[:, 0] <= true[method] + 1e-9) & (true[method] <= ends[:, 1] + 1e-9)
        coverage = held.mean()
        rows.append(
            {
                "gap": gap,
                "ratio": ratio,
                "method": method,
                "interval": interval,
                "true": true[method],
                "coverage": coverage,
                "standard_error": math.sqrt(coverage * (1 - coverage) / draws),
                "mean_width": float(np.nanmean(ends[:, 1] - ends[:, 0])),
            }
        )
    return pd.DataFrame(rows)


def _interval_of(
    sample: tuple[FloatArray, FloatArray],
    method: Method,
    interval: IntervalMethod,
    confidence: float,
) -> tuple[float, float]:
    """Ends of the interval of Epsilon* on training and population losses; NaN where the bootstrap
    gives none.
    """
    try:
        star = epsilon_star(
            *sample,
            delta=_DELTA,
            confidence=confidence,
            method=method,
            interval_method=interval,
            transform="none",
        )
    except ValueError:
        if interval != "bca":
            raise
        return math.nan, math.nan
    assert star.interval is not None
    return star.interval


METHODS: tuple[Method, ...] = ("empirical", "parametric")
ALL_RATES = 1e-30
"""Stands for "every threshold": rates this small never attain the supremum, since delta is above
them.
"""


@dataclass(frozen=True)
class GammaConfig:
    """Settings of Figures 4 and 5: Gamma(shape, scale) against Gamma(shape + d, scale) losses."""

    shape: float = 2.0  #: shape k of the training losses
    scale: float = 5.0  #: scale theta of both
    shifts: tuple[int, ...] = (0, 1, 2, 3)  #: values of d
    sizes: tuple[int, ...] = (1_000, 10_000, 100_000)  #: losses in each set
    repeats: int = 10  #: samples for each d and size, 2 or more
    seed: int = 0  #: seed of the samples, 0 or more

    def __post_init__(self) -> None:
        """Refuse (ValueError) shifts without 0, and too few losses or repeats."""
        if 0 not in self.shifts or max(self.shifts) <= 0 or min(self.shifts) < 0:
            raise ValueError(
                f"shifts: expected 0 and at least one number above it, got {self.shifts}"
            )
        if not self.sizes or min(self.sizes) < 20:
            raise ValueError(f"sizes: expected numbers of losses of at least 20, got {self.sizes}")
        if self.repeats < 2:
            raise ValueError(f"repeats: expected at least 2, to have a spread, got {self.repeats}")

    def draw(
        self, rng: np.random.Generator, shift: int, size: int
    ) -> tuple[FloatArray, FloatArray]:
        """Training and population losses, each of shape (size,)."""
        return rng.gamma(self.shape, self.scale, size), rng.gamma(
            self.shape + shift, self.scale, size
        )

    def law(self, shift: float) -> Any:
        """Distribution of the population losses at a shift; of the training losses at 0."""
        return gamma(self.shape + shift, scale=self.scale)


def true_gamma_value(config: GammaConfig, shift: float, *, delta: float, low: float) -> float:
    """True Epsilon*, nats, of Gamma losses at a shift, over thresholds with both error rates in
    [low, 1 - low].
    """
    train, population = config.law(0), config.law(shift)
    left = max(train.ppf(low), population.ppf(low))
    right = min(train.isf(low), population.isf(low))
    tau = np.geomspace(left, right, 20_001)
    fpr = np.clip(population.cdf(tau), low, 1 - low)
    fnr = np.clip(train.sf(tau), low, 1 - low)
    return float(epsilon_star_from_rates(fpr, fnr, delta=delta).max())


def gamma_runs(config: GammaConfig) -> Iterator[dict[str, object]]:
    """A row for each shift d, size, repeat and method: epsilon_star, nats, and false_positive_rate,
    the rate at the threshold where the supremum sits.
    """
    for shift, size in itertools.product(config.shifts, config.sizes):
        rng = np.random.default_rng([config.seed, shift, size])
        for repeat in range(config.repeats):
            stars = _by_both_methods(*config.draw(rng, shift, size))
            for method, star in zip(METHODS, stars, strict=True):
                yield {
                    "d": shift,
                    "size": size,
                    "repeat": repeat,
                    "method": method,
                    "epsilon_star": star.epsilon,
                    "false_positive_rate": star.false_positive_rate,
                }


def gamma_summary(config: GammaConfig, runs: pd.DataFrame) -> pd.DataFrame:
    """Mean and standard deviation of each method over the repeats of `gamma_runs`, beside three
    true values: a row for each shift d, size and method, nats.

    "true" is over every threshold, "true_delta_range" over rates in [delta, 1 - delta], and
    "true_own_range" over those that the method takes.
    """
    rows: list[dict[str, object]] = []
    for shift, size, method in itertools.product(config.shifts, config.sizes, METHODS):
        repeats = runs[(runs["d"] == shift) & (runs["size"] == size) & (runs["method"] == method)]
        delta = paper_delta(size)
        lows = {
            "true": ALL_RATES,
            "true_delta_range": delta,
            "true_own_range": EMPIRICAL_LOW if method == "empirical" else delta,
        }
        true = {
            name: true_gamma_value(config, shift, delta=delta, low=low)
            for name, low in lows.items()
        }
        stars = repeats["epsilon_star"]
        sampled = {"epsilon_star": stars.mean(), "epsilon_star_sd": stars.std(ddof=1)}
        rate = repeats["false_positive_rate"].median()
        rows.append(
            {"d": shift, "size": size, "method": method, **sampled, **true, "typical_fpr": rate}
        )
    return pd.DataFrame(rows)


def undershoot(runs: pd.DataFrame, summary: pd.DataFrame) -> pd.DataFrame:
    """By how much the empirical version falls short of two true values where the sets differ.

    A row for each truth, shift d and size: undershoot, the mean of true value less estimate, and
    half the width of its 95 % interval, nats. Arguments are `gamma_runs` and their `gamma_summary`.
    """
    runs = runs[(runs["method"] == "empirical") & (runs["d"] > 0)]
    truths = ["true", "true_delta_range"]
    differences = runs.merge(summary[["d", "size", "method", *truths]])
    differences[truths] = differences[truths].sub(differences["epsilon_star"], axis=0)
    # One row for each run and kind of truth.
    by_truth = differences.melt(["d", "size"], truths, "truth", "undershoot")
    groups = by_truth.groupby(["truth", "d", "size"])["undershoot"]
    means = groups.agg(["mean", "sem"]).reset_index()
    half_width = 1.96 * means.pop("sem")
    return means.assign(half_width=half_width).rename(columns={"mean": "undershoot"})


def laplace_values(gaps: tuple[float, ...], *, size: int, repeats: int, seed: int) -> pd.DataFrame:
    """Epsilon* of losses with Laplace tails of scale 1, means a gap apart: true, and the mean of
    ``repeats`` draws by each method; with how often the fit was rejected. A row per gap.

    Near delta = 0 the true value is the gap.
    """
    rng = np.random.default_rng(seed)
    delta = paper_delta(size)
    rows: list[dict[str, float]] = []
    for gap in gaps:
        tau = np.linspace(-30, 30 + gap, 60_001)  # rates beyond are below 1e-13, and delta
        true = epsilon_star_from_rates(laplace.cdf(tau, gap), laplace.sf(tau), delta=delta).max()
        draws = [(rng.laplace(0, 1, size), rng.laplace(gap, 1, size)) for _ in range(repeats)]
        empirical, parametric = zip(*(_by_both_methods(*draw) for draw in draws), strict=True)
        means = {
            "empirical": float(np.mean([star.epsilon for star in empirical])),
            "parametric": float(np.mean([star.epsilon for star in parametric])),
            "rejected": float(np.mean([bool(star.fit_rejected) for star in parametric])),
        }
        rows.append({"gap": gap, "true": float(true), **means})
    return pd.DataFrame(rows)


def _by_both_methods(train: FloatArray, population: FloatArray) -> list[EpsilonStarResult]:
    """Epsilon* of the losses by each of METHODS, in their order; the result of a rejected fit
    brings the empirical version along, which else is computed.
    """
    fitted = epsilon_star(train, population)
    return [fitted.empirical or epsilon_star(train, population, method="empirical"), fitted]


def value_over_thresholds(
    config: GammaConfig, shift: int, size: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Equation 7 at every threshold of the true distributions, of one sample, and of the normals
    fitted to it; and these fits.

    Returns:
        A row per source and threshold (source, false_positive_rate, epsilon_star), and a row per
        fit.
    """
    train, population = config.draw(np.random.default_rng([config.seed, shift, size]), shift, size)
    delta = paper_delta(size)
    train_fit, population_fit = fits_of(epsilon_star(train, population))
    # False-positive rates from 1e-12 to 1 - 1e-12, even in their normal quantiles.
    grid = np.linspace(-7, 7, 1_201)
    true_fpr = ndtr(grid)
    true_fnr = config.law(0).sf(config.law(shift).ppf(true_fpr))
    # Of the samples, thresholds at quantiles; of the fits, scores around the population's mean.
    levels = ndtr(np.linspace(-4.5, 4.5, 1_201))
    thresholds = np.quantile(np.concatenate([train, population]), levels)
    reach = 6 * population_fit.std
    score = np.linspace(population_fit.mean - reach, population_fit.mean + reach, 1_201)
    # By source: FPR and FNR at each threshold, and the least rate at which it is shown.
    curves: dict[str, tuple[FloatArray, FloatArray, float]] = {
        "true": (true_fpr, true_fnr, delta),
        "empirical": (
            share_at_or_below(population, thresholds),
            1 - share_at_or_below(train, thresholds),
            EMPIRICAL_LOW,
        ),
        "parametric": (
            ndtr((population_fit.mean - score) / population_fit.std),
            ndtr((score - train_fit.mean) / train_fit.std),
            delta,
        ),
    }
    frames: list[pd.DataFrame] = []
    for source, (fpr, fnr, low) in curves.items():
        usable = (np.minimum(fpr, fnr) >= low) & (np.maximum(fpr, fnr) <= 1 - low)
        stars = epsilon_star_from_rates(fpr[usable], fnr[usable], delta=delta)
        rates = {"false_positive_rate": fpr[usable], "epsilon_star": stars}
        frames.append(pd.DataFrame({"source": source, **rates}))
    fits = [_fit_row("training", train, train_fit)]
    fits.append(_fit_row("population", population, population_fit))
    return pd.concat(frames, ignore_index=True), pd.DataFrame(fits)


def _fit_row(name: str, losses: FloatArray, fit: NormalFit) -> dict[str, object]:
    """How far the losses of a set, and what was fitted to them, are from a normal."""
    standardised = (losses - losses.mean()) / losses.std()
    return {
        "set": name,
        "skewness_of_losses": float(np.mean(standardised**3)),
        "skewness": fit.skewness,
        "kurtosis": fit.kurtosis,
        "ks_distance": fit.ks_distance,
        "p_value": fit.ks_p_value,
    }
