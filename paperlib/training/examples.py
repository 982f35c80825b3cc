"""Training data, checked once at the edge, on the device where it is used."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from paperlib.models.arrays import as_tensor, check_labels


@dataclass(frozen=True, eq=False)
class Examples:
    """Records and their labels on one device."""

    x: Tensor  # float32, shape (n, ...)
    y: Tensor  # class numbers, int64, shape (n,)

    def __len__(self) -> int:
        return len(self.y)


def check_examples(
    x: Any, y: Any, *, classes: int, device: torch.device, width: int | None = None
) -> Examples:
    """Check records and labels, and put them on ``device``."""
    records = check_records(x, width)
    labels = as_tensor(y)
    if not len(records):
        raise ValueError("x: expected at least one record, got none")
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if len(labels) != len(records):
        raise ValueError(f"y: expected {len(records)} labels, one for each record of x, got {len(labels)}")
    return Examples(records.to(device), check_labels(labels, classes).to(device))


def check_records(x: Any, width: int | None = None) -> Tensor:
    """Return ``x`` as float32, refusing values that are not finite and rows of a wrong width."""
    records = as_tensor(x).float()
    if records.ndim < 2:
        raise ValueError(f"x: expected shape (n, features...), got {tuple(records.shape)}")
    if width is not None and (records.ndim != 2 or records.shape[1] != width):
        raise ValueError(f"x: expected shape (n, {width}) for these widths, got {tuple(records.shape)}")
    finite = torch.isfinite(records)
    if not finite.all():
        row = int((~finite).nonzero()[0, 0])
        raise ValueError(
            f"x: {int((~finite).sum())} values are not finite (first in row {row}); fix them before training"
        )
    return records
