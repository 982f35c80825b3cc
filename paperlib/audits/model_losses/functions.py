"""Losses that a function of the user's computes."""

from collections.abc import Callable
from typing import Any

from paperlib.audits.model_losses.values import as_losses, gathered, row_count, rows
from paperlib.core import FloatArray


def function_losses(
    model: Callable[[Any], Any], data: Any, *, batch_size: int | None, progress: bool | None
) -> FloatArray:
    """What a function returns for the data, or for one batch of it after the other.

    Args:
        model: Function from data, or a batch of it, to losses, shape (n,).
        data: Anything the function takes; for batches an array, a table, a list, or a tuple of such.
        batch_size: Records per batch; None calls the function once.
        progress: Whether a bar is shown.

    Raises:
        ValueError: Batches of data without a length, or not one finite number per record.
    """
    count = _count(data)
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
        return as_losses(model(_part(data, start, end)), end - start, "model")

    return gathered(of_batch, starts, total=len(starts), progress=progress)


def _has_columns(data: Any) -> bool:
    """Whether data are a tuple of arrays of one length, such as (x, y), and no tuple of records."""
    return isinstance(data, tuple) and all(isinstance(one, list) or hasattr(one, "shape") for one in data)


def _count(data: Any) -> int | None:
    if not _has_columns(data):
        return row_count(data)
    counts = {row_count(column) for column in data}
    if len(counts) != 1:
        raise ValueError(f"data: expected arrays of one length, got lengths {[row_count(x) for x in data]}")
    return counts.pop()


def _part(data: Any, start: int, end: int) -> Any:
    if _has_columns(data):
        return tuple(rows(column, start, end) for column in data)
    return rows(data, start, end)
