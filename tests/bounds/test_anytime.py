"""The anytime search against numerical integration, dense grids and printed values."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta

from paperlib.bounds.one_run.anytime import (
    anytime_curve,
    anytime_epsilon,
    anytime_from_counts,
    failure_budget,
    log_mixture,
)

EVERY_TENTH_WRONG = np.tile([1] * 9 + [0], 20)
SIXTY_THEN_ALTERNATING = np.append(np.ones(60), np.tile([1, 0], 200))


@pytest.mark.parametrize(
    ("correct", "value"),
    [(EVERY_TENTH_WRONG, 1.582186), (np.ones(100), 3.254826), (SIXTY_THEN_ALTERNATING, 2.748717)],
)
def test_check_values(correct, value):
    assert anytime_epsilon(correct, level=0.05).epsilon == pytest.approx(value, abs=1e-6)


@pytest.mark.parametrize(("k", "r", "epsilon"), [(9, 10, 0.5), (30, 40, 0.0), (95, 100, 2.0), (7, 7, 3.0)])
def test_mixture_equals_numerical_integration(k, r, epsilon):
    q = 1 / (1 + np.exp(-epsilon))

    def integrand(p):
        return (p / q) ** k * ((1 - p) / (1 - q)) ** (r - k) * beta.pdf(p, 0.5, 0.5)

    value, _ = quad(integrand, q, 1, limit=200)
    expected = value / beta.sf(q, 0.5, 0.5)
    assert np.exp(log_mixture(k, r, epsilon)) == pytest.approx(expected, rel=1e-6)


def test_search_equals_a_dense_grid_over_epsilon_and_counts():
    rng = np.random.default_rng(0)
    for accuracy in (0.6, 0.8, 0.95):
        hits = (rng.random(300) < accuracy).astype(int)
        k, r = np.cumsum(hits), np.arange(1, 301)
        found = anytime_epsilon(hits, level=0.05).epsilon
        best = max(log_mixture(k, r, found + step).max() for step in np.geomspace(1e-6, 5, 400))
        assert best < np.log(20)
        if found > 0:
            assert log_mixture(k, r, found).max() >= np.log(20)


def test_mixture_falls_in_epsilon_wherever_it_is_at_least_e():
    grid = np.linspace(0, 10, 2_001)
    for r in (1, 2, 3, 5, 10, 40, 300, 5_000):
        for k in range(max(0, r - 60), r + 1):
            values = log_mixture(k, r, grid)
            high = values >= 1
            assert (np.diff(high.astype(int)) <= 0).all()
            assert (np.diff(values)[high[:-1]] < 0).all()


def test_curve_has_the_bound_as_its_maximum_and_failures_only_cost():
    hits = EVERY_TENTH_WRONG
    k, r = np.cumsum(hits), np.arange(1, hits.size + 1)
    bounds = [anytime_from_counts(k, r, level=0.05, failures=f) for f in (0, 1, 5, 40)]
    for bound in bounds:
        curve = anytime_curve(k, r, level=0.05, failures=bound.failures)
        assert curve.max() == pytest.approx(bound.epsilon, abs=1e-8)
    epsilons = [bound.epsilon for bound in bounds]
    assert epsilons == sorted(epsilons, reverse=True)


def test_nothing_right_refutes_nothing():
    assert anytime_epsilon(np.zeros(50), level=0.05).epsilon == 0.0
    assert anytime_epsilon([1], level=0.05).epsilon == 0.0


@pytest.mark.parametrize("mean", [0.0, 0.01, 0.035, 0.036, 0.5, 20.0])
@pytest.mark.parametrize("error", [0.05, 0.01, 0.3])
def test_failure_budget_spends_at_most_the_error(mean, error):
    level, failures = failure_budget(mean, error)
    assert level > 0
    assert level + mean / (failures + 1) <= error * (1 + 1e-12)


@pytest.mark.parametrize("bad", [[0, 2], [0.5], [[1, 0]], [np.nan]])
def test_other_values_than_zero_and_one_are_refused(bad):
    with pytest.raises(ValueError, match="correct"):
        anytime_epsilon(bad, level=0.05)


@pytest.mark.parametrize("level", [0.0, 1.0, -1, 2])
def test_level_outside_the_unit_interval_is_refused(level):
    with pytest.raises(ValueError, match="level"):
        anytime_epsilon([1, 1], level=level)
