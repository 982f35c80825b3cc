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
from paperlib.data.text.pieces import Reading, ReadLog
from paperlib.generators.identifiers import (
    KINDS,
    PAPER_KINDS,
    Scanner,
    StreamScanner,
    checked_kinds,
    default_engine,
)
from paperlib.io import run_sweep

_UNIT_BYTES = 32 * 2**20
_NOT_VALID = "look-alike: "
_READ = ("documents", "characters", "bytes")


@dataclass(frozen=True)
class FilePart:
    """A file as part of a unit of work; size and time tell whether it changed."""

    path: str  # absolute, and escaped as in a URL: a name need not be text
    subset: str
    size: int
    modified: int

    @property
    def location(self) -> Path:
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
        """Identifiers by subset and kind as in Table 2: all "matches", or "different" ones."""
        wanted = self.counts[self.counts["valid"] & self.counts["kind"].isin(kinds)]
        table = wanted.pivot_table(column, "subset", "kind", "sum", fill_value=0)
        table = table.reindex(index=self.read["subset"], columns=list(kinds), fill_value=0).astype(
            int
        )
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
) -> Census:
    """Count identifiers; a run that was stopped goes on, and a changed file is counted again."""
    names = tuple(kind.name for kind in checked_kinds(kinds))
    chosen = engine or default_engine()
    Scanner(checked_kinds(names), chosen)  # an unknown engine is an error here, not in a worker
    files = list[CorpusFile]()
    for corpus in corpora:
        files += [corpus] if isinstance(corpus, CorpusFile) else corpus_files(corpus)
    if not files:
        raise ValueError("corpora: expected at least one corpus with a file, got none")
    groups, size = list[list[FilePart]](), 0
    for file in dict.fromkeys(files):
        about = file.path.stat()
        if not groups or size + about.st_size > _UNIT_BYTES:
            groups.append([])
            size = 0
        place = quote(os.fsencode(file.path.absolute()))
        groups[-1].append(FilePart(place, file.subset, about.st_size, about.st_mtime_ns))
        size += about.st_size
    units = [CensusUnit(tuple(group), names, reading or Reading(), chosen) for group in groups]
    return _added(
        result for _, result in run_sweep(count_units, units, folder=folder, workers=workers)
    )


def count_units(units: Sequence[CensusUnit]) -> list[dict[str, Any]]:
    """The work of one call of the sweep: counts of each unit as arrays."""
    return [count_unit(unit) for unit in units]


def count_unit(unit: CensusUnit) -> dict[str, Any]:
    """Counts of one unit, as arrays."""
    matches, found = Counter[tuple[str, str, str]](), dict[tuple[str, str, str], set[int]]()
    read, log = dict[str, list[int]](), ReadLog()
    scanner = Scanner(checked_kinds(unit.kinds), unit.engine)
    for file in unit.files:
        stream = StreamScanner(scanner)
        for piece in read_pieces(file.location, file.subset, unit.reading, log):
            sums = read.setdefault(piece.subset, [0, 0, 0])
            size = len(piece.data) - len(piece.separator) * (piece.documents - 1)
            for at, amount in enumerate((piece.documents, piece.characters, size)):
                sums[at] += amount
            # Separators and piece ends alike are edges; only parts of one document are joined.
            for one in stream.feed(piece.data, more=piece.more):
                form = one.form.name if one.form.valid else _NOT_VALID + one.form.name
                key = (piece.subset, one.kind.name, form)
                matches[key] += 1
                value = hashlib.blake2b(one.kind.key(one.value).encode(), digest_size=8).digest()
                found.setdefault(key, set()).add(int.from_bytes(value))
    keys, subsets, reasons = sorted(matches), sorted(read), sorted(log.counts)
    values = [np.sort(np.fromiter(found[key], dtype=np.uint64)) for key in keys]
    return {
        **{
            name: _texts(key[at] for key in keys)
            for at, name in enumerate(("subset", "kind", "form"))
        },
        "matches": np.array([matches[key] for key in keys], dtype=np.int64),
        "values": np.concatenate([np.empty(0, dtype=np.uint64), *values]),
        "different": np.array([len(one) for one in values], dtype=np.int64),
        "read_subset": _texts(subsets),
        "read": np.array([read[name] for name in subsets], dtype=np.int64).reshape(-1, 3),
        "reason": _texts(reasons),
        "number": np.array([log.counts[reason] for reason in reasons], dtype=np.int64),
        "example": _texts(log.examples[reason] for reason in reasons),
    }


def _texts(values: Iterable[str]) -> Any:
    return np.array(list(values), dtype=np.str_)


_Counts = dict[tuple[str, str, str], tuple[int, Any]]
"""Number of matches and sorted values, by subset, kind and form."""


def _added(results: Iterator[dict[str, Any]]) -> Census:
    counts, totals = _Counts(), _Counts()
    read, skipped = list[pd.DataFrame](), list[pd.DataFrame]()
    for result in results:
        rows = zip(
            *(result[name].tolist() for name in ("subset", "kind", "form", "matches")), strict=True
        )
        edges = np.cumsum(result["different"])[:-1]
        for (subset, kind, form, count), values in zip(
            rows, np.split(result["values"], edges), strict=False
        ):
            _put(counts, (subset, kind, form), count, values)
        read.append(
            pd.DataFrame(result["read"], columns=list(_READ)).assign(subset=result["read_subset"])
        )
        skipped.append(
            pd.DataFrame({name: result[name] for name in ("reason", "number", "example")})
        )
    for (_, kind, form), part in counts.items():
        _put(totals, ("", kind, form), *part)
    return Census(
        counts=_frame(counts),
        totals=_frame(totals).drop(columns="subset"),
        read=pd.concat(read).groupby("subset").sum().reset_index(),
        skipped=pd.concat(skipped)
        .groupby("reason")
        .agg({"number": "sum", "example": "min"})
        .reset_index(),
    )


def _put(counts: _Counts, place: tuple[str, str, str], count: int, values: Any) -> None:
    before, seen = counts.get(place, (0, values[:0]))
    counts[place] = before + count, np.union1d(seen, values)


def _frame(counts: _Counts) -> pd.DataFrame:
    order = list(KINDS)
    rows = [
        (
            subset,
            kind,
            form.removeprefix(_NOT_VALID),
            not form.startswith(_NOT_VALID),
            count,
            len(values),
        )
        for (subset, kind, form), (count, values) in sorted(
            counts.items(), key=lambda item: (item[0][0], order.index(item[0][1]), item[0][2])
        )
    ]
    return pd.DataFrame(rows, columns=["subset", "kind", "form", "valid", "matches", "different"])
