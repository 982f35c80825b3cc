"""The page on models trained by DP-SGD: bounds over epsilon, gains, and what the models are."""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from paperlib.papers.output_sets.dpsgd import (
    ORDERS,
    above_guarantee,
    ahead_and_behind,
    by_method,
    mean_bounds,
    model_rows,
)
from paperlib.papers.output_sets.figures import NAMES, draw_lines, half_width, in_words
from paperlib.papers.output_sets.gain import RIVALS, interval
from paperlib.report import (
    COLORS,
    LINES,
    MARKERS,
    legend_below,
    panels,
    paper_table,
    plus_minus,
    show_figure,
    show_table,
)

_OTHERS = (*RIVALS, "optimal", *ORDERS)
_COUNTED = ("printed", "optimal", "adaptive")
"""Methods whose wins are counted."""


def show_tried(tried: pd.DataFrame) -> None:
    """Settings that were tried, rows of `tried_settings`: their mean AUC on the page, all in the file."""
    names = ["panel", "epochs", "batches", "learning_rate", "momentum", "clip_norm"]
    aucs = tried.pivot_table(index=names, columns="epsilon", values="auc", sort=False)
    right = tried.pivot_table(index=names, columns="epsilon", values="accuracy", sort=False)
    table = pd.concat(
        [aucs.add_prefix("auc, epsilon "), right.add_prefix("accuracy, epsilon ")], axis=1
    ).assign(mean=aucs.mean(axis=1))
    show_table(
        table.reset_index(),
        name="output-sets-dpsgd-tried",
        columns={
            "panel": "Records",
            "epochs": "Epochs",
            "learning_rate": "Learning rate",
            "mean": "Mean AUC over all ε",
        },
        caption="Settings that were tried. For every ε the one with the highest AUC of the loss was taken; "
        "the file has the AUC and the accuracy on the test part at every ε.",
    )


def show_bounds(bounds: pd.DataFrame, name: str, about: str) -> None:
    """Figure 3: bounds over epsilon, a panel for each kind of records."""
    table = mean_bounds(bounds)
    kinds = list(table["panel"].unique())
    fig, axes = panels(len(kinds), height=2.9)
    for ax, kind in zip(axes, kinds, strict=True):
        draw_lines(ax, table[table["panel"] == kind], "epsilon")
        ax.set(title=titled(kind), ylabel="bound (nats)", ylim=(-0.1, None))
    axes[-1].set_xlabel("ε of DP-SGD (nats)")
    legend_below(fig)
    parts = [f"{titled(kind)}: {in_words(table[table['panel'] == kind], 'epsilon')}" for kind in kinds]
    show_figure(
        fig,
        name=f"output-sets-dpsgd{name}",
        data=bounds,
        caption=f"Audited epsilon over that of DP-SGD; mean and standard deviation of "
        f"{bounds['seed'].nunique()} models. {about}",
        alt=f"{len(kinds)} panels, a line for each method. Mean bounds from the smallest to the largest "
        f"epsilon, nats: {'. '.join(parts)}.",
    )


def titled(kind: str) -> str:
    """Title of a panel.

    >>> titled("natural"), titled("1,000 mislabelled")
    ('natural records', '1,000 mislabelled records')
    """
    return f"{kind} records"


def show_gains(bounds: pd.DataFrame, name: str, about: str) -> None:
    """What Algorithm 1 as printed gains over each method: means over epsilon on the page, all in the file."""
    wide, kinds = by_method(bounds), list(bounds["panel"].unique())
    rows = []
    for rival in _OTHERS:
        gained = (wide["printed"] - wide[rival]).unstack("epsilon")
        row = {"rival": NAMES[rival]}
        for kind in kinds:
            part = gained.loc[kind]
            row[kind] = _text(part.mean(axis=1))
            row |= {
                f"{kind}, epsilon {at:g}": _text(part[at].dropna()) for at in part if part[at].notna().any()
            }
        rows.append(row)
    show_table(
        pd.DataFrame(rows),
        name=f"output-sets-dpsgd-gain{name}",
        columns={"rival": "Algorithm 1 as printed less"} | {kind: titled(kind) for kind in kinds},
        caption=f"Bound of Algorithm 1 as printed less that of each other method on the same models, nats: "
        f"mean over all ε with a 95 % t-interval over models. The file has every ε. {about}",
    )


def _text(values: pd.Series) -> str:
    row = pd.Series(interval(values.to_numpy(dtype=float)))
    return plus_minus(row["gain"], half_width(row))


def show_counts(bounds: pd.DataFrame, name: str, about: str) -> None:
    """How often a method is ahead of another and behind it."""
    counted = ahead_and_behind(bounds, _COUNTED)
    settings = int(counted["settings"].max())
    counted["text"] = [f"{row.ahead} ahead, {row.behind} behind" for row in counted.itertuples()]
    wide = counted.pivot(index="rival", columns="method", values="text").fillna("–")
    wide = wide.loc[[method for method in NAMES if method in wide.index]].reset_index()
    show_table(
        wide.assign(rival=wide["rival"].map(NAMES)),
        name=f"output-sets-dpsgd-counts{name}",
        columns={"rival": "Rival"} | {method: NAMES[method] for method in _COUNTED},
        caption=f"In how many of the {settings} pairs of records and ε the method of a column is ahead of "
        "the rival of a row, and behind it: the t-interval of the paired difference lies above 0, or below, "
        f"at an error of 0.05 shared out among all comparisons of a method. {about}",
    )


