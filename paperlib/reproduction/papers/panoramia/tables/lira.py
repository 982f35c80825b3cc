"""LiRA (online) on tables: shadow models trained with and without each row that a game shows."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from paperlib.attacks.learned.interface import AttackInputs, LossScore
from paperlib.attacks.shadow import lira_online
from paperlib.audits.panoramia.game import AuditConfig, GameSplit
from paperlib.audits.panoramia.pools import Pool, Pools, part_key, pools_cache
from paperlib.core import FloatArray, IntArray
from paperlib.io.sources import code_tag
from paperlib.reproduction.papers.panoramia.tables.pools import (
    TabularConfig,
    TabularRows,
    tabular_pools,
    tabular_rows,
)
from paperlib.reproduction.papers.panoramia.tables.shadows import MANY, log_odds, shadow_models

ONLINE = "lira_online"  # its column
GameRows = tuple[IntArray, IntArray]
"""Numbers of the members and of the generated rows that a game shows, each counted from 0."""


class _DealtRows(NamedTuple):
    """Rows of the parts of a game, numbered through: members from 0, generated rows after them."""

    learned: IntArray  # attacks learn from these
    chosen_on: IntArray  # settings of attacks are chosen on these
    judged: IntArray  # shape (m,), in the order of the game's scores


def game_pools(config: TabularConfig, audit: AuditConfig, seed: int) -> tuple[Pools, GameRows]:
    """The pools of the game of a seed, and which rows the game shows.

    Where ``config.stronger`` has "lira_online", its column holds the attack's numbers, lower for
    members, in the rows that the game shows, and 0 in the others.
    """
    pools = tabular_pools(config)
    game_rows = shown_rows(len(pools.members), len(pools.generated), audit, seed)
    if ONLINE not in config.stronger:
        return pools, game_rows
    key = {
        "pools": pools.key,
        "shown": [rows.tolist() for rows in game_rows],
        "code": code_tag(__name__),
    }
    kept = pools_cache().get(key, lambda: _trained(config, tabular_rows(config), game_rows, seed))
    shadows = np.asarray(kept["shadows"])
    included = np.asarray(kept["included"]).astype(bool)
    column = config.columns.index(ONLINE)
    members, generated = _with_online(
        (pools.members, pools.generated), column, game_rows, shadows, included
    )
    with_online = replace(
        pools, members=members, generated=generated, key=part_key(pools, online=key)
    )
    return with_online, game_rows


def _trained(
    config: TabularConfig, rows: TabularRows, game_rows: GameRows, seed: int
) -> dict[str, Any]:
    """Train the K shadow models of a game, in pairs: one on a random half of the n shown rows, the
    other on the other half.

    Returns:
        "shadows": log-odds, nats, that each model gives the label of each row, shape (K, n).
        "included": whether the model learned the row, shape (K, n). Rows are members, then
            generated rows, in the order of ``game_rows``.
    """
    members, generated = game_rows
    audited = pd.concat([rows.parts["members"].iloc[members], rows.generated.iloc[generated]])
    count = len(audited)
    # Behind the seeds of targets, helpers and shadows (`_seed` in `pools`); games are 100 apart.
    first_seed = 1000 * config.seed + 500 + 100 * seed
    rng = np.random.default_rng(first_seed)
    # Of two draws the first is used; without the other the next pair would have another half.
    halves = [rng.permutation(count) < count // 2 for _ in range(config.shadows)]
    pairs = [(half, ~half) for half in halves[::2]]
    included = np.array([half for pair in pairs for half in pair])
    models = shadow_models(
        rows.encoder, audited, included, config.learning, config.epochs[-1], first_seed
    )
    shadows = np.concatenate([log_odds(rows.encoder, model, audited) for model in models])
    return {"shadows": shadows, "included": included}


def _with_online(
    pair: tuple[Pool, Pool],
    column: int,
    game_rows: GameRows,
    shadows: FloatArray,
    included: NDArray[np.bool_],
) -> tuple[Pool, Pool]:
    """Both pools with LiRA's numbers in a column.

    Args:
        pair: Members and generated rows. They are taken at once: a variance pooled over one kind
            alone would tell the kind.
        column: Number of the column of models' outputs that holds minus the log-odds so far.
        game_rows: The n rows that LiRA has numbers of; the others get 0.
        shadows, included: As `_trained` returns them, shape (K, n).
    """
    members, generated = pair
    rows = np.concatenate([game_rows[0], len(members) + game_rows[1]])
    few = len(shadows) < 2 * MANY  # half of the shadow models learned a row, and half did not

    def online(of_members: FloatArray, of_generated: FloatArray) -> list[FloatArray]:
        """One model's outputs on members and on generated rows, with LiRA's numbers in the
        column.
        """
        values = np.concatenate([of_members, of_generated])
        confidence = -values[rows, column]
        values[:, column] = 0  # nothing reads the number of a row that the game does not show
        # LiRA's ratio is high for members, and models' outputs are low for them.
        values[rows, column] = -lira_online(confidence, shadows, included, fixed_variance=few)
        return np.split(values, [len(members)])

    def of_models(
        of_members: Mapping[str, FloatArray], of_generated: Mapping[str, FloatArray]
    ) -> tuple[dict[str, FloatArray], dict[str, FloatArray]]:
        """The outputs of every model on members and on generated rows, each with LiRA's numbers."""
        pairs = {name: online(of_members[name], of_generated[name]) for name in of_members}
        return (
            {name: first for name, (first, _) in pairs.items()},
            {name: second for name, (_, second) in pairs.items()},
        )

    member_helpers, generated_helpers = of_models(members.helpers, generated.helpers)
    member_targets, generated_targets = of_models(members.targets, generated.targets)
    return (
        Pool(members.examples, member_helpers, member_targets),
        Pool(generated.examples, generated_helpers, generated_targets),
    )


