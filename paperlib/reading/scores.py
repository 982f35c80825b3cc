"""Membership scores from one file, or from one per class; nothing is guessed or dropped."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from paperlib.core.checks import FloatArray, check_choice, check_ids, unit_means
from paperlib.core.coins import Coins
from paperlib.core.column_names import (
    INDEX,
    array_pair,
    kind_of_name,
    measure_of,
    plain,
    tells_membership,
)
from paperlib.core.facts import AgainstName, TwoMeasures
from paperlib.core.records import check_column
from paperlib.core.scores import MembershipScores
from paperlib.core.sealed import check_loaded
from paperlib.reading.columns import MISSING, as_flags, as_numbers, as_texts, check_gaps
from paperlib.reading.limits import TooLargeError
from paperlib.reading.tables import Cells, NamedBytes, Table, named, open_source, table_of

Texts = NDArray[np.object_]
"""Identifiers or groups, one text per example, shape (n,)."""

_KINDS = ("scores", "losses")
_CELLS_AT_ONCE = 5_000_000  # of columns that are looked at for names of records, to spare memory
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
        name_conflicts: Where names of columns speak against what was read from them.
        warnings: The same in words, which `paperlib.io.read_scores` writes; empty without it.
    """

    scores: MembershipScores
    kind: str
    source: str
    ids: NDArray[Any] | None = None
    groups: NDArray[Any] | None = None
    checksums: dict[str, str] = field(default_factory=dict[str, str])
    name_conflicts: tuple[AgainstName | TwoMeasures, ...] = ()
    warnings: tuple[str, ...] = ()


class _Options(NamedTuple):
    """The columns that the user named, what says who is a member, and what a record is."""

    score: str | None
    member: str | None
    kind: str | None
    id: str | None
    group: str | None
    coins: Coins | None
    units: bool  # ``id`` names records of several rows, whose values are averaged


class _TableScores(NamedTuple):
    """What was read from one table: one value per example, and the names of the columns.

    ``member_column`` is None where the file or the coins alone say who is a member. Two arrays of
    one class each are told by ``score_column`` (the members') and ``member_column`` (the others').
    """

    table: Table
    score_column: str
    kind: str
    values: FloatArray
    member: NDArray[np.bool_]
    member_column: str | None
    ids: Texts | None = None
    groups: Texts | None = None
    free: tuple[str, ...] = ()  # columns that nothing was read from


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
            train/test, member/nonmember), or two arrays such as ``member`` and ``nonmember``. With
            two: the members' scores.
        nonmember_path: The non-members' scores, in the same or another form.
        score_column, member_column: By default those with a common name, such as score, loss, nll
            or logprob, and member, is_train or split.
        kind: "scores" if higher means member, "losses" if lower does; needed where no name tells.
        id_column: Names of the examples; by default the column id, record_id or example_id.
        group_column: Groups of the examples, which the result keeps; None for none.
        unit_column: What one record is, such as a customer: the values of its rows, all of one
            side, are averaged. By default each row is a record, which its identifiers must not
            contradict, nor any other column whose values name units or records of both sides.
        coins: What tells membership in place of a column: one file with a column of ids, by default
            that of the coins, in any order; the rows of a unit with one coin are averaged.

    Raises:
        ValueError: An unreadable or empty file, a missing or doubtful column, an unknown direction,
            an empty cell or NaN, text where a number belongs, an unknown membership value, one
            class only, an identifier that stands twice, a unit on both sides, a column
            of units that is not named, ids that do not fit the coins; in one line that names the
            file.
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
    options = _Options(
        score=score_column,
        member=member_column,
        kind=kind,
        id=unit_column or id_column,
        group=group_column,
        coins=coins,
        units=unit_column is not None,
    )
    first = open_source(str(path))
    if nonmember_path is None:
        return _read_one_file(first, options)
    second = open_source(str(nonmember_path))
    if first.path == second.path:
        raise ValueError(f"{first.path}: it can hold the members or the non-members, not both")
    return _read_two_files(first, second, options)


