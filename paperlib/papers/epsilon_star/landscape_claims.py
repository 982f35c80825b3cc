"""What Section 4.2 of Epsilon* says of the landscape, checked on our models."""

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from paperlib.papers.epsilon_star.landscape_tables import describe, epochs_in_words, pareto, strategies

LEAST_OVERFITTED = 5
"""Baselines of at least this many epochs are said to lie above every DP strategy (Section 4.2, Adult)."""


class Claim(NamedTuple):
    """A sentence of the paper, what our models show of it, and whether it holds for them."""

    claim: str
    ours: str
    holds: bool


def verdicts(frame: pd.DataFrame, *, limit: float = 0.3) -> pd.DataFrame:
    """The orderings that Section 4.2 claims, each checked on these models.

    Args:
        frame: Result of `landscape` for one data set.
        limit: Epsilon* that no model exceeds, nats; all models of Adult lie below 0.3 in the paper.

    Returns:
        Columns claim, ours, holds; means are over the models of a strategy. The index names the claims:
        all_below, grows, below_overfitted, below_training_epsilon, below_one, on_frontier.
    """
    table = strategies(frame)
    base, private = (table[table["kind"] == kind] for kind in ("baseline", "dp"))
    base = base.sort_values("epochs")
    claims = {
        "all_below": _all_below(frame, limit),
        "grows": _grows_with_epochs(base),
        "below_overfitted": _private_below_overfitted(base, private),
        "below_training_epsilon": _below_training_epsilon(frame),
        "below_one": _private_below_one(private),
        "on_frontier": _least_trained_on_frontier(table, base),
    }
    return pd.DataFrame(claims.values(), index=list(claims), columns=list(Claim._fields))


def _all_below(frame: pd.DataFrame, limit: float) -> Claim:
    sound = frame.dropna(subset=["epsilon_star"])
    values = sound["epsilon_star"]
    inside = f"{(values < limit).sum()} of {len(values)} models; largest {values.max():.2f}"
    inside += _in_doubt(sound[values >= limit], limit)
    return Claim(f"every model below {limit:g} (said of Adult)", inside, bool((values < limit).all()))


def _in_doubt(above: pd.DataFrame, limit: "pd.Series | float") -> str:
    """How many models above a limit have an interval that reaches below it."""
    if above.empty:
        return ""
    doubtful = (above["interval_low"] < limit).sum()
    return f"; of the {len(above)} above, {doubtful} with an interval that starts below"


def _grows_with_epochs(base: pd.DataFrame) -> Claim:
    means = base["epsilon_star_mean"].to_numpy()
    shown = ", ".join(f"{mean:.2f}" for mean in means)
    epochs = ", ".join(f"{epoch:g}" for epoch in base["epochs"])
    holds = bool((np.diff(means) > 0).all())
    return Claim("without DP, Epsilon* grows with the epochs", f"{shown} at {epochs} epochs", holds)


def _private_below_overfitted(base: pd.DataFrame, private: pd.DataFrame) -> Claim:
    over = base.loc[base["epochs"] >= LEAST_OVERFITTED, "epsilon_star_mean"]
    below = (private["epsilon_star_mean"] < over.min()).sum()
    ours = (
        f"{below} of {len(private)} DP strategies below {over.min():.2f}; largest "
        f"{private['epsilon_star_mean'].max():.2f}"
    )
    claim = f"DP strategies lie below every baseline of {LEAST_OVERFITTED} or more epochs (said of Adult)"
    return Claim(claim, ours, bool(below == len(private)))


def _below_training_epsilon(frame: pd.DataFrame) -> Claim:
    private = frame[frame["kind"] == "dp"].dropna(subset=["epsilon_star"])
    below = private["epsilon_star"] < private["target_epsilon"]
    above = private[~below]
    closest = (private["epsilon_star"] / private["target_epsilon"]).max()
    ours = f"{below.sum()} of {len(below)} DP models; largest share of it {closest:.0%}"
    ours += _in_doubt(above, above["target_epsilon"])
    return Claim("Epsilon* below the DP epsilon of training", ours, bool(below.all()))


