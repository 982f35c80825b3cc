"""The default audit of today on the targets of a page, beside the attack of the paper."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd

from paperlib.audits.features import audit_features
from paperlib.audits.panoramia.pools import Pool, Pools
from paperlib.audits.panoramia.results import TargetAudits, TargetScores
from paperlib.bounds import GameSpread, audit_one_run, game_spread
from paperlib.core import FloatArray, MembershipScores
from paperlib.core.results import AuditResult, round_down
from paperlib.papers.panoramia.results import PanoramiaResults

TRAINED, LOSSES = "trained attack, as in the paper", "losses alone, ends learned"
BOTH_ENDS, LEARNED = "losses alone, both ends", "losses and helpers, order learned"
GAMES = 10
Audit = Callable[..., AuditResult]


def strongest_audits(
    results: PanoramiaResults, *, pools: Pools | None = None, helpers: Sequence[str] | None = None
) -> pd.DataFrame:
    """Four audits of members against real non-members, on every target.

    - `TRAINED`: RM;RN of the page, judged on its test part.
    - `LOSSES`: a whole game on minus the target's loss, with `audit_one_run` as it is by default.
    - `BOTH_ENDS`: the same game, but as many members as non-members are guessed.
    - `LEARNED`: `audit_features` on the same, then what else the target and the helpers say.

    Guarantee:
        Each bound (first game) exceeds the training's epsilon for replacing one example with probability at
        most one less the confidence of the audits. The largest of several has no such guarantee.

    Args:
        results: Audits of the page with real non-members, in any form.
        pools: Pools with further columns of the same examples; None takes those of the results.
        helpers: Helpers whose answers on an example cannot depend on whether it is a member; None takes all,
            as helpers learn neither members nor real non-members.

    Returns:
        One row per target and audit: target, audit, m (examples judged), bound (first game), mean and range
        of other games (of all games of the page for `TRAINED`, ten with other seeds for the rest), seconds
        of one game. Nats.

    Raises:
        ValueError: Audits without real non-members.
    """
    played = next(
        (audits for audits in (results.decisive, *results.forms.values()) if audits.select("rm_rn")), None
    )
    pools = results.pools if pools is None else pools
    if played is None or pools.nonmembers is None:
        raise ValueError("results: expected games with real non-members (RM;RN), got none; give real ones")
    names = pools.helper_names if helpers is None else tuple(helpers)
    rows: list[dict[str, Any]] = []
    for target in pools.target_names:
        rows.append(
            {"target": target, "audit": TRAINED, **_trained(played, played.select("rm_rn", target=target))}
        )
        for name, audit in _audits(pools.members, pools.nonmembers, target, names, played.config.confidence):
            rows.append({"target": target, "audit": name, **_whole_game(audit, played.config.seed)})
    return pd.DataFrame(rows)


def _trained(audits: TargetAudits, games: Sequence[TargetScores]) -> dict[str, Any]:
    found = [one.one_run(audits.search, audits.config.confidence).epsilon for one in games]
    spread = GameSpread(min(found), float(np.mean(found)), max(found), len(found))
    seconds = float(np.mean([one.seconds for one in games]))
    return _row(games[0].membership.size, found[0], spread, seconds)


def _whole_game(audit: Audit, seed: int) -> dict[str, Any]:
    start = perf_counter()
    first: Any = audit(design="game", seed=seed)
    seconds = perf_counter() - start
    return _row(first.total, first.epsilon, game_spread(audit, games=GAMES, seed=seed), seconds)


def _row(m: int, bound: float, spread: GameSpread, seconds: float) -> dict[str, Any]:
    low, high = (f"{round_down(value):.3f}" for value in (spread.lowest, spread.highest))
    return {"m": m, "bound": bound, "mean": spread.mean, "range": f"{low} to {high}", "seconds": seconds}


def _audits(
    members: Pool, others: Pool, target: str, helpers: tuple[str, ...], confidence: float
) -> Iterator[tuple[str, Audit]]:
    losses = members.targets[target][:, 0], others.targets[target][:, 0]
    scores = MembershipScores(*losses, higher_means_member=False)
    yield LOSSES, partial(audit_one_run, scores, confidence=confidence)
    yield BOTH_ENDS, partial(audit_one_run, scores, confidence=confidence, guess="both")
    features = np.concatenate([_signals(pool, target, helpers) for pool in (members, others)])
    membership = np.arange(len(features)) < len(members)
    yield LEARNED, partial(audit_features, features, membership, confidence=confidence)


def _signals(pool: Pool, target: str, helpers: tuple[str, ...]) -> FloatArray:
    """Minus the target's loss, then its other columns, then those of the helpers."""
    said = pool.inputs(target=target, helpers=helpers).losses
    return np.column_stack([-said[:, 0], said[:, 1:]])
