"""The paper's Table 2 on the subsets of the Pile's test part: every place, the paper's filters, and rates."""

import re
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
from scipy.stats import chi2

from paperlib.data.text.corpora import Document
from paperlib.generators.identifiers import KINDS, PAPER_KINDS, Identifier, find_identifiers
from paperlib.generators.identifiers.filter import filter_identifiers
from paperlib.papers.natural_identifiers.census.tables import PILE_SUBSETS, paper_census

_ADDRESS = re.compile(r"(?:https?:)?//([^/\s\"'<>()\[\]]+)[^\s\"'<>()\[\]]*$")
_BEFORE = 300  # characters in which the start of a web address is looked for
# The Pile's subsets by Table 1 of Gao et al. (2020): effective size in GiB, mean size of a document in KiB.
_SIZES = {
    "pile test github": (95.16, 5.25),
    "pile test stackexchange": (64.39, 2.16),
    "pile test pile cc": (227.12, 4.33),
    "pile test hackernews": (7.80, 4.92),
    "pile test ubuntuirc": (11.03, 545.48),
    "pile test wikipediaen": (19.13, 1.11),
}
_TEST_PART = 1e-3  # share of the Pile that is its test part


def pile_identifiers(
    documents: Iterable[Document],
    *,
    company: int = 300,
    extreme: float = 0.01,
    generated: int = 127,
    seed: int = 0,
) -> pd.DataFrame:
    """Every place of an identifier of the paper's kinds in the Pile's test part, and what the filters keep.

    As in Appendix A: Ethereum addresses without the letter case of ERC-55 go, then duplicates, then what
    a blind baseline finds among the share ``extreme`` at either end of its generated values.
    """
    places, others, read = list[tuple[str, int, Identifier, str]](), set[Identifier](), dict[str, int]()
    for one in documents:
        read[one.subset] = number = read.get(one.subset, 0) + 1
        for found in find_identifiers(one.text, kinds=PAPER_KINDS):
            value = Identifier(found.kind, found.value, 0, len(found.value))
            if one.subset in PILE_SUBSETS:
                before = one.text[max(0, found.start - _BEFORE) : found.start]
                places.append((one.subset, number, value, _site(before)))
            else:
                others.add(value)
    names = ["subset", "document", "identifier", "site"]
    table = pd.DataFrame(places, columns=names)
    values = list(dict.fromkeys(table["identifier"]))
    kept = _kept(values, others, company, extreme, generated, seed) if values else set[Identifier]()
    numbers = {_key(value): at for at, value in reversed(list(enumerate(values)))}
    return table.assign(
        kind=[one.kind for one in table["identifier"]],
        value=[numbers[_key(one)] for one in table["identifier"]],
        erc55=[_admitted(one) for one in table["identifier"]],
        kept=[one in kept for one in table["identifier"]],
    )[["subset", "document", "kind", "value", "erc55", "site", "kept"]]


def _kept(
    values: Sequence[Identifier], others: set[Identifier], company: int, extreme: float, count: int, seed: int
) -> set[Identifier]:
    rng, judged = np.random.default_rng(seed), list[Identifier]()
    for kind in PAPER_KINDS:
        inside, outside = (
            sorted(one for one in some if one.kind == kind and _admitted(one))
            for some in (values, others - set(values))
        )
        judged += inside + [outside[at] for at in rng.permutation(len(outside))[:company]]
    return set(filter_identifiers(judged, extreme=extreme, count=count, seed=seed).kept)


def _key(one: Identifier) -> tuple[str, str]:
    return one.kind, KINDS[one.kind].key(one.value)


def _admitted(one: Identifier) -> bool:
    return one.kind != "ethereum" or KINDS["ethereum"].check(one.value).name == "checksum"


def _site(before: str) -> str:
    """The host of a web address that goes on to the end of a text; lines broken at a hyphen are joined."""
    found = _ADDRESS.search(before.replace("-\n", "-"))
    return found[1].lower() if found else ""


