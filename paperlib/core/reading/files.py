"""A file or standard input as a table: text, arrays, tensors and Parquet."""

import io
import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from paperlib.core.reading.text import Cells, Table, decoded, delimited, json_lines, single_values

STANDARD_INPUT = "standard input"


@dataclass(frozen=True)
class Source:
    """The path of a file as the user gave it, or "standard input", and all of its bytes."""

    path: str
    data: bytes

    @property
    def name(self) -> str:
        """Name of the file without its folders."""
        return Path(self.path).name


def open_source(path: str) -> Source:
    """Read a file, or standard input for "-"."""
    if path == "-":
        return Source(STANDARD_INPUT, sys.stdin.buffer.read())
    place = Path(path)
    if place.is_dir():
        raise ValueError(f"{path}: this is a folder; give one of its files")
    if not place.exists():
        raise FileNotFoundError(f"{path}: there is no such file")
    return Source(path, place.read_bytes())


@contextmanager
def named(source: Source) -> Generator[None]:
    """Put the file's name in front of an error, which is kept to one line."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{source.path}: {' '.join(str(error).split())}") from None


def table_of(source: Source) -> Table:
    """The columns of a file, by the end of its name; standard input is JSON if it begins with a brace."""
    if source.data[:4] == b"PAR1":
        return _parquet(source.data)
    name = source.name.lower()
    suffix = next((one for one in _SUFFIXES if name.removesuffix(".gz").endswith(one)), "")
    if suffix in _BINARY and not name.endswith(".gz"):
        return _BINARY[suffix](source.data)
    if suffix not in (*_DELIMITED, *_JSON) and source.path != STANDARD_INPUT:
        raise ValueError(f"expected a file ending in {', '.join(_SUFFIXES)}; text may also end in .gz")
    text = decoded(source.data)
    is_json = suffix in _JSON if suffix else text.lstrip().startswith("{")
    return json_lines(text) if is_json else delimited(text)


# ---------------------------------------------------------------- arrays


def _numpy_file(data: bytes) -> Table:
    """Arrays of an NPZ file, fields of a structured NPY file, or its array; objects are never loaded."""
    if not data.startswith((b"PK", b"\x93NUMPY")):
        raise ValueError("this is neither an NPZ nor an NPY file")
    content = _parsed(lambda: np.load(io.BytesIO(data), allow_pickle=False))
    names = content.files if data.startswith(b"PK") else content.dtype.names
    if names is None:
        return _arrays(["array"], lambda _: content, bare=True)
    return _arrays(names, content.__getitem__)


def _torch_file(data: bytes) -> Table:
    """A tensor of a PyTorch file, or a dictionary of tensors by name; nothing else in it is ever run."""
    torch = _package("torch", "a PyTorch file")
    try:
        content: Any = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except Exception as error:
        raise ValueError(
            f"cannot be read with weights_only=True ({type(error).__name__}): expected one tensor, or a "
            "dictionary of tensors"
        ) from None
    bare: bool = torch.is_tensor(content)
    tensors = {"array": content} if bare else content
    if not hasattr(tensors, "items") or not all(map(torch.is_tensor, tensors.values())):
        raise ValueError("expected one tensor, or a dictionary of tensors by column name")
    by_name = {str(name): tensor.detach().to_dense() for name, tensor in tensors.items()}

    def load(name: str) -> Any:
        tensor = by_name[name]
        return (tensor.double() if tensor.is_floating_point() else tensor).numpy()

    return _arrays(by_name, load, bare=bare)


def _safetensors_file(data: bytes) -> Table:
    """Tensors of a safetensors file by name."""
    package = _package("safetensors.numpy", "a safetensors file")
    tensors = _parsed(lambda: package.load(data))
    return _arrays(tensors, tensors.__getitem__)


def _arrays(names: Iterable[str], load: Callable[[str], Any], *, bare: bool = False) -> Table:
    def read(wanted: Sequence[str]) -> dict[str, Cells]:
        return {name: _vector(table.label(name), lambda name=name: load(name)) for name in wanted}

    table = Table(names=tuple(names), read=read, noun="array", bare=bare)
    return table


def _vector(label: str, load: Callable[[], Any]) -> Cells:
    """An array of shape (n,) or (n, 1) as cells."""
    values = _parsed(load, f"{label}: ")
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise ValueError(f"{label} has shape {values.shape}; expected one value per example")
    if values.dtype.kind not in "biufUS":
        raise ValueError(f"{label} holds {values.dtype} values; expected numbers or text")
    if values.dtype.kind == "S":
        values = np.char.decode(values, "utf-8", "replace")
    return (values.astype(np.float64) if values.dtype.kind == "f" else values).tolist()


def _parquet(data: bytes) -> Table:
    """Columns of a Parquet file."""
    arrow = _package("pyarrow", "a Parquet file")
    reader = _package("pyarrow.parquet", "a Parquet file")
    file = _parsed(lambda: reader.ParquetFile(io.BytesIO(data)))
    names: list[str] = list(file.schema_arrow.names)
    if len(set(names)) < len(names):
        raise ValueError(f"two columns have the same name in {', '.join(map(repr, names))}; rename one")

    def read(wanted: Sequence[str]) -> dict[str, Cells]:
        table = _parsed(lambda: file.read(columns=list(wanted)))
        return {name: _arrow_cells(arrow, name, table.column(name)) for name in wanted}

    return Table(names=tuple(names), read=read)


def _arrow_cells(arrow: Any, name: str, column: Any) -> Cells:
    if arrow.types.is_floating(column.type) or arrow.types.is_decimal(column.type):
        return column.cast(arrow.float64()).to_numpy().tolist()
    if arrow.types.is_temporal(column.type):
        column = column.cast(arrow.string())
    return single_values(name, column.to_pylist())


def _package(module: str, what: str) -> Any:
    try:
        return import_module(module)
    except ModuleNotFoundError:
        name = module.partition(".")[0]
        raise ValueError(f"reading {what} needs {name}, which is not installed: pip install {name}") from None


def _parsed(read: Callable[[], Any], where: str = "") -> Any:
    """What a reader of another package returns; whatever it raises over a damaged file becomes one line."""
    try:
        return read()
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
