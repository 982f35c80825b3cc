"""The tables and verdicts of PANORAMIA on text: Tables 3, 5 and 9, Figures 6, 8, 9, 10 and 14."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from paperlib.core import FloatArray
from paperlib.experiments.panoramia.audits import (
    AuditConfig,
    Audits,
    audit_pools,
    baseline_by_helper,
    over_training_size,
)
from paperlib.experiments.panoramia.pools import Pool, Pools
from paperlib.experiments.panoramia.text import with_helpers
from paperlib.report import paper_table, targets

NEAR_ZERO = 0.1
"""An eps-tilde up to this counts as 0 in verdicts, nats."""


@dataclass(frozen=True, eq=False)
class TextResults:
    """Audits of all targets in both forms.

    Attributes:
        pools: What was audited, with all helpers.
        forms: "paper" and "helpers" to their audits; O(1), the same in both, is in "helpers".
    """

    pools: Pools
    forms: Mapping[str, Audits]

    @property
    def summary(self) -> pd.DataFrame:
        """Means over games, one row per target, audit, form and search; see `Audits.summary`."""
        return pd.concat([audits.summary() for audits in self.forms.values()], ignore_index=True)

    def value(self, target: str, audit: str = "panoramia", *, form: str = "helpers") -> float:
        """Mean eps-tilde, or epsilon, of a target by the first search."""
        found = self.forms[form].summary()
        search = self.forms[form].config.searches[0]
        rows = found[(found["target"] == target) & (found["audit"] == audit) & (found["search"] == search)]
        return float(rows["value"].iloc[0])

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


def standing_helpers(pools: Pools) -> tuple[str, ...]:
    """The helpers of the form "helpers": all but the one that was trained for less long."""
    return tuple(name for name in pools.helpers if not name.endswith("epochs"))


def run_text(pools: Pools, audit: AuditConfig) -> TextResults:
    """Audit all targets in both forms; O(1), which sees the target's loss alone, once."""
    chosen = with_helpers(pools, standing_helpers(pools))
    helpers = audit_pools(chosen, replace(audit, form="helpers"))
    paper = audit_pools(chosen, replace(audit, form="paper"), audits=["panoramia", "rm_rn"])
    return TextResults(pools, {"paper": paper, "helpers": helpers})


def table_three(results: TextResults) -> pd.DataFrame:
    """Our targets, then the paper's GPT-2: every bound of the first search.

    Returns:
        One row per target: source, target, null, and of both forms c_lb, c+eps_lb, eps~ and RM;RN, then O(1),
        with deviations (sd) over games; the paper's ± stands under sd.
    """
    rows: list[dict[str, object]] = []
    summary = results.summary
    summary = summary[summary["search"] == results.forms["helpers"].config.searches[0]]
    for target, found in summary.groupby("target", sort=False):
        row: dict[str, object] = {"source": "ours", "target": target, "null": bool(found["null"].iloc[0])}
        for form in ("paper", "helpers"):
            one = found[(found["audit"] == "panoramia") & (found["form"] == form)].iloc[0]
            row |= {
                f"c_lb ({form} form)": one["c_lb"],
                f"c+eps_lb ({form} form)": one["c_plus_eps_lb"],
                f"eps~ ({form} form)": one["value"],
                f"sd ({form} form)": one["value_sd"],
            }
        for form in ("paper", "helpers"):
            one = found[(found["audit"] == "rm_rn") & (found["form"] == form)].iloc[0]
            row |= {f"RM;RN ({form} form)": one["value"], f"sd RM;RN ({form} form)": one["value_sd"]}
        one = found[found["audit"] == "o1"].iloc[0]
        rows.append({**row, "O(1)": one["value"], "sd O(1)": one["value_sd"]})
    return pd.concat([pd.DataFrame(rows), _printed_three()], ignore_index=True)


def _printed_three() -> pd.DataFrame:
    printed = paper_table("panoramia_table03").query("base_model == 'GPT-2'")
    rows = []
    for name, group in printed.groupby("target_model", sort=False):
        by = group.set_index("audit")
        own = by.loc["panoramia"]
        rows.append(
            {
                "source": "paper",
                "target": name,
                "null": False,
                "c_lb (paper form)": own["c_lb"],
                "c+eps_lb (paper form)": own["c_plus_eps_lb"],
                "eps~ (paper form)": own["eps_tilde"],
                "sd (paper form)": own["eps_tilde_pm"],
                "RM;RN (paper form)": by.loc["panoramia_rm_rn", "eps"],
                "sd RM;RN (paper form)": by.loc["panoramia_rm_rn", "eps_pm"],
                "O(1)": by.loc["o1_rm_rn", "eps"],
                "sd O(1)": by.loc["o1_rm_rn", "eps_pm"],
            }
        )
    return pd.DataFrame(rows)


