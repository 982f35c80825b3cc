"""Train many MLPs of one shape at once, with or without DP-SGD."""

import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import torch

from paperlib.core import check_at_least, check_choice
from paperlib.io.progress import progress_bar
from paperlib.models import MLP
from paperlib.models.devices import default_device
from paperlib.training.batches import check_examples
from paperlib.training.config import TrainingConfig
from paperlib.training.many.loop import MLPStack, train_stack
from paperlib.training.many.trained import DivergenceWarning, MLPEnsemble


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
        Under DP-SGD every record is drawn by its own coin and no draw is cut short. Configs equal in all
        but their epochs are trained once.

    Args:
        configs: Configs of equal ``widths`` and ``activation``; those equal in ``batch_key`` too are stacked.
        x: Records, shape (n, widths[0]), finite.
        y: Class numbers, shape (n,); 0 or 1 for one output.
        device: None takes CUDA where there is one, else the CPU.
        precision: "float32", or "bfloat16" to round the inputs of matrix products (parameters stay
            float32; not with DP-SGD, whose clipping would be off by the rounding).
        chunk: Models in a stack, 1 or more; None takes the fastest by measurement.
        threads: Stacks trained at the same time on the CPU, 1 or more. Set it to the number of cores only
            if each stack's own arithmetic is held to one (``OMP_NUM_THREADS=1``).

    Raises:
        ValueError: No configs, configs of several widths or activations, or data that do not fit them.

    Warns:
        DivergenceWarning: Some models' parameters are not finite; the others are not affected.

    >>> config = TrainingConfig(widths=(2, 4, 1), epochs=1, batch_size=2, learning_rate=0.1)
    >>> models = fit_ensemble([config], [[0.0, 1.0], [1.0, 0.0]], [0, 1], device="cpu")
    >>> models.logits([[1.0, 1.0]]).shape
    torch.Size([1, 1, 1])
    """
    check_choice("precision", precision, ("float32", "bfloat16"))
    check_at_least(1, threads=threads, chunk=1 if chunk is None else chunk)
    if precision != "float32" and any(config.is_private for config in configs):
        raise ValueError(f"precision: expected float32 with DP-SGD, got {precision!r}")
    shapes = {(config.widths, config.activation) for config in configs}
    if len(shapes) != 1:
        raise ValueError(
            f"configs: expected one or more, all of the same widths and activation, got {sorted(shapes)}"
        )
    mlp = MLP(*shapes.pop())
    place = default_device(device)
    data = check_examples(x, y, classes=mlp.classes, device=place, width=mlp.inputs)
    parameters = torch.empty(len(configs), mlp.size, device=place)
    alike: dict[TrainingConfig, list[int]] = {}
    for index, config in enumerate(configs):
        alike.setdefault(replace(config, epochs=0), []).append(index)
    # Of configs that differ in their epochs alone the longest is trained, and the others on the way.
    paths = {max(path, key=lambda index: configs[index].epochs): path for path in alike.values()}
    epochs = sum(configs[index].epochs for index in paths)
    bar = progress_bar(epochs, label="training", unit="epoch", show=progress)

    def train(part: list[int]) -> dict[int, int]:
        chosen = [configs[index] for index in part]
        stack = MLPStack(mlp, chosen, data, getattr(torch, precision))

        def keep(epoch: int, count: int) -> None:
            if epoch:
                bar.update(count)
            for model, index in enumerate(part[:count]):
                for at in paths[index]:
                    if configs[at].epochs == epoch:
                        parameters[at] = stack.parameters[model]

        with torch.no_grad():
            keep(0, len(part))
            diverged = train_stack(stack, chosen, data, on_epoch=keep)
        return {
            at: epoch
            for model, epoch in diverged.items()
            for at in paths[part[model]]
            if epoch <= configs[at].epochs
        }

    by_key: dict[Any, list[int]] = {}
    for index in paths:
        by_key.setdefault(configs[index].batch_key, []).append(index)
    parts: list[list[int]] = []
    for indices in by_key.values():  # those that train together, most epochs first
        indices.sort(key=lambda index: (-configs[index].epochs, configs[index].learning_rate))
        # Measured: a core is fastest with some 1,000 records in a step, a GPU with all it can get.
        few = min(16, max(2, 1024 // configs[indices[0]].batch_size))
        size = chunk or (512 if place.type == "cuda" else few)
        parts += [indices[start : start + size] for start in range(0, len(indices), size)]
    with bar, ExitStack() as stack:
        parallel = threads > 1 and place.type == "cpu"
        mapped = stack.enter_context(ThreadPoolExecutor(threads)).map if parallel else map
        results = list(mapped(train, parts))
    diverged = dict(sorted(item for part in results for item in part.items()))
    if diverged:
        named = ", ".join(f"{model} (epoch {epoch})" for model, epoch in diverged.items())
        message = f"{len(diverged)} of {len(configs)} models diverged: {named}; lower their learning rate"
        warnings.warn(message, DivergenceWarning, stacklevel=2)
    return MLPEnsemble(configs=tuple(configs), diverged=diverged, parameters=parameters)
