"""The columns of one table that hold the scores, the membership, the identifiers and the groups."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paperlib.core import FloatArray
from paperlib.io.scores import cells
from paperlib.io.scores.names import is_identifier, is_index, kind_of, plain, tells_membership
from paperlib.io.scores.tables import Table


@dataclass(frozen=True)
class Wanted:
    """What the user said about the columns."""

    score: str | None
    member: str | None
    kind: str | None
    id: str | None
    group: str | None
    told: Callable[[str], str | None] = kind_of  # direction by a name


@dataclass(frozen=True)
class Part:
    """The columns of one table, one value per example: scores, membership, identifiers and groups."""

    table: Table
    score: str
    kind: str
    values: FloatArray
    member: NDArray[np.bool_]
    member_name: str | None
    ids: NDArray[np.object_] | None
    groups: NDArray[np.object_] | None


def read_part(table: Table, wanted: Wanted, side: bool | None = None) -> Part:
    """Read the columns of one table.

    Args:
        table: Table of one file.
        wanted: What the user said about its columns.
        side: True for a file of members, False for one of non-members, None for one with both.

    Raises:
        ValueError: A missing or doubtful column, an unknown direction, or cells that cannot be read.
    """
    member = _member_column(table, wanted) if side is None else _side_column(table, wanted)
    identifier = _id_column(table, wanted.id)
    group = None if wanted.group is None else table.check(wanted.group)
    score = _score_column(table, wanted, {member, identifier, group})
    if score == member:
        raise ValueError(f"the score and the membership cannot both be {table.label(score)}")
    kind = wanted.kind or (None if table.bare else wanted.told(score))
    if kind is None:
        raise ValueError(ask_kind(table.label(score)))
    needed = [name for name in (score, member, identifier, group) if name is not None]
    columns = table.read(list(dict.fromkeys(needed)))
    _check_lengths(table, score, columns)
    cells.gaps(table, {name: columns[name] for name in (score, member) if name is not None})
    values = cells.numbers(table, score, columns[score])
    if member is None:
        flags = np.full(values.size, bool(side))
    else:
        flags = cells.flags(table, member, columns[member], chosen=wanted.member is not None)
        _check_side(table.label(member), flags, side)
    return Part(
        table=table,
        score=score,
        kind=kind,
        values=values,
        member=flags,
        member_name=member,
        ids=None if identifier is None else cells.texts(columns[identifier]),
        groups=None if group is None else cells.texts(columns[group], empty="(missing)"),
    )


def ask_kind(what: str) -> str:
    """The question for a direction that nothing tells, such as of "column 'x'"."""
    return (
        f"does a high value of {what} point to a member (--kind scores) or a low one (--kind losses)? "
        'Say which with --kind (in Python kind="scores" or kind="losses")'
    )


def _check_lengths(table: Table, score: str, columns: dict[str, Any]) -> None:
    size = len(columns[score])
    if not size:
        raise ValueError("there are no rows")
    for name, values in columns.items():
        if len(values) != size:
            raise ValueError(
                f"{table.label(name)} has {len(values)} values but {table.label(score)} has {size}; expected "
                "one of each per example"
            )


def _check_side(label: str, flags: NDArray[np.bool_], side: bool | None) -> None:
    if side is None or (flags == side).all():
        return
    row = int(np.flatnonzero(flags != side)[0]) + 1
    this, other = ("members", "non-member") if side else ("non-members", "member")
    raise ValueError(
        f"this is the file of the {this}, but {label} says {other} in row {row}; give the members' file "
        "first, or one file with both"
    )


# ---------------------------------------------------------------- which column


def _score_column(table: Table, wanted: Wanted, taken: set[str | None]) -> str:
    """The column asked for, else the only one with a known name, else the only one left."""
    if table.bare:
        return table.names[0]
    if wanted.score is not None:
        return table.check(wanted.score)
    free = [name for name in table.names if name not in taken]
    known = [name for name in free if wanted.told(name)]
    if not known:
        left = free if len(free) == 1 else [name for name in free if not is_index(name)]
        known = left if len(left) == 1 else []
    return _only(table, known, "score", "score, loss, nll or logprob", "--score-column")


def _member_column(table: Table, wanted: Wanted) -> str:
    if wanted.member is not None:
        return table.check(wanted.member)
    known = [
        name for name in table.names if tells_membership(name) and name not in (wanted.score, wanted.group)
    ]
    return _only(
        table, known, "membership", "member, is_train or split", "--member-column",
        otherwise=", or give a second file with the non-members",
    )  # fmt: skip


def _side_column(table: Table, wanted: Wanted) -> str | None:
    """A membership column in a file of one class: one that was named, or one that must not contradict."""
    if table.bare:
        return None
    if wanted.member is not None:
        return table.check(wanted.member)
    known = [name for name in table.names if plain(name) in ("member", "is_member", "membership")]
    return known[0] if len(known) == 1 and known[0] not in (wanted.score, wanted.group) else None


def _id_column(table: Table, wanted: str | None) -> str | None:
    if wanted is not None:
        return table.check(wanted)
    known = [] if table.bare else [name for name in table.names if is_identifier(name)]
    return known[0] if len(known) == 1 else None


def _only(table: Table, known: list[str], what: str, usual: str, option: str, otherwise: str = "") -> str:
    python = option.removeprefix("--").replace("-", "_")
    if len(known) == 1:
        return known[0]
    if known:
        listed = " and ".join(map(repr, known))
        raise ValueError(
            f"{listed} could each hold the {what}; choose one with {option} (in Python {python})"
        )
    first_line = " (the first line of a CSV must name them)" if table.noun == "column" else ""
    raise ValueError(
        f"no {what} {table.noun} with a known name such as {usual}; the {table.noun}s are {table.listed()}"
        f"{first_line}; name one with {option} (in Python {python}){otherwise}"
    )
