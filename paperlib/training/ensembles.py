"""Train many MLPs of one shape at once, as one matrix of parameters, with or without DP-SGD."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim.adam import adam
from tqdm.std import tqdm

from paperlib.core.checks import check_at_least, check_choice
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
        """Model ``index`` as a module of its own; an IndexError where there is none."""
        return self.mlp.module(self.parameters[range(len(self))[index]])

    def logits(self, x: Any) -> Tensor:
        """Logits of every model on every record (n, inputs), shape (K, n, outputs), on the models'
        device; a ValueError for records that are not finite or of another width.
        """
        return torch.cat([self._forward(block) for block in self._blocks(x)], dim=1)

    def margin_losses(self, x: Any, y: Any) -> np.ndarray:
        """``paperlib.models.margin_loss`` of each of K models on every record, nats, float64, shape
        (K, n).

        Raises:
            ValueError: Records (n, inputs) or class numbers (n,) that do not fit.
        """
        return self._map(x, y, margin_loss)

    def accuracies(self, x: Any, y: Any) -> np.ndarray:
        """Share of the records that each model gets right, shape (K,).

        Raises:
            ValueError: Records (n, inputs) or class numbers (n,) that do not fit.
        """

        def is_right(logits: Tensor, labels: Tensor) -> Tensor:
            """Whether each model has each record (b,) in its class, (K, b); a single logit is the
            log-odds of class 1.
            """
            if logits.shape[-1] == 1:
                return (logits[..., 0] > 0) == (labels.to(logits.device) == 1)
            return logits.argmax(-1) == labels.to(logits.device)

        return self._map(x, y, is_right).mean(axis=1)

    def _map(self, x: Any, y: Any, function: Callable[[Tensor, Tensor], Tensor]) -> np.ndarray:
        """``function``, of logits (K, b, outputs) and labels (b,) to numbers (K, b), block by block
        over all records, (K, n).
        """
        # A class number for each record; whether the models have that class, ``function`` looks.
        labels = check_labels(y, torch.iinfo(torch.int32).max, len(x))
        blocks = self._blocks(x)
        label_blocks = labels.split([len(block) for block in blocks])
        results = [
            function(self._forward(block), block_labels).cpu().numpy().T
            for block, block_labels in zip(blocks, label_blocks, strict=True)
        ]
        return np.concatenate(results).T  # each result has records along the first axis

    def _blocks(self, x: Any) -> Sequence[Tensor]:
        """Records that are answered at a time, so that memory stays bounded, (b, inputs) each."""
        records = check_records(x, self.mlp.inputs).to(self.parameters.device)
        return records.split(max(1, _BLOCK // (len(self) * max(self.mlp.widths))))

    @torch.inference_mode()
    def _forward(self, records: Tensor) -> Tensor:
        """Logits (K, b, outputs) of records (b, inputs)."""
        layers = self.mlp.views(self.parameters)
        copies = records.expand(len(self), *records.shape)
        _, logits = ghost.forward(layers, copies, self.mlp.activation)
        return logits


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
    mlp = _common_mlp(configs)
    device = default_device(device)
    data = check_examples(x, y, classes=mlp.classes, device=device, width=mlp.inputs)
    same_path = _training_paths(configs)
    epochs = sum(configs[longest].epochs for longest in same_path)
    run = _EnsembleRun(
        configs=configs,
        mlp=mlp,
        data=data,
        dtype=getattr(torch, precision),
        same_path=same_path,
        parameters=torch.empty(len(configs), mlp.size, device=device),
        bar=progress_bar(epochs, label="training", unit="epoch", show=progress),
    )
    stacks = _stacks(configs, list(same_path), device, chunk)
    with run.bar:
        diverged = _train_all(run, stacks, threads if device.type == "cpu" else 1)
    if diverged:
        names = ", ".join(f"{model} (epoch {epoch})" for model, epoch in diverged.items())
        message = (
            f"{len(diverged)} of {len(configs)} models diverged: {names}; lower their learning rate"
        )
        warnings.warn(message, DivergenceWarning, stacklevel=2)
    return MLPEnsemble(configs=tuple(configs), diverged=diverged, parameters=run.parameters)


def _common_mlp(configs: Sequence[TrainingConfig]) -> MLP:
    """The shape that all configs have; refuses several shapes, and no config."""
    shapes = {(config.widths, config.activation) for config in configs}
    if len(shapes) != 1:
        raise ValueError(
            "configs: expected one or more, all of the same widths and activation, got "
            f"{sorted(shapes)}"
        )
    return MLP(*shapes.pop())


def _training_paths(configs: Sequence[TrainingConfig]) -> dict[int, list[int]]:
    """Index of each config to train, with the indices of all that its training passes through.

    Of configs that differ in their epochs alone the longest is trained, and the others are its
    parameters on the way.
    """
    equal_but_epochs: dict[TrainingConfig, list[int]] = {}
    for index, config in enumerate(configs):
        equal_but_epochs.setdefault(replace(config, epochs=0), []).append(index)
    paths: dict[int, list[int]] = {}
    for indices in equal_but_epochs.values():
        longest = max(indices, key=lambda index: configs[index].epochs)
        paths[longest] = indices
    return paths


def _stacks(
    configs: Sequence[TrainingConfig],
    indices: Sequence[int],
    device: torch.device,
    chunk: int | None,
) -> list[list[int]]:
    """The indices in stacks of up to ``chunk`` configs of one ``batch_key``; None takes the fastest
    size. In a stack those of most epochs come first, and of these those of one learning rate stand
    together.
    """
    by_key: dict[Any, list[int]] = {}
    for index in indices:
        by_key.setdefault(configs[index].batch_key, []).append(index)
    stacks: list[list[int]] = []
    for group in by_key.values():
        # The models still in training are then always the first; Adam steps once for each rate.
        group.sort(key=lambda index: (-configs[index].epochs, configs[index].learning_rate))
        size = chunk or _fastest_stack(configs[group[0]].batch_size, device)
        stacks += [group[start : start + size] for start in range(0, len(group), size)]
    return stacks


def _fastest_stack(batch_size: int, device: torch.device) -> int:
    """Models in a stack, by measurement."""
    if device.type == "cuda":
        return 512  # a GPU is fastest with all it can get
    return min(16, max(2, 1024 // batch_size))  # a core with some 1,000 records in a step


@dataclass(frozen=True, kw_only=True, eq=False)
class _EnsembleRun:
    """What the stacks of one ensemble share; each writes the rows of its own models alone."""

    configs: Sequence[TrainingConfig]
    mlp: MLP
    data: Examples
    dtype: torch.dtype  # of the inputs of matrix products
    same_path: Mapping[int, list[int]]  # as `_training_paths` returns it
    parameters: Tensor  # of all models, (K, size), written as soon as they are trained
    bar: tqdm

    def train(self, indices: list[int]) -> dict[int, int]:
        """Train the stack of the configs at ``indices``; returns models that diverged, by index,
        with the epoch, from 1.
        """
        stacked = [self.configs[index] for index in indices]
        stack = MLPStack(self.mlp, stacked, self.data, self.dtype)

        def keep(epoch: int, count: int) -> None:
            """Keep the parameters of the first ``count`` models of the stack after an epoch, from
            1; those of epoch 0 are the initial ones.
            """
            if epoch:
                self.bar.update(count)
            for row, index in enumerate(indices[:count]):
                self._keep(index, epoch, stack.parameters[row])

        with torch.no_grad():
            keep(0, len(indices))  # models of no epoch are their initial parameters
            diverged_rows = train_stack(stack, stacked, self.data, on_epoch=keep)
        diverged: dict[int, int] = {}
        for row, epoch in diverged_rows.items():
            for model in self.same_path[indices[row]]:
                if epoch <= self.configs[model].epochs:
                    diverged[model] = epoch
        return diverged

    def _keep(self, index: int, epoch: int, parameters: Tensor) -> None:
        """Copy the parameters to the models on the path of ``index`` that end with this epoch."""
        for model in self.same_path[index]:
            if self.configs[model].epochs == epoch:
                self.parameters[model] = parameters


def _train_all(run: _EnsembleRun, stacks: list[list[int]], threads: int) -> dict[int, int]:
    """Train all stacks, ``threads`` at a time; returns models that diverged, with the epoch."""
    if threads > 1:
        with ThreadPoolExecutor(threads) as pool:
            results = list(pool.map(run.train, stacks))
    else:
        results = [run.train(indices) for indices in stacks]
    return dict(sorted(item for diverged in results for item in diverged.items()))


class MLPStack:
    """Parameters and gradients of K MLPs as two (K, size) matrices, with their layers as views."""

    def __init__(
        self, mlp: MLP, configs: Sequence[TrainingConfig], data: Examples, dtype: torch.dtype
    ) -> None:
        """Models with the initial parameters of their seeds; configs of one ``batch_key``, most
        epochs first.

        ``dtype`` is what the inputs of matrix products are rounded to; DP-SGD stays in float32.
        """
        self._mlp = mlp
        self._dtype = dtype
        initial = [mlp.initial(generator(config.seed, "initial")) for config in configs]
        self.parameters = torch.stack(initial).to(data.x.device)
        self._gradients = torch.zeros_like(self.parameters)
        self._noise: NoiseStreams | None = None
        if configs[0].is_private:
            self._prepare_clipping(configs, data)

    def _prepare_clipping(self, configs: Sequence[TrainingConfig], data: Examples) -> None:
        """Set the models' clipping norms and scales of noise, (K, 1), and their streams of it."""
        device = data.x.device
        self._groups = configs[0].groups
        # What the sum of clipped gradients, and its noise, are divided by: the number of groups as
        # in TensorFlow Privacy, or the expected batch as in Opacus.
        self._divisor = self._groups or configs[0].expected_batch(len(data))
        # Private configs all have a clipping norm: the 0 is for the type checker alone.
        norms = [config.clip_norm or 0.0 for config in configs]
        scales = [
            config.noise_multiplier * norm / self._divisor
            for config, norm in zip(configs, norms, strict=True)
        ]
        self._norms = torch.tensor(norms, device=device)[:, None]
        self._noise_scale = torch.tensor(scales, device=device)[:, None]
        self._noise = NoiseStreams([config.seed for config in configs], self._mlp.size, device)

    def start(self, epoch: int, count: int) -> None:
        """Begin an epoch in which the first ``count`` models are trained."""
        self._count = count
        self._layers = self._mlp.views(self.parameters[:count])
        self._slots = self._mlp.views(self._gradients[:count])
        if self._noise is not None:
            self._noise.start(epoch, count)

    def gradients(self, x: Tensor, y: Tensor, present: Tensor | None) -> Tensor:
        """Gradients of the models in training, (count, size), valid until the next call.

        Args:
            x: Records of each model's batch, (count, B, inputs).
            y: Their class numbers, (count, B).
            present: None for the mean gradient of a batch; for the clipped and noisy one of DP-SGD
                whether a record stands there, (count, B), as its batches differ in length.
        """
        if present is not None and self._noise is not None:
            return self._noisy_gradients(x, y, present, self._noise)
        layers, activation = self._layers, self._mlp.activation
        if self._dtype != torch.float32:
            layers = self._mlp.views(self.parameters[: self._count].to(self._dtype))
        inputs, logits = ghost.forward(layers, x.to(self._dtype), activation)
        top = ghost.loss_derivative(logits, y).div_(y.shape[1])
        deltas = ghost.derivatives(layers, inputs, top, activation)
        ghost.write_gradients(self._slots, inputs, deltas)
        return self._gradients[: self._count]

    def _noisy_gradients(
        self, x: Tensor, y: Tensor, present: Tensor, noise: NoiseStreams
    ) -> Tensor:
        """Sum of the clipped gradients of records, or groups of records, and noise, both divided by
        the expected size of a batch or the number of groups: (count, size).

        ``x`` are (count, B, inputs), ``y`` and ``present`` (count, B): whether a record is there.
        """
        inputs, logits = ghost.forward(self._layers, x, self._mlp.activation)
        # A place without a record has a gradient of 0, which adds nothing to sums and norms.
        top = ghost.loss_derivative(logits, y).mul_(present[..., None])
        if self._groups is not None:
            top = _shares_of_group_averages(top, present, self._groups)
        deltas = ghost.derivatives(self._layers, inputs, top, self._mlp.activation)
        self._write_clipped(inputs, deltas)
        gradients = self._gradients[: self._count]
        gradients.addcmul_(noise.next(), self._noise_scale[: self._count])
        return gradients

    def _write_clipped(self, inputs: Sequence[Tensor], deltas: Sequence[Tensor]) -> None:
        """Write the sum of clipped gradients over the divisor into the matrix of gradients.

        Args:
            inputs, deltas: Of each layer the inputs, and the loss's derivative by its output, (K,
                B, inputs) and (K, B, outputs), as of `ghost.forward` and `ghost.derivatives`.
        """
        norms = self._norms[: self._count]
        if self._groups == 1:  # The only group's gradient is formed anyway; the divisor is 1.
            ghost.write_gradients(self._slots, inputs, deltas)
            gradients = self._gradients[: self._count]
            squares = gradients.square().sum(1, keepdim=True)
            gradients.mul_(ghost.clip_factors(squares, norms))
            return
        squares = ghost.square_norms(inputs, deltas, self._groups)
        factors = ghost.clip_factors(squares, norms) / self._divisor
        # A group's factor is that of each of its records.
        records_each = inputs[0].shape[1] // factors.shape[1]
        by_record = factors.repeat_interleave(records_each, dim=1)[..., None]
        scaled = [delta.mul_(by_record) for delta in deltas]
        ghost.write_gradients(self._slots, inputs, scaled)


