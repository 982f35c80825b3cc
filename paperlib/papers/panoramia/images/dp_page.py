"""What the page on DP shows: its figures and tables, with captions and descriptions in words."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from paperlib.papers.panoramia.dp import STANDS_FOR, DpResults
from paperlib.papers.panoramia.dp_tables import PAPER_ONLY
from paperlib.papers.panoramia.figures import size_figure
from paperlib.papers.panoramia.tables.wide import counted
from paperlib.report import (
    COLORS,
    MARKERS,
    dot_rows,
    legend_below,
    panels,
    show_figure,
    show_table,
)

BOUNDS = {"c_lb": "c, at least", "c_plus_eps_lb": "c + ε, at least"}
"""The two bounds of PANORAMIA, and what they are called."""


def some(names: list[str], most: int = 4) -> list[str]:
    """The first, the last and some evenly spaced names between them.

    >>> some(["a", "b", "c", "d", "e", "f", "g"])
    ['a', 'c', 'e', 'g']
    """
    return [names[at] for at in np.unique(np.linspace(0, len(names) - 1, most).round().astype(int))]


def show_guarantees(results: DpResults) -> None:
    """Show the epsilon for replacing an image over that for adding or removing one."""
    rows = results.guarantees[np.isfinite(results.guarantees["epsilon"])]
    fig, (axes,) = panels()
    axes.plot(rows["epsilon"], rows["epsilon_replacement"], "o", label="replacing, at the same δ")
    ends = np.array([0, rows["epsilon"].max()])
    axes.plot(ends, 2 * ends, label="twice, at a larger δ", color=COLORS[1], linestyle="--")
    axes.plot(ends, ends, label="equal", color="black", linestyle=":")
    axes.set(xlabel="ε for adding or removing an image", ylabel="ε for replacing one")
    legend_below(fig)
    pairs = rows.drop_duplicates("epsilon")[["epsilon", "epsilon_replacement"]].to_numpy().tolist()
    show_figure(
        fig,
        name="dp-guarantees",
        caption="What the targets are named by, and what the audits bound, nats at the δ of the guarantee; "
        "the CSV has the noise in units of the clipping norm.",
        alt="For adding or removing, then for replacing: "
        + ", ".join(f"{one:g} and {two:.2f}" for one, two in pairs)
        + ".",
        data=results.guarantees,
    )


def show_settings(results: DpResults) -> None:
    """Show the setting that each target with DP is trained in."""
    show_table(
        results.settings,
        name="dp-settings",
        caption="The setting of the highest training accuracy for each target with DP; the second training "
        "of the largest epsilon has that of the lowest.",
        columns={
            "target": "Model",
            "epochs": "Epochs",
            "batch_size": "Batch",
            "optimizer": "Optimiser",
            "learning_rate": "Learning rate",
            "clip_norm": "Clipping norm",
        },
    )


def leakage_figure(families: Mapping[str, pd.DataFrame]) -> tuple[Figure, str]:
    """Eps-tilde by epsilon as rows of dots with deviations, the paper's as crosses, a panel per family."""
    longest = max(len(rows) for rows in families.values())
    fig, all_axes = panels(len(families), height=0.7 + 0.25 * longest, share_x=True)
    words = []
    for axes, (title, rows) in zip(all_axes, families.items(), strict=True):
        found, spread = rows["eps_tilde"], rows["sd"].fillna(0)
        paper = rows["paper eps_tilde"]
        names = [str(one).partition(" ")[2] or str(one) for one in rows["target"]]
        dot_rows(axes, names, found, low=(found - spread).clip(lower=0), high=found + spread, printed=paper)
        axes.set_title(title, loc="left")
        each = zip(names, found.to_numpy(), paper.to_numpy(), strict=True)
        told = (f"{name} {here:.2f}" + ("" if np.isnan(one) else f" (the paper {one:.2f})")
                for name, here, one in each)  # fmt: skip
        words.append(f"{title}: {', '.join(told)}")
    all_axes[-1].set_xlabel("ε~ (nats)")
    legend_below(fig)
    return fig, "; ".join(words) + "."


