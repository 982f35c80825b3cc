"""The page on auditing DP-SGD: what its figures draw, and what its words and tables say."""

import math

import pandas as pd
import pytest
from matplotlib import pyplot as plt

from paperlib.papers.natural_identifiers import dp_audit as dp
from paperlib.papers.natural_identifiers.pages import dp_audit as page
from paperlib.papers.verdict import Scale
from paperlib.report.style import points_on_a_phone
from tests.papers.natural_identifiers.test_dp_audit import audits

SCALE = Scale("substitute", "made-up bounds")


def with_figures():
    table = audits().assign(hit_rate=0.5, replacement_epsilon=9.0, below_theory=True)
    return pd.concat([table[table["top"] == 1].assign(figure=name) for name in page.FIGURES])


def test_figures_draw_each_target_with_bars_over_models():
    means = dp.mean_bounds(audits(), ["target", "cardinality"])
    fig = page.bound_curves(means, "cardinality", "target")
    assert [panel.get_title() for panel in fig.axes] == list(dp.CURVES)
    assert [len(panel.containers) for panel in fig.axes] == [2, 2, 2]
    assert len({panel.get_ylim() for panel in fig.axes}) == 1
    assert points_on_a_phone(fig) >= 8
    plt.close(fig)


def test_figure_2_shows_the_gain_of_large_sets_and_is_judged(capsys):
    table = with_figures()
    page.show_figure_2(table, SCALE, suffix="-made-up")
    shown = capsys.readouterr().out
    assert "Bound at c = 64 less that at c = 2, nats" in shown
    assert "| Bound and score " in shown
    assert "Figure 2, by this run alone" in shown
    gain, ends = page.gain_of_large_sets(table[table["figure"] == "Figure 2"])
    assert ends == (2, 64)
    one = gain.iloc[0]
    assert one["shown"] == f"{one['difference']:.2f} ± {one['high'] - one['difference']:.2f}"
    assert one["shown"] in shown


def test_figure_5_says_where_the_largest_mean_is(capsys):
    page.show_figure_5(with_figures(), SCALE)
    shown = capsys.readouterr().out
    assert "Lower bound against the number of canaries at target epsilon 5" in shown
    assert "canaries 10" in shown
    assert "Figure 5, by this run alone" in shown


def test_bounds_of_the_first_model_stand_in_a_column_for_each_size(capsys):
    table = audits().assign(replacement_epsilon=9.0, paper=lambda rows: rows["cardinality"] / 100 + 1.009)
    page.show_first_model(table)
    lines = capsys.readouterr().out.splitlines()
    assert [cell.strip() for cell in lines[1].split("|")[1:-1]] == [
        "Target ε", "Score", "c = 2", "c = 8", "c = 64", "Theory",
    ]  # fmt: skip
    assert len(lines) == 3 + 2 * 3
    assert lines[3].split("|")[3:6] == [" 1.02  ", " 1.08  ", " 1.64   "]  # rounded down


def test_several_places_are_those_of_the_largest_sets(capsys):
    table = audits().assign(hit_rate=0.5, replacement_epsilon=9.0)
    page.show_several_places(table)
    rows = capsys.readouterr().out.splitlines()[3:]
    assert [row.split("|")[2].strip() for row in rows] == ["64", "64"]
    assert {row.split("|")[3].strip() for row in rows} == {"4"}


def test_bounds_above_the_theory_are_counted(capsys):
    table = audits().assign(below_theory=True)
    page.show_theory_kept(table)
    assert f"Of {len(table)} audits" in (said := capsys.readouterr().out)
    assert "none have a bound above" in said
    table.loc[0, "below_theory"] = False
    page.show_theory_kept(table, table)
    assert "2 have a bound above" in capsys.readouterr().out


def test_earlier_audits_are_those_kept_with_the_book_unless_this_run_has_true_dialogues():
    found = page.earlier_audits("", "documentation")
    assert found is not None
    table, scale = found
    assert set(table["figure"]) == set(page.FIGURES)
    assert scale.level == "paper's data"
    assert scale.facts.startswith("a GPT of width 64, sha256 canaries before persona_chat text, measured ")
    assert page.earlier_audits("none", "documentation") is None
    assert page.earlier_audits("", "persona_chat") is None
    with pytest.raises(ValueError, match="measured: no"):
        page.earlier_audits("nowhere.csv", "documentation")


def test_theory_is_shown_by_adjacency(capsys):
    from paperlib.papers.natural_identifiers.dp_models import run_for

    run = run_for(5.0, 1e-5)
    page.show_theory({run: 5.0, run_for(math.inf, 1e-5): math.inf}, 1e-5)
    shown = capsys.readouterr().out
    add, swap = dp.theoretical_epsilons(run, 1e-5)
    assert f"{add:.2f}" in shown
    assert f"{swap:.2f}" in shown
    assert "| ∞ " in shown
