"""Ghost clipping for transformers and networks of convolutions: the sum of clipped gradients, and
no document's own gradient formed.

A linear layer's gradient for one document is a sum over its tokens of outer products: of the loss's
derivative by the output, and of the input. The square of its norm is a sum over pairs of tokens of
products of two inner products, which needs tokens^2 numbers, not outputs x inputs. An embedding is
a linear layer on one-hot inputs, so that a weight used as both (GPT-2's) is one sum of outer
products, cross terms included. A convolution is a linear layer on the patches around the places of
its output, which are to an image what tokens are to a document.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import group_norm, layer_norm, unfold
from torch.nn.grad import conv2d_weight

from paperlib.models.devices import fast_products

_NORM_OFFSET = 1e-6  # as Opacus; keeps a gradient of zero finite
# A linear layer of GPT-2, its weight the other way round.
_CONV1D = "transformers.pytorch_utils.Conv1D"
_CHECK_TOLERANCE = 1e-3


@dataclass(frozen=True, eq=False)
class _Outer:
    """A weight's gradient for each document, as a sum over tokens of outer products."""

    # (documents, tokens, rows), or (documents, tokens) whole numbers: those of one-hot rows
    rows: Tensor
    columns: Tensor  # (documents, tokens, columns)


@dataclass(frozen=True, eq=False)
class _Patches:
    """A convolution's gradient for each image: its patches are cut where they are used, as those of
    all layers together would fill the memory.
    """

    layer: nn.Conv2d
    images: Tensor  # (images, inputs, height, width)
    delta: Tensor  # derivative by the output, (images, outputs, height, width)

    def outer(self) -> _Outer:
        """The same as a sum over places of outer products."""
        layer = self.layer
        sizes: Any = (layer.kernel_size, layer.dilation, layer.padding, layer.stride)
        patches = unfold(self.images, *sizes).transpose(1, 2)
        return _Outer(self.delta.flatten(2).transpose(1, 2), patches)

    def sum_of(self, factors: Tensor) -> Tensor:
        """Sum over images, each times its factor, in the weight's shape."""
        layer = self.layer
        options: Any = {name: getattr(layer, name) for name in ("stride", "padding", "dilation")}
        scaled = self.delta * factors[:, None, None, None]
        return conv2d_weight(self.images, layer.weight.shape, scaled, **options)


@dataclass(frozen=True, eq=False)
class _Gradients:
    """Gradients of all documents: of weights as outer products, of vectors directly."""

    weights: dict[nn.Parameter, list[_Outer | _Patches]]
    vectors: dict[nn.Parameter, Tensor]

    def add_vector(self, parameter: nn.Parameter, gradients: Tensor) -> None:
        """Add gradients (documents, size) of one use of a vector."""
        self.vectors[parameter] = self.vectors.get(parameter, 0) + gradients

    def square_norms(self) -> Tensor:
        """Squared norm of each document's gradient of all parameters, shape (documents,)."""
        squares = [_square_norms(uses) for uses in self.weights.values()]
        squares += [vector.square().sum(1) for vector in self.vectors.values()]
        return torch.stack(squares).sum(0)

    def sum_of(self, parameter: nn.Parameter, factors: Tensor) -> Tensor:
        """Sum over documents, each times its factor, (documents,), in the parameter's shape; zeros
        for a parameter that no layer used.
        """
        if parameter in self.vectors:
            return factors @ self.vectors[parameter]
        total = torch.zeros_like(parameter)
        for use in self.weights.get(parameter, ()):
            if isinstance(use, _Patches):
                total += use.sum_of(factors)
                continue
            columns = (use.columns * factors[:, None, None]).flatten(0, 1)
            if use.rows.is_floating_point():
                total.addmm_(use.rows.flatten(0, 1).T, columns)
            else:  # one-hot rows, told by their numbers: each adds to one row of the weight
                total.index_add_(0, use.rows.flatten(), columns)
        return total


def check_layers(model: nn.Module) -> None:
    """Refuse a model that trains other layers than Linear, Conv1D (GPT-2's), Conv2d, Embedding,
    LayerNorm and GroupNorm.

    Raises:
        ValueError: Such a layer, or no weight to train.
    """
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise ValueError("model: expected weights to train, got none that require a gradient")
    for name, layer in model.named_modules():
        problem = _problem(layer)
        if problem:
            raise ValueError(
                "model: DP-SGD clips the gradient of each document, known for Linear, Conv1D, "
                "Conv2d, Embedding, LayerNorm and GroupNorm; "
                f"{name or 'the model itself'} is {problem}. Take another model, or freeze such "
                "weights (requires_grad)"
            )


