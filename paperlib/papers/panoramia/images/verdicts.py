"""What the paper's tables and figures on images must show, judged on a run."""

from collections.abc import Mapping
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


def verdicts(
    results: PanoramiaResults,
    helpers: pd.DataFrame,
    train_sizes: pd.DataFrame,
    test_sizes: pd.DataFrame,
    quality: Mapping[str, float],
) -> list[dict[str, Any]]:
    """What the paper's tables and figures on images must show, judged on this run.

    Args:
        results: Results of `run_images`.
        helpers: Rows of `table_two`.
        train_sizes: Rows of `training_sizes`.
        test_sizes: Rows of `TargetAudits.over_test_size`.
        quality: Numbers about the generated images, by name.

    Returns:
        The arguments of ``record`` but the scale.
    """
    last = series(results)[-1]
    curves = results.forms["helpers"].curves(target=last)
    order = _order_of_helpers(helpers)
    precision = precise_at_low_recall(curves, last)
    sizes = train_sizes.groupby("train")[["c_lb", "c_plus_eps_lb"]].mean()
    rows = {
        "table-01": _table_one(results),
        "table-02": order,
        "table-03": _table_three(results),
        "table-05": {**order, "note": f"Images. {order['note']}"},
        "figure-02": _size_verdict("c_lb", sizes["c_lb"]),
        "figure-03": precision,
        "figure-04": _figure_four(results, curves, last),
        "figure-06": {**grows_with_test(test_sizes, last), "note": "Images, parts (a) and (b)."},
        "figure-07": _figure_seven(quality),
        "figure-10": {**precision, "note": "Images."},
        "figure-11": _size_verdict("c+eps", sizes["c_plus_eps_lb"]),
        "figure-13": _figure_thirteen(results),
        "figure-15": _figure_fifteen(results),
    }
    return with_headlines([{**row, "target": f"panoramia-{name}"} for name, row in rows.items()])


def _table_one(results: PanoramiaResults) -> dict[str, Any]:
    table = results.pools.table.set_index("target").loc[series(results)]
    test, gap = 100 * table["test_metric"], 100 * (table["train_metric"] - table["test_metric"])
    return {
        "holds": bool(test.iloc[-1] < test.max() and gap.is_monotonic_increasing),
        "ours": "; ".join(
            f"{name}: test {test[name]:.1f} %, gap {gap[name]:.1f} points" for name in table.index
        ),
        "note": "Accuracy on the labels as given to the models, noise included, in both parts alike.",
    }


def _order_of_helpers(helpers: pd.DataFrame) -> dict[str, Any]:
    by = helpers.set_index("helper")
    if not {"synthetic", "real", "none"} <= set(by.index):
        return {"holds": False, "ours": "helpers left out by the parameters", "note": ""}
    spread = by["sd"].fillna(0.0)
    gen, real, none = (float(by["c_lb"].to_dict()[name]) for name in ("synthetic", "real", "none"))
    slack = float(spread.loc[["synthetic", "real"]].sum())
    note = "The helper on real data is trained on D_G. "
    if max(gen, real) <= none + slack:
        note += "They add no more than games differ: trees see as much in these few pixels without them."
    ours = f"c_lb {gen:.2f} (generated helper), {real:.2f} (real), {none:.2f} (none)"
    return {"holds": gen + slack >= real and real > none, "ours": ours, "note": note}


def _table_three(results: PanoramiaResults) -> dict[str, Any]:
    wrong, ours = judged_order(results, series(results), form="helpers")
    null = max(
        (results.value(name, form=form) for name in results.null for form in results.forms), default=0.0
    )
    said = f"{'; '.join(wrong)}. " if wrong else ""
    return {
        "holds": not wrong,
        "ours": ours,
        "note": f"Images. {said}Null target: at most {null:.2f} in either form.",
    }


def _size_verdict(name: str, means: pd.Series) -> dict[str, Any]:
    holds = rises_then_flattens(means)
    return {
        "holds": holds,
        "ours": f"{name}: " + ", ".join(f"{value:.2f} at {size}" for size, value in means.items()),
        "note": ""
        if holds
        else "With this few images the bound has not flattened, or games differ more than sizes.",
    }


def _figure_four(results: PanoramiaResults, curves: pd.DataFrame, name: str) -> dict[str, Any]:
    at = best_recall(curves)
    one = results.one(name)
    return {
        "holds": bool(at < 0.5),
        "ours": f"{name}: largest bound {one['c_plus_eps_lb']:.2f} at recall {at:.2f}, "
        f"ceiling {one['ceiling']:.2f}",
    }


def _figure_seven(quality: Mapping[str, float]) -> dict[str, Any]:
    return {
        "holds": "kid generated" in quality,
        "ours": f"sample grid; kernel distance to members {quality['kid generated']:.2f} ± "
        f"{quality['kid generated error']:.2f}, of real non-members {quality['kid nonmembers']:.2f} ± "
        f"{quality['kid nonmembers error']:.2f}",
        "note": "On features of a classifier trained on D_G, not of an Inception network.",
    }


def _figure_thirteen(results: PanoramiaResults) -> dict[str, Any]:
    pools, names = results.pools, series(results)
    gaps = {
        name: float(losses["real non-members"].mean() - losses["real members"].mean())
        for name, losses in loss_groups(pools, names, KINDS).items()
    }
    return {
        "holds": is_ordered(list(gaps.values())),
        "ours": "mean loss of non-members minus members: "
        + "; ".join(f"{name} {gap:.2f}" for name, gap in gaps.items()),
    }


def _figure_fifteen(results: PanoramiaResults) -> dict[str, Any]:
    sizes = model_sizes(results)
    largest = max((rows for _, rows in sizes.groupby("architecture")), key=len)
    values = list(largest["eps_tilde"])
    return {
        "holds": len(values) > 1 and is_ordered(values),
        "ours": "; ".join(
            f"{name}: {parameters:,} parameters, eps~ {value:.2f}"
            for name, parameters, value in largest[["target", "parameters", "eps_tilde"]].itertuples(
                index=False
            )
        ),
    }
