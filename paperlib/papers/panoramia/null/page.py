"""Figures and tables of the notebook on null targets, and what to take from them."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from paperlib.papers.panoramia.null.matched import MARGIN, false_alarms
from paperlib.report import COLORS, MARKERS, dot_rows, legend_below, panels, show_figure, show_table

KINDS = {True: "null targets", False: "targets"}


def matched_figure(table: pd.DataFrame) -> tuple[Figure, str]:
    """Eps-tilde over the members that helpers learned, a panel for each data set, with the null's margins."""
    names = list(dict.fromkeys(table["data"]))
    fig, all_axes = panels(len(names), height=2.4)
    words = []
    for axes, name in zip(all_axes, names, strict=True):
        rows = table[table["data"] == name]
        axes.axhspan(-MARGIN, MARGIN, color="#dddddd", zorder=0)
        for at, (null, kind) in enumerate(KINDS.items()):
            shown = rows[rows["null"].astype(bool) == null].sort_values("ratio", na_position="first")
            places = np.arange(len(shown)) + 0.1 * at
            error = np.nan_to_num((shown["high"] - shown["eps_tilde"]).to_numpy(), posinf=0.0)
            axes.errorbar(
                places, shown["eps_tilde"], yerr=error, label=kind, color=COLORS[at], marker=MARKERS[at],
                linestyle="none",
            )  # fmt: skip
            first, last = shown["eps_tilde"].iloc[[0, -1]].round(2) + 0.0
            words.append(f"{name}, {kind}: {first:.2f} without folds, {last:.2f} at the end")
        ratios = rows.loc[rows["null"].astype(bool), "ratio"].sort_values(na_position="first")
        axes.set_xticks(np.arange(len(ratios)), [_learned(one) for one in ratios])
        axes.set_title(name, loc="left")
        axes.set_ylabel("difference (nats)")
    all_axes[-1].set_xlabel("members learned per member judged")
    legend_below(fig)
    return fig, f"{'; '.join(words)}. A band shows the margins of {MARGIN:g}."


def _learned(ratio: float) -> str:
    return "none" if np.isnan(ratio) else f"{ratio:g}"


def _two_digits(value: float) -> str:
    return f"{round(value, 2) + 0.0:.2f}"  # no minus before a zero


def show_games(played: pd.DataFrame, table: pd.DataFrame) -> None:
    """Show the difference of the bounds over what helpers learned; the CSV has every game."""
    fig, words = matched_figure(table)
    show_figure(
        fig,
        name="null-games",
        caption="Difference of the bounds over the members that each model of a helper learned per member "
        "judged; none: helpers on $D_G$ and on generated examples. Bars: t-intervals over worlds; grey: the "
        f"margin of {MARGIN:g} to both sides of 0. The CSV has every game of this run.",
        alt=words,
        data=played,
    )


def show_measured(larger: pd.DataFrame) -> None:
    """Show the larger runs as `show_games` does this one; rows of `over_worlds`."""
    fig, words = matched_figure(larger)
    show_figure(
        fig,
        name="null-measured",
        caption="Difference of the bounds in the larger runs, as in the figure above.",
        alt=words,
        data=larger,
    )


def show_means(table: pd.DataFrame, *, name: str, what: str, confidence: float) -> None:
    """Show rows of `over_worlds`: the difference with its interval, and whether a null target passes."""
    cells = table.assign(
        kind=[KINDS[bool(null)][:-1] for null in table["null"]],
        learned=[_learned(one) for one in table["ratio"]],
        shown=[_two_digits(one) for one in table["eps_tilde"]],
        interval=[
            f"{_two_digits(low)} to {_two_digits(high)}"
            for low, high in zip(table["low"], table["high"], strict=True)
        ],
    )
    show_table(
        cells,
        name=name,
        caption=f"{what}: difference of the bounds (nats, not clipped) by the members that each model of a "
        f"helper learned, with {confidence:.0%} t-intervals over {table['worlds'].max()} worlds.",
        columns={
            "data": "data",
            "learned": "members learned per member judged",
            "kind": "model",
            "c_lb": "c at least",
            "shown": "difference",
            "interval": "its interval",
            "passes": "passes",
        },
        lower_bounds=["c_lb"],
    )


