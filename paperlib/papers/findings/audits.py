"""What no paper says: what an uncorrected search costs, and what a learned order finds."""

import numpy as np
import pandas as pd

from paperlib.papers.findings.finding import Finding
from paperlib.papers.output_sets.dpsgd import ahead_and_behind, mean_bounds
from paperlib.report import MARKERS, dot_rows, legend_below, panels

SEARCHES = {
    "control: number of guesses fixed in advance": "fixed number of guesses",
    "best threshold, uncorrected": "best threshold",
    "best cut with everyone guessed, uncorrected": "best cut, all guessed",
    "best pair of tails, uncorrected": "best pair of tails",
    "best Clopper-Pearson threshold, uncorrected": "best threshold,\nClopper-Pearson",
}
"""Rules of the study of validity, and their names in the figure."""
DRAWN = {
    "printed": "Algorithm 1",
    "top_bottom": "top and bottom",
    "dp_sniper": "DP-Sniper",
    "adaptive": "adaptive order",
    "learned": "learned order",
}
"""Methods in the figure of learned orders, and their names there."""


def corrections(every: pd.DataFrame, *, examples: int, confidence: float, interval: float) -> Finding:
    """How often a bound at the best threshold is wrong where nothing leaks."""
    table = every[every["bound"].isin(list(SEARCHES)) & (every["mechanism"] == "no leakage")]
    searched = table[table["bound"].str.endswith("uncorrected")]
    figure, (axis,) = panels(height=0.6 + 0.5 * len(table))
    axis.axvline(1 - confidence, color="black", linestyle="--", label="allowed")
    dot_rows(axis, [SEARCHES[name] for name in table["bound"]], table["rate"], low=table["low"],
             high=table["high"], label="wrong audits")  # fmt: skip
    axis.set_xlabel("share of audits with a bound above 0")
    legend_below(figure)
    listed = "; ".join(
        f"{SEARCHES[name]} {rate:.0%}" for name, rate in zip(table["bound"], table["rate"], strict=True)
    ).replace("\n", " ")
    return Finding(
        slug="corrections",
        paper="",
        title="The best of many thresholds is no bound",
        sentence="A lower bound at confidence "
        f"{confidence:.0%} may be wrong in {1 - confidence:.0%} of audits. Taken at the "
        "threshold "
        "that gives the largest value, without a correction, it is wrong in "
        f"{searched['rate'].min():.0%} to "
        f"{searched['rate'].max():.0%} of audits of a model that leaks nothing, depending on how it "
        "searches. The bounds of this package correct for every search.",
        figure=figure,
        caption=f"Audits of scores that do not depend on membership, whose bound is above 0: share of "
        f"{int(table['trials'].max()):,} simulated audits of {examples} examples, with "
        f"{interval:.1%} intervals.",
        alt=f"A row with a dot and an interval for each way of searching, and a line at the allowed "
        f"share. {listed}.",
        data=table,
    )


def learned_orders(bounds: pd.DataFrame, origin: str) -> Finding:
    """Bounds by method on models without noise, and how often an order is ahead of Algorithm 1."""
    counts = ahead_and_behind(bounds, ["adaptive", "learned"]).query("rival == 'printed'").set_index("method")
    table = mean_bounds(bounds)
    table = table[np.isinf(table["epsilon"]) & table["method"].isin(list(DRAWN))]
    figure, (axis,) = panels(height=3.0)
    names = list(dict.fromkeys(table["panel"]))
    for at, method in enumerate(DRAWN):
        rows = table[table["method"] == method].set_index("panel").loc[names]
        places = np.arange(len(names)) + 0.12 * (at - 2)
        axis.errorbar(places, rows["mean"], yerr=rows["std"], fmt=MARKERS[at], label=DRAWN[method])
    axis.set_xticks(np.arange(len(names)), [name.replace(" ", "\n") for name in names])
    axis.set_ylabel("lower bound (nats)")
    legend_below(figure)
    words = "; ".join(
        f"{name}: "
        + ", ".join(f"{DRAWN[row['method']]} {row['mean']:.2f}" for row in rows.to_dict("records"))
        for name, rows in table.groupby("panel", sort=False)
    )
    said = ", ".join(
        f"the {DRAWN[str(method)]} is ahead in {row['ahead']} of {row['settings']} settings and behind in "
        f"{row['behind']}"
        for method, row in counts.iterrows()
    )
    return Finding(
        slug="orders",
        paper="output_sets",
        title="Learning where to guess while guessing beats a set chosen on half of the records",
        sentence="An output set is chosen on one half of the records and judged on the other. An audit "
        "that learns, "
        "from the coins revealed so far, at which end to guess next needs no such half. Against "
        "Algorithm 1 as "
        f"printed, on the same models trained by DP-SGD, {said} (corrected for all comparisons).",
        figure=figure,
        caption=f"Bounds on models trained without noise: mean and standard deviation of "
        f"{int(table['seeds'].max())} models (CIFAR-10, {origin}).",
        alt=f"Groups of five dots with bars, one group for each kind of record. {words}.",
        data=table,
    )