def _read_one_file(source: NamedBytes, options: _Options) -> LoadedScores:
    """Scores of a file with both classes; membership is told by a column, by coins or by two
    arrays.
    """
    with named(source):
        loaded = _read_both_classes(table_of(source), options)
        noun = loaded.table.noun
        if options.coins is None:
            columns = f"{noun}s {loaded.score_column!r} and {loaded.member_column!r}"
            text = f"{source.name}, {columns}"
        else:
            loaded = _one_value_per_coin(loaded, options.coins)
            text = f"{source.name}, {noun} {loaded.score_column!r}, with {options.coins.seal}"
        result = _loaded([source], [loaded], text, units=options.units)
        if options.coins is None:  # which say what a record is
            _check_free_columns([loaded], units=options.units)
        return result


def _read_two_files(first: NamedBytes, second: NamedBytes, options: _Options) -> LoadedScores:
    """Scores of a file of members and of one of non-members; a ValueError where one holds scores
    and the other losses.
    """
    with named(first):
        members = _read_columns(table_of(first), options, side=True)
    with named(second):
        others = _read_columns(table_of(second), options, side=False)
    if members.kind != others.kind:
        raise ValueError(
            f"{first.path} holds {members.kind} but {second.path} holds {others.kind}; say which "
            f"{_SAY_KIND}"
        )
    with named(first):
        text = f"members {first.name}, non-members {second.name}"
        result = _loaded([first, second], [members, others], text, units=options.units)
        _check_free_columns([members, others], units=options.units)
        return result


def _read_both_classes(table: Table, options: _Options) -> _TableScores:
    """The columns of a table with both classes, or its two arrays of members and of non-members; a
    ValueError for one array alone.
    """
    columns_are_known = options.score or options.member or options.coins
    pair = None if columns_are_known else array_pair(table.names)
    if pair is not None:
        return _read_array_pair(table, pair, options)
    if table.bare:
        raise ValueError(
            "an array alone does not tell who is a member; give a second file with the "
            "non-members, or a table with a membership column"
        )
    return _read_columns(table, options, side=None)


def _read_array_pair(table: Table, pair: tuple[str, str], options: _Options) -> _TableScores:
    """The values of an array of members and of one of non-members, whose names are the ``pair``, in
    this order; a ValueError where identifiers, groups or a direction are asked for in vain.
    """
    names = f"{table.noun}s {pair[0]!r} and {pair[1]!r}"
    if options.id or options.group:
        raise ValueError(
            f"{names} hold no identifiers and no groups; give a table with one row per example"
        )
    kind = options.kind or kind_of_name(measure_of(pair[0])) or _ask_kind(names)
    columns = table.read(pair)
    check_gaps(table, columns)
    members = as_numbers(table, pair[0], columns[pair[0]])
    others = as_numbers(table, pair[1], columns[pair[1]])
    return _TableScores(
        table=table,
        score_column=pair[0],
        kind=kind,
        values=np.concatenate([members, others]),
        member=np.repeat([True, False], [members.size, others.size]),
        member_column=pair[1],
    )


# ------------------------------------------------------- one table, column by column
# ``side`` is the class whose file the table is: True for members, False for non-members, None
# where one file holds both.


