"""The tables and verdicts of PANORAMIA on text: Tables 3, 5 and 9, Figures 6, 8, 9, 10 and 14."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from paperlib.audits.panoramia.config import AuditConfig
from paperlib.audits.panoramia.pools import Pool, Pools
from paperlib.audits.panoramia.run import audit_pools, baseline_by_helper, over_training_size
from paperlib.core import FloatArray
from paperlib.papers.panoramia.results import (
    NEAR_ZERO,
    FormResults,
    grows_with_test,
    judged_order,
    mean_row,
    precise_at_low_recall,
    with_headlines,
)
from paperlib.papers.panoramia.results import table_three as all_bounds
from paperlib.papers.panoramia.text.pools import with_helpers
from paperlib.report import paper_table


def standing_helpers(pools: Pools) -> tuple[str, ...]:
    """The helpers of the form "helpers": all but the one that was trained for less long."""
    return tuple(name for name in pools.helpers if not name.endswith("epochs"))


def run_text(pools: Pools, audit: AuditConfig) -> FormResults:
    """Audit all targets in both forms; O(1), which sees the target's loss alone, once."""
    chosen = with_helpers(pools, standing_helpers(pools))
    helpers = audit_pools(chosen, replace(audit, form="helpers"))
    paper = audit_pools(chosen, replace(audit, form="paper"), audits=["panoramia", "rm_rn"])
    return FormResults(pools, {"paper": paper, "helpers": helpers})


def table_three(results: FormResults) -> pd.DataFrame:
    """Our targets, then the paper's GPT-2: every bound of the first search; see `results.table_three`."""
    return all_bounds(results, models="base_model == 'GPT-2'")


def table_five(pools: Pools, audit: AuditConfig) -> pd.DataFrame:
    """The baseline's bound without helper and with one or both of two, beside the paper's on WikiText.

    Returns:
        Columns helper ("none", "synthetic", "real 1" on D_G, "all"), c_lb, sd (over games), auc, paper.
    """
    found = baseline_by_helper(with_helpers(pools, ("synthetic", "real 1")), replace(audit, restarts=1))
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
    return replace(audit, attacks=audit.attacks[:1], restarts=1, form=form)


def null_by_restarts(results: FormResults) -> pd.DataFrame:
    """The null targets' bounds with attacks and baseline trained once, and with the best of all restarts.

    Returns:
        One row per form, null target and number of restarts, by the first search, means over games: form,
        target, restarts, c_lb, c_plus_eps_lb, eps_tilde, sd (of eps_tilde).
    """
    rows = []
    chosen = with_helpers(results.pools, standing_helpers(results.pools))
    for form, audits in results.forms.items():
        for restarts in dict.fromkeys((1, audits.config.restarts)):
            played = audits
            if restarts != audits.config.restarts:
                once = replace(audits.config, restarts=restarts)
                played = audit_pools(chosen, once, targets=results.null, audits=["panoramia"])
            summary = played.summary()
            for target in results.null:
                one = mean_row(summary, target=target, audit="panoramia", search=results.search)
                bounds = {name: one[name] for name in ("c_lb", "c_plus_eps_lb")}
                found = {"eps_tilde": one["value"], "sd": one["value_sd"]}
                rows.append({"form": form, "target": target, "restarts": restarts, **bounds, **found})
    return pd.DataFrame(rows).sort_values(["form", "target"], kind="stable", ignore_index=True)