def _shares_of_group_averages(top: Tensor, present: Tensor, groups: int) -> Tensor:
    """Each record's derivatives (K, B, outputs) divided by the records present in its group."""
    sizes = present.unflatten(1, (groups, -1)).sum(-1).clamp(min=1)
    return top.unflatten(1, (groups, -1)).div_(sizes[..., None, None]).flatten(1, 2)


def train_stack(
    stack: MLPStack,
    configs: Sequence[TrainingConfig],
    data: Examples,
    *,
    on_epoch: Callable[[int, int], object],
) -> dict[int, int]:
    """Train a stack in place, its configs most epochs first.

    ``on_epoch`` is called after each epoch with its number, from 1, and the number of models, the
    first ones of the stack, that it trained. Returns the rows of models that diverged, with the
    epoch, from 1.
    """
    optimizer = StackedOptimizer(configs, stack.parameters)
    diverged: dict[int, int] = {}
    for epoch in range(configs[0].epochs):
        active = [config for config in configs if config.epochs > epoch]
        count = len(active)
        stack.start(epoch, count)
        for records, present in _epoch_batches(active, epoch, data):
            # (count, B, ...): the records of each model's batch.
            x = data.x.index_select(0, records.flatten()).unflatten(0, records.shape)
            y = data.y.index_select(0, records.flatten()).unflatten(0, records.shape)
            optimizer.step(stack.gradients(x, y, present), count)
        finite = torch.isfinite(stack.parameters[:count]).all(1)
        for row in (~finite).nonzero().flatten().tolist():
            diverged.setdefault(row, epoch + 1)  # the first such epoch stays
        on_epoch(epoch + 1, count)
    return diverged


