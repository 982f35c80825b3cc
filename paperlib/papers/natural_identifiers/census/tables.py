"""Tables beside a census: the paper's counts, counts by other means, samples of identifiers, and speed."""

import itertools
import re
import time
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pandas as pd

from paperlib.data.text.corpora import CorpusFile, corpus_files, installed_text
from paperlib.data.text.formats import read_pieces
from paperlib.data.text.pieces import Piece, Reading, ReadLog
from paperlib.generators.identifiers import (
    KINDS,
    PAPER_KINDS,
    Identifier,
    Scanner,
    StreamScanner,
    checked_kinds,
)
from paperlib.papers.natural_identifiers.census.corpus import Census
from paperlib.report import paper_table

_PAPER_COLUMNS = dict(
    zip(
        ("sha1", "md5", "sha256", "java_serialization", "sha512", "ethereum_wallet"), PAPER_KINDS, strict=True
    )
)
# The paper's patterns with our boundaries, written apart from those of the package.
_PLAIN = {
    "md5": r"[0-9a-fA-F]{32}",
    "sha1": r"[0-9a-fA-F]{40}",
    "sha256": r"[0-9a-fA-F]{64}",
    "sha512": r"[0-9a-fA-F]{128}",
    "ethereum": r"0x[0-9a-fA-F]{40}",
    "serial_version_uid": r"serialVersionUID[ \t]*=[ \t]*-?[0-9]{15,19}L",
}
_PILE = {
    ("github", "Github"): "pile test github",
    ("stackexchange", "StackExchange"): "pile test stackexchange",
    ("pile_cc", "Pile-CC"): "pile test pile cc",
    ("hackernews", "HackerNews"): "pile test hackernews",
    ("ubuntu_irc", "Ubuntu IRC"): "pile test ubuntuirc",
    ("wikipedia", "Wikipedia (en)"): "pile test wikipediaen",
    ("pubmed_abstracts", "PubMed Abstracts"): "",
    ("nih_exporter", "NIH ExPorter"): "",
    ("uspto_backgrounds", "USPTO Backgrounds"): "",
    ("philpapers", "PhilPapers"): "",
    ("europarl", "EuroParl"): "",
    ("dm_mathematics", "DM Mathematics"): "",
}
_PAPERS = (("pile_train", "pile", "train"), ("pile_test", "pile", "test"), ("dolma", "dolma", "train"))
PILE_SUBSETS = {name: printed for names, printed in _PILE.items() for name in names}
"""Subsets of the Pile's test part, by both names, and their names in Table 2; empty where it has none."""


def paper_census() -> pd.DataFrame:
    """Table 2 as printed, with our names of the kinds: dataset, corpus, split, total, and the kinds."""
    table = paper_table("nid_table02").rename(columns=_PAPER_COLUMNS)
    return table[["dataset", "corpus", "split", "total", *PAPER_KINDS]]


def beside_the_paper(by_subset: pd.DataFrame) -> pd.DataFrame:
    """One row per kind: different identifiers here, in the paper's corpora, and in all of these (paper)."""
    printed = paper_census()
    printed = printed[~printed["dataset"].str.contains("all subsets")]
    columns = ["total", *PAPER_KINDS]
    frame = pd.DataFrame({"kind": ["all kinds", *PAPER_KINDS], "here": by_subset[columns].sum().tolist()})
    for name, corpus, split in _PAPERS:
        chosen = printed[(printed["corpus"] == corpus) & (printed["split"] == split)]
        frame[name] = chosen[columns].sum().tolist()
    return frame.assign(paper=printed[columns].sum().tolist())


def kind_shares(filtered: pd.DataFrame, subsets: Sequence[str]) -> pd.DataFrame:
    """Percent of the identifiers that are of each of the paper's kinds: columns kind, here, paper."""
    kinds, printed = list(PAPER_KINDS), paper_census()
    ours = filtered[kinds].sum()
    theirs = printed[printed["dataset"].isin([PILE_SUBSETS[name] for name in subsets])][kinds].sum()
    share = {"here": 100 * ours / max(1, ours.sum()), "paper": 100 * theirs / max(1, theirs.sum())}
    return pd.DataFrame(share).rename_axis("kind").reset_index()


def look_alikes(totals: pd.DataFrame) -> pd.DataFrame:
    """One row per kind: kind, identifiers and look_alikes (different values), why."""
    rows = []
    for kind, here in totals.groupby("kind", sort=False):
        valid = here["valid"].astype(bool)
        failed = here[~valid]
        why = [f"{form} ({number})" for form, number in zip(failed["form"], failed["different"], strict=True)]
        row = {"kind": kind, "identifiers": int(here.loc[valid, "different"].sum())}
        rows.append(row | {"look_alikes": int(failed["different"].sum()), "why": ", ".join(why) or "–"})
    return pd.DataFrame(rows)


