"""Figures of PANORAMIA's tests: precision, bounds and guesses over recall, and bounds over sizes."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from paperlib.report.curve_figures import add_legend


def size_figure(
    frame: pd.DataFrame, *, x: str, columns: Mapping[str, str], xlabel: str, by: str = "target"
) -> tuple[Figure, str]:
    """Bounds over a size (Figures 2, 6, 9 and 11): mean over games, with standard deviation.

    Args:
        frame: One row per size, group and game.
        x: Column of the size.
        columns: Column of a bound to what it is called.
        xlabel: Label of the size's axis.
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
        xlabel: Label of the losses' axis.

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
    add_legend(fig)
    return fig, "; ".join(words) + "."
