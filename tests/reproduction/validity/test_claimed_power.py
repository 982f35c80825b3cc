"""The power of the test of a claimed curve, as the book has it: bounds computed again, and page."""

from pathlib import Path

import pandas as pd
import pytest

from paperlib.reproduction.running import find_project
from paperlib.reproduction.validity.claimed_power import (
    AUDITS,
    BOUNDS,
    EXAMPLES,
    FIRST,
    LEAKS,
    PEER,
    drawn_audits,
    peer_bound,
)

HERE = find_project(Path(__file__).parent)
TABLE = pd.read_csv(HERE.measured / "estimates" / "claimed_power.csv")


def test_every_leak_and_size_has_a_row():
    assert list(TABLE["leak"].unique()) == list(LEAKS)
    assert len(TABLE) == len(LEAKS) * len(EXAMPLES)
    assert (TABLE["audits"] == AUDITS).all()


def first_mean(leak: str, column: str) -> float:
    """The mean of the first bounds that the table has for a leak, at the smallest size."""
    row = TABLE[(TABLE["leak"] == leak) & (TABLE["examples"] == EXAMPLES[0])].iloc[0]
    return float(row[f"{column}, first {FIRST}"])


@pytest.mark.parametrize("column", list(BOUNDS))
@pytest.mark.parametrize("leak", ["members N(1, 1)", "10 % of members memorised"])
def test_the_first_bounds_computed_again_are_those_of_the_table(leak, column):
    bounds = [BOUNDS[column](scores) for scores in drawn_audits(leak, EXAMPLES[0], FIRST)]
    assert sum(bounds) / FIRST == pytest.approx(first_mean(leak, column), abs=2e-6)


def test_the_first_bounds_of_the_peer_are_those_of_the_table():
    pytest.importorskip("jax_privacy.auditing", reason="pip install jax-privacy, as `peers` does")
    leak = "members N(1, 1)"
    bounds = [peer_bound(scores) for scores in drawn_audits(leak, EXAMPLES[0], FIRST)]
    assert sum(bounds) / FIRST == pytest.approx(first_mean(leak, PEER), abs=1e-4)


def test_the_page_shows_the_table():
    page = (HERE.root / "book" / "whole_curve.md").read_text(encoding="utf-8")
    for row in TABLE.to_dict("records"):
        means = " | ".join(f"{row[column]:.2f}" for column in (*BOUNDS, PEER))
        assert f"| {row['leak']} | {row['examples']:,} | {means} |" in page
