"""DP-SGD in plain PyTorch, right or with one of the faults that public projects had."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import torch
import yaml
from torch import Tensor
from torch.nn.functional import cross_entropy, linear

_FAULTS = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text("utf-8"))
FAULTS: dict[str, tuple[str, str]] = {
    name: (entry["check"], entry["met"]) for name, entry in _FAULTS.items()
}
"""Faults by name, each with the check that names it, and with where it was met or is discussed."""

TWINS: dict[str, str] = {name: entry["twin"] for name, entry in _FAULTS.items()}
"""Faults by name, each with a training that looks like it and has no fault."""

SOUND = ("", *TWINS.values(), "momentum and schedule", "Adam", "frozen base", "unused parameter")
"""Names of trainings without a fault: the plain one, the twins, and further optimizers and models
that are right.
"""

_WIDTHS = (8, 8, 8, 8, 2)  # of the network, from features to classes
_SIZES = [(after, before) for before, after in pairwise(_WIDTHS)]  # of its weights
_VIEWS = 4  # augmentations of a record
_GROUP = 2  # records whose gradients are accumulated
_MOST_STEPS = 1_000_000  # of a training
_FROZEN = 2  # layers
_UNUSED = 5  # numbers of a parameter that the loss does not use
_SPREAD = 0.1  # added to standard deviations; chosen, as all numbers here
_PUBLIC_MEAN = 0.1
_PUBLIC_DEVIATION = 1.5
_PUBLIC_WEIGHTS = (1.0, 1.5)  # of the two classes
_PATIENCE = 2  # evaluations without a lower loss before a training is stopped


def made_up_records(records: int = 64, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Features, shape (records, 8), and labels 0 or 1 for `train_with_fault`."""
    x = torch.randn(records, _WIDTHS[0], generator=torch.Generator().manual_seed(seed))
    return x, (x[:, 0] + x[:, 1] > 0).long()


@torch.no_grad()
def train_with_fault(
    data: tuple[Tensor, Tensor],
    seed: int,
    fault: str = "",
    *,
    steps: int = 32,
    sampling_rate: float = 0.25,
    clipping_norm: float = 1.0,
    noise_multiplier: float = 1.0,
) -> None:
    """Train a small network by DP-SGD with Poisson sampling, or what ``fault`` makes of it.

    Args:
        data: As of `made_up_records`; a label of -100 gives a gradient of zero.
        seed: Seed of weights, batches and noise.
        fault: A name of ``FAULTS`` or ``SOUND``.
        steps: Steps that the accountant is told; so are the other arguments.

    Raises:
        ValueError: A name that is none of them.

    >>> train_with_fault(made_up_records(), 0, "noise over batch")
    """
    if fault not in (*SOUND, *FAULTS):
        raise ValueError(
            f"fault: expected one of {', '.join(map(repr, (*SOUND, *FAULTS)))}, got {fault!r}"
        )
    torch.manual_seed(seed)  # of weights, batches and, but for some faults, noise
    x, y = data
    weights = [torch.nn.Parameter(torch.randn(size) / size[1] ** 0.5) for size in _SIZES]
    trained, used = _trained_and_used(weights, fault)
    optimizer = _optimizer(trained, fault)
    generator = torch.Generator().manual_seed(seed)
    x = _scaled_inputs(x, fault)
    loss_weights = _loss_weights(y, fault)
    patience = _Patience()
    for step, batch in enumerate(_batches(len(x), steps, sampling_rate, fault)):
        if fault == "empty batches skipped" and not len(batch):
            continue
        rows = _gradients(used, x[batch], y[batch], loss_weights[batch], fault)
        summed = _clipped_sum(rows, clipping_norm, fault)
        noise = noise_multiplier * clipping_norm * _noise(summed, seed, step, fault, generator)
        divisor = _divisor(len(x), len(batch), sampling_rate, fault)
        _set_gradients(trained, _noisy_mean(summed, noise, divisor, fault))
        optimizer.step()
        if fault == "stopped at a set step" and step >= steps // 2:
            return
        if fault == "early stopping" and patience.ends_with(_losses(weights, x, y)[0].mean()):
            return


