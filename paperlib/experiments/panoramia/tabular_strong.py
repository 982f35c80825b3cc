"""Stronger attacks than the loss on tables, each as a row: LiRA, RMIA, gradient norms, and all together."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from paperlib.attacks.learned import Views
from paperlib.core import FloatArray, IntArray, MembershipScores
from paperlib.experiments.panoramia.audits import AuditConfig, audit_pools
from paperlib.experiments.panoramia.game import GameSplit
from paperlib.experiments.panoramia.pools import Pool, Pools, pools_cache
from paperlib.experiments.panoramia.tabular import TabularConfig, TabularRows, tabular_pools, tabular_rows
from paperlib.experiments.panoramia.tabular_data import RowEncoder
from paperlib.experiments.panoramia.tabular_shadows import STRONGER, online_shadows, play_online
from paperlib.io import code_tag

_ONLINE = "lira_online"
_CODE = (
    "paperlib.attacks.shadow",
    "paperlib.training",
    "paperlib.experiments.panoramia.game",
    "paperlib.experiments.panoramia.tabular_shadows",
    __name__,
)


def strong_attacks(config: TabularConfig, audit: AuditConfig, *, names: Sequence[str]) -> pd.DataFrame:
    """The loss, the stronger attacks side by side, and all together.

    Attack and baseline see the row and this number; the baseline has it from its helpers.

    LiRA (online) asks most of the auditor: shadow models trained with and without each audited row, so on
    members and generated rows alike, and new ones for each game. They learn only rows that the game shows,
    halves of them drawn without a look at membership: a row that a coin left out must not speak.

    Args:
        config: Of the pools; its ``stronger`` are the attacks.
        audit: How eps-tilde is measured.
        names: Targets.

    Returns:
        One row per target and attack: auc_real (the number alone, members against real non-members; NaN for
        LiRA (online), whose shadow models learn none of these), auc_generated (against generated rows),
        helper_auc (the same of the synthetic helper), c_lb, c_plus_eps_lb, eps_tilde (nats); means over
        games.
    """
    rows: list[dict[str, Any]] = []
    for seed in range(audit.seed, audit.seed + audit.repeats):
        pools, shown = game_pools(config, audit, seed)
        once = replace(audit, repeats=1, seed=seed)
        for attack in (*config.columns, "all"):
            narrowed = only_columns(pools, config.columns, config.columns if attack == "all" else (attack,))
            table = audit_pools(narrowed, once, targets=names, audits=["panoramia"]).table
            found = table[table["search"] == audit.searches[0]].set_index("target")
            for name in names:
                alone = (
                    {} if attack == "all" else _alone(narrowed, name, shown if attack == _ONLINE else None)
                )
                bounds = {bound: found.loc[name, bound] for bound in ("c_lb", "c_plus_eps_lb", "eps_tilde")}
                rows.append({"target": name, "attack": STRONGER.get(attack, attack), **alone, **bounds})
    means = pd.DataFrame(rows).groupby(["target", "attack"], sort=False).mean().reset_index()
    places = {name: at for at, name in enumerate(names)}
    return means.sort_values(
        "target", key=lambda column: column.map(places), kind="stable", ignore_index=True
    )


def only_columns(pools: Pools, columns: Sequence[str], names: Sequence[str]) -> Pools:
    """The same pools with some of the columns for every model.

    Args:
        pools: Whose models give ``columns``.
        columns: What they give.
        names: What to keep, in this order.

    Raises:
        ValueError: A column that is not there.
    """
    if missing := [name for name in names if name not in columns]:
        raise ValueError(f"names: expected some of {', '.join(columns)}, got {', '.join(missing)}")
    places = [list(columns).index(name) for name in names]

    def narrow(pool: Pool) -> Pool:
        helpers, targets = (
            {name: values[:, places] for name, values in given.items()}
            for given in (pool.helpers, pool.targets)
        )
        return Pool(pool.examples, helpers, targets)

    others = None if pools.nonmembers is None else narrow(pools.nonmembers)
    return replace(
        pools,
        members=narrow(pools.members),
        generated=narrow(pools.generated),
        nonmembers=others,
        key=pools.key and f"{pools.key} {' '.join(names)}",
    )


def game_pools(
    config: TabularConfig, audit: AuditConfig, seed: int
) -> tuple[Pools, tuple[IntArray, IntArray]]:
    """The pools of one game, with LiRA (online) where it is asked for, and which rows the game shows.

    The number of a row that is not shown is 0: nothing reads it.
    """
    pools = tabular_pools(config)
    shown = shown_rows(len(pools.members), len(pools.generated), audit, seed)
    if _ONLINE not in config.stronger:
        return pools, shown
    place, code = config.columns.index(_ONLINE), code_tag(*_CODE)
    kept = pools_cache().get(
        {"pools": pools.key, "shown": [part.tolist() for part in shown], "code": code},
        lambda: _trained(config, tabular_rows(config), shown, seed),
    )
    shadows, included = np.asarray(kept["shadows"]), np.asarray(kept["included"]).astype(bool)
    members, generated = _with_online(pools.members, pools.generated, place, shown, shadows, included)
    key = pools.key and f"{pools.key} {seed} {code}"
    return replace(pools, members=members, generated=generated, key=key), shown


def _trained(
    config: TabularConfig, rows: TabularRows, shown: tuple[IntArray, IntArray], seed: int
) -> dict[str, Any]:
    encoder = RowEncoder.fit(rows.parts["generator"], rows.table.label, rows.table.classes)
    audited = [rows.parts["members"].iloc[shown[0]], rows.generated.iloc[shown[1]]]
    shadows, included = online_shadows(
        encoder,
        pd.concat(audited, ignore_index=True),
        config.learning,
        count=config.shadows,
        epochs=config.epochs[-1],
        seed=1000 * config.seed + 500 + 100 * seed,
    )
    return {"shadows": shadows, "included": included}


def _with_online(
    members: Pool,
    generated: Pool,
    place: int,
    shown: tuple[IntArray, IntArray],
    shadows: FloatArray,
    included: NDArray[np.bool_],
) -> tuple[Pool, Pool]:
    """Both kinds at once: a variance pooled over one kind alone would tell which kind it is."""

    def replaced(first: FloatArray, second: FloatArray) -> tuple[FloatArray, FloatArray]:
        values, parts = (first.copy(), second.copy()), tuple(zip((first, second), shown, strict=True))
        confidence = -np.concatenate([part[rows, place] for part, rows in parts])
        found = np.split(play_online(confidence, shadows, included), [len(shown[0])])
        for part, rows, numbers in zip(values, shown, found, strict=True):
            part[:, place] = 0
            part[rows, place] = numbers
        return values

    helpers = {name: replaced(members.helpers[name], generated.helpers[name]) for name in members.helpers}
    targets = {name: replaced(members.targets[name], generated.targets[name]) for name in members.targets}
    first, second = (
        Pool(
            pool.examples,
            {name: both[at] for name, both in helpers.items()},
            {name: both[at] for name, both in targets.items()},
        )
        for at, pool in enumerate((members, generated))
    )
    return first, second


class _Recorder:
    """Notes the numbers of the rows it is asked to score."""

    def __init__(self) -> None:
        self.rows: list[IntArray] = []

    def scores(self, views: Views) -> FloatArray:
        self.rows.append(views.examples)
        return np.zeros(len(views))


def shown_rows(members: int, generated: int, audit: AuditConfig, seed: int) -> tuple[IntArray, IntArray]:
    """Which members and generated rows the game of a seed shows, to learn, to choose or to judge on.

    Args:
        members: How many there are.
        generated: How many there are.
        audit: Sizes of the parts.
        seed: Of the game.
    """
    rows = tuple(Views(np.arange(count) + start, np.empty((count, 0)))
                 for count, start in ((members, 0), (generated, members)))  # fmt: skip
    views = {"row": (rows[0], rows[1])}
    game = GameSplit(views, train=audit.train, validation=audit.validation, test=audit.test, seed=seed)
    recorder = _Recorder()
    fixed = [game.train("row")[0].examples, game.validation("row")[0].examples]
    game.judge({"row": recorder})
    every = np.sort(np.concatenate([*fixed, *recorder.rows]))
    return every[every < members], every[every >= members] - members


def _alone(pools: Pools, name: str, shown: tuple[IntArray, IntArray] | None) -> dict[str, float]:
    """AUCs of the first column; with ``shown``, of these members and generated rows alone."""
    members, generated = pools.members, pools.generated
    kept = (slice(None), slice(None)) if shown is None else shown
    found = {
        "auc_generated": _auc(members.targets[name][kept[0]], generated.targets[name][kept[1]]),
        "helper_auc": _auc(members.helpers["synthetic"][kept[0]], generated.helpers["synthetic"][kept[1]]),
    }
    if pools.nonmembers is not None and shown is None:
        found = {"auc_real": _auc(members.targets[name], pools.nonmembers.targets[name]), **found}
    return found


def _auc(member: FloatArray, other: FloatArray) -> float:
    return MembershipScores(member[:, 0], other[:, 0], higher_means_member=False).auc()
