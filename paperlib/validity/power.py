"""How much of a known epsilon each sound one-run bound shows: mean bounds over seeded audits."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from paperlib.bounds import audit_f_dp, audit_one_run
from paperlib.core import MembershipScores
from paperlib.validity.mechanisms import gaussian

Bound = Callable[[MembershipScores, float, float], float]


@dataclass(frozen=True)
class PowerConfig:
    """Settings of the comparison.

    Attributes:
        sizes: Audit examples m.
        deltas: Deltas tested; 0 compares pure bounds, where the truth is infinite.
        draws: Audits per size.
        mu: Distance between members and non-members in standard deviations.
        confidence: Confidence level of every bound, in (0, 1).
        seed: Seed of the scores, 0 or more.
    """

    sizes: tuple[int, ...] = (1_000, 10_000, 100_000)
    deltas: tuple[float, ...] = (0.0, 1e-6, 1e-5, 1e-4)
    draws: int = 10
    mu: float = 1.0
    confidence: float = 0.95
    seed: int = 0


def _one_run(**options: object) -> Bound:
    def bound(scores: MembershipScores, delta: float, confidence: float) -> float:
        return audit_one_run(scores, delta=delta, confidence=confidence, **options).epsilon  # type: ignore

    return bound


def _curve(family: str) -> Bound:
    def bound(scores: MembershipScores, delta: float, confidence: float) -> float:
        return audit_f_dp(scores, delta=delta, confidence=confidence, family=family).epsilon  # type: ignore

    return bound


BOUNDS: dict[str, Bound] = {
    "anytime (default)": _one_run(),
    "dyadic counts, sharp delta": _one_run(thresholds="dyadic", delta_term="sharp"),
    "dyadic counts, published delta": _one_run(thresholds="dyadic"),
    "every count, published delta": _one_run(thresholds="bonferroni"),
    "split in halves": _one_run(thresholds="split"),
    "(epsilon, delta) curve, dyadic": _curve("approximate"),
    "Gaussian curve assumed, dyadic": _curve("gaussian"),
}


def mean_bounds(config: PowerConfig) -> pd.DataFrame:
    """Mean bound of every search on the same Gaussian scores.

    Args:
        config: Sizes, deltas, draws and seed.

    Returns:
        One row per bound, size and delta: bound, examples, delta, truth, mean, lowest, highest.

    >>> table = mean_bounds(PowerConfig(sizes=(200,), deltas=(1e-4,), draws=2))
    >>> list(table.columns)
    ['bound', 'examples', 'delta', 'truth', 'mean', 'lowest', 'highest']
    """
    rows: list[dict[str, object]] = []
    for m in config.sizes:
        rng = np.random.default_rng([config.seed, m])
        draw = gaussian(config.mu, 1e-5).draw
        audits = [draw(rng, m) for _ in range(config.draws)]
        for delta in config.deltas:
            truth = gaussian(config.mu, delta).epsilon if delta > 0 else np.inf
            for name, bound in BOUNDS.items():
                if delta == 0 and "Gaussian" in name:
                    continue  # that curve has no finite epsilon at delta = 0
                bounds = [bound(scores, delta, config.confidence) for scores in audits]
                rows.append(
                    {
                        "bound": name,
                        "examples": m,
                        "delta": delta,
                        "truth": truth,
                        "mean": float(np.mean(bounds)),
                        "lowest": min(bounds),
                        "highest": max(bounds),
                    }
                )
    return pd.DataFrame(rows)
