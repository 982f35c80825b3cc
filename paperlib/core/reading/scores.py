"""Membership scores from one file, or from one per class; nothing is guessed or dropped."""

import hashlib
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from paperlib.core.checks import FloatArray, check_choice, check_ids, unit_means
from paperlib.core.coins import Coins
from paperlib.core.reading.columns import (
    INDEX,
    array_pair,
    as_flags,
    as_numbers,
    as_texts,
    check_gaps,
    kind_of,
    measure_of,
    plain,
    tells_membership,
)
from paperlib.core.reading.tables import NamedBytes, Table, named, open_source, table_of
from paperlib.core.scores import MembershipScores
from paperlib.core.sealed import check_loaded

_KINDS = ("scores", "losses")
_SAY_KIND = 'with --kind (in Python kind="scores" or kind="losses")'


@dataclass(frozen=True, kw_only=True)
class LoadedScores:
    """Scores read from files, and how they were read.

    Attributes:
        kind: "scores" (higher means member) or "losses" (lower means member).
        source: Files and columns that were used, as text.
        ids: Name of each example, in the order of ``scores.pooled()``; None without an identifier
            column.
        groups: Group of each in the same order, "(missing)" where its cell is empty; None without
            the column.
        checksums: SHA-256 of what was read, by file name.
    """

    scores: MembershipScores
    kind: str
    source: str
    ids: NDArray[Any] | None = None
    groups: NDArray[Any] | None = None
    checksums: dict[str, str] = field(default_factory=dict[str, str])
    warnings: tuple[str, ...] = ()


class _Wanted(NamedTuple):
    """What the user said about the columns."""

    score: str | None
    member: str | None
    kind: str | None
    id: str | None
    group: str | None
    coins: Coins | None = None


class _Part(NamedTuple):
    """The columns of one table, one value per example; the texts are ids and groups."""

    table: Table
    score: str
    kind: str
    values: FloatArray
    member: NDArray[np.bool_]
    member_name: str | None
    texts: dict[str, NDArray[np.object_]]


def read_scores(
    path: str | PathLike[str],
    nonmember_path: str | PathLike[str] | None = None,
    *,
    score_column: str | None = None,
    member_column: str | None = None,
    kind: str | None = None,
    id_column: str | None = None,
    group_column: str | None = None,
    unit_column: str | None = None,
    coins: Coins | None = None,
) -> LoadedScores:
    """Read scores or losses with their membership from one file, or from one file per class.

    Args:
        path: CSV, TSV or TXT with commas, semicolons or tabs, JSON lines (both also ``.gz``),
            Parquet, NPZ, NPY, PyTorch or safetensors; "-" reads text from standard input. With one
            file: a score or loss column and a membership column (1/0, 1/-1, true/false, in/out,
                train/test, member/nonmember), or
            two arrays such as ``member`` and ``nonmember``. With two: the members' scores.
        nonmember_path: The non-members' scores, in the same or another form.
        score_column, member_column: By default those with a common name, such as score, loss, nll
            or logprob, and member, is_train or split.
        kind: "scores" if higher means member, "losses" if lower does; needed where no name tells.
        id_column: Names of the examples; by default the column id, record_id or example_id.
        unit_column: What one record is, such as a customer: the values of its rows, all of one
            side, are averaged. By default each row is a record, which its identifiers must not
            contradict.
        coins: What tells membership in place of a column: one file with a column of ids, by default
            that of the coins, in any order; the rows of a unit with one coin are averaged.

    Raises:
        ValueError: An unreadable or empty file, a missing or doubtful column, an unknown direction,
            an empty cell, text where a number belongs, an unknown membership value, infinite
            scores, one class only, an identifier that stands twice, a unit on both sides, ids that
            do not fit the coins; in one line that names the file.
        FileNotFoundError: There is no such file.
    """
    if kind is not None:
        check_choice("kind", kind, _KINDS)
    check_loaded(coins)
    if coins is not None and (nonmember_path is not None or unit_column is not None):
        raise ValueError(
            "coins: they tell who is a member and what a unit is; give one file, and no unit"
        )
    if unit_column is not None and group_column is not None:
        raise ValueError(
            "group_column: rows of a unit may have several groups; leave it or unit_column out"
        )
    wanted = _Wanted(
        score_column, member_column, kind, unit_column or id_column, group_column, coins
    )
    first = open_source(str(path))
    if nonmember_path is None:
        with named(first):
            part = _part_of_both(table_of(first), wanted)
            text = f"{first.name}, {part.table.noun}s {part.score!r} and {part.member_name!r}"
            if coins is not None:
                part = _joined(part, coins)
                text = f"{first.name}, {part.table.noun} {part.score!r}, with {coins.seal}"
            return _loaded([first], [part], text, units=unit_column is not None)
    second = open_source(str(nonmember_path))
    if first.path == second.path:
        raise ValueError(f"{first.path}: it can hold the members or the non-members, not both")
    parts: list[_Part] = []
    for source, side in ((first, True), (second, False)):
        with named(source):
            parts.append(_part(table_of(source), wanted, side))
    if parts[0].kind != parts[1].kind:
        each = f"{first.path} holds {parts[0].kind} but {second.path} holds {parts[1].kind}"
        raise ValueError(f"{each}; say which {_SAY_KIND}")
    with named(first):
        text = f"members {first.name}, non-members {second.name}"
        return _loaded([first, second], parts, text, units=unit_column is not None)


