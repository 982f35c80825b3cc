"""What the columns of a Parquet file take in memory, known before they are read.

Parquet stores a text that stands in many rows once (a dictionary), or only what differs from the
text before (deltas). The metadata count the bytes that are stored: a text of one megabyte in ten
thousand rows counts as one megabyte.
"""

import io
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any, NamedTuple

from paperlib.reading.limits import (
    CELL_BYTES,
    TooLargeError,
    check_cells,
    check_size,
    in_bytes,
    read_limit,
)

_ROWS_AT_ONCE = 1 << 20  # of dictionaries, of which each batch holds a copy
_TIMES_HELD = 2  # each byte of a column: in the column, and in the cells that are made of it


class _Leaf(NamedTuple):
    """A stored column, as the metadata tell of it: sizes in bytes."""

    path: str
    is_text: bool
    values: int
    stored: int
    longest: int  # of one value: all that is stored in a group of rows
    unfolded: int  # of all values, at most, each written out


def check_parquet(data: bytes, metadata: Any, columns: Sequence[str]) -> None:
    """Refuse columns of a Parquet file that do not fit into memory, before they are read.

    Args:
        data: All bytes of the file.
        metadata: Of the same file (pyarrow).
        columns: Names of those that will be read.

    Raises:
        TooLargeError: They do not fit by the metadata, or since texts are repeated.
        ValueError: The file is damaged.
    """
    leaves = _leaves(metadata, columns)
    rows = max([metadata.num_rows, *(leaf.values for leaf in leaves)])
    stored = sum(leaf.stored for leaf in leaves)
    check_cells(rows, len(columns), beside=_TIMES_HELD * stored)
    cells = rows * len(columns) * CELL_BYTES
    unfolded = sum(leaf.unfolded for leaf in leaves)
    if cells + _TIMES_HELD * unfolded <= read_limit():
        return
    size = 0
    for leaf in leaves:
        for piece in _sizes(data, leaf):
            size += piece
            needed = cells + _TIMES_HELD * size
            check_size(needed, f"at least {in_bytes(size)} of values in {rows:,} rows")


def _sizes(data: bytes, leaf: _Leaf) -> Iterator[int]:
    """Bytes of the values of a column, each written out: of one batch of rows after the other."""
    if not leaf.is_text:
        yield leaf.unfolded
        return
    try:
        yield from _text_sizes(data, leaf)
    except TooLargeError:
        raise
    except (OSError, ValueError, RuntimeError) as error:
        reason = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise ValueError(f"column {leaf.path!r}: cannot be read: {reason}") from None


def _text_sizes(data: bytes, leaf: _Leaf) -> Iterator[int]:
    """Bytes of the texts of a column by batches; texts of a dictionary are never written out."""
    package = import_module("pyarrow.parquet")
    file = package.ParquetFile(io.BytesIO(data), read_dictionary=[leaf.path])
    done = 0
    try:
        for batch in file.iter_batches(_ROWS_AT_ONCE, columns=[leaf.path], use_threads=False):
            done += batch.num_rows
            yield sum(map(_unfolded_size, batch.columns))
        return
    except OSError:  # pyarrow reads no deltas as a dictionary
        if done:
            raise
    # A text is never longer than what is stored, so a batch of so few rows is small.
    rows = max(1, read_limit() // 4 // leaf.longest)
    file = package.ParquetFile(io.BytesIO(data))
    batch_rows = min(rows, _ROWS_AT_ONCE)
    for batch in file.iter_batches(batch_rows, columns=[leaf.path], use_threads=False):
        yield batch.nbytes


def _unfolded_size(array: Any) -> int:
    """Bytes of the values of an array of pyarrow, with each text of a dictionary written out."""
    kinds = import_module("pyarrow.types")
    compute = import_module("pyarrow.compute")
    if kinds.is_dictionary(array.type):
        lengths = compute.binary_length(array.dictionary)
        return compute.sum(lengths.take(array.indices)).as_py() or 0
    if kinds.is_nested(array.type):
        inner: Any = array.flatten()
        fields: list[Any] = inner if kinds.is_struct(array.type) else [inner]
        return sum(map(_unfolded_size, fields))
    return array.nbytes


def _leaves(metadata: Any, columns: Sequence[str]) -> list[_Leaf]:
    """The stored columns that these are made of; a list or a struct has several."""
    if not metadata.num_row_groups:
        return []
    leaves: list[_Leaf] = []
    names = frozenset(columns)
    for index in range(metadata.num_columns):
        path = metadata.schema.column(index).path
        if path in names or path.partition(".")[0] in names:
            leaves.append(_leaf(metadata, index, path))
    return leaves


def _leaf(metadata: Any, index: int, path: str) -> _Leaf:
    """What the metadata tell of one stored column."""
    groups = range(metadata.num_row_groups)
    chunks = [metadata.row_group(group).column(index) for group in groups]
    values = sum(chunk.num_values for chunk in chunks)
    stored = sum(chunk.total_uncompressed_size for chunk in chunks)
    kind = metadata.schema.column(index).physical_type
    unfolded = stored
    if kind == "FIXED_LEN_BYTE_ARRAY":
        unfolded = max(stored, values * metadata.schema.column(index).length)
    elif kind == "BYTE_ARRAY":
        unfolded = sum(chunk.num_values * chunk.total_uncompressed_size for chunk in chunks)
    return _Leaf(
        path=path,
        is_text=kind == "BYTE_ARRAY",
        values=values,
        stored=stored,
        longest=max(1, *(chunk.total_uncompressed_size for chunk in chunks)),
        unfolded=unfolded,
    )
