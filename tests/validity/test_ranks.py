"""Rank audits keep their error rate on mechanisms of known epsilon; broken twins do not."""

from functools import lru_cache
from itertools import product

import numpy as np
import pytest
from scipy.special import comb
from scipy.stats import binom

from paperlib.bounds import audit_ranks, rank_epsilon, rank_p_value, rank_success_probability
from paperlib.bounds.ranks.p_values import poisson_binomial

LEVEL = 0.05


def hit_distribution(sizes, epsilon, top=1):
    """Exact distribution of the hits of subset selection, randomized response at top = 1."""
    return np.diff(
        -np.append(
            poisson_binomial(rank_success_probability(sizes, epsilon, top=top)).upper_tail(
                np.arange(np.size(sizes) + 1)
            ),
            0.0,
        )
    )


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0, 5.0])
@pytest.mark.parametrize(("size", "top"), [(2, 1), (16, 1), (64, 1), (16, 4), (64, 8), (5, 4)])
@pytest.mark.parametrize("sets", [1, 7, 200])
def test_bound_is_valid_exactly_and_attained(epsilon, size, top, sets):
    """Every outcome of k-ary randomized response and of subset selection; nothing sampled."""
    outcomes = np.arange(sets + 1)
    chance = binom.pmf(outcomes, sets, rank_success_probability(size, epsilon, top=top))
    errors = chance[rank_epsilon(outcomes, sets, size, top=top) > epsilon].sum()
    assert errors <= LEVEL + 1e-12
    paper = chance[rank_epsilon(outcomes, sets, size, top=top, bound="paper") > epsilon].sum()
    assert paper <= errors + 1e-12
    # Tight: the next outcome cannot be refuted too, so the level is used up to one step.
    refuted = rank_epsilon(outcomes, sets, size, top=top) > epsilon
    if refuted.any() and not refuted.all():
        assert errors + chance[~refuted][-1] > LEVEL


def test_papers_bound_wastes_its_level_for_larger_tops():
    outcomes = np.arange(501)
    chance = binom.pmf(outcomes, 500, rank_success_probability(64, 3.0, top=8))
    errors = {
        b: chance[rank_epsilon(outcomes, 500, 64, top=8, bound=b) > 3.0].sum() for b in ("tight", "paper")
    }
    assert 0.03 < errors["tight"] <= LEVEL
    assert errors["paper"] < 1e-12


def test_a_bound_that_takes_sets_for_larger_is_caught():
    """The broken twin: it counts alternatives that the attack never had to beat."""
    outcomes = np.arange(201)
    chance = binom.pmf(outcomes, 200, rank_success_probability(16, 2.0))
    assert chance[rank_epsilon(outcomes, 200, 18) > 2.0].sum() > LEVEL


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 4.0])
def test_mixed_sizes_are_valid_exactly(epsilon):
    sizes = np.repeat([2, 8, 128], [20, 20, 30])
    chance = hit_distribution(sizes, epsilon)
    refuted = np.array([h > 0 and rank_p_value(h, sizes, epsilon) <= LEVEL for h in range(71)])
    bounds = np.array([audit_ranks(np.where(np.arange(70) < h, 1, sizes), sizes).epsilon for h in range(71)])
    assert np.array_equal(bounds > epsilon, refuted)
    assert 0.02 < chance[bounds > epsilon].sum() <= LEVEL


def test_ignoring_that_sizes_differ_is_caught():
    """The broken twin: every set taken for one of the mean size."""
    sizes = np.repeat([2, 200], [50, 50])
    chance = hit_distribution(sizes, 0.0)
    assert chance[rank_epsilon(np.arange(101), 100, 101) > 0.0].sum() > 0.99


# --- delta > 0 ------------------------------------------------------------------------------------


