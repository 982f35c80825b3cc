"""The landscape by strategy: means, Pareto frontier, what the paper prints, and which number moves
when.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import t as student

from paperlib.core import FloatArray
from paperlib.reproduction.exhibits import paper_table
from paperlib.reproduction.papers.epsilon_star.landscape_measures import MEASURES
from paperlib.reproduction.papers.settings import settings_beside

STRATEGY = (
    "dataset",
    "kind",
    "epochs",
    "batch_size",
    "clip_norm",
    "microbatches",
    "target_epsilon",
)
"""Columns that make a strategy: models that differ in none of them are its instances."""

_MEANS = ("dp_epsilon", *MEASURES[3:9], "seconds")
_MOVING = (
    "epsilon_star_empirical",
    "epsilon_two_intervals",
    "epsilon_star_clipped",
    "epsilon_shuffled",
    "one_run",
    "one_run_both",
    "output_set",
    "loss_auc",
)


def strategies(frame: pd.DataFrame) -> pd.DataFrame:
    """A row for each strategy of the models of `landscape`, but those of which every model
    diverged.

    Columns of `STRATEGY`; numbers of models and of diverged ones; over the others mean, least and
    largest Epsilon* (nats) and utility (the AUROC where the data have two classes, else the
    accuracy), means of `_MEANS`, and the share of rejected fits; and the strategy in words.
    """
    utility = (
        frame["auroc"].fillna(frame["accuracy"])
        if frame["auroc"].notna().any()
        else frame["accuracy"]
    )
    full = frame.assign(utility=utility)
    rows = []
    for key, models in full.groupby(list(STRATEGY), dropna=False, sort=False):
        sound = models.dropna(subset=["epsilon_star", "utility"])
        if sound.empty:
            continue
        ranges: dict[str, float] = {}
        for name in ("epsilon_star", "utility"):
            ranges[name] = sound[name].mean()
            ranges[f"{name}_min"] = sound[name].min()
            ranges[f"{name}_max"] = sound[name].max()
        rows.append(
            {
                **dict(zip(STRATEGY, key, strict=True)),
                "models": len(models),
                "diverged": len(models) - len(sound),
                **ranges,
                **{name: sound[name].mean() for name in _MEANS},
                "fits_rejected": _rejected(sound),
            }
        )
    table = pd.DataFrame(rows)
    return table.assign(strategy=[strategy_name(row) for _, row in table.iterrows()])


def pareto(table: pd.DataFrame) -> pd.DataFrame:
    """The `strategies` on the convex frontier of small Epsilon* and large utility, in order
    (Section 4.2).
    """
    rows = convex_frontier(table["epsilon_star"].to_numpy(), table["utility"].to_numpy())
    return table.iloc[rows].reset_index(drop=True)


def convex_frontier(cost: FloatArray, gain: FloatArray) -> list[int]:
    """Strategies that no other one and no mix of two others beats on both counts: their indices,
    cheapest first.

    ``cost`` and ``gain`` are of each strategy, shape (n,). The hull is built from left to right, as
    in Andrew's monotone chain.
    """
    order = np.lexsort((-gain, cost))  # by cost; of equal cost the largest gain first
    hull: list[int] = []
    for index in order.tolist():
        if hull and gain[index] <= gain[hull[-1]]:
            continue
        while len(hull) > 1:  # the last one goes where it lies below the chord of its neighbours
            first, middle = hull[-2:]
            rise = (gain[middle] - gain[first]) * (cost[index] - cost[first])
            if rise > (gain[index] - gain[first]) * (cost[middle] - cost[first]):
                break
            hull.pop()
        hull.append(index)
    return hull


def strategy_name(row: pd.Series) -> str:
    """A strategy in words, from a row with the columns of `STRATEGY`."""
    if row["kind"] == "baseline":
        return f"no DP, {epochs_in_words(row['epochs'])}"
    groups = row["microbatches"]
    unit = "each record" if groups is None or math.isnan(groups) else f"{groups:g} groups"
    unit = "1 group" if groups == 1 else unit
    return (
        f"DP {row['target_epsilon']:g}, clip {row['clip_norm']:g}, batch "
        f"{row['batch_size']:g}, {unit}"
    )


def noise_models(frame: pd.DataFrame) -> pd.DataFrame:
    """Means over the DP models with a large Epsilon*, those that learned, and the models without
    DP: a row for each group of the models of `landscape`.
    """
    private = frame["kind"] == "dp"
    binary = bool(frame["auroc"].notna().any())
    # Of data with two classes and with many: the measure of utility, and from where on Epsilon*
    # (nats) counts as large and the utility as learned.
    utility, large, learned = ("auroc", 0.3, 0.88) if binary else ("accuracy", 1, 0.5)
    frame = frame.assign(
        utility=frame[utility], lower_bound=frame["one_run"].fillna(frame["one_run_both"])
    )
    groups = {
        f"DP, Epsilon* above {large:g}": private & (frame["epsilon_star"] > large),
        f"DP, utility above {learned:g}": private & (frame["utility"] > learned),
        "no DP": frame["kind"] == "baseline",
    }
    names = ["epsilon_star", "epsilon_shuffled", "epsilon_star_clipped", "utility", "loss_auc"]
    names += ["one_run", "one_run_both", "lower_bound"]
    return pd.DataFrame(
        {"group": name, "models": in_group.sum(), **frame.loc[in_group, names].mean()}
        for name, in_group in groups.items()
    )


def readings(frames: Mapping[str, pd.DataFrame], *, epochs: int = 5) -> pd.DataFrame:
    """The order that Figure 2 claims, for each network and precision of the losses, a row each.

    ``frames`` holds the models of each network, as `landscape` gives them; those without DP after
    so many ``epochs`` are the baseline. "largest_dp" is the mean over seeds of the largest Epsilon*
    with DP; "difference", the baseline less that, is paired by seed, with its t-interval; nats.
    """
    rows = []
    for network, frame in frames.items():
        for losses, name in (("exact", "epsilon_star"), ("clipped", "epsilon_star_clipped")):
            private = frame[frame["kind"] == "dp"].groupby("seed")[name].max()
            base = frame[(frame["kind"] == "baseline") & (frame["epochs"] == epochs)].set_index(
                "seed"
            )[name]
            difference = (base - private).dropna().to_numpy()
            low, high = t_interval(difference)
            rows.append(
                {
                    "network": network,
                    "losses": losses,
                    "largest": frame[name].max(),
                    "largest_dp": private.mean(),
                    "baseline": base.mean(),
                    "difference": difference.mean(),
                    "low": low,
                    "high": high,
                    "seeds": len(difference),
                }
            )
    return pd.DataFrame(rows)


def t_interval(
    values: Sequence[float] | FloatArray, confidence: float = 0.95
) -> tuple[float, float]:
    """The two-sided t-interval of a mean of values, shape (n,), in their unit; NaN for a single
    value.
    """
    sample = np.asarray(values, dtype=float)
    if len(sample) < 2:
        return math.nan, math.nan
    error = float(sample.std(ddof=1)) / math.sqrt(len(sample))
    half = float(student.isf((1 - confidence) / 2, len(sample) - 1)) * error
    return float(sample.mean()) - half, float(sample.mean()) + half


def both_ends_named(frame: pd.DataFrame) -> pd.DataFrame:
    """A landscape with today's columns: one kept from the time when the bound from one run guessed
    at both ends alike, and only so, has that bound as "one_run_both", and NaN as "one_run".
    """
    if "one_run_both" in frame:
        return frame
    return frame.rename(columns={"one_run": "one_run_both"}).assign(one_run=math.nan)


def which_number_moves(frame: pd.DataFrame) -> pd.DataFrame:
    """Means of every number over models of one kind of training, a row for each: some follow the
    training, others the fit of the normals. Epsilons are in nats.

    "interval" spans the intervals of Epsilon* of all its models, in words.
    """
    rows = []
    keys = ["kind", "epochs", "target_epsilon", "record_level"]
    for key, models in frame.groupby(keys, dropna=False, sort=False):
        kind, epochs, epsilon, by_record = key
        sound = models.dropna(subset=["epsilon_star"])
        if sound.empty:
            continue
        unit = "each record" if by_record else "groups"
        training = f"DP {epsilon:g}, {unit} clipped"
        if kind == "baseline":
            training = f"no DP, {epochs_in_words(epochs)}"
        low = sound["interval_low"].min()
        high = sound["interval_high"].max()
        rows.append(
            {
                "training": training,
                "models": len(models),
                "epsilon_star": sound["epsilon_star"].mean(),
                "interval": f"{low:.2f} to {high:.2f}",
                **{name: sound[name].mean() for name in _MOVING if name in sound},
                "fits_rejected": _rejected(sound),
            }
        )
    return pd.DataFrame(rows)


def _rejected(models: pd.DataFrame) -> float:
    """Share of the models with a fit that is rejected at 1 %."""
    return float(((models["ks_train"] < 0.01) | (models["ks_population"] < 0.01)).mean())


def epochs_in_words(count: Any) -> str:
    return f"{count:g} epoch{'' if count == 1 else 's'}"


def printed_landscape(dataset: str) -> tuple[pd.DataFrame, float]:
    """What Section 4.2 prints for a data set: a row for each number of epochs without DP, with
    epsilon_star (nats) and utility (the accuracy, a share); and the limit below which it says the
    Epsilon* of DP models, or on Adult of all, to lie.
    """
    text = _section_42(dataset)
    training = "all" if dataset == "adult" else "dp_sgd"
    below = text[
        (text["training"] == training) & (text["relation"] == "lt") & text["target_dp_eps"].isna()
    ]
    quantities = ["epsilon_star", "test_accuracy_pct"]
    rows = text[text["quantity"].isin(quantities) & text["epochs"].notna()]
    points = rows.pivot(index="epochs", columns="quantity", values="value").astype(float)
    points = points.reindex(columns=quantities).reset_index()
    points["utility"] = points.pop("test_accuracy_pct") / 100
    return points, float(below["value"].iloc[0])


def section_42(dataset: str, frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Every number of Section 4.2 on "purchase100" or "adult", a row each: what it is, what the
    paper prints, and ours, in words, in a column for each `landscape` of ``frames``.
    """
    tables = {name: _tables(frame) for name, frame in frames.items()}
    rows = []
    # How each printed number is measured here, in the order of the printed rows.
    measurements = settings_beside(__file__)[dataset]
    for row, how in zip(_section_42(dataset).to_dict("records"), measurements, strict=True):
        sign = {"eq": "", "lt": "below ", "le": "at most ", "ge": "at least "}[str(row["relation"])]
        unit = " %" if row["unit"] == "percent" else ""
        printed = "yes" if row["unit"] == "bool" else f"{sign}{float(str(row['value'])):g}{unit}"
        epochs = float(str(row["epochs"]))
        ours = {name: _measured(of_frame, epochs, **how) for name, of_frame in tables.items()}
        rows.append({"what": how["what"], "paper": printed} | ours)
    return pd.DataFrame(rows)


