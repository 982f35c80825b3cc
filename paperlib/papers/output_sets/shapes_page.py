"""The page on the shapes of optimal sets: figures, their evidence and a table."""

from dataclasses import replace

import pandas as pd
from matplotlib.axes import Axes

from paperlib.papers.output_sets.evidence import shapes_evidence
from paperlib.papers.output_sets.figures import PAIRS, joined
from paperlib.papers.output_sets.shapes import (
    Panel,
    ShapeConfig,
    least_m_with_a_gap,
    panels,
    shape_curve,
)
from paperlib.papers.verdict import Scale, record
from paperlib.papers.verdict.rules import rules
from paperlib.report import COLORS, legend_below, show_figure, show_table
from paperlib.report import panels as stacked

_BARS = (
    ("optimal set", "in_optimal", 1.1, 1.17, COLORS[1], ""),
    ("best top/bottom", "in_top_bottom", 1.01, 1.08, COLORS[4], "////"),
)
_NAMES = {
    "01": "output-sets-mixtures",
    "04": "output-sets-cauchy-f",
    "05": "output-sets-logistic-chi-squared",
}
"""Slugs of Figures 1, 4 and 5."""


def show_sets(number: str, table: pd.DataFrame, config: ShapeConfig) -> None:
    """Figure 1, 4 or 5: the accuracy of a guess at every score, and both sets."""
    drawn = _of(number)
    curves = [shape_curve(panel, config) for panel in drawn]
    fig, axes = stacked(len(drawn), height=2.9)
    for ax, panel, curve in zip(axes, drawn, curves, strict=True):
        _draw(ax, curve)
        ax.set_title(f"{PAIRS[panel.name]}: {in_intervals(number, panel.name, table)}")
    axes[-1].set_xlabel("score")
    legend_below(fig)
    show_figure(
        fig,
        name=_NAMES[number],
        data=pd.concat(curves),
        caption=f"Optimal set and best top/bottom set, m = {config.m}. The line is the accuracy of a guess.",
        alt=f"A panel for each pair, bars on top for the sets. {sets_in_words(number, table)}.",
    )


def _of(number: str) -> list[Panel]:
    return [panel for panel in panels() if panel.figure == f"figure{number}"]


def _draw(ax: Axes, curve: pd.DataFrame) -> None:
    """The accuracy, both densities scaled alike, and the sets as bars above them."""
    peak = max(curve["p"].max(), curve["q"].max())
    ax.plot(curve["score"], curve["accuracy"], color=COLORS[0], linestyle="-", label="accuracy")
    ax.plot(curve["score"], curve["p"] / peak, ":", color=COLORS[6], label="members, scaled")
    ax.plot(curve["score"], curve["q"] / peak, "--", color=COLORS[3], label="others, scaled")
    for label, column, low, high, color, hatch in _BARS:
        bar = {"where": curve[column], "facecolor": color, "hatch": hatch, "linewidth": 0, "label": label}
        ax.fill_between(curve["score"], low, high, **bar)
    ax.set(ylim=(0, 1.2), ylabel="accuracy, density")


def in_intervals(number: str, name: str, table: pd.DataFrame) -> str:
    """How many intervals the optimal set of a pair has, and how many the paper has where it says so."""
    count = int(table.set_index("panel")["intervals"][name])
    found = f"{count} interval" + ("s" if count != 1 else "")
    printed = {term.name: term.at_least for term in rules()[f"output-sets-figure-{number}"].terms}
    told = printed.get(f"{PAIRS[name].split()[0]} intervals")
    return found if told is None else f"{found} (the paper: {told:g})"


def sets_in_words(number: str, table: pd.DataFrame) -> str:
    """Both sets of every pair of a figure."""
    rows = table.set_index("panel").loc[[panel.name for panel in _of(number)]]
    parts = [
        f"{PAIRS[str(name)]}: optimal {row['optimal_set']}, top/bottom {row['top_bottom_set']}"
        for name, row in rows.iterrows()
    ]
    return "; ".join(parts)


def record_sets(number: str, table: pd.DataFrame, config: ShapeConfig) -> None:
    """Judge Figure 1, 4 or 5 by `shapes_evidence`."""
    level = "paper's scale" if config.m == 100 else "paper's data"
    (evidence,) = [one for one in shapes_evidence(table, config.draws) if one.target.endswith(number)]
    note = _centre(table) if number == "01" else _whole(number, table, config.m)
    facts = f"m = {config.m}, {config.draws} samples of top/bottom sets"
    record(replace(evidence, note=note), scale=Scale(level, facts))


def _centre(table: pd.DataFrame) -> str:
    pair = table.set_index("panel").loc[["laplace", "gaussian"]]
    worth = [f"{row.top_bottom_objective:z.3f} against {row.objective:z.3f}" for row in pair.itertuples()]
    return (
        f"With the densities known the best top/bottom set {_covered(table)}: {worth[0]} and {worth[1]} nats."
    )


def _covered(table: pd.DataFrame) -> str:
    """What the best top/bottom sets of the mixtures do with the centre."""
    missed = table.set_index("panel").loc[["laplace", "gaussian"], "centre_missed"]
    return "leaves the centre out" if missed.all() else "covers the centre"


def _whole(number: str, table: pd.DataFrame, m: int) -> str:
    intervals = table.set_index("panel")["intervals"]
    return " ".join(
        f"At m = {m} the best set of the {PAIRS[panel.name]} pair is the whole support; a gap opens from "
        f"about m = {least_m_with_a_gap(panel)} on."
        for panel in _of(number)
        if intervals[panel.name] == 1
    )


def show_pairs(table: pd.DataFrame, larger: pd.DataFrame) -> None:
    """All pairs at two sizes, rows of `shapes`: both sets, what they are worth, and missed centres."""
    rows = pd.concat([table, larger])
    show_table(
        rows.assign(panel=rows["panel"].map(PAIRS)),
        name="output-sets-all-pairs",
        columns={
            "panel": "Pair",
            "m": "m",
            "optimal_set": "Optimal set",
            "objective": "Its worth",
            "top_bottom_set": "Best top/bottom",
            "top_bottom_objective": "Its worth ",
            "centre_missed_share": "Centre missed",
        },
        caption="Optimal and best top/bottom sets of all six pairs. *Worth* is the objective, nats. "
        "*Centre missed* is the share of samples of 2m scores on which the best top/bottom set leaves out "
        "a central interval of the optimal one.",
    )


def lessons(table: pd.DataFrame) -> str:
    """What to take from the shapes, for the sizes of this run."""
    rows = table.set_index("panel")
    several = [PAIRS[str(name)] for name in rows.index[rows["intervals"] > 1]]
    whole = [PAIRS[str(name)] for name in rows.index[rows["intervals"] == 1]]
    m = int(table["m"].iloc[0])
    missed = joined(
        f"{rows['centre_missed_share'][name]:.0%} ({PAIRS[name]})" for name in ("laplace", "gaussian")
    )
    few = (
        f"At m = {m} it is best to guess everywhere on the pairs {joined(whole)}: the asymmetric sets that "
        "Figures 4 and 5 draw for them appear only with more scores."
        if whole
        else f"At m = {m} no pair is best guessed everywhere."
    )
    return (
        "1. The best set takes the scores at which one density is much larger than the other, wherever they "
        f"lie. It has several intervals for {joined(several) if several else 'no pair'}.\n\n"
        f"2. With the densities known, the best top/bottom set at m = {m} {_covered(table)}. "
        f"One that is searched on a sample leaves the centre out in {missed} of the "
        f"samples.\n\n3. {few}"
    )
