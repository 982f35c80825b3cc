"""What the notebooks on Epsilon* show: the values drawn, the columns, and the descriptions in words."""

import pandas as pd
import pytest

from paperlib.papers.epsilon_star.evidence import gamma_evidence
from paperlib.papers.epsilon_star.gamma_losses import GammaConfig, gamma_runs, gamma_summary
from paperlib.papers.epsilon_star.pages import simulation


@pytest.fixture
def shown(monkeypatch):
    """What the pages show, by name: the figure or table first, then the options."""
    kept = {}

    def keep(what, *, name, **options):
        kept[name] = what, options

    for module in (simulation,):
        for kind in ("show_figure", "show_table"):
            monkeypatch.setattr(module, kind, keep)
    return kept


def drawn(axis, label):
    """Points of the line or the error bars with this label."""
    handles, labels = axis.get_legend_handles_labels()
    handle = handles[labels.index(label)]
    line = getattr(handle, "lines", [handle])[0]
    return list(zip(*(map(float, values) for values in line.get_data()), strict=True))


@pytest.fixture(scope="module")
def gamma():
    config = GammaConfig(shifts=(0, 2), sizes=(200, 2000), repeats=3)
    runs = pd.DataFrame(gamma_runs(config))
    return runs, gamma_summary(config, runs)


def test_estimates_are_drawn_with_their_means_and_told_in_words(gamma, shown):
    _, summary = gamma
    simulation.show_null(summary, repeats=3)
    figure, options = shown["epsilon-star-null"]
    null = summary[(summary["shift"] == 0) & (summary["method"] == "parametric")]
    assert drawn(figure.axes[0], "parametric") == list(zip(null["size"], null["mean"], strict=True))
    assert f"the parametric ones {null['mean'].iloc[0]:.2f}, {null['mean'].iloc[1]:.2f}" in options["alt"]
    simulation.show_shift(summary, repeats=3)
    figure, options = shown["epsilon-star-shift"]
    assert [axis.get_title() for axis in figure.axes] == [
        "200 losses in each set",
        "2,000 losses in each set",
    ]
    last = summary[(summary["size"] == 2000) & (summary["shift"] == 2)].iloc[0]
    assert drawn(figure.axes[1], "true, every threshold")[-1] == (2, last["true"])
    assert f"over every threshold {last['true']:.2f}." in options["alt"]


def test_the_undershoot_has_a_column_for_each_size_in_order(gamma):
    runs, summary = gamma
    table = simulation.undershoot(gamma_evidence(runs, summary)[1])
    assert table.columns.tolist() == ["true value", "d", "n = 200", "n = 2,000"]
    part = summary[(summary["shift"] == 2) & (summary["method"] == "empirical")].set_index("size")
    short = part.loc[2000, "true"] - part.loc[2000, "mean"]
    assert table["n = 2,000"][0].startswith(f"{short:.2f} ± ")
    words = simulation.growth(summary)
    assert "larger at n = 2,000 than at n = 200 in 2 of 2 rows" in words
    shrunk = summary.assign(true=summary["true"] - summary["size"])
    assert "in 1 of 2 rows" in simulation.growth(shrunk)


def test_the_tail_of_the_maximum_is_computed():
    values = pd.DataFrame(
        {
            "source": ["true", "true", "parametric", "parametric"],
            "false_positive_rate": [0.01, 0.9, 0.01, 0.9],
            "epsilon": [2.0, 1.0, 1.0, 3.0],
        }
    )
    fits = pd.DataFrame({"ks_p_value": [0.0, 0.3]})
    said = simulation.wrong_tail(values, fits)
    assert "in the left tail, that of the fitted normals in the *other* one" in said
    assert "rejects 1 of the 2 fits" in said
    assert "the same one" in simulation.wrong_tail(values.assign(epsilon=[2.0, 1.0, 3.0, 1.0]), fits)


def test_tables_of_the_simulation_fit_a_page(gamma, shown):
    simulation.show_ranges(gamma[1])
    table, options = shown["epsilon-star-gamma"]
    assert len(table) == 4
    assert len(options["columns"]) == 7
    assert set(table["size"]) == {2000}
