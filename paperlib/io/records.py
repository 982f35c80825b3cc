"""Records of a file or folder, a part of which can be written without a change: what coins are
tossed for.
"""

import csv
import gzip
import hashlib
import io
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paperlib.core.reading.columns import INDEX, plain
from paperlib.core.reading.tables import decoded, delimited, json_row, named, open_source
from paperlib.io.files import file_sha256, visible_files, write_bytes

MADE_ID = "record_id"
"""Column of the ids that are made of what records hold."""
_USUAL = ("id", "record_id", "example_id")
_TABLES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".pq")
_IMAGES = {".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".tif", ".tiff", ".ppm"}

Rows = NDArray[np.bool_] | NDArray[np.int64]
"""True for each record of a part, or the places of its records, in an order and with repetitions.
"""


@dataclass(frozen=True, kw_only=True)
class Records:
    """What each record holds, and a way to write some of them as they stand.

    Attributes:
        contents: Column to cell of each record; empty for a list of ids, a checksum for a file of a
            folder.
        columns: Names of the columns; none for a list or a folder.
        names: Id of each record of a list or of a folder (its path), else None.
        ending: Ending of the file, such as ".csv.gz"; empty for a folder.
        write: Writes a part of the records to a path, with a first column of ids where these are
            given. A file of a folder that is to be there several times gets a number behind its
            name.
        added: These records and further ones after them, of which the cells are given; those of a
            list have the cell "text", those of a folder "path" and "source", the name of the file
            that is copied.
    """

    contents: list[dict[str, Any]]
    columns: tuple[str, ...] = ()
    names: list[str] | None = None
    ending: str
    write: Callable[[Path, Rows, Sequence[str] | None], None]
    added: Callable[[Sequence[dict[str, Any]]], "Records"]

    def id_column(self) -> str | None:
        """The column with a usual name of ids, or None; a ValueError where there are several."""
        if len(known := [name for name in self.columns if plain(name) in _USUAL]) > 1:
            raise ValueError(
                f"{' and '.join(map(repr, known))} may each hold the ids; choose one with --id"
            )
        return known[0] if known else None

    def cells(self, column: str) -> list[str]:
        """Cells of a column as a reader of scores sees them: stripped text."""
        return [
            "" if one.get(column) is None else str(one[column]).strip() for one in self.contents
        ]

    def digests(self, *without: str | None) -> list[str]:
        """A hash of what each record holds but row numbers and some columns; "" where that is
        nothing.
        """
        left_out = {name for name in self.columns if INDEX.fullmatch(name.strip())} | {*without}
        kept = ({k: v for k, v in one.items() if k not in left_out} for one in self.contents)
        texts = (json.dumps(one, sort_keys=True, default=repr) if one else "" for one in kept)
        return [text and hashlib.sha256(text.encode()).hexdigest()[:24] for text in texts]


def open_records(path: str) -> Records:
    """Records of a table, a list of ids (``.txt``, one a line) or a folder of files, such as
    images.

    Args:
        path: CSV or TSV with commas, semicolons or tabs, JSON lines (both also ``.gz``), Parquet,
            ``.txt``, or a folder, in which every file is a record and hidden files are left out.

    Raises:
        ValueError: None of these, or a file that cannot be read as its ending says.
        FileNotFoundError: There is no such file.
    """
    if (place := Path(path)).is_dir():
        return _folder(place)
    lower = place.name.lower()
    packed = ".gz" if lower.endswith(".gz") else ""
    ending = next(
        (one for one in (*_TABLES, ".txt") if lower.removesuffix(packed).endswith(one)), ""
    )
    if place.exists() and (not ending or (packed and ending in (".parquet", ".pq"))):
        raise ValueError(
            f"{path}: expected a folder or a file ending in {', '.join((*_TABLES, '.txt'))}; for "
            "arrays toss the coins in Python, with toss_coins"
        )
    source = open_source(str(place))
    with named(source):
        if ending in (".parquet", ".pq"):
            return _parquet(source.data, ending)
        read = {".txt": _list, ".jsonl": _json, ".ndjson": _json}.get(ending, _delimited)
        head, lines, contents, names = read(decoded(source.data).rstrip("\r\n"))
    if not lines:
        raise ValueError(f"{path}: there are no rows")
    return _lines(head, lines, contents, names, ending, packed)


def _lines(
    head: str,
    lines: list[str],
    contents: list[dict[str, Any]],
    names: list[str] | None,
    ending: str,
    packed: str,
) -> Records:
    """Records of a file of text."""
    is_json, separator = ending in (".jsonl", ".ndjson"), delimited(head).separator if head else ""

    def write(target: Path, keep: Rows, ids: Sequence[str] | None) -> None:
        kept: list[int] = np.arange(len(lines))[keep].tolist()
        rows = [lines[at] if ids is None else with_id(lines[at], ids[at]) for at in kept]
        first = [head if ids is None else with_id(head, MADE_ID)] if head else []
        data = "".join(f"{row}\n" for row in (*first, *rows)).encode()
        write_bytes(target, gzip.compress(data) if packed else data)

    def with_id(line: str, name: str) -> str:
        if is_json:
            return json.dumps({MADE_ID: name, **json.loads(line)}, ensure_ascii=False)
        return f"{name}{separator}{line}"

    def line(row: dict[str, Any]) -> str:
        if names is not None:
            return row["text"]
        if is_json:
            return json.dumps(row, ensure_ascii=False)
        text = io.StringIO()
        csv.writer(text, delimiter=separator, lineterminator="").writerow(row.values())
        return text.getvalue()

    def added(rows: Sequence[dict[str, Any]]) -> Records:
        if head and len(next(csv.reader([head], delimiter=separator))) > len(columns):
            raise ValueError("several columns have no name; name them in the first line")
        called = None if names is None else [*names, *(row["text"] for row in rows)]
        return _lines(head, [*lines, *map(line, rows)], [*contents, *rows], called, ending, packed)

    columns = (
        () if names is not None else tuple(dict.fromkeys(key for one in contents for key in one))
    )
    return Records(
        contents=contents,
        columns=columns,
        names=names,
        ending=ending + packed,
        write=write,
        added=added,
    )


_Text = tuple[str, list[str], list[dict[str, Any]], list[str] | None]
"""First line, lines of the records, what they hold, and their names."""


def _delimited(text: str) -> _Text:
    table = delimited(text)
    columns = table.read(table.names)  # checked, with their cells stripped
    lines = list(io.StringIO(text, newline=""))
    reader = csv.reader(lines, delimiter=table.separator, skipinitialspace=True, strict=True)
    raw: list[str] = []
    at = width = 0
    for row in reader:
        if row or width == 1 if raw else "".join(row).strip():
            width = width or len(row)
            raw.append("".join(lines[at : reader.line_num]).rstrip("\r\n"))
        at = reader.line_num
    contents = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return raw[0], raw[1:], contents, None


def _json(text: str) -> _Text:
    lines = [line.rstrip("\r") for line in text.split("\n") if line.strip()]
    return "", lines, [json_row(line, at) for at, line in enumerate(lines, 1)], None


def _list(text: str) -> _Text:
    lines = [line.rstrip("\r") for line in text.split("\n") if line.strip()]
    if lines and plain(lines[0]) in _USUAL:
        raise ValueError(
            f"its first line is {lines[0]!r}; a list has ids alone, so call a table .csv"
        )
    return "", lines, [{} for _ in lines], [line.strip() for line in lines]


def _parquet(data: bytes, ending: str) -> Records:
    import pyarrow
    from pyarrow import parquet

    def of(table: Any) -> Records:
        def write(target: Path, keep: Rows, ids: Sequence[str] | None) -> None:
            part = table if ids is None else table.add_column(0, MADE_ID, [list(ids)])
            buffer = io.BytesIO()
            parquet.write_table(part.take(np.arange(len(table))[keep]), buffer)
            write_bytes(target, buffer.getvalue())

        def added(rows: Sequence[dict[str, Any]]) -> Records:
            try:
                more = pyarrow.Table.from_pylist(rows, schema=table.schema)
            except (TypeError, ValueError) as error:
                raise ValueError(f"a column cannot hold what is put there: {error}") from None
            return of(pyarrow.concat_tables([table, more]))

        names = tuple(table.column_names)
        return Records(
            contents=table.to_pylist(), columns=names, ending=ending, write=write, added=added
        )

    return of(parquet.read_table(io.BytesIO(data)))


def _folder(folder: Path) -> Records:
    names = [one.as_posix() for one in visible_files(folder)]
    kinds = {Path(name).suffix.lower() for name in names}
    if not kinds:
        raise ValueError(f"{folder}: there are no files")
    if len(kinds) > 1 and not kinds <= _IMAGES:
        raise ValueError(
            f"{folder}: holds files of several kinds ({', '.join(sorted(kinds))}), each of which "
            "would be a record; move away what is none, or list the records in a CSV"
        )
    return _files(folder, [{"sha256": file_sha256(folder / name)} for name in names], names, names)


def _files(
    folder: Path, contents: list[dict[str, Any]], names: list[str], sources: list[str]
) -> Records:
    """Files of a folder, by the names that they get and those that they have."""

    def write(target: Path, keep: Rows, ids: Sequence[str] | None) -> None:
        for at in np.arange(len(names))[keep].tolist():
            place, copies = target / names[at], 1
            place.parent.mkdir(parents=True, exist_ok=True)
            while place.exists():
                copies += 1
                place = (target / names[at]).with_stem(f"{Path(names[at]).stem}-{copies}")
            shutil.copy2(folder / sources[at], place)

    def added(rows: Sequence[dict[str, Any]]) -> Records:
        paths, copied = ([row[what] for row in rows] for what in ("path", "source"))
        return _files(folder, [*contents, *rows], [*names, *paths], [*sources, *copied])

    return Records(contents=contents, names=names, ending="", write=write, added=added)
