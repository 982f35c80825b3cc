"""Bounds from tossed coins hold for a mechanism of known epsilon, whatever share of the records has one."""

import numpy as np
import pytest
from scipy.special import expit

from paperlib.bounds import audit_one_run
from paperlib.core import toss_coins
from tests.validity.coverage import assert_rate_at_most

EPSILON, TRIALS, RECORDS = 1.0, 150, 120


def randomized_response(included, rng):
    """Scores that show each coin as it fell with the chance that epsilon allows."""
    shown = included ^ (rng.random(included.size) > expit(EPSILON))
    return shown + 0.1 * rng.random(included.size)


def failures(fraction, choose):
    """Number of trials whose bound is above epsilon; ``choose`` says which scores are dropped before."""
    count = 0
    for seed in range(TRIALS):
        coins, rng = toss_coins(RECORDS, seed=seed, fraction=fraction), np.random.default_rng([seed, 1])
        scores = randomized_response(coins.included, rng)
        keep = choose(coins.included, scores)
        order = rng.permutation(np.flatnonzero(keep))
        ids = np.array(coins.ids)[order]
        if not keep.all():
            with pytest.raises(ValueError, match="an audit that chooses among its coins is not valid"):
                coins.join(ids, scores[order])
            coins = type(coins)(**{**vars(coins), "ids": tuple(ids), "included": coins.included[order]})
        joined = coins.scores(dict(zip(ids, scores[order], strict=True)), kind="scores")
        count += audit_one_run(joined, seed=seed).epsilon > EPSILON
    return count


@pytest.mark.parametrize("fraction", [1.0, 0.5])
def test_the_bound_from_tossed_coins_fails_no_more_often_than_it_says(fraction):
    assert_rate_at_most(0.05, failures(fraction, lambda included, scores: scores > -1), TRIALS)


def test_the_choice_of_coins_that_a_join_refuses_would_break_the_bound():
    def flattering(included, scores):  # half of what the scores show wrongly is left out
        wrong = np.flatnonzero((scores > 0.5) != included)
        return ~np.isin(np.arange(included.size), wrong[::2])

    with pytest.raises(AssertionError, match=r"a rate of 0\.05 allows"):
        assert_rate_at_most(0.05, failures(1.0, flattering), TRIALS)
