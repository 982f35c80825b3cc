"""Losses of torch modules, which are put back as they were."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from typing import Any

import torch

from paperlib.audits.model_losses.batches import batches_of
from paperlib.audits.model_losses.rule import LossRule
from paperlib.audits.model_losses.values import as_losses, gathered, row_count
from paperlib.core import FloatArray
from paperlib.models.devices import default_device


def network_losses(
    model: torch.nn.Module,
    data: Any,
    *,
    loss: Callable[[Any, Any], Any] | None,
    batch_size: int | None,
    device: Any,
    progress: bool | None,
) -> FloatArray:
    """Losses of a module's outputs for every record, by ``loss`` or else by `LossRule`."""
    weights = (one.dtype for one in model.parameters() if one.is_floating_point())
    batches, total = batches_of(data, batch_size, next(weights, torch.get_default_dtype()))
    rule = LossRule()

    def of_batch(batch: Any) -> FloatArray:
        inputs, targets = _divided(batch)
        outputs = _outputs(model, moved(inputs, place))
        if loss is None:
            return as_losses(rule.losses(outputs, targets), row_count(targets), "model")
        return as_losses(loss(outputs, moved(targets, place)), row_count(targets), "loss")

    with evaluated(model, device) as place:
        values = gathered(of_batch, batches, total=total, progress=progress)
    rule.check_end()
    return values


def _divided(batch: Any) -> tuple[Any, Any]:
    """Inputs and targets of a batch."""
    if isinstance(batch, Mapping):
        if "labels" not in batch:
            raise ValueError(
                f"data: expected batches with 'labels', got one with {', '.join(map(str, batch))}"
            )
        return {name: value for name, value in batch.items() if name != "labels"}, batch["labels"]
    if isinstance(batch, tuple | list) and len(batch) == 2:
        return batch[0], batch[1]
    size = f" of {len(batch)}" if isinstance(batch, tuple | list) else ""
    raise ValueError(
        "data: expected batches (inputs, targets) or dictionaries with 'labels', got "
        f"{type(batch).__name__}{size}"
    )


def _outputs(model: torch.nn.Module, inputs: Any) -> Any:
    if isinstance(inputs, Mapping):
        outputs = model(**inputs)
    else:
        outputs = model(*inputs) if isinstance(inputs, tuple | list) else model(inputs)
    return getattr(outputs, "logits", outputs)


@contextmanager
def evaluated(model: torch.nn.Module, device: Any = None) -> Iterator[torch.device]:
    """Evaluation mode without gradients; gives the device of the inputs, and puts mode and device back."""
    homes = {one.device for one in chain(model.parameters(), model.buffers())}
    place = _place(model, homes, device)
    moves = bool(homes - {place}) and device is not None
    modes = [(part, part.training) for part in model.modules()]
    try:
        if moves:
            model.to(place)
        model.eval()
        with torch.no_grad():
            yield place
    finally:
        for part, training in modes:
            part.training = training
        if moves:
            model.to(next(iter(homes)))


def _place(model: torch.nn.Module, homes: set[torch.device], device: Any) -> torch.device:
    if device is not None:
        if len(homes) > 1:
            names = ", ".join(sorted(map(str, homes)))
            raise ValueError(f"device: the model lies on several devices ({names}); leave device out")
        return torch.empty(0, device=default_device(device)).device  # "cuda" is "cuda:0"
    first = next(chain(model.parameters(), model.buffers()), None)
    return torch.device("cpu") if first is None or first.device.type == "meta" else first.device


def moved(values: Any, device: torch.device) -> Any:
    """Tensors on a device, also within tuples, lists and dictionaries; everything else as it is."""
    if isinstance(values, torch.Tensor):
        return values.to(device)
    if isinstance(values, Mapping):
        return {name: moved(value, device) for name, value in values.items()}
    if isinstance(values, tuple | list):
        return tuple(moved(value, device) for value in values)
    return values
