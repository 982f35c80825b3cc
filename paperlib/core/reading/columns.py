"""What the names of columns tell and what their cells hold: exactly that, or a question or a
refusal.
"""

import re
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from paperlib.core.checks import FloatArray
from paperlib.core.reading.tables import NUMBER, Cells, Table

_WORDS = re.compile(r"\w+(?:[ .\-]\w+)*", re.ASCII)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

_PLACE = (
    r"(?:val|valid|validation|train|training|test|eval|dev|target|victim|model|mean|avg|average|sum|total|"
    r"per|token|tokens|example|sample|record|row|sequence|word|final|last|epoch|step|raw|lm|mlm)"
)
_LOSS = (
    r"(?:(?:(?:nll|ce|bce|xent|mse|log|logistic|hinge|squared|lm|(?:binary_|categorical_)?cross_?entropy)_)?"
    r"loss(?:es)?"
    r"|nlls?|ce|bce|xent|logloss(?:es)?|(?:binary_|categorical_)?cross_?entrop(?:y|ies)"
    r"|(?:log_)?(?:ppls?|perplexit(?:y|ies))"
    r"|neg(?:ative)?_log_?(?:likelihoods?|lik|probs?|probabilit(?:y|ies))"
    r"|mse|rmse|mae|(?:squared|absolute)_errors?)"
)
_SCORE_PLACE = (
    r"(?:mia|membership|member|attack|lira|rmia|target|victim|model|mean|avg|average|sum|total|per|token|"
    r"tokens|example|sample|record|sequence|final|(?:true|correct)_(?:class|label))"
)
_SCORE = (
    r"(?:scores?|log_?probs?|log_probabilit(?:y|ies)|logp|log_?likelihoods?|log_?lik|likelihoods?"
    r"|(?:log_)?confidences?(?:_scores?)?|logits?|member(?:ship)?_prob(?:s|abilit(?:y|ies))?)"
)
_LOSSES = re.compile(rf"(?:{_PLACE}_)*{_LOSS}(?:_(?:{_PLACE}|[0-9]+))*")
_SCORES = re.compile(rf"(?:{_SCORE_PLACE}_)*{_SCORE}(?:_{_SCORE_PLACE})*")

_MEMBERS = re.compile(
    r"(?:is_|was_)?(?:member|membership|train|training|trained|seen|in_train(?:ing)?(?:_set|_data)?)"
    r"|member(?:ship)?_label|split"
)
_OUT = r"non_?members?|out|test|hold_?out|held_?out|unseen|val(?:id|idation)?"
_ROLES = {"nonmember": rf"{_OUT}|population", "member": r"members?|in|train(?:ing)?|trained|seen"}
_OPPOSITE = re.compile(rf"(?:is_|was_|in_)?(?:{_OUT})")
_NUMBERED = re.compile(r"(?:data_?)?(?:splits?|folds?|sets?|subsets?|partitions?)")
INDEX = re.compile(r"|index|unnamed:? ?\d*|level_\d+|__index_level_\d+__", re.IGNORECASE)
"""Names that tables give to their row numbers."""


def plain(name: str) -> str:
    """Words of a name as val_loss; a name with other signs, such as -loss, is nothing that is
    known.
    """
    text = name.strip()
    if not _WORDS.fullmatch(text):
        return text
    return re.sub(r"[ .\-_]+", "_", _CAMEL.sub("_", text)).strip("_").lower()


def kind_of(name: str) -> str | None:
    """Direction of a column by its name: "losses", "scores", or None where the name does not
    tell.
    """
    text = plain(name)
    if _LOSSES.fullmatch(text):
        return "losses"
    return "scores" if _SCORES.fullmatch(text) else None


def tells_membership(name: str) -> bool:
    """Whether a column of this name says who is a member."""
    return _MEMBERS.fullmatch(plain(name)) is not None


def check_features(name: str, columns: Iterable[object]) -> None:
    """Refuse (ValueError) names of features that say who is a member, or that number the rows."""
    for column in map(str, columns):
        if tells_membership(column) or INDEX.fullmatch(column.strip()):
            raise ValueError(
                f"{name}: {column!r} says who is a member or numbers the rows; leave it out"
            )


def role_of(name: str) -> tuple[str, str] | None:
    """Class whose values an array holds and the rest of its name, such as ("member", "losses"), or
    None.
    """
    text = plain(name)
    for role, words in _ROLES.items():
        if re.fullmatch(words, text):
            return role, ""
        match = re.fullmatch(rf"(?:{words})_(.+)", text) or re.fullmatch(rf"(.+)_(?:{words})", text)
        if match:
            return role, match[1]
    return None


def measure_of(name: str) -> str:
    """The plain name without the class that it may say."""
    return plain((role_of(name) or ("", name))[1])


def array_pair(names: Sequence[str]) -> tuple[str, str] | None:
    """Names of an array of members and one of non-members; None without one such pair."""
    roles = {name: role_of(name) for name in names}
    pairs = [
        (first, second)
        for first, role in roles.items()
        if role and role[0] == "member"
        for second, other in roles.items()
        if other == ("nonmember", role[1])
    ]
    if len(pairs) != 1:
        return None
    others = [name for name in names if name not in pairs[0]]
    # Beside a known score, or what says who is a member, they are the columns of a table.
    return None if any(kind_of(name) or tells_membership(name) for name in others) else pairs[0]


