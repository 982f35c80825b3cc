"""Values beside those of jax_privacy's auditor on the same scores, and how often both are wrong.

In jax_privacy 2.0.0 the search of the one-run bound divides the error by the number of corners of
the ROC hull, which the data choose, and the bound for Gaussian DP takes the absolute value of a
lower bound on mu.
"""

import numpy as np
import pytest
from scipy.stats import binom

from paperlib.bounds import (
    ErrorCounts,
    audit_clopper_pearson,
    audit_gaussian_dp,
    audit_one_run,
    one_run_epsilon,
)
from paperlib.bounds.many_runs.gaussian_dp import gaussian_dp_epsilon, gaussian_dp_mu
from paperlib.bounds.one_run.f_dp import f_dp_parameter
from paperlib.core import MembershipScores

LEVEL = 0.05


@pytest.fixture(scope="module")
def peer():
    """Its auditing module; imported here, so that only these tests load JAX."""
    return pytest.importorskip(
        "jax_privacy.auditing", reason="pip install jax-privacy, which `dev` asks for"
    )


def both(peer, scores, coins):
    """The same scores as this package takes them and as the peer does."""
    ours = MembershipScores.from_labels(scores, coins)
    return ours, peer.CanaryScoreAuditor(ours.member, ours.nonmember)


@pytest.mark.parametrize(
    ("shift", "total", "threshold", "delta"),
    [
        (0, 400, 0.5, 1e-5),
        (1, 400, 1.0, 1e-9),
        (1, 400, 0.0, 1e-3),
        (2, 600, 2.0, 1e-5),
        (1, 900, 1.5, 1e-5),
    ],
)
def test_bounds_at_a_threshold_fixed_in_advance(peer, shift, total, threshold, delta):
    rng = np.random.default_rng([total, shift])
    coins = rng.integers(0, 2, total)
    scores, auditor = both(peer, rng.normal(shift * coins, 1.0), coins)
    fixed = {"threshold_strategy": peer.Explicit(threshold)}
    wrong, _, missed, members = ErrorCounts.from_scores(scores, threshold).numbers
    right, made = members - missed, members - missed + wrong  # where only "member" is guessed
    (mu,) = f_dp_parameter([right], [made], total=total)
    for theirs, ours in (
        (
            auditor.epsilon_clopper_pearson(LEVEL, delta, False, **fixed),
            audit_clopper_pearson(scores, threshold=threshold, delta=delta).epsilon,
        ),
        (
            auditor.epsilon_one_run(LEVEL, delta, **fixed),
            one_run_epsilon(right, made, total=total, delta=delta),
        ),
        (auditor.epsilon_one_run_fdp(LEVEL, delta, **fixed), gaussian_dp_epsilon(mu, delta)),
    ):
        assert ours == pytest.approx(theirs, abs=2e-6)


@pytest.mark.parametrize("shift", [2, 3])
def test_bound_for_gaussian_dp_at_the_best_of_three_thresholds(peer, shift):
    """Scores on three values make every threshold a corner of the hull: the error is divided by
    four.
    """
    rng = np.random.default_rng(shift)
    coins, delta = rng.integers(0, 2, 800), 1e-5
    values = np.digitize(rng.normal(shift * coins, 1.0), [0.4 * shift, 0.8 * shift])
    scores, auditor = both(peer, values, coins)
    numbers = np.array([ErrorCounts.from_scores(scores, value).numbers for value in (0, 1, 2)]).T
    mu = gaussian_dp_mu(*numbers, confidence=1 - LEVEL / 4)
    theirs = auditor.epsilon_from_gdp(LEVEL, delta)
    assert theirs > 0.5
    assert np.max(gaussian_dp_epsilon(mu, delta)) == pytest.approx(theirs, abs=2e-6)


def test_error_divided_by_the_corners_of_the_hull_is_too_large(peer):
    """Nothing leaks: 8 % of its one-run bounds are above 0 at a nominal 5 %, and 3 % of ours."""
    rng = np.random.default_rng(0)
    trials, wrong = 1_000, np.zeros(2, int)
    for _ in range(trials):
        scores, auditor = both(peer, rng.random(3_000), rng.integers(0, 2, 3_000))
        ours = audit_one_run(
            scores, guess="members", thresholds="dyadic"
        )  # at delta = 0, the larger bound
        wrong += auditor.epsilon_one_run(LEVEL, 1e-9) > 0, ours.epsilon > 0
    assert wrong[0] > binom.isf(1e-4, trials, LEVEL)
    assert wrong[1] <= LEVEL * trials


@pytest.mark.parametrize(("mu", "share"), [(0.0, 0.9), (0.5, 0.7), (1.0, LEVEL)])
def test_the_absolute_value_of_a_bound_on_mu_is_no_bound(peer, mu, share):
    """Gaussian noise, 500 runs of each side: the less leaks, the more of its bounds are above the
    truth.
    """
    truth = float(gaussian_dp_epsilon(mu, 1e-5))
    rng = np.random.default_rng(0)
    trials, wrong = 200, np.zeros(2, int)
    for seed in range(trials):
        member, nonmember = rng.normal(mu, 1.0, 500), rng.normal(0.0, 1.0, 500)
        theirs = peer.CanaryScoreAuditor(member, nonmember).epsilon_from_gdp(LEVEL, 1e-5)
        ours = audit_gaussian_dp(MembershipScores(member, nonmember), delta=1e-5, seed=seed).epsilon
        wrong += theirs > truth + 1e-5, ours > truth
    assert wrong[0] > binom.isf(1e-3, trials, share)
    assert wrong[1] <= LEVEL * trials
