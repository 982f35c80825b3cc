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
    """Every place of an identifier in the Pile's test part, and what the filters of Appendix A keep."""
    places, others, read = list[tuple[str, int, Identifier, str]](), set[Identifier](), dict[str, int]()
    for one in documents:
        read[one.subset] = number = read.get(one.subset, 0) + 1
        for place in find_identifiers(one.text, kinds=PAPER_KINDS):
            value = Identifier(place.kind, place.value, 0, len(place.value))
            if one.subset in PILE_SUBSETS:
                before = one.text[max(0, place.start - _BEFORE) : place.start]
                # The host of a web address that goes on to the identifier; a hyphen may break its line.
                address = _ADDRESS.search(before.replace("-\n", "-"))
                places.append((one.subset, number, value, address[1].lower() if address else ""))
            else:
                others.add(value)
    table = pd.DataFrame(places, columns=["subset", "document", "identifier", "site"])
    values = list(dict.fromkeys(table["identifier"]))
    stay = _filtered(values, others, company, extreme, generated, seed) if values else set[Identifier]()
    numbers = {_key(value): at for at, value in reversed(list(enumerate(values)))}
    return table.assign(
        kind=[one.kind for one in table["identifier"]],
        value=[numbers[_key(one)] for one in table["identifier"]],
        erc55=[_admitted(one) for one in table["identifier"]],
        kept=[one in stay for one in table["identifier"]],
    )[["subset", "document", "kind", "value", "erc55", "site", "kept"]]


def _filtered(
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


def filtered_census(places: pd.DataFrame) -> pd.DataFrame:
    """Different identifiers of `pile_identifiers` before and after the paper's filters, beside its counts."""
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
            part = here[here["kind"] == kind]
            if len(part) or printed[kind]:
                rows.append({"subset": subset, "kind": kind, **_readings(part), "paper": printed[kind]})
    return pd.DataFrame(rows)


def _readings(places: pd.DataFrame) -> dict[str, int]:
    each = places.assign(inside=places["site"] != "").groupby(["kind", "value"])
    each = each.agg(erc55=("erc55", "max"), kept=("kept", "max"), inside=("inside", "max")).astype(bool)
    return {
        "matches": len(places),
        "different": len(each),
        "erc55": int(each["erc55"].sum()),
        "outside_addresses": int((each["erc55"] & ~each["inside"]).sum()),
        "documents": places["document"].nunique(),
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
    """Identifiers that the paper admits per million documents, ours before the filters and the paper's."""
    # The interval is exact for a Poisson number: identifiers count as independent. The paper's documents are
    # the thousandth part of each subset, by the sizes that the Pile's authors state (Gao et al., Table 1).
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
        per_million = 1e6 * theirs / total
        row = {"subset": subset, "documents": documents, "identifiers": count}
        row |= {"documents_with": here["document"].nunique(), "per_million": scale * count}
        row |= {"low": scale * low, "high": scale * high, "paper": theirs, "paper_documents": round(total)}
        row |= {"paper_per_million": per_million, "ratio": scale * count / per_million if theirs else np.nan}
        rows.append(row)
    return pd.DataFrame(rows)