def table_five(pools: Pools, audit: AuditConfig) -> pd.DataFrame:
    """The baseline's bound without helper and with one or both of two, beside the paper's on WikiText.

    Returns:
        Columns helper ("none", "synthetic", "real 1" on D_G, "all"), c_lb, sd (over games), auc, paper.
    """
    found = baseline_by_helper(with_helpers(pools, ("synthetic", "real 1")), replace(audit, tries=1))
    found = found[found["search"] == audit.searches[0]]
    groups = found.groupby("helper", sort=False)
    table = groups[["c_lb", "auc"]].mean()
    table.insert(1, "sd", groups["c_lb"].std())
    printed = paper_table("panoramia_table05").query("dataset == 'WikiText'")
    values = dict(zip(printed["helper_training_data"], printed["c_lb"], strict=True))
    names = {"none": "no_helper", "synthetic": "gen", "real 1": "real"}
    table["paper"] = [values.get(names.get(str(helper), ""), np.nan) for helper in table.index]
    return table.reset_index()


def ladder(pools: Pools, audit: AuditConfig, *, names: Sequence[str]) -> pd.DataFrame:
    """What more helpers in attack and baseline do to the null, and to targets that leak.

    Args:
        pools: With all helpers.
        audit: How, with its first attack alone; the form is "helpers" on every step.
        names: Targets.

    Returns:
        One row per step and target: helpers, c_lb, c_plus_eps_lb, eps_tilde, means over games.
    """
    early = [name for name in pools.helpers if name.endswith("epochs")]
    late = [name for name in pools.helpers if name.startswith("real ")]
    steps = [["synthetic"], ["base", "synthetic"], ["base", "synthetic", *early]]
    steps += [["base", "synthetic", *late[: count + 1]] for count in range(len(late))]
    rows: list[pd.DataFrame] = []
    for step in dict.fromkeys(map(tuple, steps)):
        found = audit_pools(
            with_helpers(pools, step), _quick(audit, "helpers"), targets=names, audits=["panoramia"]
        ).summary()
        found = found[found["search"] == audit.searches[0]]
        found = found.rename(columns={"value": "eps_tilde"})[["target", "c_lb", "c_plus_eps_lb", "eps_tilde"]]
        rows.append(found.assign(helpers=", ".join(step)))
    return pd.concat(rows, ignore_index=True)[["helpers", "target", "c_lb", "c_plus_eps_lb", "eps_tilde"]]


def what_helped(steps: pd.DataFrame, null: Sequence[str]) -> str:
    """The ladder in a sentence: which step has the lowest eps-tilde on null targets.

    Args:
        steps: Of `ladder`.
        null: Names of the null targets, the mean over which is compared.
    """
    rows = steps[steps["target"].isin(null)]
    means = rows.groupby("helpers", sort=False)["eps_tilde"].mean()
    best, first = str(means.idxmin()), means.iloc[0]
    if means.min() >= first - 0.05:
        return (
            f"No step brought the null down: it is {first:.2f} with {means.index[0]}, and no less with more."
        )
    return (
        f"The null targets' eps-tilde is {first:.2f} with {means.index[0]} alone, and lowest with {best}: "
        f"{means.min():.2f}. With all helpers it is {means.iloc[-1]:.2f}."
    )


def _quick(audit: AuditConfig, form: str) -> AuditConfig:
    return replace(audit, attacks=audit.attacks[:1], tries=1, form=form)


