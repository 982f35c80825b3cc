"""Figures of the benchmark: every attack beside the paper's marks, occurrences, and parts of the corpus."""

from collections.abc import Mapping
from functools import cache

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from paperlib.papers.natural_identifiers.benchmark import PAPER_MODELS, paper_averages
from paperlib.papers.natural_identifiers.planted import PAPER_ATTACKS
from paperlib.report import COLORS, MARKERS, legend_below, panels, paper_table

TABLES: Mapping[str, Mapping[str, int]] = {
    "auc": {"large": 1, "medium": 4, "small": 5, "one pass": 3},
    "tpr": {"large": 6, "medium": 7, "small": 8, "one pass": 9},
}
"""The paper's table that each of our models stands beside, by metric."""
ATTACKS = {
    "loss": "Loss",
    "min_k": "Min-K%",
    "min_k_pp": "Min-K%++",
    "recall": "ReCaLL",
    "recall_hinge": "ReCaLL (Hinge)",
    "hinge": "Hinge",
}
"""The paper's names of the attacks."""
METRICS = {"auc": "AUC (percent)", "tpr": "TPR at 1 % FPR (percent)"}
_CHANCE = {"auc": 50.0, "tpr": 1.0}
_ONCE = "trained, occurs once"
_SPLITS = {"trained": "train", _ONCE: "train", "held out": "test"}


def paper_value(metric: str, model: str, group: str, attack: str) -> float:
    """The paper's mean over its subsets, percent, for the model that one of ours stands beside; or NaN."""
    return _averages(TABLES[metric][model]).get((attack, _SPLITS.get(group, "")), float("nan"))


@cache
def _averages(number: int) -> Mapping[tuple[str, str], float]:
    averages = paper_averages(paper_table(f"nid_table{number:02d}"))
    keys = zip(averages["mia"], averages["split"], strict=True)
    return dict(zip(keys, averages["value_pct"].tolist(), strict=True))


def beside_paper(table: pd.DataFrame) -> pd.DataFrame:
    """Rows of the four models and the paper's attacks, with the paper's values beside them."""
    rows = table[table["model"].isin(list(PAPER_MODELS)) & table["attack"].isin(PAPER_ATTACKS)]
    keys = rows[["model", "group", "attack"]].itertuples(index=False, name=None)
    values = [(paper_value("auc", *key), paper_value("tpr", *key)) for key in keys]
    auc, tpr = zip(*values, strict=True) if values else ((), ())
    return rows.assign(paper_model=rows["model"].map(PAPER_MODELS), paper_auc=auc, paper_tpr=tpr)


def attacks_figure(table: pd.DataFrame, metric: str) -> Figure:
    """A panel for each model, a row for each attack: trained and held-out identifiers, and the paper's marks.

    In the model of one pass the trained identifiers are those that occur once, where they are told apart.
    """
    models = [model for model in TABLES[metric] if model in set(table["model"])]
    fig, axes = panels(len(models), height=2.5, share_x=True)
    for panel, model in zip(axes, models, strict=True):
        here = table[table["model"] == model]
        once = model == "one pass" and _ONCE in set(here["group"])
        for at, group in enumerate((_ONCE if once else "trained", "held out")):
            name = "held out" if at else "trained"
            _draw_group(panel, here[here["group"] == group], metric, name, at)
        panel.axvline(_CHANCE[metric], color="black", lw=1, ls=":")
        panel.set_yticks(range(len(ATTACKS))[::-1], list(ATTACKS.values()))
        panel.set(
            ylim=(-0.6, len(ATTACKS) - 0.4),
            title=f"{model}, beside {PAPER_MODELS[model]} (Table {TABLES[metric][model]})",
        )
    axes[-1].set_xlabel(METRICS[metric])
    legend_below(fig)
    return fig


def _draw_group(panel: Axes, rows: pd.DataFrame, metric: str, name: str, at: int) -> None:
    rows = rows.set_index("attack").reindex(list(ATTACKS))
    places = [place + (-0.18 if at else 0.18) for place in range(len(ATTACKS))[::-1]]
    ends = [rows[metric] - rows[f"{metric}_low"], rows[f"{metric}_high"] - rows[metric]]
    style = {"color": COLORS[2 * at], "marker": MARKERS[2 * at], "ls": "", "ms": 4}
    panel.errorbar(rows[metric], places, xerr=[one.clip(lower=0) for one in ends], label=name, **style)
    marks = {"color": COLORS[1 + 2 * at], "marker": "+" if at else "x", "ls": "", "ms": 7, "mew": 2}
    panel.plot(rows[f"paper_{metric}"], places, label=f"the paper, {name}", **marks)


def repetitions_figure(large: pd.DataFrame, groups: list[str]) -> Figure:
    """The AUC of each attack, in percent, by the number of occurrences in training."""
    fig, (panel,) = panels(height=3.6)
    for at, (attack, rows) in enumerate(large.groupby("attack", sort=False)):
        rows = rows.set_index("group").loc[groups]
        x = [i + 0.1 * (at - 2.5) for i in range(len(groups))]
        error = [rows["auc"] - rows["auc_low"], rows["auc_high"] - rows["auc"]]
        style = {"color": COLORS[at], "marker": MARKERS[at], "ls": "", "ms": 4, "lw": 1}
        panel.errorbar(x, rows["auc"], yerr=error, label=ATTACKS[str(attack)], **style)
    panel.axhline(50, color="black", ls=":", lw=1)
    panel.set_xticks(
        range(len(groups)), [name.replace(" time", "\ntime").replace(" out", "\nout") for name in groups]
    )
    panel.set(ylabel=METRICS["auc"], xlabel="occurrences in training")
    legend_below(fig)
    return fig


def cells_figure(cells: pd.DataFrame) -> Figure:
    """The AUC of the loss by part of the corpus and kind: two models, and held-out identifiers."""
    rows = cells[["part", "kind"]].drop_duplicates().itertuples(index=False, name=None)
    places = {row: -at for at, row in enumerate(rows)}
    series = {
        "large, trained": ("large", "trained"),
        "one pass, trained": ("one pass", "trained"),
        "large, held out": ("large", "held out"),
    }
    fig, (panel,) = panels(height=1.0 + 0.42 * len(places))
    for at, (name, (model, subset)) in enumerate(series.items()):
        here = cells[(cells["model"] == model) & (cells["subset"] == subset)]
        y = [
            places[row] + 0.22 * (1 - at) for row in here[["part", "kind"]].itertuples(index=False, name=None)
        ]
        ends = [here["auc"] - here["auc_low"], here["auc_high"] - here["auc"]]
        style = {"color": COLORS[at], "marker": MARKERS[at], "ls": "", "ms": 4, "lw": 1}
        panel.errorbar(here["auc"], y, xerr=[one.clip(lower=0) for one in ends], label=name, **style)
    panel.axvline(50, color="black", ls=":", lw=1)
    panel.set_yticks(list(places.values()), [f"{part},\n{kind}" for part, kind in places])
    panel.set(xlabel=METRICS["auc"], ylim=(0.6 - len(places), 0.6))
    legend_below(fig)
    return fig
