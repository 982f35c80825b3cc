"""The notebook on text: the paper's values in our rows, what figures draw, and what their words say."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

from paperlib.papers.panoramia.text import beside, page

NAMES = ["2 epochs", "4 epochs", "8 epochs", "null, 4 epochs", "DP, epsilon 3", "null, DP, epsilon 3"]


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def three():
    rows = [
        {"source": "ours", "target": name, "null": name.startswith("null"), "c_lb (paper form)": 1.0,
         "c+eps_lb (paper form)": 1.5, "eps~ (paper form)": 0.5 + at, "sd (paper form)": 0.25,
         "RM;RN (paper form)": 1.239, "sd RM;RN (paper form)": 0.1, "O(1)": 2.0, "sd O(1)": 0.0}
        for at, name in enumerate(NAMES)
    ]  # fmt: skip
    return pd.DataFrame([*rows, {"source": "paper", "target": "GPT2_E37"}])


def test_the_papers_levels_stand_beside_ours_by_their_order_and_its_dp_by_epsilon():
    printed = beside.paper_values(NAMES)
    assert sorted(printed) == ["2 epochs", "4 epochs", "8 epochs", "DP, epsilon 3"]
    assert printed["8 epochs"] == {"panoramia": (2.4, 0.53), "rm_rn": (3.6, 0.41), "o1": (5.73, 0.08)}
    assert printed["DP, epsilon 3"]["panoramia"][0] == 0
    assert "1 epoch" in beside.paper_values(["1 epoch"])
    assert beside.paper_values(["DP, epsilon 7"]) == {}


def test_a_row_has_ours_and_the_papers_value():
    rows = beside.beside_the_paper(three()).set_index("target")
    assert list(rows["shown"])[:4] == [
        "2 epochs (paper: 37)", "4 epochs (paper: 75)", "8 epochs (paper: 150)", "null, 4 epochs",
    ]  # fmt: skip
    assert rows.loc["4 epochs", "panoramia, here"] == "1.50 ± 0.25"
    assert rows.loc["4 epochs", "panoramia, paper"] == "1.57 ± 0.45"
    assert rows.loc["4 epochs", "rm_rn, here"] == "1.23 ± 0.10", "a lower bound is never rounded up"
    assert rows.loc["null, 4 epochs", "o1, paper"] == "–"
    assert rows.loc["DP, epsilon 3", ["panoramia, paper", "rm_rn, paper"]].tolist() == ["0.00", "–"]


def test_table_three_leaves_dp_out_and_keeps_its_numbers_in_the_csv(capsys):
    page.show_table_three(three(), name="three", caption="Three")
    lines = capsys.readouterr().out.splitlines()
    heads = [cell.strip() for cell in lines[1].split("|")[1:-1]]
    assert heads == ["target", "ε~ here", "ε~ in the paper", "RM;RN here", "RM;RN in the paper", "O(1) here",
                     "O(1) in the paper"]  # fmt: skip
    assert len(lines) == 3 + 4
    page.show_table_three(three(), name="nine", caption="Nine", private=True)
    assert "DP, epsilon 3" in capsys.readouterr().out


def test_table_nine_has_the_null_of_each_target_and_the_target_without_dp():
    found = beside.table_nine(three(), 4).set_index("training")
    assert list(found.index) == ["without DP, 4 epochs", "DP, epsilon 3"]
    assert list(found["null, here"]) == ["3.50 ± 0.25", "5.50 ± 0.25"]
    assert list(found["panoramia, paper"]) == ["0.22 ± 0.37", "0.00"]
    assert list(found["o1, paper"]) == ["2.82 ± 0.31", "0.00"]
    rows = three()
    assert beside.table_nine(rows[~rows["target"].str.contains("DP")], 4).empty


def results(null=-0.5, private=True):
    names = NAMES if private else NAMES[:4]
    kinds = {"null": "null", "DP": "private"}
    targets = [SimpleNamespace(name=name, kind=kinds.get(name.split(",")[0], "trained"),
                               dp_epsilon=3.0 if "DP" in name else None) for name in names]  # fmt: skip
    rows = [
        {"target": name, "audit": audit, "search": search, "c_lb": 1.0 if audit == "panoramia" else np.nan,
         "c_plus_eps_lb": 1.0 + (null if "null" in name else 0.75) if audit == "panoramia" else np.nan,
         "value": 0.25, "value_t": 0.125}
        for audit in page.AUDITS for name in names for search in ("union", "anytime")
    ]  # fmt: skip
    games = pd.DataFrame(
        [{"target": name, "audit": "panoramia", "search": "union", "seed": seed, "c_lb": 1.0,
          "c_plus_eps_lb": 1.0 + null} for name in names for seed in (0, 1)]
    )  # fmt: skip
    judged = [SimpleNamespace(target=one) for one in targets]
    decisive = SimpleNamespace(judged=judged, table=games, search="union")
    return SimpleNamespace(
        summary=pd.DataFrame(rows), search="union", decisive=decisive, trained=NAMES[:3],
        pools=SimpleNamespace(target_names=names, targets=targets), value=lambda name: 0.75,
    )  # fmt: skip


def test_every_target_is_drawn_by_every_audit_with_the_papers_crosses():
    figure, words = page.audits_figure(results())
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == ["ε~, not clipped at 0", "RM;RN", "O(1)"]
    first = figure.axes[0]
    (bars,) = first.containers
    assert list(bars.lines[0].get_xdata()) == [0.75, 0.75, 0.75, -0.5, 0.75, -0.5]
    crosses = next(line for line in first.lines if line.get_label() == "the paper")
    np.testing.assert_array_equal(crosses.get_xdata(), [0.22, 1.57, 2.4, np.nan, 0.0, np.nan])
    assert "ε~: 2 epochs 0.75, 4 epochs 0.75, 8 epochs 0.75, null, 4 epochs -0.50" in words


@pytest.mark.parametrize(
    ("null", "words"),
    [
        (0.5, "may be no leakage"),
        (0.05, "near 0; whether its interval is too"),
        (-0.5, "a small leak may go unseen"),
    ],
)
def test_what_to_take_agrees_with_the_null(null, words):
    found = page.in_words(results(null)).splitlines()
    assert words in found[1]
    assert f"Its difference of the bounds is {null:.2f} nats" in found[1]
    assert "0.75 for 8 epochs. With DP-SGD it is 0.75 at most." in found[0]
    assert ("lies at -0.50 before clipping" in found[0]) == (null < 0)
    assert "no target with DP-SGD" in page.in_words(results(null, private=False))


def test_nulls_are_told_before_they_are_clipped():
    assert page.nulls_in_words(results(-0.5)).endswith("null, 4 epochs -0.50; null, DP, epsilon 3 -0.50.")
    assert page.largest_null(three()).endswith("up to 5.50 nats in this run (null, DP, epsilon 3).")
