"""The landscape by strategy: means, the Pareto frontier, and which number moves when."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import t as student

from paperlib.core import FloatArray
from paperlib.papers.epsilon_star.landscape_measures import MEASURES, convex_frontier

STRATEGY = ("dataset", "kind", "epochs", "batch_size", "clip_norm", "microbatches", "target_epsilon")
"""Columns that make a strategy: models that differ in none of them are its instances."""

_MOVING = (
    "epsilon_star_empirical", "epsilon_two_intervals", "epsilon_star_clipped", "epsilon_shuffled",
    "one_run", "one_run_both", "output_set", "loss_auc",
)  # fmt: skip


def strategies(frame: pd.DataFrame) -> pd.DataFrame:
    """One row per strategy: mean, smallest and largest Epsilon* and utility over the models of `landscape`.

    Utility is the area under the ROC curve for two classes, else the accuracy. Diverged models are
    counted and left out of the means; a strategy of diverged models alone is left out.
    """
    utility = frame["auroc"].fillna(frame["accuracy"]) if frame["auroc"].notna().any() else frame["accuracy"]
    full = frame.assign(utility=utility)
    rows = []
    for key, part in full.groupby(list(STRATEGY), dropna=False, sort=False):
        sound = part.dropna(subset=["epsilon_star", "utility"])
        if sound.empty:
            continue
        about = {**dict(zip(STRATEGY, key, strict=True)), "models": len(part)}
        ranges = {
            f"{name}_{how}": getattr(sound[name], how)()
            for name in ("epsilon_star", "utility")
            for how in ("mean", "min", "max")
        }
        means = {name: sound[name].mean() for name in ("dp_epsilon", *MEASURES[3:9], "seconds")}
        lost = {"diverged": len(part) - len(sound)}
        rows.append({**about, **lost, **ranges, **means, "fits_rejected": _rejected(sound)})
    return pd.DataFrame(rows)


def pareto(table: pd.DataFrame) -> pd.DataFrame:
    """The `strategies` on the convex frontier of small Epsilon* and large utility, in order (Section 4.2)."""
    chosen = convex_frontier(table["epsilon_star_mean"].to_numpy(), table["utility_mean"].to_numpy())
    return table.iloc[chosen].reset_index(drop=True)


def describe(row: pd.Series) -> str:
    """A strategy in words.

    >>> row = pd.Series({"kind": "dp", "epochs": 10, "batch_size": 64, "clip_norm": 1.0,
    ...                  "microbatches": 32.0, "target_epsilon": 3.0})
    >>> describe(row)
    'DP 3, clip 1, batch 64, 32 groups'
    """
    if row["kind"] == "baseline":
        return f"no DP, {epochs_in_words(row['epochs'])}"
    groups = row["microbatches"]
    unit = "each record" if groups is None or math.isnan(groups) else f"{groups:g} groups"
    unit = "1 group" if groups == 1 else unit
    return f"DP {row['target_epsilon']:g}, clip {row['clip_norm']:g}, batch {row['batch_size']:g}, {unit}"


def noise_models(frame: pd.DataFrame) -> pd.DataFrame:
    """Means over the DP models with a large Epsilon*, those that learned, and the models without DP."""
    private, binary = frame["kind"] == "dp", bool(frame["auroc"].notna().any())
    utility, large, learned = ("auroc", 0.3, 0.88) if binary else ("accuracy", 1, 0.5)
    title = "AUROC" if binary else "test accuracy"
    groups = {
        f"DP, above {large:g}": private & (frame["epsilon_star"] > large),
        f"DP, {title} above {learned:g}": private & (frame[utility] > learned),
        "no DP": frame["kind"] == "baseline",
    }
    shown = {
        "epsilon_star": "Epsilon*",
        "epsilon_star_clipped": "clipped",
        "epsilon_shuffled": "shuffled",
        utility: title,
        "loss_auc": "loss AUC",
        "one_run": "one run",
        "one_run_both": "both ends",
    }
    columns = [name for name in shown if name in frame]
    means = [
        {"models": name, "number": chosen.sum(), **frame.loc[chosen, columns].mean()}
        for name, chosen in groups.items()
    ]
    return pd.DataFrame(means).rename(columns=shown)


def readings(frames: Mapping[str, pd.DataFrame], *, epochs: int = 5) -> pd.DataFrame:
    """The order that Figure 2 claims, for each architecture and precision of the losses."""
    rows = []
    for layers, frame in frames.items():
        for losses, name in (("exact", "epsilon_star"), ("clipped", "epsilon_star_clipped")):
            private = frame[frame["kind"] == "dp"].groupby("seed")[name].max()
            base = frame[(frame["kind"] == "baseline") & (frame["epochs"] == epochs)].set_index("seed")[name]
            difference = (base - private).dropna().to_numpy()
            low, high = t_interval(difference)
            rows.append(
                {
                    "layers": layers, "losses": losses, "largest": frame[name].max(),
                    "largest DP": private.mean(), f"no DP, {epochs} epochs": base.mean(),
                    "difference": difference.mean(), "from": low, "to": high, "seeds": len(difference),
                }
            )  # fmt: skip
    return pd.DataFrame(rows)


def t_interval(values: Sequence[float] | FloatArray, confidence: float = 0.95) -> tuple[float, float]:
    """The two-sided t-interval of a mean; NaN for a single value.

    >>> low, high = t_interval([1.0, 2.0, 3.0])
    >>> round(low, 3), round(high, 3)
    (-0.484, 4.484)
    """
    sample = np.asarray(values, dtype=float)
    if len(sample) < 2:
        return math.nan, math.nan
    error = float(sample.std(ddof=1)) / math.sqrt(len(sample))
    half = float(student.isf((1 - confidence) / 2, len(sample) - 1)) * error
    return float(sample.mean()) - half, float(sample.mean()) + half


def both_ends_named(frame: pd.DataFrame) -> pd.DataFrame:
    """A landscape kept from the time when the bound from one run guessed at both ends alike, and only so."""
    if "one_run_both" in frame:
        return frame
    return frame.rename(columns={"one_run": "one_run_both"}).assign(one_run=math.nan)


def which_number_moves(frame: pd.DataFrame) -> pd.DataFrame:
    """Means of every number by kind of training: some follow the training, others the fit of the normals."""
    rows = []
    keys = ["kind", "epochs", "target_epsilon", "record_level"]
    for (kind, epochs, epsilon, by_record), part in frame.groupby(keys, dropna=False, sort=False):
        unit = "each record" if by_record else "groups"
        sound = part.dropna(subset=["epsilon_star"])
        if sound.empty:
            continue
        dp = f"DP {epsilon:g}, {unit} clipped"
        about = {"training": f"no DP, {epochs_in_words(epochs)}" if kind == "baseline" else dp}
        star = {
            "epsilon_star": sound["epsilon_star"].mean(),
            "interval": f"{sound['interval_low'].min():.2f} to {sound['interval_high'].max():.2f}",
        }
        others = {name: sound[name].mean() for name in _MOVING if name in sound}
        rows.append({**about, "models": len(part), **star, **others, "fits_rejected": _rejected(sound)})
    return pd.DataFrame(rows)


def _rejected(models: pd.DataFrame) -> float:
    """Share of the models with a fit that is rejected at 1 %."""
    return float(((models["ks_train"] < 0.01) | (models["ks_population"] < 0.01)).mean())


def epochs_in_words(count: Any) -> str:
    """A number of epochs in words, such as "1 epoch"."""
    return f"{count:g} epoch{'' if count == 1 else 's'}"
