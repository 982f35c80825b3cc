"""Ghost clipping for transformers: the sum of clipped gradients, and no document's own gradient
formed.

A linear layer's gradient for one document is a sum over its tokens of outer products: of the loss's
derivative by the output, and of the input. The square of its norm is a sum over pairs of tokens of
products of two inner products, which needs tokens^2 numbers, not outputs x inputs. An embedding is
a linear layer on one-hot inputs, so that a weight used as both (GPT-2's) is one sum of outer
products, cross terms included.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import layer_norm

from paperlib.models.devices import fast_products

_NORM_OFFSET = 1e-6  # as Opacus; keeps a gradient of zero finite
_CONV1D = (
    "transformers.pytorch_utils.Conv1D"  # a linear layer, its weight the other way round; GPT-2's
)
_CHECK_TOLERANCE = 1e-3


@dataclass(frozen=True, eq=False)
class _Outer:
    """A weight's gradient for each document, as a sum over tokens of outer products."""

    # (documents, tokens, rows), or (documents, tokens) whole numbers: those of one-hot rows
    rows: Tensor
    columns: Tensor  # (documents, tokens, columns)


@dataclass(frozen=True, eq=False)
class _Gradients:
    """Gradients of all documents: of weights as outer products, of vectors directly."""

    weights: dict[nn.Parameter, list[_Outer]]
    vectors: dict[nn.Parameter, Tensor]

    def square_norms(self) -> Tensor:
        """Shape (documents,)."""
        parts = [_square_norms(uses) for uses in self.weights.values()]
        parts += [vector.square().sum(1) for vector in self.vectors.values()]
        return torch.stack(parts).sum(0)

    def sum_of(self, parameter: nn.Parameter, factors: Tensor) -> Tensor:
        """Sum over documents, each times its factor, in the parameter's shape."""
        if parameter in self.vectors:
            return factors @ self.vectors[parameter]
        total = torch.zeros_like(parameter)
        for use in self.weights.get(parameter, ()):
            columns = (use.columns * factors[:, None, None]).flatten(0, 1)
            if use.rows.is_floating_point():
                total.addmm_(use.rows.flatten(0, 1).T, columns)
            else:
                total.index_add_(0, use.rows.flatten(), columns)
        return total


def check_layers(model: nn.Module) -> None:
    """Refuse a model that trains other layers than Linear, Conv1D (GPT-2's), Embedding and
    LayerNorm.
    """
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise ValueError("model: expected weights to train, got none that require a gradient")
    for name, layer in model.named_modules():
        if problem := _problem(layer):
            raise ValueError(
                "model: DP-SGD clips the gradient of each document, known for Linear, Conv1D, "
                f"Embedding and LayerNorm; {name or 'the model itself'} is {problem}. Take another "
                "model, or freeze such weights (requires_grad)"
            )


def add_clipped_gradients(
    model: nn.Module,
    document_losses: Callable[[], Tensor],
    documents: int,
    *,
    clip_norm: float,
    check: bool = False,
) -> Tensor:
    """Add the sum of the documents' clipped gradients to ``.grad``, by ghost clipping; returns the
    losses.

    One pass forward, one backward to the outputs of the layers; from these the norms, and then the
    sum.

    Args:
        model: One that `check_layers` lets pass.
        document_losses: Runs the model, and returns one loss per document, shape (documents,).
        check: Compare the sum of unclipped gradients with autograd's; finds a weight that is used
            outside of its layer.

    Raises:
        ValueError: A layer does not keep documents apart, or ``check`` finds a difference.

    Source:
        Li, Tramèr, Liang and Hashimoto (2022), Section 4; when to form gradients: Bu, Mao and Xu
        (2022); one pass backward: Bu, Wang, Zha and Karypis (2023). Opacus makes two, and refuses
        tied weights.
    """
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    with fast_products(
        allowed=not check
    ):  # norms and sums below are exact for what these passes gave
        with _recorded(model, documents) as uses:
            losses = document_losses()
        wanted = [output for _, _, output in uses] + (parameters if check else [])
        derivatives = torch.autograd.grad(losses.sum(), wanted, allow_unused=True)
    with torch.no_grad():
        gradients = _Gradients({}, {})
        for (layer, given, _), delta in zip(uses, derivatives[: len(uses)], strict=True):
            if delta is not None:  # else nothing uses the output
                _add_use(gradients, layer, given, delta)
        if check:
            _compare(
                model, gradients, parameters, derivatives[len(uses) :], torch.ones_like(losses)
            )
        factors = (clip_norm / (gradients.square_norms().sqrt() + _NORM_OFFSET)).clamp_(max=1)
        for parameter in parameters:
            total = gradients.sum_of(parameter, factors)
            parameter.grad = total if parameter.grad is None else parameter.grad.add_(total)
    return losses.detach()


