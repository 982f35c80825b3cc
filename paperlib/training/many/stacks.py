"""Many MLPs of one shape as one matrix of parameters, and their gradients, with or without DP-SGD."""

from collections.abc import Sequence

import torch
from torch import Tensor

from paperlib.models import MLP
from paperlib.training.batches import Examples, NoiseStreams, generator
from paperlib.training.config import TrainingConfig
from paperlib.training.private import ghost


class MLPStack:
    """Parameters and gradients of K MLPs as two (K, size) matrices, with their layers as views."""

    def __init__(
        self, mlp: MLP, configs: Sequence[TrainingConfig], data: Examples, dtype: torch.dtype
    ) -> None:
        self._mlp, self._dtype = mlp, dtype
        initial = [mlp.initial(generator(config.seed, "initial")) for config in configs]
        self.parameters = torch.stack(initial).to(data.x.device)
        self._gradients = torch.zeros_like(self.parameters)
        self._clipping = _Clipping(mlp, configs, data) if configs[0].is_private else None

    def start(self, epoch: int, count: int) -> None:
        """Begin an epoch in which the first ``count`` models are trained."""
        self._count = count
        self._layers = self._mlp.views(self.parameters[:count])
        self._slots = self._mlp.views(self._gradients[:count])
        if self._clipping is not None:
            self._clipping.noise.start(epoch, count)

    def gradients(self, x: Tensor, y: Tensor, present: Tensor | None) -> Tensor:
        """Gradients (count, size) on (count, B, inputs) and (count, B); with DP-SGD where ``present``."""
        gradients = self._gradients[: self._count]
        if present is not None and self._clipping is not None:
            self._private(x, y, present, self._clipping, gradients)
            return gradients
        layers, activation = self._layers, self._mlp.activation
        if self._dtype != torch.float32:
            layers = self._mlp.views(self.parameters[: self._count].to(self._dtype))
        inputs, logits = ghost.forward(layers, x.to(self._dtype), activation)
        top = ghost.loss_derivative(logits, y).div_(y.shape[1])
        ghost.write_gradients(self._slots, inputs, ghost.derivatives(layers, inputs, top, activation))
        return gradients

    def _private(
        self, x: Tensor, y: Tensor, present: Tensor, clipping: "_Clipping", gradients: Tensor
    ) -> None:
        inputs, logits = ghost.forward(self._layers, x, self._mlp.activation)
        top = ghost.loss_derivative(logits, y).mul_(present[..., None])
        clip, groups = clipping.norms[: self._count], clipping.groups
        if groups is not None:  # each record's share of its group's average
            sizes = present.unflatten(1, (groups, -1)).sum(-1).clamp(min=1)
            top = top.unflatten(1, (groups, -1)).div_(sizes[..., None, None]).flatten(1, 2)
        deltas = ghost.derivatives(self._layers, inputs, top, self._mlp.activation)
        if groups == 1:  # The only group's gradient is formed anyway.
            ghost.write_gradients(self._slots, inputs, deltas)
            gradients.mul_(ghost.clip_factors(gradients.square().sum(1, keepdim=True), clip))
        else:
            share = ghost.clip_factors(ghost.square_norms(inputs, deltas, groups), clip) / clipping.divisor
            each = share.repeat_interleave(x.shape[1] // share.shape[1], dim=1)[..., None]
            ghost.write_gradients(self._slots, inputs, [delta.mul_(each) for delta in deltas])
        gradients.addcmul_(clipping.noise.next(), clipping.noise_scale[: self._count])


class _Clipping:
    """Clipping norms and noise of K models trained with DP-SGD."""

    def __init__(self, mlp: MLP, configs: Sequence[TrainingConfig], data: Examples) -> None:
        device = data.x.device
        self.groups = configs[0].groups
        # Of clipped gradients and noise: as in TensorFlow Privacy for groups, as in Opacus for examples.
        self.divisor = self.groups or configs[0].expected_batch(len(data))
        norms = [config.clip_norm or 0.0 for config in configs]
        scales = [c.noise_multiplier * norm / self.divisor for c, norm in zip(configs, norms, strict=True)]
        self.norms = torch.tensor(norms, device=device)[:, None]
        self.noise_scale = torch.tensor(scales, device=device)[:, None]
        self.noise = NoiseStreams([config.seed for config in configs], mlp.size, device)