def passing_in_words(table: pd.DataFrame) -> str:
    """At which ratios the null target of each data set passes, one sentence each."""
    nulls = table[table["null"].astype(bool) & table["ratio"].notna()]
    sentences = []
    for name, rows in nulls.groupby("data", sort=False):
        passing = [f"{one:g}" for one in rows.loc[rows["passes"].astype(bool), "ratio"]]
        where = (
            f"at {', '.join(passing)} members learned per member judged" if passing else "at no ratio tried"
        )
        sentences.append(f"On {name} the null target passes {where}.")
    return " ".join(sentences)


def all_alarms(runs: Sequence[tuple[str, pd.DataFrame]]) -> pd.DataFrame:
    """Rows of `false_alarms` of several runs, with a column run."""
    return pd.concat([false_alarms(rows).assign(run=name) for name, rows in runs], ignore_index=True)


def alarms_figure(alarms: pd.DataFrame) -> tuple[Figure, str]:
    """Share of worlds whose null target gives a false alarm, a panel for each data set, with intervals."""
    names = list(dict.fromkeys(alarms["data"]))
    most = alarms.groupby("data").size().max()
    fig, all_axes = panels(len(names), height=0.9 + 0.2 * most, share_x=True)
    words = []
    for axes, name in zip(all_axes, names, strict=True):
        rows = alarms[alarms["data"] == name]
        labels = [f"{_learned(row.ratio)}, {row.worlds} worlds" for row in rows.itertuples()]
        dot_rows(axes, labels, rows["share"], low=rows["low"], high=rows["high"])
        axes.set_title(name, loc="left")
        told = ", ".join(f"{one} {share:.0%}" for one, share in zip(labels, rows["share"], strict=True))
        words.append(f"{name}: {told}")
    all_axes[-1].set_xlabel("share of false alarms")
    return fig, f"By members learned per member judged. {'; '.join(words)}."


def show_alarms(alarms: pd.DataFrame) -> None:
    """Show how often a null target gives a false alarm, rows of `all_alarms`."""
    fig, words = alarms_figure(alarms)
    show_figure(
        fig,
        name="null-alarms",
        caption="Share of null targets whose difference of the bounds is significantly above "
        f"{MARGIN:g} (95 % t-interval over games), with Clopper-Pearson 95 % intervals, by the members that "
        "helpers learned per member judged. The CSV names the run of each row.",
        alt=words,
        data=alarms,
    )


def in_words(table: pd.DataFrame, alarms: pd.DataFrame) -> str:
    """The three things to take, with the numbers of the larger runs, or of this one, as Markdown."""
    nulls = table[table["null"].astype(bool)]
    plain = nulls[nulls["ratio"].isna()].set_index("data")["eps_tilde"].round(2) + 0.0
    most = nulls[nulls["ratio"].notna()].groupby("data", sort=False)["eps_tilde"].last().round(2) + 0.0
    ends = "; ".join(f"{name}: {plain[name]:.2f}, and {most[name]:.2f}" for name in most.index)
    worst = alarms.sort_values("share", ascending=False, kind="stable").iloc[0]
    return (
        r"1. A model that never saw the members can have $\tilde\varepsilon$ above 0. Difference of the "
        "bounds of null "
        f"targets in nats, with the helpers of the paper's kind, and where helpers learned most: {ends}.\n"
        f"2. {passing_in_words(table)} Where it does not pass, read a target's number beside that of "
        "its null.\n"
        f"3. Count alarms over worlds, not over games. The largest share of false alarms here is "
        f"{worst['share']:.0%} of {worst['worlds']} worlds ({worst['data']}, members learned per member "
        f"judged: {_learned(worst['ratio'])})."
    )
