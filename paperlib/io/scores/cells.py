"""Cells of a column as numbers, membership or text: exactly what is written, or refused with the row."""

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paperlib.core import FloatArray
from paperlib.io.scores.names import numbers_parts, one_means_nonmember
from paperlib.io.scores.tables import Cells, Table

MISSING = frozenset(
    (None, "", "na", "NA", "n/a", "N/A", "#N/A", "<NA>", "nan", "NaN", "NAN", "Nan", "null", "NULL", "Null",
     "none", "None", "NONE", "nil", "NaT")
)  # fmt: skip
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_INFINITE = re.compile(r"[+-]?inf(?:inity)?", re.IGNORECASE)
_GROUPED = {mark: re.compile(rf"[+-]?[1-9][0-9]{{0,2}}(?:{re.escape(mark)}[0-9]{{3}})+") for mark in ",."}

_YES, _NO = ("true", "t", "yes", "y"), ("false", "f", "no", "n")  # the same as 1 and 0
_IN = ("in", "member", "members", "train", "training", "trained", "seen")
_OUT = (
    "out", "nonmember", "nonmembers", "non-member", "non-members", "test", "testing",
    "val", "valid", "validation", "holdout", "hold-out", "heldout", "held-out", "eval", "evaluation", "dev",
    "population", "unseen",
)  # fmt: skip
_ANSWERS = {**dict.fromkeys(_YES, 1.0), **dict.fromkeys(_NO, 0.0)}
_WORDS = {**dict.fromkeys(_IN, 1), **dict.fromkeys(_OUT, 0)}
ALLOWED = "1/0, 1/-1, true/false, yes/no, in/out, train/test or member/nonmember"


# ---------------------------------------------------------------- missing cells


def gaps(table: Table, columns: dict[str, Cells]) -> None:
    """Refuse missing cells, naming every column that has some.

    Raises:
        ValueError: Some cell is empty, or holds a word such as NaN or null.
    """
    found = [text for text in (_gap(table.label(name), cells) for name, cells in columns.items()) if text]
    if found:
        raise ValueError(f"{', '.join(found)}; fill or drop these rows")


def _gap(label: str, cells: Cells) -> str | None:
    if isinstance(cells, np.ndarray):
        empty = np.flatnonzero(np.isnan(cells)).tolist() if cells.dtype.kind == "f" else []
    elif MISSING.isdisjoint(cells) and not (
        float in map(type, cells) and any(cell != cell for cell in cells)
    ):
        return None
    else:
        empty = [at for at, cell in enumerate(cells) if cell in MISSING or cell != cell]
    if not empty:
        return None
    blank = all(cells[at] is None or cells[at] == "" for at in empty)
    what = ("empty cell" if blank else "missing value") + ("s" if len(empty) > 1 else "")
    return f"{label} has {len(empty)} {what} (first in row {empty[0] + 1})"


# ---------------------------------------------------------------- numbers


def numbers(table: Table, name: str, cells: Cells) -> FloatArray:
    """Cells as finite floats.

    Raises:
        ValueError: Text, an infinite value, or numbers that can be read in two ways.
    """
    label = table.label(name)
    values = (
        _array_numbers(label, cells) if isinstance(cells, np.ndarray) else _list_numbers(table, label, cells)
    )
    infinite = np.flatnonzero(~np.isfinite(values))
    if infinite.size:
        count = f"{infinite.size} infinite value" + ("s" if infinite.size > 1 else "")
        raise ValueError(f"{label} has {count} (first in row {infinite[0] + 1}); fix or drop these rows")
    return values


def _array_numbers(label: str, cells: NDArray[Any]) -> FloatArray:
    if cells.dtype.kind not in "biuf":
        raise ValueError(f"{label} holds {cells.dtype} values, not numbers")
    return cells.astype(np.float64)


def _list_numbers(table: Table, label: str, cells: list[Any]) -> FloatArray:
    kinds = set(map(type, cells))
    if bool in kinds:
        row = next(at for at, cell in enumerate(cells, 1) if isinstance(cell, bool))
        raise ValueError(f"{label} holds true or false, not a number, in row {row}")
    if kinds <= {str}:
        return _text_numbers(table, label, cells)
    return _text_numbers(table, label, [cell if isinstance(cell, str) else repr(cell) for cell in cells])


def _text_numbers(table: Table, label: str, cells: list[str]) -> FloatArray:
    together = "\n".join(cells)
    with_points = cells
    if table.decimal_comma and "," in together:
        with_points = _decimal_points(label, cells)
    elif table.decimal_comma and "." in together:
        _check_grouping(label, cells, ".")
    try:
        values = np.fromiter(map(float, with_points), np.float64, len(cells))
    except ValueError:
        values = None
    if values is None or "_" in together or not together.isascii():
        for at, (cell, written) in enumerate(zip(with_points, cells, strict=True), 1):
            if not (_NUMBER.fullmatch(cell) or _INFINITE.fullmatch(cell)):
                hint = "" if table.decimal_comma or "," not in cell else _COMMA_HINT
                raise ValueError(f"{label} holds {_short(written)}, not a number, in row {at}{hint}")
    return np.fromiter(map(float, with_points), np.float64, len(cells)) if values is None else values


