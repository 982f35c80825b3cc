"""Speed of Epsilon* from 1e3 to 1e6 losses in each set."""

import numpy as np
import pytest

from paperlib.bounds import epsilon_star, epsilon_star_normals

SIZES = [10**3, 10**4, 10**5, 10**6]


def losses(n):
    rng = np.random.default_rng(0)
    return rng.gamma(2, 5, n), rng.gamma(3, 5, n)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("confidence", [None, 0.95])
@pytest.mark.parametrize("method", ["parametric", "empirical"])
def test_epsilon_star(benchmark, method, confidence, n):
    pair = losses(n)
    result = benchmark(epsilon_star, *pair, method=method, confidence=confidence)
    assert result.epsilon > 1


def test_epsilon_star_normals(benchmark):
    assert benchmark(epsilon_star_normals, 0, 1, 0.5, 1.2, delta=1e-5) > 4


@pytest.mark.parametrize("method", ["parametric", "empirical"])
def test_bca_at_a_thousand(benchmark, method):
    pair = losses(1000)
    result = benchmark(epsilon_star, *pair, method=method, confidence=0.95, interval_method="bca")
    assert result.interval[1] > 1
