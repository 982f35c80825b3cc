"""Samples that several PANORAMIA pages take from their audits: paired within a game, and never clipped."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd

from paperlib.audits.panoramia.game import Flags
from paperlib.audits.panoramia.results import AuditName, TargetAudits, TargetScores
from paperlib.core import FloatArray
from paperlib.papers.panoramia.results import PanoramiaResults
from paperlib.papers.verdict import Evidence


def by_game(
    audits: TargetAudits, target: str, audit: AuditName = "panoramia", *, column: str = "eps"
) -> pd.Series:
    """By seed, a column of `TargetAudits.table` by the first search; "eps" of PANORAMIA: the difference."""
    table = audits.table[audits.table["target"] == target]
    if table.empty:
        raise ValueError(f"target: {target!r} was not audited")
    return _numbers(table[table["search"] == audits.search], audit, column)


def _numbers(table: pd.DataFrame, audit: AuditName, column: str) -> pd.Series:
    rows = table[table["audit"] == audit].set_index("seed")
    if audit == "panoramia" and column == "eps":
        return rows["c_plus_eps_lb"] - rows["c_lb"]
    return rows[column]


def paired(first: pd.Series, second: pd.Series) -> list[float]:
    """First minus second in every game that has both."""
    return (first - second).dropna().tolist()


def null_samples(audits: TargetAudits, names: Iterable[str] | None = None) -> dict[str, list[float]]:
    """Difference of the bounds of each null target, of all or of these names."""
    found = dict.fromkeys(one.target.name for one in audits.judged if one.target.kind == "null")
    return {name: by_game(audits, name).tolist() for name in (found if names is None else names)}


def table_three(results: PanoramiaResults, names: list[str], nulls: Iterable[str] | None = None) -> Evidence:
    """Table 3 in the paper's form, O(1) in any, of targets by their degree of over-training."""
    audits = results.forms["paper"]
    own, real = ({name: by_game(audits, name, audit) for name in names} for audit in ("panoramia", "rm_rn"))
    grid = {name: by_game(results.with_o1, name, "o1") for name in names}
    values = {
        "eps~ grows": {f"{b} over {a}": paired(own[b], own[a]) for a, b in pairwise(names)},
        "eps~ below RM;RN": {name: paired(real[name], own[name]) for name in names},
        "RM;RN below O(1)": {name: paired(grid[name], real[name]) for name in names},
        "null": null_samples(audits, nulls),
    }
    return Evidence("panoramia-table-03", "game", values)


def helper_table(target: str, games: pd.DataFrame, real: str) -> Evidence:
    """Tables 2 and 5 from `helper_games`: what helpers on generated and on real non-members add."""
    c_lb = games.pivot(index="seed", columns="helper", values="c_lb")
    c_lb = c_lb.reindex(columns=["none", "synthetic", real])
    values = {
        "generated over none": paired(c_lb["synthetic"], c_lb["none"]),
        "real over none": paired(c_lb[real], c_lb["none"]),
        "generated over real": paired(c_lb["synthetic"], c_lb[real]),
    }
    return Evidence(target, "game", values)


def figure_six(results: PanoramiaResults, target: str, nulls: Iterable[str] | None = None) -> Evidence:
    """Figure 6 (sections 5.3 and D.3): eps~ at the largest m over a quarter of it, and over O(1) at 4/7."""
    audits, m = results.decisive, results.decisive.config.test
    grid = results.with_o1.select("o1", target=target)
    # CIFAR-10's 10,000 test images give O(1) an m of 20,000 at most, where PANORAMIA goes to 35,000.
    most = min([4 * m // 7, *(one.membership.size for one in grid)])
    whole, part = (_over_size(audits, audits.select(target=target), size) for size in (m, m // 4))
    values = {
        "grows with m": paired(whole, part),
        "passes O(1)": paired(whole, _over_size(results.with_o1, grid, most)),
        "null": null_samples(audits, nulls),
    }
    return Evidence("panoramia-figure-06", "game", values)


def _over_size(audits: TargetAudits, games: tuple[TargetScores, ...], size: int) -> pd.Series:
    rows = replace(audits, judged=games).over_test_size([size])
    return _numbers(rows, games[0].audit, "eps") if len(rows) else pd.Series(dtype=np.float64)


def figure_ten(audits: TargetAudits, target: str) -> Evidence:
    """Figure 10: share of members in the first tenth of an attack's guesses and of the baseline's."""
    games = audits.select("panoramia", target=target)

    def first_tenth(scores: FloatArray, membership: Flags) -> float:
        order = np.argsort(-scores, kind="stable")  # equal scores stay in the examples' random order
        return float(membership[order[: max(1, scores.size // 10)]].mean())

    attack, baseline = (
        [first_tenth(getattr(one, name), one.membership) for one in games] for name in ("attack", "baseline")
    )
    ahead = [first - second for first, second in zip(attack, baseline, strict=True)]
    return Evidence("panoramia-figure-10", "game", {"members first": ahead, "room above": baseline})
