"""A file or standard input as a table: delimited text, JSON lines, arrays, tensors and Parquet."""

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from itertools import dropwhile
from pathlib import Path
from typing import Any, cast

import numpy as np

from paperlib.core.checks import did_you_mean
from paperlib.reading.files import (
    STANDARD_INPUT,
    read_file,
    read_standard_input,
    unpacked,
    user_path,
)
from paperlib.reading.headers import (
    ArrayHeader,
    check_archive,
    check_arrays,
    npy_header,
    npz_headers,
)
from paperlib.reading.limits import (
    CELL_BYTES,
    JSON_BYTES,
    TEXT_BYTES,
    TooLargeError,
    check_cells,
    check_size,
    check_text,
    in_bytes,
)
from paperlib.reading.parquet import check_parquet

Cells = list[Any]
"""One value per example: str, int, float, bool or None."""

NUMBER = re.compile(
    r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf(?:inity)?)",
    re.IGNORECASE | re.ASCII,
)
"""A number as it may be written."""

_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}
_SHOWN_NAMES = 30  # of columns, in a message
_FIRST_LINE = 1 << 20  # most characters of the line that names the columns


@dataclass(frozen=True, kw_only=True)
class Table:
    """Columns of one file, whose cells are read by name; a bare one is one array without a name."""

    names: tuple[str, ...]  # of its columns
    read: Callable[[Sequence[str]], dict[str, Cells]]  # from names to the cells of each column
    noun: str = "column"  # or "array", for messages
    bare: bool = False
    separator: str = ""  # of delimited text
    # Values of each of these columns as headers claim them; None where only reading tells.
    lengths: Callable[[Sequence[str]], dict[str, int]] | None = None

    @property
    def decimal_comma(self) -> bool:
        """Whether a comma in a number can be a decimal one: the cells are not separated by
        commas.
        """
        return self.separator in (";", "\t")

    def label(self, name: str) -> str:
        """How an error message calls a column."""
        return "the array" if self.bare else f"{self.noun} {name!r}"

    def listed(self) -> str:
        """All names for an error message, shortened where there are very many."""
        names = ", ".join(map(repr, self.names[:_SHOWN_NAMES])) or "none"
        left_out = len(self.names) - _SHOWN_NAMES
        return f"{names} and {left_out} more" if left_out > 0 else names

    def check(self, name: str) -> str:
        """A name that the user gave; a ValueError where there is no such column."""
        if name not in self.names:
            near = did_you_mean(name, self.names)
            raise ValueError(f"no {self.noun} {name!r}; the {self.noun}s are {self.listed()}{near}")
        return name


@dataclass(frozen=True)
class NamedBytes:
    """The path of a file as the user gave it, or "standard input", and all of its bytes."""

    path: str
    data: bytes

    @property
    def name(self) -> str:
        """Name of the file without its folders."""
        return Path(self.path).name


def open_source(path: str) -> NamedBytes:
    """Read a regular file, or standard input for "-" and "/dev/stdin", within the limit of
    `read_limit`.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: A folder, a pipe with a name, or a device; a `TooLargeError` beyond the limit.
    """
    if path in ("-", "/dev/stdin"):
        with named(NamedBytes(STANDARD_INPUT, b"")):
            return NamedBytes(STANDARD_INPUT, read_standard_input())
    if not user_path(path).exists():
        raise FileNotFoundError(f"{path}: there is no such file")
    return NamedBytes(path, read_file(path))


@contextmanager
def named(source: NamedBytes) -> Generator[None]:
    """Put the file's name in front of a ValueError that is raised in the block, which is kept to
    one line; a `TooLargeError` stays one.
    """
    try:
        yield
    except ValueError as error:
        kind = TooLargeError if isinstance(error, TooLargeError) else ValueError
        raise kind(f"{source.path}: {' '.join(str(error).split())}") from None


