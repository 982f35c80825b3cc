"""The privacy-utility landscape: strategies with their ranges, the Pareto frontier, marginal densities."""

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import gaussian_kde

from paperlib.papers.epsilon_star.landscape_tables import describe, pareto, strategies
from paperlib.report import show_figure, show_table

KINDS = {"baseline": ("C1", "o", "no DP"), "dp": ("C0", "s", "DP-SGD")}
_MARKERS = ("s", "D", "^", "v", "P", "X")


def show_landscape(
    frame: pd.DataFrame, *, figure: str, utility: str, origin: str, name: str | None = None
) -> None:
    """Show the landscape of one data set and its Pareto frontier on a page.

    Args:
        frame: Result of `landscape` for one data set.
        figure: Figure of the paper in whose manner it is drawn.
        utility: Name of the utility.
        origin: Origin of the models, in words.
        name: End of the names of figure and table; None takes the data set.
    """
    table = strategies(frame)
    frontier = pareto(table)
    dataset = frame["dataset"].iloc[0]
    ending = (name or dataset).replace("_", "-")
    show_figure(
        landscape_figure(table, frontier, utility=utility),
        name=f"landscape-{ending}",
        caption=f"{dataset} (in the manner of {figure}): one point per strategy, {len(frame)} models, "
        f"{origin}. Bars: smallest and largest of its models. Numbers: epochs without DP. Above and right: "
        "densities of both kinds, each scaled to its peak.",
        alt=describe_landscape(table, frontier, utility=utility),
        data=frame,
    )
    names = [describe(row) for _, row in frontier.iterrows()]
    columns = ["strategy", "epsilon_star_mean", "utility_mean", "models"]
    titles = {"epsilon_star_mean": "Epsilon*", "utility_mean": utility}
    show_table(
        frontier.assign(strategy=names)[columns].rename(columns=titles),
        name=f"frontier-{ending}",
        caption=f"The Pareto frontier of {dataset}, {origin}: strategies that no other one, and no mix "
        "of two others, beats on both.",
    )


def landscape_figure(table: pd.DataFrame, frontier: pd.DataFrame, *, utility: str) -> Figure:
    """Epsilon* against utility, one point per strategy, and the densities of both kinds above and right."""
    fig, axes = plt.subplots(
        2, 2, figsize=(7.4, 5.2), sharex="col", sharey="row",
        gridspec_kw={"width_ratios": (5, 1), "height_ratios": (1, 4), "wspace": 0.05, "hspace": 0.05},
    )  # fmt: skip
    top, corner, main, right = axes[0, 0], axes[0, 1], axes[1, 0], axes[1, 1]
    corner.axis("off")
    _points(main, table)
    main.plot(
        frontier["epsilon_star_mean"], frontier["utility_mean"], "k-", lw=1, zorder=1, label="Pareto frontier"
    )
    for kind, (color, _, _) in KINDS.items():
        part = table[table["kind"] == kind]
        _density(top, part["epsilon_star_mean"].to_numpy(), color, vertical=False)
        _density(right, part["utility_mean"].to_numpy(), color, vertical=True)
    for axis in (top, right):
        axis.tick_params(left=False, bottom=False, labelleft=False, labelbottom=False)
    top.set_ylabel("density")
    right.set_xlabel("density")
    main.set(xlabel="Epsilon* (nats)", ylabel=utility)
    main.legend(fontsize="small")
    return fig


def _points(axis: Axes, table: pd.DataFrame) -> None:
    targets = sorted(table["target_epsilon"].dropna().unique())
    for (kind, target), part in table.groupby(["kind", "target_epsilon"], dropna=False):
        color, marker, label = KINDS[str(kind)]
        shade = 1.0
        if kind == "dp":
            at = targets.index(target)
            marker, label = _MARKERS[at % len(_MARKERS)], f"DP epsilon {target:g}"
            shade = 0.35 + 0.65 * at / max(1, len(targets) - 1)
        axis.errorbar(
            part["epsilon_star_mean"], part["utility_mean"],
            xerr=_ends(part, "epsilon_star"), yerr=_ends(part, "utility"),
            fmt=marker, color=color, alpha=shade, ms=5, lw=0.8, capsize=2, label=label, zorder=2,
        )  # fmt: skip
    for _, row in table[table["kind"] == "baseline"].iterrows():
        axis.annotate(
            f"{row['epochs']:g}", (row["epsilon_star_mean"], row["utility_mean"]), xytext=(5, 5),
            textcoords="offset points", fontsize="small",
        )  # fmt: skip


def _ends(part: pd.DataFrame, name: str) -> np.ndarray:
    mean = part[f"{name}_mean"]
    ends = np.array([mean - part[f"{name}_min"], part[f"{name}_max"] - mean])
    return np.maximum(ends, 0.0)  # a mean of equal values may lie a rounding above them


def _density(axis: Axes, values: np.ndarray, color: str, *, vertical: bool) -> None:
    """A kernel density; too few or equal values have none and are left out."""
    if len(values) < 3 or np.ptp(values) == 0:
        return
    margin = 0.15 * np.ptp(values)
    at = np.linspace(values.min() - margin, values.max() + margin, 200)
    height = gaussian_kde(values)(at)
    height /= height.max()  # both kinds in sight: one narrow density would flatten the other
    if vertical:
        axis.fill_betweenx(at, height, color=color, alpha=0.35)
    else:
        axis.fill_between(at, height, color=color, alpha=0.35)


def shuffled_figure(frame: pd.DataFrame) -> Figure:
    """Epsilon* of every model against that of the same losses after membership is assigned anew."""
    fig, axis = plt.subplots(figsize=(5.2, 4.2))
    for kind, (color, marker, label) in KINDS.items():
        part = frame[frame["kind"] == kind]
        axis.plot(
            part["epsilon_shuffled"], part["epsilon_star"], marker, color=color, ms=4, alpha=0.6, label=label
        )
    for epochs, part in frame[frame["kind"] == "baseline"].groupby("epochs"):
        at = (part["epsilon_shuffled"].mean(), part["epsilon_star"].mean())
        axis.annotate(f"{epochs:g}", at, xytext=(6, 4), textcoords="offset points", fontsize="small")
    shown = frame[["epsilon_shuffled", "epsilon_star"]]
    ends = np.array([max(1e-3, np.nanmin(shown)), np.nanmax(shown)])
    axis.plot(ends, ends, "k:", lw=1, label="equal")
    axis.set(xscale="log", yscale="log", xlabel="Epsilon* after shuffling (nats)", ylabel="Epsilon* (nats)")
    axis.legend(fontsize="small")
    return fig


def describe_landscape(table: pd.DataFrame, frontier: pd.DataFrame, *, utility: str) -> str:
    """The landscape in words, for readers who cannot see it."""
    base = table[table["kind"] == "baseline"].sort_values("epochs")
    private = table[table["kind"] == "dp"]
    without = "; ".join(
        f"epochs {row['epochs']:g}: {row['epsilon_star_mean']:.2f} and {row['utility_mean']:.3f}"
        for _, row in base.iterrows()
    )
    text = f"Scatter of {utility} over Epsilon*. Models without DP, Epsilon* and {utility}: {without}."
    if len(private):
        star, gain = private["epsilon_star_mean"], private["utility_mean"]
        text += (
            f" The {len(private)} DP strategies have Epsilon* from {star.min():.2f} to {star.max():.2f} and "
            f"{utility} from {gain.min():.3f} to {gain.max():.3f}."
        )
    return f"{text} The Pareto frontier joins {len(frontier)} strategies."
