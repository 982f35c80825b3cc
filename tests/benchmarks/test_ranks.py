"""How rank audits grow with the number of candidate sets of mixed sizes."""

import numpy as np
import pytest

from paperlib.bounds import audit_ranks, rank_success_probability


@pytest.fixture(params=[1_000, 10_000, 100_000], ids="{:.0e}".format)
def audit(request):
    """Ranks, sizes from 2 to 199 and margins of randomized response at epsilon 3."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(2, 200, request.param)
    hits = rng.random(request.param) < rank_success_probability(sizes, 3.0)
    return np.where(hits, 1, 2), sizes, rng.random(request.param)


def test_audit_ranks_mixed_sizes(benchmark, audit):
    ranks, sizes, _ = audit
    result = benchmark(audit_ranks, ranks, sizes)
    assert 2.5 < result.epsilon < 3.0


def test_audit_ranks_mixed_sizes_with_delta(benchmark, audit):
    ranks, sizes, _ = audit
    result = benchmark(audit_ranks, ranks, sizes, delta=1e-7)
    assert 2.5 < result.epsilon < 3.0


def test_audit_ranks_equal_sizes_with_delta(benchmark, audit):
    ranks, _, _ = audit
    assert benchmark(audit_ranks, ranks, 64, delta=1e-7).epsilon > 0


def test_audit_ranks_with_abstention(benchmark, audit):
    ranks, sizes, margins = audit
    result = benchmark(audit_ranks, ranks, sizes, margins=margins)
    assert 2.5 < result.epsilon < 3.0