def restarts_in_words(table: pd.DataFrame) -> str:
    """The table of `null_by_restarts` in a sentence: whether more restarts move the null.

    They do if by more than what counts as 0 and than the standard deviation over games.

    >>> once = {"form": "paper", "target": "null", "restarts": 1, "eps_tilde": 0.1, "sd": 0.1}
    >>> restarts_in_words(pd.DataFrame([once, once | {"restarts": 5, "eps_tilde": 0.4, "sd": 0.2}]))
    'Best of 5 moves null (paper form) from 0.10 to 0.40, by more than 0.1 and than games differ.'
    """
    least, most = table["restarts"].min(), table["restarts"].max()
    if least == most:
        return f"Attacks were trained {most} time{'s' if most > 1 else ''}; there is nothing to compare."
    said = []
    for (form, target), rows in table.groupby(["form", "target"], sort=False):
        values = dict(zip(rows["restarts"], rows["eps_tilde"], strict=True))
        first, last = values[least], values[most]
        if abs(last - first) > max(NEAR_ZERO, float(rows["sd"].fillna(0.0).max())):
            said.append(f"{target} ({form} form) from {first:.2f} to {last:.2f}")
    if said:
        return f"Best of {most} moves {'; '.join(said)}, by more than {NEAR_ZERO:g} and than games differ."
    means = table.groupby("restarts")["eps_tilde"].mean()
    return (
        f"Best of {most} moves no null target by more than {NEAR_ZERO:g} and than games differ: their mean "
        f"eps-tilde is {means[least]:.2f} with one training and {means[most]:.2f} with the best of {most}."
    )


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
    results: FormResults,
    curves: pd.DataFrame,
    helpers: pd.DataFrame,
    sizes: pd.DataFrame,
    test_sizes: pd.DataFrame,
) -> list[dict[str, Any]]:
    """What the paper's tables and figures on text must show, judged on this run.

    Args:
        results: Of `run_text`.
        curves: Of `loss_curves`.
        helpers: Of `table_five`.
        sizes: Of `baseline_sizes`.
        test_sizes: Of `TargetAudits.over_test_size`.

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
    return with_headlines(rows)


def _table_three(results: FormResults) -> dict[str, Any]:
    wrong, ours = judged_order(results, results.trained, form="paper")
    null = max(results.value(name, form=form) for name in results.null for form in results.forms)
    worst = max(results.value(name, form="paper") for name in results.null)
    note = f"Text part. Null targets: {worst:.2f} at most in the paper's form, {null:.2f} in any."
    said = f" {'; '.join(wrong)}." if wrong else ""
    return {"target": "panoramia-table-03", "holds": not wrong, "ours": ours, "note": note + said}


def _table_five(helpers: pd.DataFrame) -> dict[str, Any]:
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


def _table_nine(results: FormResults) -> dict[str, Any]:
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


def _figure_six(results: FormResults, sizes: pd.DataFrame) -> dict[str, Any]:
    found = grows_with_test(sizes, results.trained[-1])
    return {"target": "panoramia-figure-06", **found, "note": "Text part (d), the form with helpers."}


def _figure_eight(curves: pd.DataFrame) -> dict[str, Any]:
    best = int(curves["validation"].argmin())
    low, last = curves["validation"].iloc[[best, -1]]
    falls = bool(np.all(np.diff(curves["train"]) < 0))
    return {
        "target": "panoramia-figure-08",
        "holds": bool(falls and last > low),
        "ours": f"validation loss {low:.3f} at epoch {best + 1}, {last:.3f} at epoch {len(curves)}; "
        f"training loss from {curves['train'].iloc[0]:.2f} to {curves['train'].iloc[-1]:.2f}",
    }


def _figure_nine(sizes: pd.DataFrame) -> dict[str, Any]:
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


def _figure_ten(results: FormResults) -> dict[str, Any]:
    name = results.trained[-1]
    found = precise_at_low_recall(results.forms["paper"].curves(target=name), name)
    return {"target": "panoramia-figure-10", **found, "note": "Text part, the paper's form."}


def _figure_fourteen(results: FormResults) -> dict[str, Any]:
    gaps = {}
    for name in results.trained:
        means = {kind: values.mean() for kind, values in loss_groups(results.pools, [name])[name].items()}
        gaps[name] = float(means["real non-members"] - means["real members"])
    return {
        "target": "panoramia-figure-14",
        "holds": bool(np.all(np.diff(list(gaps.values())) > 0)),
        "ours": "mean loss of real non-members minus members: "
        + "; ".join(f"{name} {gap:.2f}" for name, gap in gaps.items()),
    }
