"""Epsilon*: how often confidence intervals hold the true value of normal losses."""

import math
from functools import partial

import numpy as np
import pandas as pd
from scipy.special import ndtr

from paperlib.bounds import epsilon_star, epsilon_star_from_rates, epsilon_star_normals
from paperlib.bounds.loss_rates.audit import IntervalMethod, Method
from paperlib.core import FloatArray
from paperlib.papers.epsilon_star.gamma_losses import EMPIRICAL_LOW

INTERVALS: tuple[tuple[Method, IntervalMethod], ...] = (
    ("parametric", "region"),
    ("parametric", "delta"),
    ("parametric", "bca"),
    ("empirical", "band"),
    ("empirical", "bca"),
)


PAIRS = ((0.0, 1.0), (0.5, 1.0), (0.5, 1.2))
"""Gap of the means and ratio of the spreads of population against training losses."""

_DELTA = 1e-4


def interval_coverage(
    pair: tuple[float, float], *, size: int, draws: int, confidence: float = 0.95, seed: int = 0
) -> pd.DataFrame:
    """How often each interval holds the true value of one pair of normals (gap, ratio)."""
    gap, ratio = pair
    true = {
        "parametric": epsilon_star_normals(0, 1, gap, ratio, delta=_DELTA),
        "empirical": _true_clipped(gap, ratio),
    }
    rng = np.random.default_rng(seed)
    samples = [(rng.normal(0, 1, size), rng.normal(gap, ratio, size)) for _ in range(draws)]
    rows: list[dict[str, object]] = []
    for method, interval in INTERVALS:
        own = partial(_interval, method=method, interval=interval, confidence=confidence)
        ends = np.array([own(sample) for sample in samples])
        held = (ends[:, 0] <= true[method] + 1e-9) & (true[method] <= ends[:, 1] + 1e-9)
        about = {"gap": gap, "ratio": ratio, "method": method, "interval": interval, "true": true[method]}
        error = math.sqrt(held.mean() * (1 - held.mean()) / draws)
        width = float(np.nanmean(ends[:, 1] - ends[:, 0]))
        rows.append({**about, "coverage": held.mean(), "standard_error": error, "mean_width": width})
    return pd.DataFrame(rows)


def _interval(
    sample: tuple[FloatArray, FloatArray], method: Method, interval: IntervalMethod, confidence: float
) -> tuple[float, float]:
    try:
        ends = epsilon_star(
            *sample,
            method=method,
            delta=_DELTA,
            confidence=confidence,
            transform="none",
            interval_method=interval,
        ).interval
    except ValueError:
        if interval != "bca":
            raise
        return math.nan, math.nan
    assert ends is not None
    return ends


def _true_clipped(gap: float, ratio: float) -> float:
    tau = np.linspace(-10, 10 + gap, 40_001)
    rates = (np.clip(r, EMPIRICAL_LOW, 1 - EMPIRICAL_LOW) for r in (ndtr((tau - gap) / ratio), ndtr(-tau)))
    return float(epsilon_star_from_rates(*rates, delta=_DELTA).max())
