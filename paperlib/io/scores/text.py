"""Delimited text and JSON lines as tables."""

import csv
import gzip
import io
import json
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from paperlib.io.scores.tables import Cells, Table

_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}
_MARKS = (  # UTF-32 before UTF-16, whose mark it begins with
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
    (b"\xef\xbb\xbf", "utf-8-sig"),
)
_FIRST_LINE = 1 << 20  # most characters of the line that names the columns
_NARROW = 8  # columns; of a wide table, only the cells that are needed are kept in memory
_PLAIN = (str, int, float, bool, type(None))


def decoded(data: bytes) -> str:
    """Text of a file: UTF-8, or UTF-16 or UTF-32 with a byte-order mark, compressed by gzip or not.

    Raises:
        ValueError: No such text, or nothing but blanks.
    """
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"cannot be read: the gzip file is damaged ({error})") from None
    encoding = next((encoding for mark, encoding in _MARKS if data.startswith(mark)), "utf-8")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ValueError(
            f"is not {encoding.removesuffix('-sig').upper()} text (byte 0x{data[error.start]:02x} in line "
            f"{line}); save it as UTF-8, or as UTF-16 with a byte-order mark"
        ) from None
    if "\0" in text:
        raise ValueError("holds zero bytes, as UTF-16 without a byte-order mark does; save it as UTF-8 text")
    if not text.strip():
        raise ValueError("the file is empty")
    if text.startswith("version https://git-lfs.github.com/spec/"):
        raise ValueError("this is a Git LFS pointer in place of the file; run git lfs pull")
    return text


def json_begins(text: str) -> bool:
    """Whether a text is JSON lines, and not a delimited table."""
    return text.lstrip()[:1] == "{"


# ---------------------------------------------------------------- delimited text


def delimited(text: str) -> Table:
    """A table whose first line names the columns, with commas, semicolons or tabs between the cells.

    Raises:
        ValueError: It is not clear what separates the cells, or names are missing or doubled.
    """
    separator, header = _header(text)
    names = [name.strip() for name in header]
    kept = [name for name in names if name]
    if len(set(kept)) < len(kept):
        twice = next(name for name in kept if kept.count(name) > 1)
        raise ValueError(f"two columns have the same name, {twice!r}; rename one")
    if all(_is_number(name, separator) for name in kept):
        raise ValueError(
            f"the first line holds the number {kept[0]}, not a name; the first line of a CSV must name the "
            "columns"
        )

    def read(wanted: Sequence[str]) -> dict[str, Cells]:
        return _cells(text, separator, len(names), {name: names.index(name) for name in wanted})

    return Table(names=tuple(dict.fromkeys(names)), read=read, decimal_comma=separator in ";\t")


def _rows(text: str, separator: str) -> Any:
    lines = io.StringIO(text.rstrip("\r\n"), newline="")
    return csv.reader(lines, delimiter=separator, skipinitialspace=True, strict=True)


def _names(rows: Iterator[list[str]]) -> list[str]:
    return next((row for row in rows if "".join(row).strip()), [])


def _header(text: str) -> tuple[str, list[str]]:
    found: dict[str, list[str]] = {}
    for separator in _SEPARATORS:
        try:
            found[separator] = _names(_rows(text[:_FIRST_LINE], separator))
        except csv.Error:  # such as a quote that another separator ends
            continue
    if not found:
        raise ValueError("the first line cannot be read: a quote in it is not closed")
    most = max(map(len, found.values()))
    if not most:
        raise ValueError("the file is empty")
    best = [separator for separator, row in found.items() if len(row) == most]
    if most > 1 and len(best) > 1:
        both = " and ".join(_SEPARATORS[one] for one in best)
        raise ValueError(f"the first line has as many {both}; name the columns without them")
    return best[0], found[best[0]]


def _is_number(name: str, separator: str) -> bool:
    try:
        float(name.replace(",", ".") if separator != "," else name)
    except ValueError:
        return False
    return name.lower().lstrip("+-") not in ("nan", "inf", "infinity")


