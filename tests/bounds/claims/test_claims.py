"""The test of a claimed curve: its level by linear program and enumeration, broken twins, power."""

import itertools

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom, norm

from paperlib.bounds.claims.audit import audit_curve
from paperlib.bounds.claims.bets import Limits, highest_stake, limits_of
from paperlib.bounds.claims.curves import ClaimedCurve, gaussian_profile, profile_of_points
from paperlib.bounds.many_runs.gaussian_dp import gaussian_dp_epsilon
from paperlib.bounds.one_run.adaptive import ends_of, reveal
from paperlib.bounds.one_run.audit import audit_one_run
from paperlib.core import MembershipScores
from tests.bounds.claims.worst_order import largest_chance
from tests.refusals import refused


def answers(epsilon, leak=0.0):
    """Profile of randomized response that tells the coin with chance ``leak`` instead."""

    def profile(e):
        return leak + (1 - leak) * np.maximum(0, expit(epsilon) - np.exp(e) * expit(-epsilon))

    return profile


def stake_of_a_guess(right, start, limit, log_odds):
    """The stake after a bet on the first guess alone."""
    return start + (limit if right[0] else -limit * np.exp(log_odds))


def test_the_theorem_is_tight_and_a_twin_that_pays_for_the_guesses_made_is_caught():
    m, e, delta = 4, 1.0, 0.05
    q = expit(e)
    limit = 1 - q
    chance = largest_chance(
        m,
        [e],
        [delta],
        lambda right: stake_of_a_guess(right, q, limit, e) >= 1 - 1e-9,
        adaptive=False,
    )
    assert chance == pytest.approx(q + m * limit * delta, abs=1e-7)
    paid_for_the_guess = q + 1 * limit * delta
    assert chance > paid_for_the_guess + 0.03


CURVES = {
    "gaussian": gaussian_profile(0.5),
    "answers": answers(0.5, 1e-3),
    "leak": answers(0.5, 0.02),
}


@pytest.mark.parametrize("name", CURVES)
@pytest.mark.parametrize(("m", "adaptive"), [(2, True), (4, False)])
def test_no_mechanism_within_the_curve_is_refuted_too_often(name, m, adaptive):
    profile, error = CURVES[name], 0.8
    limits = limits_of([profile], m, error)
    (log_odds,) = limits.log_odds
    log_odds = np.unique(log_odds.round(9))
    chance = largest_chance(
        m,
        log_odds,
        profile(log_odds),
        lambda right: highest_stake(right, limits)[0] >= 1 - 1e-9,
        adaptive=adaptive,
    )
    assert chance <= error + 1e-7


def test_no_mechanism_is_refuted_too_often_whose_order_and_sides_follow_earlier_coins():
    m, e, delta, limit, error = 3, 0.4, 0.04, 0.35, 0.75
    start = error - m * limit * delta
    limits = Limits(error, np.array([[e]]), np.array([[limit]]), np.array([start]))
    chance = largest_chance(m, [e], [delta], lambda right: highest_stake(right, limits)[0] >= 1)
    assert 0.6 < chance <= error + 1e-7


def test_a_twin_without_limits_is_refuted_too_often_by_a_mechanism_that_tells_a_coin():
    # All the stake is bet, at the odds of the curve without its delta, and it starts at the level.
    m, e, delta, level = 3, 0.5, 0.1, 0.63
    odds = np.exp(e)

    def refutes(right):
        stake = level
        for hit in right:
            bet = stake / odds if stake < 1 else 0.0
            stake += bet if hit else -bet * odds
        return stake >= 1

    assert largest_chance(m, [e], [delta], refutes) > level + 0.05


@pytest.mark.parametrize("error", [0.1, 0.3])
def test_level_of_every_outcome_of_randomized_response(error):
    m, epsilon = 10, 0.5
    limits = limits_of([answers(epsilon)], m, error)
    q, chance = expit(epsilon), 0.0
    for outcome in itertools.product((True, False), repeat=m):
        hits = sum(outcome)
        if highest_stake(np.array(outcome), limits)[0] >= 1:
            chance += q**hits * (1 - q) ** (m - hits)
    assert 0 < chance <= error


def answered(rng, coins, epsilon):
    """Scores that tell each coin with log-odds ``epsilon``."""
    told = np.where(rng.random(coins.size) < expit(epsilon), coins, ~coins)
    return told + 1e-9 * rng.random(coins.size)


def gaussian_scores(rng, coins):
    return coins + rng.standard_normal(coins.size)


def common_scores(rng, coins):
    """One log-odds for all coins, drawn from the law of those of a Gaussian mechanism."""
    return answered(rng, coins, abs(rng.normal(0.5, 1)))


def leaking_scores(rng, coins):
    leaked = rng.random(coins.size) < 0.005
    return np.where(leaked, np.where(coins, 2.0, -2.0), answered(rng, coins, 0.5))


