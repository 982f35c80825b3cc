"""PANORAMIA's tests over recall: precision, bounds and guesses."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from paperlib.report.figures import COLORS, legend_below, panels

_LINES = {"baseline": ("--", COLORS[1], "baseline"), "mia": ("-", COLORS[0], "attack")}
"""Dashes, colour and label of each test."""
_POINTS = 300  # of a line, at most


def precision_figure(curves: pd.DataFrame) -> tuple[Figure, str]:
    """Precision of the positive guesses over recall (Figure 3), and the figure in words.

    ``curves`` has the columns target, test ("baseline" or "mia"), seed, recall and precision, a row
    for each number of guesses.
    """
    fig = _panels(curves, "precision", ylabel="precision")
    for axes in fig.axes:
        axes.axhline(0.5, color="black", linewidth=0.8, linestyle=":", label="guessing")
        axes.set_ylim(0.4, 1.02)
    legend_below(fig, columns=3)
    return fig, _describe(curves, "precision", "precision")


def bounds_figure(curves: pd.DataFrame) -> tuple[Figure, str]:
    """Lower bounds on c (baseline) and on c + epsilon (attack) over recall, with the ceiling of a
    perfect attack (Figure 4), and the figure in words.

    ``curves`` has the columns target, test ("baseline" or "mia"), seed, recall, and bound and
    ceiling in nats.
    """
    fig = _panels(curves, "bound", ylabel="bound (nats)")
    for axes, (_, rows) in zip(fig.axes, curves.groupby("target", sort=False), strict=True):
        axes.axhline(
            rows["ceiling"].mean(), color="black", linewidth=1, linestyle="-.", label="ceiling"
        )
        axes.set_ylim(bottom=0)
    legend_below(fig, columns=3)
    words = _describe(curves, "bound", "largest bound")
    return fig, f"{words} The ceiling of a perfect attack lies at {curves['ceiling'].mean():.2f}."


def guesses_figure(curves: pd.DataFrame) -> tuple[Figure, str]:
    """True positives over the number of guesses (Figure 10), and the figure in words.

    ``curves`` has the columns target, test ("baseline" or "mia"), seed, recall, precision, guesses
    and true_positives.
    """
    fig = _panels(curves, "true_positives", x="guesses", ylabel="members")
    top = fig.axes[0].get_xlim()[1]  # guessing finds a member with every second guess
    for axes in fig.axes:
        axes.plot(
            [0, top], [0, top / 2], color="black", linewidth=0.8, linestyle=":", label="guessing"
        )
    fig.axes[-1].set_xlabel("positive guesses")
    legend_below(fig, columns=3)
    return fig, _describe(curves, "precision", "precision")


def _panels(curves: pd.DataFrame, y: str, *, x: str = "recall", ylabel: str) -> Figure:
    """A figure with a panel for each target and in it a line for each test and seed: ``x`` and
    ``y`` are columns of ``curves``, beside target, test and seed.
    """
    targets = list(curves["target"].unique())
    fig, all_axes = panels(len(targets), height=2.5 if len(targets) < 3 else 1.9, share_x=True)
    for axes, target in zip(all_axes, targets, strict=True):
        of_target = curves[curves["target"] == target]
        for (test, _), of_line in of_target.groupby(["test", "seed"], sort=False):
            rows = _thinned(of_line)
            style, color, label = _LINES[str(test)]
            axes.plot(rows[x], rows[y], linestyle=style, color=color, linewidth=1.1, label=label)
        axes.set_title(str(target), loc="left")
        axes.set_ylabel(ylabel)
    all_axes[-1].set_xlabel("recall")
    return fig


def _thinned(rows: pd.DataFrame) -> pd.DataFrame:
    """At most `_POINTS` rows, evenly spread on a log axis, since a curve changes most at low
    recall.
    """
    if len(rows) <= _POINTS:
        return rows
    indices = np.unique(np.geomspace(1, len(rows), _POINTS).astype(int)) - 1
    return rows.iloc[indices]


def _describe(curves: pd.DataFrame, column: str, name: str) -> str:
    """Baseline and attack of each target in words, as a mean over seeds: of the column "bound" the
    best one, of another column its value at a recall of 0.1; ``name`` is what the words call it.
    """
    keys = ["target", "test", "seed"]
    games = curves.groupby(keys, sort=False)[column].max()  # a number for each line drawn
    if column != "bound":
        games = curves[curves["recall"] >= 0.1].groupby(keys, sort=False)[column].first()
        name += " at recall 0.1"
    means = games.groupby(["target", "test"]).mean()
    words = []
    for target in curves["target"].unique():
        values = [
            f"{label} {means.get((target, test), np.nan):.2f}"
            for test, (*_, label) in _LINES.items()
        ]
        words.append(f"{target}: {name} {', '.join(values)}")
    return "; ".join(words) + "."
