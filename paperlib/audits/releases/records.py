"""What a record is, by the columns of members and of non-members, and by rows that are alike."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from paperlib.audits.features import near_rows_warnings
from paperlib.core import FloatArray
from paperlib.core.record_columns import check_columns

_MOST_WORDS = 10  # different words of a column that is looked at for rows that are alike


def check_record_columns(
    members: pd.DataFrame,
    nonmembers: pd.DataFrame,
    *,
    names: Sequence[object] | None = None,
    groups: Sequence[str] = (),
) -> None:
    """Refuse (ValueError) a column that looks as if its values named units of several rows, or
    records that stand on both sides.

    Rows that are equal in all columns are left out here; `check_copies` refuses copies of rows.

    Args:
        members, nonmembers: Tables, of which the columns of both are asked.
        names: Of the record or unit of each row, members first: one row of each is looked at.
        groups: Columns of which each row is a record of its own.
    """
    columns = [name for name in members if name in nonmembers]
    pool = pd.concat([members[columns], nonmembers[columns]], ignore_index=True)
    member = np.arange(len(pool)) < len(members)
    if names is not None:
        first = ~pd.Series([str(name) for name in names]).duplicated().to_numpy()
        pool, member = pool[first], member[first]
    single = ~pool.astype(str).duplicated(keep=False).to_numpy()
    pool, member = pool[single], member[single]
    if not len(pool):
        return
    pool = pool.astype(object).where(pool.notna(), None)  # a missing cell is None
    cells = {str(name): pool[name].tolist() for name in columns}
    check_columns(cells, member, groups=groups)


def alike_rows_warnings(rows: pd.DataFrame, member: NDArray[np.bool_]) -> tuple[str, ...]:
    """A warning where rows that are near to each other are on one side, members or non-members,
    more often than coins explain whose chance changes smoothly with the columns: then several rows
    may be of one person, which came in or stayed out together.

    Nearness is by the columns that hold numbers, times, or ten different words at most.

    Args:
        rows: A table of n rows, of both sides in random order.
        member: Whether each row is a member, shape (n,).

    Returns:
        One sentence; none where sides look independent, or no column of these kinds is there.
    """
    numbers = _numbers_of(rows)
    if not numbers.shape[1]:
        return ()
    return near_rows_warnings("rows", numbers, member)


def _numbers_of(rows: pd.DataFrame) -> FloatArray:
    """The columns that can be near to each other, each in [0, 1], shape (n, columns).

    Numbers and times are ranks as a share of the rows, missing ones 0.5. A column of ten different
    words or fewer is a column of 0 and 1 for each word; others are left out.
    """
    columns: list[NDArray[Any]] = []
    for name in rows:
        cells = rows[name]
        if cells.dtype.kind in "iufmM":
            columns.append(cells.rank(pct=True).fillna(0.5).to_numpy(dtype=np.float64))
        elif cells.nunique() <= _MOST_WORDS:
            words = pd.get_dummies(cells, dtype=float).to_numpy()
            columns.extend(words.T)
    return np.column_stack(columns) if columns else np.empty((len(rows), 0))
