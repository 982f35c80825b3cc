"""Epsilon*: the privacy and utility of hundreds of trained models (Figures 1 and 2 of the paper)."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd

from paperlib.core import FloatArray, MembershipScores
from paperlib.data import Dataset
from paperlib.io import user_cache_folder
from paperlib.papers.epsilon_star.landscape_measures import cached_measures
from paperlib.papers.epsilon_star.landscape_models import (
    LandscapeConfig,
    LandscapeModel,
    landscape_data,
    landscape_models,
    trained_models,
)
from paperlib.training import paper_delta, privacy_of

_SETTINGS = ("epochs", "batch_size", "clip_norm", "microbatches")


def landscape(
    config: LandscapeConfig,
    *,
    folder: str | Path | None = None,
    workers: int | None = None,
    progress: bool = True,
) -> pd.DataFrame:
    """Train and measure every model of a grid; what was trained or measured before is read from disk."""
    place = Path(folder or user_cache_folder() / "sweeps" / "epsilon_star_landscape")
    data = landscape_data(config.dataset, config.options)
    models = landscape_models(config, data)
    trained = trained_models(models, data, folder=place, workers=workers, progress=progress)
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
        rdp, pld = (
            privacy_of(training, len(data.train_y), accountant=accountant).epsilon
            if training.is_private
            else None
            for accountant in ("rdp", "pld")
        )
        row = {
            "dataset": model.dataset,
            "kind": "dp" if training.is_private else "baseline",
            **{name: getattr(training, name) for name in _SETTINGS},
            "target_epsilon": model.target_epsilon,
            "dp_epsilon": rdp,
            "dp_epsilon_pld": pld,
            "record_level": training.record_level,
            "seed": training.seed,
            "delta": delta,
            "accuracy": own["accuracy"],
            "train_accuracy": own["train_accuracy"],
            "auroc": _auroc(own["population"], data),
            **numbers,
            "seconds": own["seconds"],
        }
        row["epsilon_star_clipped"] = row.pop("epsilon_star_clipped")  # the last one, as in kept tables
        layers = "-".join(map(str, training.widths[1:-1]))
        rows.append({**row, "layers": f"{layers} {training.activation}"})
    return pd.DataFrame(rows)


def _auroc(losses: FloatArray, data: Dataset) -> float:
    """Area under the ROC curve of a binary model on the test part, from its margin losses."""
    if data.classes > 2 or not np.isfinite(losses).all():
        return float("nan")
    log_odds = np.where(data.test_y == 1, -losses, losses)
    return MembershipScores(log_odds[data.test_y == 1], log_odds[data.test_y == 0]).auc()
