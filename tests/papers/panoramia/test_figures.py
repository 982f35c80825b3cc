"""PANORAMIA's figures say in words what they draw."""

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.collections import LineCollection

from paperlib.papers.panoramia.figures import loss_figure, size_figure
from paperlib.report import bounds_figure, guesses_figure, precision_figure
from paperlib.report.style import WIDTH, points_on_a_phone


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def curves(rows=500):
    parts = []
    for target, best in (("early", 0.6), ("late", 0.9)):
        for test, precision in (("baseline", 0.55), ("mia", best)):
            guesses = np.arange(1, rows + 1)
            parts.append(
                pd.DataFrame(
                    {
                        "target": target, "seed": 0, "test": test, "recall": guesses / rows,
                        "guesses": guesses, "true_positives": precision * guesses, "precision": precision,
                        "bound": precision * 2, "ceiling": 5.0,
                    }
                )
            )  # fmt: skip
    return pd.concat(parts)


def test_precision_has_a_panel_for_each_target_and_chance_drawn_in():
    fig, words = precision_figure(curves())
    assert [axes.get_title(loc="left") for axes in fig.axes] == ["early", "late"]
    assert words == (
        "early: precision at recall 0.1 baseline 0.55, attack 0.60; "
        "late: precision at recall 0.1 baseline 0.55, attack 0.90."
    )
    assert any(np.allclose(line.get_ydata(), 0.5) for line in fig.axes[0].lines)


def test_bounds_show_the_ceiling():
    fig, words = bounds_figure(curves())
    assert any(np.allclose(line.get_ydata(), 5.0) for line in fig.axes[0].lines)
    assert "late: largest bound baseline 1.10, attack 1.80" in words
    assert "ceiling of a perfect attack lies at 5.00" in words
    assert len(fig.legends) == 1


def test_guesses_are_drawn_against_guessing():
    fig, _ = guesses_figure(curves())
    assert fig.axes[-1].get_xlabel() == "positive guesses"


def test_sizes_are_means_with_their_spread():
    frame = pd.DataFrame(
        {"m": [10, 10, 20, 20], "target": "late", "eps": [0.0, 1.0, 2.0, 4.0], "c": [0.0, 0.0, 0.0, 0.0]}
    )
    fig, words = size_figure(frame, x="m", columns={"eps": "ε", "c": "c"}, xlabel="test examples")
    assert (
        words == "Over test examples from 10 to 20: late, ε: from 0.50 to 3.00; late, c: from 0.00 to 0.00."
    )
    assert [axes.get_title(loc="left") for axes in fig.axes] == ["ε", "c"]
    assert fig.axes[-1].get_xlabel() == "test examples"


def test_no_bar_ends_below_0_and_groups_at_one_size_stand_apart():
    frame = pd.DataFrame(
        {"m": [10, 10, 20, 20] * 2, "target": ["a"] * 4 + ["b"] * 4, "eps": [0.0, 0.0, 0.0, 1.0] * 2}
    )
    fig, _ = size_figure(frame, x="m", columns={"eps": "ε"}, xlabel="test examples")
    lines = [one for one in fig.axes[0].collections if isinstance(one, LineCollection)]
    bars = [points for one in lines for points in one.get_segments()]
    assert min(low for (_, low), _ in bars) == 0.0
    assert len({x for (x, _), _ in bars}) == 4
    assert points_on_a_phone(fig) >= 8


def test_losses_are_told_by_their_medians():
    _, words = loss_figure({"20 epochs": {"member": [0.0, 1.0, 2.0], "generated": [3.0, 4.0, 5.0]}})
    assert words == "20 epochs: median loss member 1.00, generated 4.00."


def test_many_targets_stand_below_one_another_and_are_readable_on_a_phone():
    names = [f"target {at}" for at in range(6)]
    frame = pd.concat([curves(20).query("target == 'late'").assign(target=name) for name in names])
    fig, _ = bounds_figure(frame)
    assert [axes.get_title(loc="left") for axes in fig.axes] == names
    assert fig.get_figwidth() == WIDTH
    assert points_on_a_phone(fig) >= 8
