"""What the page on images shows: its figures and tables, with captions and descriptions in words."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from paperlib.core import round_down
from paperlib.papers.panoramia.figures import loss_figure, size_figure
from paperlib.papers.panoramia.images import tables
from paperlib.papers.panoramia.images.grids import image_grid
from paperlib.papers.panoramia.images.measured import MeasuredRun, grid_figure
from paperlib.papers.panoramia.results import PanoramiaResults, helper_means, loss_groups, table_three
from paperlib.papers.panoramia.tables.wide import counted
from paperlib.report import (
    COLORS,
    MARKERS,
    bounds_figure,
    dot_rows,
    guesses_figure,
    legend_below,
    panels,
    paper_table,
    plus_minus,
    precision_figure,
    show_figure,
    show_table,
    show_text,
)

RESNETS, CELEBA = ("ResNet101_E20", "ResNet101_E50", "ResNet101_E100"), ("CNN_E50", "CNN_E100")
"""The paper's targets by over-training, on CIFAR-10 and on CelebA."""
AUDITS = {"PANORAMIA, ε~": "eps~ (paper form)", "RM;RN, ε": "RM;RN (paper form)", "O(1), ε": "O(1)"}
"""Panel to column of `table_three`."""
_CURVES = {
    "precision": (
        precision_figure,
        "Precision of the guesses over recall, one game in the paper's form (Figure 3 of the paper).",
    ),
    "bounds": (
        bounds_figure,
        "Lower bounds on $c$ (baseline) and $c + \\varepsilon$ (attack) over recall, all games in the "
        "paper's form (Figure 4 of the paper). An attack without a single error could show the ceiling.",
    ),
    "guesses": (
        guesses_figure,
        "Members among the first guesses, one game in the paper's form (Figure 10 of the paper).",
    ),
}
_SD = {"eps~ (paper form)": "sd (paper form)"} | {name: f"sd {name}" for name in list(AUDITS.values())[1:]}


def levels(names: Sequence[str], dataset: str) -> dict[str, str]:
    """Our targets by over-training, each with the paper's of the same degree.

    >>> levels(["cnn E5", "cnn E20"], "mnist5k")
    {'cnn E5': 'ResNet101_E20', 'cnn E20': 'ResNet101_E50'}
    """
    return dict(zip(names, CELEBA if dataset == "celeba" else RESNETS, strict=False))


def beside(table: pd.DataFrame, paper_target: Mapping[str, str]) -> pd.DataFrame:
    """Rows "ours" of a table, the paper's numbers in columns "paper ..." of the same row."""
    ours, paper = (table[table["source"] == one].drop(columns="source") for one in ("ours", "paper"))
    paper = paper.drop(columns="null").dropna(axis=1, how="all").set_index("target").add_prefix("paper ")
    return ours.assign(**{"paper target": ours["target"].map(paper_target)}).join(paper, on="paper target")


def three_figure(rows: pd.DataFrame) -> tuple[Figure, str]:
    """Table 3 as rows of dots, with the deviations over games and the paper's values as crosses."""
    named = [
        target if pd.isna(paper) else f"{target}\n{paper.replace('_', ' ')}"
        for target, paper in zip(rows["target"], rows["paper target"], strict=True)
    ]
    fig, all_axes = panels(len(AUDITS), height=0.7 + 0.42 * len(rows), share_x=True)
    words = []
    for axes, (title, column) in zip(all_axes, AUDITS.items(), strict=True):
        spread = rows[_SD[column]].fillna(0) if _SD[column] in rows else pd.Series(0.0, index=rows.index)
        ends = {"low": (rows[column] - spread).clip(lower=0), "high": rows[column] + spread}
        dot_rows(axes, named, rows[column], printed=rows[f"paper {column}"], **ends)
        axes.set_title(title, loc="left")
        each = zip(rows["target"], rows[column], rows[f"paper {column}"], strict=True)
        words.append(f"{title}: " + ", ".join(_with_paper(*one) for one in each))
    all_axes[-1].set_xlabel("nats")
    legend_below(fig)
    return fig, "; ".join(words) + "."


