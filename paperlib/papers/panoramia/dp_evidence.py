"""Samples for the rules on DP targets: Tables 7, 8, 10 and 11, Figures 5 and 6c."""

import numpy as np
import pandas as pd

from paperlib.bounds.one_run.tails import epsilon_from_counts, refuted_log_odds
from paperlib.papers.panoramia.dp import DpResults
from paperlib.papers.panoramia.evidence import by_game, figure_six, null_samples, paired
from paperlib.papers.verdict import Estimate, Evidence
from paperlib.report import paper_table

SMALL, LARGE = 2.0, 15.0
"""The paper's most private models have an epsilon up to the first, the least private from the second on."""
PRINTED_M, LEVEL, ROUNDING = 10_000, 0.025, 0.0005
"""Of Table 11: examples, error of each test, and half of the last digit."""


def evidence(results: DpResults) -> list[Evidence]:
    """Samples for all rules on DP targets but that of Table 11, which needs no run."""
    largest = results.plan.family(0)[-2]
    return [
        _by_epsilon(results, 0),
        _by_epsilon(results, 1),
        _same_epsilon(results),
        _figure_five(results),
        figure_six(results, largest, nulls=[results.plan.null(0)]),
    ]


def _by_epsilon(results: DpResults, at: int) -> Evidence:
    *private, plain = results.plan.family(at)
    eps = {name: by_game(results.decisive, name) for name in (*private, plain)}
    guaranteed, last = results.numbers["epsilon"], private[-1]
    small = [name for name in private if guaranteed[name] <= SMALL]
    spans = small and guaranteed[last] >= LARGE
    values = {
        "0 at small epsilon": {name: eps[name].tolist() for name in small},
        "grows with epsilon": paired(eps[last], eps[small[-1]]) if spans else [],
        "most without DP": paired(eps[plain], eps[last]),
        **_needed(results, at),
    }
    return Evidence(f"panoramia-table-0{7 + at}", "game", values)


def _needed(results: DpResults, at: int) -> dict[str, Estimate | dict[str, list[float]]]:
    last = results.plan.family(at)[-2]
    gap, error = (float(results.numbers[column][last]) for column in ("gap", "gap_error"))
    return {
        "null": null_samples(results.decisive, [results.plan.null(at)]),
        "something to find": Estimate(gap, error),
    }


def _same_epsilon(results: DpResults) -> Evidence:
    pair = results.numbers.loc[list(results.plan.pairs()[0])].sort_values("gap", kind="stable")
    eps = [by_game(results.decisive, name) for name in pair.index]
    values = {
        "wider gap leaks more": paired(eps[1], eps[0]),
        "gaps apart": Estimate(float(np.ptp(pair["gap"])), float(np.hypot(*pair["gap_error"]))),
        "something leaks": max(eps, key=lambda one: one.mean()).tolist(),
    }
    return Evidence("panoramia-table-10", "game", values)


def _figure_five(results: DpResults) -> Evidence:
    names = results.plan.family(0)
    bounds = [by_game(results.decisive, name, column="c_plus_eps_lb") for name in names]
    values = {
        "c+eps grows with epsilon": paired(bounds[-2], bounds[0]) if len(names) > 2 else [],
        "most without DP": paired(bounds[-1], bounds[-2]),
        **_needed(results, 0),
    }
    return Evidence("panoramia-figure-05", "game", values)


def table_eleven_ranges() -> pd.DataFrame:
    """Of Table 11's bounds, what Propositions 3 and 4 leave (section E.3: no union bound over recall)."""
    names = {"target_dp_eps": "epsilon", "target_dp_delta": "delta", "generator_gamma": "gamma"}
    table = paper_table("panoramia_table11").rename(columns=names).drop(columns="target_model")
    printed = table.astype(float).to_dict("records")
    free = {row["epsilon"]: row for row in printed if row["gamma"] == 0}
    # Every pair of right and all guesses, up to recall 0.5, that shows the bound printed at gamma 0 has one
    # at the printed gamma and delta.
    right, wrong = np.indices((PRINTED_M // 4, 361))
    right += 1
    guesses = right + wrong
    bounds = epsilon_from_counts(right, guesses, LEVEL)
    rows = []
    for row in (row for row in printed if row["gamma"] > 0):
        gamma, delta = row["gamma"], row["delta"]
        # Proposition 4 prints delta as the baseline's probability of a failure; gamma is tried too.
        rates = {"c_lb": {gamma, delta or gamma}, "c_plus_eps_lb": {gamma + delta - gamma * delta}}
        found = {"epsilon": row["epsilon"], "delta": delta, "gamma": gamma}
        for name, failing in rates.items():
            at = np.abs(bounds - free[row["epsilon"]][name]) <= ROUNDING
            left = np.concatenate(
                [refuted_log_odds(right[at], guesses[at], LEVEL, PRINTED_M * rate) for rate in failing]
            )
            found |= {name: row[name], f"{name} low": left.min(), f"{name} high": left.max()}
        rows.append(found)
    return pd.DataFrame(rows)


def table_eleven(ranges: pd.DataFrame) -> Evidence:
    """Samples for the rule on Table 11: of each printed row the larger distance of its two bounds."""
    far = {
        name: np.maximum(ranges[f"{name} low"] - ranges[name], ranges[name] - ranges[f"{name} high"])
        for name in ("c_lb", "c_plus_eps_lb")
    }
    worst = np.maximum(0.0, pd.DataFrame(far).max(axis=1))
    labels = "eps {epsilon:g}, delta {delta:g}, gamma {gamma:g}"
    values = {
        labels.format_map(row): Estimate(distance)
        for row, distance in zip(ranges.to_dict("records"), worst.tolist(), strict=True)
    }
    return Evidence("panoramia-table-11", "exact", {"printed values follow": values})
