"""LiRA (online) on tables: shadow models trained with and without each row that a game shows."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from paperlib.attacks.learned import AttackInputs
from paperlib.audits.panoramia.config import AuditConfig
from paperlib.audits.panoramia.game import GameSplit
from paperlib.audits.panoramia.pools import Pool, Pools, part_key, pools_cache
from paperlib.audits.panoramia.table_models import RowEncoder
from paperlib.core import FloatArray, IntArray
from paperlib.io import code_tag
from paperlib.papers.panoramia.tables.pools import (
    TabularConfig,
    TabularRows,
    tabular_pools,
    tabular_rows,
)
from paperlib.papers.panoramia.tables.shadows import online_shadows, play_online

ONLINE = "lira_online"
"""Its column."""


def game_pools(
    config: TabularConfig, audit: AuditConfig, seed: int
) -> tuple[Pools, tuple[IntArray, IntArray]]:
    """The pools of one game, with LiRA (online) where it is asked for, and which rows the game shows.

    The number of a row that is not shown is 0: nothing reads it.
    """
    pools = tabular_pools(config)
    shown = shown_rows(len(pools.members), len(pools.generated), audit, seed)
    if ONLINE not in config.stronger:
        return pools, shown
    key = {"pools": pools.key, "shown": [part.tolist() for part in shown], "code": code_tag(__name__)}
    kept = pools_cache().get(key, lambda: _trained(config, tabular_rows(config), shown, seed))
    shadows, included = np.asarray(kept["shadows"]), np.asarray(kept["included"]).astype(bool)
    place = config.columns.index(ONLINE)
    members, generated = _with_online(pools.members, pools.generated, place, shown, shadows, included)
    return replace(pools, members=members, generated=generated, key=part_key(pools, online=key)), shown


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

    def scores(self, inputs: AttackInputs) -> FloatArray:
        self.rows.append(inputs.examples)
        return np.zeros(len(inputs))


def shown_rows(members: int, generated: int, audit: AuditConfig, seed: int) -> tuple[IntArray, IntArray]:
    """Which members and generated rows the game of a seed shows, to learn, to choose or to judge on.

    Args:
        members: Number of members.
        generated: Number of generated rows.
        audit: Sizes of the parts.
        seed: Seed of the game, 0 or more.
    """
    rows = tuple(AttackInputs(np.arange(count) + start, np.empty((count, 0)))
                 for count, start in ((members, 0), (generated, members)))  # fmt: skip
    game = GameSplit(
        {"row": (rows[0], rows[1])},
        train=audit.train,
        validation=audit.validation,
        test=audit.test,
        seed=seed,
    )
    recorder = _Recorder()
    fixed = [part("row").inputs.examples for part in (game.train, game.validation)]
    game.judge({"row": recorder})
    every = np.sort(np.concatenate([*fixed, *recorder.rows]))
    return every[every < members], every[every >= members] - members
