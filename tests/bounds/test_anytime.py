"""The anytime search against integration, dense grids and printed values; budgets and order at
delta > 0.
"""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta

from paperlib.bounds.one_run.anytime import (
    AnytimeCounts,
    failure_budget,
    log_mixture,
    log_threshold,
    mean_failures,
    sharp_share,
)

EVERY_TENTH_WRONG = np.tile([1] * 9 + [0], 20)
SIXTY_THEN_ALTERNATING = np.append(np.ones(60), np.tile([1, 0], 200))


def searched(hits):
    return AnytimeCounts(0.05).best(np.cumsum(hits), np.arange(1, len(hits) + 1))[0]


@pytest.mark.parametrize(
    ("correct", "value"),
    [(EVERY_TENTH_WRONG, 1.582186), (np.ones(100), 3.254826), (SIXTY_THEN_ALTERNATING, 2.748717)],
)
def test_check_values(correct, value):
    assert searched(correct) == pytest.approx(value, abs=1e-6)
    assert searched(np.zeros(50)) == searched([1]) == 0.0


@pytest.mark.parametrize("share", [0.0, sharp_share(300)])
@pytest.mark.parametrize(
    ("k", "r", "epsilon"), [(9, 10, 0.5), (30, 40, 0.0), (95, 100, 2.0), (7, 7, 3.0)]
)
def test_mixture_equals_numerical_integration(k, r, epsilon, share):
    q, point = 1 / (1 + np.exp(-epsilon)), 1 / (1 + np.exp(-epsilon - 3))

    def integrand(p):
        return (p / q) ** k * ((1 - p) / (1 - q)) ** (r - k) * beta.pdf(p, 0.5, 0.5)

    value, _ = quad(integrand, q, 1, limit=200)
    sharp = (point / q) ** k * ((1 - point) / (1 - q)) ** (r - k)
    expected = (1 - share) * value / beta.sf(q, 0.5, 0.5) + share * sharp
    assert np.exp(log_mixture(k, r, epsilon, share)) == pytest.approx(expected, rel=1e-6)


def test_search_equals_a_dense_grid_over_epsilon_and_counts():
    rng = np.random.default_rng(0)
    for accuracy in (0.6, 0.8, 0.95):
        hits = (rng.random(300) < accuracy).astype(int)
        k, r = np.cumsum(hits), np.arange(1, 301)
        found = searched(hits)
        best = max(log_mixture(k, r, found + step).max() for step in np.geomspace(1e-6, 5, 400))
        assert best < np.log(20)
        if found > 0:
            assert log_mixture(k, r, found).max() >= np.log(20)


@pytest.mark.parametrize("most", [None, 300, 10_000])
def test_mixture_falls_in_epsilon_wherever_it_is_at_least_e(most):
    grid = np.linspace(0, 10, 2_001)
    for r in (1, 2, 3, 5, 10, 40, 300, 5_000):
        for k in range(max(0, r - 60), r + 1):
            values = log_mixture(k, r, grid, sharp_share(most))
            high = values >= 1
            assert (np.diff(high.astype(int)) <= 0).all()
            assert (np.diff(values)[high[:-1]] < 0).all()


@pytest.mark.parametrize("mean", [0.0, 0.01, 0.035, 0.036, 0.5, 20.0])
@pytest.mark.parametrize("error", [0.05, 0.01, 0.3])
def test_failure_budget_spends_at_most_the_error(mean, error):
    level, failures = failure_budget(mean, error)
    assert level > 0
    assert level + mean / (failures + 1) <= error * (1 + 1e-12)
    assert (
        mean_failures(1.0, mean, sides=1) == mean_failures(1.0, mean) / 2
    )  # of guesses "member" alone
    for outside in (0.0, 1.0, -1, 2):
        with pytest.raises(ValueError, match="level"):
            log_threshold(outside)


HITS = (np.random.default_rng(0).random(2_000) < 0.9).astype(int)
K, R = np.cumsum(HITS), np.arange(1, HITS.size + 1)


@pytest.mark.parametrize("delta", [0.0, 1e-6, 1e-4, 1e-2])
def test_curve_has_the_bound_as_its_maximum(delta):
    test = AnytimeCounts(0.05, 2_000 * delta)
    curve = test.bounds(K, R)
    assert curve.max() == pytest.approx(test.best(K, R)[0], abs=1e-8)
    assert (curve >= 0).all()


def test_the_point_of_the_prior_gains_where_few_guesses_are_sure_and_costs_little_elsewhere():
    def gain(right, guesses, most):
        """Nats that the point adds to the bound of one stopping point."""
        tests = (AnytimeCounts(0.05, most=size) for size in (most, None))
        with_point, without = (test.best(*np.array([[right], [guesses]]))[0] for test in tests)
        return with_point - without

    assert min(gain(12, 12, 300), gain(12, 12, 1_000)) > 0.05 > gain(45, 46, 300) > 0
    assert -0.07 < gain(105, 150, 300) < 0
    assert -0.01 < gain(60_000, 100_000, 100_000) < 0


@pytest.mark.parametrize("m_delta", [0.0, 0.02, 0.3])
def test_asking_for_one_epsilon_agrees_with_the_bound(m_delta):
    test = AnytimeCounts(0.05, m_delta, most=K.size)
    epsilon, _ = test.best(K, R)
    assert epsilon > 0.5
    for share in (0.0, 0.3, 0.9, 0.999):
        assert test.refutes(K, R, share * epsilon)
    for more in (1e-3, 0.3, 2.0):
        assert not test.refutes(K, R, epsilon + more)
