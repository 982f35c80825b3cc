"""Learned orders: predictable, valid, and stronger than any single score where signals belong together."""

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

from paperlib.audits import audit_features
from paperlib.audits.features import LearnedOrder
from paperlib.bounds import audit_one_run
from paperlib.bounds.one_run.adaptive import ends_of, reveal
from paperlib.bounds.one_run.anytime import log_mixture, log_threshold
from paperlib.core import MembershipScores
from tests.audits.learners import EXAMPLES, Means, Peeking, all_games
from tests.validity.coverage import assert_rate_at_most

LEVEL = 1 / 3


@pytest.mark.parametrize("only_members", [False, True])
def test_what_is_revealed_next_depends_on_revealed_coins_only_and_a_twin_that_peeks_is_caught(only_members):
    games, codes = all_games(LearnedOrder, only_members)
    assert np.unique(codes).size == 2**EXAMPLES
    assert not only_members or all(game.as_member.all() for game in games)
    orders = np.array([game.revealed for game in games])[np.argsort(codes)]
    for known in range(EXAMPLES):
        same = orders[:, known].reshape(2**known, -1)
        assert (same == same[:, :1]).all()
    assert np.unique(all_games(Peeking, only_members)[1]).size < 2**EXAMPLES


@pytest.mark.parametrize("epsilon", [0.0, 0.2])
def test_valid_for_every_mechanism(epsilon):
    """The worst mechanism decides, coin by coin, how far the features lean to the guess."""
    games, codes = all_games(LearnedOrder, False)
    q = 1 / (1 + np.exp(-epsilon))
    error = np.zeros(2**EXAMPLES)
    for game, code in zip(games, codes, strict=True):
        right = np.cumsum(game.right)
        mixture = log_mixture(right, np.arange(1, right.size + 1), epsilon)
        error[code] = mixture.max(initial=-np.inf) >= log_threshold(LEVEL)
    while error.size > 1:
        zero, one = error[0::2], error[1::2]
        error = np.maximum(q * one + (1 - q) * zero, q * zero + (1 - q) * one)
    assert 0 < float(error[0]) <= LEVEL


def positive(order, seed):
    """Whether noise shows a leak at error 0.05."""
    rng = np.random.default_rng([3, seed])
    features, members = rng.normal(size=(60, 20)), rng.random(60) < 0.5
    learned = order(features, members, Means(), rng)
    right = np.cumsum(reveal([*ends_of(features[:, 0]), learned], members, np.arange(4), leader=2).right)
    return log_mixture(right, np.arange(1, right.size + 1), 0.0).max(initial=-np.inf) >= log_threshold(0.05)


def test_no_signal_is_reported_at_most_as_often_as_allowed_and_peeking_is_caught():
    assert_rate_at_most(0.05, sum(positive(LearnedOrder, seed) for seed in range(400)), 400)
    with pytest.raises(AssertionError, match="allows"):
        assert_rate_at_most(0.05, sum(positive(Peeking, seed) for seed in range(100)), 100)


def with_difficulty(seed, m):
    """A loss that is mostly difficulty, and a helper's loss that knows the difficulty."""
    rng = np.random.default_rng([11, seed])
    member, difficulty = rng.random(m) < 0.5, 2 * rng.normal(size=m)
    loss = rng.normal(size=m) + difficulty - member
    return np.column_stack([-loss, difficulty]), member


def one_run(score, member):
    return audit_one_run(MembershipScores.from_labels(score, member)).epsilon


def test_two_signals_show_more_than_the_loss_alone_and_nothing_to_learn_loses_little():
    worlds = [with_difficulty(seed, 10_000) for seed in range(2)]
    assert np.mean([audit_features(*world).epsilon for world in worlds]) >= 2.2
    assert np.mean([one_run(x[:, 0], member) for x, member in worlds]) < 1.2
    rng = np.random.default_rng(5)
    members = [rng.random(5_000) < 0.5 for _ in range(4)]
    scores = [(rng.normal(size=member.size) + member, member) for member in members]
    assert np.mean([audit_features(*one).epsilon - one_run(*one) for one in scores]) > -0.15


def test_members_inside_the_range_of_the_others_are_found():
    rng = np.random.default_rng(6)
    member = rng.random(4000) < 0.5
    score = np.where(member, 0.5, 2.0) * rng.normal(size=member.size)
    assert audit_features(score, member).epsilon > 4


def test_result_speaks_and_repeats_itself():
    features, member = with_difficulty(1, 1000)
    first, again = (audit_features(features, member, delta=1e-5, seed=2) for _ in range(2))
    assert first.to_dict() == again.to_dict()
    assert "not (epsilon, 1e-05)-differentially private" in first.claim
    assert first.curve.bound.max() == pytest.approx(first.epsilon, abs=1e-7)
    assert 0 < first.learned <= first.guesses <= first.total == 1000


def test_any_classifier_learns():
    features, member = with_difficulty(2, 1000)
    trees = HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=5)
    assert audit_features(features, member, model=trees).epsilon > 0


def test_a_game_is_drawn_from_uneven_counts():
    rng = np.random.default_rng(7)
    features, member = rng.normal(size=(900, 2)), np.arange(900) < 700
    with pytest.raises(ValueError, match='design="game"'):
        audit_features(features, member)
    played = audit_features(features, member, design="game")
    assert 200 < played.total < 400
    assert "one distribution" in played.assumptions[0]


@pytest.mark.parametrize(
    ("features", "membership", "message"),
    [
        ([[1.0], [np.nan]], [0, 1], r"1 of 2 rows .*row 1"),
        ([["a"], ["b"]], [0, 1], "numbers"),
        ([[1.0], [2.0]], [0, 1, 1], "2 values"),
        ([[1.0], [2.0]], [0, 2], "0 and 1"),
        ([[1.0], [2.0]], [1, 1], "both classes"),
        (np.zeros((2, 0)), [0, 1], "1 or more columns"),
    ],
)
def test_bad_input_is_one_line_that_says_what_to_do(features, membership, message):
    with pytest.raises(ValueError, match=message) as error:
        audit_features(features, membership)
    assert "\n" not in str(error.value)


def test_ties_everywhere_show_nothing():
    assert audit_features(np.ones((100, 2)), np.arange(100) % 2).epsilon == 0.0


@pytest.mark.filterwarnings("error")
def test_a_fit_that_does_not_converge_is_no_alarm():
    rng = np.random.default_rng(9)
    features, member = rng.normal(size=(200, 80)) ** 5, rng.random(200) < 0.5
    assert audit_features(features, member).epsilon >= 0
