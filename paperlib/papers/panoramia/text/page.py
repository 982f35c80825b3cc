"""Figures and tables of the notebook on text (Tables 3, 5, 9; Figures 8, 9, 10, 14), and what to take."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from paperlib.audits.panoramia.pools import Pools
from paperlib.core import FloatArray, round_down
from paperlib.papers.panoramia.evidence import null_samples
from paperlib.papers.panoramia.figures import loss_figure, size_figure
from paperlib.papers.panoramia.results import PanoramiaResults
from paperlib.papers.panoramia.tables.wide import counted
from paperlib.papers.panoramia.text.beside import AUDITS, beside_the_paper, paper_values
from paperlib.papers.panoramia.text.tables import plain_nulls
from paperlib.report import (
    bounds_figure,
    dot_rows,
    guesses_figure,
    legend_below,
    panels,
    plus_minus,
    show_figure,
    show_table,
)


def show_chunks(pools: Pools, tokenizer: Any) -> None:
    """Show a chunk of each kind as text."""
    rows = [(kind, tokenizer.decode(pool.examples[0])) for kind, pool in pools.by_kind().items()]
    show_table(
        pd.DataFrame(rows, columns=["kind", "first chunk"]),
        name="text-chunks",
        caption="One chunk of each kind.",
    )


def show_targets(pools: Pools) -> None:
    """Show the loss of each target on members and on real non-members."""
    show_table(
        pools.table,
        name="text-targets",
        caption="Targets: mean loss of the members and of real non-members, nats per token.",
        columns={
            "target": "target",
            "epochs": "epochs",
            "train_metric": "loss, members",
            "test_metric": "loss, non-members",
        },
    )


def show_overtraining(curves: pd.DataFrame, epochs: Sequence[int]) -> None:
    """Show the loss of the target over its epochs (Figure 8)."""
    fig, (axes,) = panels()
    axes.plot(curves["epoch"], curves["train"], marker="o", label="training")
    axes.plot(curves["epoch"], curves["validation"], marker="s", label="validation")
    for epoch in epochs:
        axes.axvline(epoch, color="grey", linestyle=":", linewidth=1)
    axes.set(xlabel="epoch", ylabel="loss (nats per token)")
    legend_below(fig)
    train, validation = curves["train"], curves["validation"]
    show_figure(
        fig,
        name="text-losses",
        caption="Loss of the target over its epochs; dotted lines: where it is audited (Figure 8).",
        alt=f"Training loss goes from {train.iloc[0]:.2f} to {train.iloc[-1]:.2f}. Validation loss has its "
        f"lowest value {validation.min():.2f} at epoch {validation.argmin() + 1} and ends at "
        f"{validation.iloc[-1]:.2f}.",
        data=curves,
    )


def show_distributions(groups: Mapping[str, Mapping[str, FloatArray]]) -> None:
    """Show the losses of members, non-members and generated chunks (Figure 14), rows of `text_losses`."""
    fig, words = loss_figure(groups, xlabel="mean loss (nats per token)")
    rows = [
        (panel, kind, value)
        for panel, kinds in groups.items()
        for kind, values in kinds.items()
        for value in values
    ]
    show_figure(
        fig,
        name="text-loss-distributions",
        caption="Mean loss of each chunk under each target, and under the helper trained on generated chunks "
        "(Figure 14).",
        alt=words,
        data=pd.DataFrame(rows, columns=["model", "kind", "loss"]),
    )


def show_table_three(table: pd.DataFrame, *, name: str, caption: str, private: bool = False) -> None:
    """Show Table 3 with the paper's values beside ours."""
    rows = beside_the_paper(table)
    heads = {f"{audit}, {where}": f"{word} {end}" for audit, word in AUDITS.items()
             for where, end in (("here", "here"), ("paper", "in the paper"))}  # fmt: skip
    show_table(
        rows if private else rows[~rows["target"].str.contains("DP")],
        name=name,
        caption=caption,
        columns={"shown": "target", **heads},
    )


def show_table_nine(table: pd.DataFrame, *, games: int) -> None:
    """Show `table_nine`, one row at least."""
    show_table(
        table,
        name="text-table-9",
        caption=f"With and without DP, nats: means ± deviations over {counted(games)} (Table 9; the paper's "
        "±: half of 95 % intervals).",
        columns={
            "training": "training",
            "panoramia, here": "ε~ here",
            "null, here": "ε~ of its null",
            "panoramia, paper": "ε~ in the paper",
            "o1, here": "O(1) here",
            "o1, paper": "O(1) in the paper",
        },
    )