# ---------------------------------------------------------------- cells

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
    """Refuse missing cells, naming every column that has some."""
    notes: list[str] = []
    for name, cells in columns.items():
        empty = [at for at, cell in enumerate(cells) if cell in MISSING or cell != cell]
        if empty:
            blank = all(cells[at] in (None, "") for at in empty)
            what = ("empty cell" if blank else "missing value") + ("s" if len(empty) > 1 else "")
            notes.append(
                f"{table.label(name)} has {len(empty)} {what} (first in row {empty[0] + 1})"
            )
    if notes:
        raise ValueError(f"{', '.join(notes)}; fill or drop these rows")


def as_numbers(table: Table, name: str, cells: Cells) -> FloatArray:
    """Cells as finite floats; text, infinite values and what can be read in two ways are
    refused.
    """
    label, kinds = table.label(name), set(map(type, cells))
    if kinds <= {float} or (table.noun == "array" and str not in kinds):
        values = np.array(cells, dtype=np.float64)
    else:
        texts = [cell if isinstance(cell, str) else repr(cell) for cell in cells]
        if table.decimal_comma:
            check_marks(label, texts)
            texts = [text.replace(",", ".") for text in texts]
        for at, text in enumerate(texts):
            if not NUMBER.fullmatch(text):
                comma = "," in text
                hint = "; decimal commas need semicolons or tabs between the cells" if comma else ""
                raise ValueError(
                    f"{label} holds {_short(cells[at])}, not a number, in row {at + 1}{hint}"
                )
        values = np.array(list(map(float, texts)))
    infinite = np.flatnonzero(~np.isfinite(values))
    if infinite.size:
        count = f"{infinite.size} infinite value" + ("s" if infinite.size > 1 else "")
        raise ValueError(
            f"{label} has {count} (first in row {infinite[0] + 1}); fix or drop these rows"
        )
    return values


def check_marks(label: str, texts: list[str]) -> None:
    """Refuse commas beside points, and a mark that may stand for thousands as well as for
    decimals.
    """
    rows = {mark: [at for at, text in enumerate(texts) if mark in text] for mark in ",."}
    if rows[","] and rows["."]:
        raise ValueError(
            f"{label} mixes decimal commas (first in row {rows[','][0] + 1}) and points (first in "
            f"row {rows['.'][0] + 1}); write all numbers alike, without thousands separators"
        )
    for mark, places in rows.items():
        if places and all(_GROUPED[mark].fullmatch(texts[at]) for at in places):
            raise ValueError(
                f"{label} holds {_short(texts[places[0]])} in row {places[0] + 1}, and no cell "
                "tells whether its mark stands for thousands or for decimals; write decimal "
                "points, and commas between the cells"
            )


def as_flags(table: Table, name: str, cells: Cells, *, chosen: bool) -> NDArray[np.bool_]:
    """Cells as membership, True for a member; in a column that was chosen 1 means member, even in a
    split.
    """
    label = table.label(name)
    member: dict[object, bool] = {}
    written: set[float] = (
        set()
    )  # numbers, and yes or no: what they mean is up to the name of the column
    for cell in dict.fromkeys(cells):
        word = re.sub("[ _]", "-", str(cell).strip().lower())
        if word in _MEMBER or word in _NONMEMBER:
            member[cell] = word in _MEMBER
            continue
        text = word.replace(",", ".") if table.decimal_comma else word
        number = float(text) if NUMBER.fullmatch(text) else _ANSWERS.get(word)
        if number is None or number not in (0, 1, -1):
            raise ValueError(
                f"{label} holds {_short(cell)} in row {cells.index(cell) + 1}; use {_ALLOWED}"
            )
        member[cell] = number == 1
        written.add(number)
    if {0, -1} <= written:
        raise ValueError(f"{label} holds both 0 and -1; use 1/0 or 1/-1 for members/non-members")
    if written and _OPPOSITE.fullmatch(plain(name)):
        raise ValueError(
            f"{label} seems to hold 1 (or true) for non-members; rename it if that means a member, "
            "or write the words member and nonmember"
        )
    if written and _NUMBERED.fullmatch(plain(name)) and not chosen:
        raise ValueError(
            f"{label} holds numbers (or true and false), which may stand for any part of the data; "
            f"write the words train and test, or say --member-column {name} (in Python "
            "member_column) if 1 means member"
        )
    return np.array([member[cell] for cell in cells], dtype=np.bool_)


def as_texts(cells: Cells, *, empty: str = "") -> NDArray[np.object_]:
    """Cells as text that can be written as UTF-8, such as identifiers and groups; empty ones as
    ``empty``.
    """
    values = [empty if cell in (None, "") else str(cell) for cell in cells]
    return np.array([text.encode("utf-8", "replace").decode() for text in values], dtype=object)


def _short(cell: object) -> str:
    text = repr(cell)
    return text if len(text) <= 60 else text[:57] + "..."
