"""The page of the benchmark: what decides, what its figures draw, and what its words and tables say."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

from paperlib.papers.natural_identifiers.benchmark import BenchmarkConfig
from paperlib.papers.natural_identifiers.hub import HubConfig, HubModel, HubScores
from paperlib.papers.natural_identifiers.pages import benchmark as page
from paperlib.papers.natural_identifiers.pages import benchmark_figures as figures
from paperlib.papers.natural_identifiers.planted import PAPER_ATTACKS, TOKENS
from paperlib.report import paper_table
from paperlib.report.style import points_on_a_phone

MODELS = ("large", "medium", "small", "one pass")


def scored(groups):
    """Shares: AUC 0.7 where trained and 0.5 elsewhere, within 0.05; TPR 0.02, within 0.01."""
    rows = []
    for model, group, attack in itertools.product(MODELS, groups, (*PAPER_ATTACKS, TOKENS)):
        auc = 0.5 if group == "held out" or attack == TOKENS else 0.7
        row = {"model": model, "group": group, "identifiers": 40, "attack": attack, "parameters": len(model)}
        row |= {"auc": auc, "auc_low": auc - 0.05, "auc_high": auc + 0.05, "auc_folded": auc}
        rows.append(row | {"tpr": 0.02, "tpr_low": 0.01, "tpr_high": 0.03})
    less = {"model": "large less small", "group": "trained", "identifiers": 40, "attack": "loss"}
    rows.append(less | {"auc": 0.1, "auc_low": 0.05, "auc_high": 0.15})
    return pd.DataFrame(rows)


@pytest.fixture(scope="module")
def planted():
    return page.planted_ones(BenchmarkConfig(), scored(["held out", "1 time", "16 times", "trained"]))


@pytest.fixture(scope="module")
def documents():
    table = page.percent(scored(["held out", "trained", "trained, occurs once"]))
    table = table.rename(columns={"group": "subset"}).assign(part="all", kind="all", p_value=0.25)
    cells = table[(table["attack"] == "loss") & (table["subset"] != "trained, occurs once")]
    cells = cells[cells["model"] != "large less small"].assign(part="scripts", kind="md5", auc=60.0)
    return page.natural_ones(pd.concat([table, cells], ignore_index=True), "4 documents of toys, 2 passes")


def test_planted_and_natural_identifiers_say_what_was_trained(planted, documents):
    assert planted.scale.facts == (
        "GPTs of width 128, 64, 32 trained here on 200 planted identifiers in documentation, 31 alternatives "
        "each"
    )
    assert documents.scale.facts == "GPTs of 5 to 8 parameters, identifiers of 4 documents of toys, 2 passes"
    assert planted.evidence["nid-table-01"].values["trained above"].value == pytest.approx(20)
    assert planted.evidence["nid-table-01"].values["natural documents"].value == 0
    assert documents.evidence["nid-table-01"].values["natural documents"].value == 1
    assert "scripts" not in set(documents.whole.get("part", []))


def test_the_papers_value_is_its_mean_over_subsets():
    table = paper_table("nid_table01").query("mia == 'loss' and split == 'test' and subset != 'average'")
    assert figures.paper_value("auc", "large", "held out", "loss") == pytest.approx(table["value_pct"].mean())
    once = figures.paper_value("tpr", "one pass", "trained, occurs once", "loss")
    assert once == figures.paper_value("tpr", "one pass", "trained", "loss")
    assert math.isnan(figures.paper_value("auc", "large", "1 time", "loss"))


def test_every_attack_has_our_dots_and_the_papers_marks(planted):
    table = figures.beside_paper(planted.whole)
    fig = figures.attacks_figure(table, "auc")
    assert fig.axes[0].get_title() == "large, beside Pythia-12b (Table 1)"
    assert fig.axes[3].get_title() == "one pass, beside OLMo-7B (Table 3)"
    for panel, model in zip(fig.axes, MODELS, strict=True):
        drawn = {line.get_label(): line.get_xdata() for line in panel.lines}
        for group in ("trained", "held out"):
            expected = [figures.paper_value("auc", model, group, attack) for attack in figures.ATTACKS]
            assert list(drawn[f"the paper, {group}"]) == pytest.approx(expected)
        ours = [box.lines[0].get_xdata().tolist() for box in panel.containers]
        assert ours == [[70.0] * 6, [50.0] * 6]
    assert points_on_a_phone(fig) >= 8
    plt.close(fig)


def test_after_one_pass_those_that_occur_once_are_drawn(documents):
    whole = documents.whole
    once = (whole["model"] == "one pass") & (whole["group"] == "trained, occurs once")
    fig = figures.attacks_figure(
        figures.beside_paper(whole.assign(auc=whole["auc"].where(~once, 61.0))), "auc"
    )
    assert fig.axes[3].containers[0].lines[0].get_xdata().tolist() == [61.0] * 6
    assert fig.axes[0].containers[0].lines[0].get_xdata().tolist() == [70.0] * 6
    plt.close(fig)


def test_the_loss_stands_beside_the_papers_row_by_row(documents, capsys):
    page.show_auc(documents)
    shown = capsys.readouterr().out
    value = figures.paper_value("auc", "large", "trained", "loss")
    assert f"large, trained: 70.0, the paper {value:.1f}" in shown
    (row,) = (
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in shown.splitlines()
        if line.startswith("| large, Pythia-12b") and "| trained  " in line
    )
    assert row[:5] == ["large, Pythia-12b", "trained", "40", "70.00 ± 5.00", f"{value:.2f}"]
    assert row[5] == "2.00 ± 1.00"


def test_four_tables_are_judged_by_each_metric(documents, planted, capsys):
    page.show_verdicts(documents, "auc")
    shown = capsys.readouterr().out
    places = [shown.index(f"Table {number}, by this run alone") for number in (1, 4, 5, 3)]
    assert places == sorted(places)
    page.show_verdicts(planted, "tpr")
    shown = capsys.readouterr().out
    assert shown.startswith("No identifiers of real documents are at hand")
    assert shown.count("by this run alone") == 4


def test_other_traces_are_tokens_p_values_and_parts(documents, capsys):
    table = page.traces_table(documents).set_index("group")
    assert table.loc["trained", "tokens"] == "50.00 ± 5.00"
    assert table.loc["trained", "p, one pass"] == 0.25
    page.show_other_traces(documents)
    shown = capsys.readouterr().out
    assert "| Identifiers          | Number | AUC of tokens | p, large |" in shown
    assert "large, held out: 60.0 to 60.0" in shown


def test_planted_identifiers_are_told_by_occurrences(planted, capsys):
    page.show_planted(planted)
    shown = capsys.readouterr().out
    assert "Held-out identifiers lie between 50 and 50 percent, the most frequent between 70 and 70" in shown
    assert "with 99 % intervals" in shown
    large = planted.table.query("model == 'large' and attack != 'tokens'")
    fig = figures.repetitions_figure(large, ["held out", "1 time", "16 times"])
    assert [label.get_text() for label in fig.axes[0].get_xticklabels()] == [
        "held\nout", "1\ntime", "16\ntimes",
    ]  # fmt: skip
    plt.close(fig)


def test_what_lies_beyond_folding_is_counted(capsys):
    page.show_folding()
    said = capsys.readouterr().out
    assert "Of the 9 printed AUCs on training data, 4 lie beyond that quantile; of the 3 on test" in said


def test_without_models_of_the_hub_nothing_is_shown(capsys):
    page.show_hub([], draws=2)
    assert capsys.readouterr().out == ""
    assert page.hub_ones([], HubConfig(), draws=2, confidence=0.99) == []


def test_what_was_measured_earlier_names_its_documents():
    (one,) = page.earlier_natural("book/measured/nid_natural_truth.csv")
    assert one.words.startswith("800 documents of nid_corpus+pile_test_subsets, 8 passes, measured ")
    assert page.earlier_natural("") == []


def test_models_of_the_hub_are_dots_by_corpus_and_subset(capsys):
    values = np.random.default_rng(0).normal(size=(12, 4, 2))
    values[:6, 0] += 9.0
    subsets = np.array(["known: a"] * 6 + ["other: b"] * 6)
    skipped = pd.DataFrame({"reason": ["empty file"], "number": [3], "example": ["x.txt"]})
    model = HubModel("some/gpt", "known", "other")
    one = HubScores(model, values, ("loss", TOKENS), subsets, np.repeat([1, 0], 6), skipped)
    page.show_hub([one], draws=5)
    shown = capsys.readouterr().out
    assert (
        "A dot with its interval for each set of identifiers: gpt, known: all 100.0; gpt, other: all" in shown
    )
    assert "| empty file | 3      | x.txt" in shown
