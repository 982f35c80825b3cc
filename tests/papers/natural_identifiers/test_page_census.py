"""The page on the census: what its figures draw, and what its words and tables say."""

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

from paperlib.generators.identifiers import PAPER_KINDS, Identifier
from paperlib.papers.measured import measured_table
from paperlib.papers.natural_identifiers.census import pile, tables
from paperlib.papers.natural_identifiers.census.corpus import take_census
from paperlib.papers.natural_identifiers.pages import census as page
from paperlib.papers.natural_identifiers.pages import census_checks as checks
from paperlib.report.style import points_on_a_phone
from tests.generators.true_identifiers import LOOK_ALIKES, random_ones


def by_subset(**counts):
    rows = [
        {"subset": name, "documents": 10, "characters": 10**6, "matches": sum(some), "total": sum(some[:6])}
        | dict(zip([*PAPER_KINDS, "other_kinds"], some, strict=True))
        for name, some in counts.items()
    ]
    return pd.DataFrame(rows)


@pytest.fixture(scope="module")
def measured():
    found, read = (
        measured_table(f"book/measured/{name}.csv") for name in ("nid_census_filtered", "nid_census")
    )
    assert found is not None
    assert read is not None
    return found[0].assign(site=found[0]["site"].fillna("")), read[0]


def test_the_papers_totals_stand_beside_ours_and_add_up():
    table = page.table_2(by_subset(a=(1, 0, 0, 0, 0, 0, 5), b=(2, 4, 0, 0, 0, 0, 0))).set_index("Kind")
    assert table["This page"].tolist() == [7, 3, 4, 0, 0, 0, 0]
    assert table.loc["all kinds", ["Pile, train", "Pile, test", "Dolma"]].tolist() == [30_344, 293, 23_571]
    for name in table:
        assert table[name].iloc[1:].sum() == table.loc["all kinds", name]


def test_shares_of_the_kinds_are_of_the_same_subsets():
    filtered = pd.DataFrame([{"subset": "github", **dict(zip(PAPER_KINDS, (3, 1, 0, 0, 0, 0), strict=True))}])
    shares = page.kind_shares(filtered, ["github", "wikipedia"]).set_index("kind")
    assert shares.loc[PAPER_KINDS[1], "here"] == 25
    printed = tables.paper_census().set_index("dataset")
    two = printed.loc[["pile test github", "pile test wikipediaen"]]
    expected = 100 * two[PAPER_KINDS[0]].sum() / two["total"].sum()
    assert shares.loc[PAPER_KINDS[0], "paper"] == pytest.approx(expected)


def test_table_2_is_judged_on_the_subsets_of_the_pile(measured, capsys):
    page.show_pile(*measured, facts="counted by hand")
    shown = capsys.readouterr().out
    documents = measured[1][measured[1]["subset"].isin(list(tables.PILE_SUBSETS))]["documents"].sum()
    assert f"Scale: paper's data ({documents:,} documents of the Pile's test part, counted by hand)." in shown
    kinds = pile.counts_by_kind(measured[0])
    row = next(line for line in shown.splitlines() if line.startswith("| ethereum"))
    ours = kinds[kinds["kind"] == "ethereum"]
    assert [int(cell) for cell in row.split("|")[2:-1]] == [
        ours[name].sum()
        for name in ("matches", "different", "erc55", "outside_addresses", "filtered", "paper")
    ]


def test_without_the_pile_table_2_is_not_judged(capsys):
    page.show_no_pile(by_subset(a=(1, 0, 0, 0, 0, 0, 5)))
    shown = capsys.readouterr().out
    assert shown.startswith("No subset of the Pile's test part is at hand.")
    assert "Scale: substitute (10 documents without subsets of the Pile)." in shown


def test_rates_are_drawn_with_the_papers_and_told(measured, capsys):
    rates = pile.rates(*measured)
    fig = page.rates_figure(rates)
    crosses = next(line for line in fig.axes[0].lines if line.get_marker() == "x")
    assert crosses.get_xdata().tolist() == rates["paper_per_million"].tolist()
    assert points_on_a_phone(fig) >= 8
    plt.close(fig)
    page.show_rates(*measured)
    shown = capsys.readouterr().out
    filtered = pile.filtered_census(measured[0])
    more = filtered[filtered["total"] > filtered["paper"]]
    for row in more.itertuples():
        assert f"{row.subset} ({row.total} against {row.paper})" in shown
    github = rates.set_index("subset").loc["github"]
    assert f"github {github['per_million']:.0f}, the paper {github['paper_per_million']:.0f}" in shown


def test_bars_add_up_to_the_density():
    dense = page.densities(by_subset(a=(1, 2, 0, 0, 0, 0, 5), b=(0, 0, 0, 0, 0, 0, 0)))
    assert dense["subset"].tolist() == ["a"]
    fig = page.density_figure(dense)
    (panel,) = fig.axes
    assert max(bar.get_x() + bar.get_width() for bar in panel.patches) == 8
    assert len({(bar.get_facecolor(), bar.get_hatch()) for bar in panel.patches}) == 7
    plt.close(fig)


def test_look_alikes_stand_with_the_reasons(tmp_path, capsys):
    (tmp_path / "a.txt").write_text("\n".join([*LOOK_ALIKES["md5"], *random_ones("sha1", 3)]))
    (tmp_path / "b.txt").write_text("")
    census = take_census([tmp_path], folder=tmp_path / "units", progress=False)
    table = page.look_alikes(census.totals).set_index("kind")
    assert table.loc["sha1", "identifiers"] == 3
    assert table.loc["sha1", "why"] == "–"
    assert table.loc["md5", "look_alikes"] == len(LOOK_ALIKES["md5"])
    assert "few different digits" in table.loc["md5", "why"]
    page.show_text_at_hand(census, tables.census_by_subset(census))
    assert "| empty file | 1      | b.txt" in capsys.readouterr().out
    page.show_look_alikes(census.totals[:0])
    assert capsys.readouterr().out == "No identifier and no look-alike in this text.\n"


def test_blind_classifiers_are_drawn_before_and_after(capsys):
    sample = [Identifier("md5", value, 0, len(value)) for value in random_ones("md5", 30)]
    checks.show_blind(sample, count=5, extreme=0.02, seed=0)
    shown = capsys.readouterr().out
    assert "A row for each kind and classifier, with chance at one half. md5, naive Bayes 0." in shown
    checks.show_blind(sample[:5], count=5, extreme=0.02, seed=0)
    assert capsys.readouterr().out == "Fewer than 20 identifiers: too few to judge.\n"
    both = pd.DataFrame({"kind": ["md5", "sha1"], "baseline": "trees", "auc": [0.4, 0.6]})
    fig = checks.blind_figure(both.assign(auc_after=0.5, low_after=0.4, high_after=0.6))
    before = next(line for line in fig.axes[0].lines if line.get_label() == "before")
    assert before.get_xdata().tolist() == [0.4, 0.6]
    assert np.diff(before.get_ydata()) == -1  # from top to bottom
    assert points_on_a_phone(fig) >= 8
    plt.close(fig)


def test_other_corpora_are_those_outside_the_pile(measured, capsys):
    page.show_other_corpora(measured[1], "some day")
    shown = capsys.readouterr().out
    assert "Other corpora (some day)" in shown
    assert "| github " not in shown
    assert "| debian_packages " in shown
