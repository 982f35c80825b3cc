"""Training steps of language models without DP: cut gradients, and a learning rate that rises and falls."""

import math
from typing import Any

import torch
from torch import Tensor


class ScheduledSteps:
    """Steps whose learning rate rises linearly at first and then falls as a cosine to a tenth.

    Args:
        model: Model in training.
        optimizer: Optimizer of its parameters, with the largest learning rate.
        steps: Number of steps in all.
        rising: Number of steps over which the learning rate rises.
    """

    def __init__(self, model: Any, optimizer: torch.optim.Optimizer, *, steps: int, rising: int) -> None:
        steps, rising = max(1, steps), max(1, rising)

        def share(step: int) -> float:
            return min(1.0, (step + 1) / rising) * (0.55 + 0.45 * math.cos(math.pi * min(1.0, step / steps)))

        self._parameters, self._optimizer = list(model.parameters()), optimizer
        self._schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, share)

    def step(self, loss: Tensor) -> None:
        """Change the parameters by the gradient of the loss of one batch."""
        self._optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self._parameters, 1.0)
        self._optimizer.step()
        self._schedule.step()
