"""The tables and verdicts of PANORAMIA on text: Tables 3, 5 and 9, Figures 6, 8, 9, 10 and 14."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from paperlib.audits.panoramia.config import AuditConfig
from paperlib.audits.panoramia.pools import SYNTHETIC, Helper, Pools
from paperlib.audits.panoramia.run import audit_pools, over_training_size
from paperlib.core import FloatArray
from paperlib.papers.panoramia.results import (
    NEAR_ZERO,
    PanoramiaResults,
    grows_with_test,
    helper_table,
    judged_order,
    loss_groups,
    mean_row,
    precise_at_low_recall,
    with_headlines,
)
from paperlib.papers.panoramia.results import table_three as all_bounds
from paperlib.papers.panoramia.text.pools import with_helpers
from paperlib.report import paper_table

KINDS = {"members": "real members", "nonmembers": "real non-members", "generated": "synthetic"}
"""Kinds of chunks, and their names in figures."""


def standing_helpers(pools: Pools) -> tuple[Helper, ...]:
    """The helpers of the form "helpers": all but one on real text that was trained for fewer epochs."""
    early, _ = _real_helpers(pools)
    return tuple(helper for helper in pools.helpers if helper not in early)


def _real_helpers(pools: Pools) -> tuple[list[Helper], list[Helper]]:
    """Helpers on real text that were trained for fewer epochs than the longest, and the others."""
    real = [helper for helper in pools.helpers if helper.data == "real"]
    most = max((helper.epochs for helper in real), default=0)
    return [one for one in real if one.epochs < most], [one for one in real if one.epochs == most]


def run_text(pools: Pools, audit: AuditConfig) -> PanoramiaResults:
    """Audit all targets in both forms; O(1), which sees the target's loss alone, once."""
    chosen = with_helpers(pools, standing_helpers(pools))
    helpers = audit_pools(chosen, replace(audit, form="helpers"))
    paper = audit_pools(chosen, replace(audit, form="paper"), audits=["panoramia", "rm_rn"])
    return PanoramiaResults(pools, {"paper": paper, "helpers": helpers})


def table_three(results: PanoramiaResults) -> pd.DataFrame:
    """Our targets, then the paper's GPT-2: every bound of the first search; see `results.table_three`."""
    return all_bounds(results, models="base_model == 'GPT-2'")


def table_five(pools: Pools, audit: AuditConfig) -> pd.DataFrame:
    """The baseline's bound without helper and with one or both of two, beside the paper's on WikiText.

    Returns:
        Columns helper ("none", "synthetic", "real 1" on D_G, "all"), c_lb, sd (over games), auc, paper.
    """
    shown = (SYNTHETIC, *_real_helpers(pools)[1][:1])
    printed = paper_table("panoramia_table05").query("dataset == 'WikiText'")
    values = dict(zip(printed["helper_training_data"], printed["c_lb"], strict=True))
    names = {"none": "no_helper", "synthetic": "gen", "real 1": "real"}
    own = {name: values[key] for name, key in names.items() if key in values}
    return helper_table(with_helpers(pools, shown), replace(audit, restarts=1), own)


def ladder(pools: Pools, audit: AuditConfig, *, names: Sequence[str]) -> pd.DataFrame:
    """What more helpers in attack and baseline do to the null, and to targets that leak.

    Args:
        pools: Pools with all helpers.
        audit: Settings, of which the first attack alone is used, in the form "helpers".
        names: Names of targets.

    Returns:
        One row per step and target: helpers, c_lb, c_plus_eps_lb, eps_tilde, means over games.
    """
    base = [helper for helper in pools.helpers if helper.data == "base"]
    early, late = _real_helpers(pools)
    steps = [[SYNTHETIC], [*base, SYNTHETIC], [*base, SYNTHETIC, *early]]
    steps += [[*base, SYNTHETIC, *late[: count + 1]] for count in range(len(late))]
    rows: list[pd.DataFrame] = []
    for step in dict.fromkeys(map(tuple, steps)):
        found = audit_pools(
            with_helpers(pools, step), _quick(audit, "helpers"), targets=names, audits=["panoramia"]
        ).summary()
        found = found[found["search"] == audit.searches[0]]
        found = found.rename(columns={"value": "eps_tilde"})[["target", "c_lb", "c_plus_eps_lb", "eps_tilde"]]
        rows.append(found.assign(helpers=", ".join(helper.name for helper in step)))
    return pd.concat(rows, ignore_index=True)[["helpers", "target", "c_lb", "c_plus_eps_lb", "eps_tilde"]]