def _section_42(dataset: str) -> pd.DataFrame:
    """The numbers that the text of Section 4.2 prints on a data set, in their order."""
    text = paper_table("epsilon_star_text")
    return text[(text["section"].astype(str) == "4.2") & (text["dataset"] == dataset)]


def _tables(models: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The tables that printed numbers are read from, by name: "models", their "strategies" with the
    utility in percent and whether they have the fewest epochs, and the "frontier" of these.
    """
    table = strategies(models)
    shortest = table["epochs"] == table.loc[table["kind"] == "baseline", "epochs"].min()
    table = table.assign(percent=100 * table["utility"], shortest=shortest)
    return {"models": models, "strategies": table, "frontier": pareto(table)}


def _measured(tables: Mapping[str, pd.DataFrame], epochs: float, *, of: str, **how: str) -> str:
    """A printed number, of our models, in words.

    Args:
        tables: Those of `_tables`.
        epochs: The fewest epochs of the baselines that the claim on "baselines" is about.
        of: Name of the table; or "baselines", for whether all DP strategies lie below them.
        how: "rows", a query that chooses rows of the table; "number", a column, and "how", its
            method that makes one number of them; "shown", the format of this; and "missing", the
            words where no row is chosen.
    """
    if of == "baselines":
        baselines = tables["strategies"].query("kind == 'baseline' and epochs >= @epochs")
        least = baselines["epsilon_star"].min()
        private = tables["strategies"].query("kind == 'dp'")["epsilon_star"]
        below = (private < least).sum()
        answer = "yes" if below == len(private) else "no"
        return (
            f"{answer} ({below} of {len(private)} DP strategies below {least:.2f}; largest "
            f"{private.max():.2f})"
        )
    chosen = tables[of].query(how["rows"])
    if chosen.empty:
        return how["missing"]
    return how["shown"].format(getattr(chosen[how["number"]], how["how"])())
