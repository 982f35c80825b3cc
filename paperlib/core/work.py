"""Long loops, which a run that only estimates its own cost may cut short.

Code whose cost matters goes through its loops by `steps`, `answers` and `alike`. They are the plain loops
unless a meter is at work (``paperlib estimate``): then a few steps are measured, the others are left out,
and what they would have answered is made up.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar, cast

PROCESSOR = "on the processor"
"""Part of ``about`` of a loop that runs on the processor where there is a GPU, too."""

T = TypeVar("T")
R = TypeVar("R")


class Meter(Protocol):
    """What takes the place of the loops while a cost is estimated."""

    def steps(
        self,
        items: Iterable[T],
        total: int,
        label: str,
        about: tuple[object, ...],
        weight: Any,
        at_once: float | None,
    ) -> Iterator[T]:
        """A few of ``total`` items, measured."""
        ...

    def answers(
        self,
        function: Callable[[T], R],
        items: Sequence[T],
        label: str,
        about: tuple[object, ...],
        rows: Callable[[T], int],
        width: int,
        weight: Any,
    ) -> list[R]:
        """``function`` of a few items, measured, and made-up values for the others."""
        ...

    def alike(
        self, function: Callable[[T], R], items: Sequence[T], label: str, weight: Callable[[T], float]
    ) -> list[R]:
        """``function`` of the first two items, the second in the place of all others."""
        ...

    def language_model(self, name: str, dtype: str) -> tuple[Any, Any] | None:
        """A model without weights in the place of one that is not there or does not fit; None to load it."""
        ...


_meter: Meter | None = None


@contextmanager
def measured_by(meter: Meter) -> Generator[None]:
    """Cut loops short and measure them by ``meter``."""
    global _meter
    before, _meter = _meter, meter
    try:
        yield
    finally:
        _meter = before


def meter_at_work() -> Meter | None:
    """The meter of this process; None in every run that is no estimate."""
    return _meter


def steps(
    items: Iterable[T],
    label: str,
    *about: object,
    total: int | None = None,
    weight: Callable[[T], float] | None = None,
    at_once: float | None = None,
) -> Iterable[T]:
    """The items of a loop whose turns cost alike, such as training steps: all of them, unchanged.

    Args:
        items: Items; batches of records may be cut by a meter, so that the body takes any number of rows.
        label: Name of the stage in tables of costs.
        about: What the cost of a turn depends on besides the size of the item, such as the module, the
            shape of a record or settings; loops with equal label and ``about`` are measured once.
        total: Number of items, needed where they have no length.
        weight: Relative cost of an item; None takes its length, or 1.
        at_once: Part of an item, by weight, that is in memory together; None for all of it.

    >>> list(steps([1, 2, 3], "counting"))
    [1, 2, 3]
    """
    if _meter is None:
        return items
    count = len(cast(Sequence[T], items)) if total is None else total
    return _meter.steps(items, count, label, about, weight, at_once)


def _length(item: Any) -> int:
    return len(item)


def answers(
    function: Callable[[T], R],
    items: Sequence[T],
    label: str,
    *about: object,
    rows: Callable[[T], int] = _length,
    width: int = 1,
    weight: Callable[[T], float] | None = None,
) -> list[R]:
    """``function`` of every item: arrays or tensors with a row for each row of the item.

    Args:
        function: What a model says of a batch, such as its logits.
        items: Batches.
        label: As in `steps`.
        about: As in `steps`.
        rows: Number of rows of the answer to an item.
        width: Columns of an answer of a model without weights.
        weight: As in `steps`.

    >>> answers(sum, [[1, 2], [3]], "adding")
    [3, 3]
    """
    if _meter is None:
        return [function(item) for item in items]
    return _meter.answers(function, items, label, about, rows, width, weight)


def alike(
    function: Callable[[T], R],
    items: Iterable[T],
    label: str,
    *,
    weight: Callable[[T], float] = lambda _: 1.0,
    threads: int = 1,
) -> list[R]:
    """``function`` of every item, where each call costs as much as its weight says, such as repetitions.

    Args:
        function: What is computed for an item.
        items: Items.
        label: As in `steps`.
        weight: Relative cost of an item, above 0.
        threads: Number of threads that share the calls, 1 or more.

    >>> alike(abs, [-1, 2], "absolute values")
    [1, 2]
    """
    if _meter is not None:
        return _meter.alike(function, list(items), label, weight)
    if threads == 1:
        return [function(item) for item in items]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(function, items))
