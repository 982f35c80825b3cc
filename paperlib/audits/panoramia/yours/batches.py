"""Batches: what a model takes, cut, joined, and answered with one row of numbers for each example."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from paperlib.core import FloatArray, IntArray

Batch = tuple[Any, ...]
"""Arguments of a model: tables, arrays or lists of one length, such as (rows,) or (images, labels)."""
Model = Callable[..., ArrayLike]
"""Takes a batch and returns one loss for each example, lower where the model knows it, shape (n,); or a table
(n, k) whose first column is the loss."""
Trainer = Callable[..., Model]
"""Takes a batch and, after it, a seed, and returns a model trained on this batch."""


def take(batch: Batch, rows: IntArray) -> Batch:
    """The examples of these numbers.

    >>> take((["a", "b", "c"], np.array([1, 2, 3])), np.array([2, 0]))
    (['c', 'a'], array([3, 1]))
    """

    def part(values: Any) -> Any:
        if isinstance(values, pd.DataFrame):
            return values.iloc[rows].reset_index(drop=True)
        if isinstance(values, list | tuple):
            return [values[int(row)] for row in rows]
        return values[rows]

    return tuple(part(values) for values in batch)


def joined(first: Batch, second: Batch) -> Batch:
    """The examples of two batches, one after the other.

    >>> joined((["a"],), (["b", "c"],))
    (['a', 'b', 'c'],)
    """

    def both(values: Any, others: Any) -> Any:
        if isinstance(values, pd.DataFrame):
            return pd.concat([values, others], ignore_index=True)
        if isinstance(values, list | tuple):
            return [*values, *others]
        return np.concatenate([values, others])

    return tuple(both(*parts) for parts in zip(first, second, strict=True))


def columns(name: str, values: ArrayLike, count: int) -> FloatArray:
    """One model's numbers as a table, shape (n, k).

    Raises:
        ValueError: Other than one row for each example.

    >>> columns("target", [0.5, 1.5], 2).shape
    (2, 1)
    """
    table = np.asarray(values, dtype=np.float64)
    table = table[:, None] if table.ndim == 1 else table
    if table.ndim != 2 or len(table) != count or not table.shape[1]:
        raise ValueError(
            f"{name}: expected one loss for each of {count} examples, shape ({count},) or ({count}, k), got "
            f"{np.asarray(values).shape}"
        )
    return table


def check_model(name: str, model: Model) -> Model:
    """A function, or a ValueError that names who should have returned one."""
    if not callable(model):
        raise ValueError(f"{name}: expected a function that returns losses, got {type(model).__name__}")
    return model
