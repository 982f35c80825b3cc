"""How fast models are trained: as a stack, one at a time, and by a plain Opacus loop.

All arms do the same arithmetic on the same synthetic rows, are timed in turn within one process, and
the fastest of several repeats counts: other work on the machine can only slow a repeat down.
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


@dataclass(frozen=True, kw_only=True)
class SpeedConfig:
    """Settings of the timing; the defaults are the paper's Adult model on few rows.

    Attributes:
        widths: Layer widths of the MLP; one output.
        examples: Synthetic rows.
        batch_size: Records in a batch, expected ones under DP-SGD.
        epochs: Epochs of each model, 1 or more.
        models: Numbers of models trained at once.
        optimizer: "adam" (fused) or "sgd" with momentum 0.9, for the plain arms.
        device: "cpu" or "cuda"; empty takes CUDA where there is one.
        threads: Stacks trained side by side on the CPU, each on one core.
        repeats: Number of timings of each arm, 1 or more.
    """

    widths: tuple[int, ...] = (108, 150, 100, 50, 1)
    examples: int = 2000
    batch_size: int = 64
    epochs: int = 2
    models: tuple[int, ...] = (1, 4, 16, 32)
    optimizer: str = "adam"
    device: str = ""
    threads: int = 1
    repeats: int = 3

    def __post_init__(self) -> None:
        if self.widths[-1] != 1:
            raise ValueError(f"widths: expected one output, got {self.widths}")
        for name in ("examples", "batch_size", "epochs", "threads", "repeats"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}: expected 1 or more, got {getattr(self, name)}")
        if not self.models or min(self.models) < 1:
            raise ValueError(f"models: expected numbers of 1 or more, got {self.models}")

    def training(self, task: str) -> TrainingConfig:
        """How one model of ``task`` is trained."""
        private = {"optimizer": "sgd", "momentum": 0.9, "clip_norm": 1.0, "noise_multiplier": 1.0}
        plain = {"optimizer": self.optimizer, "momentum": 0.9 if self.optimizer == "sgd" else 0.0}
        return TrainingConfig(
            widths=self.widths,
            epochs=self.epochs,
            batch_size=self.batch_size,
            learning_rate=0.01,
            **(private if task == PRIVATE else plain),
        )


def synthetic_rows(config: SpeedConfig) -> tuple[np.ndarray, np.ndarray]:
    """Normal features and a label that depends on the first; only their sizes matter for speed."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(config.examples, config.widths[0])).astype(np.float32)
    return x, (x[:, 0] + rng.normal(size=config.examples) > 0).astype(np.int64)


def measure_throughput(config: SpeedConfig) -> pd.DataFrame:
    """Models trained per minute, by task, method and number of models.

    Returns:
        One row for each task ("plain", "DP-SGD"), method and number of models: seconds (wall, the
        fastest repeat), cpu_seconds (of all cores, the least of any repeat), models_per_minute and
        ms_per_model_step (wall), speedup (wall, against one model at a time on one core: ``fit`` for
        plain training, the plain Opacus loop for DP-SGD), speedup_per_core (the same in CPU time,
        which other work on the machine disturbs less; without meaning on a GPU), device, threads.

    >>> tiny = SpeedConfig(widths=(3, 4, 1), examples=32, batch_size=16, models=(2,), repeats=1, device="cpu")
    >>> measure_throughput(tiny)[["task", "method", "models"]].values.tolist()
    [['plain', 'one at a time', 1], ['plain', 'ensemble', 2],
     ['DP-SGD', 'Opacus loop', 1], ['DP-SGD', 'Opacus, bare', 1], ['DP-SGD', 'ensemble', 2]]
    """
    device = config.device or default_device().type
    rows = []
    for task in (PLAIN, PRIVATE):
        times = _fastest(arms(config, task, device), config.repeats)
        baseline, baseline_cpu = next(iter(times.values()))
        for (method, models), (seconds, cpu_seconds) in times.items():
            steps = models * config.training(task).steps(config.examples)
            rows.append(
                {
                    "task": task,
                    "method": method,
                    "models": models,
                    "seconds": seconds,
                    "cpu_seconds": cpu_seconds,
                }
                | {"models_per_minute": 60 * models / seconds, "ms_per_model_step": 1000 * seconds / steps}
                | {
                    "speedup": baseline * models / seconds,
                    "speedup_per_core": baseline_cpu * models / cpu_seconds,
                }
                | {"device": device, "threads": config.threads if method == "ensemble" else 1}
            )
    return pd.DataFrame(rows)


def arms(config: SpeedConfig, task: str, device: str) -> dict[tuple[str, int], Callable[[], object]]:
    """What is timed, the baseline first: (method, models) to a function that trains them."""
    x, y = (torch.from_numpy(values).to(device) for values in synthetic_rows(config))
    training = config.training(task)

    def ensemble(models: int) -> object:
        configs = [replace(training, seed=seed) for seed in range(models)]
        # Every thread needs a stack of its own.
        chunk = min(16, math.ceil(models / config.threads)) if config.threads > 1 else None
        return fit_ensemble(
            configs, x, y, device=device, threads=config.threads, chunk=chunk, progress=False
        ).parameters.sum()

    if task == PLAIN:
        arms = {
            ("one at a time", 1): lambda: fit(
                config.widths, x, y, config=training, device=device, progress=False
            )
        }
    else:
        arms = {
            ("Opacus loop", 1): lambda: plain_opacus_loop(config, x, y),
            ("Opacus, bare", 1): lambda: fit_dp(
                config.widths, x, y, config=training, device=device, progress=False
            ),
        }
    return {
        **arms,
        **{("ensemble", models): lambda models=models: ensemble(models) for models in config.models},
    }


Times = dict[tuple[str, int], tuple[float, float]]


def _fastest(trained: dict[tuple[str, int], Callable[[], object]], repeats: int) -> Times:
    for train in trained.values():
        train()  # The first call includes lazy initialisation.
    best = dict.fromkeys(trained, (math.inf, math.inf))
    for _ in range(repeats):
        for arm, train in trained.items():
            wall, cpu = _seconds(train)
            best[arm] = (min(best[arm][0], wall), min(best[arm][1], cpu))
    return best


def _seconds(train: Callable[[], object]) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    train()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - wall, time.process_time() - cpu


def plain_opacus_loop(config: SpeedConfig, x: torch.Tensor, y: torch.Tensor) -> torch.nn.Module:
    """DP-SGD as the Opacus tutorials write it: ``PrivacyEngine``, a data loader, and a loop."""
    training = config.training(PRIVATE)
    module = MLP(config.widths).module(MLP(config.widths).initial(torch.Generator())).to(x.device)
    optimizer = torch.optim.SGD(module.parameters(), lr=training.learning_rate, momentum=training.momentum)
    loader = DataLoader(TensorDataset(x, y.float()), batch_size=config.batch_size)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about secure random numbers and hooks
        made: Any = PrivacyEngine().make_private(
            module=module,
            optimizer=optimizer,
            data_loader=loader,
            noise_multiplier=training.noise_multiplier,
            max_grad_norm=training.clip_norm or 0.0,
        )
        private, private_optimizer, poisson_loader = made
        for _ in range(config.epochs):
            for records, labels in poisson_loader:
                private_optimizer.zero_grad()
                binary_cross_entropy_with_logits(private(records)[:, 0], labels).backward()
                private_optimizer.step()
    return module