def _read_columns(table: Table, options: _Options, *, side: bool | None) -> _TableScores:
    """Scores, membership, identifiers and groups of one table, one of each per row.

    ``side`` is True for a file of members, False for one of non-members, None for one of both. A
    ValueError for columns that are missing, doubtful or contradict each other.
    """
    membership = _membership_columns(table, options, side)
    id_column = _id_column(table, options)
    group_column = None if options.group is None else table.check(options.group)
    others = [*membership]
    if id_column is not None:
        others.append(id_column)
    if group_column is not None:
        others.append(group_column)
    score_column = _score_column(table, options, side, taken=others)
    if score_column in membership:
        raise ValueError(f"the score and the membership cannot both be {table.label(score_column)}")
    kind = _kind(table, score_column, options, side)

    cells = _read_alike(table, score_column, others)
    check_gaps(table, {name: cells[name] for name in (score_column, *membership)})
    values = as_numbers(table, score_column, cells[score_column])
    ids = None if id_column is None else as_texts(cells[id_column])
    groups = None if group_column is None else as_texts(cells[group_column], empty="(missing)")
    membership_cells = {name: cells[name] for name in membership}
    if options.coins is not None and ids is not None:
        tossed = options.coins.included[options.coins.places(ids.tolist())]
        member = _membership_by_coins(table, options, membership_cells, tossed, ids)
    else:
        member = _membership_by_columns(table, options, membership_cells, side, values.size)
    return _TableScores(
        table=table,
        score_column=score_column,
        kind=kind,
        values=values,
        member=member,
        member_column=membership[0] if membership else None,
        ids=ids,
        groups=groups,
        free=tuple(name for name in table.names if name not in (score_column, *others)),
    )


def _membership_columns(table: Table, options: _Options, side: bool | None) -> list[str]:
    """The columns that say who is a member.

    The one that was named, else the only one with such a name. Beside coins, and in a file of one
    class (``side`` is True for members, False for non-members), none is needed; those that are
    there must not contradict it.
    """
    if options.member is not None and not table.bare:
        return [table.check(options.member)]
    free = [name for name in table.names if name not in (options.score, options.group)]
    if options.coins is not None:
        return list(filter(tells_membership, free))
    if side is None:
        candidates = list(filter(tells_membership, free))
        return [_only(table, candidates, "member", "membership", "member, is_train or split")]
    usual = [name for name in free if plain(name) in ("member", "is_member", "membership")]
    return usual if len(usual) == 1 else []


def _id_column(table: Table, options: _Options) -> str | None:
    """The column of identifiers: the one that was named, that of the coins, or the only usual
    name; else None, or a ValueError where coins need one.
    """
    coins = options.coins
    if options.id is not None:
        return table.check(options.id)
    if coins is not None and coins.column in table.names:
        return coins.column
    usual = [name for name in table.names if plain(name) in ("id", "record_id", "example_id")]
    if len(usual) == 1:
        return usual[0]
    if coins is not None:
        raise ValueError(
            f"no {table.noun} {coins.column!r}; the coins need the id of each score, so "
            f"name its {table.noun} with --id-column (in Python id_column)"
        )
    return None


def _score_column(table: Table, options: _Options, side: bool | None, *, taken: list[str]) -> str:
    """The column of scores: the one that was named, the only one with a known name, or the only
    one that is not ``taken``; a ValueError where there is none, or several.
    """
    if table.bare:
        return table.names[0]
    if options.score is not None:
        return table.check(options.score)
    free = [name for name in table.names if name not in taken]
    candidates = [name for name in free if _kind_by_name(name, side)]
    if not candidates:
        candidates = _only_left(free)
    return _only(table, candidates, "score", "score", "score, loss, nll or logprob")


def _only_left(names: list[str]) -> list[str]:
    """The one name that is left, row numbers aside; empty where several are."""
    if len(names) != 1:
        names = [name for name in names if not INDEX.fullmatch(name.strip())]
    return names if len(names) == 1 else []


def _kind(table: Table, score_column: str, options: _Options, side: bool | None) -> str:
    """Scores or losses, as the user says or as the column's name does; a question otherwise."""
    if options.kind is not None:
        return options.kind
    kind = None if table.bare else _kind_by_name(score_column, side)
    return kind or _ask_kind(table.label(score_column))


def _kind_by_name(name: str, side: bool | None) -> str | None:
    """Scores or losses by a column's name, which in a file of one class may name the class,
    too.
    """
    kind = kind_of_name(name)
    if kind is None and side is not None:
        kind = kind_of_name(measure_of(name))
    return kind