def table_of(source: NamedBytes) -> Table:
    """The columns of a file, by the end of its name; standard input is JSON if it begins with a
    brace.

    Raises:
        ValueError: An unknown ending, or a content that cannot be read.
    """
    if source.data[:4] == b"PAR1":
        return _parquet(source.data)
    name = source.name.lower()
    endings = (ending for ending in _SUFFIXES if name.removesuffix(".gz").endswith(ending))
    suffix = next(endings, "")
    if suffix in _BINARY and not name.endswith(".gz"):
        return _BINARY[suffix](source.data)
    if suffix not in (*_DELIMITED, *_JSON) and source.path != STANDARD_INPUT:
        raise ValueError(
            f"expected a file ending in {', '.join(_SUFFIXES)}; text may also end in .gz"
        )
    text = decoded(source.data)
    is_json = suffix in _JSON if suffix else text.lstrip().startswith("{")
    return json_lines(text) if is_json else delimited(text)


# ---------------------------------------------------------------- text


def decoded(data: bytes) -> str:
    """Text of a file in UTF-8, or in UTF-16 with a byte-order mark, compressed by gzip or not.

    Raises:
        ValueError: No text in UTF-8 or UTF-16, none at all, a damaged gzip file, or a Git LFS
            pointer.
        TooLargeError: It cannot be cut into lines within the limit of memory.
    """
    data = unpacked(data)
    check_text(len(data), data.count(b"\n"))
    encoding = "UTF-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "UTF-8"
    try:
        text = data.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ValueError(
            f"is not {encoding} text (byte 0x{data[error.start]:02x} in line {line}); save it as "
            "UTF-8, or as UTF-16 with a byte-order mark"
        ) from None
    if "\0" in text:
        raise ValueError(
            "holds zero bytes, as UTF-32 and UTF-16 without a byte-order mark do; save it as "
            "UTF-8 text"
        )
    if not text.strip():
        raise ValueError("the file is empty")
    if text.startswith("version https://git-lfs.github.com/spec/"):
        raise ValueError("this is a Git LFS pointer in place of the file; run git lfs pull")
    return text


def delimited(text: str) -> Table:
    """A table whose first line names the columns, with commas, semicolons or tabs between the
    cells.

    Raises:
        ValueError: No first line that can be read, one that fits two separators, a name that stands
            twice, or numbers in place of names; when the columns are read, rows that are not full.
    """
    separator, header = _header(text)
    names = [name.strip() for name in header]
    _check_names(names)

    def read(columns: Sequence[str]) -> dict[str, Cells]:
        """The cells of these columns, read row by row; a ValueError for rows that are not full."""
        check_cells(text.count("\n") + 1, len(columns), beside=TEXT_BYTES * len(text))
        rows = _rows(text, separator)
        next(rows)  # the header
        cells: dict[str, Cells] = {name: [] for name in columns}
        # Of columns without a name the first counts.
        places = {name: place for place, name in reversed([*enumerate(names)])}
        appends = [(column.append, places[name]) for name, column in cells.items()]
        for row in _full_rows(rows, len(names)):
            for append, position in appends:
                append(row[position].strip())
        return cells

    return Table(names=tuple(dict.fromkeys(names)), read=read, separator=separator)


def _header(text: str) -> tuple[str, list[str]]:
    """The separator that cuts the first line into the most cells, and these cells; a ValueError
    where there is none, or two cut it alike.
    """
    headers: dict[str, list[str]] = {}  # by separator
    for separator in _SEPARATORS:
        try:
            headers[separator] = next(_rows(text[:_FIRST_LINE], separator), list[str]())
        except csv.Error:  # such as a quote that another separator ends
            continue
    if not headers:
        raise ValueError("the first line cannot be read: a quote in it is not closed")
    most = max(map(len, headers.values()))
    if not most:
        raise ValueError("the file is empty")
    separators = [separator for separator, header in headers.items() if len(header) == most]
    if most > 1 and len(separators) > 1:
        both = " and ".join(_SEPARATORS[separator] for separator in separators)
        raise ValueError(f"the first line has as many {both}; name the columns without them")
    return separators[0], headers[separators[0]]


