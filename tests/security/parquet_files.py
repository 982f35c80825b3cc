"""Parquet files whose metadata, or the headers of whose pages, are changed by hand.

Both are in Thrift's compact form: here as a mapping of the number of a field to a list of its type
and its value, which a test changes, and which is written again.
"""

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROWS, IN_GROUP = 200, 100
BYTE, DOUBLE, TEXT, LIST, STRUCT = 3, 7, 8, 9, 12
TRUTH, WHOLE = (1, 2), (4, 5, 6)

Fields = dict[int, list[Any]]


def sound_file(**options: Any) -> bytes:
    """The bytes of 200 scores in two groups of rows."""
    scores = np.random.default_rng(0).normal(size=ROWS)
    names = [f"r{row}" for row in range(ROWS)]
    table = pa.table({"id": names, "member": np.arange(ROWS) % 2, "score": scores})
    buffer = io.BytesIO()
    pq.write_table(table, buffer, row_group_size=IN_GROUP, **options)
    return buffer.getvalue()


class Reader:
    """Reads Thrift's compact form from a place on."""

    def __init__(self, data: bytes, place: int):
        self.data, self.place = data, place

    def take(self, size: int) -> bytes:
        self.place += size
        return self.data[self.place - size : self.place]

    def unsigned(self) -> int:
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def value(self, kind: int) -> Any:
        if kind in TRUTH:
            return None
        if kind in WHOLE:
            value = self.unsigned()
            return value >> 1 ^ -(value & 1)
        if kind == STRUCT:
            return self.struct()
        if kind == LIST:
            head = self.take(1)[0]
            count = self.unsigned() if head >> 4 == 15 else head >> 4
            return [head & 15, [self.value(head & 15) for _ in range(count)]]
        return self.take({BYTE: 1, DOUBLE: 8}.get(kind) or self.unsigned())

    def struct(self) -> Fields:
        fields: Fields = {}
        name = 0
        while head := self.take(1)[0]:
            name += head >> 4
            fields[name] = [head & 15, self.value(head & 15)]
        return fields


def unsigned(value: int) -> bytes:
    written = b""
    while value > 127:
        written += bytes([value & 127 | 128])
        value >>= 7
    return written + bytes([value])


def written(kind: int, value: Any) -> bytes:
    if kind in TRUTH:
        return b""
    if kind in WHOLE:
        return unsigned((value << 1 ^ value >> 63) & 2**64 - 1)
    if kind == STRUCT:
        return struct(value)
    if kind == LIST:
        inner, items, *stated = value  # a third entry is a count that is another one
        count = unsigned(stated[0] if stated else len(items))
        return bytes([0xF0 | inner]) + count + b"".join(written(inner, item) for item in items)
    return (unsigned(len(value)) if kind == TEXT else b"") + value


def struct(fields: Fields) -> bytes:
    data, last = b"", 0
    for name, (kind, value) in sorted(fields.items()):
        data += bytes([name - last << 4 | kind]) + written(kind, value)
        last = name
    return data + b"\0"


def changed(data: bytes, change: Callable[[Fields], object]) -> bytes:
    """A file of which the metadata were changed."""
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    fields = Reader(data, start).struct()
    change(fields)
    footer = struct(fields)
    return data[:start] + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def entry(fields: Any, path: tuple[int, ...]) -> list[Any]:
    """What is at the end of a path of numbers of fields and places in lists."""
    for step in path:
        fields = fields[step]
    return fields


def groups(fields: Fields) -> list[Fields]:
    return fields[4][1][1]


def column(fields: Fields, index: int, group: int = 0) -> Fields:
    """The metadata of one column in one group of rows."""
    return groups(fields)[group][1][1][1][index][3][1]


def with_page(data: bytes, index: int, change: Callable[[Fields], object]) -> bytes:
    """A file of which the header of the first data page of a column was changed."""
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    place = column(Reader(data, start).struct(), index)[9][1]
    reader = Reader(data, place)
    fields = reader.struct()
    change(fields)
    header = struct(fields)
    longer = len(header) - (reader.place - place)

    def move(fields: Fields) -> None:
        for group in groups(fields):
            for chunk in group[1][1][1]:
                for name in (9, 11):  # where its data and its dictionary begin
                    if chunk[3][1].get(name, (0, 0))[1] > place:
                        chunk[3][1][name][1] += longer
        column(fields, index)[7][1] += longer

    return changed(data[:place] + header + data[reader.place :], move)
