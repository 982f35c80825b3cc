"""Tables beside a census: Table 2 of the paper, also on the Pile's test part, samples and speed."""

import itertools
import re
import time
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pandas as pd
from scipy.stats import chi2

from paperlib.data.text.corpora import CorpusFile, Document, corpus_files, installed_text
from paperlib.data.text.formats import read_pieces
from paperlib.data.text.pieces import Piece, Reading, ReadLog
from paperlib.generators.identifiers import (
    KINDS,
    PAPER_KINDS,
    Identifier,
    Scanner,
    StreamScanner,
    checked_kinds,
    find_identifiers,
)
from paperlib.generators.identifiers.filter import filter_identifiers
from paperlib.papers.natural_identifiers.census.corpus import Census
from paperlib.papers.settings import settings_beside
from paperlib.report import paper_table

_PAPERS = (
    ("pile_train", "pile", "train"),
    ("pile_test", "pile", "test"),
    ("dolma", "dolma", "train"),
)
_SETTINGS = settings_beside(__file__)
_PILE, _PLAIN = _SETTINGS["pile"], _SETTINGS["plain"]
PILE_SUBSETS = {name: printed for *names, printed, _, _ in _PILE for name in names}
"""Subsets of the Pile's test part, by both names, and their names in Table 2; empty where it has
none.
"""


def paper_census() -> pd.DataFrame:
    """Table 2 as printed, with our names of the kinds: dataset, corpus, split, total, and the
    kinds.
    """
    table = paper_table("nid_table02").rename(columns=_SETTINGS["columns"])
    return table[["dataset", "corpus", "split", "total", *PAPER_KINDS]]


def beside_the_paper(by_subset: pd.DataFrame) -> pd.DataFrame:
    """One row per kind: different identifiers here, in the paper's corpora, and in all of these
    (paper).
    """
    printed = paper_census()
    printed = printed[~printed["dataset"].str.contains("all subsets")]
    columns = ["total", *PAPER_KINDS]
    frame = pd.DataFrame(
        {"kind": ["all kinds", *PAPER_KINDS], "here": by_subset[columns].sum().tolist()}
    )
    for name, corpus, split in _PAPERS:
        chosen = printed[(printed["corpus"] == corpus) & (printed["split"] == split)]
        frame[name] = chosen[columns].sum().tolist()
    return frame.assign(paper=printed[columns].sum().tolist())


def kind_shares(filtered: pd.DataFrame, subsets: Sequence[str]) -> pd.DataFrame:
    """Percent of the identifiers that are of each of the paper's kinds: columns kind, here,
    paper.
    """
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
        why = [
            f"{form} ({number})"
            for form, number in zip(failed["form"], failed["different"], strict=True)
        ]
        row = {"kind": kind, "identifiers": int(here.loc[valid, "different"].sum())}
        rows.append(
            row | {"look_alikes": int(failed["different"].sum()), "why": ", ".join(why) or "–"}
        )
    return pd.DataFrame(rows)


def census_by_subset(census: Census) -> pd.DataFrame:
    """One row per subset: its size, different identifiers of the paper's kinds, and of all
    others.
    """
    if census.read.empty:
        rows = census.skipped.itertuples(index=False)
        reasons = "; ".join(f"{row.reason}: {row.number}, such as {row.example}" for row in rows)
        raise ValueError(f"census: no document could be read ({reasons})")
    others = [kind for kind in KINDS if kind not in PAPER_KINDS]
    table = census.by_kind("different").set_index("subset")
    table["other_kinds"] = census.by_kind("different", kinds=others).set_index("subset")["total"]
    table.insert(0, "matches", census.by_kind(kinds=list(KINDS)).set_index("subset")["total"])
    sizes = census.read.set_index("subset")[["documents", "characters"]]
    return (
        sizes.join(table)
        .sort_values(["total", "matches"], ascending=False, kind="stable")
        .reset_index()
    )


