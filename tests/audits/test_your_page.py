"""What the notebook on your own data shows: its games as dots, and what to take from the numbers."""

from types import SimpleNamespace

import pandas as pd
import pytest
from matplotlib import pyplot as plt

from paperlib.audits.panoramia.results import NullCheck
from paperlib.papers.own_data_page import games_figure, in_words


def games(audits=("panoramia",)):
    rows = [
        {"target": target, "audit": audit, "seed": seed, "c_lb": 0.5, "c_plus_eps_lb": 0.5 + found}
        for audit in audits
        for target, found in (("yours", 1.0), ("null", -0.25))
        for seed in (3, 4)
    ]
    return pd.DataFrame(rows).assign(eps=float("nan"))


def test_every_game_is_a_dot_and_is_not_clipped():
    figure, words = games_figure(games())
    (axes,) = figure.axes
    dots = {line.get_label(): list(line.get_xdata()) for line in axes.lines}
    assert dots == {"your model": [1.0, 1.0], "null": [-0.25, -0.25]}
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["3", "4"]
    assert words == "Dots for each game. Mean over games: your model 1.00, null -0.25 nats."
    plt.close(figure)


def test_real_non_members_have_dots_of_their_own():
    both = games(("panoramia", "rm_rn"))
    both.loc[both["audit"] == "rm_rn", "eps"] = 0.75
    figure, words = games_figure(both)
    assert "real non-members 0.75" in words
    assert "null -0.25" in words
    plt.close(figure)


@pytest.mark.parametrize(
    ("null", "known_c", "words"),
    [
        (None, None, "Here no null was trained"),
        (NullCheck(-0.001, -0.01, 0.01, 5), None, "Here it shows 0.00 nats on average and passes."),
        (NullCheck(0.5, 0.4, 0.6, 5), None, "Here it shows 0.50 nats on average and is not shown to pass."),
        (None, 0.0, "Here $c$ is known"),
    ],
)
def test_what_to_take_agrees_with_the_null_and_the_ceiling(null, known_c, words):
    result = SimpleNamespace(ceiling=4.0, c_lb=1.0, known_c=known_c)
    found = in_words(SimpleNamespace(result=result, null=null))
    assert words in found
    assert f"can show {4.0 if known_c == 0 else 3.0:.2f} nats at most" in found
    assert [line[:2] for line in found.splitlines()] == ["1.", "2.", "3."]
