"""Tables beside a census: other counts, samples, the paper's filters on the Pile's test part, and
rates.
"""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.stats import poisson

from paperlib.data.text.corpora import Document
from paperlib.generators.identifiers import KINDS, PAPER_KINDS
from paperlib.generators.identifiers.scan import as_identifier
from paperlib.reproduction.papers.natural_identifiers.census import tables
from paperlib.reproduction.papers.natural_identifiers.census.corpus import take_census
from tests.generators.true_identifiers import KNOWN, LOOK_ALIKES, random_ones


@pytest.fixture
def files(tmp_path):
    every = [value for values in [*KNOWN.values(), *LOOK_ALIKES.values()] for value in values]
    records = [{"text": f"see {value}, twice {value}", "subset": "all"} for value in every]
    records += [{"text": "nothing", "subset": "none"}]
    path = tmp_path / "x.jsonl"
    path.write_text("\n".join(json.dumps(record) for record in records))
    return tables.chosen_files([str(path)], [])


def test_subsets_count_different_identifiers(files, tmp_path):
    census = take_census(files, folder=tmp_path)
    table = tables.census_by_subset(census).set_index("subset")
    found = table.loc["all"]
    others = sum(len(values) for kind, values in KNOWN.items() if kind not in PAPER_KINDS)
    assert (found["ethereum"], found["other_kinds"]) == (len(KNOWN["ethereum"]), others)
    assert found["matches"] == 2 * sum(map(len, KNOWN.values()))
    assert table.loc["none", ["total", "documents"]].tolist() == [0, 1]


def test_plain_expressions_count_the_same_samples_hold_different_ones_and_speed_adds_up(files):
    ours, plain = tables.plain_counts(files, characters=10**9)
    assert ours == plain
    assert plain["md5"] == 2 * (len(KNOWN["md5"]) + len(LOOK_ALIKES["md5"]))
    assert tables.plain_counts(files * 5, characters=1)[1] == plain
    sample = tables.sample_identifiers(files, per_kind=2)
    assert all(as_identifier(one.value).kind == one.kind for one in sample)
    assert {kind: sum(one.kind == kind for one in sample) for kind in KINDS} == {
        kind: min(2, len({KINDS[kind].key(value) for value in KNOWN[kind]})) for kind in KINDS
    }
    assert sample == tables.sample_identifiers(files, per_kind=2)
    table = tables.census_speed(files, megabytes=0.001).set_index("step")["cpu_seconds"]
    assert table["both"] == pytest.approx(table.sum() / 2)


def test_the_papers_totals_stand_beside_ours_and_shares_are_of_the_same_subsets():
    counts = zip([*PAPER_KINDS, "total"], (3, 4, 0, 0, 0, 0, 7), strict=True)
    table = tables.beside_the_paper(pd.DataFrame([dict(counts)])).set_index("kind")
    assert table["here"].tolist() == [7, 3, 4, 0, 0, 0, 0]
    assert table.loc["all kinds", ["pile_train", "pile_test", "dolma"]].tolist() == [
        30_344,
        293,
        23_571,
    ]
    assert (table.iloc[1:].sum() == table.loc["all kinds"]).all()
    filtered = pd.DataFrame(
        [{"subset": "github", **dict(zip(PAPER_KINDS, (3, 1, 0, 0, 0, 0), strict=True))}]
    )
    shares = tables.kind_shares(filtered, ["github", "wikipedia"]).set_index("kind")
    assert shares.loc[PAPER_KINDS[1], "here"] == 25
    two = (
        tables.paper_census()
        .set_index("dataset")
        .loc[["pile test github", "pile test wikipediaen"]]
    )
    expected = 100 * two[PAPER_KINDS[0]].sum() / two["total"].sum()
    assert shares.loc[PAPER_KINDS[0], "paper"] == pytest.approx(expected)


def test_look_alikes_stand_with_the_reasons_and_what_cannot_be_read_with_its(tmp_path):
    (tmp_path / "a.txt").write_text("\n".join([*LOOK_ALIKES["md5"], *random_ones("sha1", 3)]))
    census = take_census([tmp_path / "a.txt"], folder=tmp_path / "units")
    table = tables.look_alikes_by_kind(census.totals).set_index("kind")
    assert table.loc["sha1", ["identifiers", "why"]].tolist() == [3, "–"]
    assert table.loc["md5", "look_alikes"] == len(LOOK_ALIKES["md5"])
    assert "few different digits" in table.loc["md5", "why"]
    (tmp_path / "a.txt").write_bytes(b"")
    (tmp_path / "b.bin").write_bytes(b"\0\1")
    census = take_census([tmp_path / "a.txt", tmp_path / "b.bin"], folder=tmp_path / "units")
    with pytest.raises(
        ValueError, match=r"binary file: 1, such as b\.bin; empty file: 1, such as a\.txt"
    ):
        tables.census_by_subset(census)