_COMMA_HINT = "; decimal commas need semicolons or tabs between the cells"


def _decimal_points(label: str, cells: list[str]) -> list[str]:
    for at, cell in enumerate(cells, 1):
        if "." in cell:
            comma = next(at for at, cell in enumerate(cells, 1) if "," in cell)
            raise ValueError(
                f"{label} mixes decimal commas (first in row {comma}) and points (first in row {at}); write "
                "all numbers alike, without thousands separators"
            )
    _check_grouping(label, cells, ",")
    return [cell.replace(",", ".") for cell in cells]


def _check_grouping(label: str, cells: list[str], mark: str) -> None:
    """Refuse a column whose every comma (or point) may stand for thousands as well as for decimals."""
    marked = ((at, cell) for at, cell in enumerate(cells, 1) if mark in cell)
    first = next(marked)
    pattern = _GROUPED[mark]
    if pattern.fullmatch(first[1]) and all(pattern.fullmatch(cell) for _, cell in marked):
        raise ValueError(
            f"{label} holds {_short(first[1])} in row {first[0]}, and no cell tells whether its mark stands "
            "for thousands or for decimals; write decimal points, and commas between the cells"
        )


def _short(cell: object) -> str:
    text = repr(cell)
    return text if len(text) <= 60 else text[:57] + "..."


# ---------------------------------------------------------------- membership


def flags(table: Table, name: str, cells: Cells, *, chosen: bool) -> NDArray[np.bool_]:
    """Cells as membership, True for a member.

    Args:
        table: Table of the column.
        name: Name of the column.
        cells: Its cells.
        chosen: Whether the user named the column, so that 1 means a member even in one called split.

    Raises:
        ValueError: A word or number that does not tell membership, or one that may mean two things.
    """
    label = table.label(name)
    if isinstance(cells, np.ndarray):
        if cells.dtype.kind not in "biufUS":
            raise ValueError(f"{label} holds {cells.dtype} values; use {ALLOWED}")
        spelled, where = np.unique(cells, return_inverse=True)
        read = {one: _flag(label, one, table, cells) for one in spelled.tolist()}
        found = np.array([bool(read[one][0]) for one in spelled.tolist()])[where.ravel()]
    else:
        read = {cell: _flag(label, cell, table, cells) for cell in dict.fromkeys(cells)}
        meaning = {cell: bool(flag) for cell, (flag, _) in read.items()}
        found = np.fromiter(map(meaning.__getitem__, cells), np.bool_, len(cells))
    _check_numbers(label, name, {number for _, number in read.values() if number is not None}, chosen)
    return found


def _flag(label: str, cell: object, table: Table, cells: Cells) -> tuple[int, float | None]:
    """1 or 0, and the number where it is written as one, or as yes or no: what it means is up to the name."""
    text = cell.decode("latin-1") if isinstance(cell, bytes) else str(cell)
    word = re.sub("[ _]", "-", text.strip().lower())
    if word in _WORDS:
        return _WORDS[word], None
    written = word.replace(",", ".") if table.decimal_comma else word
    number = float(written) if _NUMBER.fullmatch(written) else _ANSWERS.get(word)
    if number in (0, 1, -1):
        return int(number == 1), number
    row = next(at for at, other in enumerate(cells, 1) if other == cell)
    raise ValueError(f"{label} holds {_short(cell)} in row {row}; use {ALLOWED}")


def _check_numbers(label: str, name: str, found: set[float], chosen: bool) -> None:
    if {0, -1} <= found:
        raise ValueError(f"{label} holds both 0 and -1; use 1/0 or 1/-1 for members/non-members")
    if found and one_means_nonmember(name):
        raise ValueError(
            f"{label} seems to hold 1 (or true) for non-members; rename it if that means a member, or write "
            "the words member and nonmember"
        )
    if found and numbers_parts(name) and not chosen:
        raise ValueError(
            f"{label} holds numbers (or true and false), which may stand for any part of the data; write the "
            f"words train and test, or say --member-column {name} (in Python member_column) if 1 means member"
        )


# ---------------------------------------------------------------- text


def texts(cells: Cells, *, empty: str = "") -> NDArray[np.object_]:
    """Cells as text, such as identifiers and groups; empty ones as ``empty``."""
    values = cells.tolist() if isinstance(cells, np.ndarray) else cells
    found = np.empty(len(values), dtype=object)
    found[:] = [empty if cell is None or cell == "" else _plain_text(cell) for cell in values]
    return found


def _plain_text(cell: object) -> str:
    """Text that can be written as UTF-8, which half a character of JSON cannot."""
    data = cell if isinstance(cell, bytes) else str(cell).encode("utf-8", "replace")
    return data.decode("utf-8", "replace")
