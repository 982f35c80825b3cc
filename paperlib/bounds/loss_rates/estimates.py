"""Epsilon* of two samples of losses, parametric and empirical, with its interval."""

import math
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from paperlib.bounds.loss_rates import intervals as intervals
from paperlib.bounds.loss_rates.rates import (
    EMPIRICAL_RANGE,
    BestThreshold,
    NormalFit,
    best_empirical_threshold,
    best_normal_threshold,
    fit_normal,
)
from paperlib.core import FloatArray

Transform = Literal["paper", "none"]

_SMALLEST_FOR_INTERVAL = 20


@dataclass(frozen=True, kw_only=True)
class RatesEstimate:
    """Epsilon* of two samples of losses."""

    best: BestThreshold  # threshold that attains the supremum, in the unit it was searched in
    threshold: float  # the same threshold as a loss
    interval: tuple[float, float] | None  # confidence interval, nats, or None
    rate_range: tuple[float, float]  # rates the supremum runs over
    fits: tuple[NormalFit, NormalFit] | None = None  # training and population, transformed (parametric only)


def relative(mean_train: float, std_train: float, mean_other: float, std_other: float) -> tuple[float, float]:
    """Gap of the means and ratio of the standard deviations, in units of the members."""
    ratio = float(std_other) / float(std_train)
    if not 1e-300 < ratio < 1e300:
        raise ValueError(f"std_population: {std_other!r} is out of all proportion to std_train {std_train!r}")
    return (float(mean_other) - float(mean_train)) / float(std_train), ratio


def parametric(
    train: FloatArray,
    population: FloatArray,
    delta: float,
    transform: Transform,
    confidence: float | None,
    interval_method: str | None,
    seed: int,
) -> RatesEstimate:
    """Epsilon* of the normals fitted to the transformed losses."""
    smallest = float(min(train.min(), population.min()))
    scale = float(max(train.max(), population.max())) - smallest
    if not 0 < scale < math.inf:
        problem = f"all equal {smallest:g}" if scale == 0 else "too far apart for floats"
        raise ValueError(
            f"train_losses and population_losses: expected a spread of losses, they are {problem}"
        )
    pair = _scores(train, smallest, scale, transform), _scores(population, smallest, scale, transform)
    fits = (
        fit_normal(pair[0], name="train_losses (as fitted)"),
        fit_normal(pair[1], name="population_losses (as fitted)"),
    )
    gap, ratio = relative(fits[0].mean, fits[0].std, fits[1].mean, fits[1].std)
    best = best_normal_threshold(gap, ratio, delta)
    score = fits[0].mean + fits[0].std * best.threshold
    interval = None
    if confidence is not None:
        if min(fits[0].size, fits[1].size) < _SMALLEST_FOR_INTERVAL:
            raise ValueError(
                f"confidence: a large-sample interval needs at least {_SMALLEST_FOR_INTERVAL} losses in each "
                f"set, got {fits[0].size} and {fits[1].size}"
            )
        if interval_method == "region":
            interval = intervals.region_interval(*fits, delta, confidence)
        elif interval_method == "delta":
            interval = intervals.delta_method_interval(*fits, delta, confidence)
        else:
            statistic = partial(intervals.resampled_normals_epsilon, delta=delta)
            interval = intervals.bootstrap_interval(*pair, statistic, confidence, seed=seed)
    return RatesEstimate(
        best=best,
        threshold=_loss(score, smallest, scale, transform),
        interval=interval,
        rate_range=(delta, 1 - delta),
        fits=fits,
    )


def _scores(losses: FloatArray, smallest: float, scale: float, transform: str) -> FloatArray:
    """Appendix B: min-max, plus alpha = 1, p = exp(-x), logit(p); falls as the loss grows."""
    if transform == "none":
        return -losses
    return -np.log(np.expm1(1 + (losses - smallest) / scale))


def _loss(score: float, smallest: float, scale: float, transform: str) -> float:
    """Inverse of `_scores`."""
    return -score if transform == "none" else smallest + scale * (float(np.logaddexp(0.0, -score)) - 1)


def empirical(
    train: FloatArray,
    population: FloatArray,
    delta: float,
    confidence: float | None,
    interval_method: str | None,
    seed: int,
) -> RatesEstimate:
    """Epsilon* of the empirical distributions, rates in `EMPIRICAL_RANGE`."""
    low, high = EMPIRICAL_RANGE
    best = best_empirical_threshold(train, population, delta, low=low, high=high)
    interval = None
    if confidence is not None and interval_method == "band":
        interval = intervals.band_interval(train, population, delta, confidence, low=low, high=high)
    elif confidence is not None:
        ranks = np.unique(np.concatenate([train, population]), return_inverse=True)[1].astype(np.float64)
        statistic = partial(intervals.resampled_empirical_epsilon, delta=delta, low=low, high=high)
        pair = ranks[: train.size], ranks[train.size :]
        interval = intervals.bootstrap_interval(*pair, statistic, confidence, seed=seed)
    return RatesEstimate(best=best, threshold=best.threshold, interval=interval, rate_range=EMPIRICAL_RANGE)