def caption_three(games: int, test: int) -> str:
    """Caption of Table 3 over so many games on a test part of this size."""
    return (
        f"$\\tilde\\varepsilon$ of PANORAMIA, and lower bounds on $\\varepsilon$ with real non-members, "
        f"nats: means ± deviations over {counted(games)} (the paper's ±: half of 95 % intervals). Test part: "
        f"{test} examples."
    )


def largest_null(table: pd.DataFrame) -> str:
    """The largest eps-tilde of a null target among rows of `table_three`, in words."""
    nulls = table[table["null"].astype(bool)].set_index("target")["eps~ (paper form)"]
    return (
        f"A null target, which never saw a member, shows up to {nulls.max():.2f} nats in this run "
        f"({nulls.idxmax()})."
    )


def audits_figure(results: PanoramiaResults) -> tuple[Figure, str]:
    """Every target by every audit, with 95 % t-intervals over games, and the paper's values as crosses."""
    summary = results.summary[results.summary["search"] == results.search]
    difference = summary["c_plus_eps_lb"] - summary["c_lb"]
    summary = summary.assign(shown=difference.fillna(summary["value"]))
    names = list(results.pools.target_names)
    printed = paper_values(names)
    fig, all_axes = panels(len(AUDITS), height=0.8 + 0.2 * len(names), share_x=True)
    words = []
    for axes, (audit, word) in zip(all_axes, AUDITS.items(), strict=True):
        rows = summary[summary["audit"] == audit].set_index("target").reindex(names)
        value, half = rows["shown"], rows["value_t"].fillna(0.0)
        theirs = [printed.get(name, {}).get(audit, (np.nan, np.nan))[0] for name in names]
        dot_rows(axes, names, value, low=value - half, high=value + half, printed=theirs)
        axes.axvline(0, color="black", linewidth=0.8)
        axes.set_title(f"{word}, not clipped at 0" if audit == "panoramia" else word, loc="left")
        shown = value.round(2) + 0.0  # no minus before a zero
        words.append(f"{word}: " + ", ".join(f"{name} {one:.2f}" for name, one in shown.items()))
    all_axes[-1].set_xlabel("nats")
    legend_below(fig)
    return fig, f"{'. '.join(words)}."


def show_audits(results: PanoramiaResults) -> None:
    """Show every target by every audit; the CSV has all means, with both searches over recall."""
    fig, words = audits_figure(results)
    show_figure(
        fig,
        name="text-audits",
        caption="All targets: means over games and 95 % t-intervals on the same pools. Crosses: the paper's "
        "values of targets at the same level of over-training, or with the same DP. The CSV has both "
        "corrections for testing many recall levels.",
        alt=words,
        data=results.summary,
    )


def nulls_in_words(results: PanoramiaResults) -> str:
    """The difference of the bounds of each null target before it is clipped at 0."""
    means = {name: _mean(values) for name, values in null_samples(results.decisive).items()}
    shown = "; ".join(f"{name} {value}" for name, value in means.items())
    return f"Null targets, before the difference is clipped at 0 (nats, mean over games): {shown}."


def _mean(values: Sequence[float]) -> str:
    return f"{round(float(np.mean(values)), 2) + 0.0:.2f}"


def show_by_document(table: pd.DataFrame) -> None:
    """Show the rows of `by_dealing`."""
    cells = beside_the_paper(table.assign(source="ours"))
    show_table(
        cells,
        name="text-by-document",
        caption="Chunks dealt one by one, and whole documents: means ± deviations over games, nats.",
        columns={
            "dealt": "dealt",
            "target": "target",
            **{f"{audit}, here": word for audit, word in AUDITS.items()},
        },
    )


def show_table_five(table: pd.DataFrame) -> None:
    """Show the baseline by helper (`table_five`), with the paper's bounds beside ours."""
    cells = [plus_minus(round_down(c, 2), sd) for c, sd in zip(table["c_lb"], table["sd"], strict=True)]
    show_table(
        table.assign(here=cells),
        name="text-table-5",
        caption="Lower bound on $c$ of the baseline that sees this helper, nats: means ± deviations over "
        "games, beside the paper's on WikiText (Table 5).",
        columns={"helper": "helper", "here": "c at least, here", "paper": "in the paper", "auc": "AUC here"},
    )


