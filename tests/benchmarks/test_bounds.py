"""Speed of bounds and how it grows: ``make bench``. Reference steps are timed in the same run."""

import numpy as np
import pytest
from scipy.special import betaincinv
from scipy.stats import norm

from paperlib import bounds
from paperlib.audits import audit_features
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
    benchmark(bounds.audit_one_run, scores_of(m), guess="members", thresholds=search)


@pytest.mark.parametrize("m", SIZES[:3])
@pytest.mark.parametrize("search", ["anytime", "bonferroni", "dyadic"])
@pytest.mark.benchmark(group="one run, delta = 1e-5")
def test_every_threshold_at_small_delta(benchmark, m, search):
    benchmark(bounds.audit_one_run, scores_of(m), guess="members", thresholds=search, delta=1e-5)


@pytest.mark.parametrize("m", SIZES[:3])
@pytest.mark.benchmark(group="f-DP, delta = 1e-5")
def test_f_dp(benchmark, m):
    benchmark(bounds.audit_f_dp, scores_of(m), guess="members")


@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("m", SIZES)
@pytest.mark.benchmark(group="one run, the default learns the end")
def test_default(benchmark, m, delta):
    benchmark(bounds.audit_one_run, scores_of(m), delta=delta)


@pytest.mark.parametrize("m", SIZES[:2])
@pytest.mark.benchmark(group="learned order of two signals")
def test_features(benchmark, m):
    rng = np.random.default_rng(m)
    member, difficulty = rng.integers(0, 2, m), 2 * rng.normal(size=m)
    signals = np.column_stack([rng.normal(size=m) + difficulty + member, difficulty])
    benchmark.pedantic(audit_features, (signals, member), {"design": "played"}, rounds=3)


@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("m", SIZES[:2])
@pytest.mark.benchmark(group="plan of m examples from a pilot of 300")
def test_plan_from_a_pilot(benchmark, m, delta):
    benchmark.pedantic(bounds.plan_audit, (m, delta), {"attack": scores_of(300)}, rounds=1)


@pytest.mark.parametrize("attack", [0.9, 0.76])
@pytest.mark.benchmark(group="examples for epsilon = 2")
def test_examples_for_an_epsilon(benchmark, attack):
    benchmark.pedantic(bounds.plan_audit, kwargs={"epsilon": 2.0, "attack": attack}, rounds=1)


@pytest.mark.benchmark(group="ceiling")
def test_ceiling(benchmark):
    benchmark(bounds.perfect_epsilon, 10_000, 1e-5)


@pytest.mark.parametrize(
    ("n", "options"),
    [
        *((n, {"confidence": confidence}) for confidence in (None, 0.95) for n in SIZES),
        (1_000, {"confidence": 0.95, "interval_method": "bca"}),
    ],
    ids=str,
)
@pytest.mark.parametrize("method", ["parametric", "empirical"])
def test_epsilon_star(benchmark, method, n, options):
    rng = np.random.default_rng(0)
    losses = rng.gamma(2, 5, n), rng.gamma(3, 5, n)
    result = benchmark(bounds.epsilon_star, *losses, method=method, **options)
    assert result.epsilon > 1
    assert options["confidence"] is None or result.interval[1] > 1


def test_epsilon_star_normals(benchmark):
    assert benchmark(bounds.epsilon_star_normals, 0, 1, 0.5, 1.2, delta=1e-5) > 4


def mixture(n, seed=0):
    rng = np.random.default_rng(seed)
    return MembershipScores(
        rng.normal(rng.choice([-2.0, 1.0], n // 2), 1), rng.normal(rng.choice([-1.0, 0.0], n // 2), 1)
    )


@pytest.mark.parametrize("n", SIZES)
def test_fit_output_set(benchmark, n):
    assert benchmark(bounds.fit_output_set, mixture(n)).intervals


@pytest.mark.parametrize("method", ["optimal", "top_bottom", "dp_sniper"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("n", SIZES)
def test_audit_output_set(benchmark, n, delta, method):
    result = benchmark(bounds.audit_output_set, mixture(n), mixture(n, 1), method=method, delta=delta)
    assert result.epsilon > 0.2


def test_optimal_output_set(benchmark):
    def density(a, b):
        return lambda x: 0.5 * norm.pdf(x - a) + 0.5 * norm.pdf(x - b)

    densities = density(-2, 1), density(-1, 0)
    assert len(benchmark(bounds.optimal_output_set, *densities, m=100, support=(-12, 12)).intervals) == 3


@pytest.mark.parametrize(
    ("options", "m"),
    [
        *(({"search": search}, m) for search in ("union", "anytime") for m in SIZES),
        *(({"delta": 1e-8}, m) for m in SIZES[:2]),
    ],
    ids=str,
)
def test_audit_panoramia(benchmark, m, options):
    rng = np.random.default_rng(m)
    flags = rng.integers(0, 2, m)
    baseline = rng.normal(size=m) + 0.5 * flags
    attack = baseline + rng.normal(size=m) + flags
    result = benchmark(bounds.audit_panoramia, baseline, attack, flags, **options)
    assert result.c_plus_epsilon_lb > (0 if "delta" in options else result.c_lb)
    assert result.c_lb > 0 or "delta" in options


@pytest.mark.parametrize("kind", ["mixed sizes", "mixed sizes, delta", "equal sizes, delta", "margins"])
@pytest.mark.parametrize("m", SIZES[:3])
def test_audit_ranks(benchmark, m, kind):
    """Ranks, sizes from 2 to 199 and margins of randomized response at epsilon 3."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(2, 200, m)
    ranks = np.where(rng.random(m) < bounds.rank_success_probability(sizes, 3.0), 1, 2)
    options = {"delta": 1e-7} if "delta" in kind else {"margins": rng.random(m)} if kind == "margins" else {}
    epsilon = benchmark(bounds.audit_ranks, ranks, 64 if "equal" in kind else sizes, **options).epsilon
    assert epsilon > 0 if "equal" in kind else 2.5 < epsilon < 3.0
