"""Tables beside a census: Table 2 of the paper, also on the Pile's test part, samples and speed."""

import itertools
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import chi2

from paperlib.data.text.corpora import CorpusFile, Document, corpus_files, installed_text
from paperlib.data.text.formats import read_pieces
from paperlib.data.text.pieces import Piece, Reading, ReadLog
from paperlib.generators.identifiers import KINDS, PAPER_KINDS, Identifier, find_identifiers
from paperlib.generators.identifiers.filter import filter_identifiers
from paperlib.generators.identifiers.kinds import checked_kinds
from paperlib.generators.identifiers.scan import Scanner, StreamScanner
from paperlib.reproduction.exhibits import paper_table
from paperlib.reproduction.papers.natural_identifiers.census.corpus import Census
from paperlib.reproduction.papers.settings import settings_beside

_PAPERS = (
    ("pile_train", "pile", "train"),
    ("pile_test", "pile", "test"),
    ("dolma", "dolma", "train"),
)
_SETTINGS = settings_beside(__file__)
_PILE = _SETTINGS["pile"]
_PLAIN = _SETTINGS["plain"]
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
    """Numbers of different identifiers, one row per kind and one for all kinds.

    Columns are kind, "here", each corpus and split of the paper, and "paper" for all of these.
    """
    printed = paper_census()
    # Rows of all subsets are totals of the others, which would count twice.
    printed = printed[~printed["dataset"].str.contains("all subsets")]
    columns = ["total", *PAPER_KINDS]
    frame = pd.DataFrame(
        {"kind": ["all kinds", *PAPER_KINDS], "here": by_subset[columns].sum().tolist()}
    )
    for name, corpus, split in _PAPERS:
        of_corpus = printed[(printed["corpus"] == corpus) & (printed["split"] == split)]
        frame[name] = of_corpus[columns].sum().tolist()
    return frame.assign(paper=printed[columns].sum().tolist())


def kind_shares(filtered: pd.DataFrame, subsets: Sequence[str]) -> pd.DataFrame:
    """Percent of the identifiers that are of each of the paper's kinds: columns kind, here, paper.

    ``filtered`` has rows of `filtered_census`; ``subsets``, names of `PILE_SUBSETS`, choose those
    of the paper.
    """
    kinds = list(PAPER_KINDS)
    printed = paper_census()
    same_subsets = printed["dataset"].isin([PILE_SUBSETS[name] for name in subsets])
    ours = filtered[kinds].sum()
    theirs = printed[same_subsets][kinds].sum()
    share = {"here": 100 * ours / max(1, ours.sum()), "paper": 100 * theirs / max(1, theirs.sum())}
    return pd.DataFrame(share).rename_axis("kind").reset_index()


def look_alikes_by_kind(totals: pd.DataFrame) -> pd.DataFrame:
    """One row per kind: kind, identifiers and look_alikes (numbers of different values), and why:
    each reason for which values are only look-alikes, with their number.

    ``totals`` are `Census.totals`.
    """
    rows: list[dict[str, Any]] = []
    for kind, forms in totals.groupby("kind", sort=False):
        valid = forms["valid"].astype(bool)
        failed = forms[~valid]
        reasons = failed["form"] + " (" + failed["different"].astype(str) + ")"
        rows.append(
            {
                "kind": kind,
                "identifiers": int(forms.loc[valid, "different"].sum()),
                "look_alikes": int(failed["different"].sum()),
                "why": ", ".join(reasons) or "–",
            }
        )
    return pd.DataFrame(rows)


