"""What the notebook on the fit shows: shares, means and the sentences that depend on the run."""

import numpy as np
import pandas as pd
import pytest

from paperlib.papers.epsilon_star.fit import TESTS, Scores
from paperlib.papers.epsilon_star.pages import fit as pages


@pytest.fixture
def shown(monkeypatch):
    """What the page shows, by name: the figure or table first, then the options; texts under "text"."""
    kept = {"text": []}

    def keep(what, *, name, **options):
        kept[name] = what, options

    for kind in ("show_figure", "show_table"):
        monkeypatch.setattr(pages, kind, keep)
    monkeypatch.setattr(pages, "show_text", kept["text"].append)
    return kept


def p_values(tests=("paper",)):
    """Without DP all p-values are 0.5; with DP they are 0.01 with one component and 0.5 with three."""
    rows = [
        (private, 0, 0, components, size, test, 0.01 if private and components == 1 else 0.5)
        for private in (False, True)
        for components in (1, 2, 3)
        for size in (100, 1000)
        for test in tests
    ]
    names = ["private", "seed", "repeat", "components", "sample_size", "test", "p_value"]
    return pd.DataFrame(rows, columns=names)


def mixtures(p_same=0.01):
    """Two models of each kind; Epsilon* grows with the components, and so does the gap of the halves."""
    rows = [
        (private, seed, k, k + private, k - 0.5, k + 0.5 * k, 1e-5, p_same, 0.01, 0.7)
        for private in (False, True)
        for seed in (0, 1)
        for k in (1, 3, 20)
    ]
    names = ["private", "seed", "components", "epsilon", "half_low", "half_high", "rate", "p_same"]
    return pd.DataFrame(rows, columns=[*names, "p_other_half", "empirical"])


def test_p_values_are_drawn_for_both_kinds_and_counted_in_words(shown):
    pages.show_p_values(p_values(), name="some", about="made up")
    figure, options = shown["some"]
    assert [axis.get_title() for axis in figure.axes] == ["without DP", "with DP"]
    assert [tick.get_text() for tick in figure.axes[1].get_xticklabels()] == ["1", "2", "3"]
    medians = {str(line.get_label()): line for line in figure.axes[1].get_lines()}
    assert list(medians["n = 1,000"].get_ydata()) == [0.01, 0.5, 0.5]
    assert options["alt"].endswith(
        "without DP 100% (100% at 1 component, 100% at 3); with DP 67% (0% at 1 component, 100% at 3)."
    )
    pages.show_shares(p_values(), name="shares", about="made up")
    table = shown["shares"][0]
    assert table.columns.tolist() == ["training", "components", "n = 100", "n = 1,000"]
    assert table["training"].tolist() == ["without DP"] * 3 + ["with DP"] * 3
    assert table["n = 100"].tolist() == [1, 1, 1, 0, 1, 1]


def test_three_ways_to_test_stand_below_each_other(shown):
    pages.show_tests(p_values(TESTS))
    table = shown["fit-tests"][0]
    assert len(table) == 12
    assert table["test"].tolist() == [*TESTS] * 4
    assert set(table["components"]) == {1, 3}
    assert table.query("training == 'with DP' and components == 1")["n = 100"].tolist() == [0, 0, 0]
    pages.show_sample_size(p_values(TESTS))
    assert "paper's test with DP: 0.01 at n = 100, 0.01 at 1,000" in shown["fit-sample-size"][1]["alt"]


def test_whether_the_test_accepts_is_computed(shown):
    assert pages.settled(mixtures()).startswith("With 20 components the test accepts 0 of 4 models on")
    assert "accepts 4 of 4 models on the losses fitted, and 0 on the other half" in pages.settled(
        mixtures(p_same=0.06)
    )
    pages.show_verdicts(mixtures())
    table, options = shown["fit-verdict"]
    assert table["components"].tolist() == [1, 20, 1, 20]
    assert table["rejected"].tolist() == [1, 1, 1, 1]
    assert table["epsilon"].tolist() == [1, 20, 2, 21]
    assert table["gap"].tolist() == pytest.approx([1, 10.5, 1, 10.5])
    assert len(options["columns"]) == 7
    assert "0.70 without DP and 0.70 with DP" in options["caption"]
    assert shown["text"] == [pages.settled(mixtures())]
    pages.show_epsilon(mixtures())
    figure, options = shown["fit-epsilon"]
    assert list(figure.axes[1].get_lines()[0].get_ydata()) == [2, 4, 21]
    assert "with DP the mean at 20 components is 21.00 nats" in options["alt"]


def test_models_are_told_by_their_moments(shown):
    rng = np.random.default_rng(0)
    scores = [
        Scores(private, seed, 0.6 + 0.1 * seed, rng.normal(size=200), rng.normal(size=200))
        for private in (False, True)
        for seed in (0, 1)
    ]
    pages.show_losses(scores, "Made up.", np.array([0, 1, 1, 1]))
    assert "The commonest label is that of 0.75 of the other records." in shown["fit-models"][1]["caption"]
    table = shown["fit-models"][0]
    assert table["accuracy"].tolist() == ["0.65 ± 0.07"] * 2
    assert table["models"].tolist() == [2, 2]
    assert len(table.columns) == 7
    assert len(shown["fit-losses"][1]["data"]) == 4


def test_the_scale_counts_models_components_and_losses():
    assert pages.fit_scale("substitute", "made up", p_values()).facts == (
        "made up, 1 models of each kind, 3 numbers of components, 100, 1000 losses"
    )
