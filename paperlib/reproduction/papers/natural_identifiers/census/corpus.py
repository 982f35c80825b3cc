"""Census of natural identifiers: how many of each kind a corpus holds, by subset (the paper's Table
2).
"""

import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote_to_bytes

import numpy as np
import pandas as pd

from paperlib.data.text.corpora import CorpusFile, corpus_files
from paperlib.data.text.formats import read_pieces
from paperlib.data.text.pieces import Piece, Reading, ReadLog
from paperlib.generators.identifiers import KINDS, PAPER_KINDS
from paperlib.generators.identifiers.kinds import checked_kinds
from paperlib.generators.identifiers.scan import Candidate, Scanner, StreamScanner, default_engine
from paperlib.reproduction.sweeps import run_sweep

_UNIT_BYTES = 32 * 2**20
_NOT_VALID = "look-alike: "  # before the form of a value that only looks like an identifier
_KEY = ("subset", "kind", "form")
_READ = ("documents", "characters", "bytes")
_SKIPPED = ("reason", "number", "example")
_Key = tuple[str, str, str]  # the fields of _KEY


@dataclass(frozen=True)
class FilePart:
    """A file as part of a unit of work; size and time tell whether it changed."""

    path: str  # absolute, and escaped as in a URL: a name need not be text
    subset: str
    size: int
    modified: int

    @property
    def location(self) -> Path:
        """The path as the system has it."""
        return Path(os.fsdecode(unquote_to_bytes(self.path)))


@dataclass(frozen=True)
class CensusUnit:
    """Files that are counted in one go: one large file, or small ones up to 32 MiB together."""

    files: tuple[FilePart, ...]
    kinds: tuple[str, ...]
    reading: Reading
    engine: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Census:
    """What a corpus holds."""

    #: by subset, kind and form: valid, matches, and different, which counts values once per subset;
    #: a look-alike is not valid, and has the reason as form
    counts: pd.DataFrame
    totals: pd.DataFrame  #: the same over all subsets, where a value counts once
    read: pd.DataFrame  #: by subset: documents, characters, bytes
    skipped: pd.DataFrame  #: what was not read, or read with a loss: reason, number, example

    def by_kind(
        self, column: str = "matches", *, kinds: Sequence[str] = PAPER_KINDS
    ) -> pd.DataFrame:
        """Identifiers as in Table 2: a row for each subset, those with most first, and a column
        with the number of each kind, behind their "total".

        Args:
            column: "matches" counts every place, "different" a value once in a subset.
            kinds: Names of the kinds.
        """
        valid = self.counts[self.counts["valid"] & self.counts["kind"].isin(kinds)]
        table = valid.pivot_table(column, "subset", "kind", "sum", fill_value=0)
        table = table.reindex(index=self.read["subset"], columns=list(kinds), fill_value=0)
        table = table.astype(int)
        table.insert(0, "total", table.sum(axis=1))
        table.index.name = "subset"
        table.columns.name = None
        return table.sort_values("total", ascending=False, kind="stable").reset_index()


def take_census(
    corpora: Iterable[str | Path | CorpusFile],
    *,
    folder: str | Path,
    kinds: Iterable[str] | None = None,
    reading: Reading | None = None,
    engine: str | None = None,
    workers: int = 0,
) -> Census:
    """Count the identifiers of corpora.

    Args:
        corpora: Names, files or folders, as for `corpus_files`.
        folder: Where counts are kept: a run that was stopped goes on, and a changed file is counted
            again.
        kinds: Names of the kinds; None takes all.
        reading: How files are read.
        engine: Of the scan; None takes the fastest that is installed.
        workers: Processes; 0 counts in this one.

    Raises:
        ValueError: No file, an unknown kind, or an unknown engine.
    """
    names = tuple(kind.name for kind in checked_kinds(kinds))
    engine = engine or default_engine()
    Scanner(checked_kinds(names), engine)  # an unknown engine is an error here, not in a worker
    files: list[CorpusFile] = []
    for corpus in corpora:
        files += [corpus] if isinstance(corpus, CorpusFile) else corpus_files(corpus)
    if not files:
        raise ValueError("corpora: expected at least one corpus with a file, got none")
    reading = reading or Reading()
    units = [CensusUnit(group, names, reading, engine) for group in _groups(files)]
    results = run_sweep(count_units, units, folder=folder, workers=workers)
    return _census(result for _, result in results)


def _groups(files: Iterable[CorpusFile]) -> list[tuple[FilePart, ...]]:
    """The files, each once, in the groups of the units of work."""
    groups: list[list[FilePart]] = []
    size = 0  # of the last group
    for file in dict.fromkeys(files):
        status = file.path.stat()
        if not groups or size + status.st_size > _UNIT_BYTES:
            groups.append([])
            size = 0
        path = quote(os.fsencode(file.path.absolute()))
        groups[-1].append(FilePart(path, file.subset, status.st_size, status.st_mtime_ns))
        size += status.st_size
    return [tuple(group) for group in groups]


def count_units(units: Sequence[CensusUnit]) -> list[dict[str, Any]]:
    """The work of one call of the sweep: counts of each unit as arrays."""
    return [count_unit(unit) for unit in units]


def count_unit(unit: CensusUnit) -> dict[str, Any]:
    """Counts of one unit, as the arrays of `_UnitCounts.arrays` and of `_skipped_arrays`."""
    counts = _UnitCounts()
    log = ReadLog()
    scanner = Scanner(checked_kinds(unit.kinds), unit.engine)
    for file in unit.files:
        stream = StreamScanner(scanner)
        for piece in read_pieces(file.location, file.subset, unit.reading, log):
            counts.add_piece(piece)
            # Separators and piece ends alike are edges; only parts of one document are joined.
            for candidate in stream.feed(piece.data, more=piece.more):
                counts.add_candidate(piece.subset, candidate)
    return counts.arrays() | _skipped_arrays(log)


