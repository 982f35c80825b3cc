"""General figures: what they draw, and that their words say the same."""

import numpy as np
import pandas as pd
import pytest

from paperlib import report
from paperlib.report.figures import WIDTH, points_on_a_phone

ROWS = pd.DataFrame(
    {"target": ["a", "b"] * 2, "audit": ["panoramia"] * 2 + ["rm_rn"] * 2, "eps": [0.5, -0.25, 1.0, np.nan],
     "half": 0.125, "paper": [0.75, np.nan, np.nan, np.nan]}
)  # fmt: skip


def test_dots_have_their_intervals_and_the_papers_values_as_crosses_and_series_stand_apart():
    fig, words = report.dots_plot(
        ROWS, rows="target", value="eps", spread="half", panel="audit", printed="paper", mark=0, xlabel="nats"
    )
    assert [axes.get_title(loc="left") for axes in fig.axes] == ["PANORAMIA", "RM;RN"], (
        "names of columns.csv are shown by their headings"
    )
    (bars,) = fig.axes[0].containers
    ends = [part[:, 0].tolist() for part in bars.lines[2][0].get_segments()]
    assert ends == [[0.375, 0.625], [-0.375, -0.125]]
    assert [tick.get_text() for tick in fig.axes[0].get_yticklabels()] == ["a", "b"]
    assert fig.axes[0].get_yticks().tolist() == [1, 0]
    assert [text.get_text() for text in fig.legends[0].get_texts()] == ["the paper", "here"]
    crosses = next(line for line in fig.axes[0].lines if line.get_label() == "the paper")
    np.testing.assert_array_equal(crosses.get_xdata(), [0.75, np.nan])
    assert words == "PANORAMIA: a 0.50 (the paper 0.75), b -0.25; RM;RN: a 1.00."
    long = ROWS.assign(target=ROWS["target"] + " with a name that a phone has no room for")
    fig, words = report.dots_plot(
        long, rows=["target"], value="eps", by="audit", xlabel="nats", xscale="symlog"
    )
    assert fig.axes[0].get_yticklabels()[0].get_text().count("\n") == 1
    assert len({y for bars in fig.axes[0].containers for y in bars.lines[0].get_ydata()}) == 4
    assert "PANORAMIA: a with a name that a phone has no room for 0.50" in words
    assert points_on_a_phone(fig) >= 8


def test_several_rows_at_one_place_are_mean_and_deviation_and_even_places_have_their_values():
    games = pd.DataFrame({"m": [10, 10, 20, 20], "eps": [0.0, 1.0, 2.0, 4.0]})
    axes = {"x": "m", "y": "eps", "xlabel": "m", "ylabel": "ε"}
    fig, words = report.lines_plot(games, marks={"O(1)": 1.5}, **axes)
    (bars,) = fig.axes[0].containers
    assert list(bars.lines[0].get_ydata()) == [0.5, 3.0]
    ends = bars.lines[2][0].get_segments()[0][:, 1]
    assert ends.tolist() == pytest.approx([0.5 - 0.5**0.5, 0.5 + 0.5**0.5])
    assert words == "ε over m from 10 to 20: from 0.50 to 3.00."
    fig, _ = report.lines_plot(games, dots=False, **axes)
    assert len(fig.axes[0].containers[0].lines[0].get_ydata()) == 4
    sets = pd.DataFrame({"x": [1.0, 10.0, np.inf], "y": [1.0, 2.0, 3.0], "low": 0.0, "high": 4.0, "way": "a"})
    fig, _ = report.lines_plot(
        sets, x="x", y="y", low="low", high="high", band=True, even=True, panel="way", xlabel="x", ylabel="y"
    )
    assert [tick.get_text() for tick in fig.axes[0].get_xticklabels()] == ["1", "10", "∞"]
    assert len(fig.axes[0].collections) == 1


def test_losses_images_and_points_are_told():
    _, words = report.histograms_plot(
        {"20 epochs": {"member": [0, 1, 2], "generated": [3, 4, 5]}}, xlabel="loss"
    )
    assert words == "Median loss: 20 epochs: member 1.00, generated 4.00."
    fig, _ = report.points_plot(ROWS, x="half", y="eps", by="audit", xlabel="x", ylabel="y", diagonal=True)
    assert fig.axes[0].lines[-1].get_label() == "equal"
    grey = np.arange(5, dtype=np.uint8)[:, None, None, None] * np.ones((1, 1, 7, 7), np.uint8)
    fig, _ = report.images_plot({"grey": grey}, columns=3)
    (image,) = fig.axes[0].images
    assert [int(np.squeeze(image.get_array())[0, at]) for at in (0, 7, 8, 15, 16)] == [0, 255, 1, 255, 2]


def curves(target="late", rows=500):
    guesses, parts = np.arange(1, rows + 1), []
    for test, precision in (("baseline", 0.55), ("mia", 0.9)):
        about = {"target": target, "seed": 0, "test": test, "ceiling": 5.0, "precision": precision}
        numbers = {"recall": guesses / rows, "guesses": guesses, "true_positives": precision * guesses}
        parts.append(pd.DataFrame({**about, **numbers, "bound": precision * 2}))
    return pd.concat(parts)


def test_curves_over_recall_have_a_readable_panel_for_each_target_with_chance_and_ceiling():
    both = pd.concat([curves("early"), curves()])
    fig, words = report.precision_figure(both)
    assert [axes.get_title(loc="left") for axes in fig.axes] == ["early", "late"]
    assert words.endswith("late: precision at recall 0.1 baseline 0.55, attack 0.90.")
    assert any(np.allclose(line.get_ydata(), 0.5) for line in fig.axes[0].lines)
    fig, words = report.bounds_figure(both)
    assert any(np.allclose(line.get_ydata(), 5.0) for line in fig.axes[0].lines)
    assert words.endswith("attack 1.80. The ceiling of a perfect attack lies at 5.00.")
    assert report.guesses_figure(both)[0].axes[-1].get_xlabel() == "positive guesses"
    fig, _ = report.bounds_figure(pd.concat([curves(f"target {at}", 20) for at in range(6)]))
    assert len(fig.axes) == 6
    assert fig.get_figwidth() == WIDTH
    assert points_on_a_phone(fig) >= 8