def show_sizes(sizes: pd.DataFrame) -> None:
    """Show the baseline over the size of its training part (Figure 9), rows of `baseline_sizes`."""
    fig, words = size_figure(
        sizes, x="train", columns={"c_lb": "c at least"}, xlabel="training examples", by="way"
    )
    show_figure(
        fig,
        name="text-baseline-sizes",
        caption="Baseline of the paper's form over the size of its training part: test part fixed (Figure "
        "9a), or all that is left (Figure 9b, the first attack alone). Means and deviations over games.",
        alt=words,
        data=sizes,
    )


def show_test_sizes(results: PanoramiaResults, target: str) -> None:
    """Show what each audit of a target finds over the size of the test part (Figure 6d)."""
    m = results.decisive.config.test
    sizes = results.decisive.over_test_size([m * share // 8 for share in (1, 2, 4, 6, 8)])
    rows = sizes[sizes["target"] == target]
    rows = rows.assign(target=rows["audit"].map({**AUDITS, "panoramia": "PANORAMIA"}),
                       found=rows["eps_tilde"].fillna(rows["eps"]))  # fmt: skip
    fig, words = size_figure(
        rows, x="m", columns={"found": "found", "ceiling": "ceiling"}, xlabel="test size m"
    )
    show_figure(
        fig,
        name="text-test-sizes",
        caption=f"{target}: $\\tilde\\varepsilon$, and $\\varepsilon$ where non-members are real, over the "
        "test size, with the ceiling of a perfect attack ($c + \\varepsilon$ for PANORAMIA; Figure 6d).",
        alt=words,
        data=rows,
    )


def show_recall(results: PanoramiaResults, names: Sequence[str]) -> None:
    """Show members among the first guesses (Figure 10), and bounds over recall, of some targets."""
    curves = results.forms["paper"].curves()
    curves = curves[curves["target"].isin(names)]
    fig, words = guesses_figure(curves)
    show_figure(
        fig,
        name="text-guesses",
        caption="Members among the first guesses, the paper's form, a line for each game (Figure 10).",
        alt=words,
        data=curves,
    )
    fig, words = bounds_figure(curves)
    show_figure(
        fig,
        name="text-bounds",
        caption="Lower bounds on $c$ (baseline) and $c + \\varepsilon$ (attack) over recall, the paper's "
        "form, with the ceiling of a perfect attack.",
        alt=words,
        data=curves,
    )


def in_words(results: PanoramiaResults) -> str:
    """The three things to take, with the numbers of the run, as Markdown."""
    early, late = results.trained[0], results.trained[-1]
    private = [one.name for one in results.pools.targets if one.kind == "private"]
    with_dp = (
        f"With DP-SGD it is {max(map(results.value, private)):.2f} at most.{_unseen(results)}"
        if private
        else "This run trains no target with DP-SGD."
    )
    return (
        rf"1. Over-training: $\tilde\varepsilon$ is {results.value(early):.2f} nats for {early} and "
        f"{results.value(late):.2f} for {late}. {with_dp}\n"
        f"2. {_null_in_words(results)}\n"
        "3. Where real non-members are at hand, `audit_one_run` needs no generator, no baseline and no "
        "training of its own."
    )


def _unseen(results: PanoramiaResults) -> str:
    """What the null targets with DP say of a small number with DP: nothing where they are not below 0."""
    nulls = [one.name for one in results.pools.targets if one.kind == "null" and one.dp_epsilon is not None]
    means = [float(np.mean(values)) for values in null_samples(results.decisive, nulls).values()]
    if not means or min(means) >= -0.1:
        return ""
    return (
        f" There a null target lies at {min(means):.2f} before clipping: a leak of this size would go unseen."
    )


def _null_in_words(results: PanoramiaResults) -> str:
    name = plain_nulls(results)[-1]
    samples = null_samples(results.decisive)[name]
    mean, meaning = (
        float(np.mean(samples)),
        "near 0; whether its interval is too, the verdict of Table 3 says.",
    )
    if mean > 0.1:
        meaning = r"not 0: so much of $\tilde\varepsilon$ may be no leakage."
    elif mean < -0.1:
        meaning = "below 0: there the attack falls short of the baseline, and a small leak may go unseen."
    return (
        f"The target called {name} never saw a member. Its difference of the bounds is {_mean(samples)} "
        f"nats, {meaning}"
    )
