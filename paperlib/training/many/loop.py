"""The training loop of a stack of models.

The stack turns one batch for each model into gradients; the loop knows which records come next, when a
model has had its epochs, and when one has diverged.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from paperlib.training.batches import poisson_batches, shuffled
from paperlib.training.config import TrainingConfig
from paperlib.training.examples import Examples
from paperlib.training.many.stacks import MLPStack
from paperlib.training.optimizers import StackedOptimizer

Steps = Iterator[tuple[Tensor, Tensor | None]]


def train_stack(
    stack: MLPStack,
    configs: Sequence[TrainingConfig],
    data: Examples,
    *,
    on_epoch: Callable[[int, int], object],
) -> dict[int, int]:
    """Train a stack in place; ``on_epoch`` gets each epoch that is over, from 1, and how many models had it.

    Configs are equal in ``batch_key``, those with most epochs first.

    Returns:
        Models whose parameters stopped being finite, with the epoch (from 1) where that was seen.
    """
    optimizer = StackedOptimizer(configs, stack.parameters)
    diverged: dict[int, int] = {}
    for epoch in range(configs[0].epochs):
        active = [config for config in configs if config.epochs > epoch]
        count = len(active)
        stack.start(epoch, count)
        for records, present in _epoch_batches(active, epoch, data):
            taken = records.flatten()
            x = data.x.index_select(0, taken).unflatten(0, records.shape)
            y = data.y.index_select(0, taken).unflatten(0, records.shape)
            optimizer.step(stack.gradients(x, y, present), count)
        finite = torch.isfinite(stack.parameters[:count]).all(1)
        for model in (~finite).nonzero().flatten().tolist():
            diverged.setdefault(model, epoch + 1)
        on_epoch(epoch + 1, count)
    return diverged


def _epoch_batches(active: Sequence[TrainingConfig], epoch: int, data: Examples) -> Steps:
    """Yield the record numbers of each step, (count, B), and for DP-SGD which of them count.

    No record drawn is ever left out: the width of a step is the longest batch of its models.
    """
    if active[0].is_private:
        yield from _poisson_steps(active, epoch, data)
        return
    orders = np.stack([shuffled(config.seed, epoch, len(data)) for config in active])
    for records in torch.from_numpy(orders).to(data.y.device).split(active[0].batch_size, dim=1):
        yield records, None


def _poisson_steps(active: Sequence[TrainingConfig], epoch: int, data: Examples) -> Steps:
    config, examples = active[0], len(data)
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
    widths = np.max([np.diff(batches.starts) for batches in drawn], axis=0)
    table = np.stack([batches.padded(max(1, int(widths.max()))) for batches in drawn])
    places = torch.from_numpy(table).to(data.y.device)
    for step, width in enumerate(widths.tolist()):
        records = _dealt(places[:, step, : max(1, width)], config.groups or 1)
        yield records.clamp(min=0), records >= 0


def _dealt(records: Tensor, groups: int) -> Tensor:
    """Deal the batch into groups like cards, so that their sizes differ by one at most."""
    padded = torch.nn.functional.pad(records, (0, -records.shape[1] % groups), value=-1)
    return padded.unflatten(1, (-1, groups)).transpose(1, 2).flatten(1)
