"""A small adaptive order keeps its level, exactly; one that looks at the coins it bets on does not."""

from itertools import product

import numpy as np
import pytest
from scipy.special import expit

from paperlib.bounds.one_run.anytime import anytime_epsilon
from paperlib.core import MembershipScores
from paperlib.validity.peeking import two_ends, two_ends_epsilon


def error(m, members, epsilon, ahead, level=0.05):
    """Exact chance of a wrong bound: the ``members`` highest scores say "member", each right at epsilon."""
    q, chance = expit(epsilon), 0.0
    said = np.arange(m) < members
    for labels in product([0, 1], repeat=m):
        right = np.array(labels) == said
        if anytime_epsilon(two_ends(np.array(labels), ahead), level=level).epsilon > epsilon:
            chance += np.prod(np.where(right, q, 1 - q))
    return chance


@pytest.mark.parametrize("members", [0, 4, 6, 12])
@pytest.mark.parametrize("epsilon", [0.0, 0.3])
def test_the_sound_order_is_valid_exactly(members, epsilon):
    """Every outcome of twelve coins; nothing sampled."""
    assert error(12, members, epsilon, np.zeros(12, dtype=int)) <= 0.05


def test_looking_ahead_is_caught_exactly():
    assert error(12, 6, 0.0, np.zeros(12, dtype=int)) > 0
    assert error(12, 6, 0.0, np.tile([0, 1], 6)) > 0.05


def test_every_example_is_guessed_once_by_the_sound_order():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 50)
    assert two_ends(labels, np.zeros(50, dtype=int)).size == 50
    assert two_ends(labels, np.ones(50, dtype=int)).all()


def test_bound_of_scores():
    rng = np.random.default_rng(1)
    scores = MembershipScores(rng.normal(3, 1, 200), rng.normal(0, 1, 200))
    assert two_ends_epsilon(scores, confidence=0.95, peeks=0.0, rng=rng) > 2