def _trained_and_used(
    weights: list[torch.nn.Parameter], fault: str
) -> tuple[list[torch.nn.Parameter], list[torch.nn.Parameter]]:
    """The weights that are trained, and those that each of the four layers uses; tied weights are
    trained once and used by two layers.
    """
    if fault.startswith("tied weights"):  # the third layer has the second's weights
        first, second, _, last = weights
        return [first, second, last], [first, second, second, last]
    if fault == "frozen base":
        for weight in weights[:_FROZEN]:
            weight.requires_grad_(False)
        return weights[_FROZEN:], weights
    return weights, weights


def _optimizer(trained: list[torch.nn.Parameter], fault: str) -> torch.optim.Optimizer:
    """The optimizer that is given the released gradients."""
    if fault == "unused parameter":
        trained = [torch.nn.Parameter(torch.ones(_UNUSED)), *trained]
    if fault == "Adam":
        return torch.optim.Adam(trained, lr=0.01)
    if fault != "momentum and schedule":
        return torch.optim.SGD(trained, lr=0.2)
    optimizer = torch.optim.SGD(trained, lr=0.2, momentum=0.9)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=4)
    optimizer.register_step_post_hook(lambda *_: schedule.step())
    return optimizer


def _scaled_inputs(x: Tensor, fault: str) -> Tensor:
    """The features, shape (n, 8), scaled by those of all records, of each record, or by constants;
    as they are for all other names.
    """
    if fault == "data statistics":
        return (x - x.mean(0)) / (x.std(0, correction=0) + _SPREAD)
    if fault == "record statistics":
        return (x - x.mean(1, keepdim=True)) / (x.std(1, correction=0, keepdim=True) + _SPREAD)
    if fault == "public statistics":
        return (x - _PUBLIC_MEAN) / _PUBLIC_DEVIATION
    return x


def _loss_weights(y: Tensor, fault: str) -> Tensor:
    """The weight of each record's loss, shape (n,): by the counts of its class in the data, or by
    constants; 1 for all other names.
    """
    classes = y.clamp(min=0)
    if fault == "weights of private classes":
        counts = torch.bincount(classes[y >= 0], minlength=2).clamp(min=1)
        return (len(y) / 2 / counts)[classes]
    if fault == "weights of public classes":
        return torch.tensor(_PUBLIC_WEIGHTS)[classes]
    return torch.ones(len(y))


def _batches(records: int, steps: int, sampling_rate: float, fault: str) -> Iterator[Tensor]:
    """Indices of the records of each step in turn, by Poisson sampling or, by the fault "shuffled",
    in passes over a shuffled order.
    """
    steps_of_pass = round(1 / sampling_rate)
    if fault == "more steps":
        steps += steps_of_pass
    # Drawn in every training, so that all of them go on with the same random numbers.
    order = torch.randperm(records)
    for step in range(steps):
        if fault != "shuffled":
            yield _poisson_batch(records, sampling_rate, fault)
            continue
        if step % steps_of_pass == 0:
            order = torch.randperm(records)
        yield order.chunk(steps_of_pass)[step % steps_of_pass]


def _poisson_batch(records: int, sampling_rate: float, fault: str) -> Tensor:
    """Indices of the records of one batch, each drawn by itself with the sampling rate, or with
    what a fault makes of it.
    """
    if fault == "two batches joined":  # a record of both is in it once, with the stated chance
        rate = 1 - (1 - sampling_rate) ** 0.5
        return ((torch.rand(records) < rate) | (torch.rand(records) < rate)).nonzero()[:, 0]
    rate = 2 * sampling_rate if fault == "higher sampling rate" else sampling_rate
    batch = (torch.rand(records) < rate).nonzero()[:, 0]
    if fault == "batches in shuffled order":
        return batch[torch.randperm(len(batch))]
    return batch


