"""Batches for a torch module, from every form in which people keep their data."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
from torch.utils.data import BatchSampler, DataLoader, Dataset, IterableDataset, SequentialSampler

from paperlib.audits.model_losses.values import pair_of, row_count, rows

_BATCH_SIZE = 256
_WANTED = (
    "a DataLoader, a Dataset, inputs and targets as (x, y), a dictionary with 'labels', or an iterator of "
    "batches"
)


def batches_of(data: Any, batch_size: int | None, dtype: torch.dtype) -> tuple[Iterable[Any], int | None]:
    """Batches in the order of the records, their floating inputs of ``dtype``, and their number if known."""
    has_items = hasattr(data, "__getitem__") and hasattr(data, "__len__")
    # What may only be gone through: no container that could hold records as well.
    is_stream = hasattr(data, "__iter__") and not hasattr(data, "__getitem__")
    if isinstance(data, DataLoader) or (is_stream and not isinstance(data, Dataset)):
        if batch_size is not None:
            raise ValueError("batch_size: the data come in batches already; leave it out")
        if isinstance(data, DataLoader):
            _check_order(data)
        return data, _length(data)
    size = batch_size or _BATCH_SIZE
    if isinstance(data, tuple):
        x, y, count = pair_of(data, _WANTED)
        return _parts(lambda at: (as_tensor(at(x), dtype), as_tensor(at(y))), count, size)
    if isinstance(data, Mapping):
        if "labels" not in data:
            raise ValueError(f"data: expected a dictionary with 'labels', got {', '.join(map(str, data))}")
        counts = {str(name): row_count(column) for name, column in data.items()}
        count = counts["labels"]
        if count is None or set(counts.values()) != {count}:
            raise ValueError(f"data: expected arrays of one length, got lengths {counts}")
        types = {name: None if name == "labels" else dtype for name in data}
        return _parts(lambda at: {name: as_tensor(at(data[name]), types[name]) for name in data}, count, size)
    if isinstance(data, Dataset) or (
        has_items and not isinstance(data, list | str) and not hasattr(data, "shape")
    ):
        loader = DataLoader(data, batch_size=size)
        return loader, _length(loader)
    hint = "; a list could hold records or batches: give iter(list) if it holds batches"
    raise ValueError(
        f"data: expected {_WANTED}, got {type(data).__name__}{hint if isinstance(data, list) else ''}"
    )


def _parts(batch: Callable[[Callable[[Any], Any]], Any], count: int, size: int) -> tuple[Iterator[Any], int]:
    """Batches one after the other; ``batch`` is told how to cut an array, and their number."""
    starts = range(0, count, size)
    cuts = (partial(rows, start=start, end=start + size) for start in starts)
    return map(batch, cuts), len(starts)


def as_tensor(values: Any, dtype: torch.dtype | None = None) -> torch.Tensor:
    """A tensor as it is; other arrays with floating-point numbers of type ``dtype``."""
    if isinstance(values, torch.Tensor):
        return values
    array = np.array(values)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"data: expected numbers, got values of type {array.dtype}")
    tensor = torch.from_numpy(array)
    return tensor.to(dtype) if dtype is not None and tensor.is_floating_point() else tensor


def _length(loader: Any) -> int | None:
    try:
        return len(loader)
    except TypeError:  # of a stream
        return None


def _check_order(loader: DataLoader[Any]) -> None:
    """Refuse a loader that does not give every record once, in its order."""
    if loader.drop_last or getattr(loader.batch_sampler, "drop_last", False):
        raise ValueError(
            "data: the DataLoader drops the last batch, so records would have no loss; make it with "
            "drop_last=False"
        )
    if isinstance(loader.dataset, IterableDataset):
        return
    batches = loader.batch_sampler
    sampler = batches.sampler if type(batches) is BatchSampler else batches or loader.sampler
    if not isinstance(sampler, SequentialSampler):
        raise ValueError(
            f"data: the DataLoader shuffles or chooses records ({type(sampler).__name__}), so nothing says "
            "whose losses they are; make it with shuffle=False, of a Subset for some records"
        )
