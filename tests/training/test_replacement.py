"""Epsilon for replacing one record, against exact epsilons of one Gaussian step."""

import math

import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from paperlib.training import epsilon_of
from paperlib.training.private.accounting import replacement_epsilon


def exact_epsilon(noise, delta):
    """Of one Gaussian mechanism of sensitivity 1 (Balle and Wang, 2018)."""

    def excess(epsilon):
        tail = norm.cdf(-noise * epsilon - 0.5 / noise)
        return norm.cdf(0.5 / noise - noise * epsilon) - math.exp(epsilon) * tail - delta

    return brentq(excess, 0, 200)


@pytest.mark.parametrize("noise", [0.8, 1.5, 5.0])
def test_a_replacement_moves_a_sum_by_twice_the_clipping_norm_and_is_bounded_from_above(noise):
    exact = exact_epsilon(noise / 2, 1e-5)
    found = replacement_epsilon(noise, 1.0, 1, 1e-5)
    assert exact - 1e-9 <= found <= 1.01 * exact


def test_doubling_at_the_same_delta_is_no_bound():
    noise = 0.8
    assert 2 * exact_epsilon(noise, 1e-5) < exact_epsilon(noise / 2, 1e-5)


def test_it_is_at_least_that_of_adding_or_removing_and_falls_with_noise():
    found = [replacement_epsilon(noise, 0.1, 100, 1e-5) for noise in (0.8, 1.0, 2.0, 8.0)]
    assert found == sorted(found, reverse=True)
    assert found[1] > epsilon_of(1.0, 0.1, 100, 1e-5)


def test_no_noise_promises_nothing_and_no_step_tells_nothing():
    assert replacement_epsilon(0.0, 0.1, 3, 1e-5) == math.inf
    assert replacement_epsilon(1.0, 0.1, 0, 1e-5) == 0


def test_bad_values_are_named():
    with pytest.raises(ValueError, match="delta"):
        replacement_epsilon(1.0, 0.1, 10, 0.0)