def _noisy_mean(summed: Tensor, noise: Tensor, divisor: float, fault: str) -> Tensor:
    """The sum of gradients and its noise, divided together or each by itself."""
    if fault == "noise over batch":
        return (summed + noise / divisor) / divisor
    if fault == "noise added to the mean":
        return summed / divisor + noise / divisor
    return (summed + noise) / divisor


def _divisor(records: int, size: int, sampling_rate: float, fault: str) -> float:
    """What the noisy sum of a batch of ``size`` records is divided by: the expected size of a
    batch, or by a fault its own size, or the number of all records.
    """
    if fault == "actual batch size":
        return max(size, 1)
    if fault == "divided by all records":
        return records
    return sampling_rate * records


def _set_gradients(weights: Sequence[Tensor], row: Tensor) -> None:
    """Give each of the weights its own piece of a row of all gradients."""
    pieces = row.split([weight.numel() for weight in weights])
    for weight, piece in zip(weights, pieces, strict=True):
        weight.grad = piece.view_as(weight).clone()


class _Patience:
    """Counts evaluations without a lower loss."""

    def __init__(self) -> None:
        self._best = float("inf")
        self._waited = 0

    def ends_with(self, loss: Tensor) -> bool:
        """Whether this loss is the last that is waited for."""
        value = float(loss)
        self._waited = self._waited + 1 if value >= self._best else 0
        self._best = min(self._best, value)
        return self._waited == _PATIENCE


def _losses(weights: Sequence[Tensor], x: Tensor, y: Tensor) -> tuple[Tensor, list[Tensor]]:
    """The loss of each record, shape (n,), and its gradients: for each layer a row per record,
    shape (n, numbers of the layer). A label of -100 gives a loss and a gradient of 0.
    """
    # By hand, since automatic ones for each record take ten times as long on so small a network.
    inputs = [x]  # of each layer
    for weight in weights[:-1]:
        inputs.append(torch.tanh(linear(inputs[-1], weight)))
    outputs = linear(inputs[-1], weights[-1])
    targets = torch.eye(outputs.shape[1])[y.clamp(min=0)]
    is_labelled = (y >= 0)[:, None]
    # The derivative of the loss by the outputs of each layer, from the last to the first.
    error = (torch.softmax(outputs, 1) - targets) * is_labelled
    rows: list[Tensor] = []
    for weight, layer_inputs in zip(reversed(weights), reversed(inputs), strict=True):
        rows.append((error[:, :, None] * layer_inputs[:, None]).flatten(1))
        error = error @ weight * (1 - layer_inputs**2)  # the slope of tanh follows from its value
    return cross_entropy(outputs, y, reduction="none"), rows[::-1]


