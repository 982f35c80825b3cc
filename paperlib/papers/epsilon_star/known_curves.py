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

_GAP = 3.0  # of the means of N(0, 1) training losses and N(gap, 1) population losses
_SMALLEST_RATE = 1e-9  # least error rate that is shown


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
    """Distance of the empirical first two terms of Equation 7 from the true ones, by draw and threshold.

    As `curve_terms`, of this number of samples.
    """
    rng = np.random.default_rng(seed)
    tau = np.linspace(-4.5, _GAP + 4.5, 600)
    true = _true_terms(tau, size)
    gaps = {term: np.empty((draws, tau.size)) for term in ("first", "second")}
    for draw in range(draws):
        sample = _sampled_terms(*_sample(rng, size), tau)
        for term, rows in gaps.items():
            rows[draw] = np.log(sample[term]) - np.log(true[term])
    rates = {"first": true["fpr"].to_numpy(), "second": 1 - true["tpr"].to_numpy()}
    return {term: RatioErrors(rates[term], rows) for term, rows in gaps.items()}


def curve_noise(errors: Mapping[str, RatioErrors]) -> pd.DataFrame:
    """The errors by decade of the rate in the denominator."""
    return pd.DataFrame(
        {"rate_from": low, "rate_to": high}
        | {term: _rms(found.at(low, high)) for term, found in errors.items()}
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
