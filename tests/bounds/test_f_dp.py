"""One-run f-DP: inverse curves, monotonicity, agreement with the written recursion, refusals."""

import re

import numpy as np
import pytest
from scipy.stats import binom, norm

from paperlib.bounds import audit_f_dp, one_run_epsilon
from paperlib.bounds.claims.audit import audit_curve
from paperlib.bounds.claims.curves import ClaimedCurve, gaussian_profile
from paperlib.bounds.claims.f_dp import FdpGuess, family_profile
from paperlib.bounds.many_runs.gaussian_dp import gaussian_dp_epsilon
from paperlib.bounds.one_run.f_dp import f_dp_parameter, inverse_blow_up
from paperlib.core import MembershipScores, round_down
from tests.refusals import refused

Y = np.linspace(0, 1, 501)


def blow_up(family, parameter, x, delta):
    """1 - f(x), written from the definition of each trade-off curve."""
    e = np.exp(parameter)
    if family == "gaussian":
        return 1 - norm.cdf(norm.ppf(1 - x) - parameter)
    if family == "approximate":
        return 1 - np.maximum.reduce([0 * x, 1 - delta - e * x, (1 - delta - x) / e])
    with np.errstate(divide="ignore"):
        return 1 - np.where(
            x < 1 / (2 * e), 1 - e * x, np.where(x <= 0.5, 1 / (4 * e * x), (1 - x) / e)
        )


@pytest.mark.parametrize("family", ["gaussian", "laplace", "approximate"])
@pytest.mark.parametrize("parameter", [0.0, 0.4, 2.0])
def test_inverse_is_the_smallest_preimage(family, parameter):
    delta = 0.05 if family == "approximate" else 0.0
    x = np.linspace(0, 1, 100_001)
    grid = x[np.searchsorted(blow_up(family, parameter, x, delta), Y - 1e-12).clip(0, x.size - 1)]
    np.testing.assert_allclose(
        inverse_blow_up(family, np.array(parameter), Y, delta), grid, atol=3e-5
    )


def recursion(v, r, total, level, mu):
    """The published algorithm, one guess at a time."""
    right, wrong = level * v / total, level * (r - v) / total
    for i in range(v - 1, -1, -1):
        forced = max(wrong, norm.cdf(norm.ppf(right) - mu))
        right, wrong = right + i / (r - i) * (forced - wrong), forced
    return right + wrong > r / total


@pytest.mark.parametrize(
    ("v", "r", "total"), [(90, 100, 100), (45, 50, 200), (10, 10, 40), (300, 400, 400)]
)
def test_parameter_is_the_turning_point_of_the_recursion(v, r, total):
    mu = float(f_dp_parameter([v], [r], total=total)[0])
    assert mu == 0.0 or recursion(v, r, total, 0.05, mu)
    assert not recursion(v, r, total, 0.05, mu + 1e-5)


def test_parameter_is_close_to_the_binomial_bound():
    found = float(f_dp_parameter([900], [1000], total=1000, family="approximate")[0])
    assert one_run_epsilon(900, 1000) - 0.1 < found <= one_run_epsilon(900, 1000) + 0.02


@pytest.mark.parametrize(
    ("design", "act"), [("randomized", "adding or removing"), ("played", "replacing")]
)
def test_mu_stands_beside_the_epsilon_of_a_gaussian_curve(design, act):
    rng = np.random.default_rng(0)
    coins = rng.integers(0, 2, 1_000)
    scores = MembershipScores.from_labels(rng.normal(coins, 1.0), coins)
    result = audit_f_dp(scores, design=design)
    mu = f"{round_down(result.parameter):.3f}"
    assert result.epsilon == gaussian_dp_epsilon(result.parameter, result.delta) > 1
    assert f"mu ≥ {mu}" in result.headline
    assert re.search(rf"not mu-GDP under {act} one example.* for any mu below {mu}", result.claim)
    nothing = audit_f_dp(
        MembershipScores.from_labels(-scores.pooled()[0], scores.pooled()[1]), design=design
    )
    for other in (audit_f_dp(scores, family="laplace"), nothing):
        assert "for any mu below" not in other.claim


def test_the_bound_on_mu_is_that_of_the_test_of_a_curve():
    rng = np.random.default_rng(3)
    coins = rng.integers(0, 2, 400)
    scores = MembershipScores.from_labels(rng.normal(coins, 1.0), coins)
    curve = audit_curve(scores, ClaimedCurve("gaussian(mu=1)", gaussian_profile(1.0)))
    result = audit_f_dp(scores)
    assert (result.parameter, result.guesses, result.tests) == (curve.mu, curve.guesses, 1)
    assert "error divided by" not in " ".join(result.assumptions)
    assert "error divided by 6 guess counts" in " ".join(
        audit_f_dp(scores, guess="both").assumptions
    )


def test_few_memorised_members_are_seen_in_any_order_and_hardly_by_counts_fixed_in_advance():
    rng = np.random.default_rng(5)
    coins = rng.integers(0, 2, 1_000)
    known = (rng.random(1_000) < 0.1) & (coins == 1)
    scores = MembershipScores.from_labels(rng.normal(5.0 * known, 1.0), coins)
    assert audit_f_dp(scores).epsilon > audit_f_dp(scores, guess="both").epsilon + 1


@pytest.mark.parametrize("family", ["gaussian", "laplace", "approximate"])
def test_the_profile_of_a_family_is_that_of_its_trade_off_curve(family):
    x, epsilon = np.linspace(0, 1, 20_001), np.array([0.0, 0.3, 1.0, 2.0])
    for parameter, delta in ((0.5, 0.0), (2.0, 0.01)):
        curve = 1 - blow_up(family, parameter, x, delta)
        exact = np.array([np.max(1 - curve - np.exp(e) * x) for e in epsilon])
        profile = family_profile(family, parameter, delta)(epsilon)
        np.testing.assert_allclose(profile, exact, atol=1e-3)
        assert (profile >= exact - 1e-9).all()


def test_bad_options_are_refused():
    for name, value in {"delta": 0.0, "family": "cauchy", "confidence": 2, "guess": "grid"}.items():
        refused(
            name, audit_f_dp, MembershipScores(np.arange(10.0), np.arange(10.0)), **{name: value}
        )
    refused("correct", f_dp_parameter, [11], [10], total=10)


def test_ties_are_broken_at_random_and_for_nobody():
    """Scores on three values: the counts are those of scores without ties, and no signal stays
    none.
    """
    rng = np.random.default_rng(1)
    coins = rng.integers(0, 2, 1_000)
    tied = MembershipScores.from_labels(np.round(rng.normal(coins, 1.0)), coins)
    found = {audit_f_dp(tied, guess="both", seed=seed).guesses for seed in range(3)}
    assert found <= {1_000, 500, 250, 124, 62, 30, 14, 8}
    for guess in ("adaptive", "both"):
        first, again = (audit_f_dp(tied, guess=guess, seed=3).epsilon for _ in range(2))
        assert first == again
    constant = [
        MembershipScores.from_labels(np.zeros(200), rng.integers(0, 2, 200)) for _ in range(100)
    ]
    chosen: tuple[FdpGuess, ...] = ("both", "adaptive")
    for guess, audits in zip(chosen, (constant, constant[:30]), strict=True):
        found = [audit_f_dp(one, guess=guess, seed=seed) for seed, one in enumerate(audits)]
        errors = sum(result.parameter > 0 for result in found)
        assert errors <= binom.ppf(1 - 1e-6, len(audits), 0.05)
