"""Losses of batches, checked and put together; losses that a function of the user's computes."""

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
    """``function`` of every batch, one after the other, as one array; no batch outlives its turn."""
    parts: Iterable[FloatArray] = map(function, batches)  # a loop or a bar would keep the last batch
    if sys.stderr.isatty() if progress is None else progress:
        from paperlib.report.bars import progress as bar

        parts = bar(parts, total=total, label="losses")
    losses = np.concatenate([np.empty(0), *parts])
    if not losses.size:
        raise ValueError("data: no records, so there is no loss")
    check_finite("losses", losses)
    return losses


def as_losses(values: Any, count: int | None, who: str) -> FloatArray:
    """Losses of a batch from an array, a tensor or a list that ``who`` gave, float64, shape (count,)."""
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
    """Number of records, or None where the data have no length."""
    shape = getattr(data, "shape", None)
    if shape is not None:  # sparse matrices have no len
        return int(shape[0]) if len(shape) else None
    return len(data) if hasattr(data, "__len__") else None


def rows(data: Any, start: int, end: int) -> Any:
    """Records ``start`` to ``end``: of a table by place, of everything else by a slice."""
    return data.iloc[start:end] if hasattr(data, "iloc") else data[start:end]


def pair_of(data: Any, what: str) -> tuple[Any, Any, int]:
    """Inputs and targets as they were given, and the number of records."""
    if not isinstance(data, tuple | list) or len(data) != 2:
        raise ValueError(f"data: expected {what}, got {type(data).__name__}")
    x, y = (one if row_count(one) is not None else list(one) for one in data)
    counts = row_count(x), row_count(y)
    if counts[0] != counts[1]:
        raise ValueError(f"data: expected as many targets as records, got {counts[1]} and {counts[0]}")
    return x, y, counts[0] or 0


def function_losses(
    model: Callable[[Any], Any], data: Any, *, batch_size: int | None, progress: bool | None
) -> FloatArray:
    """What a function returns for the data, or for one batch of it after the other."""
    # Arrays of one length, such as (x, y), and no tuple of records.
    has_columns = isinstance(data, tuple) and all(
        isinstance(one, list) or hasattr(one, "shape") for one in data
    )
    columns = data if has_columns else [data]
    counts = [row_count(column) for column in columns]
    if len(set(counts)) != 1:
        raise ValueError(f"data: expected arrays of one length, got lengths {counts}")
    count = counts[0]
    if batch_size is not None and count is None:
        raise ValueError(
            f"batch_size: expected an array, a table or a list to cut into batches, got "
            f"{type(data).__name__}; leave batch_size out to call the function once"
        )
    if batch_size is None or count is None:
        return gathered(lambda whole: as_losses(model(whole), count, "model"), [data], progress=progress)
    starts = range(0, count, batch_size)

    def of_batch(start: int) -> FloatArray:
        end = min(start + batch_size, count)
        parts = tuple(rows(column, start, end) for column in columns)
        return as_losses(model(parts if has_columns else parts[0]), end - start, "model")

    return gathered(of_batch, starts, total=len(starts), progress=progress)
