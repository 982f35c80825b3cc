"""The default audit of today on the targets of a page, beside the attack of the paper."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd

from paperlib.audits.features import audit_features
from paperlib.audits.panoramia.pools import Pool, Pools
from paperlib.audits.panoramia.results import AuditName, TargetScores
from paperlib.bounds import GameSpread, audit_one_run, game_spread
from paperlib.core import FloatArray, MembershipScores, RecallSearch
from paperlib.core.results import AuditResult, round_down
from paperlib.papers.panoramia.results import PanoramiaResults

TRAINED, THRESHOLDS = "RM;RN: trained attack, as in the paper", "O(1): losses alone, as in the paper"
PLAYED: Mapping[str, AuditName] = {TRAINED: "rm_rn", THRESHOLDS: "o1"}
LOSSES, BOTH_ENDS = "losses alone, ends learned", "losses alone, both ends"
LEARNED = "losses and helpers, order learned"
GAMES = 10
Audit = Callable[..., AuditResult]


def strongest_audits(
    results: PanoramiaResults,
    *,
    pools: Pools | None = None,
    helpers: Sequence[str] | None = None,
    columns: int | None = None,
    targets: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Audits of members against real non-members.

    - `TRAINED` and `THRESHOLDS`: RM;RN and O(1) as the page has them, judged on its test part.
    - `LOSSES`: a whole game on minus the target's loss, with `audit_one_run` as it is by default.
    - `BOTH_ENDS`: the same game, but as many members as non-members are guessed.
    - `LEARNED`: `audit_features` on the same, then what else the target and the helpers say.

    Guarantee:
        Each bound exceeds the training's epsilon for replacing one example with probability at most one less
        the confidence of the audits. The largest of several rows or games has no such guarantee.

    Returns:
        One row per target and audit: target, audit, m (examples judged), bound (first game), mean and range
        (all games of the page; for whole games ten with other seeds), seconds of one game. Nats.
    """
    forms = [one for one in (results.decisive, *results.forms.values()) if one.select("rm_rn")]
    pools = results.pools if pools is None else pools
    if not forms or pools.nonmembers is None:
        raise ValueError("results: expected games with real non-members (RM;RN), got none; give real ones")
    names = pools.helper_names if helpers is None else tuple(helpers)
    config = forms[0].config
    rows: list[dict[str, Any]] = []
    for target in pools.target_names if targets is None else targets:
        about = {"target": target}
        for name, audit in PLAYED.items():
            if games := forms[0].select(audit, target=target):
                rows.append({**about, "audit": name, **_of_page(games, forms[0].search, config.confidence)})
        for name, whole in _audits(
            pools.members, pools.nonmembers, target, names, columns, config.confidence
        ):
            rows.append({**about, "audit": name, **_whole_game(whole, config.seed)})
    return pd.DataFrame(rows)


def _of_page(games: Sequence[TargetScores], search: RecallSearch, confidence: float) -> dict[str, Any]:
    start = perf_counter()
    found = [one.one_run(search, confidence).epsilon for one in games]
    judging = (perf_counter() - start) / len(games)
    spread = GameSpread(min(found), float(np.mean(found)), max(found), len(found))
    seconds = judging + float(np.mean([one.seconds for one in games]))
    return _row(games[0].membership.size, found[0], spread, seconds)


def _whole_game(audit: Audit, seed: int) -> dict[str, Any]:
    start = perf_counter()
    first: Any = audit(design="game", seed=seed)
    seconds = perf_counter() - start
    spread = game_spread(audit, games=GAMES, seed=seed)
    return _row(first.total, first.epsilon, spread, seconds)


def in_words(table: pd.DataFrame) -> str:
    """What the audits find on the target on which the default one finds most: means of games, nats."""
    means = table[table["audit"] == LOSSES].set_index("target")["mean"]
    target = means.idxmax()
    rows = table[table["target"] == target]
    found = (
        f"{round_down(mean, 2):.2f} ({name})" for name, mean in zip(rows["audit"], rows["mean"], strict=True)
    )
    return f"{target}, mean bound in nats: {'; '.join(found)}."


def _row(m: int, bound: float, spread: GameSpread, seconds: float) -> dict[str, Any]:
    low, high = (f"{round_down(value):.3f}" for value in (spread.lowest, spread.highest))
    return {"m": m, "bound": bound, "mean": spread.mean, "range": f"{low} to {high}", "seconds": seconds}


def _audits(
    members: Pool,
    others: Pool,
    target: str,
    helpers: tuple[str, ...],
    columns: int | None,
    confidence: float,
) -> Iterator[tuple[str, Audit]]:
    losses = members.targets[target][:, 0], others.targets[target][:, 0]
    scores = MembershipScores(*losses, higher_means_member=False)
    yield LOSSES, partial(audit_one_run, scores, confidence=confidence)
    yield BOTH_ENDS, partial(audit_one_run, scores, confidence=confidence, guess="both")
    features = np.concatenate([_signals(pool, target, helpers, columns) for pool in (members, others)])
    membership = np.arange(len(features)) < len(members)
    yield LEARNED, partial(audit_features, features, membership, confidence=confidence)


def _signals(pool: Pool, target: str, helpers: tuple[str, ...], columns: int | None) -> FloatArray:
    """Minus the target's loss, then its other columns, then those of the helpers."""
    said = [pool.targets[target], *(pool.helpers[name] for name in helpers)]
    joined = np.concatenate([one[:, :columns] for one in said], axis=1)
    return np.column_stack([-joined[:, 0], joined[:, 1:]])
