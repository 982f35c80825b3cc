"""Intervals of what a release gives away: predicates that share rows are not independent."""

import numpy as np
import pandas as pd
import pytest

from paperlib.audits.releases import rates as rates_module
from paperlib.audits.releases.distances import nearness, table_space
from paperlib.audits.releases.rates import disclosure_rates
from paperlib.core.intervals import share_interval
from tests.refusals import refused
from tests.reproduction.validity.coverage import assert_rate_at_most


def rates_of_a_fresh_release(seed, *, released=100, attacked=60):
    """The member rate of "singled out", its interval, and one that counts every predicate as an
    independent trial: release, members and others have nothing to do with each other.
    """
    rng = np.random.default_rng(seed)
    parts = []
    for rows in (released, attacked, attacked):
        common = rng.normal(size=rows)
        columns = {
            "a": (common + rng.normal(size=rows)).round(2),
            "b": rng.normal(size=rows).round(2),
            "c": rng.integers(0, 12, rows),
            "d": rng.choice(list("abcdefgh"), rows),
            "e": (2 * common + rng.normal(size=rows)).round(1),
        }
        parts.append(pd.DataFrame(columns))
    release, pool = parts[0], pd.concat(parts[1:], ignore_index=True)
    space = table_space(release, pool)
    rates = disclosure_rates(
        space,
        nearness(space),
        np.arange(len(pool)) < attacked,
        (release, pool),
        secret=None,
        confidence=0.95,
        rng=rng,
    )
    row = rates.set_index("rate").loc["singled out"]
    apart = share_interval(int(row["member_hits"]), int(row["member_total"]))
    return row["member_rate"], (row["member_low"], row["member_high"]), apart


def test_predicates_that_share_rows_are_no_independent_trials():
    """Counted as such, their interval misses the mean rate in a quarter of the draws."""
    drawn = [rates_of_a_fresh_release(seed) for seed in range(60)]
    truth = np.mean([rate for rate, _, _ in drawn])
    missed = sum(not low <= truth <= high for _, (low, high), _ in drawn)
    apart = sum(not low <= truth <= high for _, _, (low, high) in drawn)
    assert_rate_at_most(0.05, missed, 60)
    refused("hits", assert_rate_at_most, 0.05, apart, 60, 1e-3, error=AssertionError)


def test_a_row_left_out_changes_the_rate_as_the_jackknife_says(monkeypatch):
    """The covariances of predicates against the rate of each side without each of its rows."""
    monkeypatch.setattr(rates_module, "_TRIES", 300)
    rng = np.random.default_rng(0)
    release, pool = (pd.DataFrame(rng.integers(0, 6, (rows, 4))) for rows in (40, 60))
    space = table_space(release.astype(float), pool.astype(float))
    sides = [np.arange(30), np.arange(30, 60)]
    predicates = rates_module._isolating(space, sides, np.random.default_rng(1))
    total = predicates.tally(0).total
    alone = predicates.other < 0
    held = np.zeros((alone.size, 30))
    for number, (count, rows) in enumerate(
        zip(predicates.counts[0], predicates.rows[0], strict=True)
    ):
        held[number, rows[:count] if count <= 2 else [0, 1, 2]] = 1  # of many any three will do
    rates = []
    products = 0.0
    for left_out in range(30):
        others = np.delete(held, left_out, axis=1)
        hits = (others.sum(axis=1) == 1)[alone]
        rates.append(hits.sum() / total)
        changed = hits.astype(float) - (held.sum(axis=1) == 1)[alone]
        products += (changed**2).sum() / total**2
    expected = 29 * np.var(rates) - products
    assert predicates._covariance_by_side(0, total) == pytest.approx(expected)