def _cells(text: str, separator: str, width: int, wanted: dict[str, int]) -> dict[str, Cells]:
    regular = _regular_cells(text, separator, width)
    if regular is not None and "".join(regular[:width]).strip():
        return {name: list(map(str.strip, regular[width + at :: width])) for name, at in wanted.items()}
    rows = _rows(text, separator)
    _names(rows)
    columns: dict[str, list[str]] = {name: [] for name in wanted}
    keep = [(columns[name].append, at) for name, at in wanted.items()]
    done = 0
    try:
        for row in rows:
            if len(row) != width:
                if not row and width > 1:
                    continue  # a blank line, which in a table of one column is a cell
                row = _checked(row or [""], width, done + 1)
            done += 1
            for append, at in keep:
                append(row[at].strip())
    except csv.Error as error:
        raise ValueError(f"row {done + 1} cannot be read: {error}") from None
    return dict(columns)


def _checked(row: list[str], width: int, at: int) -> list[str]:
    if len(row) == width:
        return row
    raise ValueError(
        f"row {at} has {len(row)} cells, but the first line names {width} columns; quote cells that hold the "
        "separator, and fill in what is missing"
    )


def _regular_cells(text: str, separator: str, width: int) -> list[str] | None:
    """All cells in order, names first, of a narrow table without quotes whose rows all have one length.

    None for any other table. This takes a third of the time of the general way.
    """
    text = text.rstrip("\r\n").replace("\r\n", "\n")
    if width > _NARROW or '"' in text or "\r" in text:
        return None
    letters = np.frombuffer(text.encode(), dtype=np.uint8)
    marks = letters[(letters == ord(separator)) | (letters == ord("\n"))]
    ends = np.append(marks, np.uint8(ord("\n"))) == ord("\n")
    expected = np.arange(1, width + 1) == width
    if ends.size % width or not (ends.reshape(-1, width) == expected).all():
        return None
    return (text.replace(separator, "\n") if width > 1 else text).split("\n")


# ---------------------------------------------------------------- JSON lines


def json_lines(text: str) -> Table:
    """A table with one JSON object a line; the first one names the columns.

    Raises:
        ValueError: A line that is no JSON object, or names a column twice.
    """
    lines = [line for line in text.split("\n") if line.strip()]
    first = _object(lines[0], 1)

    def read(wanted: Sequence[str]) -> dict[str, Cells]:
        columns: dict[str, list[Any]] = {name: [] for name in wanted}
        keep = [(name, cells.append) for name, cells in columns.items()]
        for at, line in enumerate(lines, 1):
            row = _object(line, at)
            for name, append in keep:
                append(row.get(name))
        return {name: _plain_cells(name, cells) for name, cells in columns.items()}

    return Table(names=tuple(first), read=read)


def _object(line: str, at: int) -> dict[str, Any]:
    line = line.strip()
    try:
        row, end = _DECODER.scan_once(line, 0)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"row {at} is not JSON: {error}") from None
    except StopIteration:
        row, end = None, len(line)
    if end < len(line):
        raise ValueError(f"row {at} is not JSON: more follows its first value; write one object a line")
    if not isinstance(row, dict):
        raise ValueError(f'row {at} is not a JSON object such as {{"loss": 0.5, "member": 1}}')
    return row


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) < len(pairs):
        raise ValueError("it names a column twice")
    return row


_DECODER: Any = json.JSONDecoder(object_pairs_hook=_once)


def _plain_cells(name: str, cells: list[Any]) -> list[Any]:
    kinds = set(map(type, cells))
    if not kinds <= set(_PLAIN):
        at, bad = next((at, cell) for at, cell in enumerate(cells, 1) if not isinstance(cell, _PLAIN))
        raise ValueError(f"column {name!r} holds a {type(bad).__name__} in row {at}; expected a single value")
    return [cell.strip() if isinstance(cell, str) else cell for cell in cells] if str in kinds else cells