def show_guarantee(bounds: pd.DataFrame, name: str, about: str) -> None:
    """Bounds above the guarantee of their model, method by method."""
    checked = above_guarantee(bounds)
    show_table(
        checked.assign(method=checked["method"].map(NAMES)),
        name=f"output-sets-dpsgd-check{name}",
        columns={
            "method": "Method",
            "bounds": "Bounds",
            "above": "Above the guarantee",
            "least_room": "Least distance below it",
        },
        caption=f"Bounds on models with noise, how many lie above the guarantee of their model, and the "
        f"least distance from it, nats. At this confidence one in twenty may. {about}",
    )


def show_models(bounds: pd.DataFrame, name: str, about: str, *, cifar: bool = False) -> None:
    """AUC of the loss and accuracy over epsilon, with settings and guarantees."""
    table = model_rows(bounds)
    places = sorted(table["epsilon"].unique())
    fig, axes = panels(2, height=2.6, share_x=True)
    drawn = (("auc", "AUC of the loss"), ("accuracy", "accuracy on the test part"))
    for ax, (column, title) in zip(axes, drawn, strict=True):
        for at, (kind, part) in enumerate(table.groupby("panel", sort=False)):
            line = {"color": COLORS[at], "marker": MARKERS[at], "linestyle": LINES[at], "label": kind}
            ax.plot(part["epsilon"].map(places.index), part[column], **line)
        ax.set_title(title)
    epsilon, accuracy = paper_accuracy()
    if cifar and epsilon in places:
        cross = {"marker": "x", "ms": 9, "mew": 2, "linestyle": "", "color": COLORS[6]}
        axes[1].plot(places.index(epsilon), accuracy, label="the paper, natural", **cross)
    axes[1].set_xticks(range(len(places)), [f"{one:g}".replace("inf", "∞") for one in places])
    axes[1].set_xlabel("ε of DP-SGD (nats)")
    legend_below(fig)
    show_figure(
        fig,
        name=f"output-sets-dpsgd-models{name}",
        data=table,
        caption=f"The models, means over seeds. The file has their settings, the guarantee by the accountant "
        f"(Rényi, adding or removing one record) and the accuracy on members by their given labels. {about}",
        alt=f"Two panels, a line for each kind of records. {_models_in_words(table)}.",
    )


def paper_accuracy() -> tuple[float, float]:
    """The epsilon at which the paper prints a test accuracy on CIFAR-10, and that accuracy.

    >>> paper_accuracy()
    (8.0, 0.76)
    """
    settings = paper_table("output_sets_settings").query("figure == 'figure03' and setting == 'eps'")
    text = paper_table("output_sets_text").set_index("quantity")["value"]
    return float(settings["value"].item()), float(text["test_accuracy_pct"]) / 100


def _models_in_words(table: pd.DataFrame) -> str:
    parts = [
        f"{kind}: AUC from {part['auc'].iloc[0]:.2f} to {part['auc'].iloc[-1]:.2f}, accuracy from "
        f"{part['accuracy'].iloc[0]:.2f} to {part['accuracy'].iloc[-1]:.2f}"
        for kind, part in table.sort_values("epsilon").groupby("panel", sort=False)
    ]
    return "; ".join(parts)


def lessons(runs: Sequence[pd.DataFrame]) -> str:
    """What to take from bounds of several runs."""
    counts = pd.concat([ahead_and_behind(bounds, ["printed"]) for bounds in runs])
    rival = counts[counts["rival"] == "top_bottom"][["ahead", "behind", "settings"]].sum()
    order = counts[counts["rival"] == "adaptive"][["ahead", "behind"]].sum()
    checked = pd.concat([above_guarantee(bounds) for bounds in runs])
    found = pd.concat([bounds[np.isfinite(bounds["guarantee"])] for bounds in runs])
    share = (found["bound"] / found["guarantee"]).max() if len(found) else math.nan
    return (
        "1. Over all runs of this page Algorithm 1 as printed is ahead of top and bottom in "
        f"{rival['ahead']} of {rival['settings']} pairs of records and ε and behind in {rival['behind']}; "
        f"beside the adaptive order, which needs no half to choose on, it is ahead in {order['ahead']} and "
        f"behind in {order['behind']}.\n\n"
        f"2. {checked['above'].sum()} of {checked['bounds'].sum()} bounds on models with noise lie above the "
        f"guarantee, and the largest share of it that a bound reaches is {share:.0%}. The audit sees the "
        "final model alone, while the accountant lets an attacker see every step: a bound far below the "
        "guarantee does not say that the guarantee is loose.\n\n"
        "3. With few canaries even perfect guesses prove little; with many, δ times the number of audit "
        "examples weighs on every p-value. The half that chooses a set is lost for the bound."
    )
