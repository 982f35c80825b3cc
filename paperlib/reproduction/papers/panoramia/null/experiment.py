"""Null targets: how often leakage is reported for them, and what helpers leave that learned real
data.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from paperlib.attacks.learned import BoostedTrees
from paperlib.audits.panoramia.folds import ModelByKind, out_of_fold
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
from paperlib.core import FloatArray, IntArray
from paperlib.core.checks import check_at_least, check_confidence, check_in
from paperlib.core.intervals import share_interval
from paperlib.io.sources import code_tag
from paperlib.report import progress
from paperlib.reproduction.papers.panoramia.tables.pools import (
    PartSizes,
    TabularConfig,
    build_pools,
)

CONTRAST = "(contrast)"
"""Ends the names of worlds in which the helper is too weak, so that the control must fail."""

_NOISE = 2.0  # of what a toy example shows, in its standard deviations; chosen

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
        """One game that fits these members: a quarter of them trains attacks, a tenth chooses them,
        and the coins of the test part take about 0.95 / 2, which leaves a margin for chance.
        """
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
            "table": partial(self._table, "tree", "rejection"),
            "toy": partial(self._toy, 1.0),
            f"table, columns drawn apart {CONTRAST}": partial(self._table, "columns", "none"),
            f"toy, helper knows nothing {CONTRAST}": partial(self._toy, 0.0),
        }

    def _toy(self, helper_knows: float, seed: int) -> Pools:
        """`toy_pools` of as many members as the control has."""
        return toy_pools(self.members, helper_knows, seed=seed)

    def _table(self, generator: str, rows_filter: str, seed: int) -> Pools:
        """Rows of randhie and of a generator, by the words of `TabularConfig`, and a null target
        alone.
        """
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
    """Members from a normal distribution and generated examples from one ``shift`` standard
    deviations off, with a null target, which knows the two distributions but no member.

    Args:
        members: Number of members, and of generated examples.
        helper_knows: Share, in [0, 1], of what the target knows about the two distributions that
            the helper knows too; at 1 an audit must find nothing.
        shift: Mean of what underlies the generated examples; that of members is 0.
        seed: Of all draws.

    Returns:
        Pools without real non-members, with the target "null" and the helper "synthetic".

    Raises:
        ValueError: ``helper_knows`` outside [0, 1].
    """
    check_in("[0, 1]", "helper_knows", helper_knows)
    rng = np.random.default_rng(seed)

    def pool(mean: float) -> Pool:
        """Examples around a mean, with the losses that target and helper give them, shape (members,
        1).
        """
        # Examples show x with noise. The target's loss is the exact log density ratio of x,
        # generated to members: with unit variance, shift * (x - shift / 2). The helper's is the
        # same to the part that it knows, and noise for the rest.
        x = mean + rng.standard_normal((members, 1))
        seen = x + _NOISE * rng.standard_normal(x.shape)
        loss = shift * (x - shift / 2)
        helper = helper_knows * loss + (1 - helper_knows) * rng.standard_normal(x.shape)
        return Pool(seen, {"synthetic": helper}, {"null": loss})

    target = Target(name="null", kind="null", epochs=0)
    return Pools(pool(0.0), pool(shift), None, (target,), (SYNTHETIC,))


def run_null_control(
    control: NullControl, worlds: Mapping[str, Callable[[int], Pools]] | None = None
) -> pd.DataFrame:
    """Audit the null targets of many worlds, in both forms of the audit.

    Args:
        control: Number and size of the worlds, and the seed of the first.
        worlds: From the name of a kind of world to its pools by seed; None takes
            ``control.worlds()``.

    Returns:
        A row for each game and search: columns world, seed, form, search, and the bounds c_lb,
            c_plus_eps_lb and eps_tilde, nats.
    """
    kinds = control.worlds() if worlds is None else worlds
    tables = []
    for name, build in kinds.items():
        count = control.repetitions
        if name.endswith(CONTRAST):
            count = -(-count // 2)  # half as many, rounded up
        for seed in progress(range(control.seed, control.seed + count), label=name):
            audits = _audits_of_nulls(build(seed), replace(control.audit(), seed=seed))
            tables += [table.assign(world=name, seed=seed) for table in audits]
    columns = ["world", "seed", "form", "search", "c_lb", "c_plus_eps_lb", "eps_tilde"]
    return pd.concat(tables, ignore_index=True)[columns]


def _audits_of_nulls(pools: Pools, audit: AuditConfig) -> list[pd.DataFrame]:
    """Rows of PANORAMIA's audits of the null targets, a table for each form."""
    nulls = [target.name for target in pools.targets if target.kind == "null"]
    tables = []
    for form in FORMS:
        in_form = replace(audit, form=form)
        tables.append(audit_pools(pools, in_form, targets=nulls, audits=["panoramia"]).table)
    return tables


