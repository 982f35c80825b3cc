"""PANORAMIA's tests over recall: precision, bounds and guesses."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

_LINES = {"baseline": ("--", "baseline"), "mia": ("-", "attack")}
_POINTS = 300
_WIDE = 4  # panels in a row


def precision_figure(curves: pd.DataFrame) -> tuple[Figure, str]:
    """Precision of the positive guesses over recall, one panel per target (Figure 3 of the paper).

    Args:
        curves: Columns target, seed, test, recall, guesses and precision, as in `TargetAudits.curves`.
            Each seed gives one line.

    Returns:
        The figure, and its description in words.
    """
    fig = _panels(curves, "precision", ylabel="precision of the guesses")
    for axes in fig.axes:
        axes.axhline(0.5, color="black", linewidth=0.8, linestyle=":")
        axes.set_ylim(0.4, 1.02)
    return fig, _describe(curves, "precision", "precision")


def bounds_figure(curves: pd.DataFrame) -> tuple[Figure, str]:
    """Lower bounds on c and on c + epsilon over recall, with the ceiling of a perfect attack (Figure 4).

    Args:
        curves: Columns target, seed, test, recall, guesses, bound and ceiling, as in `TargetAudits.curves`.

    Returns:
        The figure, and its description in words.
    """
    fig = _panels(curves, "bound", ylabel="lower bound (nats)")
    for axes, (_, rows) in zip(fig.axes, curves.groupby("target", sort=False), strict=True):
        axes.axhline(rows["ceiling"].mean(), color="black", linewidth=1, linestyle="-.", label="ceiling")
    add_legend(fig)
    words = _describe(curves, "bound", "largest bound")
    return fig, f"{words} The ceiling of a perfect attack lies at {curves['ceiling'].mean():.2f}."


def guesses_figure(curves: pd.DataFrame) -> tuple[Figure, str]:
    """True positives over the number of guesses (Figure 10 of the paper).

    Returns:
        The figure, and its description in words.
    """
    fig = _panels(curves, "true_positives", x="guesses", ylabel="members among them")
    for axes in fig.axes:
        top = axes.get_xlim()[1]
        axes.plot([0, top], [0, top / 2], color="black", linewidth=0.8, linestyle=":", label="guessing")
        axes.set_xlabel("positive guesses")
    add_legend(fig)
    return fig, _describe(curves, "precision", "precision")


def _panels(curves: pd.DataFrame, y: str, *, x: str = "recall", ylabel: str) -> Figure:
    targets = list(curves["target"].unique())
    wide = min(len(targets), _WIDE)
    high = -(-len(targets) // wide)
    fig, grid = plt.subplots(
        high,
        wide,
        figsize=(1 + 2.9 * wide, 0.5 + 2.6 * high),
        layout="constrained",
        squeeze=False,
        sharey=True,
    )
    for spare in grid.flat[len(targets) :]:
        fig.delaxes(spare)
    for axes, target in zip(grid.flat, targets, strict=False):
        shown = curves[curves["target"] == target]
        for (test, _), rows in shown.groupby(["test", "seed"], sort=False):
            _line(axes, rows, x, y, str(test))
        axes.set(title=str(target), xlabel="recall")
    for row in grid:
        row[0].set_ylabel(ylabel)
    add_legend(fig)
    return fig


def _line(axes: Axes, rows: pd.DataFrame, x: str, y: str, test: str) -> None:
    style, label = _LINES[test]
    kept = rows.iloc[_spread(len(rows))]
    color = "C1" if test == "baseline" else "C0"
    axes.plot(kept[x], kept[y], linestyle=style, color=color, linewidth=1.1, label=label)


def _spread(count: int) -> list[int]:
    """Rows to draw: all, or some, evenly spread on a log axis, since the curve changes most at low recall."""
    if count <= _POINTS:
        return list(range(count))
    return [int(at) - 1 for at in np.unique(np.geomspace(1, count, _POINTS).astype(int))]


def add_legend(fig: Figure) -> None:
    """Give a figure one legend for all its panels."""
    entries: dict[str, Any] = {}
    for axes in fig.axes:
        handles, labels = axes.get_legend_handles_labels()
        entries |= dict(zip(labels, handles, strict=True))
    for legend in list(fig.legends):
        legend.remove()
    fig.legend(list(entries.values()), list(entries), loc="outside right upper", fontsize="small")


def _describe(curves: pd.DataFrame, column: str, name: str) -> str:
    """Baseline and attack in words: the best bound, or the precision at a tenth of the members."""
    words = []
    for target, rows in curves.groupby("target", sort=False):
        parts = []
        for test, (_, label) in _LINES.items():
            one = rows[rows["test"] == test]
            if column == "bound":
                value = one.groupby("seed")["bound"].max().mean()
            else:
                low = one[one["recall"] >= 0.1].groupby("seed").first()
                value = low[column].mean()
            parts.append(f"{label} {value:.2f}")
        where = "" if column == "bound" else " at recall 0.1"
        words.append(f"{target}: {name}{where} {', '.join(parts)}")
    return "; ".join(words) + "."
