"""The meter: a few steps of each long loop are measured, the others are left out.

It is installed in the kernel of a shortened run, see `shortened`.
"""

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from threading import RLock
from typing import Any, TypeGuard, TypeVar, cast

import numpy as np
import torch
from torch import Tensor
from transformers import AutoTokenizer

from paperlib.running.cost.counter import Counter
from paperlib.running.cost.stages import Stage, Work
from paperlib.running.cost.stand_ins import made_up, stand_in

T = TypeVar("T")
R = TypeVar("R")

PROBE_ROWS = 2
"""Rows of the first step, which warms up and counts."""
TIMED_STEPS = 3
SECONDS = 4.0
"""A step that takes longer is timed on fewer rows, and no further step is timed after so long."""


class RunMeter:
    """Measures the loops of this process.

    Attributes:
        work: What was measured so far.
    """

    def __init__(self) -> None:
        self.work = Work()
        self._times = 1.0
        self._clock = _Clock()
        self._lock = RLock()  # a loop of another thread waits, so that times do not mix

    def tick(self, counts: bool = True) -> None:
        """Add the seconds since the last tick to what is not shortened, unless they were spent measuring."""
        self.work.add_rest(self._clock.lap() * (self._times if counts else 0.0))

    def steps(
        self,
        items: Iterable[T],
        total: int,
        label: str,
        about: tuple[object, ...],
        weight: Callable[[T], float] | None,
        at_once: float | None = None,
    ) -> Iterator[T]:
        """A few of the items, measured; none of a loop that is known."""
        if not total:
            return
        unit = weight or _length
        with self._lock:
            all_items = cast(Sequence[T], items) if isinstance(items, Sequence) else None
            alike = "" if weight or all_items is None else f"{_length(all_items[0]):g} rows"
            stage = self.work.stage(label, about, alike)
            left = iter(items)
            if all_items is None and not stage.seen:  # the first of an iterator, whose items are alike
                first = next(left)
                stage.largest, left = unit(first), chain([first], left)
            sizes = [stage.largest] * total if all_items is None else list(map(unit, all_items))
            stage.add(
                steps=total * self._times,
                work=sum(sizes) * self._times,
                largest=min(max(sizes), at_once or np.inf),
            )
            if not stage.seen:
                yield from self._measured(stage, left, unit)

    def answers(
        self,
        function: Callable[[T], R],
        items: Sequence[T],
        label: str,
        about: tuple[object, ...],
        rows: Callable[[T], int],
        width: int,
        weight: Callable[[T], float] | None,
    ) -> list[R]:
        """Measured answers to a few items of a loop that is not known, then made-up ones to all."""
        if not items:
            return []
        stage = self.work.stage(label, about, "" if weight else f"{_length(items[0]):g} rows")
        for item in self.steps(items, len(items), label, about, weight):
            try:
                stage.sample = function(item)
            except (NotImplementedError, RuntimeError):
                if not stage.is_meta:
                    raise
                stage.sample = np.repeat([[0.0], [-1.0]], width, axis=1)  # no weights, no values
        return [made_up(stage.sample, rows(item), seed) for seed, item in enumerate(items)]

    def alike(
        self, function: Callable[[T], R], items: Sequence[T], label: str, weight: Callable[[T], float]
    ) -> list[R]:
        """The first answer, then the second for all others, whose cost counts as often as weights say."""
        found = [function(item) for item in items[:1]]  # it warms up what is kept
        if len(items) > 1:
            with self._lock, self._repeated(sum(map(weight, items[1:])) / weight(items[1])):
                answer = function(items[1])
            found += [answer] * (len(items) - 1)
        return found

    def language_model(self, name: str, dtype: str) -> tuple[Any, Any] | None:
        """A model on the meta device in the place of one that does not fit or has no weights here."""
        found = stand_in(name, dtype)
        if found is None:
            return None
        model, self.work.models[name] = found
        return None if model is None else (model, AutoTokenizer.from_pretrained(name))

    @contextmanager
    def _repeated(self, times: float) -> Generator[None]:
        self.tick()
        self._times *= times
        try:
            yield
            self.tick()
        finally:
            self._times /= times

    def _measured(self, stage: Stage, items: Iterator[T], unit: Callable[[T], float]) -> Iterator[T]:
        """Yield a step to warm up, two to be counted, then up to three to be timed."""
        self.tick()
        first, counter = next(items), Counter()
        small = _part(first, PROBE_ROWS)
        try:
            self._clock.lap()
            seconds = yield from self._counted(stage, counter, small, unit)
            if stage.is_meta or (small is first and seconds > SECONDS):
                stage.timed(None if stage.is_meta else seconds / unit(first))
                return
            stage.courses.clear()  # of a step that made the optimizer's moments
            for part in (small, _part(first, 2 * PROBE_ROWS)):
                seconds = yield from self._counted(stage, counter, part, unit)
            rows, spent = int(_length(part) * SECONDS / max(seconds, 1e-9)), 0.0
            for _ in range(TIMED_STEPS):
                part = _part(next(items, first), max(PROBE_ROWS, rows))
                yield part
                seconds = self._clock.lap()
                stage.timed(seconds / max(unit(part), 1e-9))
                spent += seconds
                if spent > SECONDS:
                    break
        finally:
            self._clock.lap()

    def _counted(
        self, stage: Stage, counter: Counter, part: T, unit: Callable[[T], float]
    ) -> Generator[T, None, float]:
        """Yield a step whose operations are counted; returns its seconds."""
        counter.restart()
        with counter:
            yield part
            stage.counted(counter, unit(part))
        return self._clock.lap()


class _Clock:
    """Seconds of work: of wall time, or of processor time where other processes were in the way."""

    def __init__(self) -> None:
        self._last = self._now()

    def lap(self) -> float:
        """Seconds since the last call."""
        now = self._now()
        wall, processor = (new - old for new, old in zip(now, self._last, strict=True))
        self._last = now
        return wall if torch.cuda.is_available() else min(wall, processor)

    def _now(self) -> tuple[float, float]:
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        return time.perf_counter(), time.process_time()


def _length(item: object) -> float:
    """Rows of a batch; 1 for what is no batch."""
    return float(len(item)) if _is_batch(item) else 1.0


def _part(item: Any, rows: int) -> Any:
    """The first rows of a batch; the item itself where it has no more, or no rows."""
    return item[:rows] if _length(item) > rows else item


def _is_batch(item: object) -> "TypeGuard[Tensor | np.ndarray]":
    return isinstance(item, Tensor | np.ndarray) and item.ndim > 0
