"""Forward, backward and clipping of stacked MLPs by hand: gradients of single examples are never
formed.

For a linear layer the gradient of one example is the outer product of the layer's input a and the
loss's derivative d, so its squared norm is |d|^2 (|a|^2 + 1), and the sum of clipped gradients is
one matrix product. For the sum over a group of examples the squared norm is the sum over pairs of
(a_i . a_j + 1)(d_i . d_j). Shapes: K models, B records in a batch, G groups of B / G records.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import one_hot

Layers = Sequence[tuple[Tensor, Tensor]]  # weights (K, inputs, outputs) and biases (K, 1, outputs)

# Opacus divides by norm + 1e-6, which also keeps a zero gradient finite.
_NORM_OFFSET = 1e-6


def forward(layers: Layers, x: Tensor, activation: str) -> tuple[list[Tensor], Tensor]:
    """Inputs of every layer, each (K, B, inputs), and logits (K, B, outputs), of records (K, B,
    inputs).
    """
    act = torch.tanh_ if activation == "tanh" else torch.relu_
    inputs = [x]
    for weights, biases in layers[:-1]:
        inputs.append(act(torch.baddbmm(biases, inputs[-1], weights)))
    weights, biases = layers[-1]
    return inputs, torch.baddbmm(biases, inputs[-1], weights)


def loss_derivative(logits: Tensor, labels: Tensor) -> Tensor:
    """Derivative of each example's cross-entropy by its logits, shape (K, B, outputs); labels are
    class numbers (K, B). In both cases it is the probability of a class less 1 for the true one.
    """
    if logits.shape[-1] == 1:  # the log-odds of class 1
        return torch.sigmoid(logits).sub_(labels[..., None])
    return torch.softmax(logits, dim=-1).sub_(one_hot(labels, logits.shape[-1]))


def derivatives(
    layers: Layers, inputs: Sequence[Tensor], top: Tensor, activation: str
) -> list[Tensor]:
    """Derivative of each example's loss by the output of every layer, each (K, B, outputs).

    ``inputs`` are those of every layer, as of `forward`; ``top`` is the derivative by the logits.
    """
    deltas = [top]
    for (weights, _), layer_input in zip(reversed(layers[1:]), reversed(inputs[1:]), strict=True):
        below = torch.bmm(deltas[-1], weights.transpose(1, 2))
        if activation == "tanh":  # Its slope, as that of ReLU, follows from its value.
            deltas.append(torch.ops.aten.tanh_backward(below, layer_input))
        else:
            deltas.append(torch.ops.aten.threshold_backward(below, layer_input, 0))
    return deltas[::-1]


def square_norms(
    inputs: Sequence[Tensor], deltas: Sequence[Tensor], groups: int | None = None
) -> Tensor:
    """Squared norms of gradients over all layers: of examples (K, B), or of sums over ``groups``
    groups of neighbours in the batch (K, G).

    ``inputs`` and ``deltas`` are those of each layer, (K, B, inputs) and (K, B, outputs), as of
    `forward` and `derivatives`.
    """
    squares: list[Tensor] = []  # of each layer
    for layer_input, delta in zip(inputs, deltas, strict=True):
        if groups is None:
            # 1 is for the bias, whose gradient is the derivative itself.
            squares.append(_square_norm(delta) * (_square_norm(layer_input) + 1))
        else:
            dealt = (groups, -1)
            squares.append(
                _group_square_norms(layer_input.unflatten(1, dealt), delta.unflatten(1, dealt))
            )
    return torch.stack(squares).sum(0)


def _square_norm(values: Tensor) -> Tensor:
    """Squared norms along the last axis."""
    return torch.linalg.vector_norm(values, dim=-1).square_()


def _group_square_norms(layer_input: Tensor, delta: Tensor) -> Tensor:
    """Squared norms (K, G) of one layer's gradients, summed over the records of each group.

    Inputs are (K, G, B / G, inputs), derivatives (K, G, B / G, outputs).
    """
    _, _, size, inputs = layer_input.shape
    outputs = delta.shape[3]
    if size * (inputs + outputs) <= inputs * outputs:  # Pairs of examples are fewer than weights.
        # |sum of a_i d_i|^2 = sum over pairs of (a_i . a_j)(d_i . d_j); 1 is for the bias.
        between = torch.matmul(layer_input, layer_input.transpose(-1, -2)) + 1
        return (between * torch.matmul(delta, delta.transpose(-1, -2))).sum((-1, -2))
    # The gradients themselves: of the weights (K, G, inputs, outputs), and of the bias.
    weights = torch.matmul(layer_input.transpose(-1, -2), delta)
    return weights.square().sum((-1, -2)) + delta.sum(2).square().sum(-1)


def clip_factors(squares: Tensor, clip_norm: Tensor) -> Tensor:
    """Factors in [0, 1], shape (K, G), that bring gradients of squared norms (K, G) to norms of at
    most ``clip_norm`` (K, 1).
    """
    return (clip_norm / (squares.sqrt() + _NORM_OFFSET)).clamp_(max=1)


def write_gradients(layers: Layers, inputs: Sequence[Tensor], deltas: Sequence[Tensor]) -> None:
    """Write the gradient summed over the batch into the views ``layers`` of a gradient matrix.

    ``inputs`` and ``deltas`` are those of each layer, (K, B, inputs) and (K, B, outputs), as of
    `forward` and `derivatives`.
    """
    for (weights, biases), layer_input, delta in zip(layers, inputs, deltas, strict=True):
        if weights.dtype == layer_input.dtype:
            weights.baddbmm_(layer_input.transpose(1, 2), delta, beta=0)
        else:
            weights.copy_(torch.bmm(layer_input.transpose(1, 2), delta))
        biases.copy_(delta.sum(1, keepdim=True))
