"""How fast models are trained: as a stack, one at a time, and by a plain Opacus loop.

All arms do the same arithmetic on the same synthetic rows, are timed in turn within one process,
and the fastest of several repeats counts: other work on the machine can only slow a repeat down.
"""

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from opacus import PrivacyEngine
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.utils.data import DataLoader, TensorDataset

from paperlib.models import MLP
from paperlib.models.devices import default_device
from paperlib.training import TrainingConfig, fit, fit_dp, fit_ensemble

PLAIN, PRIVATE = "plain", "DP-SGD"

Arms = dict[tuple[str, int], Callable[[], object]]
"""Method and number of models to a function that trains them."""


@dataclass(frozen=True, kw_only=True)
class SpeedConfig:
    """Settings of the timing; the defaults are the paper's Adult model on few rows."""

    widths: tuple[int, ...] = (108, 150, 100, 50, 1)  #: layer widths of the MLP; one output
    examples: int = 2000  #: synthetic rows
    batch_size: int = 64  #: records in a batch, expected ones under DP-SGD
    epochs: int = 2  #: epochs of each model, 1 or more
    models: tuple[int, ...] = (1, 4, 16, 32)  #: numbers of models trained at once, each 1 or more
    device: str = ""  #: "cpu" or "cuda"; empty takes CUDA where there is one
    repeats: int = 3  #: number of timings of each arm, 1 or more

    def __post_init__(self) -> None:
        if not self.models or min(self.models) < 1:
            raise ValueError(f"models: expected numbers of 1 or more, got {self.models}")

    def training(self, task: str) -> TrainingConfig:
        """How one model of ``task`` is trained: with fused Adam, or with DP-SGD."""
        private = {"optimizer": "sgd", "momentum": 0.9, "clip_norm": 1.0, "noise_multiplier": 1.0}
        options: dict[str, Any] = private if task == PRIVATE else {"optimizer": "adam"}
        return TrainingConfig(
            widths=self.widths,
            epochs=self.epochs,
            batch_size=self.batch_size,
            learning_rate=0.01,
            **options,
        )


def measure_throughput(config: SpeedConfig) -> pd.DataFrame:
    """How fast models are trained: a row for each task, method and number of models.

    Seconds and seconds of the processor for all models together, models a minute, milliseconds of
    a model's step, and speedup over the first method of the task, by both clocks.
    """
    device = config.device or default_device().type
    rows = []
    for task in (PLAIN, PRIVATE):
        times = _fastest(arms(config, task, device), config.repeats)
        baseline, baseline_cpu = next(iter(times.values()))
        for (method, models), (seconds, cpu) in times.items():
            steps = models * config.training(task).steps(config.examples)
            rows.append(
                {
                    "task": task,
                    "method": method,
                    "models": models,
                    "seconds": seconds,
                    "cpu_seconds": cpu,
                    "models_per_minute": 60 * models / seconds,
                    "ms_per_model_step": 1000 * seconds / steps,
                    "speedup": baseline * models / seconds,
                    "speedup_per_core": baseline_cpu * models / cpu,
                    "device": device,
                    "threads": 1,
                }
            )
    return pd.DataFrame(rows)


def arms(config: SpeedConfig, task: str, device: str) -> Arms:
    """What is timed for a task, `PLAIN` or `PRIVATE`, on a device, the baseline first: trainings on
    normal features and a label that depends on the first feature.
    """
    rng = np.random.default_rng(0)
    features = rng.normal(size=(config.examples, config.widths[0])).astype(np.float32)
    labels = (features[:, 0] + rng.normal(size=config.examples) > 0).astype(np.int64)
    x, y = (torch.from_numpy(values).to(device) for values in (features, labels))
    training = config.training(task)
    options: dict[str, Any] = {"device": device, "progress": False}

    def ensemble(models: int) -> object:
        """Train so many models at once; the sum is taken to wait for the device."""
        configs = [replace(training, seed=seed) for seed in range(models)]
        return fit_ensemble(configs, x, y, **options).parameters.sum()

    single: Arms = {
        ("one at a time", 1): lambda: fit(config.widths, x, y, config=training, **options)
    }
    if task == PRIVATE:
        single = {
            ("Opacus loop", 1): lambda: _plain_opacus_loop(config, x, y),
            ("Opacus, bare", 1): lambda: fit_dp(config.widths, x, y, config=training, **options),
        }
    return single | {
        ("ensemble", models): lambda models=models: ensemble(models) for models in config.models
    }


def _fastest(trained: Arms, repeats: int) -> dict[tuple[str, int], tuple[float, float]]:
    """The shortest wall and processor time of each training, in seconds, over so many repeats; the
    first call of each is not timed.
    """
    for train in trained.values():
        train()  # The first call includes lazy initialisation.
    best = dict.fromkeys(trained, (math.inf, math.inf))
    for _ in range(repeats):
        for arm, train in trained.items():
            wall, cpu = time.perf_counter(), time.process_time()
            train()
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            best[arm] = (min(best[arm][0], wall), min(best[arm][1], cpu))
    return best


def _plain_opacus_loop(config: SpeedConfig, x: torch.Tensor, y: torch.Tensor) -> torch.nn.Module:
    """DP-SGD as the Opacus tutorials write it: ``PrivacyEngine``, a data loader, and a loop."""
    training = config.training(PRIVATE)
    module = MLP(config.widths).module(MLP(config.widths).initial(torch.Generator())).to(x.device)
    optimizer = torch.optim.SGD(
        module.parameters(), lr=training.learning_rate, momentum=training.momentum
    )
    loader = DataLoader(TensorDataset(x, y.float()), batch_size=config.batch_size)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about secure random numbers and hooks
        wrapped: Any = PrivacyEngine().make_private(
            module=module,
            optimizer=optimizer,
            data_loader=loader,
            noise_multiplier=training.noise_multiplier,
            max_grad_norm=training.clip_norm or 0.0,
        )
        private, private_optimizer, poisson_loader = wrapped
        for _ in range(config.epochs):
            for records, labels in poisson_loader:
                private_optimizer.zero_grad()
                binary_cross_entropy_with_logits(private(records)[:, 0], labels).backward()
                private_optimizer.step()
    return module