def has_known_layers(model: nn.Module) -> bool:
    """Whether `check_layers` lets a model pass."""
    try:
        check_layers(model)
    except ValueError:
        return False
    return True


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
        documents: Number of documents.
        clip_norm: Largest Euclidean norm of a document's clipped gradient, above 0.
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
    # Norms and sums further down are exact for what these two passes gave.
    with fast_products(allowed=not check):
        with _recorded(model, documents) as uses:
            losses = document_losses()
        outputs = [use.output for use in uses]
        targets = [*outputs, *parameters] if check else outputs
        derivatives = torch.autograd.grad(losses.sum(), targets, allow_unused=True)
    with torch.no_grad():
        gradients = _gradients_of(uses, derivatives[: len(uses)])
        if check:
            unclipped = derivatives[len(uses) :]
            _compare(model, gradients, parameters, unclipped, torch.ones_like(losses))
        factors = (clip_norm / (gradients.square_norms().sqrt() + _NORM_OFFSET)).clamp_(max=1)
        for parameter in parameters:
            total = gradients.sum_of(parameter, factors)
            parameter.grad = total if parameter.grad is None else parameter.grad.add_(total)
    return losses.detach()


def _gradients_of(uses: Sequence["_Use"], derivatives: Sequence[Tensor | None]) -> _Gradients:
    """Gradients of all documents from the derivatives by the outputs of all uses, in the same
    order; None for an output on which the loss does not depend.
    """
    gradients = _Gradients({}, {})
    for use, delta in zip(uses, derivatives, strict=True):
        if delta is not None:  # else nothing uses the output
            _add_use(gradients, use, delta)
    return gradients


@dataclass(frozen=True, eq=False)
class _Use:
    """One call of a layer: its input, without gradient, and its output; first axis documents."""

    layer: nn.Module
    input: Tensor
    output: Tensor


