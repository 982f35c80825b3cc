"""Epsilon*: how often confidence intervals hold the true value of normal losses."""

import math
from dataclasses import dataclass

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


@dataclass(frozen=True)
class CoverageConfig:
    """Settings of the coverage of intervals: normal losses with a known Epsilon*."""

    #: (gap of the means, ratio of the spreads) of population against training losses
    pairs: tuple[tuple[float, float], ...] = ((0.0, 1.0), (0.5, 1.0), (0.5, 1.2))
    size: int = 200  #: losses in each set
    draws: int = 100  #: samples for each pair
    delta: float = 1e-4  #: delta of Definition 1, in (0, 0.5)
    confidence: float = 0.95  #: nominal confidence of every interval, in (0, 1)
    seed: int = 0  #: seed of the samples, 0 or more


def interval_coverage(config: CoverageConfig, pair: tuple[float, float]) -> pd.DataFrame:
    """How often each interval holds the true value of one pair of normals (gap, ratio).

    One row per interval: gap, ratio, method, interval, true, coverage, standard_error, mean_width. One that
    cannot be formed counts as a miss.
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
        about = {"gap": gap, "ratio": ratio, "method": method, "interval": interval, "true": true[method]}
        error = math.sqrt(held.mean() * (1 - held.mean()) / config.draws)
        width = float(np.nanmean(ends[:, 1] - ends[:, 0]))
        rows.append({**about, "coverage": held.mean(), "standard_error": error, "mean_width": width})
    return pd.DataFrame(rows)


def _interval(
    config: CoverageConfig, draw: tuple[FloatArray, FloatArray], method: Method, interval: IntervalMethod
) -> tuple[float, float]:
    try:
        ends = epsilon_star(
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
    assert ends is not None
    return ends


def _true_clipped(gap: float, ratio: float, delta: float) -> float:
    tau = np.linspace(-10, 10 + gap, 40_001)
    rates = (np.clip(r, EMPIRICAL_LOW, 1 - EMPIRICAL_LOW) for r in (ndtr((tau - gap) / ratio), ndtr(-tau)))
    return float(epsilon_star_from_rates(*rates, delta=delta).max())
