"""Census of natural identifiers: how many of each kind a corpus holds, by subset (the paper's Table 2)."""

import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote_to_bytes

import numpy as np
import pandas as pd

from paperlib.data.text.corpora import CorpusFile, corpus_files
from paperlib.data.text.formats import read_pieces
from paperlib.data.text.pieces import Reading, ReadLog
from paperlib.generators.identifiers import (
    KINDS,
    PAPER_KINDS,
    Candidate,
    Scanner,
    StreamScanner,
    checked_kinds,
    default_engine,
)
from paperlib.io import code_tag, run_sweep

if TYPE_CHECKING:
    from distributed import Client

_UNIT_BYTES = 32 * 2**20
_NOT_VALID = "look-alike: "
_READ = ("documents", "characters", "bytes")
_SKIPPED = ("reason", "number", "example")


@dataclass(frozen=True)
class FilePart:
    """A file as part of a unit of work; size and time tell whether it changed.

    Its path is absolute, the same for every worker, and escaped as in a URL: a name need not be text.
    """

    path: str
    subset: str
    size: int
    modified: int

    @property
    def location(self) -> Path:
        """The path to open."""
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
    """What a corpus holds.

    Attributes:
        counts: One row per subset, kind and form: subset, kind, form, valid, matches, and different, which
            counts values once per subset. Look-alikes have ``valid`` False and the reason as form.
        totals: The same over all subsets, where a value counts once: kind, form, valid, matches, different.
        read: One row per subset: documents, characters, bytes.
        skipped: Files and documents not read, or read with a loss: reason, number, example.
    """

    counts: pd.DataFrame
    totals: pd.DataFrame
    read: pd.DataFrame
    skipped: pd.DataFrame

    def by_kind(self, column: str = "matches", *, kinds: Sequence[str] = PAPER_KINDS) -> pd.DataFrame:
        """Identifiers by subset and kind, as in Table 2: total first, largest subset first.

        Counts all "matches" or "different" ones.
        """
        wanted = self.counts[self.counts["valid"] & self.counts["kind"].isin(kinds)]
        table = wanted.pivot_table(column, "subset", "kind", "sum", fill_value=0)
        table = table.reindex(index=self.read["subset"], columns=list(kinds), fill_value=0).astype(int)
        table.insert(0, "total", table.sum(axis=1))
        table.index.name, table.columns.name = "subset", None
        return table.sort_values("total", ascending=False, kind="stable").reset_index()


def take_census(
    corpora: Iterable[str | Path | CorpusFile],
    *,
    folder: str | Path,
    kinds: Iterable[str] | None = None,
    reading: Reading | None = None,
    engine: str | None = None,
    workers: int = 0,
    client: "Client | None" = None,
    progress: bool = True,
) -> Census:
    """Count identifiers in corpora of any size.

    Guarantee:
        The counts do not depend on workers, engine, blocks or interruptions. Memory is bounded by a block
        per worker (longest lines included) and 8 bytes per different value. After a kill the same call goes
        on with the units that are missing; a changed file is counted again.

    Source:
        Natural identifiers, Section 4 and Table 2.

    >>> import tempfile
    >>> root = Path(tempfile.mkdtemp())
    >>> _ = (root / "sums.txt").write_text("2f6b8d1c90e4a7353b1e64d7f08a5c92  empty")
    >>> int(take_census([root / "sums.txt"], folder=root / "units", progress=False).totals["matches"].sum())
    1
    """
    names = tuple(kind.name for kind in checked_kinds(kinds))
    chosen = engine or default_engine()
    Scanner(checked_kinds(names), chosen)  # an unknown engine is an error here, not in a worker
    units = _units(_files(corpora), names, reading or Reading(), chosen)
    done = run_sweep(
        count_units,
        units,
        folder=folder,
        client=client,
        workers=workers,
        version=code_tag(__name__),
        progress=progress,
    )
    return _added(result for _, result in done)


def _files(corpora: Iterable[str | Path | CorpusFile]) -> list[CorpusFile]:
    found = list[CorpusFile]()
    for corpus in corpora:
        found += [corpus] if isinstance(corpus, CorpusFile) else corpus_files(corpus)
    if not found:
        raise ValueError("corpora: expected at least one corpus with a file, got none")
    return list(dict.fromkeys(found))


def _units(
    files: Iterable[CorpusFile], kinds: tuple[str, ...], reading: Reading, engine: str
) -> list[CensusUnit]:
    units, group, size = list[CensusUnit](), list[FilePart](), 0
    for file in files:
        about = file.path.stat()
        if group and size + about.st_size > _UNIT_BYTES:
            units.append(CensusUnit(tuple(group), kinds, reading, engine))
            group, size = [], 0
        place = quote(os.fsencode(file.path.absolute()))
        group.append(FilePart(place, file.subset, about.st_size, about.st_mtime_ns))
        size += about.st_size
    return [*units, CensusUnit(tuple(group), kinds, reading, engine)]


