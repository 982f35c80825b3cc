"""Training steps of language models without DP: cut gradients, and a learning rate that rises and falls."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def scheduled_steps(
    model: Any, optimizer: torch.optim.Optimizer, *, steps: int, rising: int, done: int = 0
) -> Callable[[Tensor], None]:
    """A function that changes the parameters by the gradient of the loss of one batch.

    The optimizer's learning rate is the largest: it rises linearly over ``rising`` of the ``steps``, and then
    falls as a cosine to a tenth. The first ``done`` steps were made before, with the optimizer's present
    state.
    """
    steps, rising = max(1, steps), max(1, rising)

    def share(step: int) -> float:
        return min(1.0, (step + 1) / rising) * (0.55 + 0.45 * math.cos(math.pi * min(1.0, step / steps)))

    parameters = list(model.parameters())
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, share, last_epoch=done - 1)

    def learn(loss: Tensor) -> None:
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        schedule.step()

    return learn