@contextmanager
def _recorded(model: nn.Module, documents: int) -> Iterator[list[_Use]]:
    """While this is open: the list of calls of all layers with weights to train, filled in the
    order of the forward pass. A ValueError from that pass for a layer that mixes documents, or runs
    without gradients.
    """
    uses: list[_Use] = []

    def keep(layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
        """Note a call of the layer, and pass on its output with the documents on the first axis,
        so that a derivative by it has a row for each document.

        Raises:
            ValueError: A layer that runs without gradients, or mixes documents.
        """
        if not output.requires_grad:
            raise ValueError(
                "model: a layer ran without gradients; switch gradient checkpointing off"
            )
        (layer_input,) = inputs
        # An output that all documents share, as of positions, is repeated for each of them; what
        # comes behind then reads the copies, whose derivatives are the documents' own.
        use = _for_each_document(_Use(layer, layer_input.detach(), output), documents)
        uses.append(use)
        return use.output

    handles = [
        layer.register_forward_hook(keep) for layer in model.modules() if _own_parameters(layer)
    ]
    try:
        yield uses
    finally:
        for handle in handles:
            handle.remove()


def _for_each_document(use: _Use, documents: int) -> _Use:
    """The use with its input and output for each document, on the first axis; a ValueError for a
    layer that mixes documents.
    """
    count = len(use.output)
    if count == documents:
        return use
    if count != 1 or not isinstance(use.layer, nn.Embedding):
        expected = f"layers that keep documents apart, first axis {documents}"
        raise ValueError(f"model: expected {expected}, got {count} from {use.layer}")
    # Positions are looked up once for all documents: from here on each has its own.
    return _Use(
        use.layer,
        use.input.expand(documents, *use.input.shape[1:]),
        use.output.expand(documents, *use.output.shape[1:]),
    )


def _own_parameters(layer: nn.Module) -> list[nn.Parameter]:
    """Parameters to train of the layer itself, not of layers within it."""
    return [parameter for parameter in layer.parameters(recurse=False) if parameter.requires_grad]


def _problem(layer: nn.Module) -> str:
    """Why the layer's gradients are not known, or nothing."""
    if isinstance(layer, nn.modules.batchnorm._BatchNorm):
        return "a batch norm, which mixes documents"
    return _problem_of_kind(layer) if _own_parameters(layer) else ""


def _problem_of_kind(layer: nn.Module) -> str:
    """What makes the gradients of a layer with weights to train unknown, as its name in a refusal;
    empty for a layer whose gradients are known.
    """
    if type(layer) is nn.Embedding:
        if layer.max_norm is not None or layer.scale_grad_by_freq:
            return "an Embedding with max_norm or scale_grad_by_freq"
        return ""
    if type(layer) is nn.LayerNorm:
        return "" if len(layer.normalized_shape) == 1 else "a LayerNorm over several axes"
    if type(layer) is nn.Conv2d:
        is_plain = layer.groups == 1 and layer.padding_mode == "zeros"
        is_plain = is_plain and not isinstance(layer.padding, str)
        return "" if is_plain else "a Conv2d of groups, or with another padding than zeros"
    if type(layer) in (nn.Linear, nn.GroupNorm) or _is_conv1d(layer):
        return ""
    return f"a {type(layer).__qualname__}"


def _is_conv1d(layer: Any) -> bool:
    return f"{type(layer).__module__}.{type(layer).__qualname__}" == _CONV1D


def _add_use(gradients: _Gradients, use: _Use, delta: Tensor) -> None:
    """Add the gradients of a layer's parameters; ``delta`` is the derivative by its output, of any
    number of axes: documents first, then places, then the output's numbers.
    """
    layer: Any = use.layer
    weight: Any = layer.weight
    if isinstance(layer, nn.Conv2d | nn.GroupNorm):
        _add_use_of_images(gradients, layer, use.input, delta)
        return
    if delta.ndim == 2:  # one place, as behind the last pooling of an image
        delta = delta[:, None]
        use = _Use(layer, use.input[:, None], use.output)
    delta = delta.flatten(1, -2)  # (documents, tokens, outputs)
    # The output of a norm is weight * normal + bias.
    if weight.requires_grad and isinstance(layer, nn.LayerNorm):
        normal = layer_norm(use.input.flatten(1, -2), layer.normalized_shape, eps=layer.eps)
        gradients.add_vector(weight, (normal * delta).sum(1))
    elif weight.requires_grad:
        gradients.weights.setdefault(weight, []).append(_outer(layer, use.input, delta))
    bias = getattr(layer, "bias", None)
    if bias is not None and bias.requires_grad:
        gradients.add_vector(bias, delta.sum(1))


def _add_use_of_images(
    gradients: _Gradients, layer: nn.Conv2d | nn.GroupNorm, images: Tensor, delta: Tensor
) -> None:
    """Add the gradients of a layer's parameters, where channels stand before places: ``images`` are
    the layer's input, and ``delta`` the derivative by its output, (documents, channels, places...).
    """
    weight: Any = layer.weight
    bias: Any = layer.bias
    if weight is not None and weight.requires_grad:
        if isinstance(layer, nn.Conv2d):
            gradients.weights.setdefault(weight, []).append(_Patches(layer, images, delta))
        else:  # the output is weight * normal + bias
            normal = group_norm(images, layer.num_groups, eps=layer.eps)
            gradients.add_vector(weight, (normal * delta).flatten(2).sum(2))
    if bias is not None and bias.requires_grad:
        gradients.add_vector(bias, delta.flatten(2).sum(2))


def _outer(layer: Any, layer_input: Tensor, delta: Tensor) -> _Outer:
    """The gradient of the layer's weight in its own layout: that of Linear is (outputs, inputs),
    those of Conv1D and Embedding the other way round. ``delta`` is (documents, tokens, outputs).
    """
    if isinstance(layer, nn.Embedding):
        numbers = layer_input.flatten(1)
        if layer.padding_idx is not None:  # its row is not trained
            delta = delta * (numbers != layer.padding_idx)[..., None]
        return _Outer(numbers, delta)
    inputs = layer_input.flatten(1, -2)
    return _Outer(inputs, delta) if _is_conv1d(layer) else _Outer(delta, inputs)


def _square_norms(several: Sequence[_Outer | _Patches]) -> Tensor:
    """Squared norm of each document's gradient of one weight, which is the sum over all its uses,
    shape (documents,).
    """
    uses = [use.outer() if isinstance(use, _Patches) else use for use in several]
    first = uses[0]
    if len(uses) == 1 and first.rows.is_floating_point():
        _, tokens, rows = first.rows.shape
        columns = first.columns.shape[2]
        # Two tables of pairs of tokens would take more room than the gradients themselves, which
        # are soon forgotten.
        if 2 * tokens**2 > rows * columns:
            formed = first.rows.transpose(1, 2) @ first.columns  # (documents, rows, columns)
            return formed.square_().sum((1, 2))
    # A use is the sum over tokens i of the outer products of rows r_i and columns c_i, and
    # |sum of r_i c_i|^2 = sum over pairs of (r_i . r_j) (c_i . c_j), each two uses counted twice.
    total = torch.zeros(len(first.rows), dtype=first.columns.dtype, device=first.columns.device)
    for number, use in enumerate(uses):
        for other in uses[number:]:
            pairs = _inner(use.rows, other.rows) * _inner(use.columns, other.columns)
            total += pairs.sum((1, 2)) * (1 if other is use else 2)
    return total.clamp_(min=0)  # rounding may leave a little less than nothing


def _inner(left: Tensor, right: Tensor) -> Tensor:
    """Inner products of all pairs of rows of one document, shape (documents, tokens, tokens).

    Whole numbers stand for one-hot rows: with another row such a one picks its number out of it,
    and with another one-hot row it gives 1 where they are equal.
    """
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
    expected: Sequence[Tensor | None],
    ones: Tensor,
) -> None:
    """Refuse (ValueError) a model where the sum over documents of a parameter's gradients is not
    what autograd gives, but for rounding.

    Args:
        expected: The gradient of each of ``parameters`` by autograd; None where the loss does not
            depend on it.
        ones: The factors of a plain sum, shape (documents,).
    """
    names = {parameter: name for name, parameter in model.named_parameters()}
    for parameter, by_autograd in zip(parameters, expected, strict=True):
        total = gradients.sum_of(parameter, ones)
        if by_autograd is None:  # The loss does not depend on it.
            by_autograd = torch.zeros_like(total)
        difference = (total - by_autograd).norm()
        if difference > _CHECK_TOLERANCE * by_autograd.norm() + _NORM_OFFSET:
            raise ValueError(
                f"model: {names[parameter]} takes part in the loss other than through its layer, "
                "so that the gradient of one document is not known; freeze it (requires_grad) or "
                "take another model"
            )
