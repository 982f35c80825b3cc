"""Many MLPs of one shape as one matrix of parameters: gradients, training loop and optimizers."""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

import numpy as np
import torch
from torch import Tensor
from torch.optim.adam import adam

from paperlib.models import MLP
from paperlib.training.batches import Examples, NoiseStreams, generator, poisson_batches, shuffled
from paperlib.training.config import TrainingConfig
from paperlib.training.private import ghost


class MLPStack:
    """Parameters and gradients of K MLPs as two (K, size) matrices, with their layers as views."""

    def __init__(
        self, mlp: MLP, configs: Sequence[TrainingConfig], data: Examples, dtype: torch.dtype
    ) -> None:
        self._mlp, self._dtype = mlp, dtype
        initial = [mlp.initial(generator(config.seed, "initial")) for config in configs]
        self.parameters = torch.stack(initial).to(data.x.device)
        self._gradients = torch.zeros_like(self.parameters)
        self._noise: NoiseStreams | None = None
        if configs[0].is_private:
            self._groups = configs[0].groups
            # Of clipped gradients and noise: as in TensorFlow Privacy for groups, as in Opacus for examples.
            self._divisor = self._groups or configs[0].expected_batch(len(data))
            norms = [config.clip_norm or 0.0 for config in configs]
            noise = [config.noise_multiplier for config in configs]
            scales = [one * norm / self._divisor for one, norm in zip(noise, norms, strict=True)]
            self._norms = torch.tensor(norms, device=data.x.device)[:, None]
            self._noise_scale = torch.tensor(scales, device=data.x.device)[:, None]
            self._noise = NoiseStreams([config.seed for config in configs], mlp.size, data.x.device)

    def start(self, epoch: int, count: int) -> None:
        """Begin an epoch in which the first ``count`` models are trained."""
        self._count = count
        self._layers = self._mlp.views(self.parameters[:count])
        self._slots = self._mlp.views(self._gradients[:count])
        if self._noise is not None:
            self._noise.start(epoch, count)

    def gradients(self, x: Tensor, y: Tensor, present: Tensor | None) -> Tensor:
        """Gradients (count, size) on (count, B, inputs) and (count, B); with DP-SGD where ``present``."""
        gradients = self._gradients[: self._count]
        if present is not None and self._noise is not None:
            self._private(x, y, present, self._noise, gradients)
            return gradients
        layers, activation = self._layers, self._mlp.activation
        if self._dtype != torch.float32:
            layers = self._mlp.views(self.parameters[: self._count].to(self._dtype))
        inputs, logits = ghost.forward(layers, x.to(self._dtype), activation)
        top = ghost.loss_derivative(logits, y).div_(y.shape[1])
        ghost.write_gradients(self._slots, inputs, ghost.derivatives(layers, inputs, top, activation))
        return gradients

    def _private(self, x: Tensor, y: Tensor, present: Tensor, noise: NoiseStreams, gradients: Tensor) -> None:
        inputs, logits = ghost.forward(self._layers, x, self._mlp.activation)
        top = ghost.loss_derivative(logits, y).mul_(present[..., None])
        clip, groups = self._norms[: self._count], self._groups
        if groups is not None:  # each record's share of its group's average
            sizes = present.unflatten(1, (groups, -1)).sum(-1).clamp(min=1)
            top = top.unflatten(1, (groups, -1)).div_(sizes[..., None, None]).flatten(1, 2)
        deltas = ghost.derivatives(self._layers, inputs, top, self._mlp.activation)
        if groups == 1:  # The only group's gradient is formed anyway.
            ghost.write_gradients(self._slots, inputs, deltas)
            gradients.mul_(ghost.clip_factors(gradients.square().sum(1, keepdim=True), clip))
        else:
            share = ghost.clip_factors(ghost.square_norms(inputs, deltas, groups), clip) / self._divisor
            each = share.repeat_interleave(x.shape[1] // share.shape[1], dim=1)[..., None]
            ghost.write_gradients(self._slots, inputs, [delta.mul_(each) for delta in deltas])
        gradients.addcmul_(noise.next(), self._noise_scale[: self._count])


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
