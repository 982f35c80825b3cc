"""Reading membership scores from CSV, Parquet, NPZ and NPY files, a million rows in about a second."""

import csv
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import compute as pc
from pyarrow import csv as arrow_csv
from pyarrow import parquet

from paperlib.core import FloatArray, MembershipScores, check_choice, parse_flag

SCORE_NAMES = ("score", "scores", "loss", "losses")
MEMBER_NAMES = ("member", "membership", "is_member")
KINDS = ("scores", "losses")
TEXT_SUFFIXES = (".csv", ".tsv", ".txt", ".csv.gz")
SUFFIXES = (*TEXT_SUFFIXES, ".parquet", ".pq", ".npz", ".npy")


@dataclass(frozen=True, kw_only=True)
class LoadedScores:
    """Scores read from files, and how they were read.

    Attributes:
        scores: The scores as given; ``scores.higher_means_member`` is False for losses.
        kind: "scores" (higher means member) or "losses" (lower means member).
        source: Files and columns that were used, as text.
    """

    scores: MembershipScores
    kind: str
    source: str


def read_scores(
    path: str | PathLike[str],
    nonmember_path: str | PathLike[str] | None = None,
    *,
    score_column: str | None = None,
    member_column: str | None = None,
    kind: str | None = None,
) -> LoadedScores:
    """Read scores or losses with their membership from one file, or from one file per class.

    Args:
        path: CSV (also TSV), Parquet, NPZ or NPY. With one file: a score or loss column and a
            membership column (1/0, true/false, in/out, member/nonmember), or an NPZ with arrays
            ``member`` and ``nonmember``. With two: the members' scores.
        nonmember_path: The non-members' scores, in the same form.
        score_column: Name of the score column; by default the one called score or loss.
        member_column: Name of the membership column; by default member, membership or is_member.
        kind: "scores" if higher means member, "losses" if lower does; by default told by the
            column's name.

    Raises:
        ValueError: An unreadable or empty file, a missing or doubtful column, text where a number
            belongs, an unknown membership value, NaN or infinite scores, one class only. The
            message names the file and what to do.
        FileNotFoundError: There is no such file.
    """
    if kind is not None:
        check_choice("kind", kind, KINDS)
    if nonmember_path is not None:
        return _read_pair(Path(path), Path(nonmember_path), score_column, kind)
    return _read_one(Path(path), score_column, member_column, kind)


def _read_one(
    path: Path, score_column: str | None, member_column: str | None, kind: str | None
) -> LoadedScores:
    table = _read_table(path)
    if score_column is None and member_column is None and {"member", "nonmember"} <= set(table.columns):
        given = kind or "scores"
        arrays = [table.numbers("member"), table.numbers("nonmember")]
        scores = _checked(path, lambda: MembershipScores(*arrays, higher_means_member=given == "scores"))
        return LoadedScores(scores=scores, kind=given, source=f"{path.name}, arrays 'member' and 'nonmember'")
    score = table.pick("score", score_column, SCORE_NAMES, option="--score-column")
    member = table.pick("membership", member_column, MEMBER_NAMES, option="--member-column")
    if score == member:
        raise ValueError(f"{path}: the score and the membership cannot both be column {score!r}")
    given = kind or kind_of(score)
    numbers, flags = table.numbers(score), table.flags(member)
    scores = _checked(
        path, lambda: MembershipScores.from_labels(numbers, flags, higher_means_member=given == "scores")
    )
    return LoadedScores(scores=scores, kind=given, source=f"{path.name}, columns {score!r} and {member!r}")


def _read_pair(members: Path, others: Path, score_column: str | None, kind: str | None) -> LoadedScores:
    arrays: list[FloatArray] = []
    kinds: list[str] = []
    for path in (members, others):
        table = _read_table(path)
        single = table.columns[0] if len(table.columns) == 1 and score_column is None else None
        column = single or table.pick("score", score_column, SCORE_NAMES, option="--score-column")
        arrays.append(table.numbers(column))
        kinds.append(kind or kind_of(column))
    if kinds[0] != kinds[1]:
        raise ValueError(
            f"{members} holds {kinds[0]} but {others} holds {kinds[1]}; "
            "say which with --kind scores or --kind losses"
        )
    scores = _checked(members, lambda: MembershipScores(*arrays, higher_means_member=kinds[0] == "scores"))
    return LoadedScores(
        scores=scores, kind=kinds[0], source=f"members {members.name}, non-members {others.name}"
    )


def kind_of(column: str) -> str:
    """Direction of a column by its name: "losses" or "scores".

    >>> kind_of("val_loss"), kind_of("score")
    ('losses', 'scores')
    """
    return "losses" if "loss" in column.lower() else "scores"


def _checked(path: Path, build: Any) -> MembershipScores:
    try:
        return build()
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


