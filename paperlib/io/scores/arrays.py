"""Files of arrays as tables: NPZ, NPY, PyTorch, safetensors, and Parquet."""

import io
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paperlib.io.scores.tables import Cells, Table, vector

_SAFETENSORS = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1", "BOOL": "?",
}  # fmt: skip


def npz(data: bytes) -> Table:
    """Arrays of an NPZ file by name; Python objects are never loaded.

    Raises:
        ValueError: It is no NPZ file.
    """
    if not data.startswith(b"PK"):
        raise ValueError("this is not an NPZ file")
    archive = _parsed(lambda: np.load(io.BytesIO(data), allow_pickle=False))
    return _array_table(archive.files, lambda name: _parsed(lambda: archive[name], f"array {name!r}: "))


def npy(data: bytes) -> Table:
    """The array of an NPY file, or the fields of a structured one.

    Raises:
        ValueError: It is no NPY file, or holds Python objects.
    """
    if not data.startswith(b"\x93NUMPY"):
        raise ValueError("this is not an NPY file")
    values = _parsed(lambda: np.load(io.BytesIO(data), allow_pickle=False))
    if values.dtype.names:
        return _array_table(values.dtype.names, lambda name: values[name], ragged=False)
    return _bare(values)


def torch_file(data: bytes) -> Table:
    """A tensor of a PyTorch file, or a dictionary of tensors by name; nothing else in it is ever run.

    Raises:
        ValueError: PyTorch is not installed, or the file holds something else.
    """
    torch = _package("torch", "a PyTorch file")
    try:
        content = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except Exception as error:
        raise ValueError(
            f"cannot be read with weights_only=True ({type(error).__name__}): expected one tensor, or a "
            "dictionary of tensors"
        ) from None
    if torch.is_tensor(content):
        return _bare(_from_torch(content))
    if not isinstance(content, Mapping) or not all(map(torch.is_tensor, content.values())):
        raise ValueError("expected one tensor, or a dictionary of tensors by column name")
    tensors = {str(name): value for name, value in content.items()}
    return _array_table(list(tensors), lambda name: _from_torch(tensors[name]))


def safetensors_file(data: bytes) -> Table:
    """Tensors of a safetensors file by name.

    Raises:
        ValueError: safetensors is not installed, or the file is no such file.
    """
    package = _package("safetensors", "a safetensors file")
    tensors = dict(_parsed(lambda: package.deserialize(data)))
    return _array_table(list(tensors), lambda name: _from_safetensors(name, tensors[name]))


def parquet(data: bytes) -> Table:
    """Columns of a Parquet file.

    Raises:
        ValueError: pyarrow is not installed, or the file is no Parquet file.
    """
    arrow = _package("pyarrow", "a Parquet file")
    reader = _package("pyarrow", "a Parquet file", "pyarrow.parquet")
    file = _parsed(lambda: reader.ParquetFile(io.BytesIO(data)))
    names = list(file.schema_arrow.names)
    if len(set(names)) < len(names):
        raise ValueError(f"two columns have the same name in {', '.join(map(repr, names))}; rename one")

    def read(wanted: Sequence[str]) -> dict[str, Cells]:
        table = _parsed(lambda: file.read(columns=list(dict.fromkeys(wanted))))
        return {name: _from_arrow(arrow, name, table.column(name)) for name in wanted}

    return Table(names=tuple(names), read=read)


def _array_table(names: Sequence[str], load: Callable[[str], Any], *, ragged: bool = True) -> Table:
    def read(wanted: Sequence[str]) -> dict[str, Cells]:
        return {name: vector(f"array {name!r}", load(name)) for name in wanted}

    return Table(names=tuple(names), read=read, noun="array", ragged=ragged)


def _bare(values: NDArray[Any]) -> Table:
    def read(wanted: Sequence[str]) -> dict[str, Cells]:
        return {name: vector("the array", values) for name in wanted}

    return Table(names=("array",), read=read, noun="array", bare=True)


def _from_torch(tensor: Any) -> NDArray[Any]:
    values = tensor.detach().cpu()
    values = values.to_dense() if values.layout is not _package("torch", "").strided else values
    return (values.double() if values.is_floating_point() else values).numpy()


def _from_safetensors(name: str, tensor: Mapping[str, Any]) -> NDArray[Any]:
    kind, shape = tensor["dtype"], tensor["shape"]
    if kind == "BF16":  # the upper half of a float32
        values = (np.frombuffer(tensor["data"], "<u2").astype("<u4") << 16).view("<f4")
    elif kind in _SAFETENSORS:
        values = np.frombuffer(tensor["data"], _SAFETENSORS[kind])
    else:
        raise ValueError(f"array {name!r} holds {kind} values, not numbers")
    return values.reshape(shape)


def _from_arrow(arrow: Any, name: str, column: Any) -> Cells:
    types = arrow.types
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if types.is_decimal(kind) or types.is_float16(kind):
        column, kind = column.cast(arrow.float64()), arrow.float64()
    if types.is_boolean(kind) or (types.is_integer(kind) and column.null_count):
        return column.to_pylist()
    if types.is_floating(kind) or types.is_integer(kind):
        return column.to_numpy()
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return [None if cell is None else cell.strip() for cell in column.to_pylist()]
    if types.is_temporal(kind):
        return column.cast(arrow.string()).to_pylist()
    if types.is_null(kind):
        return [None] * len(column)
    raise ValueError(f"column {name!r} holds {kind} values; expected numbers or text")


def _package(name: str, what: str, module: str | None = None) -> Any:
    try:
        return import_module(module or name)
    except ModuleNotFoundError:
        raise ValueError(f"reading {what} needs {name}, which is not installed: pip install {name}") from None


def _parsed(read: Callable[[], Any], where: str = "") -> Any:
    """What a reader of another package returns; whatever it raises over a damaged file becomes one line."""
    try:
        return read()
    except Exception as error:
        if "allow_pickle" in str(error) or "Object arrays" in str(error):
            reason = "it holds Python objects; save numbers instead"
        else:
            reason = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise ValueError(f"{where}cannot be read: {reason}") from None
