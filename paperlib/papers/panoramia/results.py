"""Results of PANORAMIA: audits of all targets, and what all modalities read from them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from paperlib.audits.panoramia.game import AuditConfig
from paperlib.audits.panoramia.pools import Pools
from paperlib.audits.panoramia.results import AUDITS, AuditName, TargetAudits
from paperlib.audits.panoramia.run import baseline_by_helper
from paperlib.core import FloatArray


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
        return next((audits for audits in self.forms.values() if audits.select("o1")), self.decisive)

    @cached_property
    def summary(self) -> pd.DataFrame:
        """The rows of `means_over_games`, of all forms."""
        return pd.concat([audits.summary() for audits in self.forms.values()], ignore_index=True)

    def one(
        self, target: str, audit: AuditName = "panoramia", *, form: str | None = None
    ) -> dict[str, float]:
        """Means over games of a target by the first search."""
        wanted = {"target": target, "audit": audit, "form": form or self.form, "search": self.search}
        rows = self.summary[(self.summary[list(wanted)] == pd.Series(wanted)).all(axis=1)]
        if rows.empty:
            raise ValueError(f"{wanted}: no such row in the summary")
        numbers = rows.select_dtypes("number").iloc[0]
        return {str(name): float(value) for name, value in numbers.items()}

    def value(self, target: str, audit: AuditName = "panoramia", *, form: str | None = None) -> float:
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
            found |= {f"paper_{name}": row[name] for name in ("c_lb", "c_plus_eps_lb") if name in row}
            found |= {"paper_eps_tilde": row["eps_tilde"], "paper_eps_tilde_sd": row["eps_tilde_pm"]}
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