@contextmanager
def _recorded(model: nn.Module, documents: int) -> Iterator[list[tuple[nn.Module, Tensor, Tensor]]]:
    """The calls of all layers with weights to train: layer, input and output."""
    uses: list[tuple[nn.Module, Tensor, Tensor]] = []

    def keep(layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
        if not output.requires_grad:
            raise ValueError(
                "model: a layer ran without gradients; switch gradient checkpointing off"
            )
        (given,) = inputs
        if len(output) != documents:
            if len(output) != 1 or not isinstance(layer, nn.Embedding):
                wanted = f"layers that keep documents apart, first axis {documents}"
                raise ValueError(f"model: expected {wanted}, got {len(output)} from {layer}")
            # Positions are looked up once for all documents: from here on each has its own.
            given = given.expand(documents, *given.shape[1:])
            output = output.expand(documents, *output.shape[1:])
        uses.append((layer, given.detach(), output))
        return output

    handles = [
        layer.register_forward_hook(keep) for layer in model.modules() if _own_parameters(layer)
    ]
    try:
        yield uses
    finally:
        for handle in handles:
            handle.remove()


def _own_parameters(layer: nn.Module) -> list[nn.Parameter]:
    return [parameter for parameter in layer.parameters(recurse=False) if parameter.requires_grad]


def _problem(layer: nn.Module) -> str:
    """Why the layer's gradients are not known, or nothing."""
    if isinstance(layer, nn.modules.batchnorm._BatchNorm):
        return "a batch norm, which mixes documents"
    if not _own_parameters(layer):
        return ""
    if type(layer) is nn.Embedding:
        plain = layer.max_norm is None and not layer.scale_grad_by_freq
        return "" if plain else "an Embedding with max_norm or scale_grad_by_freq"
    if type(layer) is nn.LayerNorm:
        return "" if len(layer.normalized_shape) == 1 else "a LayerNorm over several axes"
    return "" if type(layer) is nn.Linear or _is_conv1d(layer) else f"a {type(layer).__qualname__}"


def _is_conv1d(layer: Any) -> bool:
    return f"{type(layer).__module__}.{type(layer).__qualname__}" == _CONV1D


def _add_use(gradients: _Gradients, layer: Any, given: Tensor, delta: Tensor) -> None:
    weight: Any = layer.weight
    delta = delta.flatten(1, -2)
    given = given.flatten(1) if isinstance(layer, nn.Embedding) else given.flatten(1, -2)
    if isinstance(layer, nn.LayerNorm):
        if weight.requires_grad:
            normal = layer_norm(given, layer.normalized_shape, eps=layer.eps)
            gradients.vectors[weight] = gradients.vectors.get(weight, 0) + (normal * delta).sum(1)
    elif weight.requires_grad:
        outer = _Outer(delta, given)
        if _is_conv1d(layer):
            outer = _Outer(given, delta)
        elif isinstance(layer, nn.Embedding):
            padding = layer.padding_idx
            outer = _Outer(
                given, delta if padding is None else delta * (given != padding)[..., None]
            )
        gradients.weights.setdefault(weight, []).append(outer)
    if (bias := getattr(layer, "bias", None)) is not None and bias.requires_grad:
        gradients.vectors[bias] = gradients.vectors.get(bias, 0) + delta.sum(1)


def _square_norms(uses: Sequence[_Outer]) -> Tensor:
    """Squared norms of the sums of all uses of one weight, shape (documents,)."""
    first = uses[0]
    if len(uses) == 1 and first.rows.is_floating_point():
        tokens, rows, columns = *first.rows.shape[1:], first.columns.shape[2]
        if 2 * tokens**2 > rows * columns:  # less room, and soon forgotten
            formed = first.rows.transpose(1, 2) @ first.columns  # (documents, rows, columns)
            return formed.square_().sum((1, 2))
    total = torch.zeros(len(first.rows), dtype=first.columns.dtype, device=first.columns.device)
    for number, one in enumerate(uses):
        for other in uses[number:]:
            pairs = _inner(one.rows, other.rows) * _inner(one.columns, other.columns)
            total += pairs.sum((1, 2)) * (1 if other is one else 2)
    return total.clamp_(min=0)  # rounding may leave a little less than nothing


def _inner(left: Tensor, right: Tensor) -> Tensor:
    """Inner products of all pairs of rows of one document, shape (documents, tokens, tokens)."""
    if left.is_floating_point() and right.is_floating_point():
        return left @ right.transpose(1, 2)
    if left.is_floating_point():
        return left.gather(2, right[:, None].expand(-1, left.shape[1], -1))
    if right.is_floating_point():
        return _inner(right, left).transpose(1, 2)
    return left[:, :, None] == right[:, None]


def _compare(
    model: nn.Module,
    gradients: _Gradients,
    parameters: Sequence[nn.Parameter],
    truth: Sequence[Tensor | None],
    ones: Tensor,
) -> None:
    names = {parameter: name for name, parameter in model.named_parameters()}
    for parameter, right in zip(parameters, truth, strict=True):
        total = gradients.sum_of(parameter, ones)
        right = (
            torch.zeros_like(total) if right is None else right
        )  # None: the loss does not depend on it
        if (total - right).norm() > _CHECK_TOLERANCE * right.norm() + _NORM_OFFSET:
            raise ValueError(
                f"model: {names[parameter]} takes part in the loss other than through its layer, "
                "so that the gradient of one document is not known; freeze it (requires_grad) or "
                "take another model"
            )
