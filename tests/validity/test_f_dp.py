"""The one-run f-DP bound keeps its error rate; a twin at the wrong level does not."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom, norm

from paperlib.bounds import audit_f_dp, f_dp_parameter
from paperlib.core import MembershipScores
from tests.validity.coverage import assert_rate_at_most


def exact_failure_rate(m, right, truth, **options):
    """All outcomes of m guesses, each right with its own fair chance: exact."""
    bounds = f_dp_parameter(np.arange(m + 1), np.full(m + 1, m), total=m, **options)
    return binom.pmf(np.arange(m + 1), m, right)[bounds > truth].sum()


@pytest.mark.parametrize("m", [1, 2, 7, 40, 200])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 3.0])
@pytest.mark.parametrize("delta", [0.0, 0.02])
def test_approximate_family_is_valid_exactly(m, epsilon, delta):
    right = delta + (1 - delta) * expit(epsilon)
    assert exact_failure_rate(m, right, epsilon, family="approximate", delta=delta) <= 0.05 + 1e-12


@pytest.mark.parametrize("m", [1, 7, 40, 200])
@pytest.mark.parametrize("mu", [0.0, 0.5, 2.0])
def test_gaussian_family_is_valid_exactly(m, mu):
    assert exact_failure_rate(m, norm.cdf(mu / 2), mu, family="gaussian") <= 0.05 + 1e-12


@pytest.mark.parametrize("m", [1, 7, 40, 200])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
def test_laplace_family_is_valid_exactly(m, epsilon):
    right = 1 - np.exp(-epsilon / 2) / 2
    assert exact_failure_rate(m, right, epsilon, family="laplace") <= 0.05 + 1e-12


def test_wrong_level_is_caught_exactly():
    assert exact_failure_rate(200, expit(1.0), 1.0, family="approximate", confidence=0.7) > 0.05


def gaussian_audits(trials, m, seed):
    rng = np.random.default_rng(seed)
    for _ in range(trials):
        coins = rng.integers(0, 2, m)
        yield MembershipScores.from_labels(rng.normal(coins, 1.0), coins)


def revealing_audits(trials, m, seed):
    """(1, 0.01)-DP: a hundredth of the examples shout their membership."""
    rng = np.random.default_rng(seed)
    for _ in range(trials):
        coins = rng.integers(0, 2, m)
        answers = np.where(rng.random(m) < expit(1.0), coins, 1 - coins).astype(float)
        yield MembershipScores.from_labels(np.where(rng.random(m) < 0.01, 4.0 * coins - 2, answers), coins)


@pytest.mark.parametrize(
    ("audits", "truth", "options"),
    [
        (gaussian_audits, 1.0, {"family": "gaussian", "guess": "members"}),
        (gaussian_audits, 1.0, {"family": "gaussian"}),
        (revealing_audits, 1.0, {"family": "approximate", "delta": 0.01}),
        (revealing_audits, 1.0, {"family": "approximate", "delta": 0.01, "guess": "members"}),
    ],
)
def test_audits_are_valid_in_simulation(audits, truth, options):
    hits = sum(audit_f_dp(scores, **options).parameter > truth for scores in audits(200, 150, 21))
    assert_rate_at_most(0.05, hits, 200)


def test_a_curve_that_ignores_delta_is_caught():
    hits = sum(
        audit_f_dp(scores, family="approximate", delta=0.0, guess="members").parameter > 1.0
        for scores in revealing_audits(60, 10_000, 22)
    )
    with pytest.raises(AssertionError, match="allows"):
        assert_rate_at_most(0.05, hits, 60)