ADDRESS = KINDS["ethereum"].example
MD5 = random_ones("md5", 60)


@pytest.fixture(scope="module")
def places():
    """GitHub holds ten digests and one address in two spellings; Hacker News one of them and
    look-alikes.
    """
    numbers = ["".join(one) for one in np.random.default_rng(0).choice(list("0123abcd"), (12, 32))]
    texts = {"github": [*MD5[:10], ADDRESS, ADDRESS.lower()], "hackernews": [MD5[0], *numbers]}
    texts["code"] = MD5[10:]
    documents = [Document(f"see {value}", name) for name, some in texts.items() for value in some]
    documents.append(Document(f"[http://a.example/x/{MD5[0]}] and {MD5[0]}", "hackernews"))
    return tables.pile_identifiers(documents, generated=60, extreme=0.02)


def test_counts_after_the_papers_filters_and_of_each_reading_apart(places):
    """A value counts in each of its subsets, look-alikes go, addresses count by ERC-55 alone."""
    rows = tables.filtered_census(places).set_index("subset")
    assert rows["before"].to_dict() == {"hackernews": 13, "github": 11}
    assert rows["paper"].to_dict() == {"hackernews": 13, "github": 197}
    assert rows.loc["github", "ethereum"] == 1
    assert rows.loc["github", "md5"] >= 8
    assert rows.loc["hackernews", "total"] <= 6
    assert (rows["total"] == rows[list(PAPER_KINDS)].sum(axis=1)).all()
    table = tables.counts_by_kind(places).set_index(["subset", "kind"])
    ethereum = table.loc["github", "ethereum"]
    assert ethereum[["matches", "different", "erc55", "paper"]].tolist() == [2, 1, 1, 4]
    news = table.loc["hackernews", "md5"]
    # One value in a sentence, in a web address and in a sentence again; twelve look-alikes in
    # sentences.
    assert news[["matches", "different", "outside_addresses", "documents"]].tolist() == [
        15,
        13,
        12,
        14,
    ]
    assert table.loc[("hackernews", "sha1"), "paper"] == 7


def test_lower_case_addresses_alone_are_none_of_the_paper_and_a_site_reaches_the_identifier(places):
    assert tables.pile_identifiers([Document("nothing", "github")]).empty
    table = tables.sites(places, "hackernews").set_index("site")
    assert table.loc["a.example", ["different", "documents"]].tolist() == [1, 1]
    assert table.loc["", "different"] == 13
    sites = {
        "go to https://Code.example/a/b?c=": "code.example",
        "http://moscow.sci-\nhub.example/": "moscow.sci-hub.example",
        "http://a.example/ and then ": "",
        "[x](http://a.example) ": "",
    }
    documents = [Document(text + MD5[at], "github") for at, text in enumerate(sites)]
    documents += [Document(value, "code") for value in MD5[4:]]
    found = tables.pile_identifiers([*documents, Document(ADDRESS.lower(), "pile_cc")], generated=5)
    assert found.loc[found["subset"] == "github", "site"].tolist() == list(sites.values())
    lower = found[found["subset"] == "pile_cc"]
    assert lower[["erc55", "kept"]].values.tolist() == [[False, False]]
    ethereum = tables.counts_by_kind(found).set_index(["subset", "kind"]).loc["pile_cc", "ethereum"]
    assert ethereum[["different", "erc55"]].tolist() == [1, 0]


def test_rates_have_exact_poisson_intervals_and_the_papers_number_of_documents(places):
    read = pd.DataFrame({"subset": ["github", "code", "wikipedia"], "documents": [1_000, 50, 500]})
    table = tables.rates(places, read).set_index("subset")
    github = table.loc["github"]
    assert github[["identifiers", "documents_with", "per_million"]].tolist() == [11, 11, 11_000]
    assert poisson.sf(10, github["low"] / 1_000) == pytest.approx(0.025)
    assert poisson.cdf(11, github["high"] / 1_000) == pytest.approx(0.025)
    assert github["paper_documents"] == round(95.16 * 1024**2 / 5.25 / 1_000)
    assert github["ratio"] == pytest.approx(11_000 / (197e6 / github["paper_documents"]), rel=1e-4)
    assert table.loc["wikipedia", ["identifiers", "low"]].tolist() == [0, 0]
    assert "code" not in table.index