def _check_names(names: list[str]) -> None:
    """Refuse (ValueError) a name that stands twice, and numbers, which are data without a header;
    columns may have no name.
    """
    filled = [name for name in names if name]
    repeated = [name for name, times in Counter(filled).items() if times > 1]
    if repeated:
        raise ValueError(f"two columns have the same name, {repeated[0]!r}; rename one")
    if all(NUMBER.fullmatch(name.replace(",", ".")) for name in filled):
        raise ValueError(
            f"the first line holds the number {filled[0]}, not a name; the first line of a CSV "
            "must name the columns"
        )


def _rows(text: str, separator: str) -> Iterator[list[str]]:
    """Rows from the first one on that is not blank."""
    lines = io.StringIO(text.rstrip("\r\n"), newline="")
    rows = csv.reader(lines, delimiter=separator, skipinitialspace=True, strict=True)
    return dropwhile(lambda row: not "".join(row).strip(), rows)


def _full_rows(rows: Iterator[list[str]], width: int) -> Iterator[list[str]]:
    """Rows of ``width`` cells, as many as the header has; a ValueError with the number of the first
    other one, or of one that cannot be read.
    """
    number = 0
    try:
        for row in rows:
            if not row and width > 1:
                continue  # a blank line, which in a table of one column is a cell
            number += 1
            cells = row or [""]
            if len(cells) != width:
                raise ValueError(
                    f"row {number} has {len(cells)} cells, but the first line names {width} "
                    "columns; quote cells that hold the separator, and fill in what is missing"
                )
            yield cells
    except csv.Error as error:
        raise ValueError(f"row {number + 1} cannot be read: {error}") from None


def json_lines(text: str) -> Table:
    """A table with one JSON object a line; any of them may name a column, which is missing (None)
    in the rows of the others. A ValueError for a line that is no object.
    """
    check_json(text)
    lines = [line for line in text.split("\n") if line.strip()]
    rows = [json_row(line, number) for number, line in enumerate(lines, 1)]
    names = dict.fromkeys(name for row in rows for name in row)

    def read(columns: Sequence[str]) -> dict[str, Cells]:
        """The cells of these columns; a ValueError for one that holds lists or objects."""
        return {name: single_values(name, [row.get(name) for row in rows]) for name in columns}

    return Table(names=tuple(names), read=read)


def check_json(text: str) -> None:
    """Refuse (`TooLargeError`) text whose JSON does not fit into memory, counted before it is read:
    objects and lists by their brackets, values by the commas between them.
    """
    objects = text.count("{") + text.count("[")
    values = text.count(",") + text.count(":")
    needed = JSON_BYTES * objects + CELL_BYTES * values + TEXT_BYTES * len(text)
    check_size(needed, f"JSON of {in_bytes(len(text))}")