@lru_cache
def largest_excess(size, top, sets, epsilon, delta, hits):
    """The delta of the worst-case mechanism, from the definition: enumerate all outputs and neighbours.

    Outputs are one top-subset per set. The likelihood depends on the number of sets whose subset holds
    the true value; with probability ``lift`` the run is conditioned on at least ``hits`` such sets.
    """
    chance = float(rank_success_probability(size, epsilon, top=top))
    tail = binom.sf(hits - 1, sets, chance)
    lift = delta * sets / hits * (size - 1) / (size - top) * tail / binom.pmf(hits, sets, chance)
    counts = np.arange(sets + 1)
    law = binom.pmf(counts, sets, chance) * (1 - lift + lift * (counts >= hits) / tail)
    ways = comb(sets, counts) * comb(size - 1, top - 1) ** counts * comb(size - 1, top) ** (sets - counts)
    likelihood = law / ways  # of one output that holds the true value in so many sets
    excess = 0.0
    for others in product([0, 1], repeat=sets - 1):
        k = sum(others)
        weight = comb(size - 1, top - 1) ** k * comb(size - 1, top) ** (sets - 1 - k)
        loss = np.exp(epsilon) * likelihood
        pair = max(likelihood[k + 1] - loss[k], 0) + max(likelihood[k] - loss[k + 1], 0)
        excess += weight * comb(size - 2, top - 1) * pair
    return law, excess


@pytest.mark.parametrize(("size", "top"), [(2, 1), (6, 1), (6, 2)])
def test_worst_case_mechanism_has_the_delta_it_claims(size, top):
    law, excess = largest_excess(size, top, 6, 1.0, 0.01, 5)
    assert law.sum() == pytest.approx(1)
    assert excess == pytest.approx(0.01, rel=1e-9)


@pytest.mark.parametrize("delta_term", ["published", "sharp"])
@pytest.mark.parametrize(("size", "top", "delta"), [(2, 1, 1e-3), (16, 1, 1e-3), (16, 4, 1e-2)])
def test_delta_is_paid_for_on_the_worst_case_mechanism(size, top, delta, delta_term):
    sets, epsilon = 100, 1.0
    chance = float(rank_success_probability(size, epsilon, top=top))
    outcomes = np.arange(sets + 1)
    plain = binom.pmf(outcomes, sets, chance)
    options = {"top": top, "delta": delta, "delta_term": delta_term}
    ranks = [np.where(outcomes[1:] <= h, 1, size) for h in outcomes]
    refuted = np.array([audit_ranks(r, size, **options).epsilon > epsilon for r in ranks])

    def error(rejected):
        hits = int(np.flatnonzero(rejected)[0])
        tail = plain[hits:].sum()
        lift = delta * sets / hits * (size - 1) / (size - top) * tail / plain[hits]
        return (plain * (1 - lift + lift * (outcomes >= hits) / tail))[rejected].sum()

    if delta_term == "sharp":
        assert refuted.any()
        assert error(refuted) == pytest.approx(
            rank_p_value(int(np.flatnonzero(refuted)[0]), [size] * sets, epsilon, **options), rel=1e-6
        )
    assert not refuted.any() or error(refuted) <= LEVEL


def test_leaving_delta_out_is_caught():
    sets, size, delta, epsilon = 100, 16, 1e-2, 1.0
    outcomes = np.arange(sets + 1)
    plain = binom.pmf(outcomes, sets, rank_success_probability(size, epsilon))
    rejected = rank_epsilon(outcomes, sets, size) > epsilon
    hits = int(np.flatnonzero(rejected)[0])
    lift = delta * sets / hits * plain[hits:].sum() / plain[hits]
    assert lift + (1 - lift) * plain[rejected].sum() > LEVEL


@pytest.mark.parametrize("delta_term", ["published", "sharp"])
def test_mixed_sets_that_reveal_with_probability_delta(delta_term):
    sizes, delta, epsilon = np.repeat([2, 8, 40], 25), 2e-3, 1.0
    chance = delta + (1 - delta) * np.asarray(rank_success_probability(sizes, epsilon))
    law = np.diff(-np.append(poisson_binomial(chance).upper_tail(np.arange(76)), 0.0))
    bounds = np.array(
        [
            audit_ranks(
                np.where(np.arange(75) < h, 1, sizes), sizes, delta=delta, delta_term=delta_term
            ).epsilon
            for h in range(76)
        ]
    )
    assert law[bounds > epsilon].sum() <= LEVEL
    assert bounds[-1] > epsilon or delta_term == "published"
