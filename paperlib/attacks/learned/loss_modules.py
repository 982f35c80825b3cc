"""Networks on losses alone: multi-layer perceptrons that differ in their seed, trained together."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.special import ndtri
from torch import Tensor, nn
from torch.nn.functional import silu

from paperlib.attacks.learned.interface import AttackInputs, Labelled
from paperlib.attacks.learned.stacked_networks import BestWeights, Together, Weights, mean_losses
from paperlib.core import FloatArray

EVALUATIONS = 10
"""Number of evaluations on the validation part during training, evenly spaced."""


@dataclass(frozen=True, eq=False)
class LossModule:
    """A perceptron with two hidden layers on losses, each column as normal scores of training ranks.

    Attributes:
        network: The perceptron, as the only one of its kind.
        sorted_columns: The losses of the training part, each column sorted.
    """

    network: Together
    sorted_columns: FloatArray

    def scores(self, inputs: AttackInputs) -> FloatArray:
        """Log odds of being a member, shape (n,)."""
        x = normal_scores(inputs.losses, self.sorted_columns)
        with torch.inference_mode():
            return _logits(x, self.network)[0].double().numpy()


def fit_loss_modules(
    train: Labelled,
    validation: Labelled,
    *,
    seeds: Sequence[int],
    hidden: int,
    steps: int,
    weight_decay: float,
) -> list[LossModule]:
    """One module per seed, each as it was at the best of ten evaluations on ``validation``.

    They are trained together, on all examples of ``train`` in each of the ``steps``; each is what it would be
    alone, but for rounding. Both hidden layers have ``hidden`` units; the losses have at least one column.

    >>> inputs = AttackInputs(np.zeros(40), np.arange(40.0)[:, None])
    >>> part = Labelled(inputs, np.arange(40) < 20)
    >>> modules = fit_loss_modules(part, part, seeds=(0, 1), hidden=4, steps=50, weight_decay=0.0)
    >>> [bool(module.scores(inputs)[0] > module.scores(inputs)[-1]) for module in modules]
    [True, True]
    """
    columns = np.sort(train.inputs.losses, axis=0)
    x, shown = (normal_scores(part.inputs.losses, columns) for part in (train, validation))
    members = torch.from_numpy(train.membership).float()
    networks = Together([_perceptron(x.shape[1], hidden, seed) for seed in seeds])
    optimizer = torch.optim.AdamW(networks.parameters(), lr=1e-2, weight_decay=weight_decay, fused=True)
    best = BestWeights(networks, torch.full((len(seeds),), -torch.inf, dtype=torch.float64))
    for step in range(1, steps + 1):
        optimizer.zero_grad()
        mean_losses(_logits(x, networks), members).sum().backward()
        optimizer.step()
        if step % max(1, steps // EVALUATIONS) == 0:
            best.update(_values(_logits(shown, networks), validation))
    best.restore()
    return [LossModule(Together([_one(networks, at)]), columns) for at in range(len(seeds))]


def normal_scores(losses: FloatArray, sorted_columns: FloatArray) -> Tensor:
    """Columns as standard normal quantiles: losses near 0 and large ones alike keep their order."""
    count = len(sorted_columns)
    ranks = [
        (np.searchsorted(column, values, "left") + np.searchsorted(column, values, "right") + 1) / 2
        for column, values in zip(sorted_columns.T, losses.T, strict=True)
    ]
    return torch.from_numpy(ndtri(np.stack(ranks, axis=1) / (count + 1))).float()


def _perceptron(inputs: int, hidden: int, seed: int) -> Weights:
    """Weights of one network, as torch's own layers begin."""
    sizes = {"first": (inputs, hidden), "second": (hidden, hidden), "last": (hidden, 1)}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layers = {name: nn.Linear(*size) for name, size in sizes.items()}
    weights = {name: layer.weight.detach().T for name, layer in layers.items()}
    return weights | {f"{name} bias": layer.bias.detach()[None] for name, layer in layers.items()}


def _one(networks: Together, at: int) -> Weights:
    return {name: values.detach()[at] for name, values in networks.weights.items()}


def _logits(x: Tensor, networks: Together) -> Tensor:
    """Logits of all networks, shape (networks, n)."""
    hidden = silu(networks.linear("first", x[None]))
    return networks.linear("last", silu(networks.linear("second", hidden)))[..., 0]


def _values(logits: Tensor, validation: Labelled) -> Tensor:
    scores = logits.detach().double().numpy()
    return torch.tensor([validation.value(row) for row in scores], dtype=torch.float64)
