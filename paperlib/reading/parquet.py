"""What the columns of a Parquet file take in memory, known before they are read.

Parquet stores a text that stands in many rows once (a dictionary), or only what differs from the
text before (deltas). The metadata count the bytes that are stored: a text of one megabyte in ten
thousand rows counts as one megabyte. And they are what somebody wrote: rows that they do not count
would be left out without a word, so that what they say is compared with the pages that are there.
"""

import io
from collections.abc import Iterator, Sequence
from importlib import import_module
from itertools import pairwise
from typing import Any, NamedTuple

from paperlib.reading.limits import (
    CELL_BYTES,
    TooLargeError,
    check_cells,
    check_size,
    in_bytes,
    read_limit,
)
from paperlib.reading.pages import Bytes, pages

_ROWS_AT_ONCE = 1 << 20  # of dictionaries, of which each batch holds a copy
_TIMES_HELD = 2  # each byte of a column: in the column, and in the cells that are made of it


class _Leaf(NamedTuple):
    """A stored column, as its pages tell of it: sizes in bytes."""

    path: str  # name, with the names of the lists and structures around it
    is_text: bool  # or other bytes of any length
    values: int  # number of them
    stored: int  # unpacked
    longest: int  # of one value: all that is stored in a group of rows
    unfolded: int  # of all values, at most, each written out


def check_parquet(data: bytes, metadata: Any, columns: Sequence[str]) -> None:
    """Refuse columns of a Parquet file that do not fit into memory, before they are read.

    Args:
        data: All bytes of the file.
        metadata: Of the same file (pyarrow).
        columns: Names of those that will be read.

    Raises:
        TooLargeError: They do not fit, as they are stored or since texts are repeated.
        ValueError: The file is damaged, or its metadata are not those of its pages.
    """
    leaves = _leaves(data, metadata, columns)
    rows = max([metadata.num_rows, *(leaf.values for leaf in leaves)])
    stored = sum(leaf.stored for leaf in leaves)
    check_cells(rows, len(columns), beside=_TIMES_HELD * stored)
    cells = rows * len(columns) * CELL_BYTES
    unfolded = sum(leaf.unfolded for leaf in leaves)
    if cells + _TIMES_HELD * unfolded <= read_limit():
        return
    # That bound is coarse where texts are repeated: now their bytes are counted, until there are
    # too many.
    size = 0
    for leaf in leaves:
        for piece in _sizes(data, leaf):
            size += piece
            needed = cells + _TIMES_HELD * size
            check_size(needed, f"at least {in_bytes(size)} of values in {rows:,} rows")


def _sizes(data: bytes, leaf: _Leaf) -> Iterator[int]:
    """Bytes of the values of a column, each written out: of one batch of rows after the other. A
    ValueError for a column that cannot be read.
    """
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
    """Bytes of the texts of a column, each written out, of one batch of rows after the other; texts
    of a dictionary are counted, and never written out. Errors are those of pyarrow.
    """
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
    """Bytes of the values of an array of pyarrow, as if each text of a dictionary was written out,
    and those inside lists and structures with them.
    """
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


def largest_page(data: Bytes, metadata: Any, column: str) -> int:
    """Bytes of the largest page of a column, unpacked: no value of it is longer.

    Args:
        data: All bytes of the file.
        metadata: Of the same file (pyarrow).
        column: Its name.

    Raises:
        ValueError: The file is damaged, or its metadata are not those of its pages.
    """
    return max([1, *(leaf.longest for leaf in _leaves(data, metadata, [column], in_pages=True))])


def _leaves(
    data: Bytes, metadata: Any, columns: Sequence[str], *, in_pages: bool = False
) -> list[_Leaf]:
    """The stored columns that these are made of; a list or a struct has several.

    Args:
        data: All bytes of the file.
        metadata: Of the same file (pyarrow).
        columns: Names of the columns.
        in_pages: Whether the longest value is bounded by a page, in place of a group of rows.

    Raises:
        ValueError: Metadata that are not those of the pages, or columns that stand in one place.
    """
    _check_rows(metadata)
    if not metadata.num_row_groups:
        return []
    leaves: list[_Leaf] = []
    names = frozenset(columns)
    places: list[tuple[int, int]] = []  # first byte of each column in each group, and its end
    for index in range(metadata.num_columns):
        path = metadata.schema.column(index).path
        if path in names or path.partition(".")[0] in names:
            try:
                chunks = _chunks(metadata, index)
                places += [_place(chunk) for chunk in chunks if chunk.num_values]
                leaves.append(_leaf(data, metadata.schema.column(index), chunks, in_pages=in_pages))
            except ValueError as error:
                raise ValueError(f"column {path!r}: cannot be read: {error}") from None
    places.sort()
    for (_, end), (start, _) in pairwise(places):
        if start < end:  # one column would be read as another, or the same rows again and again
            raise ValueError("cannot be read: two of its columns stand in the same place")
    return leaves


def _check_rows(metadata: Any) -> None:
    """Refuse (ValueError) metadata in which the groups have other rows than the file: a reader
    would go by the groups, and leave out the rest.
    """
    rows = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    if min(rows, default=0) < 0 or sum(rows) != metadata.num_rows:
        raise ValueError(
            f"cannot be read: its groups have {sum(rows):,} rows, and the file is said to have "
            f"{metadata.num_rows:,}; write it again"
        )


def _chunks(metadata: Any, index: int) -> list[Any]:
    """What the metadata tell of a stored column in each group of rows; a ValueError for numbers of
    values that are not those of the rows.
    """
    is_repeated = metadata.schema.column(index).max_repetition_level > 0  # as in a list
    chunks: list[Any] = []
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        chunk = group.column(index)
        values, rows = chunk.num_values, group.num_rows
        if values < rows or (values > rows and not is_repeated):
            raise ValueError(f"it has {values:,} values in {rows:,} rows")
        chunks.append(chunk)
    return chunks


def _leaf(data: Bytes, column: Any, chunks: Sequence[Any], *, in_pages: bool) -> _Leaf:
    """What its pages tell of one stored column (pyarrow), of which there is a chunk in each group
    of rows; ``in_pages`` as for `_leaves`.
    """
    sizes = [_page_sizes(data, chunk) for chunk in chunks]
    stored = list(map(sum, sizes))  # bytes in each group of rows
    values = sum(chunk.num_values for chunk in chunks)
    unfolded = sum(stored)
    if column.physical_type == "FIXED_LEN_BYTE_ARRAY":
        unfolded = max(unfolded, values * column.length)
    elif column.physical_type == "BYTE_ARRAY":
        # At most: each text as long as all that is stored in its group.
        counts = (chunk.num_values for chunk in chunks)
        unfolded = sum(count * size for count, size in zip(counts, stored, strict=True))
    longest = [max(page_sizes, default=0) for page_sizes in sizes] if in_pages else stored
    return _Leaf(
        path=column.path,
        is_text=column.physical_type == "BYTE_ARRAY",
        values=values,
        stored=sum(stored),
        longest=max(1, *longest),
        unfolded=unfolded,
    )


def _page_sizes(data: Bytes, chunk: Any) -> list[int]:
    """Bytes of each page of a column in one group of rows, unpacked."""
    start, end = _place(chunk)
    return [page.size for page in pages(data, start, end, chunk.num_values)]


def _place(chunk: Any) -> tuple[int, int]:
    """Where the pages of a column in one group of rows begin and end, as pyarrow finds them."""
    start = chunk.data_page_offset
    dictionary = chunk.dictionary_page_offset or 0
    if 0 < dictionary < start:
        start = dictionary
    return start, start + chunk.total_compressed_size
