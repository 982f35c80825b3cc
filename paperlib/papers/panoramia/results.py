"""What the tables and verdicts of every modality share: audits in both forms, and how they are read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from paperlib.audits.panoramia.pools import Pools
from paperlib.audits.panoramia.run import TargetAudits
from paperlib.report import paper_table, targets

NEAR_ZERO = 0.1
"""An eps-tilde up to this counts as 0 in verdicts, and so does a difference of two, nats."""


@dataclass(frozen=True, eq=False)
class FormResults:
    """Audits of all targets in both forms.

    Attributes:
        pools: What was audited, with all helpers.
        forms: "helpers" and "paper" to their audits; O(1), the same in both, is in "helpers".
    """

    pools: Pools
    forms: Mapping[str, TargetAudits]

    @property
    def search(self) -> str:
        """The first way to pay for the search over recall: what verdicts are about."""
        return self.forms["helpers"].config.searches[0]

    @cached_property
    def summary(self) -> pd.DataFrame:
        """Means over games, one row per target, audit, form and search; see `TargetAudits.summary`."""
        return pd.concat([audits.summary() for audits in self.forms.values()], ignore_index=True)

    def one(self, target: str, audit: str = "panoramia", *, form: str = "helpers") -> dict[str, float]:
        """The mean row of a target by the first search."""
        return mean_row(self.summary, target=target, audit=audit, form=form, search=self.search)

    def value(self, target: str, audit: str = "panoramia", *, form: str = "helpers") -> float:
        """Mean eps-tilde, or epsilon, of a target by the first search."""
        return self.one(target, audit, form=form)["value"]

    @property
    def trained(self) -> list[str]:
        """Targets without DP that learned the members, by epochs."""
        table = self.pools.table
        return list(table.loc[~table["null"] & table["dp_epsilon"].isna(), "target"])

    @property
    def null(self) -> list[str]:
        """Targets that never saw the members."""
        return list(self.pools.table.loc[self.pools.table["null"], "target"])

    @property
    def private(self) -> list[str]:
        """Targets with DP."""
        return list(self.pools.table.loc[self.pools.table["dp_epsilon"].notna(), "target"])


def mean_row(summary: pd.DataFrame, **wanted: str) -> dict[str, float]:
    """The numbers of the first row of a summary that has these values.

    Raises:
        ValueError: No such row: another target, or an audit that was not played.

    >>> mean_row(pd.DataFrame({"target": ["a", "b"], "value": [0.5, 2.0]}), target="b")
    {'value': 2.0}
    """
    rows = summary[np.logical_and.reduce([summary[name] == value for name, value in wanted.items()])]
    if rows.empty:
        raise ValueError(f"{wanted}: no such row in the summary")
    numbers = rows.select_dtypes("number").iloc[0]
    return {str(name): float(value) for name, value in numbers.items()}


def table_three(results: FormResults, *, models: str) -> pd.DataFrame:
    """Our targets, then the paper's of Table 3: every bound of the first search.

    Args:
        results: TargetAudits of all targets.
        models: Which of the paper's to show, a query of its table.

    Returns:
        One row per target: source, target, null, and of each form c_lb, c+eps_lb, eps~ and, where it was
        played, RM;RN, then O(1), with deviations (sd) over games; the paper's ± stands under sd.
    """
    rows: list[dict[str, object]] = []
    for target, null in results.pools.table[["target", "null"]].itertuples(index=False):
        row: dict[str, object] = {"source": "ours", "target": target, "null": null}
        for form in results.forms:
            row |= _three(f" ({form} form)", results.one(target, form=form))
        for form, audits in results.forms.items():
            if audits.select("rm_rn"):
                row |= _real(f"RM;RN ({form} form)", results.one(target, "rm_rn", form=form))
        rows.append(row | _real("O(1)", results.one(target, "o1")))
    return pd.concat([pd.DataFrame(rows), _printed_three(models)], ignore_index=True)


def _three(ending: str, row: Mapping[str, Any]) -> dict[str, Any]:
    names = {"c_lb": "c_lb", "c+eps_lb": "c_plus_eps_lb", "eps~": "value", "sd": "value_sd"}
    return {f"{ours}{ending}": row[name] for ours, name in names.items()}


def _real(name: str, row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: row["value"], f"sd {name}": row["value_sd"]}


def _printed_three(models: str) -> pd.DataFrame:
    printed = paper_table("panoramia_table03").query(models)
    printed = printed.assign(
        value=printed["eps_tilde"].fillna(printed["eps"]),
        value_sd=printed["eps_tilde_pm"].fillna(printed["eps_pm"]),
    )
    rows = []
    for name, group in printed.groupby("target_model", sort=False):
        by: dict[Any, dict[Any, Any]] = {row["audit"]: row for row in group.to_dict("records")}
        rows.append(
            {"source": "paper", "target": name, "null": False}
            | _three(" (paper form)", by["panoramia"])
            | _real("RM;RN (paper form)", by["panoramia_rm_rn"])
            | _real("O(1)", by["o1_rm_rn"])
        )
    return pd.DataFrame(rows)


def judged_order(results: FormResults, names: Sequence[str], *, form: str) -> tuple[list[str], str]:
    """What Table 3 must show: eps-tilde grows with epochs and lies below RM;RN, and that below O(1).

    Args:
        results: TargetAudits of all targets.
        names: Targets by epochs.
        form: Whose eps-tilde and RM;RN.

    Returns:
        What does not hold, in words, and the numbers in words.
    """
    own, real = (
        [results.value(name, audit, form=form) for name in names] for audit in ("panoramia", "rm_rn")
    )
    grid = [results.value(name, "o1") for name in names]
    wrong = [] if is_ordered(own) else ["eps~ does not grow with epochs"]
    if any(a > b + NEAR_ZERO for a, b in zip(own, real, strict=True)):
        wrong.append("eps~ exceeds RM;RN")
    if any(a > b + NEAR_ZERO for a, b in zip(real, grid, strict=True)):
        wrong.append("RM;RN, whose attack sees more than the target's mean loss, exceeds O(1)")
    ours = "; ".join(
        f"{name}: eps~ {a:.2f}, RM;RN {b:.2f}, O(1) {c:.2f}"
        for name, a, b, c in zip(names, own, real, grid, strict=True)
    )
    return wrong, ours


def grows_with_test(sizes: pd.DataFrame, target: str) -> dict[str, Any]:
    """What Figure 6 must show: the bound on c + epsilon grows with the test part (``holds``, ``ours``).

    Args:
        sizes: Of `TargetAudits.over_test_size`.
        target: Whose bound.
    """
    rows = sizes[(sizes["target"] == target) & (sizes["audit"] == "panoramia")]
    means = rows.groupby("m")[["c_plus_eps_lb", "ceiling"]].mean()
    first, last = means.iloc[0], means.iloc[-1]
    return {
        "holds": bool(first["c_plus_eps_lb"] < last["c_plus_eps_lb"] <= last["ceiling"]),
        "ours": f"{target}: c+eps from {first['c_plus_eps_lb']:.2f} at m {means.index[0]} to "
        f"{last['c_plus_eps_lb']:.2f} at m {means.index[-1]}, ceiling {last['ceiling']:.2f}",
    }


def precise_at_low_recall(curves: pd.DataFrame, target: str, recall: float = 0.1) -> dict[str, Any]:
    """What Figure 10 must show: the attack is more precise than the baseline (``holds``, ``ours``).

    Args:
        curves: Of `TargetAudits.curves`, the target's alone.
        target: Its name.
        recall: Where precision is read: at the first guess that reaches it, mean over games.
    """
    reached = curves[curves["recall"] >= recall]
    low = reached.groupby(["test", "seed"])["precision"].first().groupby("test").mean()
    return {
        "holds": bool(low["mia"] > low["baseline"]),
        "ours": f"{target}: precision at recall {recall:g} {low['mia']:.2f}, baseline {low['baseline']:.2f}",
    }


def is_ordered(values: Sequence[float]) -> bool:
    """Whether values grow by more than what counts as 0, and none lies further below the one before.

    >>> is_ordered([0.0, 0.5, 0.45, 1.0]), is_ordered([0.5, 0.0, 1.0]), is_ordered([0.8, 0.85])
    (True, False, False)
    """
    return bool(np.all(np.diff(values) >= -NEAR_ZERO) and values[-1] > values[0] + NEAR_ZERO)


def with_headlines(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Verdicts with what the paper prints of each target: the arguments of ``record`` but the scale."""
    printed = targets().set_index("id")["headline"]
    return [{"note": "", **row, "paper": printed[row["target"]]} for row in rows]
