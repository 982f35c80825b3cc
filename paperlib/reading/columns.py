"""What the cells of columns hold: exactly that, or a question or a refusal."""

import re

import numpy as np
from numpy.typing import NDArray

from paperlib.core.checks import FloatArray
from paperlib.core.column_names import tells_nonmembership, tells_part
from paperlib.reading.tables import NUMBER, Cells, Table

MISSING = frozenset(
    (
        None,
        "",
        "na",
        "NA",
        "n/a",
        "N/A",
        "#N/A",
        "<NA>",
        "nan",
        "NaN",
        "NAN",
        "Nan",
        "null",
        "NULL",
        "Null",
        "none",
        "None",
        "NONE",
        "nil",
        "NaT",
    )
)
_GROUPED = {mark: re.compile(rf"[+-]?[1-9][0-9]{{0,2}}(?:\{mark}[0-9]{{3}})+") for mark in ",."}

_ANSWERS = {
    **dict.fromkeys(("true", "t", "yes", "y"), 1.0),
    **dict.fromkeys(("false", "f", "no", "n"), 0.0),
}
_MEMBER = ("in", "member", "members", "train", "training", "trained", "seen")
_NONMEMBER = (
    "out",
    "nonmember",
    "nonmembers",
    "non-member",
    "non-members",
    "test",
    "testing",
    "val",
    "valid",
    "validation",
    "holdout",
    "hold-out",
    "heldout",
    "held-out",
    "eval",
    "evaluation",
    "dev",
    "population",
    "unseen",
)
_ALLOWED = "1/0, 1/-1, true/false, yes/no, in/out, train/test or member/nonmember"


def check_gaps(table: Table, columns: dict[str, Cells]) -> None:
    """Refuse missing cells by a ValueError that names every column that has some; ``columns`` are
    cells by column name, and ``table`` words the message.
    """
    notes: list[str] = []
    for name, cells in columns.items():
        rows = [row for row, cell in enumerate(cells) if cell in MISSING or cell != cell]
        if rows:
            is_blank = all(cells[row] in (None, "") for row in rows)
            count = _count(len(rows), "empty cell" if is_blank else "missing value")
            notes.append(f"{table.label(name)} has {count} (first in row {rows[0] + 1})")
    if notes:
        raise ValueError(f"{', '.join(notes)}; fill or drop these rows")


def as_numbers(table: Table, name: str, cells: Cells) -> FloatArray:
    """Cells as floats, shape (n,), infinite ones too.

    Raises:
        ValueError: Text, and numbers that can be read in two ways; the message names column and
            row.
    """
    types = set(map(type, cells))
    if types <= {float} or (table.noun == "array" and str not in types):
        return np.array(cells, dtype=np.float64)
    return _parsed_numbers(table, table.label(name), cells)


def _parsed_numbers(table: Table, label: str, cells: Cells) -> FloatArray:
    """Numbers as they are written in the cells, shape (n,); a ValueError names the first cell that
    holds something else by its row, after the ``label`` of the column.
    """
    texts = [cell if isinstance(cell, str) else repr(cell) for cell in cells]
    if table.decimal_comma:
        check_marks(label, texts)
        texts = [text.replace(",", ".") for text in texts]
    for row, text in enumerate(texts):
        if not NUMBER.fullmatch(text):
            hint = ""
            if "," in text:
                hint = "; decimal commas need semicolons or tabs between the cells"
            raise ValueError(
                f"{label} holds {_short(cells[row])}, not a number, in row {row + 1}{hint}"
            )
    return np.array(list(map(float, texts)))


def check_marks(label: str, texts: list[str]) -> None:
    """Refuse (ValueError) numbers as text with commas beside points, or with a mark that may stand
    for thousands as well as for decimals; ``label`` begins the message.
    """
    # By mark, the numbers of the rows that hold it.
    rows = {mark: [row for row, text in enumerate(texts) if mark in text] for mark in ",."}
    if rows[","] and rows["."]:
        raise ValueError(
            f"{label} mixes decimal commas (first in row {rows[','][0] + 1}) and points (first in "
            f"row {rows['.'][0] + 1}); write all numbers alike, without thousands separators"
        )
    for mark, marked in rows.items():
        if marked and all(_GROUPED[mark].fullmatch(texts[row]) for row in marked):
            raise ValueError(
                f"{label} holds {_short(texts[marked[0]])} in row {marked[0] + 1}, and no cell "
                "tells whether its mark stands for thousands or for decimals; write decimal "
                "points, and commas between the cells"
            )


def as_flags(table: Table, name: str, cells: Cells, *, chosen: bool) -> NDArray[np.bool_]:
    """Cells as membership, shape (n,), True for a member; in a column that was ``chosen`` 1 means
    member, even in a split.

    Raises:
        ValueError: Cells that do not say who is a member.
    """
    label = table.label(name)
    member: dict[object, bool] = {}  # what each different cell says
    # Numbers, and yes or no: what they mean is up to the name of the column.
    numbers: set[float] = set()
    for cell in dict.fromkeys(cells):
        word = re.sub("[ _]", "-", str(cell).strip().lower())
        if word in _MEMBER or word in _NONMEMBER:
            member[cell] = word in _MEMBER
            continue
        if table.decimal_comma:
            word = word.replace(",", ".")
        number = _number_or_answer(word)
        if number not in (0, 1, -1):
            raise ValueError(
                f"{label} holds {_short(cell)} in row {cells.index(cell) + 1}; use {_ALLOWED}"
            )
        member[cell] = number == 1
        numbers.add(number)
    if numbers:
        _check_meaning(label, name, numbers, chosen=chosen)
    return np.array([member[cell] for cell in cells], dtype=np.bool_)


def _number_or_answer(word: str) -> float | None:
    """The number that a word is, 1 and 0 for yes and no; None for any other word."""
    return float(word) if NUMBER.fullmatch(word) else _ANSWERS.get(word)


def _check_meaning(label: str, name: str, numbers: set[float], *, chosen: bool) -> None:
    """Refuse (ValueError) numbers of which neither they nor the ``name`` of their column say that 1
    is a member; a column that the user has ``chosen`` may number parts of the data.
    """
    if {0, -1} <= numbers:
        raise ValueError(f"{label} holds both 0 and -1; use 1/0 or 1/-1 for members/non-members")
    if tells_nonmembership(name):
        raise ValueError(
            f"{label} seems to hold 1 (or true) for non-members; rename it if that means a member, "
            "or write the words member and nonmember"
        )
    if tells_part(name) and not chosen:
        raise ValueError(
            f"{label} holds numbers (or true and false), which may stand for any part of the data; "
            f"write the words train and test, or say --member-column {name} (in Python "
            "member_column) if 1 means member"
        )


def as_texts(cells: Cells, *, empty: str = "") -> NDArray[np.object_]:
    """Cells as text that can be written as UTF-8, such as identifiers and groups, shape (n,); empty
    ones as ``empty``.
    """
    values = [empty if cell in (None, "") else str(cell) for cell in cells]
    return np.array([text.encode("utf-8", "replace").decode() for text in values], dtype=object)


def _count(number: int, noun: str) -> str:
    """A number of things, such as "2 empty cells"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _short(cell: object) -> str:
    """A cell as an error message shows it, in 60 characters at most."""
    text = repr(cell)
    return text if len(text) <= 60 else text[:57] + "..."
