"""The models behind Figures 1 and 2: trained once, losses kept, apart from any bound."""

import math
import os
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import torch

from paperlib.core.checks import check_at_least
from paperlib.data import Dataset
from paperlib.reproduction.data import load
from paperlib.reproduction.papers.kept import kept_runs
from paperlib.reproduction.sweeps import SCHEDULER_VARIABLE
from paperlib.training import TrainingConfig, fit_ensemble, noise_for
from paperlib.training.ensembles import DivergenceWarning
from paperlib.training.private.accounting import paper_delta

_LARGE = (
    100_000  # records from which few models are trained at once, so that a killed run loses minutes
)

Options = tuple[tuple[str, Any], ...]

PrivateTraining = tuple[float, float, int, int | None, int]
"""Epsilon aimed at, clipping norm, batch size, microbatches and epochs."""


@dataclass(frozen=True, kw_only=True)
class LandscapeConfig:
    """A grid of strategies on one data set."""

    dataset: str  #: name of the data set
    options: Options = ()  #: options of its loader, as pairs of name and value
    widths: tuple[int, ...]  #: hidden units of each layer
    activation: str = "relu"  #: between the layers, "relu" or "tanh"
    baseline_epochs: tuple[int, ...]  #: numbers of epochs without DP, one strategy for each
    baseline_batch: int  #: batch size without DP
    private_epochs: int  #: epochs of every DP training; the paper does not say how many
    epsilons: tuple[float, ...] = (1.0, 3.0, 10.0, 100.0)  #: targets of the DP trainings, nats
    clip_norms: tuple[float, ...] = (1.0, 10.0, 30.0)  #: clipping norms, above 0
    batch_sizes: tuple[int, ...]  #: batch sizes of the DP trainings
    #: groups of a batch whose average gradient is clipped; None clips each record's own gradient,
    #: which is what makes the accountant's epsilon a guarantee for a record
    microbatches: tuple[int | None, ...] = (1, 32)
    further: tuple[PrivateTraining, ...] = ()  #: DP trainings beside the grid
    seeds: int = 5  #: models of each strategy, 1 to 1,000
    seed: int = 0  #: their seeds are this number times 1,000 and those that follow, 0 or more
    learning_rate: float = 0.01  #: learning rate of SGD
    momentum: float = 0.9  #: momentum of SGD, in [0, 1)
    confidence: float = 0.95  #: confidence level of intervals and bounds, in (0, 1)

    def __post_init__(self) -> None:
        check_at_least(1, seeds=self.seeds)
        check_at_least(0, seed=self.seed)

    @property
    def instances(self) -> int:
        """The number of models that the grid asks for, all seeds together."""
        private = (
            len(self.epsilons)
            * len(self.clip_norms)
            * len(self.batch_sizes)
            * len(self.microbatches)
        )
        return self.seeds * (len(self.baseline_epochs) + private + len(self.further))


@dataclass(frozen=True, kw_only=True)
class LandscapeModel:
    """One model of the landscape; the DP epsilon aimed at is None without DP."""

    dataset: str
    options: Options
    training: TrainingConfig
    target_epsilon: float | None


TrainedModel = dict[str, Any]
"""Margin losses "train" and "population", shares of records that are right "train_accuracy" and
"accuracy", all NaN if it diverged, and "seconds"."""


def landscape_models(config: LandscapeConfig, data: Dataset) -> list[LandscapeModel]:
    """Every model of the grid, with the noise that reaches its target epsilon by the Renyi
    accountant, as in the paper; strategy by strategy, those without DP first, each by seed.
    """
    outputs = 1 if data.classes == 2 else data.classes
    base = TrainingConfig(
        widths=(data.train_x.shape[1], *config.widths, outputs),
        activation=config.activation,
        epochs=1,
        batch_size=config.baseline_batch,
        learning_rate=config.learning_rate,
        momentum=config.momentum,
    )
    examples = len(data.train_y)
    strategies: list[tuple[TrainingConfig, float | None]]
    strategies = [(replace(base, epochs=epochs), None) for epochs in config.baseline_epochs]
    grid = product(config.batch_sizes, config.epsilons, config.clip_norms, config.microbatches)
    inside = [
        (epsilon, clip, batch, groups, config.private_epochs)
        for batch, epsilon, clip, groups in grid
    ]
    for epsilon, clip, batch, groups, epochs in (*inside, *config.further):
        plan = replace(base, epochs=epochs, batch_size=batch)
        rate, steps = plan.sampling_rate(examples), plan.steps(examples)
        noise = noise_for(epsilon, rate, steps, paper_delta(examples))
        private = replace(plan, clip_norm=clip, noise_multiplier=noise, microbatches=groups)
        strategies.append((private, epsilon))
    first_seed = 1000 * config.seed
    models: list[LandscapeModel] = []
    for training, epsilon in strategies:
        for seed in range(first_seed, first_seed + config.seeds):
            models.append(
                LandscapeModel(
                    dataset=config.dataset,
                    options=config.options,
                    training=replace(training, seed=seed),
                    target_epsilon=epsilon,
                )
            )
    return models


