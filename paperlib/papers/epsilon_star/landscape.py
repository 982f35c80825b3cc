"""Epsilon*: the privacy and utility of hundreds of trained models (Figures 1 and 2 of the paper)."""

import logging
import os
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from paperlib.core import MembershipScores, check_choice
from paperlib.data import Dataset, load
from paperlib.io import SCHEDULER_VARIABLE, code_tag, config_hash, run_sweep, user_cache_folder
from paperlib.papers.epsilon_star.landscape_measures import MEASURES, privacy_of_losses
from paperlib.training import (
    DivergenceWarning,
    TrainingConfig,
    fit_ensemble,
    noise_for,
    paper_delta,
    privacy_of,
)

Options = tuple[tuple[str, Any], ...]

SIZES = ("smoke", "default", "paper")


@dataclass(frozen=True, kw_only=True)
class LandscapeConfig:
    """A grid of strategies on one data set.

    Attributes:
        dataset: Name of the data set.
        options: Its options, as pairs of name and value.
        widths: Hidden units of each layer.
        baseline_epochs: Training without DP, one strategy for each.
        baseline_batch: Batch size without DP.
        private_epochs: Epochs of every DP training; the paper does not say how many.
        epsilons: Targets of the DP trainings.
        clip_norms: Clipping norms.
        batch_sizes: Batch sizes of the DP trainings.
        microbatches: Groups of a batch whose average gradient is clipped; None clips each record's own
            gradient, which is what makes the accountant's epsilon a guarantee for a record.
        seeds: Models of each strategy.
        learning_rate: Of SGD.
        momentum: Of SGD.
        confidence: Of intervals and bounds.
    """

    dataset: str
    options: Options = ()
    widths: tuple[int, ...]
    baseline_epochs: tuple[int, ...]
    baseline_batch: int
    private_epochs: int
    epsilons: tuple[float, ...] = (1.0, 3.0, 10.0, 100.0)
    clip_norms: tuple[float, ...] = (1.0, 10.0, 30.0)
    batch_sizes: tuple[int, ...]
    microbatches: tuple[int | None, ...] = (1, 32)
    seeds: int = 5
    learning_rate: float = 0.01
    momentum: float = 0.9
    confidence: float = 0.95

    @property
    def instances(self) -> int:
        """Number of models."""
        private = len(self.epsilons) * len(self.clip_norms) * len(self.batch_sizes) * len(self.microbatches)
        return self.seeds * (len(self.baseline_epochs) + private)


_BINARY = (150, 100, 50)
_CLASSES = (100, 100, 100)
_ADULT = LandscapeConfig(
    dataset="adult",
    widths=_BINARY,
    baseline_epochs=(1, 5, 10, 20),
    baseline_batch=64,
    private_epochs=10,
    batch_sizes=(64, 512),
)
_PURCHASE = LandscapeConfig(
    dataset="purchase100",
    widths=_CLASSES,
    baseline_epochs=(10, 50, 100),
    baseline_batch=256,
    private_epochs=50,
    batch_sizes=(256, 1024),
)
_PURCHASE_LIKE = replace(
    _PURCHASE,
    dataset="purchase100_like",
    options=(("n_train", 20_000), ("n_test", 20_000), ("mixing", 0.35)),
)
# The 1,380 training rows of randhie need more epochs to be learned by heart than Adult's 32,561.
_RAND = replace(
    _ADULT,
    dataset="randhie",
    options=(("group", "distinct"),),
    baseline_epochs=(5, 20, 100, 200),
    private_epochs=20,
)
_PAPER = {config.dataset: config for config in (_ADULT, _PURCHASE, _PURCHASE_LIKE, _RAND)}
_SMALL: dict[str, dict[str, Any]] = {
    "adult": {"clip_norms": (1.0,), "batch_sizes": (512,), "microbatches": (1, 32, None), "seeds": 3},
    "purchase100": {"clip_norms": (1.0,), "batch_sizes": (1024,), "microbatches": (None,), "seeds": 2},
    "purchase100_like": {
        "options": (("n_train", 10_000), ("n_test", 10_000), ("mixing", 0.35)),
        "private_epochs": 20,
        "epsilons": (1.0, 10.0, 100.0),
        "clip_norms": (1.0,),
        "batch_sizes": (256,),
        "microbatches": (None,),
        "seeds": 3,
    },
    "randhie": {"clip_norms": (1.0,), "batch_sizes": (64,), "microbatches": (32, None)},
}
_SMOKE: dict[str, dict[str, Any]] = {
    "purchase100_like": {
        "options": (("n_train", 1_000), ("n_test", 1_000), ("mixing", 0.5)),
        "baseline_epochs": (5, 30),
        "private_epochs": 3,
    },
    "randhie": {"baseline_epochs": (5, 100), "private_epochs": 5},
}
_SMOKE_GRID: dict[str, Any] = {
    "epsilons": (1.0, 100.0),
    "clip_norms": (1.0,),
    "batch_sizes": (256,),
    "microbatches": (None,),
    "seeds": 2,
}


