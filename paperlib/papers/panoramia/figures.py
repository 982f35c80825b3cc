"""Figures of PANORAMIA's tests: precision, bounds and guesses over recall, and bounds over sizes."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from paperlib.report import COLORS, LINES, MARKERS, legend_below, panels

_APART = 0.012
"""Distance between groups at one size, as a share of the axis."""


def size_figure(
    frame: pd.DataFrame, *, x: str, columns: Mapping[str, str], xlabel: str, by: str = "target"
) -> tuple[Figure, str]:
    """Bounds over a size (Figures 2, 6, 9 and 11): mean over games, with standard deviation.

    Each bound has its own panel. A bar ends at 0 where the deviation would take it below.
    """
    groups = list(frame[by].unique())
    fig, all_axes = panels(len(columns), height=2.6 if len(columns) == 1 else 2.2, share_x=True)
    words: list[str] = []
    for axes, (column, label) in zip(all_axes, columns.items(), strict=True):
        for at, group in enumerate(groups):
            games = frame[frame[by] == group].groupby(x)[column]
            _size_line(axes, games.mean(), games.std().fillna(0.0), at, str(group))
            ends = games.mean().iloc[[0, -1]]
            words.append(f"{group}, {label}: from {ends.iloc[0]:.2f} to {ends.iloc[1]:.2f}")
        axes.set_title(label, loc="left")
        axes.set_ylabel("nats")
        axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    all_axes[-1].set_xlabel(xlabel)
    if len(groups) > 1:
        legend_below(fig)
    return fig, f"Over {xlabel} from {frame[x].min():g} to {frame[x].max():g}: {'; '.join(words)}."


def _size_line(axes: Axes, mean: pd.Series, spread: pd.Series, at: int, label: str) -> None:
    """One group's line, moved a little to the right so that bars at one size do not cover each other."""
    sizes = mean.index.to_numpy(dtype=float)
    moved = sizes + at * _APART * np.ptp(sizes)
    down = np.minimum(spread, mean.clip(lower=0.0))
    turn = {"color": COLORS, "linestyle": LINES, "marker": MARKERS}
    look = {name: one[at % len(one)] for name, one in turn.items()}
    axes.errorbar(moved, mean, yerr=[down, spread], label=label, **look)


def loss_figure(
    groups: Mapping[str, Mapping[str, ArrayLike]], *, xlabel: str = "loss (nats)"
) -> tuple[Figure, str]:
    """Histograms of losses, one panel per model and one outline per kind of example (Figures 13 and 14)."""
    fig, all_axes = panels(len(groups), height=2.2)
    words = []
    for axes, (panel, kinds) in zip(all_axes, groups.items(), strict=True):
        values = {kind: np.asarray(losses, dtype=float) for kind, losses in kinds.items()}
        edges = np.histogram_bin_edges(np.concatenate(list(values.values())), bins=40)
        for at, (kind, losses) in enumerate(values.items()):
            shares = np.histogram(losses, edges)[0] / losses.size
            axes.stairs(shares, edges, label=kind, color=COLORS[at], linestyle=LINES[at], linewidth=1.6)
        axes.set_title(panel, loc="left")
        axes.set_ylabel("share")
        medians = ", ".join(f"{kind} {np.median(losses):.2f}" for kind, losses in values.items())
        words.append(f"{panel}: median loss {medians}")
    all_axes[-1].set_xlabel(xlabel)
    legend_below(fig)
    return fig, "; ".join(words) + "."
