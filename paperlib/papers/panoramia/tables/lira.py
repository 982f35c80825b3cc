"""LiRA (online) on tables: shadow models trained with and without each row that a game shows."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from paperlib.attacks.learned import AttackInputs, LossScore
from paperlib.attacks.shadow import lira_online
from paperlib.audits.panoramia.game import AuditConfig, GameSplit
from paperlib.audits.panoramia.pools import Pool, Pools, part_key, pools_cache
from paperlib.core import FloatArray, IntArray
from paperlib.io import code_tag
from paperlib.papers.panoramia.tables.pools import (
    TabularConfig,
    TabularRows,
    tabular_pools,
    tabular_rows,
)
from paperlib.papers.panoramia.tables.shadows import MANY, log_odds, shadow_models

ONLINE = "lira_online"  # its column
Shown = tuple[
    IntArray, IntArray
]  # numbers of the members and of the generated rows that a game shows


def game_pools(config: TabularConfig, audit: AuditConfig, seed: int) -> tuple[Pools, Shown]:
    """The pools of one game, with LiRA (online) where it is asked for, and which rows the game
    shows.
    """
    pools = tabular_pools(config)
    shown = shown_rows(len(pools.members), len(pools.generated), audit, seed)
    if ONLINE not in config.stronger:
        return pools, shown
    key = {
        "pools": pools.key,
        "shown": [part.tolist() for part in shown],
        "code": code_tag(__name__),
    }
    kept = pools_cache().get(key, lambda: _trained(config, tabular_rows(config), shown, seed))
    shadows, included = np.asarray(kept["shadows"]), np.asarray(kept["included"]).astype(bool)
    place = config.columns.index(ONLINE)
    members, generated = _with_online(
        (pools.members, pools.generated), place, shown, shadows, included
    )
    return replace(
        pools, members=members, generated=generated, key=part_key(pools, online=key)
    ), shown


def _trained(config: TabularConfig, rows: TabularRows, shown: Shown, seed: int) -> dict[str, Any]:
    """Log-odds (K, n) of models in pairs, on a random half of the rows and on the other, and who
    learned.
    """
    audited = pd.concat([rows.parts["members"].iloc[shown[0]], rows.generated.iloc[shown[1]]])
    first, count = 1000 * config.seed + 500 + 100 * seed, len(audited)
    rng = np.random.default_rng(first)
    halves = [rng.permutation(count) < count // 2 for _ in range(config.shadows)]
    included = np.array([~halves[at - 1] if at % 2 else half for at, half in enumerate(halves)])
    models = shadow_models(
        rows.encoder, audited, included, config.learning, config.epochs[-1], first
    )
    shadows = np.concatenate([log_odds(rows.encoder, model, audited) for model in models])
    return {"shadows": shadows, "included": included}


def _with_online(
    pair: tuple[Pool, Pool],
    place: int,
    shown: Shown,
    shadows: FloatArray,
    included: NDArray[np.bool_],
) -> Iterator[Pool]:
    """Members and generated rows at once: a variance pooled over one kind alone would tell the
    kind.
    """
    every = np.concatenate([shown[0], len(pair[0]) + shown[1]])

    def replaced(role: str) -> dict[str, list[FloatArray]]:
        found: dict[str, list[FloatArray]] = {}
        for name in getattr(pair[0], role):
            values = np.concatenate([getattr(pool, role)[name] for pool in pair])
            confidence = -values[every, place]
            values[:, place] = 0  # nothing reads the number of a row that is not shown
            few = len(shadows) < 2 * MANY
            values[every, place] = -lira_online(confidence, shadows, included, fixed_variance=few)
            found[name] = np.split(values, [len(pair[0])])
        return found

    new = replaced("helpers"), replaced("targets")
    for at, pool in enumerate(pair):
        yield Pool(
            pool.examples,
            *({name: parts[at] for name, parts in outputs.items()} for outputs in new),
        )


def shown_rows(members: int, generated: int, audit: AuditConfig, seed: int) -> Shown:
    """Which members and generated rows the game of a seed shows, to learn, to choose or to judge
    on.
    """
    every = np.sort(np.concatenate(_played(members, generated, audit, seed)))
    return every[every < members], every[every >= members] - members


def judged_rows(members: int, generated: int, audit: AuditConfig, seed: int) -> IntArray:
    """Which rows the game of a seed judges, in the order of its scores, shape (m,); members count
    first.
    """
    return _played(members, generated, audit, seed)[-1]


def _played(members: int, generated: int, audit: AuditConfig, seed: int) -> list[IntArray]:
    """Numbers of the rows of each part of a game, which stand where attacks look for losses."""
    numbers = np.arange(members + generated)
    rows = AttackInputs(numbers, numbers[:, None])
    kinds = rows.take(numbers[:members]), rows.take(numbers[members:])
    game = GameSplit(
        {"row": kinds}, train=audit.train, validation=audit.validation, test=audit.test, seed=seed
    )
    fixed = [part("row").inputs.examples for part in (game.train, game.validation)]
    scores, _ = game.judge({"row": LossScore()})
    return [*fixed, (-scores["row"]).astype(np.int64)]
