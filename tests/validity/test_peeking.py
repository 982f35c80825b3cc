"""The twin of the adaptive order is the order itself but for the coins it knows, and fails by them."""

import numpy as np
import pytest

from paperlib.bounds import audit_one_run
from paperlib.validity import mechanisms as known
from paperlib.validity.peeking import peeking_epsilon
from tests.validity.coverage import assert_rate_at_most

MECHANISMS = [known.no_leakage(), known.randomized_response(1.0), known.laplace(2.0)]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda one: one.name)
def test_without_a_peek_it_is_the_default_bound(mechanism):
    rng = np.random.default_rng(0)
    for _ in range(5):
        scores = mechanism.draw(rng, 300)
        bound = peeking_epsilon(scores, confidence=0.95, share=0.0, rng=rng)
        assert bound == pytest.approx(audit_one_run(scores).epsilon, abs=1e-8)


@pytest.mark.parametrize("mechanism", MECHANISMS[:2], ids=lambda one: one.name)
def test_half_of_the_guesses_known_is_caught(mechanism):
    rng, trials, hits, sound = np.random.default_rng(1), 200, 0, 0
    for _ in range(trials):
        scores = mechanism.draw(rng, 120)
        hits += peeking_epsilon(scores, confidence=0.95, share=0.5, rng=rng) > mechanism.epsilon
        sound += peeking_epsilon(scores, confidence=0.95, share=0.0, rng=rng) > mechanism.epsilon
    assert_rate_at_most(0.05, sound, trials)
    with pytest.raises(AssertionError, match="allows"):
        assert_rate_at_most(0.05, hits, trials)


def test_all_guesses_known_are_all_right():
    rng = np.random.default_rng(2)
    scores = known.no_leakage().draw(rng, 200)
    assert peeking_epsilon(scores, confidence=0.95, share=1.0, rng=rng) > 3