def baseline_sizes(pools: Pools, audit: AuditConfig, sizes: Sequence[int]) -> pd.DataFrame:
    """The paper's baseline over the size of its training part, the test part fixed, or what is left.

    Args:
        pools: Audited for their last target.
        audit: How, with its first attack alone; its training part and test part together are shared out on
            the second way.
        sizes: Training sizes, even, below that sum.

    Returns:
        Columns way ("fixed test part", "what is left"), train, m, seed, c_lb, baseline_auc.

    Source:
        PANORAMIA, appendix D.1 and Figure 9.
    """
    whole, target, paper = audit.train + audit.test, [pools.targets[-1]], _quick(audit, "paper")
    if max(sizes) > audit.train:
        raise ValueError(f"sizes: expected at most {audit.train}, got {max(sizes)}")
    fixed = over_training_size(pools, paper, sizes, targets=target)
    parts = [fixed.assign(way="fixed test part")]
    larger = sorted({*sizes, *(2 * (whole * share // 16) for share in (4, 5, 6, 7))})
    for size in larger:
        rest = replace(paper, train=size, test=whole - size)
        table = audit_pools(pools, rest, targets=target, audits=["panoramia"]).table
        parts.append(table.assign(way="what is left", train=size))
    joined = pd.concat(parts, ignore_index=True)
    joined = joined[joined["search"] == audit.searches[0]]
    return joined[["way", "train", "m", "seed", "c_lb", "baseline_auc"]]


def loss_groups(pools: Pools, names: Sequence[str]) -> dict[str, dict[str, FloatArray]]:
    """Mean losses of members, real non-members and generated chunks: Figure 14, panels by model.

    Args:
        pools: Of text.
        names: Targets; the synthetic helper is the last panel.
    """
    found = {name: _by_kind(pools, lambda pool, name=name: pool.targets[name]) for name in names}
    return found | {"synthetic helper": _by_kind(pools, lambda pool: pool.helpers["synthetic"])}


def _by_kind(pools: Pools, read) -> dict[str, FloatArray]:
    words = {"members": "real members", "nonmembers": "real non-members", "generated": "synthetic"}
    by_kind: dict[str, Pool] = pools.by_kind()
    return {words[kind]: read(by_kind[kind])[:, 0] for kind in words if kind in by_kind}


def verdicts(
    results: TextResults,
    curves: pd.DataFrame,
    helpers: pd.DataFrame,
    sizes: pd.DataFrame,
    test_sizes: pd.DataFrame,
) -> list[dict[str, object]]:
    """What the paper's tables and figures on text must show, judged on this run.

    Args:
        results: Of `run_text`.
        curves: Of `loss_curves`.
        helpers: Of `table_five`.
        sizes: Of `baseline_sizes`.
        test_sizes: Of `Audits.over_test_size`.

    Returns:
        The arguments of ``record`` but the scale.
    """
    rows = [
        _table_three(results),
        _table_five(helpers),
        _table_nine(results),
        _figure_six(results, test_sizes),
        _figure_eight(curves),
        _figure_nine(sizes),
        _figure_ten(results),
        _figure_fourteen(results),
    ]
    printed = targets().set_index("id")["headline"]
    return [{**row, "paper": printed[str(row["target"])]} for row in rows]


def _table_three(results: TextResults) -> dict[str, object]:
    names = results.trained
    own = [results.value(name, form="paper") for name in names]
    real = [results.value(name, "rm_rn", form="paper") for name in names]
    grid = [results.value(name, "o1") for name in names]
    grows = own[-1] > own[0] and bool(np.all(np.diff(own) >= -NEAR_ZERO))
    below = all(a <= b + NEAR_ZERO for a, b in zip(own, real, strict=True))
    ordered = all(a <= b + NEAR_ZERO for a, b in zip(real, grid, strict=True))
    null = max(results.value(name, form=form) for name in results.null for form in results.forms)
    worst = max(results.value(name, form="paper") for name in results.null)
    said = [] if grows else ["eps~ does not grow with epochs"]
    said += [] if below else ["eps~ exceeds RM;RN"]
    said += [] if ordered else ["RM;RN, whose attack reads every token's loss, exceeds O(1)"]
    note = f"Text part. Null targets: {worst:.2f} at most in the paper's form, {null:.2f} in any. "
    return {
        "target": "panoramia-table-03",
        "holds": grows and below and ordered,
        "ours": "; ".join(
            f"{name}: eps~ {a:.2f}, RM;RN {b:.2f}, O(1) {c:.2f}"
            for name, a, b, c in zip(names, own, real, grid, strict=True)
        ),
        "note": note + "; ".join(said) + ("." if said else ""),
    }


def _table_five(helpers: pd.DataFrame) -> dict[str, object]:
    by = helpers.set_index("helper")
    (gen, real, none), spread = by.loc[["synthetic", "real 1", "none"], "c_lb"], by["sd"].fillna(0.0)
    holds = gen + spread["synthetic"] + spread["real 1"] >= real and min(gen, real) > none
    note = "Text part."
    if real > gen:
        note += " The helper on D_G, which the generator learned from, is the better one here."
    return {
        "target": "panoramia-table-05",
        "holds": bool(holds),
        "ours": f"c_lb {gen:.2f} (generated), {real:.2f} (real), {none:.2f} (none)",
        "note": note,
    }


def _table_nine(results: TextResults) -> dict[str, object]:
    names = results.private
    if not names:
        return {
            "target": "panoramia-table-09",
            "holds": False,
            "ours": "no DP target in this run",
            "note": "Left out by the parameters.",
        }
    own = {name: results.value(name, form="paper") for name in names}
    grid = {name: results.value(name, "o1") for name in names}
    other = max(results.value(name) for name in names)
    return {
        "target": "panoramia-table-09",
        "holds": max(*own.values(), *grid.values(), 0.0) <= NEAR_ZERO,
        "ours": "; ".join(f"{name}: eps~ {own[name]:.2f}, O(1) {grid[name]:.2f}" for name in names),
        "note": f"In the paper's form; with helpers in attack and baseline at most {other:.2f}. "
        f"Without DP {results.value(results.trained[-1], form='paper'):.2f}.",
    }


def _figure_six(results: TextResults, sizes: pd.DataFrame) -> dict[str, object]:
    name = results.trained[-1]
    rows = sizes[(sizes["target"] == name) & (sizes["audit"] == "panoramia")]
    means = rows.groupby("m")[["c_plus_eps_lb", "ceiling"]].mean()
    first, last = means.iloc[0], means.iloc[-1]
    return {
        "target": "panoramia-figure-06",
        "holds": bool(last["c_plus_eps_lb"] > first["c_plus_eps_lb"]),
        "ours": f"{name}: c+eps from {first['c_plus_eps_lb']:.2f} at m {means.index[0]} to "
        f"{last['c_plus_eps_lb']:.2f} at m {means.index[-1]}, ceiling {last['ceiling']:.2f}",
        "note": "Text part (d), the form with helpers.",
    }


def _figure_eight(curves: pd.DataFrame) -> dict[str, object]:
    best = int(curves["validation"].argmin())
    low, last = curves["validation"].iloc[[best, -1]]
    falls = bool(np.all(np.diff(curves["train"]) < 0))
    return {
        "target": "panoramia-figure-08",
        "holds": bool(falls and last > low),
        "ours": f"validation loss {low:.3f} at epoch {best + 1}, {last:.3f} at epoch {len(curves)}; "
        f"training loss from {curves['train'].iloc[0]:.2f} to {curves['train'].iloc[-1]:.2f}",
        "note": "",
    }


def _figure_nine(sizes: pd.DataFrame) -> dict[str, object]:
    fixed, left = (
        sizes[sizes["way"] == way].groupby("train")["c_lb"].mean()
        for way in ("fixed test part", "what is left")
    )
    rises, falls = fixed.iloc[-1] > fixed.iloc[0], left.iloc[-1] < left.max()
    said = [] if rises else ["with the test part fixed it does not rise"]
    said += [] if falls else ["with the test part shrinking it does not fall"]
    return {
        "target": "panoramia-figure-09",
        "holds": bool(rises and falls),
        "ours": f"c_lb from {fixed.iloc[0]:.2f} to {fixed.iloc[-1]:.2f} over {fixed.index[0]} to "
        f"{fixed.index[-1]} training examples; test part shrinking: best {left.max():.2f}, then "
        f"{left.iloc[-1]:.2f}",
        "note": "; ".join(said),
    }


def _figure_ten(results: TextResults) -> dict[str, object]:
    name = results.trained[-1]
    curves = results.forms["paper"].curves(target=name)
    low = (
        curves[curves["recall"] >= 0.1].groupby(["test", "seed"])["precision"].first().groupby("test").mean()
    )
    return {
        "target": "panoramia-figure-10",
        "holds": bool(low["mia"] > low["baseline"]),
        "ours": f"{name}: precision at recall 0.1 {low['mia']:.2f}, baseline {low['baseline']:.2f}",
        "note": "Text part, the paper's form.",
    }


def _figure_fourteen(results: TextResults) -> dict[str, object]:
    gaps = {}
    for name in results.trained:
        means = {kind: values.mean() for kind, values in loss_groups(results.pools, [name])[name].items()}
        gaps[name] = float(means["real non-members"] - means["real members"])
    return {
        "target": "panoramia-figure-14",
        "holds": bool(np.all(np.diff(list(gaps.values())) > 0)),
        "ours": "mean loss of real non-members minus members: "
        + "; ".join(f"{name} {gap:.2f}" for name, gap in gaps.items()),
        "note": "",
    }
