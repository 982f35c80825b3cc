"""What the page on images shows says the same as its numbers."""

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

from paperlib.papers.panoramia.images import page
from paperlib.papers.panoramia.images.page import AUDITS, beside, levels, three_figure
from paperlib.report.style import points_on_a_phone

PAPER = {"c_lb (paper form)": 2.44, "eps~ (paper form)": 0.33, "RM;RN (paper form)": 0.42, "O(1)": 0.45}


@pytest.fixture
def table():
    ours = [{"source": "ours", "target": name, "null": name == "null", **dict.fromkeys(PAPER, value)}
            for name, value in (("E5", 0.25), ("E20", 0.5), ("null", 0.0))]  # fmt: skip
    printed = {"source": "paper", "target": "ResNet101_E20", "null": False, **PAPER}
    rows = pd.DataFrame([*ours, printed, {**printed, "target": "ViT_E35"}])
    return rows.assign(**{"sd (paper form)": 0.1, "sd RM;RN (paper form)": 0.3, "sd O(1)": 0.0})


def test_the_papers_numbers_stand_in_the_row_of_the_same_degree_of_overtraining(table):
    rows = beside(table, levels(["E5"], "mnist5k")).set_index("target")
    assert list(rows.index) == ["E5", "E20", "null"]
    assert rows.loc["E5", "paper target"] == "ResNet101_E20"
    assert list(rows.loc["E5", [f"paper {name}" for name in PAPER]]) == list(PAPER.values())
    assert rows.loc[["E20", "null"], "paper O(1)"].isna().all()
    assert levels(["a", "b", "c"], "celeba") == {"a": "CNN_E50", "b": "CNN_E100"}


def test_table_three_is_drawn_with_the_papers_values_as_crosses_and_no_bar_below_0(table):
    fig, words = three_figure(beside(table, levels(["E5"], "mnist5k")))
    assert [axes.get_title(loc="left") for axes in fig.axes] == list(AUDITS)
    crosses = [line.get_xdata() for line in fig.axes[0].lines if line.get_marker() == "x"]
    np.testing.assert_array_equal(crosses[0], [0.33, np.nan, np.nan])
    assert fig.axes[0].get_yticklabels()[0].get_text() == "E5\nResNet101 E20"
    assert "PANORAMIA, ε~: E5 0.25 (the paper 0.33), E20 0.50, null 0.00" in words
    assert min(axes.dataLim.xmin for axes in fig.axes) == 0
    assert points_on_a_phone(fig) >= 8
    plt.close(fig)


def test_a_bound_and_its_deviation_are_one_cell_rounded_down(capsys):
    games = pd.DataFrame({"helper": ["none", "none", "synthetic", "synthetic"], "seed": [0, 1, 0, 1],
                          "c_lb": [1.0, 1.01, 2.0, 2.4], "auc": 0.75})  # fmt: skip
    page.show_helpers(games, synthetic=10, real=20)
    shown = capsys.readouterr().out
    assert "| none      | 1.00 ± 0.01 | 1.25      | 0.75 |" in shown
    assert "| synthetic | 2.20 ± 0.28 | 2.44      | 0.75 |" in shown
    assert "trained on 10 images" in shown
