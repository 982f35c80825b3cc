"""Figures 2 and 6: bounds of the four methods, one panel per mechanism."""

import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

NAMES = {
    "optimal": "optimal set",
    "top_bottom": "top and bottom",
    "dp_sniper": "DP-Sniper",
    "whole": "whole line",
}
"""Names of the methods in tables and figures."""

_LOOKS = {
    "optimal": ("tab:red", "o", "-"),
    "top_bottom": ("tab:green", "s", "--"),
    "dp_sniper": ("tab:blue", "^", "-."),
    "whole": ("tab:gray", "v", ":"),
}


def panels_by_mechanism(table: pd.DataFrame, x: str, *, title: str = "") -> tuple[Figure, dict[str, Axes]]:
    """Mean and standard deviation of the bounds over a column, on a logarithmic axis.

    Args:
        table: Result of `summary`, with the column of the horizontal axis.
        x: Name of that column.
        title: Text after the mechanism's name in the titles.

    Returns:
        The figure and, for each mechanism, its panel.
    """
    fig, axes = plt.subplots(1, 2, figsize=(9, 3.6))
    panels = dict(zip(table["mechanism"].unique(), axes, strict=True))
    for mechanism, panel in panels.items():
        for method, (color, marker, style) in _LOOKS.items():
            part = table[(table["mechanism"] == mechanism) & (table["method"] == method)]
            panel.errorbar(
                part[x], part["mean"], part["std"].fillna(0), color=color, marker=marker, linestyle=style,
                markersize=4, capsize=2, linewidth=1.2, label=NAMES[method],
            )  # fmt: skip
        panel.set(xscale="log", xlabel=x, title=f"{mechanism.capitalize()}{title}")
    axes[0].set_ylabel("audited epsilon (nats)")
    return fig, panels


def finished(fig: Figure) -> Figure:
    """The figure with a legend in its first panel."""
    fig.axes[0].legend(fontsize=7)
    fig.tight_layout()
    return fig
