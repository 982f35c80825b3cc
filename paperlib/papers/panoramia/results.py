"""Results of PANORAMIA: audits of all targets, and what pages on images, tables and text read from
them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
import pandas as pd

from paperlib.audits.panoramia.game import AuditConfig, Flags
from paperlib.audits.panoramia.pools import Pools
from paperlib.audits.panoramia.results import AUDITS, AuditName, TargetAudits, TargetScores
from paperlib.audits.panoramia.run import baseline_by_helper
from paperlib.core import FloatArray
from paperlib.papers.verdict import Evidence


@dataclass(frozen=True, eq=False)
class PanoramiaResults:
    """Audits of all targets of the same pools, in one form or in both."""

    pools: Pools
    forms: Mapping[str, TargetAudits]  # by form; O(1), the same in both, is in one of them
    form: str = "helpers"  # the form of `one` and `value` where none is named

    @property
    def search(self) -> str:
        """The first search over recall, which tables and verdicts are about."""
        return self.forms[self.form].search

    @property
    def decisive(self) -> TargetAudits:
        """The audits in the paper's form or, where it was not played, in the other."""
        return self.forms.get("paper", self.forms[self.form])

    @property
    def with_o1(self) -> TargetAudits:
        """The audits that hold O(1); without it, those that decide."""
        return next(
            (audits for audits in self.forms.values() if audits.select("o1")), self.decisive
        )

    @cached_property
    def summary(self) -> pd.DataFrame:
        """The rows of `means_over_games`, of all forms."""
        return pd.concat([audits.summary() for audits in self.forms.values()], ignore_index=True)

    def one(
        self, target: str, audit: AuditName = "panoramia", *, form: str | None = None
    ) -> dict[str, float]:
        """Means over games of a target by the first search."""
        wanted = {
            "target": target,
            "audit": audit,
            "form": form or self.form,
            "search": self.search,
        }
        rows = self.summary[(self.summary[list(wanted)] == pd.Series(wanted)).all(axis=1)]
        if rows.empty:
            raise ValueError(f"{wanted}: no such row in the summary")
        return {
            str(name): float(value) for name, value in rows.select_dtypes("number").iloc[0].items()
        }

    def value(
        self, target: str, audit: AuditName = "panoramia", *, form: str | None = None
    ) -> float:
        """Mean eps-tilde, or epsilon, of a target by the first search, nats."""
        return self.one(target, audit, form=form)["value"]

    @property
    def trained(self) -> list[str]:
        """Targets trained on the members without DP, by epochs."""
        return [target.name for target in self.pools.targets if target.kind == "trained"]

    @property
    def null(self) -> list[str]:
        """Targets that never saw the members."""
        return [target.name for target in self.pools.targets if target.kind == "null"]


