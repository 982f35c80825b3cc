"""What the page shows: rounding, access, the figure, the points to take, the decision guide."""

import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

from paperlib.papers.comparison import pages
from paperlib.papers.comparison.audits import ACCESS, AUDITS, LOWER, MEASURED, Options, compare_audits
from paperlib.papers.comparison.mechanisms import MechanismConfig, known_mechanisms
from paperlib.papers.comparison.pages import (
    access_table,
    bounds_figure,
    decision_guide,
    describe_bounds,
    shown_rows,
    things_to_take,
)
from paperlib.papers.landing import guide_markdown

TOC = (Path(__file__).parents[3] / "book" / "_toc.yml").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def frame():
    """Known mechanisms, and one trained target in disguise, so that all audits occur."""
    rows = compare_audits(known_mechanisms(MechanismConfig(records=200, sets=60)), Options())
    one = rows[rows["audit"] == "Epsilon*"].iloc[[0]]
    fitted = one.assign(audit="PANORAMIA", generator=True, nonmembers=False, low=np.nan, high=np.nan)
    fitted = fitted.assign(page="notebooks/panoramia_your_data", family="classifier", labels=True)
    plain = rows[rows["audit"] == "one run"].iloc[[1, 2]].assign(family="classifier", add_remove=np.inf)
    return pd.concat([rows, fitted, plain.assign(theory=np.inf, labels=True)], ignore_index=True)


def test_lower_bounds_are_never_shown_rounded_up(frame):
    shown = shown_rows(frame)
    lower = shown[shown["kind"] == LOWER]
    assert (lower["shown_epsilon"].astype(float) <= lower["epsilon"]).all()
    assert (lower["shown_number"] == "≥\N{NO-BREAK SPACE}" + lower["shown_epsilon"]).all()
    assert shown_rows(shown).equals(shown)


def test_a_measurement_has_its_interval_beside_it_and_no_guarantee_is_said_in_words(frame):
    shown = shown_rows(frame)
    measured = shown[shown["kind"] == MEASURED]
    fitted = measured["audit"] == "PANORAMIA"
    assert (measured["shown_number"][fitted] == measured["shown_epsilon"][fitted]).all()
    assert measured["shown_number"][~fitted].str.fullmatch(r"[\d.]+\xa0\[[\d.]+,\xa0[\d.]+\]").all()
    assert set(measured["shown_theory"]) == {"–"}
    assert set(shown["shown_theory"][np.isinf(shown["theory"])]) == {"none"}


def test_a_family_has_its_figure_and_a_table_of_five_columns(frame, monkeypatch):
    kept = {}
    monkeypatch.setattr(pages, "show_figure", lambda fig, **given: kept.update({given["name"]: given}))
    monkeypatch.setattr(
        pages, "show_table", lambda rows, **given: kept.update({given["name"]: (rows, given)})
    )
    pages.show_family(shown_rows(frame), "known mechanism")
    rows, given = kept["compare-known-mechanism-rows"]
    assert set(rows["family"]) == {"known mechanism"}
    assert list(given["columns"].values()) == ["Target", "Audit", "ε (nats)", "Speaks of", "Guarantee"]
    assert set(rows.loc[rows["audit"] == "f-DP", "shown_about"]) == {"add/remove, family of curves"}
    assert "δ = 1e-05, confidence 0.95" in kept["compare-known-mechanism"]["caption"]
    pages.show_guide(frame)
    pages.show_access(frame)
    assert (
        f"the {len(frame.groupby(['family', 'target']))} targets"
        in kept["compare-decision-guide"][1]["caption"]
    )
    plt.close("all")


def test_access_has_every_audit_once_in_their_order(frame):
    table = access_table(frame)
    assert table["audit"].tolist() == [one.name for one in AUDITS]
    assert set(table[list(ACCESS)].to_numpy().ravel()) == {"yes", ""}
    assert table.set_index("audit").loc["many runs", "retraining"] == "yes"


def test_the_guide_has_every_audit_with_a_page_of_the_book(frame):
    guide = decision_guide(frame)
    assert list(guide) == ["you_have", "use", "page", "you_get", "access", "seconds"]
    assert guide["use"].tolist() == [one.name for one in AUDITS]
    assert (guide[["you_have", "you_get", "access"]].map(len) > 0).all(axis=None)
    assert not guide["you_have"].duplicated().any() or set(
        guide.loc[guide["you_have"].duplicated(keep=False), "use"]
    ) == {"game", "Epsilon*"}
    assert [page for page in guide["page"] if f"file: {page}\n" not in TOC] == []


def test_the_guide_says_which_numbers_are_no_bounds(frame):
    guide = decision_guide(frame).set_index("use")
    kinds = frame.groupby("audit")["kind"].first()
    for name, words in guide["you_get"].items():
        assert ("no bound" in words) == (kinds[name] == MEASURED)


def test_the_guide_survives_its_csv_and_links_its_pages(frame):
    guide = decision_guide(frame)
    read = pd.read_csv(io.StringIO(guide.to_csv(index=False)))
    assert guide_markdown(read) == guide_markdown(guide)
    lines = guide_markdown(guide).splitlines()
    assert len(lines) == 2 + len(AUDITS)
    assert any("{doc}`Epsilon* </papers/epsilon_star>`" in line for line in lines)
    assert {line.count("|") for line in lines} == {5}


def test_figure_has_a_panel_per_target_filled_bounds_and_hollow_measurements(frame):
    rows = frame[frame["family"] == "known mechanism"]
    fig = bounds_figure(rows)
    assert [axis.get_title() for axis in fig.axes] == list(rows["target"].unique())
    marks = [line for axis in fig.axes for line in axis.get_lines() if line.get_marker() != "None"]
    hollow = [line for line in marks if line.get_markerfacecolor() == "none"]
    assert len(marks) == len(rows)
    assert len(hollow) == (rows["kind"] == MEASURED).sum()
    assert fig.get_size_inches()[0] == 4.5
    plt.close(fig)


def test_a_guarantee_far_above_all_numbers_stands_at_the_edge_in_digits(frame):
    rows = frame[frame["family"] == "known mechanism"].assign(theory=99.0)
    fig = bounds_figure(rows)
    assert {text.get_text() for axis in fig.axes for text in axis.texts} == {"99.0 →"}
    assert max(axis.get_xlim()[1] for axis in fig.axes) < 20
    plt.close(fig)


def test_the_figure_is_told_in_words(frame):
    words = describe_bounds(frame)
    assert all(name in words for name in [*frame["target"].unique(), *frame["audit"].unique()])


def test_the_points_follow_from_the_rows(frame):
    points = things_to_take(frame).splitlines()
    assert [point[:2] for point in points] == ["1.", "2.", "3."]
    known = frame[np.isfinite(frame["add_remove"])]
    bounds = known[known["kind"] == LOWER]
    assert f"0 of {len(bounds)} lower bounds" in points[0]
    above = things_to_take(frame.assign(theory=-1.0))
    assert f"{len(bounds)} of {len(bounds)} lower bounds" in above