def landscape_config(dataset: str, *, size: str = "default") -> LandscapeConfig:
    """The grid of a data set.

    Args:
        dataset: "adult", "purchase100", "purchase100_like" or "randhie".
        size: "paper" is the paper's grid (260 models on Adult, 255 on Purchase-100; the same grids on
            the stand-ins, with longer baselines on the small randhie); "default" a part of it that two
            cores train in a minute or a few; "smoke" a few models.

    Raises:
        ValueError: Another data set or size.

    >>> landscape_config("adult", size="paper").instances
    260
    >>> landscape_config("purchase100", size="paper").instances
    255
    """
    check_choice("dataset", dataset, tuple(_PAPER))
    check_choice("size", size, SIZES)
    config = _PAPER[dataset]
    if size != "paper":
        config = replace(config, **_SMALL[dataset])
    if size == "smoke":
        config = replace(config, **_SMOKE_GRID, **_SMOKE.get(dataset, {}))
    return config


@dataclass(frozen=True, kw_only=True)
class Instance:
    """One model of the landscape.

    Attributes:
        dataset: Name of the data set.
        options: Its options.
        training: How the model is trained.
        target_epsilon: The DP epsilon aimed at; None without DP.
        confidence: Of its interval and bounds.
    """

    dataset: str
    options: Options
    training: TrainingConfig
    target_epsilon: float | None
    confidence: float

    @property
    def batch_key(self) -> Any:
        """Instances with equal keys train together."""
        return self.dataset, self.options, self.training.batch_key


def landscape_instances(config: LandscapeConfig) -> list[Instance]:
    """Every model of the grid, with the noise that reaches its target epsilon (RDP, as in the paper)."""
    data = _data(config.dataset, config.options)
    outputs = 1 if data.classes == 2 else data.classes
    base = TrainingConfig(
        widths=(data.train_x.shape[1], *config.widths, outputs),
        epochs=1,
        batch_size=config.baseline_batch,
        learning_rate=config.learning_rate,
        momentum=config.momentum,
    )
    plans: list[tuple[TrainingConfig, float | None]] = [
        (replace(base, epochs=epochs), None) for epochs in config.baseline_epochs
    ]
    private = replace(base, epochs=config.private_epochs)
    grid = product(config.batch_sizes, config.epsilons, config.clip_norms, config.microbatches)
    for batch, epsilon, clip, groups in grid:
        noise = _noise(replace(private, batch_size=batch), len(data.train_y), epsilon)
        plans.append(
            (
                replace(
                    private, batch_size=batch, clip_norm=clip, noise_multiplier=noise, microbatches=groups
                ),
                epsilon,
            )
        )
    return [
        Instance(
            dataset=config.dataset,
            options=config.options,
            training=replace(training, seed=seed),
            target_epsilon=epsilon,
            confidence=config.confidence,
        )
        for training, epsilon in plans
        for seed in range(config.seeds)
    ]


def landscape(
    config: LandscapeConfig,
    *,
    folder: str | Path | None = None,
    workers: int | None = None,
    progress: bool = True,
) -> pd.DataFrame:
    """Train and measure every model of a grid; what was trained before is read from disk.

    Args:
        config: The grid.
        folder: Where finished models' numbers are kept; a folder in the user's cache by default.
        workers: Processes; None takes two without a GPU, and none (all in this process) with one. With
            ``PAPERLIB_SCHEDULER`` set, the workers of that scheduler.
        progress: Show a bar.

    Returns:
        One row per model: dataset, kind ("baseline" or "dp"), epochs, batch_size, clip_norm, microbatches,
        target_epsilon, dp_epsilon (RDP accountant), dp_epsilon_pld (tighter), record_level, seed,
        accuracy, train_accuracy, auroc, the numbers of `landscape_measures.MEASURES`, delta, and
        seconds (its share of the training).
    """
    on_gpu = torch.cuda.is_available()
    here = on_gpu and SCHEDULER_VARIABLE not in os.environ  # one process fills a GPU
    data = _data(config.dataset, config.options)
    tag = config_hash({"code": code_tag(__name__), "data": dict(data.sha256s), "gpu": on_gpu})
    with _quiet_accountant():
        instances = landscape_instances(config)
        pairs = run_sweep(
            measure_instances,
            instances,
            folder=folder or user_cache_folder() / "sweeps" / "epsilon_star_landscape",
            batch_key=lambda instance: instance.batch_key,
            max_batch=512 if on_gpu else 16,
            workers=(0 if here else 2) if workers is None else workers,
            version=tag,
            progress=progress,
        )
        found = {instance: result for instance, result in pairs}
        rows = [{**_about(instance, len(data.train_y)), **found[instance]} for instance in instances]
    return pd.DataFrame(rows)


