"""The notebook on tables: the paper's values in our rows, what figures draw, and what their words say."""

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

from paperlib.papers.panoramia.null.control import CONTRAST
from paperlib.papers.panoramia.tables import page

NAMES = ["MLP, 5 epochs", "MLP, 50 epochs", "MLP, 150 epochs", "null"]


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def table_six(labels=("visits",)):
    about = {"train_accuracy": 0.5, "test_accuracy": 0.25, "rm_rn": 0.5, "rm_rn_sd": 0.1, "o1_sd": 0.2}
    ours = [
        {"source": "ours", "label": label, "target": name, "panoramia": 0.1 * at, "panoramia_sd": 0.01,
         "o1": 1.236, **about}
        for label in labels
        for at, name in enumerate(NAMES)
    ]  # fmt: skip
    paper = [
        {"source": "paper", "label": "income", "target": name, "panoramia": value, "panoramia_sd": 0.15,
         "rm_rn": np.nan, "rm_rn_sd": np.nan, "o1": 0.655, "o1_sd": 0.014}
        for name, value in (("MLP_E10", 0.0), ("MLP_E100", 0.062))
    ]  # fmt: skip
    return pd.DataFrame([*ours, *paper])


def test_the_papers_values_stand_beside_the_targets_trained_shortest_and_longest():
    shown = page.beside_the_paper(table_six())
    assert list(shown["shown"]) == ["5 epochs (paper: 10)", "50 epochs", "150 epochs (paper: 100)", "null"]
    assert list(shown["panoramia, paper"]) == ["0 ± 0.15", "–", "0.062 ± 0.15", "–"]
    assert list(shown["o1, paper"]) == ["0.655 ± 0.014", "–", "0.655 ± 0.014", "–"]
    assert list(shown["rm_rn, paper"]) == ["–"] * 4
    assert shown["o1, here"][0] == "1.23 ± 0.20", "a lower bound is never rounded up"
    assert shown["panoramia, here"][2] == "0.20 ± 0.01"
    assert shown["accuracy"][0] == "0.50 / 0.25"


def test_the_papers_values_stand_beside_the_first_label_alone():
    shown = page.beside_the_paper(table_six(("income", "occupation")))
    assert list(shown["shown"][[0, 4]]) == ["income, 5 epochs (paper: 10)", "occupation, 5 epochs"]
    assert (shown["o1, paper"][4:] == "–").all()


def test_forms_are_drawn_unclipped_with_their_intervals():
    rows = pd.DataFrame(
        {"label": "visits", "target": ["MLP, 5 epochs", "null"] * 2, "form": ["paper"] * 2 + ["helpers"] * 2,
         "search": "union", "c_lb": 0.5, "c_plus_eps_lb": [1.0, 0.25, 1.5, 0.5], "value_t": 0.125}
    )  # fmt: skip
    figure, words = page.forms_figure(rows)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["form paper", "form helpers"]
    paper = figure.axes[0]
    assert [tick.get_text() for tick in paper.get_yticklabels()] == ["5 epochs, union", "null, union"]
    (bars,) = paper.containers
    assert list(bars.lines[0].get_xdata()) == [0.5, -0.25]
    ends = [part[:, 0].tolist() for part in bars.lines[2][0].get_segments()]
    assert ends == [[0.375, 0.625], [-0.375, -0.125]]
    assert words == (
        "Form paper: 5 epochs, union 0.50, null, union -0.25. "
        "Form helpers: 5 epochs, union 1.00, null, union 0.00."
    )


def alarms():
    weak = f"toy, helper knows nothing {CONTRAST}"
    return pd.DataFrame(
        {"world": ["table", weak] * 2, "form": "paper", "search": ["union"] * 2 + ["anytime"] * 2,
         "above 0.1": [0.0, 0.75, 0.02, 1.0], "above 0.1, low": 0.0, "above 0.1, high": 1.0}
    )  # fmt: skip


def test_shares_of_false_alarms_have_a_panel_for_each_search():
    figure, words = page.alarms_figure(alarms())
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["search: union", "search: anytime"]
    assert words == (
        "Search union: tables, paper 0%, weak helper, paper 75%. "
        "Search anytime: tables, paper 2%, weak helper, paper 100%."
    )


def test_what_to_take_agrees_with_table_six_and_the_control():
    found = page.in_words(table_six(), alarms()).splitlines()
    assert found[0].endswith(
        "is 0.00 nats for 5 epochs and 0.20 for 150 epochs. The null target, which never saw the members, "
        "shows 0.30."
    )
    assert "at least 1.23 nats for 150 epochs" in found[1]
    assert "at most 2% of the null targets with a fair helper" in found[2]
    assert found[2].endswith("up to 100%.")


def test_gains_of_learned_orders_are_against_each_trained_attack():
    orders = pd.DataFrame(
        {"target": "MLP, 50 epochs", "audit": ["trained attack, union", "learned orders"],
         "c_plus_eps_lb": [1.0, 1.25]}
    )  # fmt: skip
    assert page.gain_in_words(orders, "MLP, 50 epochs") == (
        "The attack's bound on 50 epochs with learned orders: +0.25 nats against the trained attack, union."
    )


def test_columns_without_a_rare_value_are_left_out_and_the_last_row_stays(capsys):
    shares = {"top": [0.0, 0.1, 0.0], "members": 0.0, "generated": 0.0, "ratio": np.nan, "top_rows": 5}
    page.show_extremes(pd.DataFrame({"column": ["empty", "held", "any of them"], **shares}))
    text = capsys.readouterr().out
    assert "held" in text
    assert "any of them" in text
    assert "empty" not in text
