"""How long choosing an output set takes, and how that grows with the number of scores."""

import numpy as np
import pytest
from scipy.stats import norm

from paperlib.bounds import audit_output_set, fit_output_set, optimal_output_set
from paperlib.core import MembershipScores

SIZES = [10**3, 10**4, 10**5, 10**6]


def example(n, seed=0):
    rng = np.random.default_rng(seed)
    return MembershipScores(
        rng.normal(rng.choice([-2.0, 1.0], n // 2), 1), rng.normal(rng.choice([-1.0, 0.0], n // 2), 1)
    )


@pytest.mark.parametrize("n", SIZES)
def test_fit_output_set(benchmark, n):
    scores = example(n)
    assert benchmark(fit_output_set, scores).intervals


@pytest.mark.parametrize("method", ["optimal", "top_bottom", "dp_sniper"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("n", SIZES)
def test_audit_output_set(benchmark, n, delta, method):
    selection, evaluation = example(n), example(n, 1)
    result = benchmark(audit_output_set, selection, evaluation, method=method, delta=delta)
    assert result.epsilon > 0.2


def test_optimal_output_set(benchmark):
    def density(a, b):
        return lambda x: 0.5 * norm.pdf(x - a) + 0.5 * norm.pdf(x - b)

    found = benchmark(optimal_output_set, density(-2, 1), density(-1, 0), m=100, support=(-12, 12))
    assert len(found.intervals) == 3