def _with_paper(name: str, here: float, paper: float) -> str:
    return f"{name} {here:.2f}" + ("" if np.isnan(paper) else f" (the paper {paper:.2f})")


def show_measured(run: MeasuredRun) -> None:
    """Show runs made before: sample images, all bounds, and how good generator and baseline were."""
    fig, words = grid_figure(run)
    show_figure(
        fig,
        name="images-measured-grid",
        caption=f"Images of the first of these runs ({run.scale}).",
        alt=words,
        invert=False,
    )
    rows = run.rows
    names = [one.name for one in tables.parse_targets(run.parameters["targets"]) if not one.null]
    printed = paper_table("panoramia_table03").query("audit == 'panoramia' and base_model != 'ResNet18'")
    like = rows["target"].map(levels(names, run.parameters["dataset"]))
    rows["paper eps~"] = like.map(printed.set_index("target_model")["eps_tilde"])
    rows["shown"] = [plus_minus(*one) for one in zip(rows["eps~"], rows["sd"], strict=True)]
    show_table(
        rows,
        name="images-measured",
        caption="PANORAMIA in the paper's form, RM;RN and O(1), nats, union over recall: means over models, "
        "$\\tilde\\varepsilon$ with its deviation, and beside it the paper's for the ResNet101 of the same "
        f"degree of over-training; accuracy in per cent; {run.scale} (the first run: {run.origin}).",
        columns={
            "target": "Model",
            "test accuracy": "Test accuracy",
            "c_lb": "c, at least",
            "shown": "ε~",
            "paper eps~": "ε~, the paper",
            "RM;RN": "RM;RN",
            "O(1)": "O(1)",
        },
        lower_bounds=["c_lb", "c+eps_lb", "RM;RN", "O(1)"],
    )
    show_text(f"Generator and baseline: {run.quality}.")


def show_grid(parts: Mapping[str, NDArray[np.uint8]], dataset: str) -> None:
    """Show images that the generator learned from, members and generated images (Figure 7)."""
    means = ", ".join(f"{name} {images.mean():.0f}" for name, images in parts.items())
    show_figure(
        image_grid(parts),
        name="images-grid",
        caption="Images the generator learned from, members and generated images (Figure 7 of the paper).",
        alt=f"Rows of small images of {dataset}, mean grey value out of 255 in each: {means}.",
        invert=False,
    )


def show_accuracies(results: PanoramiaResults, dataset: str, *, label_noise: float) -> None:
    """Show accuracies of all targets, those of the paper beside the first ones (Table 1)."""
    table = beside(tables.table_one(results.pools), levels(tables.series(results), dataset))
    show_table(
        table,
        name="images-table-1",
        caption="Table 1: accuracy in per cent on the training part and on real non-members; "
        f"{label_noise:.0%} of our labels are drawn anew in both. Beside ours, the paper's test accuracy "
        "after the same degree of over-training.",
        columns={
            "target": "Model",
            "train": "Training accuracy",
            "test": "Test accuracy",
            "paper target": "Model of the paper",
            "paper test": "Its test accuracy",
        },
    )


def show_bounds_of_all(results: PanoramiaResults, dataset: str) -> None:
    """Show Table 3: eps-tilde, RM;RN and O(1) as dots, then both bounds of PANORAMIA beside the paper's."""
    config, first = results.decisive.config, tables.series(results)
    table = table_three(results, models="base_model != 'GPT-2' and base_model != 'ResNet18'")
    table = beside(table, levels(first, dataset))
    games = f"{counted(config.repetitions)} with test parts of {config.test}"
    fig, words = three_figure(table[table["target"].isin([*first, *tables.nulls_like(results, first[-1])])])
    show_figure(
        fig,
        name="images-leakage",
        caption=f"Table 3 as dots: means over {games}, bars for their standard deviation, "
        "$\\tilde\\varepsilon$ clipped at 0 after the mean; crosses: the paper's with test parts of 10,000. "
        "The paper has no null.",
        alt=words,
    )
    show_table(
        table,
        name="images-table-3",
        caption=f"Table 3: the two bounds of PANORAMIA in the paper's form beside the paper's, and "
        f"$\\tilde\\varepsilon$ with helpers in both; nats, union over recall, means over {games}.",
        columns={
            "target": "Model",
            "c_lb (paper form)": "c, at least",
            "paper c_lb (paper form)": "The paper",
            "c+eps_lb (paper form)": "c + ε, at least",
            "paper c+eps_lb (paper form)": "The paper ",
            "eps~ (paper form)": "ε~",
            "eps~ (helpers form)": "ε~, helpers in both",
        },
        lower_bounds=["c_lb (paper form)", "c+eps_lb (paper form)"],
    )


