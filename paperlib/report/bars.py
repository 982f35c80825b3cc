"""`progress`: a bar on the terminal that never ends up in a page."""

import os
import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

from tqdm.std import tqdm

T = TypeVar("T")


def progress(iterable: Iterable[T], *, total: int | None = None, label: str = "") -> Iterator[T]:
    """Yield from ``iterable`` and show the progress on standard error; silent when
    ``PAPERLIB_PROGRESS=0``.

    Args:
        iterable: Items to yield.
        total: Number of items, for iterables without a length.
        label: Name of the work, in a word or two.

    >>> import os
    >>> os.environ["PAPERLIB_PROGRESS"] = "0"
    >>> list(progress([1, 2], label="trials"))
    [1, 2]
    """
    silent = os.environ.get("PAPERLIB_PROGRESS") == "0"
    yield from tqdm(
        iterable, total=total, desc=label or None, disable=silent, file=sys.stderr, leave=False
    )
