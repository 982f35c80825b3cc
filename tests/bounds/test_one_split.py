"""Runs that are one split, or one run under two names, are noticed without the names of records."""

import numpy as np
import pytest

from paperlib import MembershipScores
from paperlib.bounds import combine_runs
from paperlib.bounds.one_run import combine, one_split
from tests.refusals import refused


def run_of(rng, member, noise=1.0):
    """Scores of a weak leak."""
    scores = rng.normal(size=member.size) * noise + 0.3 * member
    return scores, member


def scores_of(scores, member, lost=()):
    kept = np.delete(np.arange(member.size), lost)
    return MembershipScores.from_labels(scores[kept], member[kept])


def warned(runs):
    return any("one split" in text for text in combine_runs(runs).warnings)


def runs_of_one_split(rng, count, size):
    member = rng.random(size) < 0.5
    runs = []
    for number in range(count):
        lost = [rng.integers(size)] if number else []
        runs.append(scores_of(*run_of(rng, member), lost))
    return runs


def runs_of_own_coins(rng, count):
    sizes = rng.integers(50, 400, count)
    return [scores_of(*run_of(rng, rng.random(size) < 0.5)) for size in sizes]


@pytest.mark.parametrize(("count", "size"), [(3, 400), (5, 400), (8, 100)])
def test_models_of_one_split_are_a_warning_though_rows_were_lost(count, size):
    """Once 0 of 120 were noticed."""
    for seed in range(10):
        assert warned(runs_of_one_split(np.random.default_rng([seed, 1]), count, size))


def test_runs_with_coins_of_their_own_are_seldom_warned_of():
    doubted = sum(
        warned(runs_of_own_coins(np.random.default_rng([seed, 2]), 4)) for seed in range(60)
    )
    assert doubted <= 8  # of 60 with chance 0.05 each at most: more by chance 0.004


def test_the_chance_of_close_counts_is_not_understated():
    rng = np.random.default_rng(0)
    for sizes in ([400] * 2, [40] * 3, [200] * 5, [60, 200, 35, 400]):
        counts = rng.binomial(sizes, 0.5, size=(1_000, len(sizes)))
        below = 0
        for members in counts.tolist():
            runs = list(zip(members, np.subtract(sizes, members).tolist(), strict=True))
            below += one_split.near_counts_p_value(runs) < 0.05
        assert below <= 72  # of 1,000, at 0.05: more by chance 0.001


def test_a_combination_that_looks_at_equal_counts_alone_is_caught(monkeypatch):
    """The twin of before, which a lost row blinds."""
    monkeypatch.setattr(combine, "_near_counts", lambda runs: ())
    with pytest.raises(AssertionError):
        test_models_of_one_split_are_a_warning_though_rows_were_lost(5, 400)


def test_a_run_under_two_names_is_refused_in_another_unit_and_without_some_rows():
    for seed in range(10):
        rng = np.random.default_rng([seed, 3])
        scores, member = run_of(rng, rng.random(300) < 0.5)
        other = scores_of(*run_of(rng, rng.random(280) < 0.5))
        again = scores_of(np.exp(scores) * 1000, member, rng.choice(300, 2, replace=False))
        refused(
            "runs 1 and 3 have the same", combine_runs, [scores_of(scores, member), other, again]
        )


def test_runs_that_show_their_members_entirely_are_not_taken_for_one():
    rng = np.random.default_rng(4)
    runs = [
        MembershipScores(rng.normal(9, 1, size), rng.normal(0, 1, size + 7))
        for size in (50, 90, 70)
    ]
    assert combine_runs(runs).epsilon > 3
