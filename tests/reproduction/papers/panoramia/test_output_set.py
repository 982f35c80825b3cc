"""Output sets and learned orders on scores of both tests: valid, and able to see what thresholds
cannot.
"""

from dataclasses import replace

import numpy as np

from paperlib.attacks.learned import BoostedTrees
from paperlib.audits.panoramia.game import AuditConfig
from paperlib.audits.panoramia.pools import SYNTHETIC, Pool, Pools, Target
from paperlib.audits.panoramia.results import TargetAudits, TargetScores
from paperlib.audits.panoramia.run import audit_pools
from paperlib.bounds.one_run.fair_coins import game_size
from paperlib.reproduction.papers.panoramia import output_sets
from tests.refusals import refused
from tests.reproduction.validity.coverage import assert_rate_at_most


def judged(seed, attack, m=800):
    rng = np.random.default_rng(seed)
    membership = rng.random(m) < 0.5
    scores = rng.normal(size=m), attack(rng, membership)
    return TargetScores(Target("one"), "panoramia", seed, *scores, membership)


def audits_of(*games):
    return TargetAudits(games, AuditConfig(train=2, validation=2, test=800))


def in_the_middle(rng, membership):
    """Members score around 0, others at both ends: no threshold can tell them."""
    return np.where(
        membership, rng.normal(0, 0.3, membership.size), 2 * rng.choice([-1, 1], membership.size)
    )


def test_a_set_guesses_in_the_middle_where_a_threshold_cannot_and_the_ratio_does_not_follow():
    inner, plain = (audits_of(judged(0, attack)) for attack in (in_the_middle, shifted))
    found = output_sets.output_set_bounds(inner).set_index("way")
    assert found["eps_tilde"][["output set", output_sets.EVERY_LEVEL]].min() > 2
    assert found.loc["anytime, all", "eps_tilde"] < 1
    assert list(found["examples"]) == [400, 400, 600, 400, 800, 400, 800]
    assert (
        output_sets.ratio_correlation(plain, "one")
        > 0.8
        > output_sets.ratio_correlation(inner, "one")
    )


def test_simulated_sets_win_inside_cost_little_and_one_for_both_sides_can_leave_members_out():
    found = (
        output_sets.simulated_bounds(repetitions=2)
        .groupby(["target", "way"])["c_plus_eps_lb"]
        .mean()
    )
    for way in ("output set", output_sets.EVERY_LEVEL):
        assert found["inner region", way] > found["inner region", "anytime, all"] + 2
        assert found["higher scores", way] > found["higher scores", "anytime, all"] - 0.6

    def surely_generated(rng, membership):
        """Some generated examples show themselves surely: the level for both sides leaves only
        them.
        """
        shown = ~membership & (rng.random(membership.size) < 0.5)
        return np.where(shown, -6.0, 0.9 * membership) + rng.normal(size=membership.size)

    games = [judged(seed, surely_generated) for seed in range(2)]
    found = output_sets.output_set_bounds(audits_of(*games)).groupby("way")["c_plus_eps_lb"].mean()
    assert found["output set"] > found["output set chosen for both sides"] + 0.5


def shifted(rng, membership):
    return 1.5 * membership + rng.normal(size=membership.size)


def test_the_judged_examples_change_neither_set_nor_order():
    """Flipping who of them is a member leaves the guesses as they are: only their counts change."""
    one = judged(3, in_the_middle)
    first, second = output_sets._cut(one, 0.25)
    flipped = replace(second, membership=~second.membership)
    orders = [output_sets.by_ratio(first, part) for part in (second, flipped)]
    for name in ("baseline", "attack"):
        np.testing.assert_array_equal(*(getattr(order, name) for order in orders))


def null_bound(seed, honest=True):
    """A set fitted on other scores than those judged, or, broken, on the same."""
    rng = np.random.default_rng(seed)
    scores, flags = rng.normal(size=120), rng.random(120) < 0.5
    other, other_flags = rng.normal(size=120), rng.random(120) < 0.5
    fitted = (other, other_flags) if honest else (scores, flags)
    return output_sets.set_bound(*fitted, scores, flags, 0.025)


def test_a_bound_on_nothing_is_seldom_above_zero_and_judging_the_scores_of_the_choice_is_caught():
    hits = sum(null_bound(seed) > 0 for seed in range(300))
    assert_rate_at_most(0.025, hits, 300)
    hits = sum(null_bound(seed, honest=False) > 0 for seed in range(60))
    refused("allows", assert_rate_at_most, 0.025, hits, 60, error=AssertionError)
    flags = np.arange(40) < 20
    assert output_sets.set_bound(np.where(flags, 1.0, 0.0), flags, np.zeros(40), flags, 0.025) == 0


TREES = BoostedTrees(rounds=10, leaves=4, smallest_leaf=5)
CONFIG = AuditConfig(train=60, validation=40, test=200, attacks=(TREES,), restarts=1, repetitions=2)


def pools(count=400, columns=3):
    """Real and generated examples alike; one target lowers the loss of members, the null does
    not.
    """
    rng = np.random.default_rng(0)

    def pool(leak):
        difficulty = 2 * rng.normal(size=(count, 1))
        said = {
            "leaky": difficulty - leak + rng.normal(size=(count, 1)),
            "null": rng.normal(size=(count, 1)),
        }
        return Pool(rng.normal(size=(count, columns)), {"synthetic": difficulty}, said)

    targets = Target("leaky"), Target("null", "null")
    return Pools(pool(2.5), pool(0.0), None, targets, (SYNTHETIC,))


def test_rows_are_the_trained_attacks_own_and_learned_orders_on_a_whole_game():
    made = pools()
    audits = audit_pools(made, CONFIG)
    table = output_sets.learned_orders(made, audits, ["leaky", "null"])
    assert list(table["audit"]) == 2 * [
        "trained attack, union",
        "trained attack, anytime",
        "learned orders",
    ]
    assert list(table["m"]) == 2 * [200, 200, game_size(400)]
    trained = table[table["audit"] != "learned orders"]
    assert trained["c_plus_eps_lb"].tolist() == audits.summary()["c_plus_eps_lb"].tolist()
    union, _, leaky = table["c_plus_eps_lb"][:3]
    assert leaky > union
    assert table["eps_tilde"].iloc[2] > 1 > table["eps_tilde"].iloc[5]
    assert (table["seconds"] > 0).all()
    made = pools(columns=101)
    audits = audit_pools(
        made, replace(CONFIG, repetitions=1), targets=["leaky"], audits=["panoramia"]
    )
    table = output_sets.learned_orders(made, audits, ["leaky"])
    assert table["eps_tilde"].iloc[-1] > 1
    refused("twins", output_sets.learned_orders, replace(made, twins=True), audits, ["leaky"])