def census_by_subset(census: Census) -> pd.DataFrame:
    """One row per subset: its size, different identifiers of the paper's kinds, and of all others."""
    if census.read.empty:
        rows = census.skipped.itertuples(index=False)
        reasons = "; ".join(f"{row.reason}: {row.number}, such as {row.example}" for row in rows)
        raise ValueError(f"census: no document could be read ({reasons})")
    others = [kind for kind in KINDS if kind not in PAPER_KINDS]
    table = census.by_kind("different").set_index("subset")
    table["other_kinds"] = census.by_kind("different", kinds=others).set_index("subset")["total"]
    table.insert(0, "matches", census.by_kind(kinds=list(KINDS)).set_index("subset")["total"])
    sizes = census.read.set_index("subset")[["documents", "characters"]]
    return sizes.join(table).sort_values(["total", "matches"], ascending=False, kind="stable").reset_index()


def plain_counts(
    files: Iterable[CorpusFile], *, characters: int, reading: Reading | None = None
) -> tuple[dict[str, int], dict[str, int]]:
    """Matches of each kind in the first characters, look-alikes included: ours, and by plain expressions."""
    ours, plain, left = dict.fromkeys(_PLAIN, 0), dict.fromkeys(_PLAIN, 0), characters
    scanner = Scanner(checked_kinds(PAPER_KINDS))
    expressions = {
        kind: re.compile(rf"(?<![0-9A-Za-z_]){pattern}(?![0-9A-Za-z_])", re.ASCII)
        for kind, pattern in _PLAIN.items()
    }
    for piece in _pieces(files, reading):
        for one in scanner.scan(piece.data):
            ours[one.kind.name] += 1
        text = piece.data.decode("utf-8", "replace")
        for kind, expression in expressions.items():
            plain[kind] += sum(1 for _ in expression.finditer(text))
        left -= piece.characters
        if left <= 0:
            break
    return ours, plain


def sample_identifiers(
    files: Iterable[CorpusFile], *, per_kind: int, reading: Reading | None = None, seed: int = 0
) -> list[Identifier]:
    """A random sample of the different identifiers, so many of each kind at most; places mean nothing."""
    different: dict[str, dict[str, str]] = {name: {} for name in KINDS}
    scanner = Scanner(checked_kinds(None))
    for file in files:
        stream = StreamScanner(scanner)
        for piece in _pieces([file], reading):
            for one in stream.feed(piece.data, more=piece.more):
                if one.form.valid:
                    different[one.kind.name].setdefault(one.kind.key(one.value), one.value)
    rng, chosen = np.random.default_rng(seed), list[Identifier]()
    for kind, values in different.items():
        every = sorted(values.values())
        size = min(per_kind, len(every))
        picked = rng.choice(len(every), size, replace=False) if size else np.empty(0, dtype=int)
        chosen += [Identifier(kind, every[at], 0, len(every[at])) for at in np.sort(picked)]
    return chosen


def census_speed(
    files: Sequence[CorpusFile], *, megabytes: float = 50.0, reading: Reading | None = None
) -> pd.DataFrame:
    """Megabytes of text per second of one core: unpacking and parsing, scanning, and both."""
    held, size = list[bytes](), 0  # this pass fills the disk's cache
    for piece in _pieces(files, reading):
        held.append(piece.data)
        size += len(piece.data)
        if size >= megabytes * 1e6:
            break
    scanner = Scanner(checked_kinds(None))
    started = time.process_time()
    for data in held:
        scanner.candidates(data)
    scanned = time.process_time()
    for _ in itertools.islice(_pieces(files, reading), len(held)):
        pass
    read = time.process_time() - scanned
    seconds = {"read, unpack and parse": read, "scan for all kinds": scanned - started}
    seconds["both"] = sum(seconds.values())
    table = pd.DataFrame(
        {"step": list(seconds), "megabytes": size / 1e6, "cpu_seconds": list(seconds.values())}
    )
    return table.assign(mb_per_second=table["megabytes"] / table["cpu_seconds"].clip(lower=1e-9))


def _pieces(files: Iterable[CorpusFile], reading: Reading | None) -> Iterator[Piece]:
    for file in files:
        yield from read_pieces(file.path, file.subset, reading or Reading(), ReadLog())


def chosen_files(corpora: Sequence[str], packages: Sequence[str]) -> list[CorpusFile]:
    """The files of the corpora named, or text that ships with the packages if none is named."""
    if not corpora:
        return installed_text(tuple(packages))
    return [file for corpus in corpora for file in corpus_files(corpus)]
