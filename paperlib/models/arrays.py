"""Arrays of any kind as tensors, and labels checked."""

from typing import Any

import numpy as np
import torch
from torch import Tensor


def as_tensor(values: Any) -> Tensor:
    """``values`` as a tensor, sharing memory where that is safe."""
    if isinstance(values, np.ndarray) and not values.flags.writeable:
        values = values.copy()  # torch warns about sharing
    return torch.as_tensor(values)


def check_labels(labels: Any, classes: int, count: int | None = None) -> Tensor:
    """Return labels as an int64 tensor of class numbers, shape (n,)."""
    given = as_tensor(labels)
    if given.ndim != 1:
        raise ValueError(f"labels: expected a 1-D array, got shape {tuple(given.shape)}")
    if count is not None and len(given) != count:
        raise ValueError(f"labels: expected {count}, one for each example, got {len(given)}")
    whole = given.long()
    wrong = (whole != given) | (whole < 0) | (whole >= classes)
    if wrong.any():
        first = int(wrong.nonzero()[0])
        raise ValueError(
            f"labels: expected whole numbers from 0 to {classes - 1}, got {given[first].item()} "
            f"at index {first} ({int(wrong.sum())} of {len(given)} are outside)"
        )
    return whole
