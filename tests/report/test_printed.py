"""The papers' numbers as shipped: nothing missing."""

import re

import pandas as pd
import pytest

from paperlib.report import paper_table, paper_tables, targets
from paperlib.report.printed import PAPERS


def test_every_table_can_be_read_in_both_ways() -> None:
    for name in paper_tables():
        numbers, printed = paper_table(name), paper_table(name, as_printed=True)
        assert numbers.shape == printed.shape
        assert not numbers.empty


def test_printed_decimals_are_kept() -> None:
    assert paper_table("panoramia_table03", as_printed=True)["c_lb_pm"].iloc[0] == "0.190"


def test_an_unknown_table_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match="epsilon_star_text"):
        paper_table("epsilon_star_table01")


def test_there_are_twenty_tables_and_thirty_figures_each_with_a_headline() -> None:
    table = targets()
    assert table["item"].str.startswith("Table").sum() == 20
    assert table["item"].str.startswith("Figure").sum() == 30
    assert table["id"].is_unique
    assert set(table["paper"]) == set(PAPERS)
    assert (table[["headline", "source", "claim", "notebook"]] != "").all().all()


@pytest.mark.parametrize(
    ("target", "table", "column"),
    [
        ("panoramia-table-01", "panoramia_table01", "test_accuracy_pct"),
        ("panoramia-table-02", "panoramia_table02", "c_lb"),
        ("panoramia-table-03", "panoramia_table03", "eps_tilde"),
        ("panoramia-table-06", "panoramia_table06", "eps_tilde"),
        ("panoramia-table-08", "panoramia_table08", "eps_tilde"),
        ("panoramia-table-09", "panoramia_table09", "eps_tilde"),
        ("panoramia-table-11", "panoramia_table11", "eps_tilde"),
        ("nid-table-01", "nid_table01", "value_pct"),
        ("nid-table-04", "nid_table04", "value_pct"),
        ("nid-table-05", "nid_table05", "value_pct"),
        ("nid-table-06", "nid_table06", "value_pct"),
        ("nid-table-10", "nid_table10", "p_value"),
        ("epsilon-star-figure-01", "epsilon_star_text", "value"),
    ],
)
def test_headline_decimals_stand_in_the_paper_s_own_table(target: str, table: str, column: str) -> None:
    headline = targets().set_index("id").loc[target, "headline"]
    printed = paper_table(table, as_printed=True)
    known = set(pd.to_numeric(printed.drop(columns=["section"], errors="ignore").stack(), errors="coerce"))
    assert column in printed
    for number in re.findall(r"\d+\.\d+", headline):
        assert float(number) in known or _elsewhere(table, float(number)), f"{number} of {headline!r}"


def _elsewhere(table: str, number: float) -> bool:
    """O(1) and RM;RN values stand in another column that holds rounded values."""
    values = pd.to_numeric(paper_table(table).select_dtypes("number").stack(), errors="coerce")
    return bool((values.round(2) == number).any())