def _quick(audit: AuditConfig, form: str) -> AuditConfig:
    return replace(audit, attacks=audit.attacks[:1], restarts=1, form=form)


def null_by_restarts(results: PanoramiaResults) -> pd.DataFrame:
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


def baseline_sizes(pools: Pools, audit: AuditConfig, sizes: Sequence[int]) -> pd.DataFrame:
    """The paper's baseline over the size of its training part, the test part fixed, or what is left.

    Args:
        pools: Pools, audited for their last target.
        audit: Settings, of which the first attack alone is used; the second way divides the examples of its
            training and test part anew.
        sizes: Training sizes, even, at most that of ``audit``.

    Returns:
        Columns way ("fixed test part", "what is left"), train, m, seed, c_lb, baseline_auc.

    Source:
        PANORAMIA, appendix D.1 and Figure 9.
    """
    whole, target, paper = audit.train + audit.test, [pools.target_names[-1]], _quick(audit, "paper")
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


def text_losses(pools: Pools, names: Sequence[str]) -> dict[str, dict[str, FloatArray]]:
    """Mean losses of members, real non-members and generated chunks (Figure 14), panels by model.

    Args:
        pools: Pools of text.
        names: Names of targets; the synthetic helper is the last panel.
    """
    by_kind = pools.by_kind()
    helper = {word: by_kind[kind].helpers[SYNTHETIC.name][:, 0] for kind, word in KINDS.items()}
    return {**loss_groups(pools, names, KINDS), "synthetic helper": helper}


def verdicts(
    results: PanoramiaResults,
    curves: pd.DataFrame,
    helpers: pd.DataFrame,
    sizes: pd.DataFrame,
    test_sizes: pd.DataFrame,
) -> list[dict[str, Any]]:
    """What the paper's tables and figures on text must show, judged on this run.

    Args:
        results: Results of `run_text`.
        curves: Rows of `loss_curves`.
        helpers: Rows of `table_five`.
        sizes: Rows of `baseline_sizes`.
        test_sizes: Rows of `TargetAudits.over_test_size`.

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


def _table_three(results: PanoramiaResults) -> dict[str, Any]:
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


def _table_nine(results: PanoramiaResults) -> dict[str, Any]:
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


def _figure_six(results: PanoramiaResults, sizes: pd.DataFrame) -> dict[str, Any]:
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


def _figure_ten(results: PanoramiaResults) -> dict[str, Any]:
    name = results.trained[-1]
    found = precise_at_low_recall(results.forms["paper"].curves(target=name), name)
    return {"target": "panoramia-figure-10", **found, "note": "Text part, the paper's form."}


def _figure_fourteen(results: PanoramiaResults) -> dict[str, Any]:
    gaps = {}
    for name in results.trained:
        means = {kind: values.mean() for kind, values in text_losses(results.pools, [name])[name].items()}
        gaps[name] = float(means["real non-members"] - means["real members"])
    return {
        "target": "panoramia-figure-14",
        "holds": bool(np.all(np.diff(list(gaps.values())) > 0)),
        "ours": "mean loss of real non-members minus members: "
        + "; ".join(f"{name} {gap:.2f}" for name, gap in gaps.items()),
    }
