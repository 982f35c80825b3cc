"""What the page of the benchmark shows: which scores are judged, and Tables 1 and 3 to 9."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from paperlib.io import read_result
from paperlib.papers.measured import kept_file, measured_table
from paperlib.papers.natural_identifiers import hub
from paperlib.papers.natural_identifiers.benchmark import PAPER_MODELS, BenchmarkConfig, folded_cells
from paperlib.papers.natural_identifiers.evidence import benchmark_evidence
from paperlib.papers.natural_identifiers.natural_truth import ALL, overall
from paperlib.papers.natural_identifiers.pages.benchmark_figures import (
    ATTACKS,
    METRICS,
    TABLES,
    attacks_figure,
    beside_paper,
    cells_figure,
    repetitions_figure,
)
from paperlib.papers.natural_identifiers.planted import TOKENS
from paperlib.papers.verdict import Evidence, Scale, record
from paperlib.report import dot_rows, panels, paper_table, plus_minus, show_figure, show_table, show_text

_GROUPS = ("trained", "trained, occurs once", "held out")
_P = "p, "


@dataclass(frozen=True, eq=False)
class Judged:
    """Scores of four models on identifiers of one kind.

    Attributes:
        name: Beginning of the names of its figures and tables.
        words: The identifiers, in words.
        table: Result of `benchmark`, `natural_table` or `hub_table`, in percent.
        scale: How near it is to the paper's.
        natural: True if the identifiers stand in documents as they are.
        confidence: Of its intervals, in (0, 1).
    """

    name: str
    words: str
    table: pd.DataFrame
    scale: Scale
    natural: bool
    confidence: float = 0.99

    @property
    def whole(self) -> pd.DataFrame:
        """The rows about all identifiers of a group, with the column group."""
        whole = overall(self.table) if "part" in self.table else self.table
        return whole.rename(columns={"subset": "group"})

    @property
    def evidence(self) -> dict[str, Evidence]:
        """Evidence on Tables 1 and 3 to 9, by target."""
        return benchmark_evidence(self.whole, natural=self.natural, confidence=self.confidence)


def percent(found: pd.DataFrame) -> pd.DataFrame:
    """A table with its AUC and TPR in percent, of two decimals."""
    shares = [name for name in found if str(name).startswith(("auc", "tpr"))]
    return found.assign(**{str(name): (100 * found[name]).round(2) for name in shares})


def planted_ones(config: BenchmarkConfig, table: pd.DataFrame) -> Judged:
    """Planted identifiers, from the result of `benchmark` of the same configuration."""
    planted = config.planted
    facts = (
        f"GPTs of width {', '.join(map(str, config.widths))} trained here on "
        f"{planted.identifiers * len(planted.repetitions)} planted identifiers in {planted.text}, "
        f"{config.generated} alternatives each"
    )
    scale = Scale("substitute", facts)
    return Judged("nid-planted", "planted identifiers", percent(table), scale, False, config.confidence)


def natural_ones(table: pd.DataFrame, words: str, *, name: str = "nid-natural-here") -> Judged:
    """Identifiers of real documents."""
    sizes = table["parameters"].agg(["min", "max"]).astype(int)
    facts = f"GPTs of {sizes['min']:,} to {sizes['max']:,} parameters, identifiers of {words}"
    return Judged(name, words, table, Scale("substitute", facts), True)


def earlier_natural(measured: str) -> list[Judged]:
    """Identifiers of real documents as measured on another occasion; none for an empty path."""
    found = measured_table(measured)
    if found is None:
        return []
    table, origin = found
    then = read_result(kept_file(measured).with_suffix(".json")).parameters
    words = f"{then['natural_documents']} documents of {then['natural']}, {then['natural_epochs']} passes"
    return [natural_ones(table, f"{words}, {origin}", name="nid-natural-measured")]


def hub_ones(
    scored: Sequence[hub.HubScores], config: hub.HubConfig, *, draws: int, confidence: float
) -> list[Judged]:
    """The paper's four models, where they are all among those scored."""
    table = hub.hub_table(scored, draws=draws, confidence=confidence)
    if table.empty:
        return []
    scale = Scale(*hub.hub_scale(scored, config))
    return [Judged("nid-hub-four", scale.facts, percent(table), scale, True, confidence)]


