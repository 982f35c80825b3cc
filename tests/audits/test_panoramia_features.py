"""Learned orders in PANORAMIA's two tests: valid, and stronger than training on one half."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from paperlib.audits import audit_panoramia_features, panoramia_features
from paperlib.audits.features import LearnedOrder
from paperlib.audits.panoramia_features import learned_test
from paperlib.bounds import audit_panoramia
from paperlib.bounds.one_run.search import Hypothesis
from paperlib.validity.mechanisms import close_generator
from tests.audits.learners import FEATURES, VECTORS, Means, Peeking, all_games
from tests.validity.coverage import assert_rate_at_most

LEVEL = 1 / 3
C, EPSILON = float(np.log(2.0)), 1.0


def exact_error(x, monkeypatch):
    """Largest chance that the bound exceeds x: each coin is "member" with any chance up to e^x/(1+e^x)."""
    monkeypatch.setattr(panoramia_features, "learned_bets", lambda *given: played[0])
    games, codes = all_games(LearnedOrder, True)
    error = np.zeros(len(games))
    for vector, game, code in zip(VECTORS, games, codes, strict=True):
        played = [game]
        test = learned_test("mia", FEATURES, vector, Hypothesis(0.0, LEVEL), Means(), [0])
        error[code] = test.bound > x
    q = 1 / (1 + np.exp(-x))
    while error.size > 1:
        generated, real = error[0::2], error[1::2]
        error = np.maximum(q * real + (1 - q) * generated, generated)
    return float(error[0])


@pytest.mark.parametrize("x", [0.0, 0.3])
def test_valid_for_every_generator_and_mechanism(x, monkeypatch):
    """The worst of them decides, coin by coin, how likely a real member is; at most e^x to 1."""
    assert 0 < exact_error(x, monkeypatch) <= LEVEL


def exceed(trials, **options):
    """How often c_lb > c and {c+eps}_lb > c + eps where both are reached."""
    rng, over = np.random.default_rng(3), np.zeros(2, dtype=int)
    for seed in range(trials):
        ratio, answer, member = close_generator(rng, 100, C, EPSILON)
        result = audit_panoramia_features(ratio, answer, member, model=Means(), seed=seed, **options)
        over += (result.c_lb > C, result.c_plus_epsilon_lb > C + EPSILON)
    return over


def test_each_bound_keeps_half_of_the_error_and_all_of_it_with_known_c():
    for over in exceed(150):
        assert_rate_at_most(0.025, over, 150)
    assert_rate_at_most(0.05, exceed(100, known_c=C)[1], 100)


def null_bounds(seed):
    rng = np.random.default_rng([5, seed])
    noise, member = rng.normal(size=(100, 20)), rng.random(100) < 0.5
    return audit_panoramia_features(noise, noise[:, 0], member, model=Means(), seed=seed)


def test_noise_shows_nothing_and_learning_from_hidden_coins_is_caught(monkeypatch):
    honest = sum(null_bounds(seed).c_lb > 0 for seed in range(150))
    assert_rate_at_most(0.025, honest, 150)
    monkeypatch.setattr(panoramia_features, "LearnedOrder", Peeking)
    peeking = sum(null_bounds(seed).c_lb > 0 for seed in range(50))
    with pytest.raises(AssertionError, match="allows"):
        assert_rate_at_most(0.025, peeking, 50)


def world(seed, m):
    """A generator that misses a correlation, and a loss that is mostly difficulty."""
    rng = np.random.default_rng([9, seed])
    member = rng.random(m) < 0.5
    first, second = rng.normal(size=(2, m))
    second = np.where(member, 0.96 * first + 0.28 * second, second)
    difficulty = 2 * rng.normal(size=m)
    loss = rng.normal(size=m) + difficulty - 1.5 * member
    return np.column_stack([first - second, first, second, difficulty]), -loss, member


def halves(baseline, attack, member):
    """Today's way: logistic regression trained on the first half, judged on the second."""
    half, scores = member.size // 2, []
    for rows in (baseline, np.column_stack([attack, baseline])):
        fitted = LogisticRegression().fit(rows[:half], member[:half])
        scores.append(fitted.decision_function(rows[half:]))
    return audit_panoramia(*scores, member[half:], search="anytime")


def test_stronger_than_training_on_one_half():
    worlds = [world(seed, 4000) for seed in range(2)]
    learned = [audit_panoramia_features(*one) for one in worlds]
    trained = [halves(*one) for one in worlds]
    assert np.mean([one.c_lb for one in learned]) > np.mean([one.c_lb for one in trained]) + 1
    gain = [a.c_plus_epsilon_lb - b.c_plus_epsilon_lb for a, b in zip(learned, trained, strict=True)]
    assert np.mean(gain) > 0.4


def test_result_speaks_and_repeats_itself():
    baseline, attack, member = world(1, 600)
    first, again = (audit_panoramia_features(baseline, attack, member, delta=1e-5, seed=2) for _ in range(2))
    assert first.to_dict() == again.to_dict()
    assert "not a lower bound on epsilon" in first.claim
    assert any("coins revealed before" in text for text in first.assumptions)
    best = first.curve.groupby("test")["bound"].max()
    assert best["baseline"] == pytest.approx(first.c_lb, abs=1e-6)
    assert best["mia"] == pytest.approx(first.c_plus_epsilon_lb, abs=1e-6)
    assert first.ceiling > first.c_plus_epsilon_lb


def test_known_c_makes_a_lower_bound_and_relaxing_lowers_it():
    _, attack, member = world(2, 1000)
    nothing = np.zeros(1000)
    free, relaxed = (
        audit_panoramia_features(nothing, attack, member, known_c=0.0, gamma=gamma) for gamma in (0.0, 1e-3)
    )
    assert free.epsilon == free.c_plus_epsilon_lb > relaxed.epsilon > 0
    assert free.c_lb == 0


def test_a_game_is_drawn_from_uneven_counts():
    rng = np.random.default_rng(7)
    features, member = rng.normal(size=(900, 2)), np.arange(900) < 700
    with pytest.raises(ValueError, match="design='game'"):
        audit_panoramia_features(features, features, member)
    played = audit_panoramia_features(features, features, member, design="game")
    assert 200 < played.members + played.nonmembers < 400


@pytest.mark.parametrize(
    ("baseline", "attack", "membership", "message"),
    [
        ([1.0, np.nan], [1.0, 2.0], [0, 1], "baseline_features: 1 of 2 rows"),
        ([1.0, 2.0], ["a", "b"], [0, 1], "attack_features: expected numbers"),
        ([1.0, 2.0], [1.0], [0, 1], "attack_features: expected 2 rows"),
        ([1.0, 2.0], [1.0, 2.0], [0, 1, 1], "2 values"),
    ],
)
def test_bad_input_is_one_line_that_says_what_to_do(baseline, attack, membership, message):
    with pytest.raises(ValueError, match=message) as error:
        audit_panoramia_features(baseline, attack, membership)
    assert "\n" not in str(error.value)
