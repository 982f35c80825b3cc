"""Optimal output sets on PANORAMIA's scores: chosen on one half, judged on the other."""

from dataclasses import replace
from typing import Any

import pandas as pd

from paperlib.bounds import fit_output_set, one_run_epsilon
from paperlib.core import FloatArray, MembershipScores, check_confidence
from paperlib.experiments.panoramia.audits import Audits, JudgedTarget
from paperlib.experiments.panoramia.game import Flags


def output_set_bounds(audits: Audits) -> pd.DataFrame:
    """Output sets beside the searches over recall, on the same examples.

    Both tests guess "member" where the ratio of the two densities of the scores is high, wherever that is: a
    search over recall can only guess above a threshold. The first half of the test part chooses the set, the
    second half is judged, so that no search is left to pay for. The set is chosen for guesses on both sides,
    of which "member" alone counts here: it can end with less than a search.

    Guarantee:
        The bounds of one game hold together at the audits' confidence, as those of `audit_panoramia`.

    Returns:
        One row per target, game and way: target, null, seed, way ("output set" or a search), examples judged,
        c_lb, c_plus_eps_lb, eps_tilde (nats).

    Source:
        Output sets, Algorithm 1, with positive guesses only, as PANORAMIA's Propositions 1 and 2 require.
    """
    confidence = check_confidence(audits.config.confidence)
    null = dict(zip(audits.table["target"], audits.table["null"], strict=True))
    rows: list[dict[str, Any]] = []
    for judged in audits.select("panoramia"):
        about = {"target": judged.target, "null": null[judged.target], "seed": judged.seed}
        half = judged.membership.size // 2
        first, second = _part(judged, slice(half)), _part(judged, slice(half, None))
        level = (1 - confidence) / 2
        found = [
            set_bound(getattr(first, name), first.membership, getattr(second, name), second.membership, level)
            for name in ("baseline", "attack")
        ]
        rows.append({**about, "way": "output set", "examples": half, **_bounds(*found)})
        for search in audits.config.searches:
            for way, part in ((f"{search}, second half", second), (f"{search}, all", judged)):
                row = part.row(search, confidence)
                bounds = {name: row[name] for name in ("c_lb", "c_plus_eps_lb", "eps_tilde")}
                rows.append({**about, "way": way, "examples": part.membership.size, **bounds})
    return pd.DataFrame(rows)


def set_bound(
    scores: FloatArray, membership: Flags, judged_scores: FloatArray, judged: Flags, level: float
) -> float:
    """Bound of the guesses "member" inside a set fitted on other scores.

    Args:
        scores: To fit the set on, shape (n,).
        membership: Who of them is a member.
        judged_scores: To guess on, shape (k,).
        judged: Who of them is a member.
        level: Error of this bound, in (0, 1).

    Returns:
        Nats, 0 where no guess is made.

    >>> import numpy as np
    >>> flags = np.arange(200) < 100
    >>> rng = np.random.default_rng(0)
    >>> round(set_bound(rng.normal(4.0 * flags), flags, rng.normal(4.0 * flags), flags, 0.025), 1)
    3.2
    """
    chosen = fit_output_set(
        MembershipScores(scores[membership], scores[~membership]), confidence=1 - level, total=judged.size
    )
    guesses = chosen.guess(judged_scores) == 1
    if not guesses.any():
        return 0.0
    return float(one_run_epsilon(int(judged[guesses].sum()), int(guesses.sum()), confidence=1 - level))


def _part(judged: JudgedTarget, rows: slice) -> JudgedTarget:
    parts = {name: getattr(judged, name)[rows] for name in ("baseline", "attack", "membership")}
    return replace(judged, **parts)


def _bounds(c_lb: float, c_plus_eps_lb: float) -> dict[str, float]:
    return {"c_lb": c_lb, "c_plus_eps_lb": c_plus_eps_lb, "eps_tilde": max(0.0, c_plus_eps_lb - c_lb)}
