"""Epsilon for noise and noise for epsilon: against closed forms, each other, and known numbers."""

import math

import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
from dp_accounting.rdp import RdpAccountant
from scipy.optimize import brentq
from scipy.stats import norm

from paperlib.training import TrainingConfig, epsilon_of, noise_for
from paperlib.training.private.accounting import paper_delta, privacy_of, replacement_epsilon
from tests.refusals import refused

ADULT = (64 / 32_561, 509, paper_delta(32_561))


def gaussian_epsilon(noise, delta):
    """Exact epsilon of one Gaussian mechanism (Balle and Wang, 2018)."""

    def excess(epsilon):
        shift = noise * epsilon
        tail = norm.cdf(-shift - 0.5 / noise)
        return norm.cdf(0.5 / noise - shift) - math.exp(epsilon) * tail - delta

    return brentq(excess, 0, 100)


@pytest.mark.parametrize("noise", [0.7, 1.0, 3.0])
def test_both_accountants_bound_the_exact_epsilon_from_above(noise):
    exact = gaussian_epsilon(noise, 1e-5)
    tight, loose = (epsilon_of(noise, 1.0, 1, 1e-5, accountant) for accountant in ("pld", "rdp"))
    assert exact <= tight <= loose
    assert tight == pytest.approx(exact, rel=2e-3)
    assert loose < 1.35 * exact
    # 25 unsampled steps with five times the noise are one step.
    assert epsilon_of(5 * noise, 1.0, 25, 1e-5, "pld") == pytest.approx(exact, rel=2e-2)


def test_epsilon_is_monotone_quiet_and_that_of_dp_accounting(caplog):
    rate, steps, delta = ADULT
    noises = [epsilon_of(noise, rate, steps, delta) for noise in (0.5, 0.7, 1.0, 2.0)]
    assert noises == sorted(noises, reverse=True)
    longer = [epsilon_of(1.0, rate, count, delta) for count in (0, 100, 1000, 10_000)]
    assert longer == sorted(longer)
    assert longer[0] == 0.0
    event = SelfComposedDpEvent(PoissonSampledDpEvent(0.01, GaussianDpEvent(1.1)), 1000)
    assert epsilon_of(1.1, 0.01, 1000, 1e-5) == RdpAccountant().compose(event).get_epsilon(1e-5)
    # Orders that do not converge are left out, which is sound and not worth hundreds of log lines.
    epsilon_of(0.51, 0.05, 10, 1e-5)
    assert not caplog.records
    assert privacy_of(config(epochs=0, noise_multiplier=1.0), 1000, delta=1e-5).epsilon == 0


