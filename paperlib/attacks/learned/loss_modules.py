"""Networks on losses alone: multi-layer perceptrons that differ in their seed, trained together."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import ndtri
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, silu

from paperlib.attacks.learned.interface import Labelled
from paperlib.core import FloatArray, MembershipScores

LOOKS = 10
"""How often, evenly spaced, the validation AUC is looked at."""


@dataclass(frozen=True, eq=False)
class LossModule:
    """A perceptron with two hidden layers on losses, each column as normal scores of training ranks.

    Attributes:
        layers: Weights (inputs, outputs) and biases (1, outputs), layer by layer.
        sorted_columns: The losses of the training part, each column sorted.
    """

    layers: tuple[tuple[Tensor, Tensor], ...]
    sorted_columns: FloatArray

    def scores(self, losses: FloatArray) -> FloatArray:
        """Log odds, shape (n,)."""
        with torch.inference_mode():
            x = normal_scores(losses, self.sorted_columns)
            one = [(weights[None], biases[None]) for weights, biases in self.layers]
            return _logits(x, one)[0].double().numpy()


def fit_loss_modules(
    train: Labelled,
    validation: Labelled,
    *,
    seeds: Sequence[int],
    hidden: int,
    steps: int,
    weight_decay: float,
) -> list[LossModule]:
    """One module per seed, each as it was at the best of ten looks at its validation AUC.

    All of them take their steps at once, with one batched matrix product per layer: on a few hundred examples
    most of a step is overhead. Each is what it would be alone, but for rounding.

    Args:
        train: Examples with losses of shape (n, k), k at least 1.
        validation: Examples that the best evaluation is chosen on.
        seeds: Seeds of the initial parameters.
        hidden: Units of both hidden layers.
        steps: Training steps, on all examples at once.
        weight_decay: Weight decay of AdamW, 0 or more.

    >>> from paperlib.attacks.learned import AttackInputs
    >>> losses, member = np.arange(40.0)[:, None], np.arange(40) < 20
    >>> part = Labelled(AttackInputs(np.zeros(40), losses), member)
    >>> modules = fit_loss_modules(part, part, seeds=(0, 1), hidden=4, steps=50, weight_decay=0.0)
    >>> [bool(module.scores(losses)[0] > module.scores(losses)[-1]) for module in modules]
    [True, True]
    """
    columns = np.sort(train.inputs.losses, axis=0)
    x, shown = (normal_scores(part.inputs.losses, columns) for part in (train, validation))
    wanted = torch.from_numpy(train.membership).float().expand(len(seeds), -1)
    layers = _initial(x.shape[1], hidden, seeds)
    parameters = [values for layer in layers for values in layer]
    optimizer = torch.optim.AdamW(parameters, lr=1e-2, weight_decay=weight_decay, fused=True)
    best = np.full(len(seeds), -np.inf)
    kept = [values.detach().clone() for values in parameters]
    for step in range(1, steps + 1):
        optimizer.zero_grad()
        loss = binary_cross_entropy_with_logits(_logits(x, layers), wanted, reduction="none")
        loss.mean(dim=1).sum().backward()
        optimizer.step()
        if step % max(1, steps // LOOKS) == 0:
            better = np.flatnonzero((aucs := _aucs(_logits(shown, layers), validation.membership)) > best)
            best[better] = aucs[better]
            for keep, values in zip(kept, parameters, strict=True):
                keep[better] = values.detach()[better]
    return [
        LossModule(tuple((kept[at][one], kept[at + 1][one]) for at in range(0, len(kept), 2)), columns)
        for one in range(len(seeds))
    ]


def normal_scores(losses: FloatArray, sorted_columns: FloatArray) -> Tensor:
    """Columns as standard normal quantiles: losses near 0 and large ones alike keep their order."""
    count = len(sorted_columns)
    ranks = [
        (np.searchsorted(column, values, "left") + np.searchsorted(column, values, "right") + 1) / 2
        for column, values in zip(sorted_columns.T, losses.T, strict=True)
    ]
    return torch.from_numpy(ndtri(np.stack(ranks, axis=1) / (count + 1))).float()


def _initial(inputs: int, hidden: int, seeds: Sequence[int]) -> list[tuple[Tensor, Tensor]]:
    """Per layer the weights (seeds, inputs, outputs) and biases (seeds, 1, outputs) of all modules."""
    networks = [_perceptron(inputs, hidden, seed) for seed in seeds]
    return [
        (
            torch.stack([layer.weight.detach().T for layer in same]).contiguous().requires_grad_(),
            torch.stack([layer.bias.detach()[None] for layer in same]).requires_grad_(),
        )
        for same in zip(*networks, strict=True)
    ]


def _perceptron(inputs: int, hidden: int, seed: int) -> list[nn.Linear]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return [nn.Linear(inputs, hidden), nn.Linear(hidden, hidden), nn.Linear(hidden, 1)]


def _logits(x: Tensor, layers: Sequence[tuple[Tensor, Tensor]]) -> Tensor:
    """Of all modules, shape (modules, n)."""
    out = x.expand(len(layers[0][0]), -1, -1)
    for at, (weights, biases) in enumerate(layers):
        out = torch.baddbmm(biases, out if at == 0 else silu(out), weights)
    return out[..., 0]


def _aucs(logits: Tensor, membership: NDArray[np.bool_]) -> FloatArray:
    scores = logits.detach().double().numpy()
    return np.array([MembershipScores.from_labels(row, membership).auc() for row in scores])