def shown_rows(members: int, generated: int, audit: AuditConfig, seed: int) -> GameRows:
    """Which of so many members and generated rows the game of a seed shows, to learn, to choose or
    to judge on: ascending numbers of both, each counted from 0.
    """
    rows = np.sort(np.concatenate(_dealt_rows(members, generated, audit, seed)))
    return rows[rows < members], rows[rows >= members] - members


def judged_rows(members: int, generated: int, audit: AuditConfig, seed: int) -> IntArray:
    """Which rows the game of a seed judges, in the order of its scores, shape (m,): a number below
    ``members`` is a member's, the others are ``members`` and the number of a generated row.
    """
    return _dealt_rows(members, generated, audit, seed).judged


def _dealt_rows(members: int, generated: int, audit: AuditConfig, seed: int) -> _DealtRows:
    """Which rows `GameSplit` deals to each part of the game of a seed.

    A game shows examples and losses to attacks, and does not tell which rows they are. So one is
    played in which the example and the loss of each row are its own number: what the game shows in
    a part are then the numbers of its rows. The deal depends on sizes and seed alone.
    """
    numbers = np.arange(members + generated)
    rows = AttackInputs(numbers, numbers[:, None])  # examples, and losses as a column
    member_rows, generated_rows = rows.take(numbers[:members]), rows.take(numbers[members:])
    game = GameSplit(
        {"row": (member_rows, generated_rows)},
        train=audit.train,
        validation=audit.validation,
        test=audit.test,
        seed=seed,
    )
    learned = game.train("row").inputs.examples
    chosen_on = game.validation("row").inputs.examples
    # The judged part is seen through scores alone. It comes last: after `judge` the game refuses to
    # show the other parts.
    scores, _ = game.judge({"row": LossScore()})
    judged = (-scores["row"]).astype(np.int64)  # `LossScore` is the loss with its sign turned
    return _DealtRows(learned, chosen_on, judged)
