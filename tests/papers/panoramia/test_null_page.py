"""The notebook on null targets: what its figures draw, and what it says of who passes."""

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

from paperlib.papers.panoramia.null import page
from paperlib.papers.panoramia.null.matched import MARGIN, TODAY


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def table():
    rows = [
        {"data": data, "helpers": TODAY if np.isnan(ratio) else "out of fold", "ratio": ratio,
         "target": "null" if null else "50 epochs", "null": null, "c_lb": 0.126, "eps_tilde": found,
         "low": found - 0.05, "high": found + 0.05, "worlds": 4, "games": 40,
         "passes": abs(found) <= MARGIN - 0.05 if null else np.nan}
        for data, shift in (("tables", 0.0), ("text", 0.5))
        for ratio, of_null in ((np.nan, 0.5), (2.0, 0.25), (8.0, -0.001))
        for null, found in ((False, 1.0), (True, of_null + shift))
    ]  # fmt: skip
    return pd.DataFrame(rows)


def test_targets_and_nulls_are_drawn_over_what_helpers_learned():
    figure, words = page.matched_figure(table())
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["tables", "text"]
    first = figure.axes[0]
    assert [tick.get_text() for tick in first.get_xticklabels()] == ["none", "2", "8"]
    nulls, targets = (bars.lines[0].get_ydata().tolist() for bars in first.containers)
    assert (nulls, targets) == ([0.5, 0.25, -0.001], [1.0, 1.0, 1.0])
    assert words.startswith(
        "tables, null targets: 0.50 without folds, 0.00 at the end; tables, targets: 1.00"
    )


def test_means_have_their_interval_and_what_passes(capsys):
    page.show_means(table(), name="null-run", what="This run", confidence=0.95)
    lines = capsys.readouterr().out.splitlines()
    assert "This run: difference of the bounds" in lines[0]
    assert lines[0].endswith("with 95% t-intervals over 4 worlds.")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines[1:]]
    assert rows[0] == ["data", "members learned per member judged", "model", "c at least", "difference",
                       "its interval", "passes"]  # fmt: skip
    assert rows[2] == ["tables", "none", "target", "0.12", "1.00", "0.95 to 1.05", "–"]
    assert rows[7] == ["tables", "8", "null target", "0.12", "0.00", "-0.05 to 0.05", "yes"]


def alarms():
    return pd.DataFrame(
        {"data": ["tables", "tables", "text"], "helpers": TODAY, "ratio": [np.nan, 8.0, 8.0], "worlds": 4,
         "alarms": [0, 0, 2], "share": [0.0, 0.0, 0.5], "low": 0.0, "high": 0.75, "run": "this run"}
    )  # fmt: skip


def test_shares_of_false_alarms_have_a_panel_for_each_data_set():
    figure, words = page.alarms_figure(alarms())
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["tables", "text"]
    (bars,) = figure.axes[1].containers
    assert list(bars.lines[0].get_xdata()) == [0.5]
    assert bars.lines[2][0].get_segments()[0][:, 0].tolist() == [0.0, 0.75]
    assert words == (
        "By members learned per member judged. tables: none, 4 worlds 0%, 8, 4 worlds 0%; "
        "text: 8, 4 worlds 50%."
    )


def test_alarms_of_several_runs_keep_their_names():
    games = pd.DataFrame(
        {"data": "x", "helpers": "h", "ratio": 1.0, "null": True, "world": [0, 0, 1, 1],
         "difference": [0.5, 0.51, 0.0, 0.5]}
    )  # fmt: skip
    found = page.all_alarms([("this run", games), ("other", games)])
    assert found[["run", "alarms"]].to_numpy().tolist() == [["this run", 1], ["other", 1]]


def test_what_to_take_names_where_the_null_passes_and_the_largest_share():
    found = page.in_words(table(), alarms()).splitlines()
    assert found[0].endswith("learned most: tables: 0.50, and 0.00; text: 1.00, and 0.50.")
    assert "On tables the null target passes at 8 members learned" in found[1]
    assert "On text the null target passes at no ratio tried." in found[1]
    assert found[2].endswith("is 50% of 4 worlds (text, members learned per member judged: 8).")
