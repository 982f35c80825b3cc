"""Delimited text and JSON lines as tables."""

import csv
import gzip
import io
import json
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from paperlib.core.suggest import did_you_mean

Cells = list[Any]
"""One value per example: str, int, float, bool or None."""

NUMBER = re.compile(
    r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf(?:inity)?)", re.IGNORECASE | re.ASCII
)
"""A number as it may be written."""

_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}
_SHOWN_NAMES = 30


@dataclass(frozen=True, kw_only=True)
class Table:
    """Columns of one file, whose cells are read by name; a bare one is one array without a name."""

    names: tuple[str, ...]
    read: Callable[[Sequence[str]], dict[str, Cells]]
    noun: str = "column"
    bare: bool = False
    decimal_comma: bool = False

    def label(self, name: str) -> str:
        """How an error message calls a column."""
        return "the array" if self.bare else f"{self.noun} {name!r}"

    def listed(self) -> str:
        """All names for an error message, shortened where there are very many."""
        shown = ", ".join(map(repr, self.names[:_SHOWN_NAMES])) or "none"
        more = len(self.names) - _SHOWN_NAMES
        return f"{shown} and {more} more" if more > 0 else shown

    def check(self, name: str) -> str:
        """A name that the user gave, refused where there is no such column."""
        if name not in self.names:
            near = did_you_mean(name, self.names)
            raise ValueError(f"no {self.noun} {name!r}; the {self.noun}s are {self.listed()}{near}")
        return name


def decoded(data: bytes) -> str:
    """Text of a file in UTF-8, or in UTF-16 with a byte-order mark, compressed by gzip or not."""
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"cannot be read: the gzip file is damaged ({error})") from None
    encoding = "UTF-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "UTF-8"
    try:
        text = data.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ValueError(
            f"is not {encoding} text (byte 0x{data[error.start]:02x} in line {line}); save it as UTF-8, or "
            "as UTF-16 with a byte-order mark"
        ) from None
    if "\0" in text:
        raise ValueError(
            "holds zero bytes, as UTF-32 and UTF-16 without a byte-order mark do; save it as UTF-8 text"
        )
    if not text.strip():
        raise ValueError("the file is empty")
    if text.startswith("version https://git-lfs.github.com/spec/"):
        raise ValueError("this is a Git LFS pointer in place of the file; run git lfs pull")
    return text


def delimited(text: str) -> Table:
    """A table whose first line names the columns, with commas, semicolons or tabs between the cells."""
    separator, header = _header(text)
    names = [name.strip() for name in header]
    given = [name for name in names if name]
    if len(set(given)) < len(given):
        twice = next(name for name in given if given.count(name) > 1)
        raise ValueError(f"two columns have the same name, {twice!r}; rename one")
    if all(NUMBER.fullmatch(name.replace(",", ".")) for name in given):
        raise ValueError(
            f"the first line holds the number {given[0]}, not a name; the first line of a CSV must name the "
            "columns"
        )

    def read(wanted: Sequence[str]) -> dict[str, Cells]:
        rows = _rows(text, separator)
        _first(rows)
        columns: dict[str, Cells] = {name: [] for name in wanted}
        keep = [(cells.append, names.index(name)) for name, cells in columns.items()]
        for row in _full_rows(rows, len(names)):
            for append, at in keep:
                append(row[at].strip())
        return columns

    return Table(names=tuple(dict.fromkeys(names)), read=read, decimal_comma=separator in ";\t")


def _rows(text: str, separator: str) -> Iterator[list[str]]:
    lines = io.StringIO(text.rstrip("\r\n"), newline="")
    return csv.reader(lines, delimiter=separator, skipinitialspace=True, strict=True)


def _first(rows: Iterator[list[str]]) -> list[str]:
    return next((row for row in rows if "".join(row).strip()), list[str]())


def _header(text: str) -> tuple[str, list[str]]:
    rows: dict[str, list[str]] = {}
    for separator in _SEPARATORS:
        try:
            rows[separator] = _first(_rows(text, separator))
        except csv.Error:  # such as a quote that another separator ends
            continue
    if not rows:
        raise ValueError("the first line cannot be read: a quote in it is not closed")
    most = max(map(len, rows.values()))
    if not most:
        raise ValueError("the file is empty")
    best = [separator for separator, row in rows.items() if len(row) == most]
    if most > 1 and len(best) > 1:
        both = " and ".join(_SEPARATORS[one] for one in best)
        raise ValueError(f"the first line has as many {both}; name the columns without them")
    return best[0], rows[best[0]]


def _full_rows(rows: Iterator[list[str]], width: int) -> Iterator[list[str]]:
    at = 0
    try:
        for row in rows:
            if not row and width > 1:
                continue  # a blank line, which in a table of one column is a cell
            at += 1
            cells = row or [""]
            if len(cells) != width:
                raise ValueError(
                    f"row {at} has {len(cells)} cells, but the first line names {width} columns; quote cells "
                    "that hold the separator, and fill in what is missing"
                )
            yield cells
    except csv.Error as error:
        raise ValueError(f"row {at + 1} cannot be read: {error}") from None


def json_lines(text: str) -> Table:
    """A table with one JSON object a line; the first one names the columns."""
    lines = [line for line in text.split("\n") if line.strip()]

    def read(wanted: Sequence[str]) -> dict[str, Cells]:
        columns: dict[str, Cells] = {name: [] for name in wanted}
        for at, line in enumerate(lines, 1):
            row = _json_row(line, at)
            for name, cells in columns.items():
                cells.append(row.get(name))
        return {name: single_values(name, cells) for name, cells in columns.items()}

    return Table(names=tuple(_json_row(lines[0], 1)), read=read)


def _json_row(line: str, at: int) -> dict[str, Any]:
    try:
        row = _DECODER.decode(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"row {at} is not JSON: {error}; write one object a line") from None
    if not isinstance(row, dict):
        raise ValueError(f'row {at} is not a JSON object such as {{"loss": 0.5, "member": 1}}')
    return cast(dict[str, Any], row)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) < len(pairs):
        raise ValueError("it names a column twice")
    return row


_DECODER: Any = json.JSONDecoder(object_pairs_hook=_once)


def single_values(name: str, cells: Cells) -> Cells:
    """Cells of a file that may hold anything, stripped; lists, objects and bytes are refused."""
    for at, cell in enumerate(cells, 1):
        if not isinstance(cell, str | int | float | None):
            what = type(cell).__name__
            raise ValueError(f"column {name!r} holds a {what} in row {at}; expected a single value")
    return [cell.strip() if isinstance(cell, str) else cell for cell in cells]