def measure_instances(batch: list[Instance]) -> list[dict[str, Any]]:
    """Train models that fit into one ensemble and measure each: the unit of work of a sweep."""
    data = _data(batch[0].dataset, batch[0].options)
    started = time.perf_counter()
    with warnings.catch_warnings():
        # A diverged model is a finding: its numbers are NaN.
        warnings.simplefilter("ignore", DivergenceWarning)
        models = fit_ensemble(
            [instance.training for instance in batch], data.train_x, data.train_y, progress=False
        )
        if torch.cuda.is_available():
            torch.cuda.synchronize()
    seconds = (time.perf_counter() - started) / len(batch)
    train, other = (
        models.margin_losses(x, y) for x, y in ((data.train_x, data.train_y), (data.test_x, data.test_y))
    )
    right, right_train = (
        models.accuracies(x, y) for x, y in ((data.test_x, data.test_y), (data.train_x, data.train_y))
    )
    delta = paper_delta(len(data.train_y))

    def measure(at: int) -> dict[str, float]:
        confidence, seed = batch[at].confidence, batch[at].training.seed
        return privacy_of_losses(train[at], other[at], delta=delta, confidence=confidence, seed=seed)

    # A GPU trains hundreds at once; then the measuring, on the CPU, would be what one waits for.
    with ThreadPoolExecutor(4 if torch.cuda.is_available() else 1) as pool:
        measures = list(pool.map(measure, range(len(batch))))
    return [
        {
            "accuracy": float(right[at]),
            "train_accuracy": float(right_train[at]),
            "auroc": _auroc(other[at], data),
            **measures[at],
            "seconds": seconds,
        }
        for at in range(len(batch))
    ]


def _auroc(losses: np.ndarray, data: Dataset) -> float:
    """Area under the ROC curve of a binary model on the test part, from its margin losses."""
    if data.classes > 2 or not np.isfinite(losses).all():
        return float("nan")
    log_odds = np.where(data.test_y == 1, -losses, losses)
    return MembershipScores(log_odds[data.test_y == 1], log_odds[data.test_y == 0]).auc()


@lru_cache(maxsize=2)
def _data(name: str, options: Options) -> Dataset:
    return load(name, **dict(options))


def _noise(training: TrainingConfig, examples: int, epsilon: float) -> float:
    return noise_for(
        epsilon, training.sampling_rate(examples), training.steps(examples), paper_delta(examples)
    )


def _about(instance: Instance, examples: int) -> dict[str, Any]:
    training = instance.training
    return {
        "dataset": instance.dataset,
        "kind": "dp" if training.is_private else "baseline",
        "epochs": training.epochs,
        "batch_size": training.batch_size,
        "clip_norm": training.clip_norm,
        "microbatches": training.microbatches,
        "target_epsilon": instance.target_epsilon,
        **{
            name: privacy_of(training, examples, accountant=accountant).epsilon
            if training.is_private
            else None
            for name, accountant in (("dp_epsilon", "rdp"), ("dp_epsilon_pld", "pld"))
        },
        "record_level": training.record_level,
        "seed": training.seed,
        "delta": paper_delta(examples),
    }


@contextmanager
def _quiet_accountant() -> Iterator[None]:
    """The accountant logs every Rényi order it leaves out, hundreds of lines; leaving one out is sound."""
    logger = logging.getLogger("absl")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


STRATEGY = ("dataset", "kind", "epochs", "batch_size", "clip_norm", "microbatches", "target_epsilon")
"""Columns that make a strategy: models that differ in none of them are its instances."""


def strategies(frame: pd.DataFrame) -> pd.DataFrame:
    """One row per strategy: mean, smallest and largest Epsilon* and utility over its models.

    Utility is the area under the ROC curve for two classes, else the accuracy. Diverged models are
    counted and left out of the means; a strategy of diverged models alone is left out.

    Args:
        frame: What `landscape` returns.
    """
    utility = frame["auroc"].fillna(frame["accuracy"]) if frame["auroc"].notna().any() else frame["accuracy"]
    full = frame.assign(utility=utility)
    rows = []
    for key, part in full.groupby(list(STRATEGY), dropna=False, sort=False):
        sound = part.dropna(subset=["epsilon_star", "utility"])
        if sound.empty:
            continue
        rows.append(
            {
                **dict(zip(STRATEGY, key, strict=True)),
                "models": len(part),
                "diverged": len(part) - len(sound),
                **{
                    f"{name}_{how}": getattr(sound[name], how)()
                    for name in ("epsilon_star", "utility")
                    for how in ("mean", "min", "max")
                },
                **{name: sound[name].mean() for name in ("dp_epsilon", *MEASURES[3:9], "seconds")},
                "fits_rejected": float(((sound["ks_train"] < 0.01) | (sound["ks_population"] < 0.01)).mean()),
            }
        )
    return pd.DataFrame(rows)


def config_fields(config: LandscapeConfig) -> pd.DataFrame:
    """The grid as a table of two columns, for a page."""
    values = asdict(config)
    shown = [
        {"setting": field.name.replace("_", " "), "value": _shown(values[field.name])}
        for field in fields(config)
    ]
    return pd.DataFrame(shown)


def _shown(value: Any) -> str:
    if value is None:
        return "each record"
    if isinstance(value, tuple | list):
        nested = any(isinstance(item, tuple | list) for item in value)
        return ("; " if nested else ", ").join(map(_shown, value)) or "–"
    return f"{value:g}" if isinstance(value, float) else str(value)
