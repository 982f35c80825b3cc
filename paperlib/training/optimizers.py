"""SGD with momentum and Adam on stacked parameters, with a learning rate for each model."""

from collections.abc import Sequence
from itertools import groupby

import torch
from torch import Tensor
from torch.optim.adam import adam

from paperlib.training.config import TrainingConfig


class StackedOptimizer:
    """The update rules of ``torch.optim.SGD`` and ``torch.optim.Adam`` for many models at once.

    Parameters have shape (K, size), one row for each model; only the first ``count`` rows are updated, so
    that models which finish early stay as they are.
    """

    def __init__(self, configs: Sequence[TrainingConfig], parameters: Tensor) -> None:
        self._configs, self._parameters = list(configs), parameters
        device = parameters.device
        self._rates = torch.tensor([[config.learning_rate] for config in configs], device=device)
        self._momenta = torch.tensor([[config.momentum] for config in configs], device=device)
        self._adam = configs[0].optimizer == "adam"
        self._first = torch.zeros_like(parameters)
        self._second = torch.zeros_like(parameters if self._adam else parameters[:0])
        self._steps = torch.zeros((), device=device)

    def step(self, gradients: Tensor, count: int) -> None:
        """Update the first ``count`` models, by their gradients of shape (count, size)."""
        if self._adam:
            self._step_adam(gradients, count)
        else:
            self._step_sgd(gradients, count)

    def _step_sgd(self, gradients: Tensor, count: int) -> None:
        velocity = self._first[:count]
        velocity.mul_(self._momenta[:count]).add_(gradients)
        self._parameters[:count].addcmul_(velocity, self._rates[:count], value=-1)

    def _step_adam(self, gradients: Tensor, count: int) -> None:
        for rate, rows in self._equal_rates(count):
            # The fused kernel takes one rate and counts the step itself, hence a copy of the count.
            adam(
                [self._parameters[rows]],
                [gradients[rows]],
                [self._first[rows]],
                [self._second[rows]],
                [],
                [self._steps.clone()],
                foreach=False,
                fused=True,
                amsgrad=False,
                beta1=0.9,
                beta2=0.999,
                lr=rate,
                weight_decay=0.0,
                eps=1e-8,
                maximize=False,
            )
        self._steps += 1

    def _equal_rates(self, count: int) -> list[tuple[float, slice]]:
        runs, start = [], 0
        for rate, run in groupby(self._configs[:count], key=lambda config: config.learning_rate):
            end = start + len(list(run))
            runs.append((rate, slice(start, end)))
            start = end
        return runs
