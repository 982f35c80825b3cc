"""Pictures of PANORAMIA's tests: precision, bounds and guesses over recall, and bounds over sizes."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

_LINES = {"baseline": ("--", "baseline"), "mia": ("-", "attack")}
_POINTS = 300
_WIDE = 4  # panels in a row


def precision_figure(curves: pd.DataFrame) -> tuple[Figure, str]:
    """Precision of the positive guesses over recall, one panel per target (Figure 3 of the paper).

    Args:
        curves: As `Audits.curves`: target, seed, test, recall, guesses, precision. Several seeds give one
            line each.

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
        curves: As `Audits.curves`: target, seed, test, recall, guesses, bound, ceiling.

    Returns:
        The figure, and its description in words.
    """
    fig = _panels(curves, "bound", ylabel="lower bound (nats)")
    for axes, (_, rows) in zip(fig.axes, curves.groupby("target", sort=False), strict=True):
        axes.axhline(rows["ceiling"].mean(), color="black", linewidth=1, linestyle="-.", label="ceiling")
    _legend(fig)
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
    _legend(fig)
    return fig, _describe(curves, "precision", "precision")


def size_figure(
    frame: pd.DataFrame, *, x: str, columns: Mapping[str, str], xlabel: str, by: str = "target"
) -> tuple[Figure, str]:
    """Bounds over a size (Figures 2, 6, 9 and 11): mean over games, with standard deviation.

    Args:
        frame: One row per size, group and game.
        x: Column of the size.
        columns: Column of a bound to what it is called.
        xlabel: What the size is.
        by: Column whose values get their own colour.

    Returns:
        The figure, and its description in words.
    """
    fig, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    words: list[str] = []
    styles = ("-", "--", ":", "-.")
    for at, (group, rows) in enumerate(frame.groupby(by, sort=False)):
        for style, (column, label) in zip(styles, columns.items(), strict=False):
            means = rows.groupby(x)[column].agg(["mean", "std"]).fillna(0.0)
            axes.errorbar(
                means.index, means["mean"], yerr=means["std"], color=f"C{at}", linestyle=style, marker="o",
                markersize=3, linewidth=1.2, capsize=2, label=f"{group}: {label}",
            )  # fmt: skip
            ends = means["mean"].iloc[[0, -1]]
            words.append(f"{group}, {label}: from {ends.iloc[0]:.2f} to {ends.iloc[1]:.2f}")
    axes.set(xlabel=xlabel, ylabel="nats")
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    fig.legend(loc="outside right upper", fontsize="small")
    return fig, f"Over {xlabel} from {frame[x].min():g} to {frame[x].max():g}: {'; '.join(words)}."


def loss_figure(
    groups: Mapping[str, Mapping[str, ArrayLike]], *, xlabel: str = "loss (nats)"
) -> tuple[Figure, str]:
    """Histograms of losses, one panel per model and one outline per kind of example (Figures 13 and 14).

    Args:
        groups: Panel to kind to losses, shape (n,).
        xlabel: What the losses are.

    Returns:
        The figure, and its description in words.
    """
    fig, all_axes = plt.subplots(
        1, len(groups), figsize=(3.2 * len(groups), 2.8), layout="constrained", squeeze=False
    )
    words = []
    for axes, (panel, kinds) in zip(all_axes[0], groups.items(), strict=True):
        values = {kind: np.asarray(losses, dtype=float) for kind, losses in kinds.items()}
        edges = np.histogram_bin_edges(np.concatenate(list(values.values())), bins=40)
        for style, (kind, losses) in zip(("-", "--", ":", "-."), values.items(), strict=False):
            shares = np.histogram(losses, edges)[0] / losses.size
            axes.stairs(shares, edges, label=kind, linestyle=style, linewidth=1.4)
        axes.set(title=panel, xlabel=xlabel, ylabel="share" if axes is all_axes[0][0] else "")
        medians = ", ".join(f"{kind} {np.median(losses):.2f}" for kind, losses in values.items())
        words.append(f"{panel}: median loss {medians}")
    _legend(fig)
    return fig, "; ".join(words) + "."


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
    _legend(fig)
    return fig


def _line(axes: Axes, rows: pd.DataFrame, x: str, y: str, test: str) -> None:
    style, label = _LINES[test]
    kept = rows.iloc[_spread(len(rows))]
    color = "C1" if test == "baseline" else "C0"
    axes.plot(kept[x], kept[y], linestyle=style, color=color, linewidth=1.1, label=label)


def _spread(count: int) -> list[int]:
    """Rows to draw: all, or some whose ranks are even on a log axis, since low recall is where it happens."""
    if count <= _POINTS:
        return list(range(count))
    return [int(at) - 1 for at in np.unique(np.geomspace(1, count, _POINTS).astype(int))]


def _legend(fig: Figure) -> None:
    found: dict[str, Any] = {}
    for axes in fig.axes:
        handles, labels = axes.get_legend_handles_labels()
        found |= dict(zip(labels, handles, strict=True))
    for legend in list(fig.legends):
        legend.remove()
    fig.legend(list(found.values()), list(found), loc="outside right upper", fontsize="small")


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
