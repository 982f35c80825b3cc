"""Helpers that learned as much real data as they may: what they leave of the eps-tilde of a null target."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit
from scipy.stats import binomtest

from paperlib.audits.panoramia.folds import Answer, out_of_fold
from paperlib.audits.panoramia.game import AuditConfig
from paperlib.audits.panoramia.pools import (
    FOLDS,
    PLACEBO,
    Helper,
    Pools,
    add_helpers,
    pools_cache,
    with_helpers,
)
from paperlib.audits.panoramia.run import audit_pools
from paperlib.core import FloatArray, IntArray, check_in
from paperlib.io import code_tag
from paperlib.report import progress

MARGIN = 0.1
"""A null target passes where its interval lies within so many nats of 0."""
TODAY = "D_G and generated"
"""The helpers without folds: one learns D_G, one generated data, and there is no placebo."""


@dataclass(frozen=True, kw_only=True, eq=False)
class World:
    """A split, a generator, targets and null targets of one seed, and a way to train more such models."""

    pools: Pools  # with the helpers "synthetic" and "real"
    train: Callable[[IntArray, int], Answer]  # on D_G and on the members of these numbers, with a seed
    judged: int  # number of members that tests show; helpers and attacks may learn the others
    audit: AuditConfig
    about: Any  # all that `train` depends on, but for its arguments
    code: str  # the module that trains
    groups: IntArray | None = None  # of the members that may be learned; see `out_of_fold`
    seed: int  # of the folds

    @property
    def learned(self) -> int:
        """Number of members that helpers and attacks may learn."""
        return len(self.pools.members) - self.judged


def matched_pools(world: World, ratio: float, *, folds: int = 4) -> Pools:
    """Pools with a helper and a placebo whose models learn, out of fold, so many members per one judged."""
    members, most = round(ratio * world.judged), world.learned - -(-world.learned // folds)
    check_in(f"(0, {most / world.judged:.4g}]", "ratio", ratio)
    sizes = {kind: len(pool) for kind, pool in world.pools.by_kind().items()}

    def outputs(helper: Helper, salt: int) -> dict[str, FloatArray]:
        def train(rows: IntArray, fold: int) -> Answer:
            return world.train(rows, world.seed + 100 * salt + fold)

        kept = {"stage": helper.name, **about, "members": members, "seed": world.seed, "salt": salt}
        options: dict[str, Any] = {"learned": world.learned, "folds": folds, "most": members}
        options |= {"groups": world.groups, "seed": world.seed + salt, "label": helper.name}
        return pools_cache().get(kept, lambda: out_of_fold(train, sizes, **options))

    about = {"world": world.about, "code": code_tag(world.code), "folds": folds}
    said = {helper: outputs(helper, salt) for salt, helper in ((1, FOLDS), (2, PLACEBO))}
    chosen = _named(world.pools, "synthetic")
    return add_helpers(chosen, said, learned=world.learned, about={"ratio": ratio, **about})


def plain_pools(world: World) -> Pools:
    """The pools with the helpers "synthetic" and "real", and the same members judged."""
    chosen = _named(world.pools, "synthetic", "real")
    return add_helpers(chosen, {}, learned=world.learned, about="no folds")


def _named(pools: Pools, *names: str) -> Pools:
    helpers = {helper.name: helper for helper in pools.helpers}
    return with_helpers(pools, [helpers[name] for name in names])


def run_matched(
    data: str,
    build: Callable[[int], World],
    ratios: Sequence[float],
    *,
    worlds: Iterable[int],
    folds: int = 4,
) -> pd.DataFrame:
    """Audit the targets of several worlds with helpers as they are, and with each ratio."""
    rows = []
    for seed in progress(list(worlds), label=f"worlds of {data}"):
        world = build(seed)
        audit = replace(world.audit, form="helpers")
        for ratio in (None, *ratios):
            pools = plain_pools(world) if ratio is None else matched_pools(world, ratio, folds=folds)
            helpers, learned = (TODAY, np.nan) if ratio is None else ("out of fold", ratio)
            table = audit_pools(pools, audit, audits=["panoramia"]).table
            rows.append(table.assign(data=data, world=seed, helpers=helpers, ratio=learned))
    found = pd.concat(rows, ignore_index=True)
    found["difference"] = found["c_plus_eps_lb"] - found["c_lb"]
    columns = ["data", "world", "helpers", "ratio", "target", "null", "seed", "c_lb", "c_plus_eps_lb"]
    return found[[*columns, "difference", "m"]]


def over_worlds(games: pd.DataFrame, *, confidence: float = 0.95) -> pd.DataFrame:
    """Means of `run_matched` with t-intervals over worlds, each with the mean of its games."""
    about = ["data", "helpers", "ratio", "target", "null"]
    means = games.groupby([*about, "world"], sort=False, dropna=False)[["c_lb", "difference"]].mean()
    groups = means.reset_index().groupby(about, sort=False, dropna=False)
    table = groups.agg(c_lb=("c_lb", "mean"), eps_tilde=("difference", "mean"),
                       sd=("difference", "std"), worlds=("world", "size")).reset_index()  # fmt: skip
    count = table["worlds"]
    half = stdtrit(np.maximum(count - 1, 1), (1 + confidence) / 2) * table.pop("sd") / np.sqrt(count)
    half = half.where(count > 1, np.inf)
    played = games.groupby(about, sort=False, dropna=False).size().to_numpy()
    table.insert(7, "low", table["eps_tilde"] - half)
    table.insert(8, "high", table["eps_tilde"] + half)
    inside = (table["low"] >= -MARGIN) & (table["high"] <= MARGIN)
    return table.assign(games=played, passes=inside.astype(object).where(table["null"], np.nan))


def false_alarms(games: pd.DataFrame, *, confidence: float = 0.95) -> pd.DataFrame:
    """In how many worlds the t-interval of a null target over its games lies above `MARGIN` as a whole."""
    about = ["data", "helpers", "ratio"]
    nulls = games[games["null"].astype(bool)]
    each = nulls.groupby([*about, "world"], sort=False, dropna=False)["difference"].agg(
        ["mean", "std", "size"]
    )
    half = stdtrit(each["size"] - 1, (1 + confidence) / 2) * each["std"] / np.sqrt(each["size"])
    alarms = (each["mean"] - half > MARGIN).groupby(about, sort=False, dropna=False).agg(["size", "sum"])
    table = alarms.rename(columns={"size": "worlds", "sum": "alarms"}).reset_index()
    tests = [binomtest(int(k), int(n)).proportion_ci(method="exact")
             for k, n in zip(table["alarms"], table["worlds"], strict=True)]  # fmt: skip
    return table.assign(
        share=table["alarms"] / table["worlds"],
        low=[one.low for one in tests],
        high=[one.high for one in tests],
    )
