"""Multi-layer perceptrons, as a module and as one flat vector of parameters.

The flat layout is what lets many models of one shape be trained at once: the parameters of K models
are one (K, size) matrix, and layer i's weights are a strided (K, inputs, outputs) view of it.
"""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.utils import skip_init

from paperlib.core.checks import check_choice

ACTIVATIONS = ("relu", "tanh")


@dataclass(frozen=True)
class MLP:
    """Fully connected layers with ReLU or tanh between them.

    Widths are inputs, hidden units..., outputs. One output is the log odds of label 1; more are
    logits.

    >>> MLP((108, 150, 100, 50, 1)).size
    36551
    """

    widths: tuple[int, ...]
    activation: str = "relu"

    def __post_init__(self) -> None:
        """Refuse (ValueError) widths without an input and an output, and an unknown activation."""
        if len(self.widths) < 2 or min(self.widths) < 1:
            raise ValueError(
                f"widths: expected inputs, hidden..., outputs, all 1 or more, got {self.widths}"
            )
        check_choice("activation", self.activation, ACTIVATIONS)

    @property
    def inputs(self) -> int:
        """Features of a record."""
        return self.widths[0]

    @property
    def outputs(self) -> int:
        """Numbers that it gives for a record."""
        return self.widths[-1]

    @property
    def classes(self) -> int:
        """Number of labels: 2 for one output."""
        return max(2, self.outputs)

    @property
    def size(self) -> int:
        """Number of parameters."""
        return sum(inputs * outputs + outputs for inputs, outputs in pairwise(self.widths))

    def views(self, stacked: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Weights (K, inputs, outputs) and biases (K, 1, outputs) of each layer, as views of (K,
        size).
        """
        layers: list[tuple[Tensor, Tensor]] = []
        start = 0
        for inputs, outputs in pairwise(self.widths):
            middle = start + inputs * outputs
            end = middle + outputs
            weights = stacked[:, start:middle].unflatten(1, (inputs, outputs))
            layers.append((weights, stacked[:, None, middle:end]))
            start = end
        return layers

    def initial(self, generator: torch.Generator) -> Tensor:
        """Draw parameters as ``nn.Linear`` does: uniform within 1/sqrt(inputs). Shape (size,), on
        the CPU.
        """
        drawn = torch.empty(1, self.size)
        # The last width is of the outputs, which no further layer takes in.
        for (weights, biases), inputs in zip(self.views(drawn), self.widths[:-1], strict=True):
            bound = 1 / math.sqrt(inputs)
            weights.uniform_(-bound, bound, generator=generator)
            biases.uniform_(-bound, bound, generator=generator)
        return drawn[0]

    def module(self, parameters: Tensor) -> nn.Sequential:
        """A module of its own with these parameters, shape (size,)."""
        layers: list[nn.Module] = []
        for weights, biases in self.views(parameters[None]):
            inputs, outputs = weights.shape[1:]
            # Skipping the random initialisation leaves the caller's global generator alone.
            linear = cast(
                nn.Linear, skip_init(nn.Linear, inputs, outputs, device=parameters.device)
            )
            with torch.no_grad():
                linear.weight.copy_(weights[0].T)
                linear.bias.copy_(biases[0, 0])
            layers += [linear, nn.Tanh() if self.activation == "tanh" else nn.ReLU()]
        return nn.Sequential(*layers[:-1])

    def flat(self, module: nn.Module) -> Tensor:
        """The parameters of a module made by ``module``, shape (size,), laid out as `views` reads
        them.
        """
        linears = [layer for layer in module.modules() if isinstance(layer, nn.Linear)]
        vectors: list[Tensor] = []
        for layer in linears:
            vectors += [layer.weight.detach().T.flatten(), layer.bias.detach()]
        return torch.cat(vectors)
