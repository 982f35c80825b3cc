"""Speed of one-run audits and how it grows: ``make bench``. Reference steps are timed in the same run."""

import numpy as np
import pytest
from scipy.special import betaincinv

from paperlib.audits import audit_features
from paperlib.bounds import audit_f_dp, audit_one_run
from paperlib.core import MembershipScores

SIZES = (1_000, 10_000, 100_000, 1_000_000)


def scores_of(m):
    rng = np.random.default_rng(20250 + m)
    labels = rng.integers(0, 2, m)
    return MembershipScores.from_labels(rng.normal(size=m) + labels, labels)


@pytest.mark.parametrize("m", SIZES)
@pytest.mark.benchmark(group="one run, delta = 0")
def test_reference_sort_and_one_betaincinv(benchmark, m):
    """The yardstick: sort m scores and invert m beta tails once."""
    values = np.random.default_rng(0).normal(size=m)
    counts = np.arange(1.0, m + 1)
    hits = np.maximum(np.round(0.7 * counts), 1.0)
    benchmark(lambda: (np.sort(values), betaincinv(hits, counts - hits + 1, 0.05 / m)))


@pytest.mark.parametrize("m", SIZES)
@pytest.mark.parametrize("search", ["anytime", "bonferroni", "dyadic"])
@pytest.mark.benchmark(group="one run, delta = 0")
def test_every_threshold(benchmark, m, search):
    benchmark(audit_one_run, scores_of(m), guess="members", thresholds=search)


@pytest.mark.parametrize("m", SIZES[:3])
@pytest.mark.parametrize("search", ["anytime", "bonferroni", "dyadic"])
@pytest.mark.benchmark(group="one run, delta = 1e-5")
def test_every_threshold_at_small_delta(benchmark, m, search):
    benchmark(audit_one_run, scores_of(m), guess="members", thresholds=search, delta=1e-5)


@pytest.mark.parametrize("m", SIZES[:3])
@pytest.mark.benchmark(group="f-DP, delta = 1e-5")
def test_f_dp(benchmark, m):
    benchmark(audit_f_dp, scores_of(m), guess="members")


@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("m", SIZES)
@pytest.mark.benchmark(group="one run, the default learns the end")
def test_default(benchmark, m, delta):
    benchmark(audit_one_run, scores_of(m), delta=delta)


@pytest.mark.parametrize("m", SIZES[:2])
@pytest.mark.benchmark(group="learned order of two signals")
def test_features(benchmark, m):
    rng = np.random.default_rng(m)
    member, difficulty = rng.integers(0, 2, m), 2 * rng.normal(size=m)
    signals = np.column_stack([rng.normal(size=m) + difficulty + member, difficulty])
    benchmark.pedantic(audit_features, (signals, member), {"design": "played"}, rounds=3)