MECHANISMS = {
    "gaussian": (gaussian_scores, gaussian_profile(1.0)),
    "common": (common_scores, gaussian_profile(1.0)),
    "answers": (lambda rng, coins: answered(rng, coins, 1.0), answers(1.0)),
    "leak": (leaking_scores, answers(0.5, 0.005)),
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_mechanism_is_not_refuted_by_its_own_curve(name):
    draw, profile = MECHANISMS[name]
    m, error, trials = 200, 0.05, 120
    rng = np.random.default_rng(3)
    limits = limits_of([profile], m, error)
    refuted = 0
    for _ in range(trials):
        coins = rng.random(m) < 0.5
        right = reveal(ends_of(draw(rng, coins)), coins).right
        refuted += highest_stake(right, limits)[0] >= 1
    assert binom.sf(refuted - 1, trials, error) > 0.01


def test_guesses_are_no_independent_draws_from_the_curve():
    # Broken twin: as many right guesses as independent draws of the pair would seldom give.
    m, error = 1_000, 0.05
    fewest = binom.isf(error, m, norm.cdf(0.5)) + 1
    log_odds = np.linspace(0, 8, 4_001)
    density = norm.pdf(log_odds, 0.5) + norm.pdf(-log_odds, 0.5)
    chance = np.trapezoid(density * binom.sf(fewest - 1, m, expit(log_odds)), log_odds)
    assert chance == pytest.approx(0.415, abs=0.01)


def normal_scores(seed, m=1_000):
    rng = np.random.default_rng([1, seed])
    coins = rng.random(m) < 0.5
    return MembershipScores.from_labels(gaussian_scores(rng, coins), coins)


def test_a_curve_shows_what_an_epsilon_and_delta_do_not():
    claim = ClaimedCurve("gaussian(mu=0.4)", gaussian_profile(0.4))
    draws = [normal_scores(seed) for seed in range(16)]
    found = [audit_curve(scores, claim) for scores in draws]
    by_curve = gaussian_dp_epsilon(np.array([result.mu for result in found]), 1e-5).mean()
    by_epsilon = np.mean([audit_one_run(scores, delta=1e-5).epsilon for scores in draws])
    assert by_curve >= max(1.9, by_epsilon + 0.3)
    assert all(result.refuted == (result.p_value <= 0.05) for result in found)


def test_noise_that_is_refuted_is_that_of_the_bound_on_mu():
    def noisier(share):
        return gaussian_profile(0.4 / share)

    claim = ClaimedCurve("gaussian(mu=0.4)", noisier(1.0), noisier)
    result = audit_curve(normal_scores(0), claim)
    assert result.noise_share == pytest.approx(0.4 / result.mu, rel=0.02)
    without = audit_curve(normal_scores(0), ClaimedCurve("gaussian(mu=4)", gaussian_profile(4.0)))
    assert (without.refuted, without.noise_share) == (False, None)
    assert "not refuted" in without.headline


def test_rows_sorted_by_membership_tell_nothing_where_scores_are_tied():
    claim = ClaimedCurve("gaussian(mu=0.1)", gaussian_profile(0.1))
    rng = np.random.default_rng(5)
    refuted = 0
    for seed in range(60):
        members = int(rng.binomial(200, 0.5))
        scores = MembershipScores(np.ones(members), np.ones(200 - members))
        refuted += audit_curve(scores, claim, seed=seed).refuted
    assert refuted <= 6


def test_pairs_imply_the_deltas_between_them():
    curve = gaussian_profile(1.0)
    epsilon = np.linspace(0, 6, 120)
    between = profile_of_points(epsilon[::-1], curve(epsilon)[::-1])
    fine = np.linspace(0, 9, 901)
    assert (between(fine) >= curve(fine) - 1e-15).all()
    assert between(fine[:600]) == pytest.approx(curve(fine[:600]), rel=0.03)
    assert gaussian_dp_epsilon(1.0, curve(np.array([2.0]))) == pytest.approx(2.0)


def test_one_pair_implies_the_curve_of_its_strongest_mechanism():
    e = np.array([0.0, 0.2, 0.7, 1.0, 1.5])
    for epsilon, delta in ((0.5, 0.0), (1.0, 0.01), (2.0, 1e-5)):
        implied = profile_of_points([epsilon], [delta])(e)
        np.testing.assert_allclose(implied, answers(epsilon, delta)(e), atol=1e-12)


@pytest.mark.parametrize(
    ("message", "epsilon", "delta"),
    [
        ("two columns", [1.0], [0.1, 0.2]),
        ("two columns", [], []),
        ("0 or more", [-1.0], [0.1]),
        ("from 0 to 1", [1.0], [1.1]),
        ("finite", [np.nan], [0.1]),
    ],
)
def test_pairs_out_of_range_are_refused(message, epsilon, delta):
    refused(message, profile_of_points, epsilon, delta)


def test_a_curve_of_adding_a_record_is_not_tested_by_a_game():
    curve = ClaimedCurve("gaussian(sigma=1)", gaussian_profile(1.0), is_add_remove=True)
    refused("replacing one", audit_curve, normal_scores(0), curve, design="game")