def show_auc(one: Judged) -> None:
    """Show the AUC of every attack, and the Loss row by row beside the paper's."""
    show_attacks(one, "auc", name=f"{one.name}-auc")
    show_table(
        loss_table(one),
        name=one.name,
        caption=f"The Loss attack, percent, with {100 * one.confidence:g} % intervals ({one.words}; those "
        "of TPRs take the threshold as known), and the paper's means over its subsets.",
        columns={
            "models": "Model",
            "group": "Identifiers",
            "identifiers": "Number",
            "auc_shown": "AUC",
            "paper_auc": "AUC, the paper",
            "tpr_shown": "TPR at 1 % FPR",
            "paper_tpr": "TPR, the paper",
        },
    )


def show_tpr(one: Judged) -> None:
    """Show the TPR at 1 % FPR of every attack beside the paper's."""
    show_attacks(one, "tpr", name=f"{one.name}-tpr")


def show_attacks(one: Judged, metric: str, *, name: str) -> None:
    """Show every attack on trained and held-out identifiers, with the paper's marks."""
    table = beside_paper(one.whole)
    loss = table[(table["attack"] == "loss") & table["group"].isin(["trained", "held out"])]
    said = "; ".join(
        f"{row['model']}, {row['group']}: {row[metric]:.1f}, the paper {row[f'paper_{metric}']:.1f}"
        for row in loss.to_dict("records")
    )
    show_figure(
        attacks_figure(table, metric),
        name=name,
        caption=f"{METRICS[metric].partition(' (')[0]} in percent, {100 * one.confidence:g} % intervals: "
        f"{one.words}. Beside them the paper's means over its subsets, for its own models and data. "
        "Dotted: chance.",
        alt=f"Panels by model, rows by attack. By the loss: {said}.",
        data=one.table if one.natural and metric == "auc" else table,
    )


def show_verdicts(one: Judged, metric: str) -> None:
    """Judge the paper's four tables of AUC, or of TPR, and say so where planted identifiers must do."""
    if not one.natural:
        show_text(
            "No identifiers of real documents are at hand: judged on the planted ones shown further below."
        )
    for number in TABLES[metric].values():
        record(one.evidence[f"nid-table-{number:02d}"], scale=one.scale)


def loss_table(one: Judged) -> pd.DataFrame:
    """Rows of the Loss attack with the paper's values, and cells with intervals."""
    rows = beside_paper(one.whole)
    rows = rows[(rows["attack"] == "loss") & rows["group"].isin(_GROUPS)]
    shown = {
        f"{metric}_shown": [
            plus_minus(row[metric], (row[f"{metric}_high"] - row[f"{metric}_low"]) / 2)
            for row in rows.to_dict("records")
        ]
        for metric in METRICS
    }
    return rows.assign(models=rows["model"] + ", " + rows["paper_model"], **shown)


def show_other_traces(one: Judged) -> None:
    """Show what tells members apart without a model, dataset inference, and parts of the corpus."""
    models = {f"{_P}{model}": f"p, {model}" for model in PAPER_MODELS}
    show_table(
        traces_table(one),
        name="nid-natural-intervals",
        caption="The number of tokens alone, without a model: AUC in percent with 99 % intervals; and the "
        "p-value of dataset inference by all attacks, for each model.",
        columns={"group": "Identifiers", "identifiers": "Number", "tokens": "AUC of tokens"} | models,
    )
    cells = one.table[one.table["part"] != ALL].dropna(subset="auc")
    cells = cells[cells["model"].isin(["large", "one pass"])]
    if len(cells):
        said = "; ".join(
            f"{model}, {subset}: {aucs.min():.1f} to {aucs.max():.1f}"
            for (model, subset), aucs in cells.groupby(["model", "subset"])["auc"]
        )
        show_figure(
            cells_figure(cells),
            name="nid-natural-cells",
            caption="AUC of the loss in percent by part of the corpus and kind of identifier, with 99 % "
            "intervals; cells of fewer than ten identifiers are left out.",
            alt=f"Rows by part and kind. Range over the rows: {said}.",
            data=cells,
        )


def traces_table(one: Judged) -> pd.DataFrame:
    """AUC of the number of tokens, and p-values of all models, by group of identifiers."""
    whole = one.whole[one.whole["model"].isin(list(PAPER_MODELS))]
    rows = []
    for group, here in whole[whole["attack"] == TOKENS].groupby("group", sort=False):
        first = here.iloc[0]
        half = (first["auc_high"] - first["auc_low"]) / 2
        row = {"group": group, "identifiers": first["identifiers"], "tokens": plus_minus(first["auc"], half)}
        rows.append(
            row | {f"{_P}{model}": p for model, p in zip(here["model"], here["p_value"], strict=True)}
        )
    return pd.DataFrame(rows)