def count_units(units: Sequence[CensusUnit]) -> list[dict[str, Any]]:
    """The work of one call of the sweep: counts of each unit as arrays."""
    return [_Tally(unit).arrays() for unit in units]


class _Tally:
    """The counts of one unit."""

    def __init__(self, unit: CensusUnit) -> None:
        self.matches: Counter[tuple[str, str, str]] = Counter()
        self.values: dict[tuple[str, str, str], set[int]] = {}
        self.read: dict[str, list[int]] = {}
        self.log = ReadLog()
        scanner = Scanner(checked_kinds(unit.kinds), unit.engine)
        for file in unit.files:
            stream = StreamScanner(scanner)
            for piece in read_pieces(file.location, file.subset, unit.reading, self.log):
                sums = self.read.setdefault(piece.subset, [0, 0, 0])
                size = len(piece.data) - len(piece.separator) * (piece.documents - 1)
                for at, amount in enumerate((piece.documents, piece.characters, size)):
                    sums[at] += amount
                # Separators and piece ends alike are edges; only parts of one document are joined.
                self._add(piece.subset, stream.feed(piece.data, more=piece.more))

    def _add(self, subset: str, found: list[Candidate]) -> None:
        for one in found:
            form = one.form.name if one.form.valid else _NOT_VALID + one.form.name
            key = (subset, one.kind.name, form)
            self.matches[key] += 1
            self.values.setdefault(key, set()).add(_fingerprint(one))

    def arrays(self) -> dict[str, Any]:
        keys = sorted(self.matches)
        values = [np.sort(np.fromiter(self.values[key], dtype=np.uint64)) for key in keys]
        subsets, reasons = sorted(self.read), sorted(self.log.counts)
        return {
            **{name: _texts(key[at] for key in keys) for at, name in enumerate(("subset", "kind", "form"))},
            "matches": np.array([self.matches[key] for key in keys], dtype=np.int64),
            "values": np.concatenate([np.empty(0, dtype=np.uint64), *values]),
            "different": np.array([len(one) for one in values], dtype=np.int64),
            "read_subset": _texts(subsets),
            "read": np.array([self.read[name] for name in subsets], dtype=np.int64).reshape(-1, 3),
            "reason": _texts(reasons),
            "number": np.array([self.log.counts[reason] for reason in reasons], dtype=np.int64),
            "example": _texts(self.log.examples[reason] for reason in reasons),
        }


def _texts(values: Iterable[str]) -> Any:
    return np.array(list(values), dtype=np.str_)


def _fingerprint(one: Candidate) -> int:
    key = one.kind.key(one.value).encode()
    return int.from_bytes(hashlib.blake2b(key, digest_size=8).digest())


_Place = tuple[str, str, str]


def _added(results: Iterator[dict[str, Any]]) -> Census:
    found: dict[_Place, tuple[int, Any]] = {}
    totals: dict[_Place, tuple[int, Any]] = {}
    read, skipped = list[pd.DataFrame](), list[pd.DataFrame]()
    for result in results:
        rows = zip(*(result[name].tolist() for name in ("subset", "kind", "form", "matches")), strict=True)
        edges = np.cumsum(result["different"])[:-1]
        for (subset, kind, form, count), values in zip(rows, np.split(result["values"], edges), strict=False):
            _put(found, (subset, kind, form), count, values)
        read.append(pd.DataFrame(result["read"], columns=list(_READ)).assign(subset=result["read_subset"]))
        skipped.append(pd.DataFrame({name: result[name] for name in _SKIPPED}))
    for (_, kind, form), part in found.items():
        _put(totals, ("", kind, form), *part)
    return Census(
        counts=_frame(found),
        totals=_frame(totals).drop(columns="subset"),
        read=pd.concat(read).groupby("subset").sum().reset_index(),
        skipped=pd.concat(skipped).groupby("reason").agg({"number": "sum", "example": "min"}).reset_index(),
    )


def _put(found: dict[_Place, tuple[int, Any]], place: _Place, count: int, values: Any) -> None:
    before, seen = found.get(place, (0, values[:0]))
    found[place] = before + count, np.union1d(seen, values)


def _frame(found: dict[_Place, tuple[int, Any]]) -> pd.DataFrame:
    order = list(KINDS)
    rows = [
        (subset, kind, form.removeprefix(_NOT_VALID), not form.startswith(_NOT_VALID), count, len(values))
        for (subset, kind, form), (count, values) in sorted(
            found.items(), key=lambda item: (item[0][0], order.index(item[0][1]), item[0][2])
        )
    ]
    return pd.DataFrame(rows, columns=["subset", "kind", "form", "valid", "matches", "different"])
