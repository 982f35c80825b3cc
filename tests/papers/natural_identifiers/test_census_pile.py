"""Places of identifiers in the Pile's test part, the paper's filters, and rates."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import poisson

from paperlib.data.text.corpora import Document
from paperlib.generators.identifiers import KINDS, PAPER_KINDS
from paperlib.papers.natural_identifiers.census import tables as pile
from tests.generators.true_identifiers import random_ones

ADDRESS = KINDS["ethereum"].example
MD5 = random_ones("md5", 60)


@pytest.fixture(scope="module")
def places():
    """GitHub holds ten digests and one address in two spellings; Hacker News one of them and look-alikes."""
    rng = np.random.default_rng(0)
    numbers = ["".join(rng.choice(list("0123abcd"), 32)) for _ in range(12)]
    texts = {"github": [*MD5[:10], ADDRESS, ADDRESS.lower()], "hackernews": [MD5[0], *numbers]}
    texts["code"] = MD5[10:]
    documents = [Document(f"see {value}", name) for name, some in texts.items() for value in some]
    documents.append(Document(f"[http://a.example/x/{MD5[0]}] and {MD5[0]}", "hackernews"))
    return pile.pile_identifiers(documents, generated=60, extreme=0.02)


def test_counts_after_the_papers_filters(places):
    """A value counts in each of its subsets, look-alikes go, addresses count by ERC-55 alone."""
    rows = pile.filtered_census(places).set_index("subset")
    assert rows["before"].to_dict() == {"hackernews": 13, "github": 11}
    assert rows["paper"].to_dict() == {"hackernews": 13, "github": 197}
    assert rows.loc["github", "ethereum"] == 1
    assert rows.loc["github", "md5"] >= 8
    assert rows.loc["hackernews", "total"] <= 6
    assert (rows["total"] == rows[list(PAPER_KINDS)].sum(axis=1)).all()


def test_each_reading_counts_apart(places):
    table = pile.counts_by_kind(places).set_index(["subset", "kind"])
    ethereum = table.loc["github", "ethereum"]
    assert ethereum[["matches", "different", "erc55", "paper"]].tolist() == [2, 1, 1, 4]
    news = table.loc["hackernews", "md5"]
    # One value in a sentence, in a web address and in a sentence again; twelve look-alikes in sentences.
    assert news[["matches", "different", "outside_addresses", "documents"]].tolist() == [15, 13, 12, 14]
    assert table.loc[("hackernews", "sha1"), "paper"] == 7


def test_lower_case_addresses_alone_are_no_identifier_of_the_paper():
    company = [Document(value, "code") for value in MD5]
    places = pile.pile_identifiers([Document(ADDRESS.lower(), "pile_cc"), *company], generated=5)
    assert places[["erc55", "kept"]].values.tolist() == [[False, False]]
    ethereum = pile.counts_by_kind(places).set_index("kind").loc["ethereum"]
    assert ethereum[["different", "erc55"]].tolist() == [1, 0]
    assert pile.pile_identifiers([Document("nothing", "github")]).empty


def test_sites_are_hosts_of_web_addresses_that_reach_the_identifier(places):
    table = pile.sites(places, "hackernews").set_index("site")
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
    assert pile.pile_identifiers(documents, generated=5)["site"].tolist() == list(sites.values())


def test_rates_have_exact_poisson_intervals_and_the_papers_number_of_documents(places):
    read = pd.DataFrame({"subset": ["github", "code", "wikipedia"], "documents": [1_000, 50, 500]})
    table = pile.rates(places, read).set_index("subset")
    github = table.loc["github"]
    assert github[["identifiers", "documents_with", "per_million"]].tolist() == [11, 11, 11_000]
    assert poisson.sf(10, github["low"] / 1_000) == pytest.approx(0.025)
    assert poisson.cdf(11, github["high"] / 1_000) == pytest.approx(0.025)
    assert github["paper_documents"] == round(95.16 * 1024**2 / 5.25 / 1_000)
    assert github["ratio"] == pytest.approx(11_000 / (197e6 / github["paper_documents"]), rel=1e-4)
    assert table.loc["wikipedia", ["identifiers", "low"]].tolist() == [0, 0]
    assert "code" not in table.index
