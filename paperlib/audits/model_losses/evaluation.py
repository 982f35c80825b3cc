"""A torch module as it is asked for losses, and put back as it was."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from typing import Any

import torch

from paperlib.models.devices import default_device


@contextmanager
def evaluated(model: torch.nn.Module, device: Any = None) -> Iterator[torch.device]:
    """Evaluation mode without gradients on a device; mode of every part and device are put back at the end.

    Args:
        model: Any module.
        device: Device to compute on; None for that of the model, or the CPU for one without weights.

    Yields:
        The device of the inputs.

    Raises:
        ValueError: A device that is not there, or one for a model whose weights lie on several.
    """
    homes = {one.device for one in chain(model.parameters(), model.buffers())}
    place = _place(model, homes, device)
    modes = [(part, part.training) for part in model.modules()]
    try:
        if homes - {place} and device is not None:
            model.to(place)
        model.eval()
        with torch.no_grad():
            yield place
    finally:
        for part, training in modes:
            part.training = training
        if homes - {place} and device is not None:
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
