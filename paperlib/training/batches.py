"""Checked training data; which records are in which batch, and the noise: drawn from the seed
alone.

One-at-a-time training, ensembles and Opacus all draw from here, by (seed, purpose, epoch). So they
see the same batches, and an interrupted run resumes with nothing to restore but the epoch number.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from paperlib.models.devices import as_tensor, check_labels


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
    """Records (n, features...) and labels, (n,) or (n, 1), on ``device``.

    Args:
        classes: Number of labels: they are 0 to ``classes`` - 1.
        width: Features that each record must have; None takes records of any shape.

    Raises:
        ValueError: No record, numbers that are not finite, or labels that do not fit.
    """
    records = check_records(x, width)
    labels = as_tensor(y)
    if not len(records):
        raise ValueError("x: expected at least one record, got none")
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if len(labels) != len(records):
        raise ValueError(
            f"y: expected {len(records)} labels, one for each record of x, got {len(labels)}"
        )
    return Examples(records.to(device), check_labels(labels, classes).to(device))


def check_records(x: Any, width: int | None = None) -> Tensor:
    """``x`` as float32, shape (n, features...).

    Raises:
        ValueError: A value that is not finite, no axis of features, or, where ``width`` is said,
            another shape than (n, ``width``).
    """
    records = as_tensor(x).float()
    if records.ndim < 2:
        raise ValueError(f"x: expected shape (n, features...), got {tuple(records.shape)}")
    if width is not None and (records.ndim != 2 or records.shape[1] != width):
        raise ValueError(
            f"x: expected shape (n, {width}) for these widths, got {tuple(records.shape)}"
        )
    wrong = (~torch.isfinite(records)).nonzero()  # the axes of each such value, row first
    if len(wrong):
        raise ValueError(
            f"x: {len(wrong)} values are not finite (first in row {int(wrong[0, 0])}); fix them "
            "before training"
        )
    return records


_PURPOSES = {"initial": 0, "order": 1, "poisson": 2, "noise": 3, "module": 4}


def torch_seed(seed: int, purpose: str, epoch: int = 0) -> int:
    """A 64-bit seed for torch, independent for each seed, purpose (a key of `_PURPOSES`, or a
    KeyError) and epoch.
    """
    return int(
        np.random.SeedSequence([seed, _PURPOSES[purpose], epoch]).generate_state(1, np.uint64)[0]
    )


def generator(
    seed: int, purpose: str, epoch: int = 0, device: torch.device | str = "cpu"
) -> torch.Generator:
    """A torch generator of its own for each seed, purpose and epoch."""
    return torch.Generator(device).manual_seed(torch_seed(seed, purpose, epoch))


def shuffled(seed: int, epoch: int, examples: int) -> np.ndarray:
    """The order in which one epoch of plain training goes through the records, shape
    (examples,).
    """
    return _numpy(seed, "order", epoch).permutation(examples)


@dataclass(frozen=True, eq=False)
class PoissonBatches:
    """The batches of one epoch of DP-SGD."""

    records: np.ndarray  # record numbers of all batches, one batch after the other
    starts: np.ndarray  # of each batch in the records, and the end; shape (steps + 1,)

    def batch(self, step: int) -> np.ndarray:
        """Record numbers of one batch, all different, possibly none, shape (B,)."""
        return self.records[self.starts[step] : self.starts[step + 1]]

    def padded(self, width: int) -> np.ndarray:
        """All batches as one array (steps, width) of record numbers, -1 where there is no record; a
        ValueError where a batch is longer.
        """
        sizes = np.diff(self.starts)[:, None]
        table = np.full((len(sizes), width), -1, dtype=np.int64)
        table[np.arange(width) < sizes] = self.records
        return table


def poisson_batches(
    seed: int, epoch: int, examples: int, *, rate: float, steps: int, shuffle: bool = False
) -> PoissonBatches:
    """Draw every record into every batch by its own coin, with chance ``rate`` in (0, 1],
    exactly; the same seed and epoch draw the same batches.

    Args:
        epoch: Number of the epoch, from 0.
        examples: Number of records.
        steps: Number of batches.
        shuffle: Put the records of each batch into a random order, and not a rising one.
    """
    # The coins are one long row, step after step; gaps between heads are geometric: work grows with
    # the heads, not the coins.
    rng = _numpy(seed, "poisson", epoch)
    coins = steps * examples
    expected = rate * coins
    heads = np.empty(0, dtype=np.int64)
    last_head = -1
    while last_head < coins:
        # Six deviations above the mean: one draw of gaps is nearly always enough.
        gaps = rng.geometric(rate, size=int(expected + 6 * np.sqrt(expected) + 16))
        heads = np.concatenate([heads, last_head + np.cumsum(gaps)])
        last_head = int(heads[-1])
    heads = heads[heads < coins]
    step, record = np.divmod(heads, examples)
    # The order in a batch is random; renaming the records leaves the coins as fair as they were.
    if shuffle:
        record = rng.permutation(examples)[record]
    # The steps of the heads rise, so a batch starts at the first head of its step.
    return PoissonBatches(record, np.searchsorted(step, np.arange(steps + 1)))


class NoiseStreams:
    """Standard normal noise for each model of a stack, from its own seed and the kind of device
    alone.
    """

    def __init__(self, seeds: Sequence[int], size: int, device: torch.device) -> None:
        """Streams for the models of these seeds, which need ``size`` numbers in a step."""
        self._seeds = seeds
        self._device = device
        # A launch costs more than the numbers on a GPU, so there several steps are drawn at once.
        self._block = 8 if device.type == "cuda" else 1
        self._drawn = torch.empty(len(seeds), self._block, size, device=device)
        self._generators: list[torch.Generator] = []
        self._used = self._block  # steps whose noise is used up: all, so that the next one draws

    def start(self, epoch: int, count: int) -> None:
        """Begin an epoch with the first ``count`` models."""
        self._generators = [
            generator(seed, "noise", epoch, self._device) for seed in self._seeds[:count]
        ]
        self._used = self._block

    def next(self) -> Tensor:
        """Noise of standard deviation 1 for one step, shape (count, size); valid until the next
        call.
        """
        if self._used == self._block:
            # Models behind the first ``count`` have no generator: theirs stays undrawn.
            for drawn, source in zip(self._drawn, self._generators, strict=False):
                drawn.normal_(generator=source)
            self._used = 0
        self._used += 1
        return self._drawn[: len(self._generators), self._used - 1]


def _numpy(seed: int, purpose: str, epoch: int) -> np.random.Generator:
    """A numpy generator of its own for each seed, purpose and epoch."""
    return np.random.default_rng([seed, _PURPOSES[purpose], epoch])
