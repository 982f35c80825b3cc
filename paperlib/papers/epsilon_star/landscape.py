"""Epsilon*: the privacy and utility of hundreds of trained models (Figures 1 and 2), and
Theorem 2.
"""

import math
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri

from paperlib.bounds import epsilon_star, epsilon_star_from_rates
from paperlib.core import FloatArray, MembershipScores
from paperlib.data import Dataset
from paperlib.io import user_cache_folder
from paperlib.papers.epsilon_star.landscape_measures import Normals, cached_measures, fits_of
from paperlib.papers.epsilon_star.landscape_models import (
    LandscapeConfig,
    LandscapeModel,
    landscape_data,
    landscape_models,
    trained_models,
)
from paperlib.papers.epsilon_star.landscape_tables import t_interval
from paperlib.papers.epsilon_star.resampled_models import ResampledConfig, resampled_losses
from paperlib.training import paper_delta, privacy_of

_SETTINGS = ("epochs", "batch_size", "clip_norm", "microbatches")


def landscape(
    config: LandscapeConfig, *, folder: str | Path | None = None, workers: int | None = None
) -> pd.DataFrame:
    """Train and measure every model of a grid; what was trained or measured before is read from
    disk.
    """
    place = Path(folder or user_cache_folder() / "sweeps" / "epsilon_star_landscape")
    data = landscape_data(config.dataset, config.options)
    models = landscape_models(config, data)
    trained = trained_models(models, data, folder=place, workers=workers)
    delta = paper_delta(len(data.train_y))

    def measures(model: LandscapeModel) -> dict[str, float]:
        losses = trained[model]["train"], trained[model]["population"]
        options = {"delta": delta, "confidence": config.confidence, "seed": model.training.seed}
        return cached_measures(*losses, **options, folder=place / "measures")

    with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        measured = list(pool.map(measures, models))
    rows = []
    for model, numbers in zip(models, measured, strict=True):
        training, own = model.training, trained[model]
        by = ("rdp", "pld") if training.is_private else ()
        epsilons = {
            one: privacy_of(training, len(data.train_y), accountant=one).epsilon for one in by
        }
        row = {
            "dataset": model.dataset,
            "kind": "dp" if training.is_private else "baseline",
            **{name: getattr(training, name) for name in _SETTINGS},
            "target_epsilon": model.target_epsilon,
            "dp_epsilon": epsilons.get("rdp"),
            "dp_epsilon_pld": epsilons.get("pld"),
            "record_level": training.record_level,
            "seed": training.seed,
            "delta": delta,
            "accuracy": own["accuracy"],
            "train_accuracy": own["train_accuracy"],
            "auroc": _auroc(own["population"], data),
            **numbers,
            "seconds": own["seconds"],
        }
        row["epsilon_star_clipped"] = row.pop(
            "epsilon_star_clipped"
        )  # the last one, as in kept tables
        layers = "-".join(map(str, training.widths[1:-1]))
        rows.append({**row, "layers": f"{layers} {training.activation}"})
    return pd.DataFrame(rows)


def _auroc(losses: FloatArray, data: Dataset) -> float:
    """Area under the ROC curve of a binary model on the test part, from its margin losses."""
    if data.classes > 2 or not np.isfinite(losses).all():
        return float("nan")
    log_odds = np.where(data.test_y == 1, -losses, losses)
    return MembershipScores(log_odds[data.test_y == 1], log_odds[data.test_y == 0]).auc()


def theorem_2_resampled(
    config: ResampledConfig, *, folder: str | Path | None = None
) -> pd.DataFrame:
    """Both sides of Theorem 2 for every strategy and repetition, each over a half of the models."""
    place = Path(folder or user_cache_folder() / "sweeps" / "epsilon_star_resampled")
    delta, size, rows = paper_delta(config.records), config.models, list[dict[str, object]]()
    for name, losses in resampled_losses(config, folder=place).items():
        fits = [fits_of(epsilon_star(*pair, delta=delta)) for pair in losses]
        normals = [(one.mean, one.std, other.mean, other.std) for one, other in fits]
        for repetition in range(config.repetitions):
            start = 2 * size * repetition
            first, second = normals[start : start + size], normals[start + size : start + 2 * size]
            mechanism, values = mechanism_epsilon(first, second, delta=delta)
            right = float(np.logaddexp.reduce(values) - math.log(size))  # equation 21
            sides = {"left": mechanism, "right": right, "one_model": float(values.mean())}
            rows.append({"strategy": name, "repetition": repetition, **sides})
    return pd.DataFrame(rows)


def mechanism_epsilon(
    models: Sequence[Normals], others: Sequence[Normals], *, delta: float
) -> tuple[float, FloatArray]:
    """Theorem 2's bound by some models of a mechanism, and Epsilon* of others at the same
    thresholds.
    """
    # One set of thresholds for both sides, or the inequality of Theorem 2 would not follow.
    edge = float(ndtri(delta))
    z = np.linspace(edge, -edge, 4_001)
    # Scores are higher for members: a score of at least x means "member".
    fnr = ndtr(np.array([(mu - sigma * z - m) / s for m, s, mu, sigma in [*models, *others]]))
    usable = ((fnr >= delta) & (fnr <= 1 - delta)).all(axis=0)
    if not usable.any():
        most = math.log((1 - 2 * delta) / delta)
        return most, np.full(len(others), most)
    fpr, fnr = ndtr(z[usable]), fnr[:, usable]
    values = [epsilon_star_from_rates(fpr, row, delta=delta).max() for row in fnr[len(models) :]]
    averaged = fnr[: len(models)].mean(axis=0)
    return float(epsilon_star_from_rates(fpr, averaged, delta=delta).max()), np.array(values)


def summary_of_theorem_2(sides: pd.DataFrame, *, confidence: float = 0.95) -> pd.DataFrame:
    """Means over the repetitions of `theorem_2_resampled`, and t-intervals of differences from the
    left.
    """
    rows = []
    for name, part in sides.groupby("strategy", sort=False):
        more, one = (part[side] - part["left"] for side in ("right", "one_model"))
        low, high = t_interval(more.to_numpy(), confidence)
        one_low, one_high = t_interval(one.to_numpy(), confidence)
        rows.append(
            {
                "strategy": name,
                "repetitions": len(part),
                "left": part["left"].mean(),
                "right": part["right"].mean(),
                "right_less_left": more.mean(),
                "low": low,
                "high": high,
                "right_below_left": float((more < 0).mean()),
                "one_model": part["one_model"].mean(),
                "one_less_left": one.mean(),
                "one_low": one_low,
                "one_high": one_high,
            }
        )
    return pd.DataFrame(rows)
