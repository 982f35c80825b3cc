"""Dataset inference finds what was trained on, and its p-values are uniform where nothing was."""

import numpy as np
from scipy.stats import binom, kstest

from paperlib.attacks import dataset_inference
from paperlib.attacks.dataset_inference import (
    SCHEDULES,
    infer_by_schedule,
    infer_dataset,
    rank_test,
    ranks_and_positions,
)
from tests.refusals import refused
from tests.reproduction.validity.coverage import assert_rate_at_most


def features(identifiers, alternatives, shift, seed):
    """Correlated attacks; the identifier's scores are shifted by ``shift`` deviations."""
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=(identifiers, 1 + alternatives, 1))
    table = 0.7 * shared + 0.7 * rng.normal(size=(identifiers, 1 + alternatives, 4))
    table += rng.normal(size=(identifiers, 1, 4))  # what the context does to all candidates alike
    table[:, 0, :2] += shift
    return table


def linear(table, trees):
    """A linear classifier in place of the trees: the same schedule, a thousand times faster."""
    centre = table.mean(axis=1)
    weights = np.linalg.pinv(np.cov(table.reshape(-1, table.shape[2]).T)) @ (
        table[:, 0] - centre
    ).mean(0)
    return lambda held: held @ weights


def test_trained_sets_are_found_and_both_schedules_at_once_are_each_by_itself():
    table = features(100, 31, 0.8, 1)
    both = infer_by_schedule(table, trees=15)
    assert tuple(both) == SCHEDULES
    for schedule, found in both.items():
        assert max(found.p_value, found.p_value_two_sided) < 0.01
        assert 1 <= found.ranks.min() <= found.ranks.max() <= found.set_size == 32
        assert schedule in str(found)
        alone = infer_dataset(table, schedule=schedule, trees=15)
        np.testing.assert_array_equal(found.positions, alone.positions)


def null_p_values(schedule, runs):
    found = [
        infer_dataset(features(60, 15, 0.0, 1000 + s), schedule=schedule, seed=s)
        for s in range(runs)
    ]
    return np.array([(one.p_value, one.p_value_two_sided) for one in found])


def test_forward_p_values_are_uniform_on_held_out_sets_and_kfold_ones_are_not(monkeypatch):
    monkeypatch.setattr(dataset_inference, "_fitted", linear)
    runs = 500
    forward = null_p_values("forward", runs)
    for level in (0.01, 0.05, 0.5):
        for column in forward.T:
            assert_rate_at_most(level, int((column <= level).sum()), runs)
    assert min(kstest(column, "uniform").pvalue for column in forward.T) > 1e-6
    kfold = null_p_values("kfold", runs)[:, 1]
    refused(
        "allows", assert_rate_at_most, 0.01, int((kfold <= 0.01).sum()), runs, error=AssertionError
    )


def test_trees_reject_held_out_sets_at_the_nominal_rate():
    runs = 40
    found = [
        infer_dataset(features(40, 7, 0.0, s), folds=4, trees=3, seed=s).p_value
        for s in range(runs)
    ]
    assert_rate_at_most(0.05, int((np.array(found) <= 0.05).sum()), runs)


def test_positions_of_discrete_ranks_are_uniform_and_ranks_that_are_worse_are_no_evidence():
    """With 4 candidates the continuous test on ranks is far off; on positions it is exact."""
    rng = np.random.default_rng(3)
    p_values, coarse = [], []
    for _ in range(500):
        scores = rng.integers(0, 3, size=(60, 4)).astype(float)  # many ties
        ranks, positions = ranks_and_positions(scores, rng)
        p_values.append(rank_test(positions, one_sided=False))
        coarse.append(rank_test((ranks - 0.5) / 4, one_sided=False))
    low = int((np.array(p_values) <= 0.05).sum())
    assert binom.ppf(1e-6, 500, 0.05) <= low <= binom.isf(1e-6, 500, 0.05)
    assert kstest(p_values, "uniform").pvalue > 1e-6
    assert kstest(coarse, "uniform").pvalue < 1e-6
    assert ((positions > (ranks - 1) / 4) & (positions <= ranks / 4)).all()
    tied = np.bincount(ranks_and_positions(np.zeros((20_000, 4)), rng)[0], minlength=5)[1:]
    assert (np.abs(tied - 5_000) < 5 * np.sqrt(5_000 * 0.75)).all()
    assert ranks_and_positions(np.array([[2.0, 1.0], [0.0, 1.0]]), rng)[0].tolist() == [1, 2]
    worse = ranks_and_positions(features(60, 31, -0.8, 2)[..., 0], np.random.default_rng(0))[1]
    assert rank_test(worse, one_sided=True) > 0.5
    assert rank_test(worse, one_sided=False) < 0.01


def test_what_a_context_adds_to_all_candidates_and_an_attack_that_says_nothing_do_not_matter():
    table = features(50, 15, 1.0, 7)
    table[..., 3] = 5.0
    moved = table + np.random.default_rng(6).normal(size=(50, 1, 4)) * 10
    found, again = (infer_dataset(one, trees=5) for one in (table, moved))
    assert found.ranks.tolist() == again.ranks.tolist()
    assert found.p_value < 0.01


def test_bad_input_is_named():
    refused("features: expected shape", infer_dataset, np.zeros((4, 3)))
    refused("at least 1 alternative", infer_dataset, np.zeros((4, 1, 2)))
    refused("1 attack", infer_dataset, np.zeros((4, 3, 0)))
    refused("4 of 4 sets hold NaN", infer_dataset, np.full((4, 3, 2), np.nan))
    refused("folds: expected 2 to the 4", infer_dataset, np.zeros((4, 3, 2)), folds=5)
    refused("folds", infer_dataset, np.zeros((4, 3, 2)), folds=1)
    refused("schedule", infer_dataset, np.zeros((9, 3, 2)), schedule="loo")
    refused("schedules", infer_by_schedule, np.zeros((9, 3, 2)), ["forward", "loo"], folds=2)
    refused("trees", infer_dataset, np.zeros((9, 3, 2)), trees=0)
