"""Columns beside the rows of an audit, of tables and of texts: what they say a record is."""

import itertools
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paperlib.core.column_names import INDEX
from paperlib.core.records import WaysOut, check_column

FloatArray = NDArray[np.float64]
Flags = NDArray[np.bool_]

OF_TEXTS = WaysOut(
    unit="keep one text of each",
    group="--group-field {name}",
)
"""What helps where texts are audited, each of which is a record."""

_MOST_BESIDE = 50  # columns in which the rows of one value are asked to be alike


def check_columns(
    columns: Mapping[str, Sequence[Any]],
    member: Flags,
    *,
    groups: Collection[str] = (),
    ways: WaysOut | None = None,
) -> None:
    """Refuse (ValueError) a column of these rows that names units of several rows, or records of
    both sides, whatever it is called.

    Args:
        columns: Cells of each column, shape (n,); missing ones are None, "" or NaN.
        member: Of the same rows, shape (n,).
        groups: Columns of which each row is a record of its own, which are not asked.
        ways: As for `check_column`; None names the options of audits of tables.

    >>> sides = np.arange(80) // 4 % 3 == 0
    >>> check_columns({"visit": range(80), "doctor": [f"d{row // 4}" for row in range(80)]}, sides)
    Traceback (most recent call last):
    ...
    ValueError: column 'doctor' names units: 20 of its 20 values that stand in several rows stand
    on one side only, and rows of one unit are not independent; say --unit doctor (in Python unit=),
    or --group-column doctor if each row is a record of its own
    """
    missing = sorted(set(groups) - set(columns))
    if missing:
        raise ValueError(
            f"group column: expected one of the columns {list(columns)}, got {missing[0]!r}"
        )
    numbers: dict[str, FloatArray] = {}  # the cells of each column as numbers, for the others
    for name, cells in itertools.islice(columns.items(), _MOST_BESIDE):
        numbers[name] = _numbers(cells)
    refused: dict[str, ValueError] = {}
    for name, cells in columns.items():
        if name in groups or INDEX.fullmatch(name.strip()):
            continue
        others = [row for other, row in numbers.items() if other != name]
        beside = np.column_stack(others) if others else None
        try:
            check_column(f"column {name!r}", name, cells, member, beside, ways)
        except ValueError as error:
            refused[name] = error
    if refused:
        # The year of birth of few persons is as one-sided as their names, which are more.
        raise refused[max(refused, key=lambda name: len(set(map(str, columns[name]))))]


def _numbers(cells: Sequence[Any]) -> FloatArray:
    """The cells as numbers, shape (n,), that are equal where the cells are: for text its position
    among the different texts in their order; a missing number is 0.
    """
    values = np.asarray(cells)
    if values.dtype.kind in "biuf":
        return np.nan_to_num(values.astype(np.float64))
    codes = np.unique(np.array([str(cell) for cell in cells]), return_inverse=True)[1]
    return codes.astype(np.float64)