def _shares(hits: pd.Series, counts: pd.Series) -> pd.DataFrame:
    """Columns share, hits over counts, and low and high, its Clopper-Pearson interval; a row for
    each pair of ``hits`` and ``counts``.
    """
    intervals = [
        share_interval(int(hit_count), int(count))
        for hit_count, count in zip(hits, counts, strict=True)
    ]
    low, high = np.reshape(intervals, (-1, 2)).T
    return pd.DataFrame({"share": hits / counts, "low": low, "high": high})


def null_false_positives(rows: pd.DataFrame) -> pd.DataFrame:
    """Share of null targets with an eps-tilde above 0 and above `NOTABLE`, with Clopper-Pearson
    intervals; by world, form and search, from rows of `run_null_control`.

    Beside them the number of games (``repetitions``), the mean ``c_lb`` and the ``largest``
    eps-tilde, nats.
    """
    groups = rows.groupby(["world", "form", "search"], sort=False)
    table = groups["c_lb"].agg(repetitions="size", c_lb="mean")
    for limit in (0.0, NOTABLE):
        hits = groups["eps_tilde"].apply(lambda values, limit=limit: int((values > limit).sum()))
        shares = _shares(hits, groups.size())
        columns = [f"above {limit:g}", f"above {limit:g}, low", f"above {limit:g}, high"]
        table[columns] = shares
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
    # On the generator's training data and on the members of these numbers, with a seed.
    train: Callable[[IntArray, int], ModelByKind]
    judged: int  # number of members that tests show; helpers and attacks may learn the others
    audit: AuditConfig
    depends_on: Any  # what `train` depends on beside its arguments, as values of JSON
    code: str  # the module that trains
    groups: IntArray | None = None  # of the members that may be learned; see `out_of_fold`
    seed: int  # of the folds

    @property
    def learned(self) -> int:
        """Number of members that helpers and attacks may learn."""
        return len(self.pools.members) - self.judged


def matched_pools(world: World, ratio: float, *, folds: int = 4) -> Pools:
    """Pools with a helper and a placebo that learn members out of fold.

    Args:
        world: Its pools and its training.
        ratio: Members that each model of a helper learns, over members judged.
        folds: Number of models of each helper, 2 or more.

    Raises:
        ValueError: A fold leaves too few members for the ratio.
    """
    members = round(ratio * world.judged)
    most = world.learned - -(-world.learned // folds)  # without the largest fold
    check_in(f"(0, {most / world.judged:.4g}]", "ratio", ratio)
    sizes = {kind: len(pool) for kind, pool in world.pools.by_kind().items()}
    depends_on = {"world": world.depends_on, "code": code_tag(world.code), "folds": folds}

    def outputs(helper: Helper, salt: int) -> dict[str, FloatArray]:
        """What the models of a helper say of each example, by kind, from the cache where it is
        there; ``salt`` sets the seeds of the two helpers apart.
        """

        def answer_of_fold(rows: IntArray, fold: int) -> ModelByKind:
            """A model trained on the members of these numbers, shape (k,)."""
            # Every fold has its own seed; a hundred apart, the folds of two helpers share none.
            return world.train(rows, world.seed + 100 * salt + fold)

        def compute() -> dict[str, FloatArray]:
            """Train a model per fold, and ask each about the examples that it did not learn."""
            return out_of_fold(
                answer_of_fold,
                sizes,
                learned=world.learned,
                folds=folds,
                most=members,
                groups=world.groups,
                seed=world.seed + salt,
                label=helper.name,
            )

        key = {"stage": helper.name, **depends_on, "members": members}
        return pools_cache().get({**key, "seed": world.seed, "salt": salt}, compute)

    out_of_fold_helpers = {FOLDS: outputs(FOLDS, 1), PLACEBO: outputs(PLACEBO, 2)}
    return add_helpers(
        _with_named(world.pools, "synthetic"),
        out_of_fold_helpers,
        learned=world.learned,
        about={"ratio": ratio, **depends_on},
    )


def plain_pools(world: World) -> Pools:
    """The pools with the helpers "synthetic" and "real", and the same members judged."""
    pools = _with_named(world.pools, "synthetic", "real")
    return add_helpers(pools, {}, learned=world.learned, about="no folds")


def _with_named(pools: Pools, *names: str) -> Pools:
    """The pools with the helpers of these names alone."""
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
    """Audit the targets of several worlds with helpers as they are, and with each ratio.

    Args:
        data: Name of the kind of data, for a column.
        build: From a seed to a world.
        ratios: Of `matched_pools`; helpers as they are have NaN in its column.
        worlds: Seeds of the worlds.
        folds: Number of models of each helper that learns out of fold.

    Returns:
        A row for each game: the two bounds and their difference (nats), by data, world, helpers,
            ratio and target; m is the number of examples judged.
    """
    tables = []
    for seed in progress(list(worlds), label=f"worlds of {data}"):
        world = build(seed)
        tables.append(_games(plain_pools(world), world, seed, helpers=TODAY, ratio=np.nan))
        for ratio in ratios:
            pools = matched_pools(world, ratio, folds=folds)
            tables.append(_games(pools, world, seed, helpers="out of fold", ratio=ratio))
    games = pd.concat(tables, ignore_index=True)
    games["data"] = data
    games["difference"] = games["c_plus_eps_lb"] - games["c_lb"]
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
        "difference",
        "m",
    ]
    return games[columns]


