"""Figures and tables of the notebook on normals and mixtures of normals (Figure 6)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from paperlib.papers.epsilon_star.fit import TESTS, Scores
from paperlib.papers.verdict import Scale
from paperlib.papers.verdict.evidence import Level
from paperlib.report import (
    COLORS,
    LINES,
    MARKERS,
    legend_below,
    panels,
    plus_minus,
    show_figure,
    show_table,
    show_text,
)

KINDS = {False: "without DP", True: "with DP"}
_LEVEL = 0.05
"""The paper's limit of p-values."""


def fit_scale(level: Level, name: str, table: pd.DataFrame) -> Scale:
    """How near the tested models (`p_values`) are to the paper's."""
    counts = [table[column].nunique() for column in ("seed", "components")]
    sizes = ", ".join(f"{size:g}" for size in sorted(table["sample_size"].unique()))
    return Scale(
        level, f"{name}, {counts[0]} models of each kind, {counts[1]} numbers of components, {sizes} losses"
    )


def show_losses(scores: Sequence[Scores], description: str, labels: np.ndarray) -> None:
    """Show the transformed losses of one model of each kind, and the moments of all models."""
    fig, axes = panels(2, height=2.4, share_x=True)
    for axis, private in zip(axes, KINDS, strict=True):
        model = next(model for model in scores if model.private == private)
        axis.hist(model.train, bins=60, density=True, alpha=0.5, color=COLORS[0], label="training records")
        axis.hist(
            model.population, bins=60, density=True, histtype="step", color=COLORS[1], label="other records"
        )
        axis.set(title=f"{KINDS[private]}, seed {model.seed}", ylabel="density")
    axes[-1].set_xlabel("transformed loss")
    legend_below(fig)
    table = moments(scores)
    skews = ", ".join(f"{value:.2f}" for value in table["skewness"])
    show_figure(
        fig,
        name="fit-losses",
        caption=f"Transformed losses of one model of each kind. {description}",
        alt="Two histograms, above without DP, below with DP. The filled histogram is of the training "
        "records, the outline of the others. The skewness of all models' training losses is "
        f"{skews}; it is 0 for a normal.",
        data=table,
    )
    commonest = np.unique(labels, return_counts=True)[1].max() / len(labels)
    numbers = table.columns.drop(["training", "seed"])
    by_kind = table.groupby("training", sort=False)
    spread = {
        name: [plus_minus(part[name].mean(), part[name].std()) for _, part in by_kind] for name in numbers
    }
    show_table(
        pd.DataFrame({"training": list(by_kind.groups), "models": by_kind.size().to_numpy(), **spread}),
        name="fit-models",
        caption="The models: accuracy on the other records, and moments of the transformed training losses; "
        f"means ± standard deviations. The commonest label is that of {commonest:.2f} of the other records. "
        "A normal has skewness and excess kurtosis 0.",
    )


def moments(scores: Sequence[Scores]) -> pd.DataFrame:
    """Accuracy of every model, and the moments of its transformed training losses."""
    return pd.DataFrame(
        {
            "training": KINDS[model.private],
            "seed": model.seed,
            "accuracy": model.accuracy,
            "mean": model.train.mean(),
            "standard deviation": model.train.std(),
            "skewness": pd.Series(model.train).skew(),
            "excess kurtosis": pd.Series(model.train).kurt(),
        }
        for model in scores
    )


def show_p_values(table: pd.DataFrame, *, name: str, about: str) -> None:
    """Show p-values over the number of components: a box for each, and medians for each n (Figure 6)."""
    fig, axes = panels(2, height=2.8, share_x=True)
    for axis, private in zip(axes, KINDS, strict=True):
        _boxes(axis, table[table["private"] == private])
        axis.set(title=KINDS[private], ylabel="p-value", ylim=(-0.03, 1.03))
    axes[-1].set_xlabel("components")
    legend_below(fig)
    show_figure(
        fig,
        name=name,
        caption=f"P-values of the paper's test (Figure 6), {about}: a box over all n, partitions and models "
        "for each number of components; lines are medians for one n.",
        alt="Two panels of boxes over the number of components, above without DP, below with DP, with one "
        f"line of medians for each n. Share of p-values above {_LEVEL}: {'; '.join(_shares(table))}.",
        data=table,
    )


