"""Whole games: the law of who is shown, validity by enumeration, and doubts about coins."""

from functools import partial
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from paperlib import bounds
from paperlib.bounds.one_run.fair_coins import (
    IMPLAUSIBLE,
    coin_warnings,
    draw_game,
    game_size,
    play_game,
)
from paperlib.core import MembershipScores
from tests.refusals import refused


def normal_scores(members, nonmembers, *, shift=0.0, seed=0):
    rng = np.random.default_rng(seed)
    return MembershipScores(rng.normal(shift, 1, members), rng.normal(size=nonmembers))


def test_a_game_shows_nearly_all_examples_and_more_than_one_of_each_pair():
    scores = MembershipScores(
        np.arange(5_000.0), np.arange(5_000.0, 11_000), higher_means_member=False
    )
    played = play_game(scores, seed=5)
    assert len(played) == 9_500
    assert not played.higher_means_member
    assert set(played.member) <= set(scores.member)
    assert set(played.nonmember) <= set(scores.nonmember)
    assert np.unique(played.pooled()[0]).size == 9_500
    assert len(play_game(normal_scores(8, 8), seed=1)) == 8
    refused("1 examples are too few", play_game, MembershipScores([1.0], [0.0]))


def test_coins_hardly_ever_ask_for_more_examples_than_there_are():
    """Drawing again multiplies the error by 1 / (1 - chance), less than 1 + 6e-7."""
    for side in (*range(1, 200), 1_000, 5_000, 100_000, 10_000_000):
        total = game_size(side)
        chance = 2 * binom.sf(side, total, 0.5)
        assert chance < 6e-7
        assert side <= total <= 2 * side
        assert side > 50 or chance == 0


def test_the_coins_have_the_law_of_fair_coins_and_every_example_the_same_chance():
    """Mean, variance and subsets over seeds; a fixed half would have no variance."""
    side, seeds = 100, range(4_000)
    total = game_size(side)
    drawn = [draw_game("scores", side, side + 30, seed=seed) for seed in seeds]
    counts = np.array([member.size for member, _ in drawn])
    assert {member.size + other.size for member, other in drawn} == {total}
    assert abs(counts.mean() - total / 2) < 5 * np.sqrt(total / 4 / len(counts))
    assert np.var(counts) / (total / 4) == pytest.approx(1, abs=0.12)
    for at, size in ((0, side), (1, side + 30)):
        often = np.bincount(np.concatenate([one[at] for one in drawn]), minlength=size)
        assert abs(often / len(drawn) - total / 2 / size).max() < 5 * np.sqrt(0.25 / len(drawn))


TRAINED, PLACES, VALUES = 2, 3, 3  # a game whose coins may ask for one member too many


def random_mechanism(rng, answers=4):
    """Chances of answers for each multiset of records, and the largest log-ratio between
    neighbours.
    """
    sets = sorted({tuple(sorted(one)) for one in product(range(VALUES), repeat=TRAINED)})
    chances = {one: rng.dirichlet(np.ones(answers)) for one in sets}
    near = [(a, b) for a, b in product(sets, sets) if a != b and any(x in b for x in a)]
    ratios = [np.abs(np.log(chances[a] / chances[b])).max() for a, b in near]
    return chances, max(ratios)


def answers_given(chances, coins, shown):
    """Chances of the answers, given coins and shown values; too many heads train on random ones of
    them.
    """
    heads = [value for value, coin in zip(shown, coins, strict=True) if coin]
    if len(heads) > TRAINED:
        trained = [tuple(sorted(heads[:i] + heads[i + 1 :])) for i in range(len(heads))]
    else:
        hidden = product(range(VALUES), repeat=TRAINED - len(heads))
        trained = [tuple(sorted((*heads, *rest))) for rest in hidden]
    return np.mean([chances[one] for one in trained], axis=0)


def test_each_coin_of_a_whole_game_is_hidden_up_to_epsilon_for_replacement():
    """Every toss, every value shown and every answer, with the toss that the examples do not allow
    too.
    """
    largest = 0.0
    for seed in range(20):
        chances, epsilon = random_mechanism(np.random.default_rng(seed))
        for shown in product(range(VALUES), repeat=PLACES):
            for coins in product((0, 1), repeat=PLACES):
                for place in range(PLACES):
                    other = tuple(c ^ (i == place) for i, c in enumerate(coins))
                    odds = answers_given(chances, coins, shown) / answers_given(
                        chances, other, shown
                    )
                    largest = max(largest, np.log(odds).max() / epsilon)
    assert 0.9 < largest <= 1 + 1e-9


def test_coins_in_doubt_are_a_warning_of_every_audit_with_the_number_they_can_fake():
    found = coin_warnings(577, 423, "played")
    assert f"an epsilon of {bounds.one_run_epsilon(577, 1000):.2f};" in found[0]
    assert "an epsilon of 0.20;" in coin_warnings(423, 577, "randomized")[0]
    assert not coin_warnings(530, 470, "played")
    assert not coin_warnings(577, 423, "game")
    equal = coin_warnings(500, 500, "randomized")
    assert "0.025" in equal[0]
    assert "tossed before training" in equal[0]
    for doubt in (*found, *equal):
        assert "`--design game`" in doubt
        assert 'design="game"' in doubt
    assert not coin_warnings(500, 500, "played")
    assert not coin_warnings(10, 10, "randomized"), "fair coins often give ten and ten"
    uneven = normal_scores(577, 423)
    flags = np.repeat([1, 0], [577, 423])
    values = uneven.pooled()[0]
    found = [
        bounds.audit_one_run(uneven),
        bounds.audit_f_dp(uneven),
        bounds.audit_output_set(normal_scores(50, 50, seed=9), uneven),
        bounds.audit_panoramia(values, values, flags),
    ]
    assert all("577 members" in result.warnings[0] for result in found)
    assert not bounds.audit_panoramia(values, values, flags, design="game").warnings


def test_the_warning_stands_between_no_doubt_and_refusal():
    """Down from equal counts: nothing, then a warning, then a refusal; never a gap."""
    scores = np.random.default_rng(0).normal(size=1_000)
    states = []
    for members in range(501, 600, 4):
        flags = np.arange(1_000) < members
        try:
            state = len(bounds.audit_one_run(MembershipScores.from_labels(scores, flags)).warnings)
        except ValueError:
            state = 2
        states.append(state)
    assert states == sorted(states)
    assert set(states) == {0, 1, 2}
    assert binom.sf(500 + 4 * states.index(2), 1_000, 0.5) * 2 < IMPLAUSIBLE


def test_the_spread_is_that_of_the_games_beside_the_reported_one():
    scores = normal_scores(400, 300, shift=1.0)
    audit = partial(bounds.audit_one_run, scores, delta=1e-6)
    each = [audit(design="game", seed=seed).epsilon for seed in range(8, 12)]
    spread = bounds.game_spread(audit, games=4, seed=7)
    assert (spread.lowest, spread.highest, spread.games) == (min(each), max(each), 4)
    assert spread.mean == pytest.approx(np.mean(each))
    assert "does not cover" in str(spread)
    refused("games", bounds.game_spread, audit, games=0)
    values, flags = scores.pooled()
    refused(
        "no epsilon", bounds.game_spread, partial(bounds.audit_panoramia, values, values, flags)
    )
