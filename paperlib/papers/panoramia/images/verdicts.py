"""What the paper's tables and figures on images must show, judged on a run."""

from dataclasses import dataclass
from typing import Any

import pandas as pd

from paperlib.papers.panoramia.images.tables import (
    KINDS,
    best_recall,
    model_sizes,
    rises_then_flattens,
    series,
)
from paperlib.papers.panoramia.results import (
    PanoramiaResults,
    grows_with_test,
    is_ordered,
    judged_order,
    loss_groups,
    precise_at_low_recall,
    with_headlines,
)


@dataclass(frozen=True, eq=False)
class Evidence:
    """The numbers that verdicts are computed from.

    Attributes:
        results: Results of `run_images`.
        helpers: Rows of `table_two`.
        train_sizes: Rows of `training_sizes`.
        test_sizes: Rows of `TargetAudits.over_test_size`.
        quality: Numbers about the generated images, by name.
    """

    results: PanoramiaResults
    helpers: pd.DataFrame
    train_sizes: pd.DataFrame
    test_sizes: pd.DataFrame
    quality: dict[str, float]


def verdicts(evidence: Evidence) -> list[dict[str, Any]]:
    """The arguments of ``record`` but the scale, one dictionary per table or figure."""
    judges = (
        _table_one, _table_two, _table_three, _table_five, _figure_two, _figure_three, _figure_four,
        _figure_six, _figure_seven, _figure_ten, _figure_eleven, _figure_thirteen, _figure_fifteen,
    )  # fmt: skip
    rows = [judge(evidence) for judge in judges]
    return with_headlines([{**row, "target": f"panoramia-{row['target']}"} for row in rows])


def _table_one(evidence: Evidence) -> dict[str, Any]:
    table = evidence.results.pools.table.set_index("target").loc[series(evidence.results)]
    test, gap = 100 * table["test_metric"], 100 * (table["train_metric"] - table["test_metric"])
    return {
        "target": "table-01",
        "holds": bool(test.iloc[-1] < test.max() and gap.is_monotonic_increasing),
        "ours": "; ".join(
            f"{name}: test {test[name]:.1f} %, gap {gap[name]:.1f} points" for name in table.index
        ),
        "note": "Accuracy on the labels as given to the models, noise included, in both parts alike.",
    }


def _order_of_helpers(evidence: Evidence) -> tuple[bool, str, str]:
    by = evidence.helpers.set_index("helper")
    if not {"synthetic", "real", "none"} <= set(by.index):
        return False, "helpers left out by the parameters", ""
    spread = by["sd"].fillna(0.0)
    gen, real, none = (float(by["c_lb"].to_dict()[name]) for name in ("synthetic", "real", "none"))
    slack = float(spread.loc[["synthetic", "real"]].sum())
    note = "The helper on real data is trained on D_G. "
    if max(gen, real) <= none + slack:
        note += "They add no more than games differ: trees see as much in these few pixels without them."
    ours = f"c_lb {gen:.2f} (generated helper), {real:.2f} (real), {none:.2f} (none)"
    return gen + slack >= real and real > none, ours, note


def _table_two(evidence: Evidence) -> dict[str, Any]:
    holds, ours, note = _order_of_helpers(evidence)
    return {"target": "table-02", "holds": holds, "ours": ours, "note": note}


def _table_five(evidence: Evidence) -> dict[str, Any]:
    holds, ours, note = _order_of_helpers(evidence)
    return {"target": "table-05", "holds": holds, "ours": ours, "note": f"Images. {note}"}


def _table_three(evidence: Evidence) -> dict[str, Any]:
    results = evidence.results
    wrong, ours = judged_order(results, series(results), form="helpers")
    null = max(
        (results.value(name, form=form) for name in results.null for form in results.forms), default=0.0
    )
    said = f"{'; '.join(wrong)}. " if wrong else ""
    return {
        "target": "table-03",
        "holds": not wrong,
        "ours": ours,
        "note": f"Images. {said}Null target: at most {null:.2f} in either form.",
    }


def _curve_of_sizes(evidence: Evidence, column: str) -> pd.Series:
    return evidence.train_sizes.groupby("train")[column].mean()


def _figure_two(evidence: Evidence) -> dict[str, Any]:
    return _size_verdict("figure-02", "c_lb", _curve_of_sizes(evidence, "c_lb"))


def _figure_eleven(evidence: Evidence) -> dict[str, Any]:
    return _size_verdict("figure-11", "c+eps", _curve_of_sizes(evidence, "c_plus_eps_lb"))


def _size_verdict(target: str, name: str, means: pd.Series) -> dict[str, Any]:
    holds = rises_then_flattens(means)
    return {
        "target": target,
        "holds": holds,
        "ours": f"{name}: " + ", ".join(f"{value:.2f} at {size}" for size, value in means.items()),
        "note": ""
        if holds
        else "With this few images the bound has not flattened, or games differ more than sizes.",
    }


def _figure_three(evidence: Evidence) -> dict[str, Any]:
    name = series(evidence.results)[-1]
    curves = evidence.results.forms["helpers"].curves(target=name)
    return {"target": "figure-03", **precise_at_low_recall(curves, name)}


def _figure_ten(evidence: Evidence) -> dict[str, Any]:
    return {**_figure_three(evidence), "target": "figure-10", "note": "Images."}


def _figure_four(evidence: Evidence) -> dict[str, Any]:
    name = series(evidence.results)[-1]
    at = best_recall(evidence.results.forms["helpers"].curves(target=name))
    one = evidence.results.one(name)
    return {
        "target": "figure-04",
        "holds": bool(at < 0.5),
        "ours": f"{name}: largest bound {one['c_plus_eps_lb']:.2f} at recall {at:.2f}, "
        f"ceiling {one['ceiling']:.2f}",
    }


def _figure_six(evidence: Evidence) -> dict[str, Any]:
    found = grows_with_test(evidence.test_sizes, series(evidence.results)[-1])
    return {"target": "figure-06", **found, "note": "Images, parts (a) and (b)."}


def _figure_seven(evidence: Evidence) -> dict[str, Any]:
    quality = evidence.quality
    return {
        "target": "figure-07",
        "holds": "kid generated" in quality,
        "ours": f"sample grid; kernel distance to members {quality['kid generated']:.2f} ± "
        f"{quality['kid generated error']:.2f}, of real non-members {quality['kid nonmembers']:.2f} ± "
        f"{quality['kid nonmembers error']:.2f}",
        "note": "On features of a classifier trained on D_G, not of an Inception network.",
    }


def _figure_thirteen(evidence: Evidence) -> dict[str, Any]:
    pools, names = evidence.results.pools, series(evidence.results)
    gaps = {
        name: float(losses["real non-members"].mean() - losses["real members"].mean())
        for name, losses in loss_groups(pools, names, KINDS).items()
    }
    return {
        "target": "figure-13",
        "holds": is_ordered(list(gaps.values())),
        "ours": "mean loss of non-members minus members: "
        + "; ".join(f"{name} {gap:.2f}" for name, gap in gaps.items()),
    }


def _figure_fifteen(evidence: Evidence) -> dict[str, Any]:
    sizes = model_sizes(evidence.results)
    largest = max((rows for _, rows in sizes.groupby("architecture")), key=len)
    values = list(largest["eps_tilde"])
    return {
        "target": "figure-15",
        "holds": len(values) > 1 and is_ordered(values),
        "ours": "; ".join(
            f"{name}: {parameters:,} parameters, eps~ {value:.2f}"
            for name, parameters, value in largest[["target", "parameters", "eps_tilde"]].itertuples(
                index=False
            )
        ),
    }
