"""The page on randomized response: what its figures draw, and what its words and tables say."""

import pytest
from matplotlib import pyplot as plt

from paperlib.papers.natural_identifiers import randomized_response as nid
from paperlib.papers.natural_identifiers.pages import randomized_response as page
from paperlib.report.style import points_on_a_phone

SMALL = nid.RandomizedResponseConfig(
    epsilons=(1.0, 2.0), curves=((4, 1), (4, 2)), largest_sets=100_000, points=3
)
FRAME = nid.bounds_by_sets(SMALL)


def test_each_panel_has_a_curve_for_each_pair_and_the_truth():
    papers = FRAME.query("mechanism == 'randomized response' and bound == 'paper'")
    fig = page.curves_figure(papers, SMALL.curves)
    assert [panel.get_title() for panel in fig.axes] == ["true ε = 1", "true ε = 2"]
    for panel, epsilon in zip(fig.axes, SMALL.epsilons, strict=True):
        *curves, truth = panel.lines
        assert [one.get_label() for one in curves] == ["(4, 1)", "(4, 2)"]
        assert len({(one.get_color(), one.get_marker(), one.get_linestyle()) for one in curves}) == 2
        assert set(truth.get_ydata()) == {epsilon}
        expected = papers.query("epsilon == @epsilon and top == 2")["mean"].tolist()
        assert curves[1].get_ydata().tolist() == expected
    assert points_on_a_phone(fig) >= 8
    plt.close(fig)


def test_figure_4_says_where_its_curves_end_and_is_judged(capsys):
    page.show_figure_4(FRAME, SMALL)
    shown = capsys.readouterr().out
    last = FRAME.query(
        "mechanism == 'randomized response' and bound == 'paper' and epsilon == 2 and sets == 100_000"
    )
    ends = last.set_index("top")["mean"]
    assert f"epsilon 2, (4, 1) paper {ends[1]:.2f}, (4, 2) paper {ends[2]:.2f}." in shown
    assert "Figure 4, by this run alone" in shown
    assert "Scale: paper's scale (randomized response, up to 100,000 sets;" in shown


def test_one_audit_is_that_of_its_seed(capsys):
    for seed in (0, 1, 0):
        page.show_one_audit(SMALL, seed=seed)
    first, second, third = capsys.readouterr().out.splitlines()
    assert first == third != second
    assert "with 10,000 sets of 8 candidates at ε = 1: ε ≥ 0.9" in first


def test_limits_stand_in_one_row_for_each_curve(capsys):
    wide = page.limits_table(SMALL).set_index(["epsilon", "top"])
    table = nid.limits(SMALL).set_index(["mechanism", "epsilon", "top"])
    assert len(wide) == 4
    for (epsilon, top), row in wide.iterrows():
        assert row["paper, response"] == table.loc[("randomized response", epsilon, top), "paper"]
        assert row["tight, selection"] == table.loc[("subset selection", epsilon, top), "tight"]
    assert wide["tight, selection"].tolist() == pytest.approx([1, 1, 2, 2])
    page.show_tight_bounds(FRAME, SMALL)
    assert "| True ε | c   | r   | Paper, response | Tight, response |" in capsys.readouterr().out


def test_deltas_are_drawn_by_both_terms(capsys):
    config = nid.DeltaConfig(cardinalities=(2, 8), sets=100, deltas=(1e-6, 1e-2))
    by_delta = nid.bounds_by_delta(config)
    fig = page.deltas_figure(by_delta, config.epsilon)
    labels = [line.get_label() for line in fig.axes[0].lines[:-1]]
    assert labels == ["c = 2, Theorem 2", "c = 2, sharp", "c = 8, Theorem 2", "c = 8, sharp"]
    assert {line.get_linestyle() for line in fig.axes[0].lines[:-1:2]} == {":"}
    plt.close(fig)
    page.show_deltas(config)
    shown = capsys.readouterr().out
    vacuous = nid.vacuous_deltas(config).set_index("cardinality")
    assert f"c = 8, {vacuous.loc[8, 'published']:.2g} and {vacuous.loc[8, 'sharp']:.2g}." in shown
    assert "| Candidates c | Theorem 2 | Sharp term | Sharp over Theorem 2 |" in shown
