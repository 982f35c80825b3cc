"""Samples for the rules on DP targets: Tables 7, 8, 10 and 11, Figures 5 and 6c."""

import numpy as np
import pandas as pd

from paperlib.bounds.one_run.tails import epsilon_from_counts, refuted_log_odds
from paperlib.core import FloatArray, IntArray
from paperlib.papers.panoramia.dp import DpResults
from paperlib.papers.panoramia.dp_tables import printed_eleven
from paperlib.papers.panoramia.evidence import by_game, figure_six, null_samples, paired
from paperlib.papers.verdict import Estimate, Evidence

SMALL, LARGE = 2.0, 15.0
"""Epsilons up to the first and from the second on are the paper's most and least private models."""
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
    eps = {name: by_game(results.audits, name) for name in (*private, plain)}
    small = [name for name in private if results.guarantee(name) <= SMALL]
    last = private[-1]
    spans = small and results.guarantee(last) >= LARGE
    values = {
        "0 at small epsilon": {name: eps[name].tolist() for name in small},
        "grows with epsilon": paired(eps[last], eps[small[-1]]) if spans else [],
        "most without DP": paired(eps[plain], eps[last]),
        **_needed(results, at),
    }
    return Evidence(f"panoramia-table-0{7 + at}", "game", values)


def _needed(results: DpResults, at: int) -> dict[str, Estimate | dict[str, list[float]]]:
    last = results.plan.family(at)[-2]
    return {
        "null": null_samples(results.audits, [results.plan.null(at)]),
        "something to find": Estimate(results.gap(last), results.gap_error(last)),
    }


def _same_epsilon(results: DpResults) -> Evidence:
    narrow, wide = sorted(results.plan.pairs()[0], key=results.gap)
    eps = [by_game(results.audits, name) for name in (narrow, wide)]
    apart = results.gap(wide) - results.gap(narrow)
    values = {
        "wider gap leaks more": paired(eps[1], eps[0]),
        "gaps apart": Estimate(apart, float(np.hypot(results.gap_error(wide), results.gap_error(narrow)))),
        "something leaks": max(eps, key=lambda one: one.mean()).tolist(),
    }
    return Evidence("panoramia-table-10", "game", values)


def _figure_five(results: DpResults) -> Evidence:
    names = results.plan.family(0)
    bounds = [by_game(results.audits, name, column="c_plus_eps_lb") for name in names]
    values = {
        "c+eps grows with epsilon": paired(bounds[-2], bounds[0]) if len(names) > 2 else [],
        "most without DP": paired(bounds[-1], bounds[-2]),
        **_needed(results, 0),
    }
    return Evidence("panoramia-figure-05", "game", values)


def table_eleven_ranges() -> pd.DataFrame:
    """What Propositions 3 and 4 leave of Table 11's bounds without relaxation.

    A printed bound was shown by v right guesses of r, at a recall up to 0.5: every such pair whose bound is
    the printed one at gamma 0 has one at the printed gamma and delta. For the baseline both delta, as
    Proposition 4 prints it, and gamma are tried as the probability of a failure.

    Source:
        PANORAMIA, Propositions 3 and 4, section E.3: m = 10,000, no union bound, error 0.025 per test.
    """
    printed, pairs = printed_eleven().to_dict("records"), _pairs()
    free = {row["epsilon"]: row for row in printed if row["gamma"] == 0}
    rows = []
    for row in (row for row in printed if row["gamma"] > 0):
        gamma, delta = row["gamma"], row["delta"]
        rates = {"c_lb": {gamma, delta or gamma}, "c_plus_eps_lb": {gamma + delta - gamma * delta}}
        found = {"epsilon": row["epsilon"], "delta": delta, "gamma": gamma}
        for name, failing in rates.items():
            left = _left(pairs, free[row["epsilon"]][name], failing)
            found |= {name: row[name], f"{name} low": left.min(), f"{name} high": left.max()}
        rows.append(found)
    return pd.DataFrame(rows)


def _pairs() -> tuple[IntArray, IntArray, FloatArray]:
    """Right guesses, guesses, and the bound: all pairs up to recall 0.5 with up to 360 wrong guesses."""
    right, wrong = np.indices((PRINTED_M // 4, 361))
    right += 1
    return right, right + wrong, epsilon_from_counts(right, right + wrong, LEVEL)


def _left(pairs: tuple[IntArray, IntArray, FloatArray], printed: float, rates: set[float]) -> FloatArray:
    """Bounds of the pairs that show the printed one, if guesses fail at each of these rates."""
    right, guesses, bounds = pairs
    at = np.abs(bounds - printed) <= ROUNDING
    return np.concatenate([refuted_log_odds(right[at], guesses[at], LEVEL, PRINTED_M * one) for one in rates])


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
