"""Learned orders beside trained attacks on pools whose leak is known."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from paperlib.attacks.learned import BoostedTrees
from paperlib.audits.panoramia.game import AuditConfig
from paperlib.audits.panoramia.pools import SYNTHETIC, Pool, Pools, Target
from paperlib.audits.panoramia.run import audit_pools
from paperlib.bounds.one_run.fair_coins import game_size
from paperlib.papers.panoramia.output_sets import learned_orders

TREES = BoostedTrees(rounds=10, leaves=4, smallest_leaf=5)
CONFIG = AuditConfig(train=60, validation=40, test=200, attacks=(TREES,), restarts=1, repetitions=2)


def pools(count=400, columns=3):
    """Real and generated examples alike; one target lowers the loss of members, the null does not."""
    rng = np.random.default_rng(0)

    def pool(leak):
        difficulty = 2 * rng.normal(size=(count, 1))
        said = {"leaky": difficulty - leak + rng.normal(size=(count, 1)), "null": rng.normal(size=(count, 1))}
        return Pool(rng.normal(size=(count, columns)), {"synthetic": difficulty}, said)

    targets = Target("leaky"), Target("null", "null")
    return Pools(pool(2.5), pool(0.0), None, targets, (SYNTHETIC,))


def test_rows_are_the_trained_attacks_own_and_learned_orders_on_a_whole_game():
    made = pools()
    audits = audit_pools(made, CONFIG)
    table = learned_orders(made, audits, ["leaky", "null"])
    assert list(table["audit"]) == 2 * [
        "trained attack, union",
        "trained attack, anytime",
        "learned orders",
    ]
    assert list(table["m"]) == 2 * [200, 200, game_size(400)]
    summary = audits.summary()
    trained = table[table["audit"] != "learned orders"].reset_index(drop=True)
    pd.testing.assert_series_equal(trained["c_plus_eps_lb"], summary["c_plus_eps_lb"])
    union, _, leaky = table["c_plus_eps_lb"][:3]
    assert leaky > union
    assert table["eps_tilde"].iloc[2] > 1 > table["eps_tilde"].iloc[5]
    assert (table["seconds"] > 0).all()


def test_long_examples_are_left_to_the_helpers_and_pools_of_twins_are_refused():
    made = pools(columns=101)
    audits = audit_pools(made, replace(CONFIG, repetitions=1), targets=["leaky"], audits=["panoramia"])
    table = learned_orders(made, audits, ["leaky"])
    assert table["eps_tilde"].iloc[-1] > 1
    with pytest.raises(ValueError, match="twins"):
        learned_orders(replace(made, twins=True), audits, ["leaky"])
