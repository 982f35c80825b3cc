"""DP-SGD in plain PyTorch, right or with one of the faults that public projects had."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import torch
import yaml
from torch import Tensor
from torch.nn.functional import cross_entropy, linear

SOUND = ("", "tied weights", "averaged augmentations")
"""Names of trainings without a fault: the plain one, and the twins of two faults."""

_FAULTS = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text("utf-8"))
FAULTS: dict[str, tuple[str, str]] = {
    name: (entry["check"], entry["met"]) for name, entry in _FAULTS.items()
}
"""Faults by name, each with the check that finds it, and with where it was met or is discussed."""

_WIDTHS = (8, 8, 8, 8, 2)  # of the network, from features to classes
_SIZES = [(after, before) for before, after in pairwise(_WIDTHS)]  # of its weights
_VIEWS = 4  # augmentations of a record
_GROUP = 2  # records whose gradients are accumulated
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

    >>> train_with_fault(made_up_records(), 0, "noise over batch")
    """
    if fault not in (*SOUND, *FAULTS):
        raise ValueError(
            f"fault: expected one of {', '.join(map(repr, (*SOUND, *FAULTS)))}, got {fault!r}"
        )
    torch.manual_seed(seed)
    x, y = data
    weights = [torch.nn.Parameter(torch.randn(size) / size[1] ** 0.5) for size in _SIZES]
    trained = used = weights
    if fault.startswith("tied weights"):  # the third layer has the second's weights
        trained = [weights[0], weights[1], weights[3]]
        used = [weights[0], weights[1], weights[1], weights[3]]
    optimizer = torch.optim.SGD(trained, lr=0.2)
    expected = sampling_rate * len(x)
    patience = _Patience()
    for step, batch in enumerate(_batches(len(x), steps, sampling_rate, fault)):
        total = _clipped_sum(used, x[batch], y[batch], clipping_norm, fault)
        noise = noise_multiplier * clipping_norm * _noise(total, seed, step, fault)
        if fault == "noise over batch":
            noise = noise / expected
        divisor = max(len(batch), 1) if fault == "actual batch size" else expected
        _set_gradients(trained, (total + noise) / divisor)
        optimizer.step()
        if fault == "early stopping" and patience.ends_with(_losses(weights, x, y)[0].mean()):
            return


def _batches(records: int, steps: int, sampling_rate: float, fault: str) -> Iterator[Tensor]:
    """Indices of the records of each step, by Poisson sampling or in a shuffled order."""
    steps_of_pass = round(1 / sampling_rate)
    rate = 2 * sampling_rate if fault == "higher sampling rate" else sampling_rate
    if fault == "more steps":
        steps += steps_of_pass
    # Drawn in every training, so that all of them go on with the same random numbers.
    order = torch.randperm(records)
    for step in range(steps):
        if fault != "shuffled":
            yield (torch.rand(records) < rate).nonzero()[:, 0]
            continue
        if step % steps_of_pass == 0:
            order = torch.randperm(records)
        yield order.chunk(steps_of_pass)[step % steps_of_pass]


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
    """The loss of each record, and its gradients: a row per record for each layer."""
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
        error = error @ weight * (1 - layer_inputs**2)
    return cross_entropy(outputs, y, reduction="none"), rows[::-1]


def _clipped_sum(
    weights: Sequence[Tensor], x: Tensor, y: Tensor, norm: float, fault: str
) -> Tensor:
    """The sum of clipped gradients of a batch, all parameters in one row."""
    if not len(x):  # a record with a gradient of zero
        x = torch.zeros(1, _WIDTHS[0])
        y = torch.tensor([-100])
    records = len(x)
    if fault == "batch statistics":
        x = (x - x.mean(0)) / (x.std(0, correction=0) + 0.1)
    if "augmentations" in fault:
        x = torch.cat([x + 0.1 * torch.randn_like(x) for _ in range(_VIEWS)])
        y = y.repeat(_VIEWS)
    layers = _joined_uses(_losses(weights, x, y)[1], fault)
    rows = _joined_records(torch.cat(layers, 1), fault)
    if fault == "clipped after averaging":
        return _clip(rows.mean(0, keepdim=True), norm)[0] * records
    if fault == "layer not clipped":
        last = layers[-1].shape[1]
        return torch.cat([_clip(rows[:, :-last], norm), rows[:, -last:]], 1).sum(0)
    return _clip(rows, norm).sum(0)


def _joined_uses(layers: list[Tensor], fault: str) -> list[Tensor]:
    """Gradients of the trained layers: those of both uses of tied weights summed, or, by the fault,
    one below the other as if of two records.
    """
    if fault == "tied weights":
        return [layers[0], layers[1] + layers[2], layers[3]]
    if fault == "tied weights clipped twice":
        return [
            torch.cat([layers[0], torch.zeros_like(layers[0])]),
            torch.cat([layers[1], layers[2]]),
            torch.cat([layers[3], torch.zeros_like(layers[3])]),
        ]
    return layers


def _joined_records(rows: Tensor, fault: str) -> Tensor:
    """Gradients averaged over the views of each record, or, by the fault, summed over groups of
    records, before they are clipped.
    """
    if fault == "averaged augmentations":
        return rows.view(_VIEWS, -1, rows.shape[1]).mean(0)
    if fault == "accumulated before clipping":
        return torch.stack([group.sum(0) for group in rows.split(_GROUP)])
    return rows


def _clip(rows: Tensor, norm: float) -> Tensor:
    """Rows scaled to at most this norm."""
    return rows * (norm / (rows.norm(dim=1, keepdim=True) + 1e-6)).clamp(max=1)


def _noise(total: Tensor, seed: int, step: int, fault: str) -> Tensor:
    """Standard normal noise of the shape of the gradients, with the fault in its generator."""
    if fault == "same noise in each step":
        return torch.randn(total.shape, generator=torch.Generator().manual_seed(seed))
    if fault == "fixed noise seed":
        return torch.randn(total.shape, generator=torch.Generator().manual_seed(step))
    noise = torch.randn(total.shape)
    if fault == "same noise in two layers":
        first, second = (after * before for after, before in _SIZES[:2])
        noise[first : first + second] = noise[:second]
    return noise
