"""Models that each have a training set of their own, drawn from one population: their losses are
kept.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from paperlib.core import FloatArray
from paperlib.core.checks import check_at_least
from paperlib.reproduction.papers.epsilon_star.landscape_models import landscape_data, train_models
from paperlib.reproduction.papers.kept import kept_runs
from paperlib.training import TrainingConfig, noise_for
from paperlib.training.private.accounting import paper_delta


@dataclass(frozen=True, kw_only=True)
class ResampledConfig:
    """Strategies, and how many models of each: every model has records that no other one has."""

    records: int = 500  #: training records of a model, at least 2
    population: int = 1_000  #: other records, the same for all, at least 2
    models: int = 6  #: models of each half, at least 1
    repetitions: int = 10  #: pairs of halves, at least 2
    mixing: float = 0.5  #: of the generated shoppers, see `generate_purchase100_like`
    epochs: tuple[int, ...] = (3, 10)  #: epochs without DP, one strategy for each
    epsilon: float = 10.0  #: DP epsilon of one more strategy, which clips each record's gradient
    private_epochs: int = 5  #: its epochs
    seed: int = 0  #: of the population, the draws and the trainings, 0 or more

    def __post_init__(self) -> None:
        """Refuse (ValueError) numbers out of range."""
        check_at_least(
            2, records=self.records, population=self.population, repetitions=self.repetitions
        )
        check_at_least(1, models=self.models)
        check_at_least(0, seed=self.seed)

    @property
    def sets(self) -> int:
        """Training sets of all halves; on each of them every strategy trains one model."""
        return 2 * self.models * self.repetitions


@dataclass(frozen=True)
class _TrainingSet:
    """Records of the pool on which one model of each strategy is trained."""

    config: ResampledConfig
    number: int  # from 0, in the order of the pool


def resampled_losses(
    config: ResampledConfig, *, folder: Path
) -> dict[str, list[tuple[FloatArray, FloatArray]]]:
    """Losses of each model, nats, on its own training set and on the population, shape (n,) each,
    by strategy, in the order drawn.
    """
    units = [_TrainingSet(config, number) for number in range(config.sets)]
    done = kept_runs(_train_sets, units, folder=folder, workers=0)
    losses: dict[str, list[tuple[FloatArray, FloatArray]]] = {}
    for row, name in enumerate(_strategies(config)):
        losses[name] = [(done[unit]["train"][row], done[unit]["population"][row]) for unit in units]
    return losses


@lru_cache(maxsize=2)
def _strategies(config: ResampledConfig) -> dict[str, TrainingConfig]:
    """How models are trained, by the name of the strategy: without DP for each number of epochs,
    and with DP-SGD.
    """
    base = TrainingConfig(
        widths=(600, 50, 100), epochs=1, batch_size=100, learning_rate=0.05, momentum=0.9
    )
    plan = replace(base, epochs=config.private_epochs)
    rate, steps = plan.sampling_rate(config.records), plan.steps(config.records)
    noise = noise_for(config.epsilon, rate, steps, paper_delta(config.records))
    return {
        **{f"no DP, {epochs} epochs": replace(base, epochs=epochs) for epochs in config.epochs},
        f"DP {config.epsilon:g}, each record": replace(plan, clip_norm=1.0, noise_multiplier=noise),
    }


def _train_sets(units: Sequence[_TrainingSet]) -> list[dict[str, FloatArray]]:
    """The unit of work of the sweep: for each training set the losses of a model of each strategy,
    "train", shape (strategies, records), and "population", (strategies, population).
    """
    losses: list[dict[str, FloatArray]] = []
    for unit in units:
        config = unit.config
        options = (
            ("n_train", config.sets * config.records),
            ("n_test", config.population),
            ("mixing", config.mixing),
            ("seed", config.seed),
        )
        pool = landscape_data("purchase100_like", options)
        rows = slice(unit.number * config.records, (unit.number + 1) * config.records)
        data = replace(pool, train_x=pool.train_x[rows], train_y=pool.train_y[rows])
        # Experiments of different seeds share no seed, as each has fewer than a million sets.
        seed = 1_000_000 * config.seed + unit.number
        trainings = [replace(strategy, seed=seed) for strategy in _strategies(config).values()]
        models = train_models(trainings, data)
        losses.append(
            {
                "train": np.array([model["train"] for model in models]),
                "population": np.array([model["population"] for model in models]),
            }
        )
    return losses
