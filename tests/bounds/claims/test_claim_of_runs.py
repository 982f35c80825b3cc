"""The test of a claimed curve on several runs: together, one after the other, and refusals."""

import numpy as np
import pytest

from paperlib.bounds.claims.audit import audit_curve
from paperlib.bounds.claims.bets import Limits, highest_stake, highest_stake_of_runs
from paperlib.bounds.claims.curves import ClaimedCurve, gaussian_profile
from paperlib.bounds.claims.runs import audit_curve_of_runs
from paperlib.core import MembershipScores
from tests.bounds.claims.test_claims import answered, answers, gaussian_scores
from tests.bounds.claims.worst_order import largest_chance
from tests.refusals import refused

CLAIM = ClaimedCurve("gaussian(mu=0.4)", gaussian_profile(0.4))


def gaussian_run(seed, m=250):
    rng = np.random.default_rng([3, seed])
    coins = rng.random(m) < 0.5
    return MembershipScores.from_labels(gaussian_scores(rng, coins), coins)


RUNS = [gaussian_run(seed) for seed in range(4)]


def test_runs_together_show_more_than_one_of_them_does():
    together = audit_curve_of_runs(RUNS, CLAIM)
    assert together.refuted
    assert (together.total, together.runs) == (1_000, 4)
    assert together.mu > np.mean([audit_curve(run, CLAIM).mu for run in RUNS])
    assert "1000 examples of 4 runs" in together.headline
    assert "anew in each run" in together.condition


def test_runs_in_turn_never_lose_what_an_earlier_look_refuted():
    looks = [audit_curve_of_runs(RUNS[:k], CLAIM, planned=1_000).p_value for k in range(1, 5)]
    assert looks == sorted(looks, reverse=True)
    assert looks[-1] < looks[0]


@pytest.mark.parametrize("one_stake", [True, False])
def test_the_level_of_runs_in_turn_and_of_a_twin_with_a_stake_for_each(one_stake):
    # Two runs of two coins, of which the worst mechanism knows all four.
    e, delta, limit, error = 0.4, 0.04, 0.35, 0.75

    def limits_for(m):
        start = np.array([error - m * limit * delta])
        return Limits(error, np.array([[e]]), np.array([[limit]]), start)

    def refutes(right):
        runs = (right[:2], right[2:])
        if one_stake:
            return highest_stake_of_runs(runs, limits_for(4))[0] >= 1
        return any(highest_stake(run, limits_for(2))[0] >= 1 for run in runs)

    chance = largest_chance(4, [e], [delta], refutes, adaptive=False)
    assert chance > 0.6
    assert (chance <= error + 1e-7) == one_stake


def test_the_true_curve_of_runs_in_turn_is_seldom_refuted():
    truth, refuted = answers(1.0), 0
    rng = np.random.default_rng(8)
    for _ in range(40):
        runs = []
        for _ in range(3):
            coins = rng.random(60) < 0.5
            runs.append(MembershipScores.from_labels(answered(rng, coins, 1.0), coins))
        result = audit_curve_of_runs(runs, ClaimedCurve("own", truth), planned=200, confidence=0.8)
        refuted += result.refuted
    assert refuted <= 14


def test_runs_that_are_one_run_or_too_many_are_refused():
    refused("same scores", audit_curve_of_runs, [RUNS[0], RUNS[0]], CLAIM)
    refused("more than the 400", audit_curve_of_runs, RUNS, CLAIM, planned=400)
    refused("expected a list", audit_curve_of_runs, [], CLAIM)
    added = ClaimedCurve("gaussian(sigma=1)", gaussian_profile(1.0), is_add_remove=True)
    refused("replacing one", audit_curve_of_runs, RUNS, added, design="game")
