"""Losses of batches, checked and put together."""

import sys
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np

from paperlib.core import FloatArray
from paperlib.core.checks import check_finite

T = TypeVar("T")


def gathered(
    function: Callable[[T], FloatArray],
    batches: Iterable[T],
    *,
    total: int | None = None,
    progress: bool | None = None,
) -> FloatArray:
    """``function`` of every batch, one after the other, as one array; no batch outlives its turn.

    Args:
        function: Losses of a batch.
        batches: Batches.
        total: Number of batches, for the bar, where it is known.
        progress: Whether a bar is shown; None shows it on a terminal.

    Raises:
        ValueError: No records, or losses that are not finite.
    """
    found: Iterable[FloatArray] = map(function, batches)  # a loop or a bar would keep the last batch
    if sys.stderr.isatty() if progress is None else progress:
        from paperlib.report.bars import progress as bar

        found = bar(found, total=total, label="losses")
    parts = list(found)
    joined = np.concatenate([np.empty(0), *parts])
    if not joined.size:
        raise ValueError("data: no records, so there is no loss")
    check_finite("losses", joined)
    return joined


def as_losses(values: Any, count: int | None, who: str) -> FloatArray:
    """Losses of a batch as float64, shape (count,).

    Args:
        values: What was computed: an array, a tensor or a list.
        count: Number of records; None where it is not known.
        who: What gave the values, for messages.

    Raises:
        ValueError: Another shape, or no real numbers.

    >>> as_losses([1, 2], 2, "model")
    array([1., 2.])
    """
    if hasattr(values, "detach"):
        values = values.detach().cpu().double()
    array = np.asarray(values)
    wanted = "(n,)" if count is None else f"({count},)"
    if array.ndim != 1 or (count is not None and len(array) != count):
        raise ValueError(f"{who}: expected one loss per record, shape {wanted}, got shape {array.shape}")
    if array.dtype.kind not in "iuf":
        raise ValueError(f"{who}: expected real numbers as losses, got values of type {array.dtype}")
    return array.astype(np.float64)


def row_count(data: Any) -> int | None:
    """Number of records, or None where the data have no length.

    >>> row_count([3, 4]), row_count(iter([3]))
    (2, None)
    """
    shape = getattr(data, "shape", None)
    if shape is not None:  # sparse matrices have no len
        return int(shape[0]) if len(shape) else None
    return len(data) if hasattr(data, "__len__") else None


def rows(data: Any, start: int, end: int) -> Any:
    """Records ``start`` to ``end``: of a table by place, of everything else by a slice."""
    return data.iloc[start:end] if hasattr(data, "iloc") else data[start:end]


def pair_of(data: Any, what: str) -> tuple[Any, Any, int]:
    """Inputs and targets as they were given, and the number of records.

    Raises:
        ValueError: No pair, or different lengths.
    """
    if not isinstance(data, tuple | list) or len(data) != 2:
        raise ValueError(f"data: expected {what}, got {type(data).__name__}")
    x, y = (one if row_count(one) is not None else list(one) for one in data)
    counts = row_count(x), row_count(y)
    if counts[0] != counts[1]:
        raise ValueError(f"data: expected as many targets as records, got {counts[1]} and {counts[0]}")
    return x, y, counts[0] or 0
