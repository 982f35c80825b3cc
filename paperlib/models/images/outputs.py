"""Outputs of an image classifier: logits, losses, and features of the layer before the last."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from paperlib.models.devices import as_tensor
from paperlib.models.losses import cross_entropy


def as_input(images: Any) -> Tensor:
    """uint8 pixels (n, channels, side, side) as float32 from -1 to 1: what every classifier here takes."""
    given = as_tensor(images)
    if given.dtype != torch.uint8 or given.ndim != 4:
        raise ValueError(
            "images: expected uint8 of shape (n, channels, side, side), "
            f"got {given.dtype} {tuple(given.shape)}"
        )
    return given.float() / 127.5 - 1


def image_logits(module: nn.Module, images: Any, *, batch: int = 1024) -> Tensor:
    """Logits of uint8 images, shape (n, outputs), float32, on the CPU; the module's mode stays as it was."""
    return _collected(module, images, batch, module)


def image_features(module: nn.Module, images: Any, *, batch: int = 1024) -> Tensor:
    """Inputs of the last linear layer, shape (n, features): the model's representation of each image."""
    linears = [layer for layer in module.modules() if isinstance(layer, nn.Linear)]
    if not linears:
        raise ValueError("module: expected one with a linear layer at its end")
    seen: list[Tensor] = []
    hook = linears[-1].register_forward_hook(lambda _, inputs, __: seen.append(inputs[0].flatten(1)))

    def features(x: Tensor) -> Tensor:
        module(x)
        return seen.pop()

    try:
        return _collected(module, images, batch, features)
    finally:
        hook.remove()


def image_losses(logits: Any, labels: Any) -> Tensor:
    """Cross-entropy of each image, float64, shape (n,); the mean over attributes where labels are (n, k)."""
    wanted = as_tensor(labels)
    if wanted.ndim == 1:
        return cross_entropy(logits, wanted)
    scores = as_tensor(logits).double()
    if scores.shape != wanted.shape:
        raise ValueError(
            f"labels: expected shape {tuple(scores.shape)} as the logits, got {tuple(wanted.shape)}"
        )
    return binary_cross_entropy_with_logits(scores, wanted.double(), reduction="none").mean(dim=1)


def _collected(module: nn.Module, images: Any, batch: int, outputs: Any) -> Tensor:
    device = next(module.parameters()).device
    given, was_training = as_tensor(images), module.training
    module.eval()
    try:
        with torch.inference_mode():
            parts = [outputs(as_input(part.to(device))).float().cpu() for part in given.split(batch)]
    finally:
        module.train(was_training)
    return torch.cat(parts)