def census_by_subset(census: Census) -> pd.DataFrame:
    """One row per subset: documents and characters, matches (places of identifiers of all kinds),
    and numbers of different identifiers: total and each of the paper's kinds, and other_kinds.

    Raises:
        ValueError: A census that could read no document; the message names the reasons.
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
    table = sizes.join(table)
    table = table.sort_values(["total", "matches"], ascending=False, kind="stable")
    return table.reset_index()


def plain_counts(
    files: Iterable[CorpusFile], *, characters: int, reading: Reading | None = None
) -> tuple[dict[str, int], dict[str, int]]:
    """Matches of each kind in the first characters of files, look-alikes included: ours, and those
    of plain regular expressions, each by kind.

    Args:
        files: Read one after the other.
        characters: Reading ends with the piece of a file that reaches so many.
        reading: How files are read; None reads as `Reading` does by itself.
    """
    ours = dict.fromkeys(_PLAIN, 0)
    plain = dict.fromkeys(_PLAIN, 0)
    left = characters
    scanner = Scanner(checked_kinds(PAPER_KINDS))
    expressions = {
        kind: re.compile(rf"(?<![0-9A-Za-z_]){pattern}(?![0-9A-Za-z_])", re.ASCII)
        for kind, pattern in _PLAIN.items()
    }
    for piece in _pieces(files, reading):
        for candidate in scanner.scan(piece.data):
            ours[candidate.kind.name] += 1
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
    """A random sample of the different identifiers of files, at most ``per_kind`` of each kind.

    Each stands for all its places: its start is 0, and its end its length. ``reading`` says how
    files are read; None reads as `Reading` does by itself.
    """
    rng = np.random.default_rng(seed)
    sample: list[Identifier] = []
    for kind, values in _different_values(files, reading).items():
        in_order = sorted(values)
        size = min(per_kind, len(in_order))
        if size:
            for index in np.sort(rng.choice(len(in_order), size, replace=False)):
                value = in_order[index]
                sample.append(Identifier(kind, value, 0, len(value)))
    return sample


def _different_values(files: Iterable[CorpusFile], reading: Reading | None) -> dict[str, list[str]]:
    """The different identifiers by kind, each in the spelling in which it comes first."""
    spellings: dict[str, dict[str, str]] = {name: {} for name in KINDS}
    scanner = Scanner(checked_kinds(None))
    for file in files:
        stream = StreamScanner(scanner)
        for piece in _pieces([file], reading):
            for candidate in stream.feed(piece.data, more=piece.more):
                if candidate.form.valid:
                    key = candidate.kind.key(candidate.value)
                    spellings[candidate.kind.name].setdefault(key, candidate.value)
    return {kind: list(by_key.values()) for kind, by_key in spellings.items()}


def census_speed(
    files: Sequence[CorpusFile], *, megabytes: float = 50.0, reading: Reading | None = None
) -> pd.DataFrame:
    """How fast one core takes a census of the first ``megabytes`` of files.

    A row for each step, "read, unpack and parse", "scan for all kinds" and "both": megabytes of
    text, seconds of the processor, and megabytes per second.
    """
    held: list[bytes] = []
    size = 0  # bytes
    # This pass fills the disk's cache.
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
    """Every piece of the files; what cannot be read is left out."""
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

    Args:
        documents: Of the Pile's test part and of other subsets, whose identifiers of each kind, at
            most ``company``, the blind classifiers of the filter see beside them.
        extreme: As for `filter_identifiers`, as ``generated``, the alternatives of each identifier.

    Columns: subset, document (its number in the subset), kind, value (a number), erc55 (whether the
    paper's check of addresses admits it), site (of a web address around it; may be empty), kept.
    """
    occurrences, others = _pile_occurrences(documents)
    values = list(dict.fromkeys(occurrences["identifier"]))  # each once, in their order
    kept: set[Identifier] = set()
    if values:
        judged = _with_company(values, others, company, np.random.default_rng(seed))
        filtered = filter_identifiers(judged, extreme=extreme, count=generated, seed=seed)
        kept = set(filtered.kept)
    numbers: dict[tuple[str, str], int] = {}
    for number, value in enumerate(values):
        numbers.setdefault(_key(value), number)  # two spellings of a value have one number
    identifiers = occurrences["identifier"].tolist()
    return occurrences.assign(
        kind=[identifier.kind for identifier in identifiers],
        value=[numbers[_key(identifier)] for identifier in identifiers],
        erc55=[_admitted(identifier) for identifier in identifiers],
        kept=[identifier in kept for identifier in identifiers],
    )[["subset", "document", "kind", "value", "erc55", "site", "kept"]]


