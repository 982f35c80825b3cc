"""Rank audits keep their error rate on mechanisms of known epsilon; broken twins do not."""

from itertools import product

import numpy as np
import pytest
from scipy.special import comb
from scipy.stats import binom

from paperlib.bounds import audit_ranks, rank_epsilon, rank_p_value
from paperlib.bounds.ranks.p_values import poisson_binomial, rank_success_probability
from paperlib.reproduction.validity.mechanisms import burst_chance, with_bursts

LEVEL = 0.05


def law_of_hits(chances):
    """Exact distribution of the number of hits, each with its own chance."""
    tail = poisson_binomial(chances).upper_tail(np.arange(np.size(chances) + 1))
    return np.diff(-np.append(tail, 0.0))


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0, 5.0])
@pytest.mark.parametrize(("size", "top"), [(2, 1), (16, 1), (64, 1), (16, 4), (64, 8), (5, 4)])
def test_bound_is_valid_exactly_and_attained(epsilon, size, top):
    """Every outcome of k-ary randomized response and of subset selection; nothing sampled."""
    for sets in (1, 7, 200):
        outcomes = np.arange(sets + 1)
        chance = binom.pmf(outcomes, sets, rank_success_probability(size, epsilon, top=top))
        refuted = rank_epsilon(outcomes, sets, size, top=top) > epsilon
        errors = chance[refuted].sum()
        assert errors <= LEVEL + 1e-12
        paper = chance[rank_epsilon(outcomes, sets, size, top=top, bound="paper") > epsilon].sum()
        assert paper <= errors + 1e-12
        # Tight: the next outcome cannot be refuted too, so the level is used up to one step.
        if refuted.any() and not refuted.all():
            assert errors + chance[~refuted][-1] > LEVEL


def test_papers_bound_wastes_its_level_and_one_that_takes_sets_for_larger_is_caught():
    """The broken twin counts alternatives that the attack never had to beat."""
    outcomes = np.arange(501)
    chance = binom.pmf(outcomes, 500, rank_success_probability(64, 3.0, top=8))
    tight, paper = (
        rank_epsilon(outcomes, 500, 64, top=8, bound=name) for name in ("tight", "paper")
    )
    assert 0.03 < chance[tight > 3.0].sum() <= LEVEL
    assert chance[paper > 3.0].sum() < 1e-12
    outcomes = np.arange(201)
    chance = binom.pmf(outcomes, 200, rank_success_probability(16, 2.0))
    assert chance[rank_epsilon(outcomes, 200, 18) > 2.0].sum() > LEVEL


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 4.0])
def test_mixed_sizes_are_valid_exactly(epsilon):
    sizes = np.repeat([2, 8, 128], [20, 20, 30])
    chance = law_of_hits(rank_success_probability(sizes, epsilon))
    refuted = np.array([h > 0 and rank_p_value(h, sizes, epsilon) <= LEVEL for h in range(71)])
    bounds = np.array(
        [audit_ranks(np.where(np.arange(70) < h, 1, sizes), sizes).epsilon for h in range(71)]
    )
    assert np.array_equal(bounds > epsilon, refuted)
    assert 0.02 < chance[bounds > epsilon].sum() <= LEVEL
    if epsilon == 0.0:  # the broken twin takes every set for one of the mean size
        chance = law_of_hits(rank_success_probability(np.repeat([2, 200], [50, 50]), 0.0))
        assert chance[rank_epsilon(np.arange(101), 100, 101) > 0.0].sum() > 0.99


def attacked(plain, hits, size, top, delta):
    """Law of the hits, given that without bursts, when bursts of ``hits`` or more use up the
    delta.
    """
    leak = (size - 1) / (size - top)
    return with_bursts(plain, hits, burst_chance(plain, hits, delta * (plain.size - 1), leak))


@pytest.mark.parametrize(("size", "top"), [(2, 1), (6, 1), (6, 2)])
def test_worst_case_mechanism_has_the_delta_it_claims(size, top):
    """From the definition: enumerate all outputs and neighbours.

    Outputs are one top-subset per set. The likelihood depends on the number of sets whose subset
    holds the true value.
    """
    sets, epsilon, delta = 6, 1.0, 0.01
    counts = np.arange(sets + 1)
    plain = binom.pmf(counts, sets, rank_success_probability(size, epsilon, top=top))
    law = attacked(plain, 5, size, top, delta)
    ways = (
        comb(sets, counts)
        * comb(size - 1, top - 1) ** counts
        * comb(size - 1, top) ** (sets - counts)
    )
    likelihood = law / ways  # of one output that holds the true value in so many sets
    excess = 0.0
    for others in product([0, 1], repeat=sets - 1):
        k = sum(others)
        weight = comb(size - 1, top - 1) ** k * comb(size - 1, top) ** (sets - 1 - k)
        loss = np.exp(epsilon) * likelihood
        pair = max(likelihood[k + 1] - loss[k], 0) + max(likelihood[k] - loss[k + 1], 0)
        excess += weight * comb(size - 2, top - 1) * pair
    assert law.sum() == pytest.approx(1)
    assert excess == pytest.approx(delta, rel=1e-9)


@pytest.mark.parametrize("delta_term", ["published", "sharp"])
@pytest.mark.parametrize(("size", "top", "delta"), [(2, 1, 1e-3), (16, 1, 1e-3), (16, 4, 1e-2)])
def test_delta_is_paid_for_on_the_worst_case_mechanism(size, top, delta, delta_term):
    sets, epsilon = 100, 1.0
    outcomes = np.arange(sets + 1)
    plain = binom.pmf(outcomes, sets, rank_success_probability(size, epsilon, top=top))

    def error(refuted):
        first = int(np.flatnonzero(refuted)[0])
        return first, attacked(plain, first, size, top, delta)[refuted].sum()

    options = {"top": top, "delta": delta, "delta_term": delta_term}
    ranks = [np.where(outcomes[1:] <= h, 1, size) for h in outcomes]
    refuted = np.array([audit_ranks(r, size, **options).epsilon > epsilon for r in ranks])
    assert refuted.any() or delta_term == "published"
    if refuted.any():
        first, wrong = error(refuted)
        assert wrong <= LEVEL
        p_value = rank_p_value(first, [size] * sets, epsilon, **options)
        assert delta_term == "published" or wrong == pytest.approx(p_value, rel=1e-6)
    if top > 1 or size == 16:  # leaving delta out is caught
        blind = rank_epsilon(outcomes, sets, size, top=top) > epsilon
        assert error(blind)[1] > LEVEL


@pytest.mark.parametrize("delta_term", ["published", "sharp"])
def test_mixed_sets_that_reveal_with_probability_delta(delta_term):
    sizes, delta, epsilon = np.repeat([2, 8, 40], 25), 2e-3, 1.0
    law = law_of_hits(delta + (1 - delta) * np.asarray(rank_success_probability(sizes, epsilon)))
    options = {"delta": delta, "delta_term": delta_term}
    ranks = [np.where(np.arange(75) < h, 1, sizes) for h in range(76)]
    bounds = np.array([audit_ranks(one, sizes, **options).epsilon for one in ranks])
    assert law[bounds > epsilon].sum() <= LEVEL
    assert bounds[-1] > epsilon or delta_term == "published"
