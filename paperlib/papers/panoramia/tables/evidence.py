"""What a run says of Table 6 and Figures 10 and 12: samples for the rules that decide them."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from paperlib.audits.panoramia.results import AuditName, TargetAudits
from paperlib.papers.panoramia.evidence import by_game, figure_ten
from paperlib.papers.panoramia.results import PanoramiaResults
from paperlib.papers.panoramia.tables.lira import judged_rows
from paperlib.papers.panoramia.tables.pools import TabularConfig, TabularRows, tabular_rows
from paperlib.papers.panoramia.tables.tables import TabularResults
from paperlib.papers.verdict import Estimate, Evidence
from paperlib.report import paper_table

Runs = Mapping[TabularConfig, PanoramiaResults]
"""Configuration to audits in the form "paper", and O(1) in any."""


def evidence(results: TabularResults) -> dict[str, Evidence]:
    """Evidence from the pools of the first label, by target; those of other labels are beside the paper."""
    label = next(iter(results.runs)).label
    runs = {config: run for config, run in results.runs.items() if config.label == label}
    return {one.target: one for one in (_table_six(runs), _figure_ten(runs), _figure_twelve(runs))}


def _table_six(runs: Runs) -> Evidence:
    """A number per pools, where a run has several; else one per game on the only ones."""
    first = next(iter(runs.values()))
    names = dict.fromkeys([first.trained[0], first.trained[-1]])

    def sample(target: str, audit: AuditName = "panoramia") -> list[float]:
        played = [run.forms["paper"] if audit == "panoramia" else run.with_o1 for run in runs.values()]
        games = [by_game(audits, target, audit).tolist() for audits in played]
        return games[0] if len(games) == 1 else [float(np.mean(values)) for values in games]

    values = {
        "eps~ near 0": {name: sample(name) for name in names},
        "O(1) positive": {name: sample(name, "o1") for name in names},
        "null": {name: sample(name) for name in first.null},
        "trained enough": _above_printed(runs, first.trained[-1]),
    }
    return Evidence("panoramia-table-06", "game" if len(runs) == 1 else "model", values)


def _above_printed(runs: Runs, target: str) -> list[float] | Estimate:
    """Train accuracy of a target less the paper's, points; nothing on other data or another label."""
    if {(config.dataset, config.label) for config in runs} != {("adult", "income")}:
        return []
    printed = paper_table("panoramia_text").set_index(["target_model", "quantity"])["value"]
    tables = [run.pools.table.set_index("target") for run in runs.values()]
    accuracy = [100 * float(table["train_accuracy"][target]) for table in tables]
    above = [value - float(printed["MLP_E100", "accuracy_pct"]) for value in accuracy]
    return above if len(above) > 1 else Estimate(above[0])


def _figure_ten(runs: Runs) -> Evidence:
    """All games of all pools, each pools' with its own seeds."""
    parts = [run.forms["paper"] for run in runs.values()]
    every = TargetAudits(tuple(one for part in parts for one in part.judged), parts[0].config)
    return figure_ten(every, next(iter(runs.values())).trained[-1])


def _figure_twelve(runs: Runs) -> Evidence:
    found = [
        value
        for config, run in runs.items()
        for value in extremes_first(tabular_rows(config), run.forms["paper"], run.null[0])
    ]
    return Evidence("panoramia-figure-12", "game", {"extremes first": found})


def extremes_first(rows: TabularRows, audits: TargetAudits, target: str) -> list[float]:
    """Share of extreme rows in the first 1 % of a baseline's guesses, less twice that among all members.

    A row is extreme if it has a number outside the central 99 % of the generated ones of its column. There is
    a number per game; ``target`` is any of the audited ones, as the baseline is the same for all.

    Source:
        PANORAMIA, appendix D.6 and Figure 12.
    """
    members, generated = rows.parts["members"], rows.generated
    low, high = (generated.quantile(level, numeric_only=True) for level in (0.005, 0.995))
    values = pd.concat([members, generated], ignore_index=True)[low.index]
    extreme = ((values < low) | (values > high)).any(axis=1).to_numpy()
    found = []
    for game in audits.select("panoramia", target=target):
        judged = judged_rows(len(members), len(generated), audits.config, game.seed)
        surest = judged[np.argsort(-game.baseline, kind="stable")][: max(1, judged.size // 100)]
        found.append(float(extreme[surest].mean() - 2 * extreme[: len(members)].mean()))
    return found