def test_epsilon_is_near_the_published_one_of_tensorflow_privacy():
    """Its MNIST tutorial (batch 256, delta 1e-5), published with an older, looser conversion from
    RDP.
    """
    for noise, epochs, published in ((1.3, 15, 1.19), (1.1, 60, 3.01), (0.7, 45, 7.10)):
        ours = epsilon_of(noise, 256 / 60_000, epochs * 60_000 // 256, 1e-5)
        assert 0.75 * published < ours <= published


@pytest.mark.parametrize("target", [0.1, 1, 3, 10, 100])
def test_noise_is_the_least_that_reaches_the_target(target):
    rate, steps, delta = ADULT
    noise = noise_for(target, rate, steps, delta)
    assert epsilon_of(noise, rate, steps, delta) <= target
    assert epsilon_of(noise * (1 - 3e-5), rate, steps, delta) > target


def test_the_tighter_accountant_needs_less_noise_knows_more_and_the_other_one_stands_in():
    process = (0.05, 10, 1e-5)
    noise = noise_for(0.2, *process, "pld")
    assert epsilon_of(noise, *process, "pld") <= 0.2 < epsilon_of(noise * 0.995, *process, "pld")
    assert 0.7 * noise_for(0.2, *process) < noise < noise_for(0.2, *process)
    assert noise_for(1e9, 0.001, 10, 1e-5) <= 0.125
    refused(
        "target_epsilon: expected one the rdp accountant can show", noise_for, 1e-9, 0.01, 10, 1e-9
    )
    noise = noise_for(0.001, 0.1, 100, 1e-6, "pld")
    assert noise < 9_000
    assert epsilon_of(noise, 0.1, 100, 1e-6, "pld") <= 0.001
    epsilon = epsilon_of(4.0, 0.00033, 10_000, 1.1e-18, "pld")
    assert epsilon == epsilon_of(4.0, 0.00033, 10_000, 1.1e-18, "rdp") < 0.2
    assert epsilon_of(0.0, 0.01, 10, 1e-5, "pld") == math.inf


def test_bad_values_are_named():
    for arguments, name in (
        ((-1.0, 0.1, 10, 1e-5), "noise_multiplier"),
        ((1.0, 0.0, 10, 1e-5), "sampling_rate"),
        ((1.0, 0.1, -1, 1e-5), "steps"),
        ((1.0, 0.1, 2.5, 1e-5), "steps"),
        ((1.0, 0.1, 10, 0.0), "delta"),
        ((1.0, 0.1, 10, 1e-5, "prv"), "accountant"),
    ):
        refused(f"{name}: expected", epsilon_of, *arguments)
        if name != "noise_multiplier":
            refused(f"{name}: expected", noise_for, *arguments)
    refused("examples: expected 2 or more, got 1", paper_delta, 1)
    for target in (0, math.inf, math.nan):
        refused("target_epsilon: expected", noise_for, target, 0.1, 10, 1e-5)


def config(**changes):
    return TrainingConfig(
        **{"epochs": 1, "batch_size": 64, "learning_rate": 0.01, "clip_norm": 1.0, **changes}
    )


def test_claims_say_what_holds():
    for changes, says, epsilon, record_level in (
        ({"clip_norm": None}, "without differential privacy", math.inf, False),
        ({}, "no noise is added", math.inf, False),
        ({"noise_multiplier": 1.0}, "for adding or removing one record", 0.874, True),
        (
            {"noise_multiplier": 1.0, "microbatches": 32},
            "not a guarantee for a record",
            0.874,
            False,
        ),
    ):
        privacy = privacy_of(config(**changes), 32_561)
        assert says in privacy.claim
        assert privacy.record_level is record_level
        assert privacy.epsilon == pytest.approx(epsilon, abs=0.001)
        assert privacy.delta == pytest.approx(1 / (32_561 * math.log(32_561)))


@pytest.mark.parametrize("noise", [0.8, 1.5, 5.0])
def test_a_replacement_moves_a_sum_by_twice_the_clipping_norm_and_is_bounded_from_above(noise):
    exact = gaussian_epsilon(noise / 2, 1e-5)
    found = replacement_epsilon(noise, 1.0, 1, 1e-5)
    assert exact - 1e-9 <= found <= 1.01 * exact


def test_a_replacement_costs_at_least_adding_and_doubling_at_the_same_delta_is_no_bound():
    found = [replacement_epsilon(noise, 0.1, 100, 1e-5) for noise in (0.8, 1.0, 2.0, 8.0)]
    assert found == sorted(found, reverse=True)
    assert found[1] > epsilon_of(1.0, 0.1, 100, 1e-5)
    assert replacement_epsilon(0.0, 0.1, 3, 1e-5) == math.inf
    assert replacement_epsilon(1.0, 0.1, 0, 1e-5) == 0
    refused("delta", replacement_epsilon, 1.0, 0.1, 10, 0.0)
    # The broken twin of the bound for a replacement.
    assert 2 * gaussian_epsilon(0.8, 1e-5) < gaussian_epsilon(0.8 / 2, 1e-5)
    assert 2 * epsilon_of(0.8, 1.0, 1, 1e-5, "pld") < replacement_epsilon(0.8, 1.0, 1, 1e-5)