def _games(pools: Pools, world: World, seed: int, *, helpers: str, ratio: float) -> pd.DataFrame:
    """A row for each game and target: PANORAMIA with helpers in both tests, with the world's seed,
    the name of its helpers and their ratio as columns.
    """
    audit = replace(world.audit, form="helpers")
    table = audit_pools(pools, audit, audits=["panoramia"]).table
    return table.assign(world=seed, helpers=helpers, ratio=ratio)


def over_worlds(games: pd.DataFrame, *, confidence: float = 0.95) -> pd.DataFrame:
    """Means of `run_matched` over worlds, each of which counts once, by the mean of its games.

    Args:
        games: Rows of `run_matched`.
        confidence: Of the t-intervals over worlds, in (0, 1).

    Returns:
        A row for each kind of data, helpers, ratio and target: mean c_lb and eps_tilde (not
            clipped at 0), the interval of the latter from low to high, infinite for one world, all
            in nats; the numbers of worlds and games; and ``passes``: whether a null target's
            interval lies within `MARGIN` of 0, NaN for other targets.
    """
    setting = ["data", "helpers", "ratio", "target", "null"]
    by_world = games.groupby([*setting, "world"], sort=False, dropna=False)
    means = by_world[["c_lb", "difference"]].mean().reset_index()
    table = means.groupby(setting, sort=False, dropna=False).agg(
        c_lb=("c_lb", "mean"),
        eps_tilde=("difference", "mean"),
        sd=("difference", "std"),
        worlds=("world", "size"),
    )
    table = table.reset_index()
    count = table["worlds"]
    # Quantile of Student's t; at least one degree of freedom, since one world has none.
    quantile = stdtrit(np.maximum(count - 1, 1), (1 + confidence) / 2)
    half_width = quantile * table.pop("sd") / np.sqrt(count)
    half_width = half_width.where(count > 1, np.inf)  # one world says nothing of others
    played = games.groupby(setting, sort=False, dropna=False).size().to_numpy()
    behind_means = list(table.columns).index("eps_tilde") + 1
    table.insert(behind_means, "low", table["eps_tilde"] - half_width)
    table.insert(behind_means + 1, "high", table["eps_tilde"] + half_width)
    inside = (table["low"] >= -MARGIN) & (table["high"] <= MARGIN)
    return table.assign(games=played, passes=inside.astype(object).where(table["null"], np.nan))


def false_alarms(games: pd.DataFrame, *, confidence: float = 0.95) -> pd.DataFrame:
    """In how many worlds the t-interval of a null target over its games lies above `MARGIN` as a
    whole.

    Args:
        games: Rows of `run_matched`.
        confidence: Of the t-intervals, in (0, 1); a world of one game has none, and gives no alarm.

    Returns:
        A row for each kind of data, helpers and ratio: the numbers of worlds and alarms, and the
            share of alarms from low to high, its Clopper-Pearson interval.
    """
    setting = ["data", "helpers", "ratio"]
    nulls = games[games["null"].astype(bool)]
    by_world = nulls.groupby([*setting, "world"], sort=False, dropna=False)["difference"]
    worlds = by_world.agg(["mean", "std", "size"])
    quantile = stdtrit(worlds["size"] - 1, (1 + confidence) / 2)
    half_width = quantile * worlds["std"] / np.sqrt(worlds["size"])
    alarm = worlds["mean"] - half_width > MARGIN
    counts = alarm.groupby(setting, sort=False, dropna=False).agg(["size", "sum"])
    table = counts.rename(columns={"size": "worlds", "sum": "alarms"}).reset_index()
    return table.join(_shares(table["alarms"], table["worlds"]))
