"""One-run bounds on single counts, and the anytime search over all of them, by exact
enumeration.
"""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom, norm

from paperlib.bounds import audit_one_run, one_run_epsilon
from paperlib.bounds.one_run.anytime import log_mixture, sharp_share
from paperlib.bounds.one_run.f_dp import f_dp_parameter
from paperlib.core import MembershipScores
from paperlib.core.direction import reversed_direction

EPSILONS = (0.0, 0.3, 1.0, 3.0)


def exact_failure_rate(m, epsilon, delta, confidence=0.95, made=None):
    """Chance that the bound exceeds epsilon when each example reveals its membership with
    probability delta and answers by randomized response otherwise: exact, over all outcomes."""
    counts, right = np.arange((made or m) + 1), delta + (1 - delta) * expit(epsilon)
    bounds = one_run_epsilon(counts, made or m, total=m, delta=delta, confidence=confidence)
    return binom.pmf(counts, made or m, right)[bounds > epsilon].sum()


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", [0.0, 1e-3, 0.05])
def test_count_bound_is_valid_exactly(epsilon, delta):
    for m, made in ((1, 1), (2, 2), (7, 7), (40, 20), (40, 40), (200, 200)):
        assert exact_failure_rate(m, epsilon, delta, made=made) <= 0.05 + 1e-12


def test_a_bound_that_ignores_delta_or_its_level_is_caught():
    m, right = 200, 0.05 + 0.95 * expit(1.0)
    bounds = one_run_epsilon(np.arange(m + 1), m, confidence=0.95)
    assert binom.pmf(np.arange(m + 1), m, right)[bounds > 1.0].sum() > 0.05
    assert exact_failure_rate(200, 1.0, 0.0, 0.8) > 0.05


def crossing_chance(epsilon, steps, refutes):
    """Exact chance that a walk of Bernoulli(q) guesses is ever refuted, by dynamic programming."""
    q = expit(epsilon)
    alive, lost = np.array([1.0]), 0.0
    for r in range(1, steps + 1):
        alive = np.append(alive * (1 - q), 0.0) + np.append(0.0, alive * q)
        out = refutes(np.arange(r + 1), np.full(r + 1, r))
        lost, alive = lost + alive[out].sum(), np.where(out, 0.0, alive)
    return lost


@pytest.mark.parametrize("most", [None, 300, 1_000])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_anytime_search_is_valid_exactly(epsilon, most):
    """All guess counts up to 1,000 at once, every path enumerated."""
    share = sharp_share(most)
    steps = most or 700
    chance = crossing_chance(
        epsilon, steps, lambda k, r: log_mixture(k, r, epsilon, share) >= np.log(20)
    )
    assert 0.005 < chance <= 0.05
    if epsilon == 1.0:  # a search that is not corrected
        assert crossing_chance(1.0, 300, lambda k, r: one_run_epsilon(k, r) > 1.0) > 0.2


def curve_failure_rate(m, right, truth, **options):
    """All outcomes of m guesses, each right with its own fair chance: exact."""
    bounds = f_dp_parameter(np.arange(m + 1), np.full(m + 1, m), total=m, **options)
    return binom.pmf(np.arange(m + 1), m, right)[bounds > truth].sum()


CURVES = [
    *[("approximate", one, d, d + (1 - d) * expit(one)) for one in EPSILONS for d in (0.0, 0.02)],
    *[("gaussian", mu, 0.0, norm.cdf(mu / 2)) for mu in (0.0, 0.5, 2.0)],
    *[("laplace", one, 0.0, 1 - np.exp(-one / 2) / 2) for one in (0.0, 0.5, 2.0)],
]


@pytest.mark.parametrize(("family", "truth", "delta", "right"), CURVES)
def test_every_family_of_curves_is_valid_exactly(family, truth, delta, right):
    options = {"family": family, **({"delta": delta} if delta else {})}
    for m in (1, 2, 7, 40, 200):
        assert curve_failure_rate(m, right, truth, **options) <= 0.05 + 1e-12


def test_curves_at_another_confidence_are_caught():
    assert curve_failure_rate(200, expit(1.0), 1.0, family="approximate", confidence=0.7) > 0.05
    assert curve_failure_rate(40, norm.cdf(0.25), 0.5, family="gaussian", confidence=0.7) > 0.05


def test_numbers_that_are_shown_may_be_wrong_more_often_than_the_level():
    """The level is that of all audits, and most of these end with a warning of a reversed
    direction.

    Randomized response of epsilon 1.8: the first 200 that say "member" stand on top, the rest the
    wrong way round. The few audits without the warning are those where the top is right more often
    than it should be.
    """
    rng = np.random.default_rng(0)
    trials, epsilon, shown, wrong = 4_000, 1.8, 0, 0
    for _ in range(trials):
        coins = rng.random(1_000) < 0.5
        says = coins == (rng.random(1_000) < expit(epsilon))
        top = says & (np.cumsum(says) <= 200)
        scores = MembershipScores.from_labels(rng.random(1_000) + 2 * top - says, coins)
        if reversed_direction(scores) is None:
            shown += 1
            wrong += audit_one_run(scores, guess="members", thresholds=1.0).epsilon > epsilon
    assert 0.02 < shown / trials < 0.05
    assert wrong > binom.isf(1e-3, shown, 0.05)
    assert wrong <= 0.05 * trials