def table_three(results: PanoramiaResults, printed: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Every bound of each target, beside what the paper prints: by target, a row for each audit."""
    rows: list[dict[str, object]] = []
    for target in results.pools.target_names:
        own = results.one(target)
        row: dict[str, object] = {"target": target, "null": target in results.null}
        row |= {name: own[name] for name in ("c_lb", "c_plus_eps_lb")}
        row |= {"eps_tilde": own["value"], "eps_tilde_sd": own["value_sd"]}
        if "helpers" in results.forms:
            row["helpers_eps_tilde"] = results.value(target, form="helpers")
        for audit in AUDITS[1:]:
            real = results.one(target, audit)
            row |= {audit: real["value"], f"{audit}_sd": real["value_sd"]}
        rows.append(row | printed_bounds(printed[target]) if target in printed else row)
    return pd.DataFrame(rows)


def printed_bounds(rows: pd.DataFrame) -> dict[str, object]:
    """One model's bounds as the paper prints them."""
    found: dict[str, object] = {"paper_target": rows["target_model"].iloc[0]}
    for row in rows.to_dict("records"):
        if row["audit"] == "panoramia":
            found |= {
                f"paper_{name}": row[name] for name in ("c_lb", "c_plus_eps_lb") if name in row
            }
            found |= {
                "paper_eps_tilde": row["eps_tilde"],
                "paper_eps_tilde_sd": row["eps_tilde_pm"],
            }
        else:
            name = {"panoramia_rm_rn": "rm_rn", "o1_rm_rn": "o1"}[row["audit"]]
            found |= {f"paper_{name}": row["eps"], f"paper_{name}_sd": row["eps_pm"]}
    return found


def helper_games(pools: Pools, audit: AuditConfig) -> pd.DataFrame:
    """The baseline's bound by helper and game, by the first search; see `baseline_by_helper`."""
    rows = baseline_by_helper(pools, audit)
    return rows[rows["search"] == audit.searches[0]]


def helper_means(games: pd.DataFrame, printed: Mapping[str, float]) -> pd.DataFrame:
    """Means of `helper_games` beside the paper's."""
    groups = games.groupby("helper", sort=False)
    table = groups[["c_lb", "auc"]].mean()
    table.insert(1, "c_lb_sd", groups["c_lb"].std())
    table["paper_c_lb"] = [printed.get(str(name), np.nan) for name in table.index]
    return table.reset_index()


def loss_groups(
    pools: Pools, names: Sequence[str], kinds: Mapping[str, str]
) -> dict[str, dict[str, FloatArray]]:
    """Losses of each target by kind of example (Figures 13 and 14)."""
    by_kind = pools.by_kind()
    return {
        name: {kinds[kind]: by_kind[kind].targets[name][:, 0] for kind in kinds if kind in by_kind}
        for name in names
    }


def by_game(
    audits: TargetAudits, target: str, audit: AuditName = "panoramia", *, column: str = "eps"
) -> pd.Series:
    """By seed, a column of `TargetAudits.table` by the first search; "eps" of PANORAMIA: the
    difference.
    """
    if (table := audits.table[audits.table["target"] == target]).empty:
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


def null_samples(
    audits: TargetAudits, names: Iterable[str] | None = None
) -> dict[str, list[float]]:
    """Difference of the bounds of each null target, of all or of these names."""
    found = dict.fromkeys(one.target.name for one in audits.judged if one.target.kind == "null")
    return {name: by_game(audits, name).tolist() for name in (found if names is None else names)}


def table_three_evidence(
    results: PanoramiaResults, names: list[str], nulls: Iterable[str] | None = None
) -> Evidence:
    """Table 3 in the paper's form, O(1) in any, of targets by their degree of over-training."""
    audits = results.forms["paper"]
    own, real = (
        {name: by_game(audits, name, audit) for name in names} for audit in ("panoramia", "rm_rn")
    )
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


def figure_six(
    results: PanoramiaResults, target: str, nulls: Iterable[str] | None = None
) -> Evidence:
    """Figure 6 (sections 5.3 and D.3): eps~ at the largest m over a quarter of it, and over O(1) at
    4/7.
    """
    audits, m = results.decisive, results.decisive.config.test
    grid = results.with_o1.select("o1", target=target)
    # CIFAR-10's 10,000 test images give O(1) an m of 20,000 at most, where PANORAMIA goes to
    # 35,000.
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
    """Figure 10: share of members in the first tenth of an attack's guesses and of the
    baseline's.
    """
    games = audits.select("panoramia", target=target)

    def first_tenth(scores: FloatArray, membership: Flags) -> float:
        order = np.argsort(
            -scores, kind="stable"
        )  # equal scores stay in the examples' random order
        return float(membership[order[: max(1, scores.size // 10)]].mean())

    attack = [first_tenth(one.attack, one.membership) for one in games]
    baseline = [first_tenth(one.baseline, one.membership) for one in games]
    ahead = [first - second for first, second in zip(attack, baseline, strict=True)]
    return Evidence("panoramia-figure-10", "game", {"members first": ahead, "room above": baseline})
