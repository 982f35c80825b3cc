"""The places of published versions: exact p-values for any scores, ties included, and wrong rules
that are caught.
"""

from itertools import product

import numpy as np
import pytest

from paperlib.bounds.ranks.marks import audit_places, place_p_values
from paperlib.core import MembershipScores
from tests.refusals import refused
from tests.reproduction.validity.coverage import assert_rate_at_most


def scores_of(table: np.ndarray, drawn: np.ndarray) -> MembershipScores:
    """Scores of versions, a row for each text, of which those in the columns ``drawn`` are
    published.
    """
    included = np.arange(table.shape[1]) == drawn[:, None]
    return MembershipScores.from_labels(table.ravel(), included.ravel())


def test_every_level_is_kept_over_all_draws():
    """All 3^6 draws of six texts with ties, nothing sampled: the law is exact at every p-value."""
    table = np.array([[0, 0, 1], [2, 1, 0], [0, 0, 0], [1, 1, 0], [5, 3, 3], [1, 2, 9]], float)
    draws = [np.array(draw) for draw in product(range(3), repeat=6)]
    p_values = np.array([place_p_values(scores_of(table, draw)) for draw in draws])
    for of_one_side in p_values.T:
        for level in np.unique(of_one_side):
            share = np.mean(of_one_side <= level)
            assert share == pytest.approx(level, rel=1e-9)
            assert share <= level


def null_rate(first_is_published: bool) -> int:
    """How many of 2,000 audits of 20 unused texts show a use at 5 %; the first version has the
    better scores.
    """
    used = 0
    for number in range(2_000):
        rng = np.random.default_rng(number)
        table = np.round(rng.normal([0.5, 0, 0, 0], size=(20, 4)), 1)
        drawn = rng.integers(4, size=20) * (not first_is_published)
        used += place_p_values(scores_of(table, drawn))[0] <= 0.05
    return used


def test_texts_that_were_not_used_seldom_look_used():
    assert_rate_at_most(0.05, null_rate(first_is_published=False), 2_000)
    with pytest.raises(AssertionError, match="allows"):  # who publishes the original has no level
        assert_rate_at_most(0.05, null_rate(first_is_published=True), 2_000)


def test_small_p_values_keep_their_digits():
    first = scores_of(np.tile([1.0, 0, 0, 0], (60, 1)), np.zeros(60, int))
    assert place_p_values(first)[0] == pytest.approx(4.0**-60, rel=1e-9)
    result = audit_places(first)
    assert (result.used, result.correct, result.mean_place) == (True, 60, 0.125)
    assert result.epsilon > 3
    assert result.ceiling == result.epsilon


def test_equal_scores_and_reversed_ones_are_no_answer():
    draws = np.zeros(40, int)
    assert audit_places(scores_of(np.ones((40, 4)), draws)).refusals[0].code == "equal_scores"
    worst = audit_places(scores_of(np.tile([0.0, 1, 2, 3], (40, 1)), draws))
    assert worst.refusals[0].code == "reversed"
    assert not worst.used


def test_bad_input_is_refused_in_one_line():
    refused("texts are too few", audit_places, MembershipScores(np.ones(4), np.ones(8)))
    refused("expected as many of each text", audit_places, MembershipScores(np.ones(6), np.ones(8)))
    refused("scores", audit_places, np.ones(9))
    fine = MembershipScores(np.ones(6), np.ones(12))
    refused("confidence", audit_places, fine, confidence=2)
    refused("delta", audit_places, fine, delta=1)
