"""Networks of one shape trained together, one per seed: every weight holds all of them along its first axis.

On a few hundred examples most of the time of a step is overhead, which one batched matrix product per layer
shares. Networks share no weight, so that each gets its own gradient from the sum of their losses.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

Weights = Mapping[str, Tensor]
"""By the name of a layer a matrix (inputs, outputs), and by "NAME bias" its bias (1, outputs)."""


class Together(nn.Module):
    """Weights of K networks, from the initial weights of each, of equal names and shapes."""

    def __init__(self, networks: Sequence[Weights]) -> None:
        super().__init__()
        stacked = {name: torch.stack([one[name] for one in networks]) for name in networks[0]}
        self.weights = nn.ParameterDict({name: nn.Parameter(values) for name, values in stacked.items()})

    def linear(self, name: str, x: Tensor) -> Tensor:
        """One layer of every network, (K or 1, n, inputs) to (K, n, outputs)."""
        weights = self.weights[name]
        return torch.baddbmm(self.weights[f"{name} bias"], x.expand(len(weights), -1, -1), weights)


def mean_losses(logits: Tensor, members: Tensor) -> Tensor:
    """Mean binary cross-entropy of every network, (K,), where ``members`` are 0 or 1, (K, n) or (n,)."""
    each = binary_cross_entropy_with_logits(logits, members.expand_as(logits), reduction="none")
    return each.mean(dim=1)


class BestWeights:
    """The weights of every network at its own best evaluation; ``values`` are those before training, (K,)."""

    def __init__(self, networks: Together, values: Tensor) -> None:
        self._networks, self._values = networks, values
        self._state = {name: tensor.clone() for name, tensor in networks.state_dict().items()}

    def update(self, values: Tensor, still_open: Tensor | None = None) -> Tensor:
        """Keep the weights of ``still_open`` networks that evaluate better than ever; returns which, (K,)."""
        better = values > self._values
        if still_open is not None:
            better &= still_open
        self._values = torch.where(better, values, self._values)
        for name, tensor in self._networks.state_dict().items():
            if name.startswith("weights."):
                self._state[name][better] = tensor[better]
            elif better.any():  # a reader of a single network
                self._state[name].copy_(tensor)
        return better

    def restore(self) -> None:
        """Give every network its best weights."""
        self._networks.load_state_dict(self._state)