def _part_of_both(table: Table, wanted: _Wanted) -> _Part:
    """The columns of a table with both classes, or its two arrays of members and of non-members."""
    pair = None if wanted.score or wanted.member or wanted.coins else array_pair(table.names)
    if pair is None:
        if table.bare:
            raise ValueError(
                "an array alone does not tell who is a member; give a second file with the "
                "non-members, or a table with a membership column"
            )
        return _part(table, wanted)
    names = f"{table.noun}s {pair[0]!r} and {pair[1]!r}"
    if wanted.id or wanted.group:
        raise ValueError(
            f"{names} hold no identifiers and no groups; give a table with one row per example"
        )
    kind = wanted.kind or kind_of(measure_of(pair[0])) or _ask_kind(names)
    columns = table.read(pair)
    check_gaps(table, columns)
    values = [as_numbers(table, name, columns[name]) for name in pair]
    member = np.repeat([True, False], [part.size for part in values])
    return _Part(table, pair[0], kind, np.concatenate(values), member, pair[1], {})


def _part(table: Table, wanted: _Wanted, side: bool | None = None) -> _Part:
    """The columns of one table, of members (side True), of non-members (False) or of both
    (None).
    """

    def told(
        name: str,
    ) -> str | None:  # the name of values of one class alone may say which class it is
        return kind_of(name) or (None if side is None else kind_of(measure_of(name)))

    free = [name for name in table.names if name not in (wanted.score, wanted.group)]
    if wanted.member is not None and not table.bare:
        told_by = [table.check(wanted.member)]
    elif wanted.coins is not None:  # which every column of membership must not contradict
        told_by = [name for name in free if tells_membership(name)]
    elif side is None:
        known = [name for name in free if tells_membership(name)]
        told_by = [_only(table, known, "member", "membership", "member, is_train or split")]
    else:  # which must not contradict
        known = [name for name in free if plain(name) in ("member", "is_member", "membership")]
        told_by = known if len(known) == 1 else []
    member = told_by[0] if told_by else None
    if wanted.id is not None:
        identifier = table.check(wanted.id)
    elif wanted.coins is not None and wanted.coins.column in table.names:
        identifier = wanted.coins.column
    else:
        known_ids = [
            name for name in table.names if plain(name) in ("id", "record_id", "example_id")
        ]
        identifier = known_ids[0] if len(known_ids) == 1 else None
    if wanted.coins is not None and identifier is None:
        raise ValueError(
            f"no {table.noun} {wanted.coins.column!r}; the coins need the id of each score, so "
            f"name its {table.noun} with --id-column (in Python id_column)"
        )
    group = None if wanted.group is None else table.check(wanted.group)
    if table.bare:
        score = table.names[0]
    elif wanted.score is not None:
        score = table.check(wanted.score)
    else:  # the only column with a known name, else the only one left
        free = [name for name in table.names if name not in (*told_by, identifier, group)]
        known = [name for name in free if told(name)]
        if not known:
            left = (
                free
                if len(free) == 1
                else [name for name in free if not INDEX.fullmatch(name.strip())]
            )
            known = left if len(left) == 1 else []
        score = _only(table, known, "score", "score", "score, loss, nll or logprob")
    if score in told_by:
        raise ValueError(f"the score and the membership cannot both be {table.label(score)}")
    kind = wanted.kind or (None if table.bare else told(score)) or _ask_kind(table.label(score))
    needed = (score, *told_by, identifier, group)
    columns = table.read(list(dict.fromkeys(name for name in needed if name is not None)))
    size = len(columns[score])
    if not size:
        raise ValueError("there are no rows")
    for name, column in columns.items():
        if len(column) != size:
            raise ValueError(
                f"{table.label(name)} has {len(column)} values but {table.label(score)} has "
                f"{size}; expected one of each per example"
            )
    check_gaps(table, {name: columns[name] for name in (score, *told_by)})
    values = as_numbers(table, score, columns[score])
    texts: dict[str, NDArray[np.object_]] = {}
    if identifier is not None:
        texts["ids"] = as_texts(columns[identifier])
    if group is not None:
        texts["groups"] = as_texts(columns[group], empty="(missing)")
    flags, expected = np.full(size, bool(side)), side
    if wanted.coins is not None:
        flags = expected = wanted.coins.included[wanted.coins.places(texts["ids"].tolist())]
    for name in told_by:
        flags = as_flags(table, name, columns[name], chosen=wanted.member is not None)
        if expected is None or not (flags != expected).any():
            continue
        row = int(np.flatnonzero(flags != expected)[0])
        found = (
            f"but {table.label(name)} says {'member' if flags[row] else 'non-member'} in row "
            f"{row + 1}"
        )
        if side is None:
            raise ValueError(
                f"the coin of {texts['ids'][row]!r} fell on the other side, {found}; find out what "
                "the model was trained on, since it must be what the coins say, and leave this "
                "column out"
            )
        this = "members" if side else "non-members"
        raise ValueError(
            f"this is the file of the {this}, {found}; give the members' file first, or one "
            "file with both"
        )
    return _Part(table, score, kind, values, flags, member, texts)