def show_leakage(results: DpResults, tables: Sequence[pd.DataFrame]) -> None:
    """Show eps-tilde of both families by epsilon (Tables 7 and 8)."""
    heads = zip(results.plan.architectures, STANDS_FOR, strict=True)
    titles = [f"{ours}, for {paper}" for ours, paper in heads]
    ours = [table[table["target"] != PAPER_ONLY] for table in tables]
    fig, words = leakage_figure(dict(zip(titles, ours, strict=True)))
    show_figure(
        fig,
        name="dp-leakage",
        caption="$\\tilde\\varepsilon$ by the $\\varepsilon$ of DP-SGD for adding or removing an image: "
        f"means over {counted(results.audits.config.repetitions)}, bars for their deviation, clipped at 0 "
        "after the mean; crosses: the paper's on CIFAR-10.",
        alt=words,
    )


def _named(table: pd.DataFrame) -> pd.DataFrame:
    """Rows with a column "model"; a row of the paper alone is named by its epsilon."""
    paper = "the paper, eps " + table["epsilon"].map("{:g}".format)
    return table.assign(model=table["target"].where(table["target"] != PAPER_ONLY, paper))


def show_by_epsilon(results: DpResults, table: pd.DataFrame, at: int) -> None:
    """Show Table 7 (``at`` 0) or 8 (1), the paper's numbers in the same rows."""
    number = 7 + at
    show_table(
        _named(table),
        name=f"dp-table-{number}",
        caption=f"Table {number}: {results.plan.architectures[at]} in the place of {STANDS_FOR[at]}, the "
        "null target first. $\\varepsilon$: for replacing an image; gap: accuracy on the training part less "
        f"that on real non-members, in points; nats, means over "
        f"{counted(results.audits.config.repetitions)}. Beside ours, the paper's on CIFAR-10.",
        columns={
            "model": "Model",
            "epsilon_replacement": "ε",
            "gap": "Gap",
            "eps_tilde": "ε~",
            "paper eps_tilde": "The paper",
            "o1": "O(1)",
            "paper o1": "The paper ",
        },
        lower_bounds=["o1"],
    )


def show_table_ten(table: pd.DataFrame) -> None:
    """Show Table 10, the paper's pairs beside ours of the same epsilon."""
    show_table(
        _named(table),
        name="dp-table-10",
        caption="Table 10: pairs of one $\\varepsilon$ (adding or removing), the wider gap of training and "
        "test accuracy first; nats. Beside ours, the paper's, without a union bound over recall, so that "
        "they are no confidence bounds.",
        columns={
            "model": "Model",
            "epsilon": "ε",
            "gap": "Gap",
            "eps_tilde": "ε~",
            "o1": "O(1)",
            "paper gap": "Gap, the paper",
            "paper eps_tilde": "ε~, the paper",
        },
        lower_bounds=["o1"],
    )


def show_relaxed(relaxed: pd.DataFrame, target: str, *, confidence: float) -> None:
    """Show both bounds of a target over gamma, by search (Table 11 on scores already judged)."""
    rows = relaxed[relaxed["target"] == target]
    rows, gammas = rows[rows["delta"] == rows["delta"].max()], sorted(rows["gamma"].unique())
    fig, all_axes = panels(2, height=2.0, share_x=True)
    words = []
    for axes, (column, title) in zip(all_axes, BOUNDS.items(), strict=True):
        for at, (search, part) in enumerate(rows.groupby("search", sort=False)):
            values = part.set_index("gamma")[column].reindex(gammas)
            axes.plot(range(len(gammas)), values, marker=MARKERS[at], label=str(search))
            words.append(f"{title}, {search}: {', '.join(f'{one:.2f}' for one in values)}")
        axes.set_title(title, loc="left")
        axes.set(ylabel="nats", xticks=range(len(gammas)))
        axes.set_xticklabels([f"{one:g}" for one in gammas])
        axes.set_ylim(bottom=0)
    all_axes[-1].set_xlabel("γ")
    legend_below(fig)
    show_figure(
        fig,
        name="dp-table-11",
        caption=f"Table 11 on scores already judged, {target}, at the $\\delta$ of the guarantees: means "
        "over games by the search over recall. The CSV has all targets and both $\\delta$, and under "
        "failures the mean number of right guesses that the baseline's test gives away at $x = 0$; the union "
        f"needs {(1 - confidence) / 2:g} or less.",
        alt=f"Over gamma of {', '.join(f'{one:g}' for one in gammas)}: {'; '.join(words)}.",
        data=relaxed,
    )