def _epoch_batches(
    active: Sequence[TrainingConfig], epoch: int, data: Examples
) -> Iterator[tuple[Tensor, Tensor | None]]:
    """The record numbers of each step, (count, B), a row for each model; for DP-SGD also which of
    them stand for a record, (count, B), and else None, as all do.
    """
    if active[0].is_private:
        yield from _poisson_steps(active, epoch, data)
        return
    orders = np.stack([shuffled(config.seed, epoch, len(data)) for config in active])
    batches = torch.from_numpy(orders).to(data.y.device).split(active[0].batch_size, dim=1)
    for records in batches:
        yield records, None


def _poisson_steps(
    active: Sequence[TrainingConfig], epoch: int, data: Examples
) -> Iterator[tuple[Tensor, Tensor]]:
    """Record numbers (count, B) of each step of DP-SGD, and where a record is, (count, B); where
    none is, the number is 0. Records of one group are neighbours.
    """
    config, examples = active[0], len(data)
    draw = partial(
        poisson_batches,
        rate=config.sampling_rate(examples),
        steps=config.steps_per_epoch(examples),
        shuffle=config.groups is not None,
    )
    drawn = [draw(model.seed, epoch, examples) for model in active]
    # No record drawn is ever left out: the width of a step is the longest batch of its models.
    widths = np.max([np.diff(batches.starts) for batches in drawn], axis=0)
    table = np.stack([batches.padded(max(1, int(widths.max()))) for batches in drawn])
    all_records = torch.from_numpy(table).to(data.y.device)  # -1 where there is none
    groups = config.groups or 1
    for step, width in enumerate(widths.tolist()):
        # The batch is dealt into groups like cards, so that their sizes differ by one at most.
        records = all_records[:, step, : max(1, width)]
        padded = torch.nn.functional.pad(records, (0, -records.shape[1] % groups), value=-1)
        dealt = padded.unflatten(1, (-1, groups)).transpose(1, 2).flatten(1)
        yield dealt.clamp(min=0), dealt >= 0