def _read_alike(table: Table, score_column: str, others: list[str]) -> dict[str, Cells]:
    """The cells of these columns by name, one per example; a ValueError where their numbers
    differ.
    """
    names = list(dict.fromkeys([score_column, *others]))
    if table.lengths is not None:  # before anything is read
        _check_alike(table, score_column, table.lengths(names))
    columns = table.read(names)
    _check_alike(table, score_column, {name: len(cells) for name, cells in columns.items()})
    return columns


def _check_alike(table: Table, score_column: str, lengths: dict[str, int]) -> None:
    """Refuse (ValueError) a table without rows, and columns with more or fewer values than the
    scores; ``lengths`` are numbers of values by column.
    """
    size = lengths[score_column]
    if not size:
        raise ValueError("there are no rows")
    for name, length in lengths.items():
        if length != size:
            raise ValueError(
                f"{table.label(name)} has {length} values but {table.label(score_column)} has "
                f"{size}; expected one of each per example"
            )


def _membership_by_coins(
    table: Table,
    options: _Options,
    columns: dict[str, Cells],
    tossed: NDArray[np.bool_],
    ids: Texts,
) -> NDArray[np.bool_]:
    """Who is a member by the coins of these rows, shape (n,).

    Args:
        columns: Cells of the columns of membership by name; each must say what the coins say, else
            a ValueError names the first row that does not.
        tossed: Whether the coin of each row included it, shape (n,).
        ids: Name of each row, for the message, shape (n,).
    """
    for name, cells in columns.items():
        flags = as_flags(table, name, cells, chosen=options.member is not None)
        if (flags != tossed).any():
            row = int(np.flatnonzero(flags != tossed)[0])
            raise ValueError(
                f"the coin of {ids[row]!r} fell on the other side, "
                f"{_contradiction(table, name, flags, row)}; find out what "
                "the model was trained on, since it must be what the coins say, and leave this "
                "column out"
            )
    return tossed


def _membership_by_columns(
    table: Table, options: _Options, columns: dict[str, Cells], side: bool | None, size: int
) -> NDArray[np.bool_]:
    """Which rows are members, shape (size,).

    By the class ``side`` of the file, which none of the columns may contradict; where it has none,
    by the one column of memberships, which `_membership_columns` then makes sure of.
    """
    member = np.full(size, side is True)
    for name, cells in columns.items():
        member = as_flags(table, name, cells, chosen=options.member is not None)
        if side is not None and (member != side).any():
            row = int(np.flatnonzero(member != side)[0])
            file_class = "members" if side else "non-members"
            raise ValueError(
                f"this is the file of the {file_class}, {_contradiction(table, name, member, row)}"
                "; give the members' file first, or one file with both"
            )
    return member


def _contradiction(table: Table, name: str, flags: NDArray[np.bool_], row: int) -> str:
    """What a column says of a row, for an error message."""
    membership = "member" if flags[row] else "non-member"
    return f"but {table.label(name)} says {membership} in row {row + 1}"


def _ask_kind(what: str) -> NoReturn:
    """Refuse (ValueError) values of which nothing says in which direction they point."""
    raise ValueError(
        f"does a high value of {what} point to a member (--kind scores) or a low one (--kind "
        f"losses)? Say which {_SAY_KIND}"
    )


def _only(table: Table, candidates: list[str], what: str, meaning: str, usual: str) -> str:
    """The one candidate; a ValueError that says how to choose where there is none, or several.

    Args:
        candidates: Names of the columns that it could be.
        what: "score" or "member", as the option is called.
        meaning: What the column holds, for the message.
        usual: Names that are known, for the message.
    """
    if len(candidates) == 1:
        return candidates[0]
    option = f"--{what}-column (in Python {what}_column)"
    if candidates:
        listed = " and ".join(map(repr, candidates))
        raise ValueError(f"{listed} could each hold the {meaning}; choose one with {option}")
    first_line = " (the first line of a CSV must name them)" if table.noun == "column" else ""
    second_file = ", or give a second file with the non-members" if what == "member" else ""
    raise ValueError(
        f"no {meaning} {table.noun} with a known name such as {usual}; the {table.noun}s are "
        f"{table.listed()}{first_line}; name one with {option}{second_file}"
    )


