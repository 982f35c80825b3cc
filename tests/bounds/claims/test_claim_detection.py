"""How much less noise than claimed an audit shows: the law of log-odds, and fresh audits."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm

from paperlib.bounds.claims.audit import audit_curve, right_guesses
from paperlib.bounds.claims.curves import ClaimedCurve, gaussian_profile
from paperlib.bounds.claims.detection import ClaimLimit, law_of_log_odds, limit_of_claim
from paperlib.bounds.claims.ordered_claims import ClaimTest
from paperlib.core import MembershipScores
from tests.bounds.claims.test_claims import answers, gaussian_scores


def test_the_law_of_randomized_response_is_one_log_odds_and_its_leak():
    values, chances = law_of_log_odds(answers(1.0, 0.03))
    assert chances[-1] == pytest.approx(0.03)
    assert values[np.argmax(chances)] == pytest.approx(1.0, abs=0.02)
    assert chances[np.abs(values - 1) < 0.03].sum() == pytest.approx(0.97, abs=1e-6)


def test_the_law_of_a_gaussian_mechanism_is_that_of_its_likelihood_ratio():
    values, chances = law_of_log_odds(gaussian_profile(0.8))
    below = chances[values <= 0.5].sum()
    exact = norm.cdf(0.5, 0.32, 0.8) - norm.cdf(-0.5, 0.32, 0.8)
    assert below == pytest.approx(exact, abs=2e-3)
    right = (chances * expit(values)).sum()
    assert right == pytest.approx(norm.cdf(0.4), abs=1e-3)


def noise_of(mu):
    return lambda share: gaussian_profile(mu / share)


def test_fresh_audits_of_that_much_less_noise_refute_the_claim():
    claim = ClaimedCurve("gaussian(mu=0.5)", gaussian_profile(0.5), noise_of(0.5))
    limit = limit_of_claim(claim.with_noise, 400, simulations=80)
    assert limit.low >= 0.8
    assert limit.low <= limit.shown / limit.simulations <= limit.high
    refuted = 0
    for seed in range(50):
        rng = np.random.default_rng([9, seed])
        coins = rng.random(400) < 0.5
        values = gaussian_scores(rng, coins * 0.5 * limit.factor)
        right = right_guesses(MembershipScores.from_labels(values, coins), 0)
        refuted += ClaimTest(right, 400, 0.05).refutes(claim.profile)
    assert refuted >= 35  # 40 expected at the power asked for


def test_a_larger_audit_shows_a_smaller_error_and_a_tiny_one_shows_none():
    factors = [limit_of_claim(noise_of(0.3), m, simulations=40).factor for m in (100, 500)]
    assert factors[0] > factors[1] > 1
    tiny = limit_of_claim(noise_of(0.01), 10, simulations=40)
    assert tiny.factor is None
    assert "says little" in tiny.sentence


def test_the_limit_is_kept_where_it_was_asked_for():
    claim = ClaimedCurve("gaussian(mu=0.5)", gaussian_profile(0.5), noise_of(0.5))
    rng = np.random.default_rng(0)
    coins = rng.random(200) < 0.5
    scores = MembershipScores.from_labels(gaussian_scores(rng, coins), coins)
    result = audit_curve(scores, claim)
    assert "simulated" not in " ".join(result.remarks)
    assert isinstance(result.detection, ClaimLimit)
    assert result.detection.sentence == result.seen() == result.remarks[-1]
    assert result.to_dict()["detection"]["simulations"] == 120
    without = audit_curve(scores, ClaimedCurve("mine", gaussian_profile(0.5)))
    assert (without.detection, without.seen()) == (None, "")
