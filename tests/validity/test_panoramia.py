"""Coverage of PANORAMIA's two bounds where c and epsilon are known."""

from itertools import product

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import multinomial

from paperlib.bounds import audit_panoramia
from paperlib.bounds.one_run.search import run_recall_test
from paperlib.bounds.one_run.tails import epsilon_from_counts
from tests.validity.coverage import assert_rate_at_most

C, EPSILON = np.log(2.0), 1.0


def laplace_game(rng, m, c=C, epsilon=EPSILON):
    """Real Laplace(0, 1), generated Laplace(c, 1): the density ratio tops out at exactly e^c.

    The model answers each membership by randomized response at epsilon. The baseline ranks by the
    density ratio, the attack by ratio and answer together: the best attacks there are.
    """
    flags = rng.integers(0, 2, m)
    points = rng.laplace(size=m) + np.where(flags == 1, 0.0, c)
    ratio = np.abs(points - c) - np.abs(points) + 1e-6 * rng.random(m)
    answer = np.where(rng.random(m) < expit(epsilon), flags, 1 - flags)
    return ratio, ratio + 2 * epsilon * (answer - 0.5), flags


def leaky_game(rng, m, epsilon, delta):
    """A perfect generator (c = 0); the model tells the truth with probability delta, else by
    randomized response: (epsilon, delta)-DP and no better."""
    flags = rng.integers(0, 2, m)
    answer = np.where(rng.random(m) < expit(epsilon), flags, 1 - flags)
    score = np.where(rng.random(m) < delta, 10.0 * (2 * flags - 1), answer)
    return rng.random(m), score + 1e-6 * rng.random(m), flags


def revealing_game(rng, m, gamma):
    """c = 0 but for a set of real probability gamma that is never generated."""
    flags = rng.integers(0, 2, m)
    revealed = (rng.random(m) < gamma) & (flags == 1)
    return rng.random(m) + revealed, rng.random(m) + revealed, flags


def exceed(game, trials, seed, c, both, **options):
    """How often c_lb > c and {c+eps}_lb > c + eps."""
    rng = np.random.default_rng(seed)
    over = np.zeros(2, dtype=int)
    for _ in range(trials):
        result = audit_panoramia(*game(rng), **options)
        over += (result.c_lb > c, result.c_plus_epsilon_lb > both)
    return over


@pytest.mark.parametrize(("search", "trials"), [("union", 1_500), ("anytime", 500)])
@pytest.mark.parametrize(("c", "epsilon"), [(C, EPSILON), (0.0, 0.0), (0.0, 2.0)])
def test_each_bound_keeps_half_of_the_error(search, trials, c, epsilon):
    over = exceed(lambda rng: laplace_game(rng, 200, c, epsilon), trials, 1, c, c + epsilon, search=search)
    assert_rate_at_most(0.025, over[0], trials)
    assert_rate_at_most(0.025, over[1], trials)


def uncorrected(scores, flags, level):
    """The broken twin: best threshold, uncorrected for the search."""
    order = np.argsort(-scores)
    right = np.cumsum(flags[order])
    return np.max(epsilon_from_counts(right, np.arange(1, flags.size + 1), level))


@pytest.mark.parametrize(("c", "epsilon"), [(C, EPSILON), (0.0, 0.0)])
def test_best_threshold_without_correction_is_caught(c, epsilon):
    rng, trials, hits = np.random.default_rng(2), 500, 0
    for _ in range(trials):
        _, mia, flags = laplace_game(rng, 1_000, c, epsilon)
        hits += uncorrected(mia, flags, 0.025) > c + epsilon
    with pytest.raises(AssertionError, match="allows"):
        assert_rate_at_most(0.025, hits, trials)


@pytest.mark.parametrize(("search", "delta", "trials"), [("union", 1e-6, 60), ("anytime", 1e-4, 400)])
def test_delta_covers_a_model_that_sometimes_tells_the_truth(search, delta, trials):
    over = exceed(
        lambda rng: leaky_game(rng, 400, 1.0, delta),
        trials,
        3,
        0.0,
        1.0,
        search=search,
        delta=delta,
        known_c=0.0,
    )
    assert_rate_at_most(0.025, over[1], trials)
    ignored = exceed(lambda rng: leaky_game(rng, 1_000, 0.5, 0.04), 60, 3, 0.0, 0.5, search=search)
    with pytest.raises(AssertionError, match="allows"):
        assert_rate_at_most(0.025, ignored[1], 60)


