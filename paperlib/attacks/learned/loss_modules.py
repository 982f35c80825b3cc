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

EVALUATIONS = 10  # on the validation part during training, evenly spaced


@dataclass(frozen=True, eq=False)
class LossModule:
    """A perceptron with two hidden layers on losses, each column as normal scores of training ranks."""

    network: Together  # of one
    sorted_columns: FloatArray  # the losses of the training part, each column sorted

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
    """One module per seed, trained together, each as at the best of ten evaluations on ``validation``."""
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
            scores = _logits(shown, networks).detach().double().numpy()
            values = [validation.value(row) for row in scores]
            best.update(torch.tensor(values, dtype=torch.float64))
    best.restore()
    weights = {name: values.detach() for name, values in networks.weights.items()}
    alone = ({name: values[at] for name, values in weights.items()} for at in range(len(seeds)))
    return [LossModule(Together([one]), columns) for one in alone]


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


def _logits(x: Tensor, networks: Together) -> Tensor:
    """Logits of all networks, shape (networks, n)."""
    hidden = silu(networks.linear("first", x[None]))
    return networks.linear("last", silu(networks.linear("second", hidden)))[..., 0]
