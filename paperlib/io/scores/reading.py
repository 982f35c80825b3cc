"""Reading membership scores from text, JSON lines, arrays and tensors; nothing is guessed or dropped."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paperlib.core import MembershipScores, check_choice, check_ids, unit_means
from paperlib.io.scores import arrays, cells, text
from paperlib.io.scores.names import array_pair, kind_of, kind_of_class, plain, role_of
from paperlib.io.scores.parts import Part, Wanted, ask_kind, read_part
from paperlib.io.scores.tables import STANDARD_INPUT, Source, Table, open_source

KINDS = ("scores", "losses")
_BINARY: dict[str, Callable[[bytes], Table]] = {
    ".parquet": arrays.parquet,
    ".pq": arrays.parquet,
    ".npz": arrays.npz,
    ".npy": arrays.npy,
    ".pt": arrays.torch_file,
    ".pth": arrays.torch_file,
    ".safetensors": arrays.safetensors_file,
}
_JSON = (".jsonl", ".ndjson")
_DELIMITED = (".csv", ".tsv", ".txt")
SUFFIXES = (*_DELIMITED, *_JSON, *_BINARY)


@dataclass(frozen=True, kw_only=True)
class LoadedScores:
    """Scores read from files, and how they were read.

    Attributes:
        scores: The scores as given; ``scores.higher_means_member`` is False for losses.
        kind: "scores" (higher means member) or "losses" (lower means member).
        source: Files and columns that were used, as text.
        ids: Name of each example, members first as in ``scores.pooled()``; None without an identifier column.
        groups: Group of each example in the same order, "(missing)" where its cell is empty; None if no group
            column was named.
        checksums: SHA-256 of what was read, by file name.
        warnings: What is not wrong, yet should be looked at.
    """

    scores: MembershipScores
    kind: str
    source: str
    ids: NDArray[Any] | None = None
    groups: NDArray[Any] | None = None
    checksums: dict[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


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
) -> LoadedScores:
    """Read scores or losses with their membership from one file, or from one file per class.

    Args:
        path: CSV, TSV or TXT with commas, semicolons or tabs, JSON lines (both also ``.gz``), Parquet, NPZ,
            NPY, PyTorch or safetensors; "-" reads text from standard input. With one file: a score or loss
            column and a membership column (1/0, 1/-1, true/false, in/out, train/test, member/nonmember), or
            two arrays such as ``member`` and ``nonmember``. With two: the members' scores.
        nonmember_path: The non-members' scores, in the same or another form.
        score_column: Name of the score column; by default the one whose name is a common one, such as score,
            loss, nll or logprob.
        member_column: Name of the membership column; by default the one whose name is a common one, such as
            member, is_train or split.
        kind: "scores" if higher means member, "losses" if lower does; needed where the name of the column
            does not tell, and for arrays without a name.
        id_column: Name of the column that names the examples; by default id, record_id or example_id.
        group_column: Name of the column that groups the examples; by default none.
        unit_column: Name of the column that says what one record is, such as a customer: the values of its
            rows are averaged, and its rows are of one side. By default each row is a record, which its
            identifiers must not contradict.

    Returns:
        The scores, their direction, and where they came from.

    Raises:
        ValueError: An unreadable or empty file, a missing or doubtful column, an unknown direction, an empty
            cell, text where a number belongs, an unknown membership value, infinite scores, one class only,
            an identifier that stands twice, a unit on both sides. The message is one line that names the file
            and what to do.
        FileNotFoundError: There is no such file.
    """
    if kind is not None:
        check_choice("kind", kind, KINDS)
    wanted = Wanted(
        score_column, member_column, kind, unit_column or id_column, group_column,
        told=kind_of if nonmember_path is None else kind_of_class,
    )  # fmt: skip
    if nonmember_path is None:
        source = open_source(str(path))
        loaded = _read_one(source, wanted)
    else:
        source = open_source(str(path))
        loaded = _read_two(source, open_source(str(nonmember_path)), wanted)
    with named(source):
        return _of_records(loaded, unit_column is not None)


def _of_records(loaded: LoadedScores, unit: bool) -> LoadedScores:
    """Scores with one value per record: identifiers that stand once, or the means of units."""
    scores, ids = loaded.scores, loaded.ids
    if ids is None:
        return loaded
    named = [ids[: scores.member.size], ids[scores.member.size :]]
    check_ids(*(side[side != ""].tolist() for side in named), unit=unit)
    if not unit:
        return loaded
    if (ids == "").any():
        raise ValueError(f"{int((ids == '').sum())} rows name no unit; fill or drop these rows")
    sides = [unit_means(scores.member, named[0]), unit_means(scores.nonmember, named[1])]
    values = [means for means, _ in sides]
    return replace(
        loaded,
        scores=MembershipScores(*values, higher_means_member=scores.higher_means_member),
        ids=np.concatenate([units for _, units in sides]),
        groups=None,
    )


def _read_one(source: Source, wanted: Wanted) -> LoadedScores:
    with named(source):
        table = table_of(source)
        pair = None if wanted.score or wanted.member else array_pair(table.names)
        if pair:
            return _read_arrays(source, table, wanted, pair)
        if table.bare:
            raise ValueError(
                "an array alone does not tell who is a member; give a second file with the non-members, or a "
                "table with a membership column"
            )
        part = read_part(table, wanted)
        return _loaded(
            [part],
            source=f"{source.name}, {table.noun}s {part.score!r} and {part.member_name!r}",
            checksums={source.name: source.sha256()},
            warnings=_overruled(part),
        )


def _read_arrays(source: Source, table: Table, wanted: Wanted, pair: tuple[str, str, str]) -> LoadedScores:
    """Members and non-members in two arrays of one file."""
    names = f"{table.noun}s {pair[0]!r} and {pair[1]!r}"
    if wanted.id or wanted.group:
        raise ValueError(f"{names} hold no identifiers and no groups; give a table with one row per example")
    kind = wanted.kind or kind_of(pair[2])
    if kind is None:
        raise ValueError(ask_kind(names))
    columns = table.read(pair[:2])
    cells.gaps(table, columns)
    values = [cells.numbers(table, name, columns[name]) for name in pair[:2]]
    return LoadedScores(
        scores=MembershipScores(*values, higher_means_member=kind == "scores"),
        kind=kind,
        source=f"{source.name}, {names}",
        checksums={source.name: source.sha256()},
    )


def _read_two(members: Source, others: Source, wanted: Wanted) -> LoadedScores:
    if members.path == others.path:
        raise ValueError(f"{members.path}: it can hold the members or the non-members, not both")
    parts: list[Part] = []
    for source, side in ((members, True), (others, False)):
        with named(source):
            parts.append(read_part(table_of(source), wanted, side))
    if parts[0].kind != parts[1].kind:
        raise ValueError(
            f"{members.path} holds {parts[0].kind} but {others.path} holds {parts[1].kind}; say which with "
            '--kind scores or --kind losses (in Python kind="scores" or kind="losses")'
        )
    keys = (members.name, others.name) if members.name != others.name else (members.path, others.path)
    with named(members):
        return _loaded(
            parts,
            source=f"members {members.name}, non-members {others.name}",
            checksums=dict(zip(keys, (members.sha256(), others.sha256()), strict=True)),
            warnings=(*_overruled(parts[0]), *_other_measure(members, others, parts)),
        )


def _loaded(parts: list[Part], **facts: Any) -> LoadedScores:
    values = np.concatenate([part.values for part in parts])
    flags = np.concatenate([part.member for part in parts])
    higher = parts[0].kind == "scores"
    order = np.argsort(~flags, kind="stable")  # members first
    return LoadedScores(
        scores=MembershipScores.from_labels(values, flags, higher_means_member=higher),
        kind=parts[0].kind,
        ids=_ordered([part.ids for part in parts], order),
        groups=_ordered([part.groups for part in parts], order),
        **facts,
    )


def _ordered(texts: list[NDArray[Any] | None], order: NDArray[np.intp]) -> NDArray[Any] | None:
    there = [some for some in texts if some is not None]
    return np.concatenate(there)[order] if len(there) == len(texts) else None


def _overruled(part: Part) -> tuple[str, ...]:
    told = None if part.table.bare else kind_of(part.score)
    if told in (None, part.kind):
        return ()
    what = part.table.label(part.score)
    return (f"{what} was read as {part.kind}, as --kind says, although its name points to {told}",)


def _other_measure(members: Source, others: Source, parts: list[Part]) -> tuple[str, ...]:
    first, second = (part.score for part in parts)
    measures = {plain((role_of(name) or ("", name))[1]) for name in (first, second)}
    if len(measures) == 1 or any(part.table.bare for part in parts):
        return ()
    return (
        f"{members.name} holds {first!r} and {others.name} holds {second!r}; check that both are the same "
        "measure",
    )


# ---------------------------------------------------------------- one table


def table_of(source: Source) -> Table:
    """The columns of a file, by the end of its name; standard input is JSON if it begins with a brace.

    Parquet is known by its first bytes.

    Raises:
        ValueError: Another kind of file, or one that cannot be read.
    """
    if source.data[:4] == b"PAR1":
        return arrays.parquet(source.data)
    if source.path == STANDARD_INPUT:
        content = text.decoded(source.data)
        return text.json_lines(content) if text.json_begins(content) else text.delimited(content)
    name = source.name.lower()
    suffix = next((one for one in SUFFIXES if name.removesuffix(".gz").endswith(one)), None)
    if suffix in _BINARY and not name.endswith(".gz"):
        return _BINARY[suffix](source.data)
    if suffix in _JSON:
        return text.json_lines(text.decoded(source.data))
    if suffix in _DELIMITED:
        return text.delimited(text.decoded(source.data))
    raise ValueError(f"expected a file ending in {', '.join(SUFFIXES)}; text may also end in .gz")


@contextmanager
def named(source: Source) -> Iterator[None]:
    """Put the file's name in front of an error, which is kept to one line."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{source.path}: {' '.join(str(error).split())}") from None
