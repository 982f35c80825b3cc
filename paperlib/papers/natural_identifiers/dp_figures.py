"""Figures 2 and 5 of one set of audits on a page, with intervals over models."""

from collections.abc import Sequence

import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from paperlib.papers.natural_identifiers.dp_audit import CURVES, mean_bounds
from paperlib.report import show_figure, show_table

FIGURES = ("Figure 2", "Figure 5")


def show_audits(audits: pd.DataFrame, *, suffix: str = "", facts: str) -> None:
    """Show both figures, and the gain of the largest sets over pairs.

    Args:
        audits: Rows of `audit_table` with the figure that each belongs to.
        suffix: End of the names under which they are kept.
        facts: Where the audits come from, in words.
    """
    second, fifth = (audits[audits["figure"] == name] for name in FIGURES)
    means = mean_bounds(second, ["target", "cardinality"])
    show_figure(
        bound_curves(means, "cardinality", "target"),
        name=f"nid-figure-02{suffix}",
        caption="Lower bound (replacement, r = 1) against cardinality for each target epsilon (inf: no "
        f"noise): mean over models, bars with 95 % t-intervals where there are several. {facts}.",
        alt=f"Three panels with a curve for each target epsilon. {_largest(means)}",
        data=second,
    )
    ends = second["cardinality"].min(), second["cardinality"].max()
    gain = mean_bounds(second, ["target", "cardinality"], less=int(ends[0])).query("cardinality == @ends[1]")
    show_table(
        gain.drop(columns="cardinality").rename(columns={"mean": "difference"}),
        name=f"nid-dp-cardinality{suffix}",
        caption=f"Bound at c = {ends[1]} less that at c = {ends[0]}, nats, paired by model, mean and 95 % "
        f"t-interval of each row by itself. {facts}.",
    )
    counts = mean_bounds(fifth, ["cardinality", "canaries"])
    show_figure(
        bound_curves(counts, "canaries", "cardinality"),
        name=f"nid-figure-05{suffix}",
        caption=f"Lower bound against the number of canaries at target epsilon {fifth['target'].iloc[0]:g}, "
        f"for each cardinality: mean over models, bars as before. {facts}.",
        alt=f"Three panels with a curve for each cardinality. {_largest(counts)}",
        data=fifth,
    )


def bound_curves(means: pd.DataFrame, across: str, line: str) -> Figure:
    """One panel per curve of `mean_bounds`, the bound against a column, a line for each value of another."""
    places: Sequence[int] = sorted(means[across].unique())
    fig, axes = plt.subplots(1, len(CURVES), figsize=(9.5, 3.4), layout="constrained", sharey=True)
    for axis, curve in zip(axes, CURVES, strict=True):
        for value, rows in means[means["curve"] == curve].groupby(line):
            bars = (rows["high"] - rows["mean"]).fillna(0.0)
            axis.errorbar(
                rows[across], rows["mean"], yerr=bars, fmt="-o", ms=3, capsize=2, label=f"{value:g}"
            )
        axis.set(xscale="log", xticks=places, xticklabels=places, xlabel=across)
        axis.set_title(curve, fontsize="small")
        axis.minorticks_off()
    axes[0].set_ylabel("lower bound on ε (nats)")
    fig.legend(*axes[0].get_legend_handles_labels(), loc="outside right center", fontsize="small", title=line)
    return fig


def _largest(means: pd.DataFrame) -> str:
    top = means.loc[means.groupby("curve", sort=False)["mean"].idxmax()]
    keys = [name for name in means.columns[1:3]]
    parts = [
        f"{one['curve']}: {one['mean']:.2f} nats at " + ", ".join(f"{key} {one[key]:g}" for key in keys)
        for one in top.to_dict("records")
    ]
    return f"Largest means: {'; '.join(parts)}."
