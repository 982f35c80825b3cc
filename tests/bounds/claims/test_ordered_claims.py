"""Claims in their order: how far an audit refutes them, beside tests of single claims."""

import numpy as np
import pytest

from paperlib.bounds.claims.audit import right_guesses
from paperlib.bounds.claims.bets import highest_stake, limits_of
from paperlib.bounds.claims.curves import gaussian_profile
from paperlib.bounds.claims.ordered_claims import ClaimTest
from tests.bounds.claims.test_claims import normal_scores

CELLS = 0.02 * 1.1 ** np.arange(60.0)


def claim_test(seed, m=1_000, error=0.05):
    return ClaimTest(right_guesses(normal_scores(seed, m), 0), m, error)


def test_the_end_lies_inside_its_cell_and_near_that_of_single_tests():
    test = claim_test(1)
    end = test.last_refuted(CELLS, gaussian_profile)
    whole = [mu for mu in CELLS if mu <= end]
    assert all(test.refutes(gaussian_profile(mu)) for mu in whole)
    assert not test.refutes(gaussian_profile(CELLS[len(whole)]))
    assert end not in CELLS
    alone = [mu for mu in np.linspace(0.3, 0.8, 26) if test.refutes(gaussian_profile(mu))]
    assert end == pytest.approx(max(alone), abs=0.025)


def test_nothing_is_refuted_where_the_most_private_claim_is_not():
    test = ClaimTest(np.array([True, False] * 50), 100, 0.05)
    assert test.last_refuted(CELLS, gaussian_profile) is None
    assert test.p_value(gaussian_profile(1.0)) == 1


def test_all_cells_may_be_refuted():
    test = claim_test(0)
    assert test.last_refuted(CELLS[:20], gaussian_profile) == CELLS[19]


def test_the_true_claim_is_refuted_no_more_often_than_a_single_test_allows():
    # Cells too wide for the bets to fit all of them: the level does not rest on how fine they are.
    wide = np.array([0.3, 0.9, 1.4, 3.0])
    ends = [claim_test(seed, 200, 0.2).last_refuted(wide, gaussian_profile) for seed in range(80)]
    assert sum(end is not None and end >= 1 for end in ends) <= 19


def test_audits_side_by_side_reach_what_each_reaches_alone():
    rng = np.random.default_rng(2)
    limits = limits_of([gaussian_profile(0.3)], 700, 0.05)
    right = rng.random((5, 700)) < [[0.5], [0.6], [0.7], [0.8], [0.95]]
    guesses = np.array([700, 300, 0, 650, 20])
    together = highest_stake(right, limits, guesses)
    alone = [highest_stake(row[:n], limits)[0] for row, n in zip(right, guesses, strict=True)]
    np.testing.assert_allclose(together, alone)
