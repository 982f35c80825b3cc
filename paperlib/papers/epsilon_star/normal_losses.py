"""Normal losses, whose Epsilon* is known: the ratios of Equation 7 (Figure 3), and coverage of intervals."""

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtr

from paperlib.bounds import epsilon_star, epsilon_star_from_rates, epsilon_star_normals
from paperlib.bounds.loss_rates.audit import IntervalMethod, Method
from paperlib.core import FloatArray
from paperlib.training import paper_delta

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
    """The first two ratios of Equation 7 from the true distributions and from one sample (Figure 3)."""
    train, population = _sample(np.random.default_rng(seed), size)
    true = _true_terms(np.linspace(-6.5, _GAP + 6.5, 2_001), size)
    sample = _sampled_terms(train, population, np.sort(np.concatenate([train, population])))
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


def ratio_errors(*, size: int, draws: int, seed: int = 0) -> dict[str, RatioErrors]:
    """Distance of sampled from true ratios of `curve_terms`, by draw and threshold."""
    rng = np.random.default_rng(seed)
    tau = np.linspace(-4.5, _GAP + 4.5, 600)
    true = _true_terms(tau, size)
    gaps = {term: np.empty((draws, tau.size)) for term in _RATIOS}
    for draw in range(draws):
        sample = _sampled_terms(*_sample(rng, size), tau)
        for term, rows in gaps.items():
            rows[draw] = np.log(sample[term]) - np.log(true[term])
    rates = {"tpr_ratio": true["fpr"].to_numpy(), "tnr_ratio": 1 - true["tpr"].to_numpy()}
    return {term: RatioErrors(rates[term], rows) for term, rows in gaps.items()}


def curve_noise(errors: Mapping[str, RatioErrors]) -> pd.DataFrame:
    """The errors by decade of the rate in the denominator."""
    return pd.DataFrame(
        {"rate_from": low, "rate_to": high} | {term: _rms(one.at(low, high)) for term, one in errors.items()}
        for low, high in itertools.pairwise([1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0])
    )


def _sample(rng: np.random.Generator, size: int) -> tuple[FloatArray, FloatArray]:
    return rng.normal(0, 1, size), rng.normal(_GAP, 1, size)


def _true_terms(tau: FloatArray, size: int) -> pd.DataFrame:
    return _two_terms(ndtr(tau), ndtr(-tau), ndtr(tau - _GAP), ndtr(_GAP - tau), size)


def _sampled_terms(train: FloatArray, population: FloatArray, tau: FloatArray) -> pd.DataFrame:
    tpr, fpr = share_at_or_below(train, tau), share_at_or_below(population, tau)
    return _two_terms(tpr, 1 - tpr, fpr, 1 - fpr, train.size)


def _two_terms(tpr: FloatArray, fnr: FloatArray, fpr: FloatArray, tnr: FloatArray, size: int) -> pd.DataFrame:
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
    present = values[np.isfinite(values)]
    return float(np.sqrt(np.mean(present**2))) if present.size else math.nan


def interval_coverage(
    pair: tuple[float, float], *, size: int, draws: int, confidence: float = 0.95, seed: int = 0
) -> pd.DataFrame:
    """How often each interval holds the true value of one pair of normals (gap, ratio)."""
    gap, ratio = pair
    tau = np.linspace(-10, 10 + gap, 40_001)
    rates = (np.clip(r, EMPIRICAL_LOW, 1 - EMPIRICAL_LOW) for r in (ndtr((tau - gap) / ratio), ndtr(-tau)))
    true = {
        "parametric": epsilon_star_normals(0, 1, gap, ratio, delta=_DELTA),
        "empirical": float(epsilon_star_from_rates(*rates, delta=_DELTA).max()),
    }
    rng = np.random.default_rng(seed)
    samples = [(rng.normal(0, 1, size), rng.normal(gap, ratio, size)) for _ in range(draws)]
    rows: list[dict[str, object]] = []
    for method, interval in _INTERVALS:
        ends = np.array([_interval(sample, method, interval, confidence) for sample in samples])
        held = (ends[:, 0] <= true[method] + 1e-9) & (true[method] <= ends[:, 1] + 1e-9)
        about = {"gap": gap, "ratio": ratio, "method": method, "interval": interval, "true": true[method]}
        error = math.sqrt(held.mean() * (1 - held.mean()) / draws)
        width = float(np.nanmean(ends[:, 1] - ends[:, 0]))
        rows.append({**about, "coverage": held.mean(), "standard_error": error, "mean_width": width})
    return pd.DataFrame(rows)


def _interval(
    sample: tuple[FloatArray, FloatArray], method: Method, interval: IntervalMethod, confidence: float
) -> tuple[float, float]:
    """NaN where the bootstrap gives none."""
    how: dict[str, Any] = {"method": method, "interval_method": interval, "transform": "none"}
    try:
        ends = epsilon_star(*sample, delta=_DELTA, confidence=confidence, **how).interval
    except ValueError:
        if interval != "bca":
            raise
        return math.nan, math.nan
    assert ends is not None
    return ends
