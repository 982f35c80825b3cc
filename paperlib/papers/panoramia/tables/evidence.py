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
    parts = {config: run.forms["paper"] for config, run in runs.items()}
    first = next(iter(parts.values()))
    every = TargetAudits(tuple(one for part in parts.values() for one in part.judged), first.config)
    null = results.first.null[0]
    extremes = [extremes_first(tabular_rows(config), part, null) for config, part in parts.items()]
    by_split = [float(np.mean(games)) for games in extremes if games]
    found = (
        _table_six(runs),
        figure_ten(every, results.first.trained[-1]),
        Evidence("panoramia-figure-12", "model", {"extremes first": by_split})
        if len(extremes) > 1
        else Evidence("panoramia-figure-12", "game", {"extremes first": extremes[0]}),
    )
    return {one.target: one for one in found}


def _table_six(runs: Runs) -> Evidence:
    """A number per pools, or per game on the only ones."""
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


def extremes_first(rows: TabularRows, audits: TargetAudits, target: str) -> list[float]:
    """By game, extreme rows among a baseline's first 1 % of guesses, less twice those among members (D.6)."""
    # Extreme: a number outside the central 99 % of the generated ones. All targets have the same baseline.
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
