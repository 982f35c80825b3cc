"""SGD with momentum and Adam on stacked parameters, with a learning rate for each model."""

from collections.abc import Sequence
from itertools import groupby

import torch
from torch import Tensor
from torch.optim.adam import adam

from paperlib.training.config import TrainingConfig


class StackedOptimizer:
    """The update rules of ``torch.optim.SGD`` and ``torch.optim.Adam`` for many models at once.

    Each parameter tensor has shape (K, ...): one row for each model, and only the first ``count`` rows
    are updated, so that models which finish early stay as they are.
    """

    def __init__(self, configs: Sequence[TrainingConfig], parameters: Sequence[Tensor]) -> None:
        self._configs = list(configs)
        self._parameters = [tensor.flatten(1) for tensor in parameters]
        device = parameters[0].device
        self._rates = torch.tensor([[config.learning_rate] for config in configs], device=device)
        self._momenta = torch.tensor([[config.momentum] for config in configs], device=device)
        self._adam = configs[0].optimizer == "adam"
        self._first = [torch.zeros_like(tensor) for tensor in self._parameters]
        self._second = [torch.zeros_like(tensor) for tensor in self._parameters if self._adam]
        self._steps = torch.zeros((), device=device)

    def step(self, gradients: Sequence[Tensor], count: int) -> None:
        """Update the first ``count`` models.

        Args:
            gradients: One tensor for each parameter tensor, shape (count, ...).
            count: Models still in training.
        """
        flat = [tensor.flatten(1) for tensor in gradients]
        if self._adam:
            self._step_adam(flat, count)
        else:
            self._step_sgd(flat, count)

    def _step_sgd(self, gradients: list[Tensor], count: int) -> None:
        rates, momenta = self._rates[:count], self._momenta[:count]
        for tensor, first, gradient in zip(self._parameters, self._first, gradients, strict=True):
            velocity = first[:count]
            velocity.mul_(momenta).add_(gradient)
            tensor[:count].addcmul_(velocity, rates, value=-1)

    def _step_adam(self, gradients: list[Tensor], count: int) -> None:
        for rate, rows in self._equal_rates(count):
            # The fused kernel takes one rate and counts the step itself, hence a copy of the count.
            adam(
                [tensor[rows] for tensor in self._parameters],
                [gradient[rows] for gradient in gradients],
                [first[rows] for first in self._first],
                [second[rows] for second in self._second],
                [],
                [self._steps.clone() for _ in gradients],
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
        found, start = [], 0
        for rate, run in groupby(self._configs[:count], key=lambda config: config.learning_rate):
            end = start + len(list(run))
            found.append((rate, slice(start, end)))
            start = end
        return found
