"""Null targets: how often leakage is reported for them, and what helpers leave that learned real
data.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from paperlib.attacks.learned import BoostedTrees
from paperlib.audits.panoramia.folds import Answer, out_of_fold
from paperlib.audits.panoramia.game import FORMS, AuditConfig
from paperlib.audits.panoramia.pools import (
    FOLDS,
    PLACEBO,
    SYNTHETIC,
    Helper,
    Pool,
    Pools,
    Target,
    add_helpers,
    pools_cache,
    with_helpers,
)
from paperlib.audits.panoramia.run import audit_pools
from paperlib.audits.panoramia.table_models import Learning
from paperlib.core import (
    FloatArray,
    IntArray,
    check_at_least,
    check_confidence,
    check_in,
    share_interval,
)
from paperlib.io import code_tag
from paperlib.papers.panoramia.tables.pools import PartSizes, TabularConfig, build_pools
from paperlib.report import progress

CONTRAST = "(contrast)"
"""Ends the names of worlds in which the helper is too weak, so that the control must fail."""

NOTABLE = 0.1
"""An eps-tilde above this is counted on its own, nats."""


@dataclass(frozen=True, kw_only=True)
class NullControl:
    """How the control is run; its tables are randhie's."""

    repetitions: int = 50  # worlds of each kind; of those that are there for contrast, half as many
    members: int = 400  # members (and generated examples) of each world
    epochs: int = 40  # of target and helpers, on tables
    confidence: float = 0.95  # of each audit
    seed: int = 0  # of the first world

    def __post_init__(self) -> None:
        check_confidence(self.confidence)
        check_at_least(1, repetitions=self.repetitions)
        check_at_least(100, members=self.members)

    def audit(self) -> AuditConfig:
        """One game that fits these members."""
        return AuditConfig(
            train=2 * (self.members // 4),
            validation=2 * (self.members // 10),
            test=int(0.95 * self.members),
            attacks=(BoostedTrees(leaves=4, learning_rate=0.15, rounds=30, smallest_leaf=10),),
            restarts=1,
            repetitions=1,
            confidence=self.confidence,
        )

    def worlds(self) -> Mapping[str, Callable[[int], Pools]]:
        """Kinds of worlds: from a seed to pools with a null target."""
        return {
            "table": lambda seed: self._table("tree", "rejection", seed),
            "toy": lambda seed: toy_pools(self.members, 1.0, seed=seed),
            f"table, columns drawn apart {CONTRAST}": lambda seed: self._table(
                "columns", "none", seed
            ),
            f"toy, helper knows nothing {CONTRAST}": lambda seed: toy_pools(
                self.members, 0.0, seed=seed
            ),
        }

    def _table(self, generator: str, rows_filter: str, seed: int) -> Pools:
        sizes = PartSizes(generator=400, members=self.members, null=self.members, nonmembers=50)
        config = TabularConfig(
            sizes=sizes,
            generator=generator,
            filter=rows_filter,
            epochs=(self.epochs,),
            dp_epsilons=(),
            learning=Learning(hidden=(32,), batch_size=200, learning_rate=1e-2),
            helper_rows=self.members,
            seed=seed,
        )
        return build_pools(config, only_null=True)


def toy_pools(members: int, helper_knows: float, *, shift: float = 0.8, seed: int = 0) -> Pools:
    """Normal examples and generated ones ``shift`` standard deviations off, which a null target
    sees.
    """
    check_in("[0, 1]", "helper_knows", helper_knows)
    rng = np.random.default_rng(seed)

    def pool(mean: float) -> Pool:
        # Examples show x with noise; the target's loss is the exact log density ratio of x, and the
        # helper's the same to the part that it knows.
        x = mean + rng.standard_normal((members, 1))
        seen, loss = x + 2 * rng.standard_normal(x.shape), shift * (x - shift / 2)
        helper = helper_knows * loss + (1 - helper_knows) * rng.standard_normal(x.shape)
        return Pool(seen, {"synthetic": helper}, {"null": loss})

    return Pools(pool(0.0), pool(shift), None, (Target("null", "null", 0),), (SYNTHETIC,))


def run_null_control(
    control: NullControl, worlds: Mapping[str, Callable[[int], Pools]] | None = None
) -> pd.DataFrame:
    """Audit the null targets of many worlds, in both forms."""
    found = []
    for name, build in (control.worlds() if worlds is None else worlds).items():
        count = -(-control.repetitions // 2) if name.endswith(CONTRAST) else control.repetitions
        for seed in progress(range(control.seed, control.seed + count), label=name):
            pools = build(seed)
            nulls = [target.name for target in pools.targets if target.kind == "null"]
            for form in FORMS:
                audit = replace(control.audit(), form=form, seed=seed)
                table = audit_pools(pools, audit, targets=nulls, audits=["panoramia"]).table
                found.append(table.assign(world=name, seed=seed))
    columns = ["world", "seed", "form", "search", "c_lb", "c_plus_eps_lb", "eps_tilde"]
    return pd.concat(found, ignore_index=True)[columns]


def _shares(hits: pd.Series, counts: pd.Series) -> pd.DataFrame:
    """Shares with their Clopper-Pearson intervals."""
    ends = [share_interval(int(k), int(n)) for k, n in zip(hits, counts, strict=True)]
    low, high = np.reshape(ends, (-1, 2)).T
    return pd.DataFrame({"share": hits / counts, "low": low, "high": high})


def false_positives(rows: pd.DataFrame) -> pd.DataFrame:
    """Share of null targets with an eps-tilde above 0 and above `NOTABLE`, with Clopper-Pearson
    intervals.
    """
    groups = rows.groupby(["world", "form", "search"], sort=False)
    table = groups["c_lb"].agg(repetitions="size", c_lb="mean")
    for limit in (0.0, NOTABLE):
        hits = groups["eps_tilde"].apply(lambda values, limit=limit: int((values > limit).sum()))
        shares = _shares(hits, groups.size())
        table[[f"above {limit:g}{ending}" for ending in ("", ", low", ", high")]] = shares
    return table.assign(largest=groups["eps_tilde"].max()).reset_index()


MARGIN = 0.1
"""A null target passes where its interval lies within so many nats of 0."""
TODAY = "D_G and generated"
"""The helpers without folds: one learns D_G, one generated data, and there is no placebo."""


@dataclass(frozen=True, kw_only=True, eq=False)
class World:
    """A split, a generator, targets and null targets of one seed, and a way to train more such
    models.
    """

    pools: Pools  # with the helpers "synthetic" and "real"
    train: Callable[
        [IntArray, int], Answer
    ]  # on D_G and on the members of these numbers, with a seed
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
    """Pools with a helper and a placebo whose models learn, out of fold, so many members per one
    judged.
    """
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
            pools = (
                plain_pools(world) if ratio is None else matched_pools(world, ratio, folds=folds)
            )
            helpers, learned = (TODAY, np.nan) if ratio is None else ("out of fold", ratio)
            table = audit_pools(pools, audit, audits=["panoramia"]).table
            rows.append(table.assign(data=data, world=seed, helpers=helpers, ratio=learned))
    found = pd.concat(rows, ignore_index=True)
    found["difference"] = found["c_plus_eps_lb"] - found["c_lb"]
    columns = [
        "data",
        "world",
        "helpers",
        "ratio",
        "target",
        "null",
        "seed",
        "c_lb",
        "c_plus_eps_lb",
    ]
    return found[[*columns, "difference", "m"]]


def over_worlds(games: pd.DataFrame, *, confidence: float = 0.95) -> pd.DataFrame:
    """Means of `run_matched` with t-intervals over worlds, each with the mean of its games."""
    about = ["data", "helpers", "ratio", "target", "null"]
    means = games.groupby([*about, "world"], sort=False, dropna=False)[
        ["c_lb", "difference"]
    ].mean()
    groups = means.reset_index().groupby(about, sort=False, dropna=False)
    table = groups.agg(
        c_lb=("c_lb", "mean"),
        eps_tilde=("difference", "mean"),
        sd=("difference", "std"),
        worlds=("world", "size"),
    ).reset_index()
    count = table["worlds"]
    half = (
        stdtrit(np.maximum(count - 1, 1), (1 + confidence) / 2) * table.pop("sd") / np.sqrt(count)
    )
    half = half.where(count > 1, np.inf)
    played = games.groupby(about, sort=False, dropna=False).size().to_numpy()
    table.insert(7, "low", table["eps_tilde"] - half)
    table.insert(8, "high", table["eps_tilde"] + half)
    inside = (table["low"] >= -MARGIN) & (table["high"] <= MARGIN)
    return table.assign(games=played, passes=inside.astype(object).where(table["null"], np.nan))


def false_alarms(games: pd.DataFrame, *, confidence: float = 0.95) -> pd.DataFrame:
    """In how many worlds the t-interval of a null target over its games lies above `MARGIN` as a
    whole.
    """
    about = ["data", "helpers", "ratio"]
    nulls = games[games["null"].astype(bool)]
    worlds = nulls.groupby([*about, "world"], sort=False, dropna=False)["difference"]
    each = worlds.agg(["mean", "std", "size"])
    half = stdtrit(each["size"] - 1, (1 + confidence) / 2) * each["std"] / np.sqrt(each["size"])
    alarms = (
        (each["mean"] - half > MARGIN).groupby(about, sort=False, dropna=False).agg(["size", "sum"])
    )
    table = alarms.rename(columns={"size": "worlds", "sum": "alarms"}).reset_index()
    return table.join(_shares(table["alarms"], table["worlds"]))
