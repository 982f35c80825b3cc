"""Whole audits with a search, every outcome of a few coins enumerated: nothing sampled.

Scores are fixed; randomized response says "member" about the highest ones, so that each label
agrees with what is said with probability e^eps/(1+e^eps), the most that epsilon-DP allows.
"""

from itertools import product

import numpy as np
import pytest
from scipy.special import expit

from paperlib import bounds
from paperlib.bounds.one_run.guesses import guess_path
from paperlib.bounds.one_run.search import run_recall_test
from paperlib.bounds.ranks.p_values import rank_success_probability
from paperlib.core import MembershipScores

M = 9
HITS = np.array(list(product([0, 1], repeat=M)))
LABELS = HITS[1:-1]  # both classes
VALUES = np.arange(M, 0, -1.0)
SEARCHES = [*product(("both", "members"), ("anytime", "dyadic", "bonferroni"))]
SEARCHES += [("adaptive", "anytime"), ("both", "split"), ("both", 5.5), ("grid", None)]


def audited(labels, **options):
    """Bound of scores m, m - 1, ..., 1 with these labels; 0 where half of them lacks a class."""
    try:
        return bounds.audit_one_run(MembershipScores.from_labels(VALUES, labels), **options).epsilon
    except ValueError as refusal:
        if "too few to split" not in str(refusal):
            raise
        return 0.0


def chance_above(found, right, q, epsilon):
    """Chance that a bound exceeds epsilon where each answer, a column of ``right``, has chance
    q.
    """
    return np.where(right, q, 1 - q).prod(axis=1)[np.array(found) > epsilon].sum()


def error(found, members, epsilon):
    """Chance that a bound exceeds epsilon when "member" is said of the ``members`` highest
    scores.
    """
    return chance_above(found, (LABELS == 1) == (np.arange(M) < members), expit(epsilon), epsilon)


def worst_error(found):
    return max(
        error(found, members, epsilon) for members in range(M + 1) for epsilon in (0.0, 0.2, 0.6)
    )


@pytest.mark.parametrize(("guess", "search"), SEARCHES)
def test_every_search_is_valid_exactly(guess, search):
    """At a nominal rate of 20 %, which nine coins can use up."""
    options = {"guess": guess, "thresholds": search, "confidence": 0.8}
    worst = worst_error([audited(one, **options) for one in LABELS])
    assert 0.005 < worst <= 0.2  # some outcome refutes: the test is no formality


def test_curve_search_is_valid_exactly_and_the_best_of_all_counts_is_caught():
    """The f-DP audit over dyadic counts, with the curve that randomized response has."""
    options = {"family": "approximate", "delta": 0.0, "confidence": 0.8, "guess": "both"}
    games = [MembershipScores.from_labels(VALUES, one) for one in LABELS]
    assert (
        0.005 < worst_error([bounds.audit_f_dp(one, **options).parameter for one in games]) <= 0.2
    )
    paths = [guess_path(one, "both") for one in games]
    found = [
        bounds.one_run_epsilon(path.correct, path.guesses, confidence=0.8).max() for path in paths
    ]
    assert worst_error(found) > 0.2


def rank_error(found, sizes, epsilon):
    """Chance that a rank audit exceeds epsilon under k-valued randomized response."""
    return chance_above(found, HITS == 1, rank_success_probability(sizes, epsilon), epsilon)


@pytest.mark.parametrize("sizes", [np.full(M, 3), np.resize([2, 9], M)])
def test_search_over_sets_is_valid_exactly(sizes):
    """Margins fall from set to set; each stopping point may be the best."""
    ranks = [np.where(one == 1, 1, sizes) for one in HITS]
    found = [
        bounds.audit_ranks(one, sizes, margins=VALUES, confidence=0.8).epsilon for one in ranks
    ]
    worst = max(rank_error(found, sizes, epsilon) for epsilon in (0.0, 0.3, 1.0, 2.0))
    assert 0.005 < worst <= 0.2
    if sizes.min() == sizes.max():
        size, counts = int(sizes[0]), np.arange(1, M + 1)
        best = [
            bounds.rank_epsilon(np.cumsum(one), counts, size, confidence=0.8).max() for one in HITS
        ]
        assert rank_error(best, sizes, 0.0) > 0.2


@pytest.mark.parametrize("search", ["union", "anytime"])
def test_each_search_over_recall_is_valid_exactly(search):
    """One of PANORAMIA's tests: "member" is said of the highest scores, abstention elsewhere."""
    found = [run_recall_test("mia", VALUES, one == 1, 0.2, 0.0, search).bound for one in LABELS]
    worst = max(error(found, M, epsilon) for epsilon in (0.0, 0.2, 0.6))
    assert 0.005 < worst <= 0.2
