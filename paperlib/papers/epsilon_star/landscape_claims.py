"""What Section 4.2 of Epsilon* says of the landscape, beside the numbers of our models."""

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import pandas as pd

from paperlib.papers.epsilon_star.landscape_tables import describe, epochs_in_words, pareto, strategies

LEAST_OVERFITTED = 5
"""Baselines of at least this many epochs are said to lie above every DP strategy (Section 4.2, Adult)."""


def claimed_numbers(frame: pd.DataFrame, *, limit: float = 0.3) -> pd.DataFrame:
    """Numbers of the models of `landscape` to which Section 4.2 sets a limit or an order: columns what, ours.

    Means are over the models of a strategy; the paper finds every model of Adult below ``limit`` nats.
    """
    table, sound = strategies(frame), frame.dropna(subset=["epsilon_star"])
    base, private = (table[table["kind"] == kind] for kind in ("baseline", "dp"))
    base, dp = base.sort_values("epochs"), sound[sound["kind"] == "dp"]
    stars = ", ".join(f"{mean:.2f}" for mean in base["epsilon_star_mean"])
    trained = ", ".join(f"{epochs:g}" for epochs in base["epochs"])
    share = (dp["epsilon_star"] / dp["target_epsilon"]).max()
    largest = f"largest {private['epsilon_star_mean'].max():.2f}"
    overfitted, frontier = _overfitted(base, private)[0], _frontier(table, base)[0]
    low = f"{_below(sound, limit)}; largest {sound['epsilon_star'].max():.2f}"
    below_target = f"{_below(dp, dp['target_epsilon'])}; largest share of it {share:.0%}"
    ours = {
        f"models below {limit:g} (said of Adult)": low,
        "Epsilon* without DP": f"{stars} at {trained} epochs",
        f"DP strategies below every baseline of {LEAST_OVERFITTED} or more epochs": overfitted,
        "DP models below the DP epsilon of training": below_target,
        "DP strategies below 1": f"{(private['epsilon_star_mean'] < 1).sum()} of {len(private)}; {largest}",
        "Pareto frontier": frontier,
    }
    return pd.DataFrame(ours.items(), columns=["what", "ours"])


def _below(models: pd.DataFrame, limit: "pd.Series | float") -> str:
    """How many models lie below a limit, and how many above it have an interval that reaches below."""
    above = models["epsilon_star"] >= limit
    doubtful = (above & (models["interval_low"] < limit)).sum()
    doubt = f" ({doubtful} of the others with an interval that starts below)" if above.any() else ""
    return f"{(~above).sum()} of {len(models)}{doubt}"


def _overfitted(base: pd.DataFrame, private: pd.DataFrame) -> tuple[str, bool]:
    """DP strategies below every long-trained baseline, in words, and whether all are."""
    over = base.loc[base["epochs"] >= LEAST_OVERFITTED, "epsilon_star_mean"].min()
    below, largest = (private["epsilon_star_mean"] < over).sum(), private["epsilon_star_mean"].max()
    words = f"{below} of {len(private)} DP strategies below {over:.2f}; largest {largest:.2f}"
    return words, bool(below == len(private))


def _frontier(table: pd.DataFrame, base: pd.DataFrame) -> tuple[str, bool]:
    """The Pareto frontier in words, and whether the shortest training without DP lies on it."""
    frontier = pareto(table)
    least = (frontier["kind"] == "baseline") & (frontier["epochs"] == base["epochs"].min())
    return "; ".join(describe(row) for _, row in frontier.iterrows()), bool(least.any())


def section_42(printed: pd.DataFrame, frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Every number of Section 4.2, of ``paper_table("epsilon_star_text")``, beside ours.

    Each is compared with the result of `landscape` for the data set of its own name, or else for the
    stand-in, which is named.

    Returns:
        Columns data (of the paper), what, paper, ours, ours_on (our data set).
    """
    stand_ins = {"purchase100": "purchase100_like", "adult": "randhie"}
    by_name = {str(frame["dataset"].iloc[0]): frame for frame in frames}
    rows = []
    for row in printed[printed["section"].astype(str) == "4.2"].to_dict("records"):
        name = str(row["dataset"])
        frame = by_name.get(name, by_name.get(stand_ins[name]))
        if frame is not None:
            what, ours = _measured(row, frame)
            about = {"data": name, "what": what, "paper": _printed(row), "ours": ours}
            rows.append({**about, "ours_on": str(frame["dataset"].iloc[0])})
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
        what, (words, true) = "baseline of 1 epoch at the elbow of the frontier", _frontier(table, part)
    else:
        what = f"baselines of {epochs:g} or more epochs above DP models"
        words, true = _overfitted(part, table[table["kind"] == "dp"])
    return what, f"{'yes' if true else 'no'} ({words})"


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