class _UnitCounts:
    """Counts of one unit while it is read."""

    def __init__(self) -> None:
        self._matches = Counter[_Key]()
        self._values: dict[_Key, set[int]] = {}  # hashed, so that memory stays small
        self._read: dict[str, list[int]] = {}  # by subset: the fields of _READ

    def add_piece(self, piece: Piece) -> None:
        """Count the documents of a piece, their characters, and their bytes without separators."""
        size = len(piece.data) - len(piece.separator) * (piece.documents - 1)
        sums = self._read.setdefault(piece.subset, [0, 0, 0])
        sums[0] += piece.documents
        sums[1] += piece.characters
        sums[2] += size

    def add_candidate(self, subset: str, candidate: Candidate) -> None:
        """Count a place of an identifier or a look-alike in a subset, and its value, if it is new
        there.
        """
        form = candidate.form.name if candidate.form.valid else _NOT_VALID + candidate.form.name
        key = (subset, candidate.kind.name, form)
        self._matches[key] += 1
        value = candidate.kind.key(candidate.value).encode()
        digest = hashlib.blake2b(value, digest_size=8).digest()
        self._values.setdefault(key, set()).add(int.from_bytes(digest))

    def arrays(self) -> dict[str, Any]:
        """The counts as arrays, for the cache, a place for each of k keys in their order.

        "subset", "kind", "form", "matches" and "different" (numbers of places and of values), shape
        (k,); "values", the hashed values of all keys one after the other, sorted within each;
        "read_subset", (s,), and "read", (s, 3): documents, characters and bytes of each subset.
        """
        keys = sorted(self._matches)
        subsets = sorted(self._read)
        values = [np.sort(np.fromiter(self._values[key], dtype=np.uint64)) for key in keys]
        names = {name: _texts(key[index] for key in keys) for index, name in enumerate(_KEY)}
        read = np.array([self._read[name] for name in subsets], dtype=np.int64)
        return names | {
            "matches": np.array([self._matches[key] for key in keys], dtype=np.int64),
            "values": np.concatenate([np.empty(0, dtype=np.uint64), *values]),
            "different": np.array([len(of_key) for of_key in values], dtype=np.int64),
            "read_subset": _texts(subsets),
            "read": read.reshape(-1, len(_READ)),
        }


def _skipped_arrays(log: ReadLog) -> dict[str, Any]:
    """What was not read, as arrays with a place for each reason: "reason", "number" (how often) and
    "example".
    """
    reasons = sorted(log.counts)
    return {
        "reason": _texts(reasons),
        "number": np.array([log.counts[reason] for reason in reasons], dtype=np.int64),
        "example": _texts(log.examples[reason] for reason in reasons),
    }


def _texts(values: Iterable[str]) -> Any:
    """An array of texts, also where there are none."""
    return np.array(list(values), dtype=np.str_)


_Counts = dict[_Key, tuple[int, Any]]
"""Number of matches and sorted values, by subset, kind and form."""


def _census(results: Iterable[dict[str, Any]]) -> Census:
    """The counts of all units together, from their arrays of `count_unit`."""
    counts: _Counts = {}
    read: list[pd.DataFrame] = []
    skipped: list[pd.DataFrame] = []
    for result in results:
        for key, matches, values in _rows(result):
            _add(counts, key, matches, values)
        sizes = pd.DataFrame(result["read"], columns=list(_READ))
        read.append(sizes.assign(subset=result["read_subset"]))
        skipped.append(pd.DataFrame({name: result[name] for name in _SKIPPED}))
    totals: _Counts = {}  # with "" in the place of the subset
    for (_, kind, form), (matches, values) in counts.items():
        _add(totals, ("", kind, form), matches, values)
    by_reason = pd.concat(skipped).groupby("reason").agg({"number": "sum", "example": "min"})
    return Census(
        counts=_frame(counts),
        totals=_frame(totals).drop(columns="subset"),
        read=pd.concat(read).groupby("subset").sum().reset_index(),
        skipped=by_reason.reset_index(),
    )


def _rows(result: dict[str, Any]) -> Iterator[tuple[_Key, int, Any]]:
    """Key, number of matches and sorted hashed values of each key in the arrays of `count_unit`."""
    ends = np.cumsum(result["different"])
    subsets, kinds, forms, matches = (result[name].tolist() for name in (*_KEY, "matches"))
    for index, count in enumerate(matches):
        key = (subsets[index], kinds[index], forms[index])
        start = ends[index - 1] if index else 0
        yield key, count, result["values"][start : ends[index]]


def _add(counts: _Counts, key: _Key, matches: int, values: Any) -> None:
    """Add matches; a value that was there before counts once."""
    before, seen = counts.get(key, (0, values[:0]))
    counts[key] = before + matches, np.union1d(seen, values)


def _frame(counts: _Counts) -> pd.DataFrame:
    """One row per subset, kind and form: by subset, in the order of our kinds, by form."""
    kinds = list(KINDS)
    keys = sorted(counts, key=lambda key: (key[0], kinds.index(key[1]), key[2]))
    rows: list[tuple[Any, ...]] = []
    for key in keys:
        subset, kind, form = key
        matches, values = counts[key]
        valid = not form.startswith(_NOT_VALID)
        name = form.removeprefix(_NOT_VALID)
        rows.append((subset, kind, name, valid, matches, len(values)))
    return pd.DataFrame(rows, columns=["subset", "kind", "form", "valid", "matches", "different"])
