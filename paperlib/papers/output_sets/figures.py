"""Figures of the output-set paper: bounds of the four methods, and the shapes of optimal sets."""

import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from paperlib.papers.output_sets.shapes import ShapeConfig, panels, shape_curve

NAMES = {
    "printed": "Algorithm 1 as printed",
    "optimal": "this package's set",
    "cautious": "this package's set, error divided by 20",
    "top_bottom": "top and bottom",
    "dp_sniper": "DP-Sniper",
    "whole": "whole line",
    "adaptive": "adaptive order, all records",
    "learned": "learned order, all records",
}
"""Names of the methods in tables and figures."""

PAIRS = {
    "laplace": "Laplace mixtures",
    "gaussian": "Gaussian mixtures",
    "cauchy": "Cauchy",
    "f": "F",
    "logistic": "logistic",
    "chi_squared": "non-central chi-squared",
}
"""Names of the pairs of distributions in tables and figures."""

_LOOKS = {
    "printed": ("tab:red", "o", "-"),
    "optimal": ("tab:purple", "D", (0, (5, 1))),
    "top_bottom": ("tab:green", "s", "--"),
    "dp_sniper": ("tab:blue", "^", "-."),
    "whole": ("tab:gray", "v", ":"),
    "adaptive": ("tab:orange", "x", (0, (3, 2))),
    "learned": ("tab:brown", "+", (0, (3, 2))),
}

_BARS = (
    ("optimal set", "in_optimal", 1.08, 1.14, "tab:purple"),
    ("best top/bottom", "in_top_bottom", 1.02, 1.06, "tab:green"),
)


def panels_by_mechanism(table: pd.DataFrame, x: str, *, title: str = "") -> tuple[Figure, dict[str, Axes]]:
    """Mean and deviation of the bounds of `summary` over a column, logarithmic; a panel per mechanism."""
    fig, axes = plt.subplots(1, 2, figsize=(9, 3.6))
    panels = dict(zip(table["mechanism"].unique(), axes, strict=True))
    for mechanism, panel in panels.items():
        for method in [name for name in _LOOKS if name in set(table["method"])]:
            color, marker, style = _LOOKS[method]
            part = table[(table["mechanism"] == mechanism) & (table["method"] == method)]
            panel.errorbar(
                part[x], part["mean"], part["std"].fillna(0), color=color, marker=marker, linestyle=style,
                markersize=4, capsize=2, linewidth=1.2, label=NAMES[method],
            )  # fmt: skip
        panel.set(xscale="log", xlabel=x, title=f"{mechanism.capitalize()}{title}")
    axes[0].set_ylabel("audited epsilon (nats)")
    return fig, panels


def dpsgd_figure(table: pd.DataFrame) -> Figure:
    """Mean and deviation of the bounds of `mean_bounds` over epsilon, a panel for each kind of records."""
    names, epsilons = list(table["panel"].unique()), sorted(table["epsilon"].unique())
    fig, axes = plt.subplots(1, len(names), figsize=(11, 3.6), sharey=True, squeeze=False)
    places = {epsilon: at for at, epsilon in enumerate(epsilons)}
    for panel, name in zip(axes[0], names, strict=True):
        for method in [one for one in _LOOKS if one in set(table["method"])]:
            color, marker, style = _LOOKS[method]
            part = table[(table["panel"] == name) & (table["method"] == method)]
            panel.errorbar(
                part["epsilon"].map(places), part["mean"], part["std"].fillna(0), color=color, marker=marker,
                linestyle=style, markersize=4, capsize=2, linewidth=1.2, label=NAMES[method],
            )  # fmt: skip
        panel.set_xticks(range(len(epsilons)), [f"{one:g}".replace("inf", "∞") for one in epsilons])
        panel.set(xlabel="epsilon of DP-SGD (nats)", title=name)
    axes[0, 0].set_ylabel("audited epsilon (nats)")
    return fig


def finished(fig: Figure) -> Figure:
    """The figure with a legend in its first panel."""
    fig.axes[0].legend(fontsize=7)
    fig.tight_layout()
    return fig


def shapes_figure(figure: str, config: ShapeConfig) -> tuple[Figure, pd.DataFrame]:
    """Both panels of Figure 1, 4 or 5 ("figure01", ...), and the numbers, those of `shape_curve`."""
    curves = {panel.name: shape_curve(panel, config) for panel in panels() if panel.figure == figure}
    fig, axes = plt.subplots(1, 2, figsize=(9, 3.2), sharey=True)
    for ax, (name, curve) in zip(axes, curves.items(), strict=True):
        ax.plot(curve["score"], curve["accuracy"], color="tab:red", label="max(p, q) / (p + q)")
        peak = max(curve["p"].max(), curve["q"].max())
        ax.plot(curve["score"], curve["p"] / peak, ":", color="tab:gray", label="p, scaled")
        ax.plot(curve["score"], curve["q"] / peak, "--", color="tab:gray", label="q, scaled alike")
        for label, column, low, high, color in _BARS:
            ax.fill_between(curve["score"], low, high, where=curve[column], color=color, label=label)
        ax.set(title=PAIRS[name], xlabel="score", ylim=(0, 1.18))
    axes[0].set_ylabel("accuracy of a guess, density")
    axes[0].legend(fontsize=7, loc="lower left")
    fig.tight_layout()
    return fig, pd.concat(curves.values())
