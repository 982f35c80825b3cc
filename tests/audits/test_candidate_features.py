"""Learned orders over candidate sets: predictable, valid, and stronger than the first score alone."""

from itertools import product

import numpy as np
import pytest

from paperlib.audits import audit_candidate_features, candidate_features
from paperlib.audits.candidate_features import learned_hits
from paperlib.bounds import audit_ranks
from tests.audits.learners import Means
from tests.validity.coverage import assert_rate_at_most

SETS, SIZE = 7, 2
FEATURES = np.random.default_rng(2).normal(size=(SETS, SIZE, 2))


def all_hits():
    """For every vector of true candidates, the hits in their order."""
    return [
        learned_hits(FEATURES, np.array(true), Means(), np.random.default_rng(0))
        for true in product(range(SIZE), repeat=SETS)
    ]


def test_each_sequence_of_hits_is_as_frequent_as_coins_make_it():
    """With two candidates each guess is right for one of the two, whatever was revealed before."""
    _, counts = np.unique(all_hits(), axis=0, return_counts=True)
    assert counts.size == 2 ** (SETS - 1)
    assert (counts == counts[0]).all()


def peeking(monkeypatch):
    """Broken twin: learns from sets that are not revealed yet."""
    honest = candidate_features._odds

    def cheat(rows, true, revealed, model, rng):
        return honest(rows, true, np.ones_like(revealed), model, rng)

    monkeypatch.setattr(candidate_features, "_odds", cheat)


def test_a_twin_that_learns_from_hidden_sets_is_caught(monkeypatch):
    peeking(monkeypatch)
    assert np.unique(np.unique(all_hits(), axis=0, return_counts=True)[1]).size > 1


def response(rng, sets, size, epsilon, columns=3):
    """Randomized response over the candidates of each set, beside columns of noise."""
    true = rng.integers(0, size, sets)
    honest = rng.random(sets) < np.exp(epsilon) / (np.exp(epsilon) + size - 1)
    answer = np.where(honest, true, (true + rng.integers(1, size, sets)) % size)
    features = rng.normal(size=(sets, size, columns))
    features[:, :, 0] = 0.1 * features[:, :, 0] + (answer[:, None] == np.arange(size))
    return features, true


def exceed(trials, epsilon):
    rng, over = np.random.default_rng(4), 0
    for seed in range(trials):
        sets = response(rng, 60, 4, epsilon, columns=12)
        over += audit_candidate_features(*sets, model=Means(), seed=seed).epsilon > epsilon
    return over


@pytest.mark.parametrize("epsilon", [0.0, 1.5])
def test_the_bound_holds_under_randomized_response(epsilon):
    assert_rate_at_most(0.05, exceed(150, epsilon), 150)


def test_learning_from_hidden_sets_breaks_the_bound(monkeypatch):
    peeking(monkeypatch)
    with pytest.raises(AssertionError, match="allows"):
        assert_rate_at_most(0.05, exceed(60, 0.0), 60)


def test_a_true_candidate_in_the_first_place_is_not_favoured():
    assert audit_candidate_features(np.ones((100, 4, 2)), np.zeros(100)).epsilon == 0.0


def with_difficulty(seed, sets=400, size=16):
    """A loss that is mostly difficulty, and a helper's loss that knows the difficulty."""
    rng = np.random.default_rng([6, seed])
    difficulty = 2 * rng.normal(size=(sets, size))
    loss = rng.normal(size=(sets, size)) + difficulty
    true = rng.integers(0, size, sets)
    loss[np.arange(sets), true] -= 2.5
    return np.stack([-loss, difficulty], axis=2), true


def first_column(features, true):
    """Today's way: ranks and margins of one score."""
    scores = features[:, :, 0]
    own = np.take_along_axis(scores, true[:, None], axis=1)
    ordered = np.sort(scores, axis=1)
    return audit_ranks((scores >= own).sum(axis=1), scores.shape[1], margins=ordered[:, -1] - ordered[:, -2])


def test_two_signals_show_more_than_the_loss_alone():
    worlds = [with_difficulty(seed) for seed in range(2)]
    learned = np.mean([audit_candidate_features(*one).epsilon for one in worlds])
    assert learned > np.mean([first_column(*one).epsilon for one in worlds]) + 1


def test_result_speaks_and_repeats_itself():
    sets = with_difficulty(1, sets=100)
    first, again = (audit_candidate_features(*sets, delta=1e-6, seed=2) for _ in range(2))
    assert first.to_dict() == again.to_dict()
    assert any("10 sets, drawn at random" in text for text in first.assumptions)
    assert not any("Margins" in text for text in first.assumptions)
    assert first.sets == 90


@pytest.mark.parametrize(
    ("features", "true", "message"),
    [
        (np.zeros((5, 3)), np.zeros(5), "shape"),
        (np.full((5, 3, 2), np.nan), np.zeros(5), "NaN"),
        (np.zeros((5, 3, 2)), np.full(5, 3), "positions from 0 to 2"),
        (np.zeros((5, 3, 2)), np.zeros(4), "5 positions"),
    ],
)
def test_bad_input_is_one_line_that_says_what_to_do(features, true, message):
    with pytest.raises(ValueError, match=message) as error:
        audit_candidate_features(features, true)
    assert "\n" not in str(error.value)
