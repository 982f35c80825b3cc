"""Epsilon*: the privacy and utility of hundreds of trained models (Figures 1 and 2), and
Theorem 2.
"""

import math
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri

from paperlib.bounds import epsilon_star, epsilon_star_from_rates
from paperlib.core import FloatArray, MembershipScores
from paperlib.data import Dataset
from paperlib.io import user_cache_folder
from paperlib.reproduction.papers.epsilon_star.landscape_measures import (
    Normals,
    cached_measures,
    fits_of,
)
from paperlib.reproduction.papers.epsilon_star.landscape_models import (
    LandscapeConfig,
    LandscapeModel,
    TrainedModel,
    landscape_data,
    landscape_models,
    trained_models,
)
from paperlib.reproduction.papers.epsilon_star.landscape_tables import t_interval
from paperlib.reproduction.papers.epsilon_star.resampled_models import (
    ResampledConfig,
    resampled_losses,
)
from paperlib.training.private.accounting import paper_delta, privacy_of

_SETTINGS = ("epochs", "batch_size", "clip_norm", "microbatches")


def landscape(
    config: LandscapeConfig, *, folder: str | Path | None = None, workers: int | None = None
) -> pd.DataFrame:
    """Train and measure every model of a grid; what was trained or measured before is read from
    disk.

    Args:
        config: The grid.
        folder: Where losses and measures are kept; None takes the user's cache.
        workers: Processes that train; None chooses by device and number of models.

    Returns:
        A row for each model, with the columns of `_row`; numbers of diverged models are NaN.
    """
    kept_in = Path(folder or user_cache_folder() / "sweeps" / "epsilon_star_landscape")
    data = landscape_data(config.dataset, config.options)
    models = landscape_models(config, data)
    trained = trained_models(models, data, folder=kept_in, workers=workers)
    delta = paper_delta(len(data.train_y))

    def measures(model: LandscapeModel) -> dict[str, float]:
        """Epsilon* and its parts for a model, from its losses on both sides, or as stored
        before.
        """
        return cached_measures(
            trained[model]["train"],
            trained[model]["population"],
            delta=delta,
            confidence=config.confidence,
            seed=model.training.seed,
            folder=kept_in / "measures",
        )

    with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        measured = list(pool.map(measures, models))
    rows = [
        _row(model, trained[model], numbers, data, delta)
        for model, numbers in zip(models, measured, strict=True)
    ]
    return pd.DataFrame(rows)


def _row(
    model: LandscapeModel,
    trained: TrainedModel,
    numbers: Mapping[str, float],
    data: Dataset,
    delta: float,
) -> dict[str, Any]:
    """A row for a model: its settings, epsilon by both accountants (nats, None without DP),
    accuracies (shares), the numbers of `MEASURES`, ``numbers``, and its share of the seconds.
    """
    training = model.training
    epsilons: dict[str, float] = {}
    if training.is_private:
        for accountant in ("rdp", "pld"):
            privacy = privacy_of(training, len(data.train_y), accountant=accountant)
            epsilons[accountant] = privacy.epsilon
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
        "accuracy": trained["accuracy"],
        "train_accuracy": trained["train_accuracy"],
        "auroc": _auroc(trained["population"], data),
        **numbers,
        "seconds": trained["seconds"],
    }
    # Behind all other numbers, as in kept tables.
    row["epsilon_star_clipped"] = row.pop("epsilon_star_clipped")
    layers = "-".join(map(str, training.widths[1:-1]))
    return {**row, "layers": f"{layers} {training.activation}"}


def _auroc(losses: FloatArray, data: Dataset) -> float:
    """Area under the ROC curve of a binary model on the test part, from its margin losses."""
    if data.classes > 2 or not np.isfinite(losses).all():
        return float("nan")
    log_odds = np.where(data.test_y == 1, -losses, losses)
    return MembershipScores(log_odds[data.test_y == 1], log_odds[data.test_y == 0]).auc()


