"""Train many MLPs of one shape at once, as one matrix of parameters, with or without DP-SGD."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim.adam import adam

from paperlib.core import check_at_least, check_choice
from paperlib.io.progress import progress_bar
from paperlib.models import MLP, margin_loss
from paperlib.models.devices import check_labels, default_device
from paperlib.training.batches import (
    Examples,
    NoiseStreams,
    check_examples,
    check_records,
    generator,
    poisson_batches,
    shuffled,
)
from paperlib.training.config import TrainingConfig
from paperlib.training.private import ghost

# Numbers in one block of a forward pass over many records: 64 MiB in float32.
_BLOCK = 2**24
_ADAM: Mapping[str, Any] = {  # the defaults of torch.optim.Adam, and its fused kernel
    "beta1": 0.9,
    "beta2": 0.999,
    "eps": 1e-8,
    "weight_decay": 0.0,
    "amsgrad": False,
    "maximize": False,
    "foreach": False,
    "fused": True,
}


class DivergenceWarning(RuntimeWarning):
    """Some models of an ensemble ended with parameters that are not finite; the others are fine."""


@dataclass(frozen=True, kw_only=True, eq=False)
class MLPEnsemble:
    """Trained MLPs of one shape, in the order of their configs.

    Attributes:
        parameters: Shape (K, size), laid out as ``MLP.views`` reads them.
        diverged: Models whose parameters are not finite, with the epoch, from 1; their logits are
            NaN.
    """

    configs: tuple[TrainingConfig, ...]
    parameters: Tensor
    diverged: dict[int, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.configs)

    @property
    def mlp(self) -> MLP:
        """The shape of all models."""
        return MLP(self.configs[0].widths, self.configs[0].activation)

    def model(self, index: int) -> nn.Module:
        """Model ``index`` as a module of its own."""
        return self.mlp.module(self.parameters[range(len(self))[index]])

    def logits(self, x: Any) -> Tensor:
        """Logits of every model on every record (n, inputs), shape (K, n, outputs), on the models'
        device.
        """
        return torch.cat([self._forward(block) for block in self._blocks(x)], dim=1)

    def margin_losses(self, x: Any, y: Any) -> np.ndarray:
        """``paperlib.models.margin_loss`` of every model on every record, float64, shape (K, n)."""
        return self._map(x, y, margin_loss)

    def accuracies(self, x: Any, y: Any) -> np.ndarray:
        """Share of the records that each model gets right, shape (K,)."""

        def is_right(logits: Tensor, labels: Tensor) -> Tensor:
            if logits.shape[-1] == 1:
                return (logits[..., 0] > 0) == (labels.to(logits.device) == 1)
            return logits.argmax(-1) == labels.to(logits.device)

        return self._map(x, y, is_right).mean(axis=1)

    def _map(self, x: Any, y: Any, function: Callable[[Tensor, Tensor], Tensor]) -> np.ndarray:
        labels, blocks = check_labels(y, torch.iinfo(torch.int32).max, len(x)), self._blocks(x)
        pairs = zip(blocks, labels.split([len(block) for block in blocks]), strict=True)
        return np.concatenate([function(self._forward(a), b).cpu().numpy().T for a, b in pairs]).T

    def _blocks(self, x: Any) -> Sequence[Tensor]:
        """Records that are answered at a time, so that memory stays bounded."""
        records = check_records(x, self.mlp.inputs).to(self.parameters.device)
        return records.split(max(1, _BLOCK // (len(self) * max(self.mlp.widths))))

    @torch.inference_mode()
    def _forward(self, records: Tensor) -> Tensor:
        mlp = self.mlp
        layers, copies = mlp.views(self.parameters), records.expand(len(self), *records.shape)
        return ghost.forward(layers, copies, mlp.activation)[1]


def fit_ensemble(
    configs: Sequence[TrainingConfig],
    x: Any,
    y: Any,
    *,
    device: torch.device | str | None = None,
    precision: str = "float32",
    chunk: int | None = None,
    threads: int = 1,
    progress: bool = True,
) -> MLPEnsemble:
    """Train one MLP for each config on the same records.

    Guarantee:
        A model depends on its own config, the records, the kind of device and ``precision`` alone,
        up to float rounding: it is the model that ``fit`` (or a call with this config alone)
        trains. Under DP-SGD every record is drawn by its own coin and no draw is cut short. Configs
        equal in all but their epochs are trained once.

    Args:
        configs: Configs of equal ``widths`` and ``activation``; those equal in ``batch_key`` too
            are stacked.
        x: Records, shape (n, widths[0]), finite.
        y: Class numbers, shape (n,); 0 or 1 for one output.
        device: None takes CUDA where there is one, else the CPU.
        precision: "float32", or "bfloat16" to round the inputs of matrix products (parameters stay
            float32; not with DP-SGD, whose clipping would be off by the rounding).
        chunk: Models in a stack, 1 or more; None takes the fastest by measurement.
        threads: Stacks trained at the same time on the CPU, 1 or more. Set it to the number of
            cores only if each stack's own arithmetic is held to one (``OMP_NUM_THREADS=1``).

    Raises:
        ValueError: No configs, configs of several widths or activations, or data that do not fit
            them.

    Warns:
        DivergenceWarning: Some models' parameters are not finite; the others are not affected.

    >>> config = TrainingConfig(widths=(2, 4, 1), epochs=1, batch_size=2, learning_rate=0.1)
    >>> models = fit_ensemble([config], [[0.0, 1.0], [1.0, 0.0]], [0, 1], device="cpu")
    >>> models.logits([[1.0, 1.0]]).shape
    torch.Size([1, 1, 1])
    """
    check_choice("precision", precision, ("float32", "bfloat16"))
    check_at_least(1, threads=threads, chunk=1 if chunk is None else chunk)
    if precision != "float32" and any(config.is_private for config in configs):
        raise ValueError(f"precision: expected float32 with DP-SGD, got {precision!r}")
    if len(shapes := {(config.widths, config.activation) for config in configs}) != 1:
        raise ValueError(
            "configs: expected one or more, all of the same widths and activation, got "
            f"{sorted(shapes)}"
        )
    mlp = MLP(*shapes.pop())
    place = default_device(device)
    data = check_examples(x, y, classes=mlp.classes, device=place, width=mlp.inputs)
    parameters = torch.empty(len(configs), mlp.size, device=place)
    alike: dict[TrainingConfig, list[int]] = {}
    for index, config in enumerate(configs):
        alike.setdefault(replace(config, epochs=0), []).append(index)
    # Of configs that differ in their epochs alone the longest is trained, and the others on the
    # way.
    paths = {max(path, key=lambda index: configs[index].epochs): path for path in alike.values()}
    epochs = sum(configs[index].epochs for index in paths)
    bar = progress_bar(epochs, label="training", unit="epoch", show=progress)

    def train(part: list[int]) -> dict[int, int]:
        chosen = [configs[index] for index in part]
        stack = MLPStack(mlp, chosen, data, getattr(torch, precision))

        def keep(epoch: int, count: int) -> None:
            if epoch:
                bar.update(count)
            for model, index in enumerate(part[:count]):
                for at in paths[index]:
                    if configs[at].epochs == epoch:
                        parameters[at] = stack.parameters[model]

        with torch.no_grad():
            keep(0, len(part))
            diverged = train_stack(stack, chosen, data, on_epoch=keep)
        return {
            at: epoch
            for model, epoch in diverged.items()
            for at in paths[part[model]]
            if epoch <= configs[at].epochs
        }

    by_key: dict[Any, list[int]] = {}
    for index in paths:
        by_key.setdefault(configs[index].batch_key, []).append(index)
    parts: list[list[int]] = []
    for indices in by_key.values():  # those that train together, most epochs first
        indices.sort(key=lambda index: (-configs[index].epochs, configs[index].learning_rate))
        # Measured: a core is fastest with some 1,000 records in a step, a GPU with all it can get.
        few = min(16, max(2, 1024 // configs[indices[0]].batch_size))
        size = chunk or (512 if place.type == "cuda" else few)
        parts += [indices[start : start + size] for start in range(0, len(indices), size)]
    with bar, ExitStack() as stack:
        parallel = threads > 1 and place.type == "cpu"
        mapped = stack.enter_context(ThreadPoolExecutor(threads)).map if parallel else map
        results = list(mapped(train, parts))
    if diverged := dict(sorted(item for part in results for item in part.items())):
        named = ", ".join(f"{model} (epoch {epoch})" for model, epoch in diverged.items())
        message = (
            f"{len(diverged)} of {len(configs)} models diverged: {named}; lower their learning rate"
        )
        warnings.warn(message, DivergenceWarning, stacklevel=2)
    return MLPEnsemble(configs=tuple(configs), diverged=diverged, parameters=parameters)


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
            # Of clipped gradients and noise: as in TensorFlow Privacy for groups, as in Opacus for
            # examples.
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
        """Gradients (count, size) on (count, B, inputs) and (count, B); with DP-SGD where
        ``present``.
        """
        gradients = self._gradients[: self._count]
        if present is not None and self._noise is not None:
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
                share = (
                    ghost.clip_factors(ghost.square_norms(inputs, deltas, groups), clip)
                    / self._divisor
                )
                each = share.repeat_interleave(x.shape[1] // share.shape[1], dim=1)[..., None]
                ghost.write_gradients(self._slots, inputs, [delta.mul_(each) for delta in deltas])
            gradients.addcmul_(self._noise.next(), self._noise_scale[: self._count])
            return gradients
        layers, activation = self._layers, self._mlp.activation
        if self._dtype != torch.float32:
            layers = self._mlp.views(self.parameters[: self._count].to(self._dtype))
        inputs, logits = ghost.forward(layers, x.to(self._dtype), activation)
        top = ghost.loss_derivative(logits, y).div_(y.shape[1])
        ghost.write_gradients(
            self._slots, inputs, ghost.derivatives(layers, inputs, top, activation)
        )
        return gradients


def train_stack(
    stack: MLPStack,
    configs: Sequence[TrainingConfig],
    data: Examples,
    *,
    on_epoch: Callable[[int, int], object],
) -> dict[int, int]:
    """Train a stack in place, most epochs first; returns models that diverged, with the epoch, from
    1.
    """
    optimizer = StackedOptimizer(configs, stack.parameters)
    diverged: dict[int, int] = {}
    for epoch in range(configs[0].epochs):
        active = [config for config in configs if config.epochs > epoch]
        count = len(active)
        stack.start(epoch, count)
        for records, present in _epoch_batches(active, epoch, data):
            taken = records.flatten()
            x, y = (
                one.index_select(0, taken).unflatten(0, records.shape) for one in (data.x, data.y)
            )
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
    rate, steps = config.sampling_rate(examples), config.steps_per_epoch(examples)
    draw = partial(poisson_batches, rate=rate, steps=steps, shuffle=config.groups is not None)
    drawn = [draw(model.seed, epoch, examples) for model in active]
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
    """``torch.optim.SGD`` and ``torch.optim.Adam`` for many models, one row (K, size) and rate for
    each.
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
            state = [self._first[rows]], [self._second[rows]], [], [self._steps.clone()]
            adam([self._parameters[rows]], [gradients[rows]], *state, lr=rate, **_ADAM)
        self._steps += 1
