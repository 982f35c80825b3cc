"""Records of what a user brings, cut into batches, and the losses of batches as one array."""

import sys
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np

from paperlib.core import FloatArray
from paperlib.core.checks import check_finite, check_index

T = TypeVar("T")


def gathered(
    function: Callable[[T], FloatArray],
    batches: Iterable[T],
    *,
    total: int | None = None,
    progress: bool | None = None,
) -> FloatArray:
    """``function`` of every batch, one after the other, as one array, shape (n,); no batch outlives
    its turn.

    Args:
        function: From a batch to the losses of its records.
        total: Number of batches, for the bar; None where it is not known.
        progress: Whether a bar shows the progress; None shows it on a terminal.

    Raises:
        ValueError: No record, or a loss that is not finite.
    """
    # Not a loop, which would keep the last batch while the next one is made.
    outputs: Iterable[FloatArray] = map(function, batches)
    has_bar = sys.stderr.isatty() if progress is None else progress
    if has_bar:
        from paperlib.report.bars import progress as bar

        outputs = bar(outputs, total=total, label="losses")
    losses = np.concatenate([np.empty(0), *outputs])
    if not losses.size:
        raise ValueError("data: no records, so there is no loss")
    check_finite("losses", losses)
    return losses


def by_rows(
    function: Callable[[int, int], FloatArray], count: int, size: int, progress: bool | None
) -> FloatArray:
    """Losses of ``count`` records, shape (count,), in batches of ``size``: ``function`` takes the
    first row of a batch and the one after its last, and returns the losses of those between.

    Raises:
        ValueError: No record, or a loss that is not finite.
    """
    starts = range(0, count, size)
    return gathered(
        lambda start: function(start, min(start + size, count)),
        starts,
        total=len(starts),
        progress=progress,
    )


def as_losses(values: Any, count: int | None, who: str) -> FloatArray:
    """Losses of a batch from an array, a tensor or a list, float64, shape (count,), or of any
    length where ``count`` is None.

    Raises:
        ValueError: Another shape, no real numbers, or masked ones; the message begins with ``who``,
            the argument that gave them.
    """
    if hasattr(values, "detach"):
        values = values.detach().cpu().double()
    array = np.asarray(values)
    expected = "(n,)" if count is None else f"({count},)"
    if array.ndim != 1 or (count is not None and len(array) != count):
        raise ValueError(
            f"{who}: expected one loss per record, shape {expected}, got shape {array.shape}"
        )
    if array.dtype.kind not in "iuf":
        raise ValueError(
            f"{who}: expected real numbers as losses, got values of type {array.dtype}"
        )
    if np.ma.is_masked(values):
        raise ValueError(
            f"{who}: some losses are masked; give each record one, or leave it out before"
        )
    return array.astype(np.float64)


def row_count(data: Any) -> int | None:
    """Number of rows of an array, a table or a list; None where the data have no length."""
    shape = getattr(data, "shape", None)
    if shape is not None:  # sparse matrices have no len
        return int(shape[0]) if len(shape) else None
    return len(data) if hasattr(data, "__len__") else None


def rows(data: Any, start: int, end: int) -> Any:
    """Records from ``start`` to before ``end``, of a table by their position, not their index."""
    return data.iloc[start:end] if hasattr(data, "iloc") else data[start:end]


def pair_of(data: Any, what: str) -> tuple[Any, Any, int]:
    """Inputs and targets as they were given, or as lists if they have no length, and the number of
    records.

    Raises:
        ValueError: No such pair, for which the message asks as ``what``, different numbers of
            records and targets, or pandas rows in two orders.
    """
    if not isinstance(data, tuple | list) or len(data) != 2:
        raise ValueError(f"data: expected {what}, got {type(data).__name__}")
    check_index("targets", *data)
    x, y = map(_with_length, data)
    records = row_count(x)
    targets = row_count(y)
    if records != targets:
        raise ValueError(f"data: expected as many targets as records, got {targets} and {records}")
    return x, y, records or 0


def _with_length(values: Any) -> Any:
    """Values that say how many they are: as they are, or put into a list."""
    return values if row_count(values) is not None else list(values)