@dataclass(frozen=True)
class _Table:
    """Named columns of one file, as Arrow or NumPy arrays; lengths may differ in an NPZ."""

    path: Path
    data: Mapping[str, Any]

    @property
    def columns(self) -> list[str]:
        return list(self.data)

    def pick(self, what: str, wanted: str | None, usual: Iterable[str], *, option: str) -> str:
        """The column asked for, else the only one with a usual name."""
        listed = ", ".join(map(repr, self.columns)) or "none"
        if wanted is not None:
            if wanted not in self.data:
                raise ValueError(f"{self.path}: no column {wanted!r}; the columns are {listed}")
            return wanted
        matching = [name for name in self.columns if name.lower() in usual]
        if len(matching) == 1:
            return matching[0]
        if matching:
            both = " and ".join(map(repr, matching))
            raise ValueError(f"{self.path}: {both} could each hold the {what}; choose one with {option}")
        raise ValueError(
            f"{self.path}: no {what} column named {' or '.join(map(repr, usual))}; the columns are {listed} "
            f"(the first line of a CSV must name them); name another with {option}"
        )

    def numbers(self, column: str) -> FloatArray:
        """A column as floats, refusing text and empty cells with the row they stand in."""
        values = self.data[column]
        if isinstance(values, np.ndarray):
            if values.dtype.kind not in "biuf":
                raise ValueError(f"{self.path}: column {column!r} holds {values.dtype} values, not numbers")
            return np.asarray(values, dtype=np.float64)
        if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
            return _parse_numbers(self.path, column, values)
        if values.null_count:
            raise ValueError(f"{self.path}: column {column!r} has {values.null_count} empty cells")
        if not (pa.types.is_floating(values.type) or pa.types.is_integer(values.type)):
            raise ValueError(f"{self.path}: column {column!r} holds {values.type} values, not numbers")
        return values.to_numpy().astype(np.float64)

    def flags(self, column: str) -> np.ndarray:
        """A column as 0/1; each distinct spelling is read once."""
        values = self.data[column]
        if isinstance(values, np.ndarray):
            spelled, where = np.unique(values, return_inverse=True)
            texts = [str(item) for item in spelled.tolist()]
        else:
            encoded = pc.cast(values, pa.string()).combine_chunks().dictionary_encode(null_encoding="encode")
            texts = ["" if item is None else item for item in encoded.dictionary.to_pylist()]
            where = encoded.indices.to_numpy()
        table = [parse_flag(text, f"{self.path}: column {column!r}") for text in texts]
        return np.array(table, dtype=np.int64)[where.ravel()]


def _parse_numbers(path: Path, column: str, texts: Any) -> FloatArray:
    trimmed = pc.call_function("utf8_trim_whitespace", [texts])
    try:
        numbers = pc.cast(trimmed, pa.float64())
    except pa.ArrowInvalid:
        row, bad = next((at, text) for at, text in enumerate(trimmed.to_pylist(), 1) if not _is_number(text))
        shown = "nothing" if not bad else repr(bad)
        raise ValueError(f"{path}: column {column!r} holds {shown}, not a number, in row {row}") from None
    return numbers.to_numpy()


def _is_number(text: str | None) -> bool:
    try:
        pc.cast(pa.array([text or ""]), pa.float64())
    except pa.ArrowInvalid:
        return False
    return True


def _read_table(path: Path) -> _Table:
    if not path.is_file():
        raise FileNotFoundError(f"{path}: there is no such file")
    name = path.name.lower()
    try:
        if name.endswith(TEXT_SUFFIXES):
            data = _read_text(path)
        elif name.endswith((".parquet", ".pq")):
            table = parquet.read_table(path)
            data = dict(zip(table.column_names, table.columns, strict=True))
        elif name.endswith(".npz"):
            data = _read_npz(path)
        elif name.endswith(".npy"):
            data = _read_npy(path)
        else:
            raise ValueError(f"{path}: expected a file ending in {', '.join(SUFFIXES)}")
    except UnicodeDecodeError:
        raise ValueError(f"{path}: expected text in UTF-8; save the file with that encoding") from None
    except PermissionError:
        raise
    except (pa.ArrowInvalid, pa.ArrowKeyError, OSError) as error:
        raise ValueError(f"{path}: cannot be read: {str(error).splitlines()[0]}") from None
    if not data or not any(len(column) for column in data.values()):
        raise ValueError(f"{path}: there are no rows")
    return _Table(path, data)


def _read_text(path: Path) -> dict[str, Any]:
    # Every column is read as text: only so can a wrong cell be quoted with its row.
    with pa.input_stream(str(path), compression="detect") as stream:
        head = stream.read(65536).decode("utf-8-sig", errors="replace")
    if not head.strip():
        raise ValueError(f"{path}: the file is empty")
    first = head.splitlines()[0]
    delimiter = max(",;\t", key=first.count)
    written = next(csv.reader([first], delimiter=delimiter))
    names = [name.strip() for name in written]
    table = arrow_csv.read_csv(
        str(path),
        parse_options=arrow_csv.ParseOptions(delimiter=delimiter),
        convert_options=arrow_csv.ConvertOptions(
            column_types={name: pa.string() for name in written}, strings_can_be_null=False
        ),
    )
    if len(set(names)) < len(names):
        raise ValueError(f"{path}: two columns have the same name in {', '.join(map(repr, names))}")
    return {name: column.cast(pa.string()) for name, column in zip(names, table.columns, strict=True)}


def _read_npz(path: Path) -> dict[str, Any]:
    if not zipfile.is_zipfile(path):
        raise ValueError(f"{path}: this is not an NPZ file")
    with _loaded(path) as archive:
        return {name: _vector(path, _array(path, archive, name), name) for name in archive.files}


def _read_npy(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        if file.read(6) != b"\x93NUMPY":
            raise ValueError(f"{path}: this is not an NPY file")
    values = _loaded(path)
    if values.dtype.names:
        return {name: _vector(path, values[name], name) for name in values.dtype.names}
    return {"score": _vector(path, values, "the array")}


def _loaded(path: Path) -> Any:
    try:
        return np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise ValueError(f"{path}: cannot be read: {error}") from None


def _array(path: Path, archive: Any, name: str) -> np.ndarray:
    try:
        return archive[name]
    except ValueError:
        raise ValueError(f"{path}: array {name!r} holds Python objects; save numbers instead") from None


def _vector(path: Path, values: np.ndarray, name: str) -> np.ndarray:
    if values.ndim != 1:
        raise ValueError(f"{path}: {name} has shape {values.shape}; expected one value per example")
    return values