def json_row(line: str, number: int) -> dict[str, Any]:
    """The object in a line of JSON.

    Raises:
        ValueError: Anything else; the message names the row by its ``number``, from 1.
    """
    try:
        row = _DECODER.decode(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"row {number} is not JSON: {error}; write one object a line") from None
    if not isinstance(row, dict):
        raise ValueError(f'row {number} is not a JSON object such as {{"loss": 0.5, "member": 1}}')
    return cast(dict[str, Any], row)


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON as a dictionary, refused where it names one column twice."""
    row = dict(pairs)
    if len(row) < len(pairs):
        raise ValueError("it names a column twice")
    return row


_DECODER: Any = json.JSONDecoder(object_pairs_hook=_without_duplicates)


def single_values(name: str, cells: Cells) -> Cells:
    """Cells of a file that may hold anything, texts stripped; a ValueError for lists, objects and
    bytes, which names the column and the row.
    """
    for row, cell in enumerate(cells, 1):
        if not isinstance(cell, str | int | float | None):
            what = type(cell).__name__
            raise ValueError(
                f"column {name!r} holds a {what} in row {row}; expected a single value"
            )
    return [cell.strip() if isinstance(cell, str) else cell for cell in cells]


# ---------------------------------------------------------------- arrays


def _numpy_file(data: bytes) -> Table:
    """Arrays of an NPZ file, fields of a structured NPY file, or its array; a ValueError for a
    damaged file and for objects, which are never loaded.
    """
    if data.startswith(b"PK"):
        archive = _parsed(lambda: np.load(io.BytesIO(data), allow_pickle=False))
        return _arrays(
            archive.files, archive.__getitem__, headers=lambda names: npz_headers(data, names)
        )
    if not data.startswith(b"\x93NUMPY"):
        raise ValueError("this is neither an NPZ nor an NPY file")
    header = _parsed(lambda: npy_header(io.BytesIO(data), len(data)))
    check_arrays({"array": header}, as_cells=False)
    content = _parsed(lambda: np.load(io.BytesIO(data), allow_pickle=False))
    if content.dtype.names is None:
        return _arrays(["array"], lambda _: content, bare=True)
    return _arrays(content.dtype.names, content.__getitem__)


def _torch_file(data: bytes) -> Table:
    """A tensor of a PyTorch file, or a dictionary of tensors by name; a ValueError for anything
    else, and nothing in it is ever run.
    """
    torch = _package("torch")
    if data.startswith(b"PK"):
        check_archive(data)
    try:
        content: Any = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except Exception as error:
        raise ValueError(
            f"cannot be read with weights_only=True ({type(error).__name__}): expected one tensor, "
            "or a dictionary of tensors"
        ) from None
    bare: bool = torch.is_tensor(content)
    tensors = {"array": content} if bare else content
    if not hasattr(tensors, "items") or not all(map(torch.is_tensor, tensors.values())):
        raise ValueError("expected one tensor, or a dictionary of tensors by column name")
    by_name = {str(name): tensor.detach() for name, tensor in tensors.items()}

    def headers(names: Sequence[str]) -> dict[str, ArrayHeader]:
        """Type and shape of these tensors as arrays, by name."""
        # A tensor may be larger than what is stored of it: repeated, or sparse.
        number = np.dtype(np.float64)
        return {name: ArrayHeader(number, tuple(by_name[name].shape)) for name in names}

    def load(name: str) -> Any:
        """The tensor of this name as an array."""
        tensor = by_name[name].to_dense()
        return (tensor.double() if tensor.is_floating_point() else tensor).numpy()

    return _arrays(by_name, load, headers=headers, bare=bare)


def _safetensors_file(data: bytes) -> Table:
    """Tensors of a safetensors file by name."""
    package = _package("safetensors.numpy")
    tensors = _parsed(lambda: package.load(data))
    return _arrays(tensors, tensors.__getitem__)


def _arrays(
    names: Iterable[str],
    load: Callable[[str], Any],
    *,
    headers: Callable[[Sequence[str]], dict[str, ArrayHeader]] | None = None,
    bare: bool = False,
) -> Table:
    """A table of arrays of shape (n,) or (n, 1).

    Args:
        names: Of the arrays.
        load: From a name to the array.
        headers: From names to type and shape of each array, where not all are in memory; None
            where they are.
        bare: Whether it is one array without a name.
    """

    def headers_in_memory(columns: Sequence[str]) -> dict[str, ArrayHeader]:
        """Type and shape of each array, where reading a header would save nothing."""
        in_memory: dict[str, ArrayHeader] = {}
        for name in columns:
            array = load(name)
            in_memory[name] = ArrayHeader(array.dtype, array.shape)
        return in_memory

    headers_of = headers or headers_in_memory

    def lengths(columns: Sequence[str]) -> dict[str, int]:
        """The number of rows of each column, from its header."""
        return {name: header.rows for name, header in headers_of(columns).items()}

    def read(columns: Sequence[str]) -> dict[str, Cells]:
        """The values of these arrays as cells; their size is checked before they are loaded."""
        check_arrays(headers_of(columns), as_cells=True)
        cells: dict[str, Cells] = {}
        for name in columns:
            label = table.label(name)
            values = _parsed(lambda name=name: load(name), f"{label}: ")
            cells[name] = _array_cells(label, values)
        return cells

    table = Table(names=tuple(names), read=read, noun="array", bare=bare, lengths=lengths)
    return table


def _array_cells(label: str, values: Any) -> Cells:
    """The values of an array of numbers or text, shape (n,) or (n, 1), one per example; floats of
    any width as float64. A ValueError for other shapes and types.
    """
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise ValueError(f"{label} has shape {values.shape}; expected one value per example")
    if values.dtype.kind not in "biufUS":
        raise ValueError(f"{label} holds {values.dtype} values; expected numbers or text")
    if values.dtype.kind == "S":
        values = np.char.decode(values, "utf-8", "replace")
    if values.dtype.kind == "f":
        values = values.astype(np.float64)
    return values.tolist()


def open_parquet(data: bytes) -> Any:
    """A Parquet file of pyarrow, of which the metadata alone are read; a ValueError for damaged
    bytes, or without pyarrow.
    """
    reader = _package("pyarrow.parquet")
    return _parsed(lambda: reader.ParquetFile(io.BytesIO(data)))


def _parquet(data: bytes) -> Table:
    """The columns of a Parquet file; a ValueError for a damaged one, or for two of one name."""
    file = open_parquet(data)
    names: list[str] = list(file.schema_arrow.names)
    if len(set(names)) < len(names):
        raise ValueError(
            f"two columns have the same name in {', '.join(map(repr, names))}; rename one"
        )

    def read(columns: Sequence[str]) -> dict[str, Cells]:
        """The cells of these columns; a ValueError for what a Parquet file cannot hold as cells."""
        check_parquet(data, file.metadata, columns)
        table = _parsed(lambda: file.read(columns=list(columns)))
        return {name: _parquet_cells(name, table.column(name)) for name in columns}

    return Table(names=tuple(names), read=read)


def _parquet_cells(name: str, column: Any) -> Cells:
    """The cells of one column of pyarrow: numbers with a fraction as float64, times, dates and
    whole decimals as text; a ValueError for lists, objects and bytes.
    """
    arrow_type = str(column.type)
    has_decimals = getattr(column.type, "scale", 0)  # of decimal numbers
    if has_decimals or arrow_type.startswith(("halffloat", "float", "double")):
        return column.cast("double").to_numpy().tolist()
    cells = _parsed(column.to_pylist, f"column {name!r}: ")
    if arrow_type.startswith(("time", "date", "duration", "decimal")):
        # As the ids of coins, which are text, too.
        cells = [None if cell is None else str(cell) for cell in cells]
    return single_values(name, cells)


def _package(module: str) -> Any:
    """An optional module, or a ValueError that says how to install its package."""
    try:
        return import_module(module)
    except ModuleNotFoundError:
        name = module.partition(".")[0]
        raise ValueError(
            f"reading it needs {name}, which is not installed: pip install {name}"
        ) from None


def _parsed(read: Callable[[], Any], where: str = "") -> Any:
    """What a reader of another package returns; whatever it raises over a damaged file becomes a
    ValueError of one line, which begins with ``where``.
    """
    try:
        return read()
    except TooLargeError:
        raise
    except Exception as error:
        if "allow_pickle" in str(error) or "Object arrays" in str(error):
            reason = "it holds Python objects; save numbers instead"
        elif isinstance(error, KeyError):  # a type of safetensors that NumPy has not
            reason = f"it holds {error.args[0]} values; convert them to float32"
        else:
            reason = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise ValueError(f"{where}cannot be read: {reason}") from None


_DELIMITED, _JSON = (".csv", ".tsv", ".txt"), (".jsonl", ".ndjson")
_BINARY: dict[str, Callable[[bytes], Table]] = {
    ".parquet": _parquet,
    ".pq": _parquet,
    ".npz": _numpy_file,
    ".npy": _numpy_file,
    ".pt": _torch_file,
    ".pth": _torch_file,
    ".safetensors": _safetensors_file,
}
_SUFFIXES = (*_DELIMITED, *_JSON, *_BINARY)