def _private_below_one(private: pd.DataFrame) -> Claim:
    largest = private["epsilon_star_mean"].max()
    ours = (
        f"{(private['epsilon_star_mean'] < 1).sum()} of {len(private)} DP strategies; largest {largest:.2f}"
    )
    return Claim("every DP strategy below 1", ours, bool(largest < 1))


def _least_trained_on_frontier(table: pd.DataFrame, base: pd.DataFrame) -> Claim:
    frontier = pareto(table)
    fewest = base["epochs"].min()
    on_it = bool(((frontier["kind"] == "baseline") & (frontier["epochs"] == fewest)).any())
    ours = "; ".join(describe(row) for _, row in frontier.iterrows())
    claim = f"the baseline of {epochs_in_words(fewest)} lies on the Pareto frontier (said of Adult)"
    return Claim(claim, ours, on_it)


def section_42(printed: pd.DataFrame, frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Every number of Section 4.2 beside ours.

    Args:
        printed: The paper's numbers, ``paper_table("epsilon_star_text")``.
        frames: Results of `landscape`, one per data set; each number is compared with the data set of
            its own name, or else with the stand-in, which is named.

    Returns:
        Columns data (of the paper), what, paper, ours, ours_on (our data set).
    """
    stand_ins = {"purchase100": "purchase100_like", "adult": "randhie"}
    by_name = {str(frame["dataset"].iloc[0]): frame for frame in frames}
    rows = []
    for row in printed[printed["section"].astype(str) == "4.2"].to_dict("records"):
        name = str(row["dataset"])
        frame = by_name.get(name, by_name.get(stand_ins[name]))
        if frame is None:
            continue
        what, ours = _measured(row, frame)
        rows.append(
            {
                "data": name,
                "what": what,
                "paper": _printed(row),
                "ours": ours,
                "ours_on": str(frame["dataset"].iloc[0]),
            }
        )
    return pd.DataFrame(rows)


def _printed(row: Mapping[Hashable, Any]) -> str:
    sign = {"eq": "", "lt": "below ", "le": "at most ", "ge": "at least "}[str(row["relation"])]
    unit = {"percent": " %", "bool": "", "strategies": ""}.get(str(row["unit"]), "")
    return "yes" if row["unit"] == "bool" else f"{sign}{float(str(row['value'])):g}{unit}"


def _measured(row: Mapping[Hashable, Any], frame: pd.DataFrame) -> tuple[str, str]:
    """What a printed number is about, and the same number of our models."""
    table = strategies(frame)
    kinds = {"baseline": ["baseline"], "dp_sgd": ["dp"], "all": ["baseline", "dp"]}[str(row["training"])]
    part, models = table[table["kind"].isin(kinds)], frame[frame["kind"].isin(kinds)]
    quantity = str(row["quantity"])
    epochs, epsilon = (float(str(row[name])) for name in ("epochs", "target_dp_eps"))
    if not math.isnan(epochs):
        at = part[part["epochs"] == epochs]
        if quantity in ("test_accuracy_pct", "epsilon_star"):
            return f"{_NAMES[quantity]}, no DP, {epochs_in_words(epochs)}", _mean_of(quantity, at)
        if quantity == "pareto_elbow":
            claim = _least_trained_on_frontier(table, part)
            return "baseline of 1 epoch at the elbow of the frontier", _said(claim)
        claim = _private_below_overfitted(part, table[table["kind"] == "dp"])
        return f"baselines of {epochs:g} or more epochs above DP models", _said(claim)
    if math.isnan(epsilon):
        who = {"baseline": "no DP", "dp_sgd": "DP", "all": "all models"}[str(row["training"])]
        return f"largest Epsilon*, {who}", f"{models['epsilon_star'].max():.2f}"
    frontier = pareto(table)
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


def _said(claim: Claim) -> str:
    return f"{'yes' if claim.holds else 'no'} ({claim.ours})"
