"""What Section 4.2 of Epsilon* says of the landscape, beside the numbers of our models."""

import math
from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd

from paperlib.papers.epsilon_star.landscape_tables import epochs_in_words, pareto, strategies

LEAST_OVERFITTED = 5
"""Baselines of at least this many epochs are said to lie above every DP strategy (Section 4.2, Adult)."""


def _overfitted(base: pd.DataFrame, private: pd.DataFrame) -> tuple[str, bool]:
    """DP strategies below every long-trained baseline, in words, and whether all are."""
    over = base.loc[base["epochs"] >= LEAST_OVERFITTED, "epsilon_star_mean"].min()
    below, largest = (private["epsilon_star_mean"] < over).sum(), private["epsilon_star_mean"].max()
    words = f"{below} of {len(private)} DP strategies below {over:.2f}; largest {largest:.2f}"
    return words, bool(below == len(private))


def below_target(frame: pd.DataFrame) -> str:
    """How many DP models of `landscape` lie below the DP epsilon of their training, in words."""
    dp = frame[frame["kind"] == "dp"].dropna(subset=["epsilon_star"])
    above = dp["epsilon_star"] >= dp["target_epsilon"]
    doubtful = above & (dp["interval_low"] < dp["target_epsilon"])
    rest = f"; of the others, {doubtful.sum()} have an interval that starts below it" if above.any() else ""
    return (
        "Section 1 of the paper says that every DP model has an Epsilon* below the DP epsilon of its "
        f"training. On {frame['dataset'].iloc[0]} it is so for {(~above).sum()} of {len(dp)}{rest}."
    )


def section_42(printed: pd.DataFrame, frame: pd.DataFrame) -> pd.DataFrame:
    """Numbers of Section 4.2, rows of ``paper_table("epsilon_star_text")``, beside those of `landscape`."""
    rows = []
    for row in printed[printed["section"].astype(str) == "4.2"].to_dict("records"):
        what, ours = _measured(row, frame)
        rows.append({"what": what, "paper": _printed(row), "ours": ours})
    return pd.DataFrame(rows)


def _printed(row: Mapping[Hashable, Any]) -> str:
    sign = {"eq": "", "lt": "below ", "le": "at most ", "ge": "at least "}[str(row["relation"])]
    unit = {"percent": " %", "bool": "", "strategies": ""}.get(str(row["unit"]), "")
    return "yes" if row["unit"] == "bool" else f"{sign}{float(str(row['value'])):g}{unit}"


def _measured(row: Mapping[Hashable, Any], frame: pd.DataFrame) -> tuple[str, str]:
    """What a printed number is about, and the same number of our models."""
    table = strategies(frame)
    kinds, who = {
        "baseline": (["baseline"], "no DP"),
        "dp_sgd": (["dp"], "DP"),
        "all": (["baseline", "dp"], "all models"),
    }[str(row["training"])]
    part = table[table["kind"].isin(kinds)]
    epochs, epsilon = (float(str(row[name])) for name in ("epochs", "target_dp_eps"))
    if not math.isnan(epochs):
        return _by_epochs(str(row["quantity"]), epochs, table, part)
    if math.isnan(epsilon):
        largest = frame.loc[frame["kind"].isin(kinds), "epsilon_star"].max()
        return f"largest Epsilon*, {who}", f"{largest:.2f}"
    return _on_frontier(str(row["quantity"]), epsilon, pareto(table))


def _by_epochs(quantity: str, epochs: float, table: pd.DataFrame, part: pd.DataFrame) -> tuple[str, str]:
    if quantity in _NAMES:
        at = part[part["epochs"] == epochs]
        return f"{_NAMES[quantity]}, no DP, {epochs_in_words(epochs)}", _mean_of(quantity, at)
    if quantity == "pareto_elbow":
        on_it = pareto(table)
        elbow = (on_it["kind"] == "baseline") & (on_it["epochs"] == part["epochs"].min())
        return "baseline of 1 epoch at the elbow of the frontier", "yes" if elbow.any() else "no"
    words, true = _overfitted(part, table[table["kind"] == "dp"])
    return f"baselines of {epochs:g} or more epochs above DP models", f"{'yes' if true else 'no'} ({words})"


def _on_frontier(quantity: str, epsilon: float, frontier: pd.DataFrame) -> tuple[str, str]:
    best = frontier[(frontier["kind"] == "dp") & (frontier["target_epsilon"] == epsilon)]
    what = f"Pareto strategies at DP epsilon {epsilon:g}"
    if quantity == "n_pareto_strategies":
        return what, f"{len(best)}"
    if best.empty:
        return f"{what}: {_NAMES[quantity]}", "none on the frontier"
    if quantity == "epsilon_star":
        return f"{what}: largest Epsilon*", f"{best['epsilon_star_mean'].max():.2f}"
    value = getattr(best["utility_mean"], quantity.rsplit("_", 1)[1])()
    return f"{what}: {_NAMES[quantity]}", f"{100 * value:.1f} %"


_NAMES = {
    "test_accuracy_pct": "test accuracy",
    "epsilon_star": "mean Epsilon*",
    "test_accuracy_pct_min": "smallest test accuracy",
    "test_accuracy_pct_max": "largest test accuracy",
}


def _mean_of(quantity: str, at: pd.DataFrame) -> str:
    if at.empty:
        return "not trained"
    if quantity == "epsilon_star":
        return f"{at['epsilon_star_mean'].iloc[0]:.2f}"
    return f"{100 * at['utility_mean'].iloc[0]:.1f} %"