def _pile_occurrences(documents: Iterable[Document]) -> tuple[pd.DataFrame, set[Identifier]]:
    """Every place of an identifier in subsets of the Pile's test part (subset, document,
    identifier, site), and the identifiers of other subsets.
    """
    occurrences: list[tuple[str, int, Identifier, str]] = []
    others: set[Identifier] = set()
    numbers = Counter[str]()
    for document in documents:
        numbers[document.subset] += 1
        for match in find_identifiers(document.text, kinds=PAPER_KINDS):
            identifier = Identifier(match.kind, match.value, 0, len(match.value))
            if document.subset in PILE_SUBSETS:
                number = numbers[document.subset]
                site = _site_before(document.text, match.start)
                occurrences.append((document.subset, number, identifier, site))
            else:
                others.add(identifier)
    columns = ["subset", "document", "identifier", "site"]
    return pd.DataFrame(occurrences, columns=columns), others


def _site_before(text: str, start: int) -> str:
    """The host of a web address that goes on to the character at ``start``; empty for none."""
    # A hyphen may break the address's line.
    before = text[max(0, start - _BEFORE) : start].replace("-\n", "-")
    address = _ADDRESS.search(before)
    return address[1].lower() if address else ""


def _with_company(
    values: Sequence[Identifier], others: set[Identifier], company: int, rng: np.random.Generator
) -> list[Identifier]:
    """The values that the paper admits, each kind followed by a random sample of at most
    ``company`` of the ``others`` of this kind that are not among them.
    """
    together: list[Identifier] = []
    outside = others - set(values)
    for kind in PAPER_KINDS:
        together += sorted(value for value in values if value.kind == kind and _admitted(value))
        same_kind = sorted(value for value in outside if value.kind == kind and _admitted(value))
        together += [same_kind[index] for index in rng.permutation(len(same_kind))[:company]]
    return together


def _key(identifier: Identifier) -> tuple[str, str]:
    """Equal for two spellings of one value."""
    return identifier.kind, KINDS[identifier.kind].key(identifier.value)


def _admitted(identifier: Identifier) -> bool:
    """Whether the paper counts it: of addresses those whose letters have the case of ERC-55."""
    if identifier.kind != "ethereum":
        return True
    return KINDS["ethereum"].check(identifier.value).name == "checksum"


def after_filters(occurrences: pd.DataFrame) -> pd.DataFrame:
    """The first place of each different identifier of a subset that the paper's filters keep."""
    different = occurrences[occurrences["erc55"]].drop_duplicates(["subset", "kind", "value"])
    return different[different["kept"]]


def filtered_census(occurrences: pd.DataFrame) -> pd.DataFrame:
    """Different identifiers of `pile_identifiers` before and after the paper's filters, beside its
    counts: a row for each subset, those with the most identifiers first.

    Columns: subset; before, all that the paper admits (of addresses those in the case of ERC-55);
    paper, its own total; total, what the filters keep; and of these the number of each kind.
    """
    different = occurrences[occurrences["erc55"]].drop_duplicates(["subset", "kind", "value"])
    after = after_filters(occurrences)
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
    """Total and kinds of a subset of the test part in Table 2; 0 where it has none."""
    table = paper_census()
    row = table[table["dataset"] == PILE_SUBSETS[subset]][["total", *PAPER_KINDS]]
    return {str(name): int(number) for name, number in row.sum().items()}


