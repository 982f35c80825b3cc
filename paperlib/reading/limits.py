"""How much memory the reading of one file may take, and what its sizes say that it will take.

Sizes are known before content: from the headers of arrays, the directory of an archive, the
metadata of a Parquet file, and for packed text by unpacking it in pieces.
"""

import math
import os
import re
from pathlib import Path

from paperlib.core.options import READ_LIMIT

READ_LIMIT_VARIABLE = "PAPERLIB_READ_LIMIT"
"""Environment variable with the most memory that reading one file may take, such as 16GB."""

CELL_BYTES = 64
"""Memory of one cell while it is read: a Python object, its place in a list and in two arrays."""
TEXT_BYTES = 8
"""Memory of one byte of text while its cells are cut out: bytes, text, and four bytes in the reader
of lines.
"""
JSON_BYTES = 256
"""Memory of one object of JSON."""

_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([KMGT]?)(i?)B?", re.IGNORECASE)
_POWERS = ("", "K", "M", "G", "T")
_CONTAINER = Path("/sys/fs/cgroup/memory.max")


class TooLargeError(ValueError):
    """A file would take more memory than the reading of one file may."""


def read_limit() -> int:
    """Most bytes of memory that reading one file may take.

    `READ_LIMIT_VARIABLE` says it; by default it is `READ_LIMIT`, and at most half of the memory, so
    that the audit has the other half.

    Raises:
        ValueError: The variable holds no size.
    """
    chosen = os.environ.get(READ_LIMIT_VARIABLE)
    if chosen:
        return parse_size(chosen, READ_LIMIT_VARIABLE)
    return min(READ_LIMIT, _memory() // 2)


def parse_size(text: str, name: str) -> int:
    """A size in bytes, such as 500MB, 16 GiB or 1000000.

    Raises:
        ValueError: Text that is no size; the message begins with ``name``.

    >>> parse_size("1.5 GB", "limit"), parse_size("2GiB", "limit")
    (1500000000, 2147483648)
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None or float(match[1]) == 0:
        raise ValueError(f"{name}: expected a size such as 500MB or 16GB, got {text!r}")
    base = 1024 if match[3] else 1000
    return int(float(match[1]) * base ** _POWERS.index(match[2].upper()))


def _memory() -> int:
    """Bytes of memory of this machine or container; where nothing says it, twice the usual
    limit.
    """
    sizes: list[int] = []
    try:
        sizes.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):  # as on Windows
        sizes.append(2 * READ_LIMIT)
    try:
        container = _CONTAINER.read_text("utf-8").strip()
    except OSError:
        container = ""
    if container.isdigit():
        sizes.append(int(container))
    return min(sizes)


def check_size(needed: int, what: str) -> None:
    """Refuse (`TooLargeError`) what would take more memory than `read_limit`.

    Args:
        needed: Bytes of memory, estimated.
        what: Begins the message, such as "1,000,000,000 cells".
    """
    limit = read_limit()
    if needed > limit:
        raise TooLargeError(
            f"{what} would take about {in_bytes(needed)} of memory, and reading one file may take "
            f"{in_bytes(limit)}; if that is meant, say --read-limit {_rounded_up(needed)} (in "
            f"Python set {READ_LIMIT_VARIABLE})"
        )


def in_bytes(size: int) -> str:
    """A size as people read it, such as "8.6 GB"."""
    if size < 10**6:
        return f"{size:,} bytes"
    return f"{size / 10**6:,.0f} MB" if size < 10**9 else f"{size / 10**9:,.1f} GB"


def _rounded_up(needed: int) -> str:
    """A size that is enough, as the option takes it."""
    if needed < 10**9:
        return f"{math.ceil(needed / 10**6)}MB"
    return f"{-(-needed // 10**9)}GB"


def check_text(size: int, lines: int, *, start: str = "") -> None:
    """Refuse (`TooLargeError`) text, unpacked, that cannot be cut into lines within the limit.

    Args:
        size: Bytes of the text.
        lines: Its lines, of at least one cell each.
        start: Of the message, such as "more than ".
    """
    needed = TEXT_BYTES * size + CELL_BYTES * lines
    check_size(needed, f"{start}{in_bytes(size)} of text in {lines:,} lines")


def check_cells(rows: int, columns: int, *, bytes_each: int = 0, beside: int = 0) -> None:
    """Refuse (`TooLargeError`) more cells than can be held within the limit.

    Args:
        rows: Rows of each column.
        columns: Columns that are read.
        bytes_each: Bytes of one cell beyond `CELL_BYTES`, as of an array of texts.
        beside: Bytes that are held beside them, such as the text they come from.
    """
    needed = rows * columns * (CELL_BYTES + bytes_each) + beside
    noun = "column" if columns == 1 else "columns"
    check_size(needed, f"{rows:,} rows of {columns:,} {noun}")