def show_planted(one: Judged) -> None:
    """Show planted identifiers: occurrences, every attack beside the paper's marks, and tokens alone."""
    large = one.table[(one.table["model"] == "large") & one.table["attack"].isin(list(ATTACKS))]
    groups = [name for name in dict.fromkeys(large["group"]) if name != "trained"]
    least, most = (large[large["group"] == name]["auc"] for name in ("held out", groups[-1]))
    show_figure(
        repetitions_figure(large, groups),
        name="nid-auc-by-repetitions",
        caption="Planted identifiers: plain AUC of the large model by number of occurrences, with "
        f"{100 * one.confidence:g} % intervals (bootstrap over identifiers).",
        alt="AUC of each attack over groups. Held-out identifiers lie between "
        f"{least.min():.0f} and {least.max():.0f} percent, the most frequent between {most.min():.0f} and "
        f"{most.max():.0f} percent.",
        data=large,
    )
    show_attacks(one, "auc", name="nid-auc")
    show_attacks(one, "tpr", name="nid-tpr")
    tokens = one.table[(one.table["attack"] == TOKENS) & one.table["model"].isin(list(PAPER_MODELS))]
    tokens = tokens[tokens["group"].isin(["trained", "held out"])]
    halves = (tokens["auc_high"] - tokens["auc_low"]) / 2
    cells = [plus_minus(*cell) for cell in zip(tokens["auc"], halves, strict=True)]
    show_table(
        tokens[["model", "group", "identifiers", "auc", "auc_low", "auc_high"]].assign(shown=cells),
        name="nid-token-counts",
        caption=f"AUC in percent of the number of tokens alone, with {100 * one.confidence:g} % intervals.",
        columns={"model": "Model", "group": "Identifiers", "identifiers": "Number", "shown": "AUC of tokens"},
    )


def show_folding() -> None:
    """Show how far the paper's AUCs of the loss lie from what folding alone would give."""
    null = folded_cells(paper_table("nid_table01"), paper_table("nid_table02"))
    show_table(
        null.assign(subset=null["subset"].replace("pile", "all subsets")),
        name="nid-folded-null",
        caption="Pythia-12b, Loss: the printed AUC of each subset (percent), and what folding gives where "
        "nothing was trained on: mean and 95 % quantile.",
        columns={
            "subset": "Subset",
            "split": "Split",
            "identifiers": "Identifiers",
            "printed": "The paper",
            "mean if untrained": "Mean if untrained",
            "95 % quantile": "95 % quantile",
            "beyond it": "Beyond it",
        },
    )
    counts = null.groupby("split")["beyond it"].agg(["sum", "size"])
    show_text(
        f"Of the {counts.loc['train', 'size']} printed AUCs on training data, {counts.loc['train', 'sum']} "
        f"lie beyond that quantile; of the {counts.loc['test', 'size']} on test data, "
        f"{counts.loc['test', 'sum'] or 'none'}."
    )


def show_hub(scored: Sequence[hub.HubScores], *, draws: int) -> None:
    """Show further models, by corpus and subset, and what of their corpora was not read."""
    if not scored:
        return
    found = pd.concat([one.quality(draws=draws) for one in scored])
    loss = percent(found[found["attack"] == "loss"])
    names = [
        f"{model.rpartition('/')[2]},\n{subset}"
        for model, subset in zip(loss["model"], loss["subset"], strict=True)
    ]
    fig, (panel,) = panels(height=1.0 + 0.4 * len(loss))
    dot_rows(panel, names, loss["auc"], low=loss["auc_low"], high=loss["auc_high"])
    panel.set_xlabel(METRICS["auc"])
    said = [f"{name.replace(chr(10), ' ')} {auc:.1f}" for name, auc in zip(names, loss["auc"], strict=True)]
    show_figure(
        fig,
        name="nid-hub",
        caption="AUC of the loss, percent, with 99 % intervals, by model, corpus and subset; the CSV has "
        "every attack and the TPR.",
        alt=f"A dot with its interval for each set of identifiers: {'; '.join(said)}.",
        data=found,
    )
    if len(scored[0].skipped):
        show_table(
            scored[0].skipped,
            name="nid-hub-skipped",
            caption="What of the corpus was not read, or with a loss, and the first example.",
        )
