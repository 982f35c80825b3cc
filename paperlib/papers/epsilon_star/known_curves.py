"""Epsilon* of normal losses: the ratios of Equation 7 at every threshold, true and sampled (Figure 3)."""

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import ndtr

from paperlib.core import FloatArray
from paperlib.training import paper_delta


@dataclass(frozen=True)
class CurveConfig:
    """Settings of Figure 3: N(0, 1) training losses against N(gap, 1) population losses."""

    gap: float = 3.0  #: distance of the means
    size: int = 10_000  #: losses in each set; the paper does not state its number
    draws: int = 50  #: samples whose deviations from the true curve are averaged
    smallest_rate: float = 1e-9  #: least error rate that is shown
    seed: int = 0  #: seed of the samples, 0 or more


def curve_terms(config: CurveConfig) -> pd.DataFrame:
    """The first two ratios of Equation 7 from the true distributions and from one sample (Figure 3).

    Returns:
        Columns source, tpr, fpr, position ((TPR + FPR) / 2), first and second (the ratios; missing where
        their denominator or numerator is too small to use).
    """
    rng = np.random.default_rng(config.seed)
    train, population = rng.normal(0, 1, config.size), rng.normal(config.gap, 1, config.size)
    true = _true_terms(np.linspace(-6.5, config.gap + 6.5, 2_001), config)
    sample = _sampled_terms(train, population, np.sort(np.concatenate([train, population])), config)
    return pd.concat([true.assign(source="true"), sample.assign(source="empirical")], ignore_index=True)


@dataclass(frozen=True, eq=False)
class RatioErrors:
    """Errors of one sampled ratio."""

    rates: FloatArray  #: true rate in the denominator at each threshold, shape (thresholds,)
    #: sampled less true log ratio, nats, shape (draws, thresholds); NaN where there is none
    errors: FloatArray

    def at(self, low: float, high: float) -> FloatArray:
        """Errors at rates above ``low`` and up to ``high``."""
        return self.errors[:, (self.rates > low) & (self.rates <= high)]

    def rms(self, low: float, high: float) -> FloatArray:
        """Root mean square of each draw at these rates, shape (draws,)."""
        return np.array([_rms(draw) for draw in self.at(low, high)])


def ratio_errors(config: CurveConfig) -> dict[str, RatioErrors]:
    """Distance of the empirical first two terms of Equation 7 from the true ones, by draw and threshold."""
    rng = np.random.default_rng(config.seed)
    tau = np.linspace(-4.5, config.gap + 4.5, 600)
    true = _true_terms(tau, config)
    gaps = {term: np.empty((config.draws, tau.size)) for term in ("first", "second")}
    for draw in range(config.draws):
        train, population = rng.normal(0, 1, config.size), rng.normal(config.gap, 1, config.size)
        sample = _sampled_terms(train, population, tau, config)
        for term, rows in gaps.items():
            rows[draw] = np.log(sample[term]) - np.log(true[term])
    rates = {"first": true["fpr"].to_numpy(), "second": 1 - true["tpr"].to_numpy()}
    return {term: RatioErrors(rates[term], rows) for term, rows in gaps.items()}


def curve_noise(errors: Mapping[str, RatioErrors]) -> pd.DataFrame:
    """The errors by decade of the rate in the denominator.

    Returns:
        Columns rate_from, rate_to, first and second (root mean square over thresholds and draws, nats).
    """
    return pd.DataFrame(
        {"rate_from": low, "rate_to": high}
        | {term: _rms(found.at(low, high)) for term, found in errors.items()}
        for low, high in itertools.pairwise([1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0])
    )


def _true_terms(tau: FloatArray, config: CurveConfig) -> pd.DataFrame:
    return _two_terms(ndtr(tau), ndtr(-tau), ndtr(tau - config.gap), ndtr(config.gap - tau), config)


def _sampled_terms(
    train: FloatArray, population: FloatArray, tau: FloatArray, config: CurveConfig
) -> pd.DataFrame:
    tpr, fpr = share_at_or_below(train, tau), share_at_or_below(population, tau)
    return _two_terms(tpr, 1 - tpr, fpr, 1 - fpr, config)


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


def share_at_or_below(sample: FloatArray, points: FloatArray) -> FloatArray:
    """Share of a sample, shape (n,), at or below each point, shape of ``points``."""
    return np.searchsorted(np.sort(sample), points, side="right") / sample.size


def _rms(values: FloatArray) -> float:
    present = values[np.isfinite(values)]
    return float(np.sqrt(np.mean(present**2))) if present.size else math.nan
