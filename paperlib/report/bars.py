"""`progress`: a bar on the terminal that never ends up in a page."""

import os
import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

from tqdm.std import tqdm

from paperlib.core.visible import stream_below, visible_text

T = TypeVar("T")
_LONGEST_LABEL = 60  # characters


def progress(iterable: Iterable[T], *, total: int | None = None, label: str = "") -> Iterator[T]:
    """Yield from ``iterable`` and show the progress on standard error; silent when
    ``PAPERLIB_PROGRESS=0``.

    Args:
        iterable: Items to yield.
        total: Number of items, for iterables without a length.
        label: Name of the work, in a word or two, shown in visible letters.

    >>> import os
    >>> os.environ["PAPERLIB_PROGRESS"] = "0"
    >>> list(progress([1, 2], label="trials"))
    [1, 2]
    """
    silent = os.environ.get("PAPERLIB_PROGRESS") == "0"
    yield from tqdm(
        iterable,
        total=total,
        desc=visible_text(label, _LONGEST_LABEL) or None,
        disable=silent,
        file=stream_below(sys.stderr),
        leave=False,
    )
