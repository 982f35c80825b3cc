"""Pages of the output sets: what figures and tables show is what was found, in words too."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

from paperlib.papers.output_sets import dpsgd_page
from paperlib.papers.output_sets.dpsgd import ORDERS, SETS, ahead_and_behind, gains
from paperlib.papers.output_sets.figures import draw_lines, half_width, in_words, joined, look
from paperlib.report import COLORS, MARKERS, panels
from paperlib.report.style import points_on_a_phone

Shown = list[tuple[str, dict[str, Any]]]


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Shown:
    """What a page shows: the text on a phone is large enough, a table has at most seven columns."""
    kept: Shown = []

    def figure(fig: Any, **given: Any) -> None:
        assert points_on_a_phone(fig) >= 8
        kept.append((given["name"], given | {"axes": fig.axes}))
        plt.close(fig)

    def table(frame: pd.DataFrame, **given: Any) -> None:
        assert len(given.get("columns", frame.columns)) <= 7
        kept.append((given["name"], given | {"frame": frame}))

    for page in PAGES:
        monkeypatch.setattr(page, "show_figure", figure, raising=False)
        monkeypatch.setattr(page, "show_table", table, raising=False)
    return kept


PAGES = (dpsgd_page,)


def test_every_method_has_its_own_colour_and_marker() -> None:
    looks = [look(name) for name in ("printed", "top_bottom", "dp_sniper", "whole", "optimal", "learned")]
    assert len({one["color"] for one in looks}) == len({one["marker"] for one in looks}) == len(looks)
    assert {one["color"] for one in looks} < set(COLORS)
    assert {one["marker"] for one in looks} < set(MARKERS)


def test_lines_stand_at_rising_places_a_little_apart() -> None:
    rows = pd.DataFrame(
        {"m": [400, 100, 400, 100], "method": ["printed"] * 2 + ["whole"] * 2}
        | {"mean": [2.0, 1.0, 0.5, 0.25], "std": [0.1, 0.1, np.nan, 0.1]}
    )
    fig, (ax,) = panels(1)
    assert draw_lines(ax, rows, "m", label="{:,}".format) == [100, 400]
    first, second = (np.asarray(one[0].get_xydata()) for one in ax.containers)
    np.testing.assert_allclose(first[:, 1], [1, 2])
    assert 0 < second[0, 0] - first[0, 0] < 0.5
    assert [one.get_text() for one in ax.get_xticklabels()] == ["100", "400"]
    plt.close(fig)
    assert in_words(rows, "m") == ("Algorithm 1 as printed from 1.00 to 2.00; whole line from 0.25 to 0.50")


def test_an_infinite_interval_has_no_half() -> None:
    assert half_width(pd.Series({"low": 1.0, "high": 2.0})) == 0.5
    assert np.isnan(half_width(pd.Series({"low": -np.inf, "high": np.inf})))
    assert joined(["a", "b"]) == "a and b"


def tick_labels(ax: Any) -> list[str]:
    return [one.get_text() for one in ax.get_xticklabels()]


@pytest.fixture(scope="module")
def audited() -> pd.DataFrame:
    """Bounds of three seeds, five kinds of places, every method; without noise no guarantee is finite."""
    rng = np.random.default_rng(0)
    about = {"epochs": 1, "batches": 10, "learning_rate": 1.0, "momentum": 0.0, "clip_norm": 1.0}
    about |= {"records": 100, "auc": 0.75, "accuracy": 0.5, "member_accuracy": 0.5}
    return pd.DataFrame(
        {**about, "panel": panel, "epsilon": epsilon, "guarantee": epsilon, "seed": seed, "method": method}
        | {"bound": rng.uniform(0, 1)}
        for panel in ("natural", "100 mislabelled", "300 mislabelled")
        for epsilon in (8.0, np.inf)
        for seed in range(3)
        for method in (*SETS, *ORDERS)
    )


def test_figure_three_has_a_panel_for_each_kind_of_records(shown: Shown, audited: pd.DataFrame) -> None:
    dpsgd_page.show_bounds(audited, "", "Made up.")
    axes = shown[0][1]["axes"]
    assert [ax.get_title() for ax in axes] == [
        "natural records",
        "100 mislabelled records",
        "300 mislabelled records",
    ]
    assert tick_labels(axes[0]) == ["8", "∞"]
    drawn = np.asarray(axes[1].containers[0][0].get_ydata(), dtype=float)
    part = audited.query("panel == '100 mislabelled' and method == 'printed'")
    np.testing.assert_allclose(drawn, part.groupby("epsilon")["bound"].mean())


def test_gains_over_epsilon_are_means_over_models(shown: Shown, audited: pd.DataFrame) -> None:
    dpsgd_page.show_gains(audited, "-x", "Made up.")
    name, given = shown[0]
    assert name == "output-sets-dpsgd-gain-x"
    row = given["frame"].set_index("rival").loc["top and bottom"]
    found = gains(audited).query("panel == 'natural' and rival == 'top_bottom'").set_index("epsilon")
    low, high, middle = (float(found[column].iloc[0]) for column in ("low", "high", "gain"))
    assert row["natural, epsilon 8"] == f"{middle:.2f} ± {(high - low) / 2:.2f}"
    assert row["natural"].startswith(f"{found['gain'].mean():.2f} ±")
    assert "natural, epsilon inf" in row


def test_counts_and_guarantees_are_those_of_every_pair(shown: Shown, audited: pd.DataFrame) -> None:
    ahead = audited.assign(bound=audited["bound"] * 1e-3 + 5 * (audited["method"] == "printed"))
    dpsgd_page.show_counts(ahead, "", "Made up.")
    dpsgd_page.show_guarantee(audited.assign(bound=9.0), "", "Made up.")
    counts, checked = (given["frame"] for _, given in shown)
    expected = ahead_and_behind(ahead, ["printed"]).set_index("rival")
    row = counts.set_index("rival").loc["whole line"]
    assert row["printed"] == f"{expected['ahead']['whole']} ahead, 0 behind" == "6 ahead, 0 behind"
    assert counts.set_index("rival").loc["Algorithm 1 as printed", "printed"] == "–"
    assert checked["above"].tolist() == [3 * 3] * len(checked)


@pytest.mark.parametrize("cifar", [True, False])
def test_the_papers_accuracy_is_drawn_on_its_own_images(
    shown: Shown, audited: pd.DataFrame, cifar: bool
) -> None:
    dpsgd_page.show_models(audited, "", "Made up.", cifar=cifar)
    crosses = [line for line in shown[0][1]["axes"][1].lines if line.get_marker() == "x"]
    assert [np.asarray(one.get_xydata()).tolist() for one in crosses] == [[[0, 0.76]]] * cifar
    assert "natural: AUC from 0.75 to 0.75" in shown[0][1]["alt"]


def test_settings_tried_are_ranked_by_their_auc(shown: Shown, audited: pd.DataFrame) -> None:
    tried = audited[audited["method"] == "printed"].assign(auc=audited["epsilon"].map({8.0: 0.5, np.inf: 1}))
    dpsgd_page.show_tried(tried)
    frame = shown[0][1]["frame"]
    assert frame["mean"].tolist() == [0.75] * 3
    assert {"auc, epsilon 8.0", "accuracy, epsilon inf"} <= set(frame.columns)


def test_lessons_on_models_add_up_all_runs(audited: pd.DataFrame) -> None:
    text = dpsgd_page.lessons([audited, audited.assign(bound=16.0)])
    assert "0 of 12 pairs" in text
    assert "63 of 126 bounds" in text
    assert "is 200%" in text