def _down(bound: float) -> float:
    return round_down(bound, 2)


def show_above_real(results: PanoramiaResults) -> None:
    """Show eps-tilde beside RM;RN, and how hard their non-members are to tell from members."""
    rows = tables.above_real(results)
    for name, bound in (("eps_tilde", rows["eps_tilde"]), ("rm_rn", rows["rm_rn"].map(_down))):
        cells = zip(bound, rows[f"{name}_sd"], strict=True)
        rows[f"{name} shown"] = [plus_minus(value, sd) for value, sd in cells]
    show_table(
        rows,
        name="images-above-real",
        caption="$\\tilde\\varepsilon$ beside RM;RN, paper's form, nats, with deviations over games; AUC of "
        "the attack of RM;RN, and of the target's loss for members against generated images and against real "
        "non-members.",
        columns={
            "target": "Model",
            "eps_tilde shown": "ε~",
            "rm_rn shown": "RM;RN",
            "rm_rn_auc": "AUC of RM;RN",
            "auc_generated": "AUC of the loss, generated",
            "auc_nonmembers": "AUC of the loss, real",
        },
        lower_bounds=["rm_rn"],
    )


def show_searches(results: PanoramiaResults) -> None:
    """Show eps-tilde and RM;RN by the correction for testing many recall levels, as rows of dots."""
    table = tables.searches(results)
    kinds = {"PANORAMIA, ε~": "panoramia", "RM;RN, ε": "rm_rn"}
    names = list(results.pools.target_names)
    fig, all_axes = panels(len(kinds), height=0.7 + 0.25 * len(names), share_x=True)
    words, places = [], np.arange(len(names))[::-1]
    for axes, (title, audit) in zip(all_axes, kinds.items(), strict=True):
        rows = table[(table["audit"] == audit) & (table["form"] == results.form)]
        values = rows.pivot(index="target", columns="search", values="value").reindex(names)
        for search, marker, color in zip(values, MARKERS, COLORS, strict=False):
            axes.plot(values[search], places, marker, color=color, label=search)
            words.append(f"{title}, {search}: {', '.join(f'{one:.2f}' for one in values[search])}")
        axes.set_yticks(places, names)
        axes.set_title(title, loc="left")
    all_axes[-1].set_xlabel("nats")
    legend_below(fig)
    show_figure(
        fig,
        name="images-searches",
        caption="The same by the correction for testing many recall levels: a union bound over all levels, "
        "as in the paper, or an anytime search; means over games in the paper's form.",
        alt=f"Models from above: {', '.join(names)}. {'; '.join(words)}.",
        data=table,
    )


def show_generator(quality: Mapping[str, float], results: PanoramiaResults) -> None:
    """Show how good the generator is, and accuracies and AUCs of every target; the CSVs hold all numbers."""
    show_table(
        tables.quality_table(quality, results),
        name="images-generator",
        caption="How good the generator is. Kernel distance: the squared maximum mean discrepancy with KID's "
        "kernel, on features of a classifier trained on $D_G$; the paper prints no such number, and its "
        "$c_{lb}$ on CIFAR-10 is 2.44. The baseline is that of the paper's form.",
        columns={"what": "What", "value": "Value"},
    )
    form = f"({results.form} form)"
    show_table(
        tables.whole_table(results, quality),
        name="images-all",
        caption="Every target: how large it is and how well attacks tell members, as AUCs. The CSV holds all "
        "numbers of this run: accuracies as shares, losses and bounds in nats, means and deviations over "
        "games.",
        columns={
            "target": "Model",
            "parameters": "Parameters",
            f"panoramia {form} baseline auc": "Baseline, AUC",
            f"panoramia {form} attack auc": "Attack, AUC",
            f"rm_rn {form} attack auc": "RM;RN, AUC",
            f"o1 {form} attack auc": "O(1), AUC",
            "games": "Games",
        },
    )


