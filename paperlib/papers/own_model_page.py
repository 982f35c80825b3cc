"""Figures and tables of the notebook that audits a file of losses, or the network of `own_model`."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from paperlib.audits import Audits
from paperlib.bounds import OneRunResult
from paperlib.core import MembershipScores, round_down
from paperlib.report import (
    COLORS,
    MARKERS,
    describe_bound,
    describe_histogram,
    describe_roc,
    legend_below,
    panels,
    roc_figure,
    score_histogram,
    show_figure,
    show_table,
    show_text,
)


def show_size(scores: MembershipScores) -> None:
    """Say how many values are audited, and what a high one means."""
    high = "higher" if scores.higher_means_member else "lower"
    show_text(
        f"Audited: {scores.member.size:,} members and {scores.nonmember.size:,} non-members; a {high} value "
        "means member."
    )


def show_scores(scores: MembershipScores) -> None:
    """Show the values of members and of non-members, as histograms and as a ROC curve on log axes."""
    _, bins = score_histogram(scores, bins=40)
    edges = [*bins["low"], bins["high"].iloc[-1]]
    fig, (axis,) = panels()
    axis.stairs(bins["member"], edges, label="members", fill=True, alpha=0.45, color=COLORS[0])
    axis.stairs(bins["nonmember"], edges, label="non-members", color="k", linestyle="--")
    axis.set(xlabel="score" if scores.higher_means_member else "loss", ylabel="share of each class")
    legend_below(fig)
    show_figure(
        fig,
        name="own-histogram",
        caption="Values of members and non-members.",
        alt=describe_histogram(scores),
        data=bins,
    )
    _show_roc(scores)


def _show_roc(scores: MembershipScores) -> None:
    auc = scores.auc()
    _, curve = roc_figure(scores, auc=auc)
    least = 0.5 / max(scores.member.size, scores.nonmember.size)
    shown = curve.clip(lower=least)
    fig, (axis,) = panels(height=3.6)
    axis.fill_between(
        shown["false_positive_rate"], shown["low"], shown["high"], alpha=0.25, lw=0, label="95 % band"
    )
    axis.plot(shown["false_positive_rate"], shown["true_positive_rate"], label=f"values (AUC {auc:.2f})")
    axis.plot([least, 1], [least, 1], "k:", label="guessing (AUC 0.5)")
    axis.set(xscale="log", yscale="log", xlabel="false-positive rate", ylabel="true-positive rate")
    axis.xaxis.set_major_formatter("{x:g}")
    axis.yaxis.set_major_formatter("{x:g}")
    legend_below(fig)
    show_figure(
        fig,
        name="own-roc",
        caption="ROC curve of the values, on log axes.",
        alt=describe_roc(curve, auc),
        data=curve,
    )


def show_audits(audits: Audits, both: OneRunResult) -> None:
    """Show every audit of the values, and after the main one that with as many guesses at both ends."""
    listed = audits.to_frame()
    second = {
        "audit": "One training run, both ends alike",
        "kind": "lower bound",
        "epsilon": both.epsilon,
        "condition": both.condition,
        "note": "For comparison: as many guesses of members as of non-members, whichever end is surer.",
    }
    table = pd.concat([listed[:1], pd.DataFrame([second]), listed[1:]], ignore_index=True)
    show_table(
        table.assign(shown=[_shown(row) for row in table.to_dict("records")]),
        name="own-audits",
        caption="Every audit that needs these values alone. Lower bounds are rounded down.",
        columns={
            "audit": "Audit",
            "kind": "Kind",
            "shown": "ε (nats)",
            "condition": "Condition",
            "note": "Good for",
        },
    )


def _shown(row: Mapping[Any, Any]) -> str:
    """The number in two decimals: a lower bound is rounded down, a measurement to the nearest."""
    value = row["epsilon"]
    if pd.isna(value):
        return "–"
    return f"{round_down(value, 2) if row['kind'].startswith('lower bound') else value:.2f}"


def show_bound(main: OneRunResult) -> None:
    """Show the main bound over the number of guesses."""
    curve = main.curve
    fig, (axis,) = panels()
    axis.plot(curve["guesses"], curve["bound"], label="bound at this many guesses")
    axis.axhline(main.epsilon, color="k", linestyle="--", label="reported")
    axis.set(xscale="log", ylim=(0, max(1.08 * max(float(curve["bound"].max()), main.epsilon), 0.1)))
    axis.set(xlabel="guesses made", ylabel="lower bound on\nepsilon (nats)")
    axis.xaxis.set_major_formatter("{x:g}")
    legend_below(fig)
    show_figure(
        fig,
        name="own-bound",
        caption="The main bound over the number of guesses, corrected for the search over all of them.",
        alt=describe_bound(curve, main.epsilon),
        data=curve,
    )


def show_epochs(table: pd.DataFrame) -> None:
    """Show lower bound and AUC after more and more epochs (`leak_by_epoch`)."""
    fig, axes = panels(2, height=2.0, share_x=True)
    labels = {"epsilon": "lower bound on\nepsilon (nats)", "auc": "AUC"}
    for at, (axis, (name, label)) in enumerate(zip(axes, labels.items(), strict=True)):
        axis.plot(table["epochs"], table[name], color=COLORS[at], marker=MARKERS[at])
        axis.set(xscale="log", ylabel=label)
    axes[-1].set_xlabel("epochs trained")
    axes[-1].xaxis.set_major_formatter("{x:g}")
    first, last = table.iloc[0], table.iloc[-1]
    show_figure(
        fig,
        name="own-epochs",
        caption="Lower bound and AUC after more and more epochs.",
        alt=f"Two lines over epochs: the lower bound goes from {first['epsilon']:.2f} to "
        f"{last['epsilon']:.2f} nats and the AUC from {first['auc']:.2f} to {last['auc']:.2f}.",
        data=table,
    )
