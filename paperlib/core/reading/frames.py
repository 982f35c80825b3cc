"""Tables of files as data frames: one set of types for all files of one audit, and no value
changed.
"""

import re
from collections.abc import Sequence
from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np

from paperlib.core.reading.columns import MISSING, check_marks
from paperlib.core.reading.tables import named, open_source, table_of

if TYPE_CHECKING:
    import pandas as pd

# Whole numbers as a program writes them: 007, +5 and numbers beyond 64 bits are codes, and stay
# text.
_WHOLE = re.compile(r"-?(?:0|[1-9]\d{0,17})")
_NUMBER = re.compile(r"-?(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
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
    frames = [_cells(path) for path in paths]
    texts = [frame for frame, is_text in frames if is_text]
    for name in dict.fromkeys(str(name) for frame in texts for name in frame):
        with_it = [frame for frame in texts if name in frame]
        cells = [cell for frame in with_it for cell in frame[name]]
        present = [cell for cell in cells if cell not in MISSING]
        is_number = bool(present) and all(map(_NUMBER.fullmatch, present))
        whole = len(present) == len(cells) and all(map(_WHOLE.fullmatch, present))
        is_truth = bool(present) and any(set(cells) <= words for words in _TRUTH)
        for frame in with_it:
            column = frame[name]
            if is_number:
                numbers = column.mask(column.isin(list(MISSING)), np.nan)
                frame[name] = numbers.astype(np.dtype("int64" if whole else "float64"))
            elif is_truth:
                frame[name] = column.str.lower() == "true"
            else:
                frame[name] = column.mask(column == "", None).astype("str")
    first = frames[0][0]
    for (frame, _), path in zip(frames[1:], paths[1:], strict=True):
        for name in frame.columns.intersection(first.columns):
            wanted, given = first[name].dtype, frame[name].dtype
            if wanted == given:
                continue
            numbers = {wanted.kind, given.kind} <= set("iuf")
            if not numbers or not (frame[name].astype(wanted) == frame[name]).all():
                raise ValueError(
                    f"column {name!r} is of type {wanted} in {paths[0]} and {given} in {path}; "
                    "store both with the same types"
                )
            frame[name] = frame[name].astype(wanted)
    return [frame for frame, _ in frames]


def _cells(path: str) -> "tuple[pd.DataFrame, bool]":
    """The cells of a file, and whether all of them are text whose types are still open."""
    import pandas as pd

    source = open_source(path)
    with named(source):
        if source.data[:4] == b"PAR1":
            frame, is_text = pd.read_parquet(BytesIO(source.data)), False
        else:
            table = table_of(source)
            columns = table.read(table.names)
            is_text = all(isinstance(cell, str) for cells in columns.values() for cell in cells)
            for name, cells in columns.items() if table.decimal_comma else ():
                pointed = [cell.replace(",", ".") for cell in cells]
                if pointed != cells and all(
                    _NUMBER.fullmatch(cell) for cell in pointed if cell not in MISSING
                ):
                    check_marks(table.label(name), cells)  # the comma may stand for thousands
                    columns[name] = pointed
            frame = pd.DataFrame(columns, dtype=object)
            frame = frame if is_text else frame.infer_objects()
        if frame.empty:
            raise ValueError("no rows")
    return frame, is_text