def plain_counts(
    files: Iterable[CorpusFile], *, characters: int, reading: Reading | None = None
) -> tuple[dict[str, int], dict[str, int]]:
    """Matches of each kind in the first characters, look-alikes included: ours, and by plain
    expressions.
    """
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
    """A random sample of the different identifiers, so many of each kind at most; places mean
    nothing.
    """
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
    table = pd.DataFrame(list(seconds.items()), columns=["step", "cpu_seconds"])
    table.insert(1, "megabytes", size / 1e6)
    return table.assign(mb_per_second=table["megabytes"] / table["cpu_seconds"].clip(lower=1e-9))


def _pieces(files: Iterable[CorpusFile], reading: Reading | None) -> Iterator[Piece]:
    for file in files:
        yield from read_pieces(file.path, file.subset, reading or Reading(), ReadLog())


def chosen_files(corpora: Sequence[str], packages: Sequence[str]) -> list[CorpusFile]:
    """The files of the corpora named, or text that ships with the packages if none is named."""
    if not corpora:
        return installed_text(tuple(packages))
    return [file for corpus in corpora for file in corpus_files(corpus)]


_ADDRESS = re.compile(r"(?:https?:)?//([^/\s\"'<>()\[\]]+)[^\s\"'<>()\[\]]*$")
_BEFORE = 300  # characters in which the start of a web address is looked for
_TEST_PART = 1e-3  # share of the Pile that is its test part


def pile_identifiers(
    documents: Iterable[Document],
    *,
    company: int = 300,
    extreme: float = 0.01,
    generated: int = 127,
    seed: int = 0,
) -> pd.DataFrame:
    """Every place of an identifier in the Pile's test part, and what the filters of Appendix A
    keep.
    """
    places, others, read = (
        list[tuple[str, int, Identifier, str]](),
        set[Identifier](),
        dict[str, int](),
    )
    for one in documents:
        read[one.subset] = number = read.get(one.subset, 0) + 1
        for place in find_identifiers(one.text, kinds=PAPER_KINDS):
            value = Identifier(place.kind, place.value, 0, len(place.value))
            if one.subset in PILE_SUBSETS:
                before = one.text[max(0, place.start - _BEFORE) : place.start]
                # The host of a web address that goes on to the identifier; a hyphen may break its
                # line.
                address = _ADDRESS.search(before.replace("-\n", "-"))
                places.append((one.subset, number, value, address[1].lower() if address else ""))
            else:
                others.add(value)
    table = pd.DataFrame(places, columns=["subset", "document", "identifier", "site"])
    values = list(dict.fromkeys(table["identifier"]))
    rng, judged = np.random.default_rng(seed), list[Identifier]()
    for kind in PAPER_KINDS if values else ():
        groups = (values, others - set(values))
        inside, outside = (
            sorted(v for v in some if v.kind == kind and _admitted(v)) for some in groups
        )
        judged += inside + [outside[at] for at in rng.permutation(len(outside))[:company]]
    stay = (
        set(filter_identifiers(judged, extreme=extreme, count=generated, seed=seed).kept)
        if values
        else ()
    )
    numbers = {_key(value): at for at, value in reversed(list(enumerate(values)))}
    return table.assign(
        kind=[one.kind for one in table["identifier"]],
        value=[numbers[_key(one)] for one in table["identifier"]],
        erc55=[_admitted(one) for one in table["identifier"]],
        kept=[one in stay for one in table["identifier"]],
    )[["subset", "document", "kind", "value", "erc55", "site", "kept"]]


def _key(one: Identifier) -> tuple[str, str]:
    return one.kind, KINDS[one.kind].key(one.value)


def _admitted(one: Identifier) -> bool:
    return one.kind != "ethereum" or KINDS["ethereum"].check(one.value).name == "checksum"


def after_filters(places: pd.DataFrame) -> pd.DataFrame:
    """The first place of each different identifier of a subset that the paper's filters keep."""
    different = places[places["erc55"]].drop_duplicates(["subset", "kind", "value"])
    return different[different["kept"]]