# ------------------------------------------------------- all tables together


def _one_value_per_coin(loaded: _TableScores, coins: Coins) -> _TableScores:
    """One value per coin, in the order of the coins, the mean of those of a unit; a unit has no
    group. A ValueError for ids that do not fit the coins.
    """
    assert loaded.ids is not None
    names = loaded.ids.tolist()
    first_rows = np.unique(coins.places(names), return_index=True)[1]
    groups = loaded.groups
    if groups is not None:
        groups = None if coins.unit else groups[first_rows]
    return loaded._replace(
        values=coins.join(names, loaded.values),
        member=coins.included,
        ids=loaded.ids[first_rows],
        groups=groups,
    )


def _loaded(
    sources: list[NamedBytes], tables: list[_TableScores], text: str, *, units: bool
) -> LoadedScores:
    """Scores of all tables with one value per record: identifiers that stand once, or the means of
    ``units``, which the identifiers then name.

    ``text`` says which files and columns were used. A ValueError for one class alone, and for
    identifiers that stand twice or on both sides.
    """
    member = np.concatenate([table.member for table in tables])
    scores = MembershipScores.from_labels(
        np.concatenate([table.values for table in tables]),
        member,
        higher_means_member=tables[0].kind == "scores",
    )
    members_first = np.argsort(~member, kind="stable")
    ids = _in_order([table.ids for table in tables], members_first)
    groups = _in_order([table.groups for table in tables], members_first)
    if ids is not None:
        _check_each_side(ids, scores.member.size, units=units)
        if units:
            scores, ids = _means_of_units(scores, ids)
            groups = None
    return LoadedScores(
        scores=scores,
        kind=tables[0].kind,
        source=text,
        ids=ids,
        groups=groups,
        checksums=_checksums(sources),
        name_conflicts=_name_conflicts(sources, tables),
    )


def _check_free_columns(tables: Sequence[_TableScores], *, units: bool) -> None:
    """Refuse (ValueError) columns that nothing was read from and that say what a record is, by what
    they hold in all tables; where records are ``units``, their first rows are looked at.
    """
    member = np.concatenate([loaded.member for loaded in tables])
    values = np.concatenate([loaded.values for loaded in tables])
    rows = _first_rows_of_units(tables) if units else np.arange(member.size)
    for name, cells in _free_columns(tables, member.size):
        if len(cells) == member.size:  # else it holds no cell for each row, as an array may
            label = tables[0].table.label(name)
            chosen = [cells[row] for row in rows]
            check_column(label, name, chosen, member[rows], values[rows])