def show_ranges(ranges: pd.DataFrame) -> None:
    """Show the paper's Table 11 as crosses, with what Propositions 3 and 4 leave as bars."""
    names = [f"{row['epsilon']:g}, {row['delta']:g}, {row['gamma']:g}" for row in ranges.to_dict("records")]
    fig, all_axes = panels(2, height=0.6 + 0.2 * len(ranges), share_x=True)
    outside = []
    for axes, (column, title) in zip(all_axes, BOUNDS.items(), strict=True):
        low, high, paper = (ranges[f"{column}{one}"] for one in (" low", " high", ""))
        dot_rows(axes, names, (low + high) / 2, low=low, high=high, printed=paper, label="what is left")
        axes.set_title(f"{title}; rows: ε, δ, γ", loc="left")
        outside.append(
            f"{title}: {int((paper > high).sum())} of {len(ranges)} printed values above their bar"
        )
    all_axes[-1].set_xlabel("nats")
    legend_below(fig)
    show_figure(
        fig,
        name="dp-table-11-range",
        caption="The paper's Table 11 (crosses) and the least to the largest bound that Propositions 3 and 4 "
        "leave (bars), over all guess counts that show the printed bound at $\\gamma = 0$ (recall up to "
        "0.5); ResNet-18, $m = 10{,}000$, no union bound over recall.",
        alt="; ".join(outside) + ".",
        data=ranges,
    )


def show_recall(curves: pd.DataFrame, names: Sequence[str]) -> None:
    """Show the bounds of some targets over recall, one game, and the baseline's (Figure 5)."""
    fig, (axes,) = panels(height=3.2)
    first = curves[(curves["target"] == names[0]) & (curves["test"] == "baseline")]
    axes.plot(first["recall"], first["bound"], color="black", linestyle=":", label="baseline, c")
    words = [f"baseline {first['bound'].max():.2f}"]
    for name in names:
        rows = curves[(curves["target"] == name) & (curves["test"] == "mia")]
        axes.plot(rows["recall"], rows["bound"], label=name)
        words.append(f"{name} {rows['bound'].max():.2f}")
    axes.set(xlabel="recall", ylabel="lower bound (nats)", ylim=(0, None))
    legend_below(fig)
    show_figure(
        fig,
        name="dp-bounds",
        caption="Lower bounds on $c + \\varepsilon$ over recall by the $\\varepsilon$ of DP-SGD for adding "
        "or removing, and the baseline's on $c$, one game (Figure 5 of the paper). A perfect attack would "
        f"show {curves['ceiling'].mean():.2f}. The CSV has all targets.",
        alt=f"Largest bound: {', '.join(words)}.",
        data=curves,
    )


def show_sizes(over_size: pd.DataFrame, names: Sequence[str]) -> None:
    """Show the bounds of some targets over the number of judged examples (Figure 6c)."""
    rows = over_size[(over_size["audit"] == "panoramia") & over_size["target"].isin(list(names))]
    baseline = rows[rows["target"] == names[0]]
    baseline = baseline.assign(target="baseline, c", c_plus_eps_lb=baseline["c_lb"])
    fig, words = size_figure(
        pd.concat([rows, baseline]), x="m", columns={"c_plus_eps_lb": "lower bound"},
        xlabel="examples judged (m)",
    )  # fmt: skip
    show_figure(
        fig,
        name="dp-sizes",
        caption="Bounds on $c + \\varepsilon$, and the baseline's on $c$, on the first examples of the test "
        "part: means and deviations over games (Figure 6c of the paper). The CSV has all targets.",
        alt=words,
        data=over_size,
    )
