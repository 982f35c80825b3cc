"""PANORAMIA with learned orders beside its trained attacks, on the same pools."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd

from paperlib.audits.features import Classifier
from paperlib.audits.panoramia.pools import Pool, Pools
from paperlib.audits.panoramia.results import TargetAudits
from paperlib.audits.panoramia.run import audit_pools
from paperlib.audits.panoramia_features import audit_panoramia_features
from paperlib.core import FloatArray

TRAINED, LEARNED = "trained attack", "learned orders"
_MOST_COLUMNS = 100  # of an example's own numbers that a smooth model learns from


def learned_orders(
    pools: Pools,
    audits: TargetAudits,
    names: Sequence[str],
    *,
    model: Classifier | None = None,
) -> pd.DataFrame:
    """The page's trained attacks, and learned orders on a whole game of members against generated examples.

    The baseline of the learned orders sees each example's own numbers, if they are 100 at most, and all
    helpers; the attack sees the target too. They play as many games as the trained attacks, and nothing is
    set aside for training.
    """
    if pools.twins:
        raise ValueError("pools: learned orders draw a whole game, which pools of twins do not allow")
    rows = [*_trained(pools, audits, names), *_learned(pools, audits, names, model)]
    columns = ["c_lb", "c_plus_eps_lb", "seconds"]
    means = pd.DataFrame(rows).groupby(["target", "audit", "m"], sort=False)[columns].mean().reset_index()
    means.insert(5, "eps_tilde", (means["c_plus_eps_lb"] - means["c_lb"]).clip(lower=0))
    return pd.concat([means[means["target"] == name] for name in names], ignore_index=True)


def _trained(pools: Pools, audits: TargetAudits, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The judged games; one of them is played again, on pools that are not kept, for its seconds."""
    once = replace(audits.config, repetitions=1)
    for name in names:
        start = perf_counter()
        audit_pools(replace(pools, key=""), once, targets=[name], audits=["panoramia"])
        seconds = perf_counter() - start
        for judged in audits.select("panoramia", target=name):
            for search in audits.config.searches:
                yield {
                    **judged.row(search, audits.config.confidence),
                    "audit": f"{TRAINED}, {search}",
                    "seconds": seconds,
                }


def _learned(
    pools: Pools, audits: TargetAudits, names: Sequence[str], model: Classifier | None
) -> Iterator[dict[str, Any]]:
    pair = (pools.members, pools.generated)
    seen = np.concatenate([_baseline(pool) for pool in pair])
    membership = np.arange(len(seen)) < len(pools.members)
    for name in names:
        said = np.concatenate([_signed(pool.targets[name]) for pool in pair])
        for game in range(audits.config.repetitions):
            start = perf_counter()
            result = audit_panoramia_features(
                seen,
                said,
                membership,
                confidence=audits.config.confidence,
                design="game",
                seed=audits.config.seed + game,
                model=model,
            )
            yield {
                "target": name,
                "audit": LEARNED,
                "m": result.members + result.nonmembers,
                "c_lb": result.c_lb,
                "c_plus_eps_lb": result.c_plus_epsilon_lb,
                "seconds": perf_counter() - start,
            }


def _baseline(pool: Pool) -> FloatArray:
    """The helpers' columns, then the example's own numbers."""
    columns = [_signed(values) for values in pool.helpers.values()]
    own = pool.examples.reshape(len(pool), -1)
    if own.dtype.kind in "biuf" and own.shape[1] <= _MOST_COLUMNS:
        columns.append(own)
    return np.column_stack([np.zeros((len(pool), 0)), *columns])


def _signed(outputs: FloatArray) -> FloatArray:
    """Outputs of a model, the loss in column 0 with its sign turned: higher means member."""
    return np.column_stack([-outputs[:, 0], outputs[:, 1:]])
