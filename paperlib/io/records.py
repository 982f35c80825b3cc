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
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paperlib.core.column_names import INDEX, plain
from paperlib.io.files import atomic_folder, file_sha256, write_bytes
from paperlib.reading.folders import visible_files
from paperlib.reading.limits import TEXT_BYTES, check_cells
from paperlib.reading.parquet import check_parquet
from paperlib.reading.tables import (
    check_json,
    decoded,
    delimited,
    json_row,
    named,
    open_parquet,
    open_source,
)

MADE_ID = "record_id"
"""Column of the ids that are made of what records hold."""
_USUAL = ("id", "record_id", "example_id")
_TABLES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".pq")
_IMAGES = {".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".tif", ".tiff", ".ppm"}

_ROW_BYTES = 400
"""Memory of a row beside its cells: the line as it stands, and a dictionary of its cells."""

Rows = NDArray[np.bool_] | NDArray[np.int64]
"""True for each record of a part, or the indices of its records, in an order and with repetitions.
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
        write: Writes a part of the records to a path, whole or not at all with an OutputError, with
            a first column of ids where these are given. A file of a folder that is to be there
            several times gets a number behind its name.
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
        columns = [name for name in self.columns if plain(name) in _USUAL]
        if len(columns) > 1:
            raise ValueError(
                f"{' and '.join(map(repr, columns))} may each hold the ids; choose one with --id"
            )
        return columns[0] if columns else None

    def cells(self, column: str) -> list[str]:
        """Cells of a column as a reader of scores sees them: stripped text."""
        return [
            "" if row.get(column) is None else str(row[column]).strip() for row in self.contents
        ]

    def digests(self, *without: str | None) -> list[str]:
        """A hash of what each record holds but row numbers and some columns; "" where that is
        nothing.
        """
        left_out = {name for name in self.columns if INDEX.fullmatch(name.strip())} | {*without}
        digests: list[str] = []
        for row in self.contents:
            cells = {name: cell for name, cell in row.items() if name not in left_out}
            digests.append(_digest(cells) if cells else "")
        return digests


def _digest(cells: dict[str, Any]) -> str:
    """24 hexadecimal digits of a hash of a record's cells, whatever their order."""
    text = json.dumps(cells, sort_keys=True, default=repr)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


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
    source_path = Path(path)
    if source_path.is_dir():
        return _folder(source_path)
    lower = source_path.name.lower()
    packed = ".gz" if lower.endswith(".gz") else ""
    ending = _known_ending(lower.removesuffix(packed))
    if source_path.exists() and (not ending or (packed and ending in (".parquet", ".pq"))):
        raise ValueError(
            f"{path}: expected a folder or a file ending in {', '.join((*_TABLES, '.txt'))}; for "
            "arrays toss the coins in Python, with toss_coins"
        )
    source = open_source(str(source_path))
    with named(source):
        if ending in (".parquet", ".pq"):
            return _parquet_records(_parquet_table(source.data), ending)
        text = decoded(source.data).rstrip("\r\n")
        check_cells(text.count("\n") + 1, 1, bytes_each=_ROW_BYTES, beside=TEXT_BYTES * len(text))
        read = {".txt": _list, ".jsonl": _json, ".ndjson": _json}.get(ending, _delimited)
        records = read(text)
    if not records.lines:
        raise ValueError(f"{path}: there are no rows")
    separator = delimited(records.head).separator if records.head else ""
    return _TextFile(records, separator, ending, packed).records()


def _known_ending(name: str) -> str:
    """The ending of a file's name that says how it is read; empty for another one."""
    for ending in (*_TABLES, ".txt"):
        if name.endswith(ending):
            return ending
    return ""


@dataclass(frozen=True, kw_only=True)
class _Text:
    """What a file of text holds.

    Attributes:
        head: First line of a table, with the names of its columns; empty for JSON and lists.
        lines: Each record as it stands in the file.
        contents: Column to cell of each record; empty for a list.
        names: Names of the records of a list, else None.
    """

    head: str = ""
    lines: list[str]
    contents: list[dict[str, Any]]
    names: list[str] | None = None


@dataclass(frozen=True)
class _TextFile:
    """How the records of a file of text are written, and how further ones are added.

    Attributes:
        text: The records.
        separator: What stands between the cells of a line; empty where there are no cells.
        ending: Ending of the file, such as ".csv".
        packed: ".gz", or empty.
    """

    text: _Text
    separator: str
    ending: str
    packed: str

    def records(self) -> Records:
        """The records with their columns, for the caller of `open_records`."""
        columns: tuple[str, ...] = ()
        if self.text.names is None:
            columns = tuple(dict.fromkeys(key for row in self.text.contents for key in row))
        return Records(
            contents=self.text.contents,
            columns=columns,
            names=self.text.names,
            ending=self.ending + self.packed,
            write=self.write,
            added=self.added,
        )

    def write(self, target: Path, keep: Rows, ids: Sequence[str] | None) -> None:
        """Write some records as they stand, each after its id where ids are given: whole, or not
        at all with an OutputError.

        Args:
            target: The new file.
            keep: True for each record to write, or their row numbers.
            ids: Id of every record of the file; None writes no ids.
        """
        head = self.text.head
        rows: list[str] = []
        if head:
            rows.append(head if ids is None else self._with_id(head, MADE_ID))
        kept: list[int] = np.arange(len(self.text.lines))[keep].tolist()
        for index in kept:
            line = self.text.lines[index]
            rows.append(line if ids is None else self._with_id(line, ids[index]))
        data = "".join(f"{row}\n" for row in rows).encode()
        write_bytes(target, gzip.compress(data) if self.packed else data)

    def added(self, rows: Sequence[dict[str, Any]]) -> Records:
        """These records and further ones, of which the cells are given by column; a ValueError for
        a table with several columns without a name.
        """
        text = self.text
        if text.head:
            headings = next(csv.reader([text.head], delimiter=self.separator))
            if len(headings) > len(self.records().columns):  # columns count each name once
                raise ValueError("several columns have no name; name them in the first line")
        longer = replace(
            text,
            lines=[*text.lines, *map(self._line, rows)],
            contents=[*text.contents, *rows],
            names=None if text.names is None else [*text.names, *(row["text"] for row in rows)],
        )
        return replace(self, text=longer).records()

    @property
    def _is_json(self) -> bool:
        return self.ending in (".jsonl", ".ndjson")

    def _with_id(self, line: str, name: str) -> str:
        """A line with one cell more, its first."""
        if self._is_json:
            return json.dumps({MADE_ID: name, **json.loads(line)}, ensure_ascii=False)
        return f"{name}{self.separator}{line}"

    def _line(self, row: dict[str, Any]) -> str:
        """A record, cells by column, as a line of this file: JSON, delimited text or a name."""
        if self.text.names is not None:
            return row["text"]
        if self._is_json:
            return json.dumps(row, ensure_ascii=False)
        line = io.StringIO()
        csv.writer(line, delimiter=self.separator, lineterminator="").writerow(row.values())
        return line.getvalue()


def _delimited(text: str) -> _Text:
    """A table with a line of names; a record may take several lines, where a cell is quoted. A
    ValueError for text that is no such table.
    """
    table = delimited(text)
    columns = table.read(table.names)  # checked, with their cells stripped
    lines = list(io.StringIO(text, newline=""))
    reader = csv.reader(lines, delimiter=table.separator, skipinitialspace=True, strict=True)
    raw: list[str] = []  # each row as it stands in the file, the names first
    first_line = 0  # of the next row
    width = 0  # cells of the first row, the names
    for row in reader:
        if not raw and "".join(row).strip():
            width = len(row)
            raw.append("".join(lines[first_line : reader.line_num]).rstrip("\r\n"))
        elif raw and (row or width == 1):  # an empty line is a row of a single empty cell
            raw.append("".join(lines[first_line : reader.line_num]).rstrip("\r\n"))
        first_line = reader.line_num
    contents = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return _Text(head=raw[0], lines=raw[1:], contents=contents)


def _json(text: str) -> _Text:
    """JSON lines; blank lines are left out."""
    check_json(text)
    lines = [line.rstrip("\r") for line in text.split("\n") if line.strip()]
    contents = [json_row(line, number) for number, line in enumerate(lines, 1)]
    return _Text(lines=lines, contents=contents)


def _list(text: str) -> _Text:
    """A list with one id a line, blank lines left out; a ValueError where the first line is a
    heading.
    """
    lines = [line.rstrip("\r") for line in text.split("\n") if line.strip()]
    if lines and plain(lines[0]) in _USUAL:
        raise ValueError(
            f"its first line is {lines[0]!r}; a list has ids alone, so call a table .csv"
        )
    names = [line.strip() for line in lines]
    return _Text(lines=lines, contents=[{} for _ in lines], names=names)


def _parquet_table(data: bytes) -> Any:
    """The table of pyarrow in the bytes of a Parquet file; a ValueError where it would not fit in
    memory.
    """
    file = open_parquet(data)
    check_parquet(data, file.metadata, file.schema_arrow.names)
    check_cells(file.metadata.num_rows, 1, bytes_each=_ROW_BYTES)
    return file.read()


def _parquet_records(table: Any, ending: str) -> Records:
    """Records of a table of pyarrow: each row is one, and files are written with the ``ending``."""

    def write(target: Path, keep: Rows, ids: Sequence[str] | None) -> None:
        """Write the rows to keep, behind a column of ids where these are given, whole or not at all
        with an OutputError.
        """
        from pyarrow import parquet

        with_ids = table if ids is None else table.add_column(0, MADE_ID, [list(ids)])
        buffer = io.BytesIO()
        parquet.write_table(with_ids.take(np.arange(len(table))[keep]), buffer)
        write_bytes(target, buffer.getvalue())

    def added(rows: Sequence[dict[str, Any]]) -> Records:
        """The records and further rows; a ValueError for values that a column cannot hold."""
        import pyarrow

        try:
            further = pyarrow.Table.from_pylist(rows, schema=table.schema)
        except (TypeError, ValueError) as error:
            raise ValueError(f"a column cannot hold what is put there: {error}") from None
        return _parquet_records(pyarrow.concat_tables([table, further]), ending)

    return Records(
        contents=table.to_pylist(),
        columns=tuple(table.column_names),
        ending=ending,
        write=write,
        added=added,
    )


def _folder(folder: Path) -> Records:
    """Files of a folder as records; a ValueError for none, and for several kinds that are no
    images.
    """
    names = [path.as_posix() for path in visible_files(folder)]
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
    """Files of a folder as records.

    Args:
        folder: That of the files.
        contents: What each record holds, by column.
        names: Path, within a folder that is written, that each file gets: its id.
        sources: Path within ``folder`` of the file that is copied for each.
    """

    def write(target: Path, keep: Rows, ids: Sequence[str] | None) -> None:
        """Copy the files to keep into a new folder, which appears when it is complete."""
        with atomic_folder(target) as unfinished:
            for index in np.arange(len(names))[keep].tolist():
                copy = _free_path(unfinished / names[index])
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(folder / sources[index], copy)

    def added(rows: Sequence[dict[str, Any]]) -> Records:
        """The files and further ones, each a row with the path it gets and the source that it
        has.
        """
        return _files(
            folder,
            [*contents, *rows],
            [*names, *(row["path"] for row in rows)],
            [*sources, *(row["source"] for row in rows)],
        )

    return Records(contents=contents, names=names, ending="", write=write, added=added)


def _free_path(path: Path) -> Path:
    """This path, or the first of ``NAME-2``, ``NAME-3`` and so on, where nothing stands yet."""
    free = path
    copies = 1
    while free.exists():
        copies += 1
        free = path.with_stem(f"{path.stem}-{copies}")
    return free