def counts_by_kind(occurrences: pd.DataFrame) -> pd.DataFrame:
    """Counts by subset and kind under the several readings of `_readings`, beside the paper's for
    the same subset; no row where both sides have none.
    """
    rows: list[dict[str, Any]] = []
    for subset in sorted(set(occurrences["subset"])):
        of_subset = occurrences[occurrences["subset"] == subset]
        printed = _printed(subset)
        for kind in PAPER_KINDS:
            of_kind = of_subset[of_subset["kind"] == kind]
            if len(of_kind) or printed[kind]:
                counts = _readings(of_kind)
                rows.append({"subset": subset, "kind": kind, **counts, "paper": printed[kind]})
    return pd.DataFrame(rows)


def _readings(occurrences: pd.DataFrame) -> dict[str, int]:
    """How many identifiers the occurrences of one kind are, by what may be counted.

    "matches": places. "different": values. "erc55": values that the paper admits, of addresses by
    their case. "outside_addresses": those of them with no place inside a web address. "documents":
    documents with any. "filtered": values that the paper admits and its filters keep.
    """
    by_value = occurrences.assign(inside=occurrences["site"] != "").groupby(["kind", "value"])
    values = by_value[["erc55", "kept", "inside"]].max().astype(bool)
    return {
        "matches": len(occurrences),
        "different": len(values),
        "erc55": int(values["erc55"].sum()),
        "outside_addresses": int((values["erc55"] & ~values["inside"]).sum()),
        "documents": occurrences["document"].nunique(),
        "filtered": int((values["erc55"] & values["kept"]).sum()),
    }


def sites(occurrences: pd.DataFrame, subset: str) -> pd.DataFrame:
    """Counts by site (empty outside web addresses) and kind in a subset, most identifiers first."""
    by_site = occurrences[occurrences["subset"] == subset].groupby(["site", "kind"])
    table = by_site[["value", "document"]].nunique()
    table.columns = ["different", "documents"]
    return table.sort_values("different", ascending=False, kind="stable").reset_index()


def rates(
    occurrences: pd.DataFrame, read: pd.DataFrame, *, confidence: float = 0.95
) -> pd.DataFrame:
    """Different identifiers that the paper admits per million documents, ours before the filters
    and the paper's.

    Args:
        occurrences: Rows of `pile_identifiers`.
        read: Subset and its number of documents that were read.
        confidence: Of the intervals (low, high), in (0, 1).

    Returns:
        A row for each subset whose size the Pile's authors state: numbers of documents and
            identifiers, and rates per million, ours with their interval, the paper's, and their
            ratio, NaN where the paper has no identifier.
    """
    # The interval is exact for a Poisson number: identifiers count as independent. The paper's
    # documents are the thousandth part of each subset, by the sizes that the Pile's authors state
    # (Gao et al., Table 1).
    tail = (1 - confidence) / 2
    sizes = {printed: numbers for _, _, printed, *numbers in _PILE if printed}
    rows: list[dict[str, Any]] = []
    for subset, documents in read[["subset", "documents"]].itertuples(index=False):
        name = PILE_SUBSETS.get(subset, "")
        if name not in sizes:
            continue
        admitted = occurrences[(occurrences["subset"] == subset) & occurrences["erc55"]]
        count = len(admitted.drop_duplicates(["kind", "value"]))
        low = float(chi2.ppf(tail, 2 * count)) / 2 if count else 0.0
        high = float(chi2.ppf(1 - tail, 2 * count + 2)) / 2
        scale = 1e6 / documents
        gib, mean_kib = sizes[name]
        paper = _printed(subset)["total"]
        paper_documents = _TEST_PART * gib * 2**20 / mean_kib
        paper_per_million = 1e6 * paper / paper_documents
        rows.append(
            {
                "subset": subset,
                "documents": documents,
                "identifiers": count,
                "documents_with": admitted["document"].nunique(),
                "per_million": scale * count,
                "low": scale * low,
                "high": scale * high,
                "paper": paper,
                "paper_documents": round(paper_documents),
                "paper_per_million": paper_per_million,
                "ratio": scale * count / paper_per_million if paper else np.nan,
            }
        )
    return pd.DataFrame(rows)
