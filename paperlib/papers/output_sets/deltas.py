"""Optimal output sets under approximate differential privacy (Figure 6)."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from paperlib.bounds import SelectionRule, audit_output_set
from paperlib.bounds.output_sets.choices import METHODS
from paperlib.papers.output_sets.mechanisms import MECHANISMS, draw_scores, exact_epsilon


@dataclass(frozen=True)
class DeltaConfig:
    """Settings of Figure 6."""

    scales: dict[str, float]  #: one component scale per mechanism
    deltas: tuple[float, ...]  #: values of delta, in [0, 1)
    m: int = 1000  #: half the number of scores: 2m are drawn to select with and 2m to evaluate on
    trials: int = 5  #: independent audits
    error_divisor: float = 1.0  #: divisor of the error level while the set is selected, 1 or more
    confidence: float = 0.95  #: confidence level of each bound, in (0, 1)
    seed: int = 0  #: seed of all random draws, 0 or more


def over_delta(config: DeltaConfig) -> pd.DataFrame:
    """Audit the same scores at every delta.

    Returns:
        One row per mechanism, delta, trial and method, with the bound and the exact epsilon at that delta.
    """
    return pd.DataFrame(
        row for mechanism, scale in config.scales.items() for row in _audits(config, mechanism, scale)
    )


def _audits(config: DeltaConfig, mechanism: str, scale: float) -> Iterator[dict[str, object]]:
    exact = {delta: exact_epsilon(mechanism, scale, delta) for delta in config.deltas}
    options: dict[str, Any] = {
        "confidence": config.confidence,
        "rule": SelectionRule(error_divisor=config.error_divisor),
    }
    for trial in range(config.trials):
        rng = np.random.default_rng([config.seed, MECHANISMS.index(mechanism), trial])
        pair = [draw_scores(rng, mechanism, scale, 2 * config.m) for _ in range(2)]
        for delta, method in itertools.product(config.deltas, METHODS):
            about = {"mechanism": mechanism, "scale": scale, "m": config.m, "delta": delta, "trial": trial}
            epsilon = audit_output_set(*pair, method=method, delta=delta, **options).epsilon
            yield {**about, "method": method, "epsilon": epsilon, "exact_epsilon": exact[delta]}