@pytest.mark.parametrize("gamma", [1e-2, 2e-2])
def test_gamma_covers_points_the_generator_never_makes(gamma):
    """Anytime search: the union search is valid here too but can refute nothing at this gamma."""
    trials, m = 400, 2_000

    def game(rng):
        return revealing_game(rng, m, gamma)

    over = exceed(game, trials, 4, 0.0, 0.0, search="anytime", gamma=gamma)
    assert_rate_at_most(0.025, over[0], trials)
    assert_rate_at_most(0.025, over[1], trials)
    ignored = exceed(game, 60, 4, 0.0, 0.0, search="anytime")
    with pytest.raises(AssertionError, match="allows"):
        assert_rate_at_most(0.025, ignored[0], 60)


def test_both_bounds_hold_together():
    trials, rng, hits = 1_000, np.random.default_rng(5), 0
    for _ in range(trials):
        result = audit_panoramia(*laplace_game(rng, 150))
        hits += result.c_lb > C or result.c_plus_epsilon_lb > C + EPSILON
    assert_rate_at_most(0.05, hits, trials)


def outcome_bounds(m, level):
    """Two real-looking and generated-looking values: every outcome (a, b, c, d) of m examples."""
    for a, b, c in product(range(m + 1), repeat=3):
        d = m - a - b - c
        if d < 0:
            continue
        scores = np.repeat([1.0, 0.0, 1.0, 0.0], [a, b, c, d])
        flags = np.repeat([True, True, False, False], [a, b, c, d])
        bound = (
            0.0
            if flags.all() or not flags.any()
            else run_recall_test("mia", scores, flags, level, 0.0, "union").bound
        )
        yield (a, b, c, d), bound


def test_bound_is_valid_exactly():
    """Every outcome of a c-close generator on two points, the worst case; nothing sampled."""
    outcomes = list(outcome_bounds(12, 0.025))
    counts, bounds = np.array([key for key, _ in outcomes]), np.array([bound for _, bound in outcomes])
    assert bounds.max() > 0
    for c in (0.0, 0.3, 0.7, 1.5):
        for real in (0.2, 0.6, 1.0):
            generated = real * np.exp(-c)
            cells = np.array([real, 1 - real, generated, 1 - generated]) / 2
            chance = multinomial.pmf(counts, 12, cells)
            assert chance[bounds > c].sum() <= 0.025 + 1e-12


def test_null_model_gives_nothing_when_the_baseline_is_as_good():
    """A target that never saw the members: attack and baseline see the same, epsilon~ is 0 or tiny."""
    rng, positive = np.random.default_rng(6), 0
    for _ in range(300):
        baseline, _, flags = laplace_game(rng, 400, 1.5, 0.0)
        result = audit_panoramia(baseline, baseline + 1e-9 * rng.random(400), flags)
        positive += result.epsilon_tilde > 0
    assert_rate_at_most(0.05, positive, 300)


def test_epsilon_tilde_is_not_a_lower_bound():
    """A blind baseline leaves all of c in the difference: epsilon~ > epsilon = 0, as the claim warns."""
    rng, positive = np.random.default_rng(7), 0
    for _ in range(20):
        ratio, _, flags = laplace_game(rng, 2_000, 2.0, 0.0)
        positive += audit_panoramia(rng.random(2_000), ratio, flags).epsilon_tilde > 0.5
    assert positive == 20


def rare_record_game(rng, m, epsilon, rare=0.02, base=0.05):
    """epsilon-DP for adding or removing a record: "yes" with chance q e^eps on a rare record, q on
    none, q e^-eps on any other. One such mechanism per pair; the generator is the true distribution.

    Where a generated point is shown, the model has answered on the hidden member of its pair.
    """
    flags = rng.integers(0, 2, m)
    shown, hidden = rng.random((2, m)) < rare
    trained = np.where(flags == 1, shown, hidden)
    yes = rng.random(m) < base * np.exp(np.where(trained, epsilon, -epsilon))
    return rng.random(m), 1.0 * (shown & yes), flags


def test_the_game_bounds_replacement_and_not_add_remove():
    """Exact odds of the guess "member" after a yes on a rare record, then the audit itself."""
    epsilon, rare, base = 1.2, 0.02, 0.05
    chance = {True: base * np.exp(epsilon), False: base * np.exp(-epsilon)}
    odds = chance[True] / (rare * chance[True] + (1 - rare) * chance[False])
    assert epsilon < np.log(odds) < 2 * epsilon
    rng, above_add_remove, above_replacement = np.random.default_rng(8), 0, 0
    for _ in range(40):
        bound = audit_panoramia(*rare_record_game(rng, 60_000, epsilon), search="anytime").c_plus_epsilon_lb
        above_add_remove += bound > epsilon
        above_replacement += bound > 2 * epsilon
    assert above_add_remove > 20
    assert above_replacement == 0