def filtered_census(places: pd.DataFrame) -> pd.DataFrame:
    """Different identifiers of `pile_identifiers` before and after the paper's filters, beside its counts.

    Ethereum addresses count with the letter case of ERC-55 alone, as the paper admits them.
    """
    different = places[places["erc55"]].drop_duplicates(["subset", "kind", "value"])
    after = different[different["kept"]]
    kinds = pd.crosstab(after["subset"], after["kind"]).reindex(columns=list(PAPER_KINDS), fill_value=0)
    table = different.groupby("subset").size().rename("before").to_frame()
    table["paper"] = [_printed(name)["total"] for name in table.index]
    table["total"] = after.groupby("subset").size()
    table = table.join(kinds).fillna(0).astype(int).reset_index()
    return table.sort_values(["before", "subset"], ascending=[False, True], kind="stable", ignore_index=True)


def _printed(subset: str) -> dict[str, int]:
    table = paper_census()
    row = table[table["dataset"] == PILE_SUBSETS[subset]][["total", *PAPER_KINDS]]
    return {str(name): int(number) for name, number in row.sum().items()}


def counts_by_kind(places: pd.DataFrame) -> pd.DataFrame:
    """Counts by subset and kind beside the paper's for the same subset, each under several readings."""
    rows = []
    for subset in sorted(set(places["subset"])):
        here, printed = places[places["subset"] == subset], _printed(subset)
        for kind in PAPER_KINDS:
            found = here[here["kind"] == kind]
            if len(found) or printed[kind]:
                rows.append({"subset": subset, "kind": kind, **_readings(found), "paper": printed[kind]})
    return pd.DataFrame(rows)


def _readings(found: pd.DataFrame) -> dict[str, int]:
    each = found.assign(inside=found["site"] != "").groupby(["kind", "value"])
    each = each.agg(erc55=("erc55", "max"), kept=("kept", "max"), inside=("inside", "max")).astype(bool)
    return {
        "matches": len(found),
        "different": len(each),
        "erc55": int(each["erc55"].sum()),
        "outside_addresses": int((each["erc55"] & ~each["inside"]).sum()),
        "documents": found["document"].nunique(),
        "filtered": int((each["erc55"] & each["kept"]).sum()),
    }


def sites(places: pd.DataFrame, subset: str) -> pd.DataFrame:
    """Counts by site (empty outside web addresses) and kind in a subset, most identifiers first."""
    here = places[places["subset"] == subset]
    table = here.groupby(["site", "kind"]).agg(
        different=("value", "nunique"), documents=("document", "nunique")
    )
    return table.sort_values("different", ascending=False, kind="stable").reset_index()


def rates(places: pd.DataFrame, read: pd.DataFrame, *, confidence: float = 0.95) -> pd.DataFrame:
    """Identifiers that the paper admits per million documents, ours before the filters and the paper's.

    The interval is exact for a Poisson number: it takes identifiers as independent, although one document may
    hold several. The paper does not say how many documents its subsets have; they are computed from the sizes
    that the Pile's authors state, as the thousandth part of each subset that is its test part.

    Source:
        Gao et al. (2020), The Pile, Table 1 (effective and mean sizes).
    """
    rows, tail = [], (1 - confidence) / 2
    for subset, documents in read[["subset", "documents"]].itertuples(index=False):
        if (name := PILE_SUBSETS.get(subset)) is None or name not in _SIZES:
            continue
        here = places[(places["subset"] == subset) & places["erc55"]]
        count, scale = len(here.drop_duplicates(["kind", "value"])), 1e6 / documents
        low = float(chi2.ppf(tail, 2 * count)) / 2 if count else 0.0
        high = float(chi2.ppf(1 - tail, 2 * count + 2)) / 2
        size, mean = _SIZES[name]
        theirs, total = _printed(subset)["total"], _TEST_PART * size * 2**20 / mean
        row = {"subset": subset, "documents": documents, "identifiers": count}
        row |= {"documents_with": here["document"].nunique(), "per_million": scale * count}
        row |= {"low": scale * low, "high": scale * high, "paper": theirs, "paper_documents": round(total)}
        per_million = 1e6 * theirs / total
        row |= {"paper_per_million": per_million, "ratio": scale * count / per_million if theirs else np.nan}
        rows.append(row)
    return pd.DataFrame(rows)
