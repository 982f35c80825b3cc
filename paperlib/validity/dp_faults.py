"""DP-SGD in plain PyTorch, right or with one of the faults that public projects had."""

from collections.abc import Sequence
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
    name: (one["check"], one["met"]) for name, one in _FAULTS.items()
}
"""Faults by name, each with the check that finds it, and with where it was met or is discussed."""

_WIDTHS, _VIEWS, _GROUP, _PATIENCE = (8, 8, 8, 8, 2), 4, 2, 2


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
    sizes = [(after, before) for before, after in pairwise(_WIDTHS)]
    weights = [torch.nn.Parameter(torch.randn(size) / size[1] ** 0.5) for size in sizes]
    tied = fault.startswith("tied weights")
    # Tied, the third layer has the second's weights.
    trained = [weights[at] for at in (0, 1, 3)] if tied else weights
    optimizer = torch.optim.SGD(trained, lr=0.2)
    expected = sampling_rate * len(x)
    rate = 2 * sampling_rate if fault == "higher sampling rate" else sampling_rate
    epoch = round(1 / sampling_rate)
    order, best, waited = torch.randperm(len(x)), float("inf"), 0
    for step in range(steps + epoch * (fault == "more steps")):
        if fault == "shuffled":
            order = torch.randperm(len(x)) if step % epoch == 0 else order
            batch = order.chunk(epoch)[step % epoch]
        else:
            batch = (torch.rand(len(x)) < rate).nonzero()[:, 0]
        used = [weights[at] for at in (0, 1, 1, 3)] if tied else weights
        total = _clipped_sum(used, x[batch], y[batch], clipping_norm, fault)
        noise = noise_multiplier * clipping_norm * _noise(total, sizes, seed, step, fault)
        if fault == "noise over batch":
            noise = noise / expected
        released = (total + noise) / (
            max(len(batch), 1) if fault == "actual batch size" else expected
        )
        parts = released.split([weight.numel() for weight in trained])
        for weight, part in zip(trained, parts, strict=True):
            weight.grad = part.view_as(weight).clone()
        optimizer.step()
        if fault == "early stopping":
            loss = float(_losses(weights, x, y)[0].mean())
            waited = waited + 1 if loss >= best else 0
            best = min(best, loss)
            if waited == _PATIENCE:
                return


def _losses(weights: Sequence[Tensor], x: Tensor, y: Tensor) -> tuple[Tensor, list[Tensor]]:
    """The loss of each record, and its gradients: a row per record for each layer."""
    # By hand, since automatic ones for each record take ten times as long on so small a network.
    inputs, rows = [x], list[Tensor]()
    for weight in weights[:-1]:
        inputs.append(torch.tanh(linear(inputs[-1], weight)))
    outputs = linear(inputs[-1], weights[-1])
    error = (torch.softmax(outputs, 1) - torch.eye(outputs.shape[1])[y.clamp(min=0)]) * (y >= 0)[
        :, None
    ]
    for weight, entered in zip(reversed(weights), reversed(inputs), strict=True):
        rows.insert(0, (error[:, :, None] * entered[:, None]).flatten(1))
        error = error @ weight * (1 - entered**2)
    return cross_entropy(outputs, y, reduction="none"), rows


def _clipped_sum(
    weights: Sequence[Tensor], x: Tensor, y: Tensor, norm: float, fault: str
) -> Tensor:
    """The sum of clipped gradients of a batch, all parameters in one row."""
    if not len(x):
        x, y = torch.zeros(1, _WIDTHS[0]), torch.tensor([-100])  # a gradient of zero
    if fault == "batch statistics":
        x = (x - x.mean(0)) / (x.std(0, correction=0) + 0.1)
    if "augmentations" in fault:
        x, y = torch.cat([x + 0.1 * torch.randn_like(x) for _ in range(_VIEWS)]), y.repeat(_VIEWS)
    layers = _losses(weights, x, y)[1]
    if fault == "tied weights":
        layers = [layers[0], layers[1] + layers[2], layers[3]]
    if fault == "tied weights clipped twice":  # each use of the weights as a record of its own
        rest = torch.zeros_like(layers[0]), torch.zeros_like(layers[3])
        uses = [layers[0], layers[1], layers[3]], [rest[0], layers[2], rest[1]]
        layers = [torch.cat(parts) for parts in zip(*uses, strict=True)]
    rows = torch.cat(layers, 1)
    if fault == "averaged augmentations":
        rows = rows.view(_VIEWS, -1, rows.shape[1]).mean(0)
    if fault == "accumulated before clipping":
        rows = torch.stack([group.sum(0) for group in rows.split(_GROUP)])
    if fault == "clipped after averaging":
        return _clip(rows.mean(0, keepdim=True), norm)[0] * len(x)
    if fault == "layer not clipped":
        last = layers[-1].shape[1]
        return torch.cat([_clip(rows[:, :-last], norm), rows[:, -last:]], 1).sum(0)
    return _clip(rows, norm).sum(0)


def _clip(rows: Tensor, norm: float) -> Tensor:
    return rows * (norm / (rows.norm(dim=1, keepdim=True) + 1e-6)).clamp(max=1)


def _noise(total: Tensor, sizes: list[tuple[int, int]], seed: int, step: int, fault: str) -> Tensor:
    if fault == "same noise in each step":
        return torch.randn(total.shape, generator=torch.Generator().manual_seed(seed))
    if fault == "fixed noise seed":
        return torch.randn(total.shape, generator=torch.Generator().manual_seed(step))
    noise = torch.randn(total.shape)
    if fault == "same noise in two layers":
        first, second = (after * before for after, before in sizes[:2])
        noise[first : first + second] = noise[:second]
    return noise