def _boxes(axis: Axes, part: pd.DataFrame) -> None:
    places = _places(part)
    boxes = [part[part["components"] == count]["p_value"] for count in places]
    plain = {"linestyle": "-", "color": "#888888"}
    axis.boxplot(
        boxes,
        positions=list(places.values()),
        widths=0.6,
        flierprops={"markersize": 3, "markeredgecolor": "#888888"},
        boxprops=plain,
        whiskerprops=plain,
        capprops=plain,
        medianprops={"color": "black", "linestyle": "-"},
    )
    for at, (size, rows) in enumerate(part.groupby("sample_size")):
        medians = rows.groupby("components")["p_value"].median()
        style = {"color": COLORS[at], "linestyle": LINES[at], "marker": MARKERS[at]}
        axis.plot(
            [places[int(str(count))] for count in medians.index], medians, label=f"n = {size:,}", **style
        )
    axis.axhline(_LEVEL, color="k", linestyle=":", label=f"{_LEVEL}")
    axis.set_xticks(list(places.values()), [str(count) for count in places])


def _places(table: pd.DataFrame) -> dict[int, int]:
    """Number of components to the place on the axis."""
    return {int(count): at for at, count in enumerate(sorted(table["components"].unique()))}


def _components(count: int) -> str:
    return f"{count} component" + ("s" if count != 1 else "")


def _shares(table: pd.DataFrame) -> list[str]:
    """Shares of p-values above the limit, without and with DP, in words."""
    above = table.assign(above=table["p_value"] > _LEVEL)
    share, by_count = (
        above.groupby(keys)["above"].mean().to_dict() for keys in ("private", ["private", "components"])
    )
    first, last = table["components"].min(), table["components"].max()
    return [
        f"{KINDS[kind]} {share[kind]:.0%} ({by_count[kind, first]:.0%} at {_components(first)}, "
        f"{by_count[kind, last]:.0%} at {last})"
        for kind in KINDS
    ]


def show_shares(table: pd.DataFrame, *, name: str, about: str) -> None:
    """Show the share of p-values above 0.05 by components and number of losses."""
    above = table.assign(above=table["p_value"] > _LEVEL, training=table["private"].map(KINDS))
    shares = above.pivot_table("above", ["training", "components"], "sample_size", sort=False)
    shares.columns = [f"n = {size:,}" for size in shares.columns]
    show_table(
        shares.sort_index(ascending=[False, True]).reset_index(),
        name=name,
        caption=f"{about}: share of p-values above {_LEVEL} by components and number of losses.",
    )


def show_level(level: pd.DataFrame, *, draws: int) -> None:
    """Show how often each way of testing rejects a fit that is right (`rejection_rates`)."""
    show_table(
        level,
        name="fit-level",
        caption=f"Share of {draws} samples of 200 standard normal values for which a test at 5 % rejects a "
        "mixture that can fit. Same sample: fitted to the 200 tested. Other half: to 200 others. Held out "
        f"and paper: to 4,000 others. A right test has {_LEVEL}.",
    )


def show_tests(tested: pd.DataFrame) -> None:
    """Show the same losses tested in three ways, for the smallest and the largest number of components."""
    ends = [tested["components"].min(), tested["components"].max()]
    chosen = tested[tested["components"].isin(ends)]
    chosen = chosen.assign(above=chosen["p_value"] > _LEVEL, training=chosen["private"].map(KINDS))
    shares = chosen.pivot_table("above", ["training", "components", "test"], "sample_size")
    shares.columns = [f"n = {size:,}" for size in shares.columns]
    order = pd.MultiIndex.from_product([KINDS.values(), ends, TESTS], names=shares.index.names)
    show_table(
        shares.reindex(order).reset_index(),
        name="fit-tests",
        caption=f"Share of p-values above {_LEVEL} for the trained models: the same losses, tested in three "
        "ways.",
    )


def show_sample_size(tested: pd.DataFrame) -> None:
    """Show the p-value of the same fit with the fewest components, tested on more and more losses."""
    first = tested["components"].min()
    single = tested[tested["components"] == first].groupby(["private", "test", "sample_size"])["p_value"]
    single = single.median()
    fig, (axis,) = panels(height=3.0)
    for at, private in enumerate(KINDS):
        for test, line in (("paper", "-"), ("held out", "--")):
            curve = single[private, test].clip(lower=1e-12)
            style: dict[str, Any] = {"color": COLORS[at], "marker": MARKERS[at], "linestyle": line}
            axis.plot(curve.index, curve, label=f"{KINDS[private]}, {test}", **style)
    axis.axhline(_LEVEL, color="k", linestyle=":")
    axis.set(xscale="log", yscale="log", xlabel="losses tested on", ylabel="median p-value")
    legend_below(fig)
    sizes = tested["sample_size"].min(), tested["sample_size"].max()
    ends = {kind: [float(single[kind, "paper"][size]) for size in sizes] for kind in KINDS}
    show_figure(
        fig,
        name="fit-sample-size",
        caption=f"The same fit with {_components(first)}, tested on more and more losses; values below 1e-12 "
        f"are drawn there, the dotted line is {_LEVEL}.",
        alt="Four lines over the number of losses tested on, two without and two with DP. Median p-values of "
        "the "
        + "; ".join(
            f"paper's test {KINDS[kind]}: {a:.2g} at n = {sizes[0]:,}, {b:.2g} at {sizes[1]:,}"
            for kind, (a, b) in ends.items()
        )
        + ".",
        data=single.reset_index(),
    )


