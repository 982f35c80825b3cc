"""Tables of files as data frames: one set of types for all files of one audit, and no value
changed.
"""

import re
from collections.abc import Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from paperlib.reading.columns import MISSING, check_marks
from paperlib.reading.parquet import check_parquet
from paperlib.reading.tables import (
    Cells,
    NamedBytes,
    named,
    open_parquet,
    open_source,
    table_of,
)

if TYPE_CHECKING:
    import pandas as pd

# Whole numbers as a program writes them: 007, +5 and numbers beyond 64 bits are codes, and stay
# text.
_WHOLE = re.compile(r"-?(?:0|[1-9]\d{0,17})")
_NUMBER = re.compile(r"-?(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_CellKind = Literal["whole numbers", "numbers", "truth values", "text"]
_TRUTH = ({"true", "false"}, {"True", "False"}, {"TRUE", "FALSE"})


def read_frames(paths: Sequence[str]) -> "list[pd.DataFrame]":
    """Tables of the same kind of rows, such as members and non-members, with one set of types.

    A column of text files is of numbers where every cell of all files is one, as a program writes
    it, or is missing (empty, NA, nan, ...); of truth values where every cell is true or false in
    one spelling; else of text, in which codes keep their zeros and NA is a value. Parquet and JSON
    lines have types of their own.

    Args:
        paths: CSV with commas, semicolons or tabs, JSON lines (both also ``.gz``) or Parquet.

    Raises:
        ValueError: A file that is none of these or empty, or a column whose type differs between
            files.
        FileNotFoundError: There is no such file.
    """
    read = [_read_cells(path) for path in paths]
    frames = [frame for frame, _ in read]
    _give_types([frame for frame, is_text in read if is_text])
    _match_types(frames, paths)
    return frames


def _read_cells(path: str) -> "tuple[pd.DataFrame, bool]":
    """The cells of a file, and whether all of them are text whose types are still open; a
    ValueError for a file that cannot be read, or without rows.
    """
    import pandas as pd

    source = open_source(path)
    with named(source):
        if source.data[:4] == b"PAR1":
            file = open_parquet(source.data)
            check_parquet(source.data, file.metadata, file.schema_arrow.names)
            frame = pd.read_parquet(BytesIO(source.data))
            is_text = False
        else:
            columns = _columns_of_text(source)
            is_text = all(isinstance(cell, str) for cells in columns.values() for cell in cells)
            frame = pd.DataFrame(columns, dtype=object)
            if not is_text:
                frame = frame.infer_objects()
        if frame.empty:
            raise ValueError("no rows")
    return frame, is_text


def _columns_of_text(source: NamedBytes) -> dict[str, Cells]:
    """The cells of delimited text or JSON lines by column, decimal commas written as points."""
    table = table_of(source)
    columns = table.read(table.names)
    if table.decimal_comma:
        columns = {name: _with_points(table.label(name), cells) for name, cells in columns.items()}
    return columns


def _with_points(label: str, cells: Cells) -> Cells:
    """A column of numbers with decimal commas, written with points; any other column as it is."""
    pointed = [cell.replace(",", ".") for cell in cells]
    present = [cell for cell in pointed if cell not in MISSING]
    if pointed == cells or not all(map(_NUMBER.fullmatch, present)):
        return cells
    check_marks(label, cells)  # the comma may stand for thousands
    return pointed


def _give_types(frames: "list[pd.DataFrame]") -> None:
    """Give each column of text the type that its cells in all files allow, in place."""
    for name in dict.fromkeys(str(name) for frame in frames for name in frame):
        holders = [frame for frame in frames if name in frame]
        cells = [cell for frame in holders for cell in frame[name]]
        kind = _kind_of_cells(cells)
        for frame in holders:
            frame[name] = _typed(frame[name], kind)


def _kind_of_cells(cells: list[str]) -> _CellKind:
    """What every cell of a column holds, missing ones aside: numbers, truth values, else text."""
    present = [cell for cell in cells if cell not in MISSING]
    if not present:
        return "text"
    if all(map(_NUMBER.fullmatch, present)):
        is_whole = len(present) == len(cells) and all(map(_WHOLE.fullmatch, present))
        return "whole numbers" if is_whole else "numbers"
    is_truth = any(set(cells) <= spelling for spelling in _TRUTH)
    return "truth values" if is_truth else "text"


def _typed(column: "pd.Series[Any]", kind: _CellKind) -> "pd.Series[Any]":
    """A column of text as values of a kind; missing numbers are NaN, empty texts are missing."""
    if kind == "truth values":
        return column.str.lower() == "true"
    if kind == "text":
        return column.mask(column == "", None).astype("str")
    numbers = column.mask(column.isin(list(MISSING)), np.nan)
    return numbers.astype(np.dtype("int64" if kind == "whole numbers" else "float64"))


def _match_types(frames: "list[pd.DataFrame]", paths: Sequence[str]) -> None:
    """Give columns of later files the types of the first file, in place; a ValueError where a value
    would change, which names both files.
    """
    first = frames[0]
    for frame, path in zip(frames[1:], paths[1:], strict=True):
        for name in frame.columns.intersection(first.columns):
            first_type = first[name].dtype
            this_type = frame[name].dtype
            if first_type == this_type:
                continue
            are_numbers = {first_type.kind, this_type.kind} <= set("iuf")
            if not are_numbers or not (frame[name].astype(first_type) == frame[name]).all():
                raise ValueError(
                    f"column {name!r} is of type {first_type} in {paths[0]} and {this_type} in "
                    f"{path}; store both with the same types"
                )
            frame[name] = frame[name].astype(first_type)