def filtered_census(places: pd.DataFrame) -> pd.DataFrame:
    """Different identifiers of `pile_identifiers` before and after the paper's filters, beside its
    counts.
    """
    different = places[places["erc55"]].drop_duplicates(["subset", "kind", "value"])
    after = after_filters(places)
    kinds = pd.crosstab(after["subset"], after["kind"]).reindex(
        columns=list(PAPER_KINDS), fill_value=0
    )
    table = different.groupby("subset").size().rename("before").to_frame()
    table["paper"] = [_printed(name)["total"] for name in table.index]
    table["total"] = after.groupby("subset").size()
    table = table.join(kinds).fillna(0).astype(int).reset_index()
    return table.sort_values(
        ["before", "subset"], ascending=[False, True], kind="stable", ignore_index=True
    )


def _printed(subset: str) -> dict[str, int]:
    table = paper_census()
    row = table[table["dataset"] == PILE_SUBSETS[subset]][["total", *PAPER_KINDS]]
    return {str(name): int(number) for name, number in row.sum().items()}


def counts_by_kind(places: pd.DataFrame) -> pd.DataFrame:
    """Counts by subset and kind beside the paper's for the same subset, each under several
    readings.
    """
    rows = []
    for subset in sorted(set(places["subset"])):
        here, printed = places[places["subset"] == subset], _printed(subset)
        for kind in PAPER_KINDS:
            part = here[here["kind"] == kind]
            if part.empty and not printed[kind]:
                continue
            each = part.assign(inside=part["site"] != "").groupby(["kind", "value"])
            each = each[["erc55", "kept", "inside"]].max().astype(bool)
            readings = {
                "matches": len(part),
                "different": len(each),
                "erc55": int(each["erc55"].sum()),
                "outside_addresses": int((each["erc55"] & ~each["inside"]).sum()),
                "documents": part["document"].nunique(),
                "filtered": int((each["erc55"] & each["kept"]).sum()),
            }
            rows.append({"subset": subset, "kind": kind, **readings, "paper": printed[kind]})
    return pd.DataFrame(rows)


def sites(places: pd.DataFrame, subset: str) -> pd.DataFrame:
    """Counts by site (empty outside web addresses) and kind in a subset, most identifiers first."""
    table = (
        places[places["subset"] == subset]
        .groupby(["site", "kind"])[["value", "document"]]
        .nunique()
    )
    table.columns = ["different", "documents"]
    return table.sort_values("different", ascending=False, kind="stable").reset_index()


def rates(places: pd.DataFrame, read: pd.DataFrame, *, confidence: float = 0.95) -> pd.DataFrame:
    """Identifiers that the paper admits per million documents, ours before the filters and the
    paper's.
    """
    # The interval is exact for a Poisson number: identifiers count as independent. The paper's
    # documents are the thousandth part of each subset, by the sizes that the Pile's authors state
    # (Gao et al., Table 1).
    rows, tail = [], (1 - confidence) / 2
    sizes = {printed: numbers for _, _, printed, *numbers in _PILE if printed}
    for subset, documents in read[["subset", "documents"]].itertuples(index=False):
        if (name := PILE_SUBSETS.get(subset, "")) not in sizes:
            continue
        here = places[(places["subset"] == subset) & places["erc55"]]
        count, scale = len(here.drop_duplicates(["kind", "value"])), 1e6 / documents
        low = float(chi2.ppf(tail, 2 * count)) / 2 if count else 0.0
        high = float(chi2.ppf(1 - tail, 2 * count + 2)) / 2
        size, mean = sizes[name]
        theirs, total = _printed(subset)["total"], _TEST_PART * size * 2**20 / mean
        per_million = 1e6 * theirs / total
        row = {"subset": subset, "documents": documents, "identifiers": count}
        row |= {"documents_with": here["document"].nunique(), "per_million": scale * count}
        row |= {
            "low": scale * low,
            "high": scale * high,
            "paper": theirs,
            "paper_documents": round(total),
        }
        row |= {
            "paper_per_million": per_million,
            "ratio": scale * count / per_million if theirs else np.nan,
        }
        rows.append(row)
    return pd.DataFrame(rows)
