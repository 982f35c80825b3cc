"""Cells of a column as numbers, membership or text: exactly what is written, or refused with the row."""

import re

import numpy as np
from numpy.typing import NDArray

from paperlib.core.checks import FloatArray
from paperlib.core.reading.names import NONMEMBERS, NUMBERED, plain
from paperlib.core.reading.text import NUMBER, Cells, Table

MISSING = frozenset(
    (None, "", "na", "NA", "n/a", "N/A", "#N/A", "<NA>", "nan", "NaN", "NAN", "Nan", "null", "NULL", "Null",
     "none", "None", "NONE", "nil", "NaT")
)  # fmt: skip
_GROUPED = {mark: re.compile(rf"[+-]?[1-9][0-9]{{0,2}}(?:\{mark}[0-9]{{3}})+") for mark in ",."}

_ANSWERS = {**dict.fromkeys(("true", "t", "yes", "y"), 1.0), **dict.fromkeys(("false", "f", "no", "n"), 0.0)}
_MEMBER = ("in", "member", "members", "train", "training", "trained", "seen")
_NONMEMBER = (
    "out", "nonmember", "nonmembers", "non-member", "non-members", "test", "testing",
    "val", "valid", "validation", "holdout", "hold-out", "heldout", "held-out", "eval", "evaluation", "dev",
    "population", "unseen",
)  # fmt: skip
_ALLOWED = "1/0, 1/-1, true/false, yes/no, in/out, train/test or member/nonmember"


def check_gaps(table: Table, columns: dict[str, Cells]) -> None:
    """Refuse missing cells, naming every column that has some."""
    notes: list[str] = []
    for name, cells in columns.items():
        empty = [at for at, cell in enumerate(cells) if cell in MISSING or cell != cell]
        if empty:
            blank = all(cells[at] in (None, "") for at in empty)
            what = ("empty cell" if blank else "missing value") + ("s" if len(empty) > 1 else "")
            notes.append(f"{table.label(name)} has {len(empty)} {what} (first in row {empty[0] + 1})")
    if notes:
        raise ValueError(f"{', '.join(notes)}; fill or drop these rows")


def numbers(table: Table, name: str, cells: Cells) -> FloatArray:
    """Cells as finite floats; text, infinite values and what can be read in two ways are refused."""
    label, kinds = table.label(name), set(map(type, cells))
    if kinds <= {float} or (table.noun == "array" and str not in kinds):
        values = np.array(cells, dtype=np.float64)
    else:
        values = _text_numbers(table, label, cells)
    infinite = np.flatnonzero(~np.isfinite(values))
    if infinite.size:
        count = f"{infinite.size} infinite value" + ("s" if infinite.size > 1 else "")
        raise ValueError(f"{label} has {count} (first in row {infinite[0] + 1}); fix or drop these rows")
    return values


def _text_numbers(table: Table, label: str, cells: Cells) -> FloatArray:
    texts = [cell if isinstance(cell, str) else repr(cell) for cell in cells]
    if table.decimal_comma:
        _check_marks(label, texts)
        texts = [text.replace(",", ".") for text in texts]
    for at, text in enumerate(texts):
        if not NUMBER.fullmatch(text):
            comma = "," in text
            hint = "; decimal commas need semicolons or tabs between the cells" if comma else ""
            raise ValueError(f"{label} holds {_short(cells[at])}, not a number, in row {at + 1}{hint}")
    return np.array(list(map(float, texts)))


def _check_marks(label: str, texts: list[str]) -> None:
    """Refuse commas beside points, and a mark that may stand for thousands as well as for decimals."""
    rows = {mark: [at for at, text in enumerate(texts) if mark in text] for mark in ",."}
    if rows[","] and rows["."]:
        raise ValueError(
            f"{label} mixes decimal commas (first in row {rows[','][0] + 1}) and points (first in row "
            f"{rows['.'][0] + 1}); write all numbers alike, without thousands separators"
        )
    for mark, places in rows.items():
        if places and all(_GROUPED[mark].fullmatch(texts[at]) for at in places):
            raise ValueError(
                f"{label} holds {_short(texts[places[0]])} in row {places[0] + 1}, and no cell tells whether "
                "its mark stands for thousands or for decimals; write decimal points, and commas between the "
                "cells"
            )


def flags(table: Table, name: str, cells: Cells, *, chosen: bool) -> NDArray[np.bool_]:
    """Cells as membership, True for a member; in one chosen 1 means member whatever its name."""
    label = table.label(name)
    member: dict[object, bool] = {}
    written: set[float] = set()  # numbers, and yes or no: what they mean is up to the name of the column
    for cell in dict.fromkeys(cells):
        word = re.sub("[ _]", "-", str(cell).strip().lower())
        if word in _MEMBER or word in _NONMEMBER:
            member[cell] = word in _MEMBER
            continue
        text = word.replace(",", ".") if table.decimal_comma else word
        number = float(text) if NUMBER.fullmatch(text) else _ANSWERS.get(word)
        if number is None or number not in (0, 1, -1):
            raise ValueError(f"{label} holds {_short(cell)} in row {cells.index(cell) + 1}; use {_ALLOWED}")
        member[cell] = number == 1
        written.add(number)
    if {0, -1} <= written:
        raise ValueError(f"{label} holds both 0 and -1; use 1/0 or 1/-1 for members/non-members")
    if written and NONMEMBERS.fullmatch(plain(name)):
        raise ValueError(
            f"{label} seems to hold 1 (or true) for non-members; rename it if that means a member, or write "
            "the words member and nonmember"
        )
    if written and NUMBERED.fullmatch(plain(name)) and not chosen:
        raise ValueError(
            f"{label} holds numbers (or true and false), which may stand for any part of the data; write the "
            f"words train and test, or say --member-column {name} (in Python member_column) if 1 means member"
        )
    return np.array([member[cell] for cell in cells], dtype=np.bool_)


def texts(cells: Cells, *, empty: str = "") -> NDArray[np.object_]:
    """Cells as text that can be written as UTF-8, such as identifiers and groups; empty ones as ``empty``."""
    values = [empty if cell in (None, "") else str(cell) for cell in cells]
    return np.array([text.encode("utf-8", "replace").decode() for text in values], dtype=object)


def _short(cell: object) -> str:
    text = repr(cell)
    return text if len(text) <= 60 else text[:57] + "..."