def _free_columns(tables: Sequence[_TableScores], rows: int) -> Iterator[tuple[str, Cells]]:
    """Free columns with their cells, read a few at a time to spare memory."""
    names = _free_in_all(tables)
    at_once = max(1, _CELLS_AT_ONCE // rows)
    for start in range(0, len(names), at_once):
        yield from _cells_of_all(tables, names[start : start + at_once]).items()


def _first_rows_of_units(tables: Sequence[_TableScores]) -> NDArray[np.int64]:
    """The first row of each unit, rows of all tables counted through."""
    names = np.concatenate([loaded.ids for loaded in tables if loaded.ids is not None])
    return np.sort(np.unique(names.astype(str), return_index=True)[1])


def _free_in_all(tables: Sequence[_TableScores]) -> list[str]:
    """Names of the columns that nothing was read from and that every table has, without row
    numbers.
    """
    names: list[str] = []
    free_in_each = [frozenset(loaded.free) for loaded in tables]
    for name in tables[0].free:
        is_common = all(name in free for free in free_in_each)
        if is_common and not INDEX.fullmatch(name.strip()):
            names.append(name)
    return names


def _cells_of_all(tables: Sequence[_TableScores], names: Sequence[str]) -> dict[str, Cells]:
    """The cells of columns of all tables, missing ones None; without columns that hold anything
    but single values.
    """
    columns: dict[str, Cells] = {name: [] for name in names}
    for loaded in tables:
        for name, cells in _readable_columns(loaded.table, names).items():
            columns[name] += [None if cell in MISSING else cell for cell in cells]
    return columns


def _readable_columns(table: Table, names: Sequence[str]) -> dict[str, Cells]:
    """Cells by name of those columns that hold single values; those of lists, images and the like
    are left out. A `TooLargeError` beyond the limit of memory.
    """
    # All at once, and one by one only where a column among them cannot be read.
    try:
        return table.read(names)
    except TooLargeError:
        raise
    except ValueError:
        if len(names) == 1:
            return {}
    readable: dict[str, Cells] = {}
    for name in names:
        readable |= _readable_columns(table, [name])
    return readable


def _in_order(texts: Sequence[Texts | None], order: NDArray[np.int64]) -> Texts | None:
    """The texts of all tables in one order; None unless every table has them."""
    present = [column for column in texts if column is not None]
    return np.concatenate(present)[order] if len(present) == len(texts) else None


def _check_each_side(ids: NDArray[Any], members: int, *, units: bool) -> None:
    """Refuse (ValueError) identifiers on both sides, or several times on one unless they are units;
    empty ones stand for no record. The first ``members`` are those of members.
    """
    member_ids = ids[:members]
    nonmember_ids = ids[members:]
    check_ids(
        member_ids[member_ids != ""].tolist(),
        nonmember_ids[nonmember_ids != ""].tolist(),
        unit=units,
    )


def _means_of_units(
    scores: MembershipScores, ids: NDArray[Any]
) -> tuple[MembershipScores, NDArray[Any]]:
    """The mean score of each unit, and the units, members first; a ValueError for a row that names
    none. ``ids`` are the units of the scores, members first, shape (n,).
    """
    if (ids == "").any():
        raise ValueError(f"{int((ids == '').sum())} rows name no unit; fill or drop these rows")
    members = scores.member.size
    member_means, member_units = unit_means(scores.member, ids[:members])
    nonmember_means, nonmember_units = unit_means(scores.nonmember, ids[members:])
    means = MembershipScores(
        member_means, nonmember_means, higher_means_member=scores.higher_means_member
    )
    return means, np.concatenate([member_units, nonmember_units])


def _checksums(sources: list[NamedBytes]) -> dict[str, str]:
    """SHA-256 of each file by its name, by its path where two have one name."""
    names_differ = len({source.name for source in sources}) == len(sources)
    return {
        source.name if names_differ else source.path: hashlib.sha256(source.data).hexdigest()
        for source in sources
    }


def _name_conflicts(
    sources: list[NamedBytes], tables: list[_TableScores]
) -> tuple[AgainstName | TwoMeasures, ...]:
    """Where names of columns speak against what was read from them: a direction that the user
    turned round, and two files of different measures.
    """
    conflicts: list[AgainstName | TwoMeasures] = []
    first = tables[0]
    kind_by_name = None if first.table.bare else kind_of_name(first.score_column)
    if kind_by_name is not None and kind_by_name != first.kind:
        label = first.table.label(first.score_column)
        conflicts.append(AgainstName(column=label, read_as=first.kind, by_name=kind_by_name))
    if len(tables) == 2 and not any(loaded.table.bare for loaded in tables):
        second = tables[1]
        if measure_of(first.score_column) != measure_of(second.score_column):
            measures = TwoMeasures(
                first_file=sources[0].name,
                first=first.score_column,
                second_file=sources[1].name,
                second=second.score_column,
            )
            conflicts.append(measures)
    return tuple(conflicts)
