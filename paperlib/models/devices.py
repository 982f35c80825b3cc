"""Arrays of any kind as tensors, labels checked, and the device that models are put on."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor


def as_tensor(values: Any) -> Tensor:
    """``values`` as a tensor of the same shape and type, sharing memory where that is safe."""
    if isinstance(values, np.ndarray) and not values.flags.writeable:
        values = values.copy()  # torch warns about sharing
    return torch.as_tensor(values)


def check_labels(labels: Any, classes: int, count: int | None = None) -> Tensor:
    """Labels, shape (n,), as an int64 tensor of class numbers from 0 to ``classes`` - 1.

    Raises:
        ValueError: Another number of axes, other numbers, or not ``count`` labels where it is said.
    """
    values = as_tensor(labels)
    if values.ndim != 1:
        raise ValueError(f"labels: expected a 1-D array, got shape {tuple(values.shape)}")
    if count is not None and len(values) != count:
        raise ValueError(f"labels: expected {count}, one for each example, got {len(values)}")
    whole = values.long()
    wrong = (whole != values) | (whole < 0) | (whole >= classes)
    if wrong.any():
        first = int(wrong.nonzero()[0])
        raise ValueError(
            f"labels: expected whole numbers from 0 to {classes - 1}, got {values[first].item()} "
            f"at index {first} ({int(wrong.sum())} of {len(values)} are outside)"
        )
    return whole


def default_device(device: torch.device | str | None = None) -> torch.device:
    """The device asked for; with None, CUDA where there is one, else the CPU.

    Raises:
        ValueError: A device that torch does not know, or that this machine does not have.
    """
    name = device or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError) as error:  # torch without CUDA asserts
        raise ValueError(
            "device: expected 'cpu', 'cuda', 'cuda:0', ..., one that is there, got "
            f"{str(device)!r}: {str(error).splitlines()[0]}"
        ) from error
    return torch.device(name)


@contextmanager
def evaluating(model: torch.nn.Module) -> Iterator[None]:
    """Without dropout and gradients; the mode of each part of the model is put back afterwards."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        # Not in inference mode: what a module keeps of a call can be trained with.
        with torch.no_grad():
            yield
    finally:
        for module, training in modes:
            module.training = training


@contextmanager
def fast_products(*, allowed: bool = True) -> Iterator[None]:
    """Products of float32 matrices on a GPU's tensor cores (TF32, 10 bits of mantissa), not on a
    CPU.
    """
    allowed_before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = allowed_before or allowed
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = allowed_before
