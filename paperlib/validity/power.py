"""How much of a known epsilon each sound one-run bound shows: mean bounds over seeded audits."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd

from paperlib.bounds import FdpResult, OneRunResult, audit_f_dp, audit_one_run
from paperlib.core.work import alike
from paperlib.validity.mechanisms import gaussian


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


BOUNDS: dict[str, Callable[..., OneRunResult | FdpResult]] = {
    "anytime (default)": audit_one_run,
    "dyadic counts, sharp delta": partial(audit_one_run, thresholds="dyadic", delta_term="sharp"),
    "dyadic counts, published delta": partial(audit_one_run, thresholds="dyadic"),
    "every count, published delta": partial(audit_one_run, thresholds="bonferroni"),
    "split in halves": partial(audit_one_run, thresholds="split"),
    "(epsilon, delta) curve, dyadic": partial(audit_f_dp, family="approximate"),
    "Gaussian curve assumed, dyadic": partial(audit_f_dp, family="gaussian"),
}


def mean_bounds(config: PowerConfig) -> pd.DataFrame:
    """Mean bound of every search on the same Gaussian scores.

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
            options = {"delta": delta, "confidence": config.confidence}
            for name, bound in BOUNDS.items():
                if delta == 0 and "Gaussian" in name:
                    continue  # that curve has no finite epsilon at delta = 0
                each = partial(bound, **options)
                bounds = [one.epsilon for one in alike(each, audits, "audits")]
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
