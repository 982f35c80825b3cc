"""How long a PANORAMIA audit takes, and how that grows."""

import numpy as np
import pytest

from paperlib.bounds import audit_panoramia


def example(m):
    rng = np.random.default_rng(m)
    flags = rng.integers(0, 2, m)
    baseline = rng.normal(size=m) + 0.5 * flags
    return baseline, baseline + rng.normal(size=m) + flags, flags


@pytest.mark.parametrize("search", ["union", "anytime"])
@pytest.mark.parametrize("m", [1_000, 10_000, 100_000, 1_000_000])
def test_audit_panoramia(benchmark, m, search):
    result = benchmark(audit_panoramia, *example(m), search=search)
    assert result.c_plus_epsilon_lb > result.c_lb > 0


@pytest.mark.parametrize("m", [1_000, 10_000])
def test_audit_panoramia_union_with_slack(benchmark, m):
    result = benchmark(audit_panoramia, *example(m), delta=1e-8)
    assert result.c_plus_epsilon_lb > 0
