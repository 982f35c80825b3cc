"""PANORAMIA with learned orders beside its trained attacks, on the same pools."""

from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd

from paperlib.audits.features import audit_panoramia_features
from paperlib.audits.panoramia.pools import Pool, Pools
from paperlib.audits.panoramia.results import TargetAudits
from paperlib.audits.panoramia.run import audit_pools
from paperlib.core import FloatArray

_MOST_COLUMNS = 100  # of an example's own numbers that a smooth model learns from


def learned_orders(pools: Pools, audits: TargetAudits, names: Sequence[str]) -> pd.DataFrame:
    """The judged games, and as many whole games of learned orders, which set nothing aside for training."""
    if pools.twins:
        raise ValueError("pools: learned orders draw a whole game, which pools of twins do not allow")
    config, pair = audits.config, (pools.members, pools.generated)
    seen = np.concatenate([_baseline(pool) for pool in pair])
    membership = np.arange(len(seen)) < len(pools.members)
    rows: list[dict[str, Any]] = []
    for name in names:
        start = perf_counter()
        not_kept, once = replace(pools, key=""), replace(config, repetitions=1)
        audit_pools(not_kept, once, targets=[name], audits=["panoramia"])  # played again for its seconds
        seconds = perf_counter() - start
        rows += [
            {
                **judged.row(search, config.confidence),
                "audit": f"trained attack, {search}",
                "seconds": seconds,
            }
            for judged in audits.select(target=name)
            for search in config.searches
        ]
        said = np.concatenate([_signed(pool.targets[name]) for pool in pair])
        for seed in range(config.seed, config.seed + config.repetitions):
            start = perf_counter()
            result = audit_panoramia_features(
                seen, said, membership, confidence=config.confidence, design="game", seed=seed
            )
            rows.append(
                {
                    "target": name,
                    "audit": "learned orders",
                    "m": result.members + result.nonmembers,
                    "c_lb": result.c_lb,
                    "c_plus_eps_lb": result.c_plus_epsilon_lb,
                    "seconds": perf_counter() - start,
                }
            )
    columns = ["c_lb", "c_plus_eps_lb", "seconds"]
    means = pd.DataFrame(rows).groupby(["target", "audit", "m"], sort=False)[columns].mean().reset_index()
    means.insert(5, "eps_tilde", (means["c_plus_eps_lb"] - means["c_lb"]).clip(lower=0))
    return means


def _baseline(pool: Pool) -> FloatArray:
    """The helpers' columns, then the example's own numbers."""
    columns = [_signed(values) for values in pool.helpers.values()]
    own = pool.examples.reshape(len(pool), -1)
    if own.dtype.kind in "biuf" and own.shape[1] <= _MOST_COLUMNS:
        columns.append(own)
    return np.column_stack([np.zeros((len(pool), 0)), *columns])


def _signed(outputs: FloatArray) -> FloatArray:
    """Outputs of a model, the loss in column 0 turned: higher means member."""
    return np.column_stack([-outputs[:, 0], outputs[:, 1:]])
