"""The page on dataset inference: what its figures draw, and what its words and tables say."""

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

from paperlib.audits.candidates import CandidateScores
from paperlib.papers.natural_identifiers.hub import HubConfig
from paperlib.papers.natural_identifiers.inference import InferenceConfig
from paperlib.papers.natural_identifiers.pages import inference as page
from paperlib.papers.natural_identifiers.planted import PlantedConfig
from paperlib.papers.verdict import Scale
from paperlib.report import paper_table
from paperlib.report.style import points_on_a_phone

PRINTED = paper_table("nid_table10")
CONFIG = InferenceConfig(
    planted=PlantedConfig(repetitions=(4,), identifiers=12, held_out=12),
    set_size=12,
    generated=3,
    held_out_sets=4,
    null_alternatives=3,
    trees=2,
)
SCALE = Scale("substitute", "made-up scores")


@pytest.fixture(scope="module")
def scores():
    rng = np.random.default_rng(0)
    values, groups = rng.normal(size=(24, 4, 2)), np.repeat([0, 4], 12)
    values[12:, 0] += 3
    return CandidateScores(values, ("loss", "min_k"), groups)


def sets():
    rows = [("held out", "kfold", 0.3, 0.6), ("held out", "forward", 0.2, 0.4)]
    rows += [("trained, 4x", "kfold", 1e-20, 2e-20), ("trained, 4x", "forward", 1e-9, 2e-9)]
    table = pd.DataFrame(rows, columns=["set", "schedule", "p_value", "p_value_two_sided"])
    return table.assign(identifiers=100)


def null(count=100):
    values = (np.arange(count) + 0.5) / count
    forward = pd.DataFrame({"schedule": "forward", "p_value": values, "p_value_two_sided": values})
    return pd.concat([forward, forward.assign(schedule="kfold", p_value_two_sided=values**4)])


def test_each_set_stands_beside_the_papers_range():
    table = page.beside_table_10(sets(), PRINTED).set_index("set")
    assert table.loc["trained, 4x", "paper"] == "0.0001 to 0.0031 (28 sets)"
    assert table.loc["held out", "paper"] == "0.066 to 0.96 (7 sets)"
    assert table.loc["held out", "kfold, two-sided"] == 0.6
    assert table.loc["trained, 4x", "forward, one-sided"] == 1e-9


def test_every_printed_p_value_is_a_cross_and_each_set_a_dot():
    fig = page.p_values_figure(sets(), PRINTED)
    (panel,) = fig.axes
    dots = [line for line in panel.lines if line.get_marker() == "o"]
    crosses = [line for line in panel.lines if line.get_marker() == "x"]
    assert [line.get_xdata().tolist() for line in dots] == [[0.6], [1e-12]]
    drawn = sorted(value for line in crosses for value in line.get_xdata())
    assert drawn == sorted(PRINTED["p_value"])
    assert [label.get_text() for label in panel.get_yticklabels()][:3] == [
        "here, held out", "here, trained, 4x", "Pythia-12b, train",
    ]  # fmt: skip
    assert points_on_a_phone(fig) >= 8
    plt.close(fig)


def test_table_10_and_figure_3_are_judged_by_the_papers_test(scores, capsys):
    evidence, scale = page.evidence_and_scale(
        CONFIG, scores, sets(), null(), [], HubConfig(), sizes=[5, 12, 8], draws=2
    )
    assert evidence[0].values["trained rejected"].value == 2e-20
    assert list(evidence[1].values["p falls"]) == ["trained, 4x"]
    assert scale.facts.endswith("3 alternatives each (3 in null sets), sets of 12")
    page.show_table_10(sets(), evidence, scale)
    shown = capsys.readouterr().out
    assert "Pythia-12b, train: 0.0001 to 0.0031; Pythia-12b, test: 0.28 to 0.82" in shown
    assert "Here: held out 0.6, trained, 4x 2e-20." in shown
    assert "Table 10, by this run alone" in shown
    curves = pd.DataFrame({"set": "held out", "identifiers": [5, 12], "median": [0.5, 0.25]})
    page.show_figure_3(curves.assign(low=0.1, high=0.9), evidence, scale, draws=2)
    shown = capsys.readouterr().out
    assert "Medians for the largest set: held out 0.25." in shown
    assert "Figure 3, by this run alone" in shown


def test_p_values_of_the_figure_are_cut_at_one_place():
    curves = pd.DataFrame({"set": ["a", "a", "b", "b"], "identifiers": [5, 10, 5, 10]})
    fig = page.sizes_figure(curves.assign(median=[0.5, 1e-30, 0.4, 0.3], low=1e-40, high=0.9))
    assert [line.get_ydata().tolist() for line in fig.axes[0].lines[:2]] == [[0.5, 1e-12], [0.4, 0.3]]
    assert points_on_a_phone(fig) >= 8
    plt.close(fig)


def test_the_level_is_told_in_words(capsys):
    page.show_level(null())
    shown = capsys.readouterr().out
    assert "Folds in order, two-sided at 5 %: 5.0 % (1.6 to 11.3 %) of the sets are rejected" in shown
    assert "K-fold, two-sided at 5 %: 47.0 % (36.9 to 57.2 %) of the sets are rejected" in shown
    assert shown.index("the interval holds 5 %") < shown.index("the interval lies above 5 %")
    assert "| in order | two-sided | 5 %   | 100  | 5        | 5.0 % (1.6 to 11.3 %)" in shown
    fig = page.null_figure(null())
    assert [len(panel.lines) for panel in fig.axes] == [3, 3]
    plt.close(fig)


def test_power_has_both_levels_in_one_row(scores, capsys):
    found = pd.concat([null(20).assign(set="a"), null(20).assign(set="b", p_value=0.02)])
    table = page.power_table(found).set_index(["set", "schedule", "test"])
    row = table.loc[("b", "forward", "one-sided")]
    assert row["rate 0.01"] == 0
    assert row["rate 0.05"] == 1
    assert row["shown 0.05"].startswith("100.0 % (83.2 to")
    page.show_power(CONFIG, scores, 5)
    assert "Rejections among 20 random sets of 5 trained identifiers" in capsys.readouterr().out


def test_without_models_of_the_hub_nothing_is_shown(capsys):
    page.show_hub([], CONFIG)
    assert capsys.readouterr().out == ""
    assert page.hub_suspects([], CONFIG).empty