@lru_cache(maxsize=2)
def landscape_data(name: str, options: Options) -> Dataset:
    """The data set that models are trained on, kept in memory."""
    return load(name, **dict(options))


def trained_models(
    models: Sequence[LandscapeModel], data: Dataset, *, folder: Path, workers: int | None
) -> dict[LandscapeModel, TrainedModel]:
    """Losses and accuracies of every model, from ``folder`` where they were trained before.

    ``data`` is what all are trained on. ``workers`` are processes, 0 for this one; None trains here
    on a GPU or few models, and else in two.
    """
    on_gpu = torch.cuda.is_available()
    # One process fills a GPU, and starting others takes longer than training few models.
    here = (on_gpu or len(models) <= 8) and SCHEDULER_VARIABLE not in os.environ
    if workers is None:
        workers = 0 if here else 2
    most = 16 if len(data.train_y) < _LARGE else 4
    batches = _batches(models, 512 if on_gpu else most)
    return kept_runs(
        _train_batch,
        models,
        folder=folder,
        data=dict(data.sha256s),
        batch_key=batches.__getitem__,
        max_batch=len(models) or 1,
        workers=workers,
    )


def _batches(models: Sequence[LandscapeModel], most: int) -> dict[LandscapeModel, tuple[Any, int]]:
    """By model the key of the batch in which it is trained, at most ``most`` models together: what
    they share, and the number of the batch. It is the same if some are finished already.
    """
    # Models of one seed are neighbours, for those that differ in their epochs alone share a
    # training.
    stacks: dict[Any, list[LandscapeModel]] = {}
    for model in sorted(models, key=lambda model: model.training.seed):
        stacks.setdefault(model.training.batch_key, []).append(model)
    batches: dict[LandscapeModel, tuple[Any, int]] = {}
    for key, stack in stacks.items():
        count = math.ceil(len(stack) / most)
        for index, model in enumerate(stack):
            batches[model] = (key, index * count // len(stack))  # sizes differ by one at most
    return batches


def _train_batch(batch: list[LandscapeModel]) -> list[TrainedModel]:
    """Train the models of a batch, which is one call of the sweep, on their data set."""
    data = landscape_data(batch[0].dataset, batch[0].options)
    return train_models([model.training for model in batch], data)


def train_models(trainings: Sequence[TrainingConfig], data: Dataset) -> list[TrainedModel]:
    """Train one model for each config, all at once: their losses on the training part and on the
    test part, which is the population, shares that are right, and an equal share of the seconds.
    """
    started = time.perf_counter()
    with warnings.catch_warnings():
        # A diverged model is a result: its numbers are NaN.
        warnings.simplefilter("ignore", DivergenceWarning)
        models = fit_ensemble(trainings, data.train_x, data.train_y, progress=False)
        if torch.cuda.is_available():
            torch.cuda.synchronize()
    seconds = (time.perf_counter() - started) / len(trainings)
    sets = ((data.train_x, data.train_y), (data.test_x, data.test_y))
    losses = [models.margin_losses(x, y) for x, y in sets]
    shares = [models.accuracies(x, y).tolist() for x, y in sets]
    names = ("train", "population", "train_accuracy", "accuracy")
    rows = zip(*losses, *shares, strict=True)
    return [dict(zip(names, row, strict=True)) | {"seconds": seconds} for row in rows]