def show_epsilon(values: pd.DataFrame) -> None:
    """Show Epsilon* with k normals for each set, and how far two halves of the losses disagree."""
    fig, axes = panels(2, height=2.6, share_x=True)
    places = _places(values)
    for axis, private in zip(axes, KINDS, strict=True):
        for at, (_, rows) in enumerate(values[values["private"] == private].groupby("seed")):
            x, color = rows["components"].map(places), COLORS[at % len(COLORS)]
            style: dict[str, Any] = {"color": color, "marker": MARKERS[at % len(MARKERS)], "linestyle": "-"}
            axis.plot(x, rows["epsilon"], label=f"model {at + 1}", **style)
            axis.fill_between(x, rows["half_low"], rows["half_high"], color=color, alpha=0.2)
            axis.axhline(rows["empirical"].iloc[0], color=color, linestyle=":")
        axis.set(title=KINDS[private], ylabel="Epsilon* (nats)")
    axes[-1].set_xticks(list(places.values()), [str(count) for count in places])
    axes[-1].set_xlabel("components")
    legend_below(fig)
    show_figure(
        fig,
        name="fit-epsilon",
        caption="Parametric Epsilon* with k normals for each set. Shaded: between the values of two halves "
        "of the losses. Dotted: the empirical Epsilon* (rates in (0.001, 0.999)).",
        alt="Two panels of lines over the number of components. "
        + "; ".join(
            f"{row['training']} the mean at {_components(row['components'])} is {row['epsilon']:.2f} nats"
            for row in verdicts(values).to_dict("records")
        )
        + ".",
        data=values,
    )


def show_verdicts(values: pd.DataFrame) -> None:
    """Show what better fits do to the number (`epsilon_by_components`), in a table and in words."""
    table = verdicts(values)
    empirical = values.groupby("private")["empirical"].mean().to_dict()
    show_table(
        table,
        name="fit-verdict",
        caption="Means over models: share of fits rejected at 5 %, on the losses fitted or on the other "
        "half; Epsilon* in nats; the gap between the values of the two halves; and the least of the four "
        "error rates where the supremum sits. The empirical Epsilon* is "
        + " and ".join(f"{empirical[kind]:.2f} {KINDS[kind]}" for kind in KINDS)
        + ".",
        columns={
            "training": "training",
            "components": "components",
            "rejected": "rejected",
            "rejected_other": "rejected, other half",
            "epsilon": "Epsilon*",
            "gap": "gap of halves",
            "rate": "least rate",
        },
    )
    show_text(settled(values))


def verdicts(values: pd.DataFrame) -> pd.DataFrame:
    """Means over models for the fewest and the most components, by kind of training."""
    ends = [values["components"].min(), values["components"].max()]
    found = values[values["components"].isin(ends)].assign(
        training=values["private"].map(KINDS),
        rejected=values["p_same"] < _LEVEL,
        rejected_other=values["p_other_half"] < _LEVEL,
        gap=values["half_high"] - values["half_low"],
    )
    names = ["rejected", "rejected_other", "epsilon", "gap", "rate"]
    return (
        found.groupby(["private", "training", "components"])[names]
        .mean()
        .reset_index()
        .drop(columns="private")
    )


def settled(values: pd.DataFrame) -> str:
    """Whether the test accepts the largest mixtures, and whether their value settles, in words."""
    most = values["components"].max()
    many = values[values["components"] == most]
    passed, other = ((many[name] >= _LEVEL).sum() for name in ("p_same", "p_other_half"))
    gap = (many["half_high"] - many["half_low"]).mean()
    return (
        f"With {most} components the test accepts {passed} of {len(many)} models on the losses fitted, and "
        f"{other} on the other half. The values of the two halves are {gap:.2f} nats apart on average."
    )