class StackedOptimizer:
    """``torch.optim.SGD`` and ``torch.optim.Adam`` for many models, one row (K, size) and rate for
    each.
    """

    def __init__(self, configs: Sequence[TrainingConfig], parameters: Tensor) -> None:
        """An optimizer of ``parameters`` (K, size), which it changes in place, a config a row."""
        self._configs = list(configs)
        self._parameters = parameters
        device = parameters.device
        self._rates = torch.tensor([[config.learning_rate] for config in configs], device=device)
        self._momenta = torch.tensor([[config.momentum] for config in configs], device=device)
        self._adam = configs[0].optimizer == "adam"
        # Of Adam the running means of the gradients and of their squares; of SGD its velocity, and
        # no second table.
        self._first = torch.zeros_like(parameters)
        self._second = torch.zeros_like(parameters if self._adam else parameters[:0])
        self._steps = torch.zeros((), device=device)  # of Adam, done so far

    def step(self, gradients: Tensor, count: int) -> None:
        """Update the first ``count`` models, by their gradients of shape (count, size)."""
        if self._adam:
            self._adam_step(gradients, count)
            return
        velocity = self._first[:count]
        velocity.mul_(self._momenta[:count]).add_(gradients)
        self._parameters[:count].addcmul_(velocity, self._rates[:count], value=-1)

    def _adam_step(self, gradients: Tensor, count: int) -> None:
        """A step of Adam for the first ``count`` models, neighbours of one rate together."""
        start = 0
        for rate, neighbours in groupby(config.learning_rate for config in self._configs[:count]):
            rows = slice(start, start + len(list(neighbours)))
            start = rows.stop
            adam(
                [self._parameters[rows]],
                [gradients[rows]],
                exp_avgs=[self._first[rows]],
                exp_avg_sqs=[self._second[rows]],
                max_exp_avg_sqs=[],
                # The fused kernel counts the step itself, hence a copy of the count.
                state_steps=[self._steps.clone()],
                lr=rate,
                **_ADAM,
            )
        self._steps += 1