def _joined(part: _Part, coins: Coins) -> _Part:
    """One value per coin, in the order of the coins; a unit has no group."""
    ids = part.texts["ids"].tolist()
    first = np.unique(coins.places(ids), return_index=True)[1]
    texts = {
        what: cells[first] for what, cells in part.texts.items() if what == "ids" or not coins.unit
    }
    return part._replace(values=coins.join(ids, part.values), member=coins.included, texts=texts)


def _ask_kind(what: str) -> NoReturn:
    raise ValueError(
        f"does a high value of {what} point to a member (--kind scores) or a low one (--kind "
        f"losses)? Say which {_SAY_KIND}"
    )


def _only(table: Table, known: list[str], what: str, meaning: str, usual: str) -> str:
    """The one column with a known name."""
    if len(known) == 1:
        return known[0]
    option = f"--{what}-column (in Python {what}_column)"
    if known:
        listed = " and ".join(map(repr, known))
        raise ValueError(f"{listed} could each hold the {meaning}; choose one with {option}")
    first_line = " (the first line of a CSV must name them)" if table.noun == "column" else ""
    more = ", or give a second file with the non-members" if what == "member" else ""
    raise ValueError(
        f"no {meaning} {table.noun} with a known name such as {usual}; the {table.noun}s are "
        f"{table.listed()}{first_line}; name one with {option}{more}"
    )


def _loaded(
    sources: list[NamedBytes], parts: list[_Part], text: str, *, units: bool
) -> LoadedScores:
    """Scores of all parts with one value per record: identifiers that stand once, or the means of
    units.
    """
    flags = np.concatenate([part.member for part in parts])
    order = np.argsort(~flags, kind="stable")  # members first
    scores = MembershipScores.from_labels(
        np.concatenate([part.values for part in parts]),
        flags,
        higher_means_member=parts[0].kind == "scores",
    )
    texts = {
        what: np.concatenate([part.texts[what] for part in parts])[order]
        for what in parts[0].texts
        if what in parts[-1].texts
    }
    ids, groups = texts.get("ids"), texts.get("groups")
    if ids is not None:
        sides = ids[: scores.member.size], ids[scores.member.size :]
        check_ids(*(side[side != ""].tolist() for side in sides), unit=units)
        if units:
            if (ids == "").any():
                raise ValueError(
                    f"{int((ids == '').sum())} rows name no unit; fill or drop these rows"
                )
            member, nonmember = (
                unit_means(scores.member, sides[0]),
                unit_means(scores.nonmember, sides[1]),
            )
            scores = MembershipScores(
                member[0], nonmember[0], higher_means_member=scores.higher_means_member
            )
            ids, groups = np.concatenate([member[1], nonmember[1]]), None
    part, doubts = parts[0], list[str]()
    told = None if part.table.bare else kind_of(part.score)
    if told not in (None, part.kind):
        doubts.append(
            f"{part.table.label(part.score)} was read as {part.kind}, as --kind says, although its "
            f"name points to {told}"
        )
    if len(sources) == 2 and not any(one.table.bare for one in parts):
        first, second = (one.score for one in parts)
        if measure_of(first) != measure_of(second):
            doubts.append(
                f"{sources[0].name} holds {first!r} and {sources[1].name} holds {second!r}; check "
                "that both are the same measure"
            )
    alike = len({source.name for source in sources}) < len(sources)
    sums = {s.path if alike else s.name: hashlib.sha256(s.data).hexdigest() for s in sources}
    return LoadedScores(
        scores=scores,
        kind=parts[0].kind,
        source=text,
        ids=ids,
        groups=groups,
        checksums=sums,
        warnings=tuple(doubts),
    )