def theorem_2_resampled(
    config: ResampledConfig, *, folder: str | Path | None = None
) -> pd.DataFrame:
    """Both sides of Theorem 2 for every strategy and repetition, each over a half of the models.

    A row for each: left, Epsilon* of the mechanism; right, the log of the mean of
    exp(Epsilon*) over models (equation 21); and one_model, the mean Epsilon* of a model; nats.
    """
    kept_in = Path(folder or user_cache_folder() / "sweeps" / "epsilon_star_resampled")
    delta = paper_delta(config.records)
    size = config.models
    rows: list[dict[str, object]] = []
    for name, losses in resampled_losses(config, folder=kept_in).items():
        normals: list[Normals] = []
        for pair in losses:
            train, population = fits_of(epsilon_star(*pair, delta=delta))
            normals.append((train.mean, train.std, population.mean, population.std))
        for repetition in range(config.repetitions):
            start = 2 * size * repetition
            first = normals[start : start + size]
            second = normals[start + size : start + 2 * size]
            mechanism, values = mechanism_epsilon(first, second, delta=delta)
            right = float(np.logaddexp.reduce(values) - math.log(size))  # equation 21
            sides = {"left": mechanism, "right": right, "one_model": float(values.mean())}
            rows.append({"strategy": name, "repetition": repetition, **sides})
    return pd.DataFrame(rows)


def mechanism_epsilon(
    models: Sequence[Normals], others: Sequence[Normals], *, delta: float
) -> tuple[float, FloatArray]:
    """Epsilon* of a mechanism, whose error rates are means over some of its models, and Epsilon* of
    other models, shape (others,), at the same thresholds, nats: the two sides of Theorem 2.

    Each model is given by mean and deviation of its training scores (m, s), and then of its
    population scores (mu, sigma). Where no threshold keeps the rates of every model within
    [delta, 1 - delta], all are the largest value there can be.
    """
    # One set of thresholds for both sides, or the inequality of Theorem 2 would not follow.
    edge = float(ndtri(delta))
    z = np.linspace(edge, -edge, 4_001)
    # Scores are higher for members: a score of at least x means "member". At x = mu - sigma z every
    # model has the FPR ndtr(z), from delta to 1 - delta, and the FNR ndtr((x - m) / s).
    fnr = ndtr(np.array([(mu - sigma * z - m) / s for m, s, mu, sigma in [*models, *others]]))
    usable = ((fnr >= delta) & (fnr <= 1 - delta)).all(axis=0)
    if not usable.any():
        most = math.log((1 - 2 * delta) / delta)
        return most, np.full(len(others), most)
    fpr = ndtr(z[usable])
    fnr = fnr[:, usable]
    values = [epsilon_star_from_rates(fpr, row, delta=delta).max() for row in fnr[len(models) :]]
    averaged = fnr[: len(models)].mean(axis=0)
    return float(epsilon_star_from_rates(fpr, averaged, delta=delta).max()), np.array(values)


def summary_of_theorem_2(sides: pd.DataFrame, *, confidence: float = 0.95) -> pd.DataFrame:
    """Means over the repetitions of `theorem_2_resampled`, nats, a row for each strategy.

    Beside both sides, the right side less the left one and a model's Epsilon* less the left side,
    each with its t-interval at this confidence, and the share of repetitions in which the right
    side is below the left one.
    """
    rows = []
    for name, repetitions in sides.groupby("strategy", sort=False):
        left = repetitions["left"]
        right_less_left = repetitions["right"] - left
        one_less_left = repetitions["one_model"] - left
        low, high = t_interval(right_less_left.to_numpy(), confidence)
        one_low, one_high = t_interval(one_less_left.to_numpy(), confidence)
        rows.append(
            {
                "strategy": name,
                "repetitions": len(repetitions),
                "left": left.mean(),
                "right": repetitions["right"].mean(),
                "right_less_left": right_less_left.mean(),
                "low": low,
                "high": high,
                "right_below_left": float((right_less_left < 0).mean()),
                "one_model": repetitions["one_model"].mean(),
                "one_less_left": one_less_left.mean(),
                "one_low": one_low,
                "one_high": one_high,
            }
        )
    return pd.DataFrame(rows)
