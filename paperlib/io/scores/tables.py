"""A file of scores as a table: what is known of it before its columns are read."""

import hashlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paperlib.core import did_you_mean

Cells = list[Any] | NDArray[Any]
"""One value per example: cells of a text (str, number, bool or None), or an array."""

STANDARD_INPUT = "standard input"
_SHOWN_NAMES = 30


@dataclass(frozen=True, kw_only=True)
class Table:
    """Columns of one file.

    Attributes:
        names: Names of the columns, in order, each once.
        read: Gives the cells of some columns by name.
        noun: What the file calls a column: "column" or "array".
        bare: Whether the file is one array without a name.
        decimal_comma: Whether numbers may be written as 0,5.
        ragged: Whether the columns may have different lengths.
    """

    names: tuple[str, ...]
    read: Callable[[Sequence[str]], dict[str, Cells]]
    noun: str = "column"
    bare: bool = False
    decimal_comma: bool = False
    ragged: bool = False

    def label(self, name: str) -> str:
        """How an error message calls a column."""
        return "the array" if self.bare else f"{self.noun} {name!r}"

    def listed(self) -> str:
        """All names for an error message, shortened where there are very many."""
        shown = ", ".join(map(repr, self.names[:_SHOWN_NAMES])) or "none"
        more = len(self.names) - _SHOWN_NAMES
        return f"{shown} and {more} more" if more > 0 else shown

    def check(self, name: str) -> str:
        """A name that the user gave.

        Raises:
            ValueError: There is no such column.
        """
        if name in self.names:
            return name
        near = did_you_mean(name, self.names)
        listed = f"he {self.noun}s are {self.listed()}"
        raise ValueError(f"no {self.noun} {name!r}{near}" + (f" T{listed}" if near else f"; t{listed}"))


@dataclass(frozen=True)
class Source:
    """The bytes of a file or of standard input.

    Attributes:
        path: As the user gave it, or "standard input".
        data: All of its bytes.
    """

    path: str
    data: bytes

    @property
    def name(self) -> str:
        return self.path if self.path == STANDARD_INPUT else Path(self.path).name

    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()


def open_source(path: str) -> Source:
    """Read a file, or standard input for "-".

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The path is a folder.
    """
    if path == "-":
        return Source(STANDARD_INPUT, _standard_input())
    place = Path(path)
    if place.is_dir():
        raise ValueError(f"{path}: this is a folder; give one of its files")
    if not place.exists():
        raise FileNotFoundError(f"{path}: there is no such file")
    return Source(path, place.read_bytes())


def _standard_input() -> bytes:
    stream = getattr(sys.stdin, "buffer", None)
    return sys.stdin.read().encode() if stream is None else stream.read()


def vector(label: str, values: NDArray[Any]) -> NDArray[Any]:
    """An array of shape (n,) or (n, 1) as one of shape (n,).

    Raises:
        ValueError: Another shape.
    """
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise ValueError(f"{label} has shape {values.shape}; expected one value per example")
    return np.asarray(values)