def _gradients(
    weights: Sequence[Tensor], x: Tensor, y: Tensor, loss_weights: Tensor, fault: str
) -> list[Tensor]:
    """The gradients of a batch, for each trained layer of shape (rows, numbers of the layer), where
    a row is what is clipped at once: one for each record, but for some faults.

    ``x``, ``y`` and ``loss_weights`` are those of the batch, which may be empty.
    """
    if not len(x):  # a record with a gradient of zero
        x = torch.zeros(1, _WIDTHS[0])
        y = torch.tensor([-100])
        loss_weights = torch.ones(1)
    if fault == "batch statistics":
        x = (x - x.mean(0)) / (x.std(0, correction=0) + _SPREAD)
    if "augmentations" in fault:
        x = torch.cat([x + 0.1 * torch.randn_like(x) for _ in range(_VIEWS)])
        y = y.repeat(_VIEWS)  # all records of the first view, then those of the second, ...
        loss_weights = loss_weights.repeat(_VIEWS)
    layers: list[Tensor] = []
    for rows in _joined_uses(_losses(weights, x, y)[1], fault):
        scaled = rows * loss_weights.repeat(len(rows) // len(loss_weights))[:, None]
        layers.append(_joined_records(scaled, fault))
    return layers


def _clipped_sum(layers: list[Tensor], norm: float, fault: str) -> Tensor:
    """The sum of clipped gradients of a batch, all parameters in one row: by the fault, or by one
    of the twins, which are sound and look like a fault.

    Args:
        layers: Gradients of each layer, a row per record.
        norm: The clipping norm.
        fault: A name of ``FAULTS`` or ``SOUND``; those that do not touch the sum give the plain
            one.
    """
    rows = torch.cat(layers, 1)
    if fault == "clipped after averaging":
        return _clip(rows.mean(0, keepdim=True), norm)[0] * len(rows)
    if fault == "averaged after clipping":  # its twin: the plain sum
        return _clip(rows, norm).mean(0) * len(rows)
    if fault == "accumulated after clipping":  # twin of "accumulated before": the plain sum
        return torch.stack([_clip(group, norm).sum(0) for group in rows.split(_GROUP)]).sum(0)
    if fault == "layer not clipped":
        last = layers[-1].shape[1]
        return torch.cat([_clip(rows[:, :-last], norm), rows[:, -last:]], 1).sum(0)
    if fault == "layers clipped apart":  # its twin: the norm of a record's row is at most ``norm``
        return torch.cat([_clip(layer, norm / len(layers) ** 0.5) for layer in layers], 1).sum(0)
    return _clip(rows, norm).sum(0)


def _joined_uses(layers: list[Tensor], fault: str) -> list[Tensor]:
    """Gradients of the trained layers, from those of each layer, a row per record.

    Tied weights are used by two layers: their two gradients are summed or, by the fault, stand one
    below the other as if of two records, each of which is then clipped alone.
    """
    if fault == "tied weights":  # the twin
        return [layers[0], layers[1] + layers[2], layers[3]]
    if fault == "tied weights clipped twice":
        return [
            torch.cat([layers[0], torch.zeros_like(layers[0])]),
            torch.cat([layers[1], layers[2]]),
            torch.cat([layers[3], torch.zeros_like(layers[3])]),
        ]
    if fault == "frozen base":
        return layers[_FROZEN:]
    return layers


def _joined_records(rows: Tensor, fault: str) -> Tensor:
    """Gradients of one layer as the rows that are clipped: one for each record or, by a fault, one
    for each group of records, or for each view (augmentation) of a record.
    """
    if fault == "averaged augmentations":  # twin of "augmentations summed", which clips each view
        return rows.view(_VIEWS, -1, rows.shape[1]).mean(0)
    if fault == "accumulated before clipping":
        return torch.stack([group.sum(0) for group in rows.split(_GROUP)])
    return rows


def _clip(rows: Tensor, norm: float) -> Tensor:
    """Rows scaled to at most this norm."""
    return rows * (norm / (rows.norm(dim=1, keepdim=True) + 1e-6)).clamp(max=1)


def _noise(summed: Tensor, seed: int, step: int, fault: str, generator: torch.Generator) -> Tensor:
    """Standard normal noise for the clipped sum of gradients, drawn as the fault or its twin does.

    The sum is one row, shape (numbers,): the trained layers' weights one after the other, from the
    first layer on. `train_with_fault` seeds torch's own generator, from which batches and most
    noise come, and ``generator``, each by the seed of the training.
    """
    # Faults: one seed for all steps; the steps' numbers as seeds, which every training shares.
    if fault == "same noise in each step":
        return torch.randn(summed.shape, generator=torch.Generator().manual_seed(seed))
    if fault == "fixed noise seed":
        return torch.randn(summed.shape, generator=torch.Generator().manual_seed(step))
    # Their sound twins: a seed of training and step, and one generator for all steps.
    if fault == "noise seed of each step":
        seed_of_step = seed * _MOST_STEPS + step
        return torch.randn(summed.shape, generator=torch.Generator().manual_seed(seed_of_step))
    if fault == "one generator of noise":
        return torch.randn(summed.shape, generator=generator)
    # All other names: faults that lie elsewhere, and trainings without one.
    noise = torch.randn(summed.shape)
    if fault == "noise from the last number on":  # the twin of the next one
        return noise.flip(0)
    if fault == "same noise in two layers":  # the second layer is no larger than the first
        first, second = (after * before for after, before in _SIZES[:2])
        noise[first : first + second] = noise[:second]
    return noise
