"""The paper's values beside those of the benchmark, and how many of its AUCs lie beyond folding."""

import itertools

import pandas as pd
import pytest

from paperlib.papers.natural_identifiers import benchmark as bench
from paperlib.papers.natural_identifiers.planted import PAPER_ATTACKS, TOKENS
from paperlib.report import paper_table

GROUPS = ("held out", "trained", "trained, occurs once", "1 time")


def test_the_papers_value_is_its_mean_over_subsets():
    places = itertools.product([*bench.PAPER_MODELS, bench.DIFFERENCE], GROUPS, [*PAPER_ATTACKS, TOKENS])
    beside = bench.beside_paper(pd.DataFrame(list(places), columns=["model", "group", "attack"]))
    assert len(beside) == len(bench.PAPER_MODELS) * len(GROUPS) * len(PAPER_ATTACKS)
    row = beside.set_index(["model", "group", "attack"]).sort_index()
    table = paper_table("nid_table01").query("mia == 'loss' and split == 'test' and subset != 'average'")
    expected = pytest.approx(table["value_pct"].mean())
    assert row.loc[("large", "held out", "loss"), "paper_auc"] == expected
    once, trained = (row.loc[("one pass", group, "loss"), "paper_tpr"] for group in (GROUPS[2], GROUPS[1]))
    assert once == trained
    assert row.loc[("large", "1 time")][["paper_auc", "paper_tpr"]].isna().all(axis=None)


def test_what_lies_beyond_folding_is_counted_and_noise_is_folded_further_of_fewer_identifiers():
    folded = bench.folded_cells(paper_table("nid_table01").query("mia == 'loss'"))
    beyond = (folded["printed"] > folded["noise_95"]).groupby(folded["split"]).agg(["sum", "size"])
    assert beyond.loc["train"].tolist() == [4, 9]
    assert beyond.loc["test", "size"] == 3
    cells = folded[folded["split"] == "test"].set_index("subset").loc[["github", "pile"]]
    assert cells["identifiers"].tolist() == [197, 293]
    few, many = cells["noise_mean"]
    assert few > many > 50
