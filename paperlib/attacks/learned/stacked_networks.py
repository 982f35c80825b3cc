"""Networks of one shape trained together, one per seed, such as perceptrons on losses alone.

Every weight holds all networks along its first axis. On a few hundred examples most of the time of
a step is overhead, which one batched matrix product per layer shares. Networks share no weight, so
that each gets its own gradient from the sum of their losses.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.special import ndtri
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, silu

from paperlib.attacks.learned.interface import AttackInputs, Labelled
from paperlib.core import FloatArray

EVALUATIONS = 10  # of loss modules on the validation part during training, evenly spaced
Weights = Mapping[str, Tensor]
"""By the name of a layer a matrix (inputs, outputs), and by "NAME bias" its bias (1, outputs)."""


class Together(nn.Module):
    """Weights of K networks, from the initial weights of each, of equal names and shapes."""

    def __init__(self, networks: Sequence[Weights]) -> None:
        super().__init__()
        parameters: dict[str, nn.Parameter] = {}
        for name in networks[0]:
            stacked = torch.stack([network[name] for network in networks])
            parameters[name] = nn.Parameter(stacked)
        self.weights = nn.ParameterDict(parameters)

    def linear(self, name: str, x: Tensor) -> Tensor:
        """One layer of every network, (K or 1, n, inputs) to (K, n, outputs)."""
        weights = self.weights[name]
        return torch.baddbmm(self.weights[f"{name} bias"], x.expand(len(weights), -1, -1), weights)


def mean_losses(logits: Tensor, members: Tensor) -> Tensor:
    """Mean binary cross-entropy of each of K networks, nats, shape (K,).

    Args:
        logits: Of each network, shape (K, n).
        members: 0 or 1, shape (K, n), or (n,) for all networks.
    """
    each = binary_cross_entropy_with_logits(logits, members.expand_as(logits), reduction="none")
    return each.mean(dim=1)


class BestWeights:
    """The weights of every network at its own best evaluation."""

    def __init__(self, networks: Together, values: Tensor) -> None:
        """``values`` are the evaluations of the K networks as they are now, higher is better,
        (K,).
        """
        self._networks = networks
        self._values = values
        self._state = {name: tensor.clone() for name, tensor in networks.state_dict().items()}

    def update(self, values: Tensor, still_open: Tensor | None = None) -> Tensor:
        """Keep the weights of the networks that evaluate better than ever; returns which, (K,).

        Args:
            values: Their evaluations now, higher is better, (K,).
            still_open: Networks whose weights may still be kept, (K,); None for all.
        """
        better = values > self._values
        if still_open is not None:
            better &= still_open
        self._values = torch.where(better, values, self._values)
        for name, tensor in self._networks.state_dict().items():
            # What `Together` holds in ``weights`` has the networks along the first axis. Anything
            # else belongs to a single network: a pretrained model that reads its tokens (`text`).
            if name.startswith("weights."):
                self._state[name][better] = tensor[better]
            elif better.any():
                self._state[name].copy_(tensor)
        return better

    def restore(self) -> None:
        """Give every network its best weights."""
        self._networks.load_state_dict(self._state)


@dataclass(frozen=True, eq=False)
class LossModule:
    """A perceptron with two hidden layers on losses, each column as normal scores of training
    ranks.
    """

    network: Together  # of one
    sorted_columns: FloatArray  # the losses of the training part, each column sorted

    def scores(self, inputs: AttackInputs) -> FloatArray:
        """Log odds of being a member, shape (n,); a ValueError for losses of another number of
        columns than those of the training.
        """
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
    """One module per seed, trained together, each with its weights at the best of `EVALUATIONS`
    evaluations on ``validation``.

    Args:
        train, validation: Losses with membership, of the same columns.
        seeds: Seed of each module's initial weights.
        hidden: Width of both hidden layers.
        steps: Steps of AdamW, each on the whole training part.
        weight_decay: Weight decay of AdamW.

    Raises:
        ValueError: No column of losses, or other columns on the validation part.
    """
    columns = np.sort(train.inputs.losses, axis=0)
    x = normal_scores(train.inputs.losses, columns)
    x_validation = normal_scores(validation.inputs.losses, columns)
    members = torch.from_numpy(train.membership).float()
    networks = Together([_perceptron(x.shape[1], hidden, seed) for seed in seeds])
    optimizer = torch.optim.AdamW(
        networks.parameters(), lr=1e-2, weight_decay=weight_decay, fused=True
    )
    # The first evaluation is better than none.
    best = BestWeights(networks, torch.full((len(seeds),), -torch.inf, dtype=torch.float64))
    for step in range(1, steps + 1):
        optimizer.zero_grad()
        mean_losses(_logits(x, networks), members).sum().backward()
        optimizer.step()
        if step % max(1, steps // EVALUATIONS) == 0:
            scores = _logits(x_validation, networks).detach().double().numpy()
            values = [validation.value(row) for row in scores]
            best.update(torch.tensor(values, dtype=torch.float64))
    best.restore()
    weights = {name: values.detach() for name, values in networks.weights.items()}
    modules: list[LossModule] = []
    for index in range(len(seeds)):
        alone = {name: values[index] for name, values in weights.items()}
        modules.append(LossModule(Together([alone]), columns))
    return modules


def normal_scores(losses: FloatArray, sorted_columns: FloatArray) -> Tensor:
    """Losses, shape (n, k), as standard normal quantiles of their ranks among the training losses
    of their column, (count, k), sorted: (n, k), in the order of the losses however small or large.
    """
    count = len(sorted_columns)
    ranks: list[FloatArray] = []
    for column, values in zip(sorted_columns.T, losses.T, strict=True):
        below = np.searchsorted(column, values, "left")
        below_or_equal = np.searchsorted(column, values, "right")
        ranks.append((below + below_or_equal + 1) / 2)  # the mean rank among equals
    return torch.from_numpy(ndtri(np.stack(ranks, axis=1) / (count + 1))).float()


def _perceptron(inputs: int, hidden: int, seed: int) -> Weights:
    """Initial weights of one network, drawn by the seed as those of `torch.nn.Linear` are."""
    sizes = {"first": (inputs, hidden), "second": (hidden, hidden), "last": (hidden, 1)}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layers = {name: nn.Linear(*size) for name, size in sizes.items()}
    weights = {name: layer.weight.detach().T for name, layer in layers.items()}
    return weights | {f"{name} bias": layer.bias.detach()[None] for name, layer in layers.items()}


def _logits(x: Tensor, networks: Together) -> Tensor:
    """Log odds of membership by all K networks for inputs (n, columns), shape (K, n)."""
    hidden = silu(networks.linear("first", x[None]))
    return networks.linear("last", silu(networks.linear("second", hidden)))[..., 0]
