"""Train many MLPs of one shape at once, with or without DP-SGD."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from typing import Any

import torch
from torch import Tensor

from paperlib.core import check_choice
from paperlib.models import MLP
from paperlib.training.batches import NoiseStreams, generator
from paperlib.training.config import TrainingConfig
from paperlib.training.examples import Examples, check_examples, default_device
from paperlib.training.many.stacks import train_stack
from paperlib.training.many.trained import MLPEnsemble, warn_of_divergence
from paperlib.training.private.ghost import (
    clip_factors,
    derivatives,
    forward,
    loss_derivative,
    square_norms,
    write_gradients,
)
from paperlib.training.progress import progress_bar


def fit_ensemble(
    configs: Sequence[TrainingConfig],
    x: Any,
    y: Any,
    *,
    device: torch.device | str | None = None,
    precision: str = "float32",
    chunk: int | None = None,
    threads: int = 1,
    progress: bool = True,
) -> MLPEnsemble:
    """Train one MLP for each config on the same records.

    Guarantee:
        A model depends on its own config, the records, the kind of device and ``precision`` alone, up
        to float rounding: it is the model that ``fit`` (or a call with this config alone) trains.
        Under DP-SGD every record is drawn by its own coin and no draw is cut short.

    Args:
        configs: Equal in ``widths``; everything else may differ. Those equal in ``batch_key`` are
            stacked.
        x: Records, shape (n, widths[0]), finite.
        y: Class numbers, shape (n,); 0 or 1 for one output.
        device: With None, CUDA where there is one, else the CPU.
        precision: "float32", or "bfloat16" to round the inputs of matrix products (parameters stay
            float32; not with DP-SGD, whose clipping would be off by the rounding).
        chunk: Models in a stack; None takes what was measured best.
        threads: Stacks trained at the same time on the CPU. Worth the number of cores, as long as
            each stack's own arithmetic is held to one (``OMP_NUM_THREADS=1``).
        progress: Whether to show a bar.

    Returns:
        The models in the order of ``configs``.

    Raises:
        ValueError: No configs, configs of several widths, or data that do not fit them.

    Warns:
        DivergenceWarning: Some models' parameters are not finite; the others are not affected.

    >>> config = TrainingConfig(widths=(2, 4, 1), epochs=1, batch_size=2, learning_rate=0.1)
    >>> models = fit_ensemble([config], [[0.0, 1.0], [1.0, 0.0]], [0, 1], device="cpu")
    >>> models.logits([[1.0, 1.0]]).shape
    torch.Size([1, 1, 1])
    """
    check_choice("precision", precision, ("float32", "bfloat16"))
    if threads < 1:
        raise ValueError(f"threads: expected 1 or more, got {threads}")
    mlp = _common_shape(configs)
    place = default_device(device)
    data = check_examples(x, y, classes=mlp.classes, device=place, width=mlp.inputs)
    parameters = torch.empty(len(configs), mlp.size, device=place)
    bar = progress_bar(
        sum(config.epochs for config in configs), label="training", unit="epoch", show=progress
    )
    train = partial(_train_part, mlp, configs, parameters, data, precision, bar.update)
    parts = stackable(configs, lambda config: _best_chunk(config, place) if chunk is None else chunk)
    with bar, ExitStack() as stack:
        parallel = threads > 1 and place.type == "cpu"
        mapped = stack.enter_context(ThreadPoolExecutor(threads)).map if parallel else map
        found = list(mapped(train, parts))
    diverged = {model: epoch for part in found for model, epoch in part.items()}
    warn_of_divergence(diverged, len(configs))
    return MLPEnsemble(configs=tuple(configs), diverged=dict(sorted(diverged.items())), parameters=parameters)


def stackable(configs: Sequence[TrainingConfig], chunk: Callable[[TrainingConfig], int]) -> list[list[int]]:
    """Indices of configs that train together, ``chunk`` at most, those with most epochs first."""
    by_key: dict[Any, list[int]] = {}
    for index, config in enumerate(configs):
        by_key.setdefault(config.batch_key, []).append(index)
    parts = []
    for indices in by_key.values():
        indices.sort(key=lambda index: (-configs[index].epochs, configs[index].learning_rate))
        size = chunk(configs[indices[0]])
        if size < 1:
            raise ValueError(f"chunk: expected 1 or more, got {size}")
        parts += [indices[start : start + size] for start in range(0, len(indices), size)]
    return parts


def _best_chunk(config: TrainingConfig, device: torch.device) -> int:
    """Measured: a core is fastest with some 1,000 records in a step, a GPU with all it can get."""
    return 512 if device.type == "cuda" else min(16, max(2, 1024 // config.batch_size))


def _common_shape(configs: Sequence[TrainingConfig]) -> MLP:
    widths = {config.widths for config in configs}
    if len(widths) != 1:
        raise ValueError(f"configs: expected one or more, all of the same widths, got {sorted(widths)}")
    return MLP(widths.pop())


def _train_part(
    mlp: MLP,
    configs: Sequence[TrainingConfig],
    parameters: Tensor,
    data: Examples,
    precision: str,
    on_epoch: Any,
    part: list[int],
) -> dict[int, int]:
    chosen = [configs[index] for index in part]
    if chosen[0].is_private and precision != "float32":
        raise ValueError(f"precision: expected float32 with DP-SGD, got {precision!r}")
    stack = _MLPStack(mlp, chosen, data, getattr(torch, precision))
    with torch.no_grad():
        diverged = train_stack(stack, chosen, data, on_epoch=on_epoch)
    parameters[torch.tensor(part, device=parameters.device)] = stack.stacked
    return {part[model]: epoch for model, epoch in diverged.items()}


class _MLPStack:
    """Parameters and gradients of K MLPs as two (K, size) matrices, with their layers as views."""

    def __init__(
        self, mlp: MLP, configs: Sequence[TrainingConfig], data: Examples, dtype: torch.dtype
    ) -> None:
        self._mlp, self._dtype = mlp, dtype
        initial = [mlp.initial(generator(config.seed, "initial")) for config in configs]
        self.stacked = torch.stack(initial).to(data.x.device)
        self._gradients = torch.zeros_like(self.stacked)
        self._clipping = _Clipping(mlp, configs, data) if configs[0].is_private else None

    @property
    def parameters(self) -> list[Tensor]:
        return [self.stacked]

    def start(self, epoch: int, count: int) -> None:
        self._count = count
        self._layers = self._mlp.views(self.stacked[:count])
        self._slots = self._mlp.views(self._gradients[:count])
        if self._clipping is not None:
            self._clipping.noise.start(epoch, count)

    def gradients(self, x: Tensor, y: Tensor, present: Tensor | None) -> list[Tensor]:
        gradients = self._gradients[: self._count]
        if present is None or self._clipping is None:
            self._plain(x, y)
        else:
            self._private(x, y, present, self._clipping, gradients)
        return [gradients]

    def _plain(self, x: Tensor, y: Tensor) -> None:
        layers = self._layers
        if self._dtype != torch.float32:
            layers = self._mlp.views(self.stacked[: self._count].to(self._dtype))
        inputs, logits = forward(layers, x.to(self._dtype))
        top = loss_derivative(logits, y).div_(y.shape[1])
        write_gradients(self._slots, inputs, derivatives(layers, inputs, top))

    def _private(
        self, x: Tensor, y: Tensor, present: Tensor, clipping: "_Clipping", gradients: Tensor
    ) -> None:
        inputs, logits = forward(self._layers, x)
        top = clipping.averaged(loss_derivative(logits, y).mul_(present[..., None]), present)
        deltas = derivatives(self._layers, inputs, top)
        clip, groups = clipping.norms[: self._count], clipping.groups
        if groups == 1:  # The only group's gradient is formed anyway.
            write_gradients(self._slots, inputs, deltas)
            gradients.mul_(clip_factors(gradients.square().sum(1, keepdim=True), clip))
        else:
            share = clip_factors(square_norms(inputs, deltas, groups), clip) / clipping.divisor
            each = share.repeat_interleave(x.shape[1] // share.shape[1], dim=1)[..., None]
            write_gradients(self._slots, inputs, [delta.mul_(each) for delta in deltas])
        gradients.addcmul_(clipping.noise.next(), clipping.noise_scale[: self._count])


class _Clipping:
    """What DP-SGD needs to know of K models.

    The clipped gradients of examples are summed and divided by the expected batch size, as in Opacus;
    those of groups by the number of groups, as in TensorFlow Privacy. The noise is divided likewise.
    """

    def __init__(self, mlp: MLP, configs: Sequence[TrainingConfig], data: Examples) -> None:
        device = data.x.device
        self.groups = configs[0].groups
        self.divisor = self.groups or configs[0].expected_batch(len(data))
        norms = [config.clip_norm or 0.0 for config in configs]
        scales = [
            config.noise_multiplier * norm / self.divisor for config, norm in zip(configs, norms, strict=True)
        ]
        self.norms = torch.tensor(norms, device=device)[:, None]
        self.noise_scale = torch.tensor(scales, device=device)[:, None]
        self.noise = NoiseStreams([config.seed for config in configs], mlp.size, device)

    def averaged(self, top: Tensor, present: Tensor) -> Tensor:
        """Each record's share of its group's average; unchanged where examples are clipped."""
        if self.groups is None:
            return top
        sizes = present.unflatten(1, (self.groups, -1)).sum(-1).clamp(min=1)
        return top.unflatten(1, (self.groups, -1)).div_(sizes[..., None, None]).flatten(1, 2)
