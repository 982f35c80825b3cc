"""The training loop of a stack of models: which records come next, who has diverged, and the optimizers."""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

import numpy as np
import torch
from torch import Tensor
from torch.optim.adam import adam

from paperlib.training.batches import Examples, poisson_batches, shuffled
from paperlib.training.config import TrainingConfig
from paperlib.training.many.stacks import MLPStack


def train_stack(
    stack: MLPStack,
    configs: Sequence[TrainingConfig],
    data: Examples,
    *,
    on_epoch: Callable[[int, int], object],
) -> dict[int, int]:
    """Train a stack in place, most epochs first; returns models that diverged, with the epoch, from 1."""
    optimizer = StackedOptimizer(configs, stack.parameters)
    diverged: dict[int, int] = {}
    for epoch in range(configs[0].epochs):
        active = [config for config in configs if config.epochs > epoch]
        count = len(active)
        stack.start(epoch, count)
        for records, present in _epoch_batches(active, epoch, data):
            taken = records.flatten()
            x, y = (one.index_select(0, taken).unflatten(0, records.shape) for one in (data.x, data.y))
            optimizer.step(stack.gradients(x, y, present), count)
        finite = torch.isfinite(stack.parameters[:count]).all(1)
        for model in (~finite).nonzero().flatten().tolist():
            diverged.setdefault(model, epoch + 1)
        on_epoch(epoch + 1, count)
    return diverged


def _epoch_batches(
    active: Sequence[TrainingConfig], epoch: int, data: Examples
) -> Iterator[tuple[Tensor, Tensor | None]]:
    """The record numbers of each step, (count, B), and for DP-SGD which of them count."""
    config, examples = active[0], len(data)
    if not config.is_private:
        orders = np.stack([shuffled(model.seed, epoch, examples) for model in active])
        for records in torch.from_numpy(orders).to(data.y.device).split(config.batch_size, dim=1):
            yield records, None
        return
    drawn = [
        poisson_batches(
            model.seed,
            epoch,
            examples,
            rate=config.sampling_rate(examples),
            steps=config.steps_per_epoch(examples),
            shuffle=config.groups is not None,
        )
        for model in active
    ]
    # No record drawn is ever left out: the width of a step is the longest batch of its models.
    widths = np.max([np.diff(batches.starts) for batches in drawn], axis=0)
    table = np.stack([batches.padded(max(1, int(widths.max()))) for batches in drawn])
    places = torch.from_numpy(table).to(data.y.device)
    for step, width in enumerate(widths.tolist()):
        # The batch is dealt into groups like cards, so that their sizes differ by one at most.
        records, groups = places[:, step, : max(1, width)], config.groups or 1
        padded = torch.nn.functional.pad(records, (0, -records.shape[1] % groups), value=-1)
        dealt = padded.unflatten(1, (-1, groups)).transpose(1, 2).flatten(1)
        yield dealt.clamp(min=0), dealt >= 0


class StackedOptimizer:
    """``torch.optim.SGD`` and ``torch.optim.Adam`` for many models, one row (K, size) and rate for each."""

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
        if not self._adam:
            velocity = self._first[:count]
            velocity.mul_(self._momenta[:count]).add_(gradients)
            self._parameters[:count].addcmul_(velocity, self._rates[:count], value=-1)
            return
        start = 0
        for rate, run in groupby(config.learning_rate for config in self._configs[:count]):
            rows = slice(start, start + len(list(run)))
            start = rows.stop
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
