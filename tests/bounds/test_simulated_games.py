"""Games played side by side stop where the same games stop that are played one after the other."""

import numpy as np
import pytest

from paperlib.bounds.one_run.adaptive import ends_of, reveal
from paperlib.bounds.one_run.anytime import AnytimeCounts
from paperlib.bounds.one_run.guesses import bets_path
from paperlib.bounds.one_run.simulated_games import play_ends

GAMES = 12


def drawn_games(m, digits, leak):
    """Scores of some games, highest first, and coins that follow them as strongly as ``leak``."""
    rng = np.random.default_rng([m, digits, leak])
    values = -np.sort(-rng.normal(size=(GAMES, m)).round(digits), axis=1)
    return values, rng.random((GAMES, m)) < 1 / (1 + np.exp(-leak * values))


@pytest.mark.parametrize("leak", [0, 1, 4])
@pytest.mark.parametrize("digits", [12, 1, 0])
@pytest.mark.parametrize(("m", "total"), [(2, 2), (40, 900), (300, 300)])
def test_they_stop_where_single_games_stop(m, total, digits, leak):
    values, members = drawn_games(m, digits, leak)
    points = play_ends(values, members, total)
    test = AnytimeCounts(0.05, 1e-3, 2, total)
    refuting = test.refuting(points.correct, points.guesses, points.game, GAMES, 0.1)
    for game in range(GAMES):
        bets = reveal(ends_of(values[game]), members[game], total=total)
        path = bets_path(bets, values[game])
        of_game = points.game == game
        np.testing.assert_array_equal(points.correct[of_game], path.correct)
        np.testing.assert_array_equal(points.guesses[of_game], path.guesses)
        if path.guesses.size:
            assert refuting[game] == test.refutes(path.correct, path.guesses, 0.1)
        else:
            assert not refuting[game]
    if m == 300 and leak == 4:  # what is compared is not only games that show nothing
        assert refuting.any()


def test_games_that_know_no_ties_stop_elsewhere():
    values, members = drawn_games(300, 0, 1)
    untied = values - 1e-6 * np.arange(300)
    tied_points, points = (play_ends(scores, members, 300) for scores in (values, untied))
    assert points.guesses.size > tied_points.guesses.size
