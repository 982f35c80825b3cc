"""The default audit beside the page: it finds leaks at one end, and behind helpers; and no others."""

from dataclasses import replace

import numpy as np
import pytest

from paperlib.audits.panoramia.config import AuditConfig
from paperlib.audits.panoramia.pools import SYNTHETIC, Pool, Pools, Target
from paperlib.audits.panoramia.results import TargetAudits, TargetScores
from paperlib.papers.panoramia.results import PanoramiaResults
from paperlib.papers.panoramia.strongest import BOTH_ENDS, LEARNED, LOSSES, TRAINED, strongest_audits

N, M, GAMES = 800, 200, 3
SURE, HIDDEN, NULL = Target("sure non-members"), Target("behind difficulty"), Target("null", "null")


def pool(member, seed):
    """One non-member in ten has a loss that no member has; or loss is difficulty, and less for members."""
    rng = np.random.default_rng(seed)
    difficulty, missed = 3 * rng.normal(size=N), rng.random(N) < (0.0 if member else 0.1)
    losses = {
        SURE: rng.normal(size=N) + 8 * missed,
        HIDDEN: difficulty + rng.normal(size=N) - 2 * member,
        NULL: rng.normal(size=N),
    }
    targets = {target.name: loss[:, None] for target, loss in losses.items()}
    return Pool(np.zeros((N, 1)), {SYNTHETIC.name: difficulty[:, None]}, targets)


@pytest.fixture(scope="module")
def results():
    judged = []
    for target in (SURE, HIDDEN, NULL):
        for seed in range(GAMES):
            rng = np.random.default_rng(seed)
            members = rng.random(M) < 0.5
            scores = rng.normal(size=M) + 2 * members * (target is SURE)
            judged.append(
                TargetScores(target, "rm_rn", seed, np.empty(0), scores, members, seconds=1.0 + seed)
            )
    pools = Pools(pool(True, 0), pool(True, 1), pool(False, 2), (SURE, HIDDEN, NULL), (SYNTHETIC,))
    config = AuditConfig(train=2, validation=2, test=M, repetitions=GAMES, form="paper")
    return PanoramiaResults(pools, {"paper": TargetAudits(tuple(judged), config)}, "paper")


@pytest.fixture(scope="module")
def table(results):
    return strongest_audits(results).set_index(["target", "audit"])


def test_sure_non_members_are_found_where_both_ends_waste_them(table):
    bounds = table.loc[SURE.name, "bound"]
    assert bounds[LOSSES] > 2
    assert bounds[LOSSES] > bounds[BOTH_ENDS] + 1
    assert bounds[LEARNED] > 1.5


def test_a_leak_behind_difficulty_needs_the_helper(results, table):
    bounds = table.loc[HIDDEN.name, "bound"]
    assert bounds[LEARNED] > bounds[LOSSES] + 1
    found = strongest_audits(results, helpers=(), targets=[HIDDEN.name]).set_index(["target", "audit"])
    assert set(found.index.get_level_values("target")) == {HIDDEN.name}
    alone = found.loc[HIDDEN.name, "bound"]
    assert alone[LEARNED] < bounds[LEARNED] - 1


def test_a_null_target_shows_nothing(table):
    assert (table.loc[NULL.name, "mean"] < 0.1).all()


def test_a_whole_game_shows_nearly_all_and_ranges_hold_their_means(table):
    whole = table.drop(TRAINED, level="audit")
    assert whole["m"].between(1.7 * N, 2 * N).all()
    for _, row in table.iterrows():
        low, high = map(float, row["range"].split(" to "))
        assert low <= row["mean"] <= high + 0.001


def test_the_trained_attack_is_that_of_the_page(results, table):
    row = table.loc[(SURE.name, TRAINED)]
    assert row["mean"] == pytest.approx(results.value(SURE.name, "rm_rn"))
    assert (
        row["bound"]
        == results.decisive.table.query("target == @SURE.name and search == 'union'")["eps"].iloc[0]
    )
    assert row["m"] == M
    assert 2 < row["seconds"] < 2.5


def test_games_with_real_non_members_are_needed(results):
    without = PanoramiaResults(results.pools, {"paper": replace(results.decisive, judged=())}, "paper")
    with pytest.raises(ValueError, match="real non-members"):
        strongest_audits(without)
