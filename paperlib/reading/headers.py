"""What headers say of arrays before these are read: NPY files, members of NPZ files, zip archives.

A header may lie; what it claims is compared with the bytes that are there.
"""

import ast
import io
import math
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paperlib.reading.limits import check_cells, check_size, in_bytes

_MAGIC = b"\x93NUMPY"
_LONGEST_HEADER = 10_000  # bytes; of NumPy's own reader
_DAMAGES = (OSError, EOFError, zlib.error, zipfile.BadZipFile, NotImplementedError, RuntimeError)


@dataclass(frozen=True)
class ArrayHeader:
    """Type and shape of an array that was not read."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    @property
    def values(self) -> int:
        """Number of values."""
        return math.prod(self.shape)

    @property
    def rows(self) -> int:
        """Length of the first axis."""
        return self.shape[0] if self.shape else 1

    @property
    def size(self) -> int:
        """Bytes of the array in memory."""
        return self.values * self.dtype.itemsize


def npy_header(stream: Any, size: int) -> ArrayHeader:
    """The header of an NPY file, checked against the file's size.

    Args:
        stream: The file from its start.
        size: All bytes of the file, unpacked.

    Raises:
        ValueError: Another file, Python objects, or a header that claims other bytes than are
            there.
    """
    # Six letters, two bytes of the version, the length of the text in two or four bytes, the text.
    magic = stream.read(8)
    if len(magic) < 8 or magic[:6] != _MAGIC:
        raise ValueError("it is no NPY file")
    length_size = 2 if magic[6] == 1 else 4
    length = int.from_bytes(stream.read(length_size), "little")
    if length > _LONGEST_HEADER:
        raise ValueError(f"its header claims {length:,} bytes; NPY files have at most 10,000")
    header = _parsed_header(stream.read(length))
    there = size - 8 - length_size - length
    if header.dtype.hasobject:
        raise ValueError("it holds Python objects; save numbers instead")
    if header.size > there:
        raise ValueError(
            f"its header claims {header.size:,} bytes of values, but {max(there, 0):,} are there"
        )
    return header


def _parsed_header(text: bytes) -> ArrayHeader:
    """Type and shape that the text of a header names; a ValueError where it names none."""
    try:
        fields = ast.literal_eval(text.decode("latin-1"))
        dtype = np.lib.format.descr_to_dtype(fields["descr"])
        shape = tuple(fields["shape"])
    except (ValueError, SyntaxError, TypeError, KeyError, RecursionError, MemoryError):
        raise ValueError("its header cannot be read") from None
    if not all(type(length) is int and length >= 0 for length in shape):
        raise ValueError(f"its header claims the shape {shape}")
    return ArrayHeader(dtype, shape)


def npz_headers(data: bytes | str, names: Sequence[str]) -> dict[str, ArrayHeader]:
    """The headers of members of an NPZ file, in their order, without reading the arrays.

    Args:
        data: The file's bytes, or its path.
        names: Members, without ".npy".

    Raises:
        ValueError: A damaged archive, or a member that is no array or lies about its size.
    """
    headers: dict[str, ArrayHeader] = {}
    with _archive(data) as archive:
        for name in names:
            try:
                headers[name] = _member_header(archive, name)
            except (ValueError, *_DAMAGES) as error:
                raise ValueError(f"array {name!r}: cannot be read: {error}") from None
    return headers


def _member_header(archive: zipfile.ZipFile, name: str) -> ArrayHeader:
    """The header of one member, which may be called with or without ".npy"; a ValueError where
    there is none, or its header lies.
    """
    held = {f"{name}.npy", name}.intersection(archive.namelist())
    if not held:
        raise ValueError("there is no such array")
    member = archive.getinfo(max(held, key=len))
    with archive.open(member) as stream:
        return npy_header(stream, member.file_size)


def array_names(data: bytes) -> list[str]:
    """Names of the arrays of an NPZ file; none of an NPY file, which holds one without a name. A
    ValueError for bytes that are neither.
    """
    if data[:6] == _MAGIC:
        return []
    with _archive(data) as archive:
        return [name.removesuffix(".npy") for name in archive.namelist()]


def load_arrays(data: bytes, names: Sequence[str] = ()) -> list[NDArray[Any]]:
    """Arrays of any shape: those of an NPZ file of these names, or the one of an NPY file. Their
    sizes are looked at before they are read.

    Raises:
        ValueError: Damaged data, Python objects, or a header that lies.
        TooLargeError: Together they do not fit into memory.
    """
    try:
        if names:
            check_arrays(npz_headers(data, names), as_cells=False)
            with np.load(io.BytesIO(data), allow_pickle=False) as archive:
                return [archive[name] for name in names]
        header = npy_header(io.BytesIO(data), len(data))
        check_arrays({"array": header}, as_cells=False)
        return [np.load(io.BytesIO(data), allow_pickle=False)]
    except _DAMAGES as error:
        raise ValueError(f"cannot be read: {error}") from None


def check_archive(data: bytes | str) -> None:
    """Refuse a zip archive whose members, by its directory, do not fit into memory together, by a
    `TooLargeError`, and a damaged one by a ValueError; ``data`` are its bytes or its path.
    """
    with _archive(data) as archive:
        size = sum(member.file_size for member in archive.infolist())
    check_size(size, f"{in_bytes(size)} of content")


def _archive(data: bytes | str) -> zipfile.ZipFile:
    """The archive of a file's bytes or path; a ValueError for another or damaged one."""
    try:
        return zipfile.ZipFile(io.BytesIO(data) if isinstance(data, bytes) else data)
    except (ValueError, *_DAMAGES) as error:
        raise ValueError(f"cannot be read: {error}") from None


def check_arrays(headers: dict[str, ArrayHeader], *, as_cells: bool) -> None:
    """Refuse (`TooLargeError`) arrays that do not fit into memory together.

    Args:
        headers: By name.
        as_cells: Whether each value becomes a cell of a table; else arrays stay arrays.
    """
    if as_cells:
        longest = max((header.values for header in headers.values()), default=0)
        widest = max((header.dtype.itemsize for header in headers.values()), default=0)
        check_cells(longest, len(headers), bytes_each=widest)
    size = sum(header.size for header in headers.values())
    check_size(size, f"{in_bytes(size)} of arrays")