def show_curves(kind: str, curves: pd.DataFrame) -> None:
    """Show "precision", "bounds" or "guesses" over recall (Figures 3, 4 and 10)."""
    draw, caption = _CURVES[kind]
    fig, words = draw(curves)
    show_figure(fig, name=f"images-{kind}", caption=caption, alt=words, data=curves)


def show_helpers(games: pd.DataFrame, *, synthetic: int, real: int) -> None:
    """Show the baseline's bound by helper, the paper's beside it (Tables 2 and 5)."""
    rows = helper_means(games, tables.printed_helpers())
    cells = zip(rows["c_lb"].map(_down), rows["sd"], strict=True)
    rows["shown"] = [plus_minus(value, sd) for value, sd in cells]
    show_table(
        rows,
        name="images-table-2",
        caption="Baseline by helper: $c_{lb}$ in nats with its deviation over games, AUC, and the paper's "
        f"$c_{{lb}}$ on CIFAR-10. The synthetic helper is trained on {synthetic} images, that on real "
        f"non-members on {real}.",
        columns={"helper": "Helper", "shown": "c, at least", "paper": "The paper", "auc": "AUC"},
        lower_bounds=["c_lb"],
    )


def show_training_sizes(rows: pd.DataFrame) -> None:
    """Show both bounds over the size of the training part (Figures 2 and 11)."""
    fig, words = size_figure(
        rows,
        x="train",
        columns={"c_lb": "c, at least (baseline, Figure 2)", "c_plus_eps_lb": "c + ε, at least (Figure 11)"},
        xlabel="examples that attacks are trained on",
    )
    show_figure(
        fig,
        name="images-training-size",
        caption="Bounds over the size of the training part (Figures 2 and 11 of the paper): means and "
        "deviations over games.",
        alt=words,
        data=rows,
    )


def show_test_sizes(rows: pd.DataFrame, *, o1: float) -> None:
    """Show eps-tilde and c + eps over the size of the test part (Figure 6)."""
    names = {"eps_tilde": "ε~, not clipped at 0", "c_plus_eps_lb": "c + ε, at least"}
    fig, words = size_figure(rows, x="m", columns=names, xlabel="examples judged (m)")
    fig.axes[0].axhline(o1, color="black", linestyle=":", label="O(1)")
    fig.axes[0].set_ylim(top=max(fig.axes[0].get_ylim()[1], 1.1 * o1))
    legend_below(fig, columns=1)
    show_figure(
        fig,
        name="images-test-size",
        caption="$\\tilde\\varepsilon$ and the bound on $c + \\varepsilon$ over the size of the test part "
        "(Figure 6 of the paper); dotted: O(1) with all real non-members that the coins leave it.",
        alt=f"{words} O(1) shows {o1:.2f}.",
        data=rows,
    )


def show_losses(results: PanoramiaResults, names: Sequence[str]) -> None:
    """Show the losses of some targets by kind of image (Figure 13)."""
    fig, words = loss_figure(loss_groups(results.pools, names, tables.KINDS))
    show_figure(
        fig,
        name="images-losses",
        caption="Losses of targets on members, real non-members and generated images (Figure 13 of the "
        "paper, there for CelebA).",
        alt=words,
    )


def show_model_sizes(results: PanoramiaResults) -> None:
    """Show what the audits find by the number of parameters (Figure 15)."""
    sizes = tables.model_sizes(results)
    show_table(
        sizes.assign(gap=100 * sizes["gap"]),
        name="images-model-size",
        caption="Targets of equal epochs by number of parameters (Figure 15 of the paper, there Wide "
        "ResNet-28-2, ResNet50 and ResNet101), paper's form: $\\tilde\\varepsilon$ and lower bounds in nats, "
        "and the gap of training and test accuracy in points.",
        columns={
            "target": "Model",
            "parameters": "Parameters",
            "gap": "Gap",
            "eps_tilde": "ε~",
            "rm_rn": "RM;RN",
            "o1": "O(1)",
        },
        lower_bounds=["rm_rn", "o1"],
    )
