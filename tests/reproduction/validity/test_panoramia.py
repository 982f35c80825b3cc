"""PANORAMIA's two bounds where c and epsilon are known, and output sets beyond the page's cases."""

from contextlib import nullcontext
from itertools import product

import numpy as np
import pytest
from scipy.stats import multinomial

from paperlib.bounds import audit_output_set, audit_panoramia, fit_output_set, one_run_epsilon
from paperlib.bounds.one_run.search import run_recall_test
from paperlib.bounds.output_sets.choices import SelectionRule, ratio_scores
from paperlib.bounds.output_sets.level_sets import count_guesses
from paperlib.reproduction.validity.mechanisms import close_generator, laplace, no_leakage
from tests.refusals import refused
from tests.reproduction.validity.coverage import assert_rate_at_most


@pytest.mark.parametrize("gamma", [0.0, 2e-2])
def test_gamma_covers_points_the_generator_never_makes_and_nothing_less_does(gamma):
    """c = 0 but for a set of real probability 0.02 that is never generated."""
    rng, over, trials = np.random.default_rng(4), 0, 60
    for _ in range(trials):
        flags = rng.integers(0, 2, 2_000)
        revealed = (rng.random(2_000) < 2e-2) & (flags == 1)
        scores = rng.random((2, 2_000)) + revealed
        over += audit_panoramia(*scores, flags, search="anytime", gamma=gamma).c_lb > 0
    with nullcontext() if gamma else pytest.raises(AssertionError, match="allows"):
        assert_rate_at_most(0.025, over, trials)


def test_bound_is_valid_exactly():
    """Every outcome of a c-close generator on two points, the worst case; nothing sampled."""
    first = np.array(list(product(range(13), repeat=3)))
    counts = np.column_stack(
        [first, 12 - first.sum(axis=1)]
    )  # real and generated, of higher and lower score
    counts, bounds = counts[counts[:, 3] >= 0], []
    for outcome in counts:
        scores = np.repeat([1.0, 0.0, 1.0, 0.0], outcome)
        flags = np.repeat([True, True, False, False], outcome)
        both = 0 < flags.sum() < 12
        bounds.append(
            run_recall_test("mia", scores, flags, 0.025, 0.0, "union").bound if both else 0.0
        )
    bounds = np.array(bounds)
    assert bounds.max() > 0
    for c in (0.0, 0.3, 0.7, 1.5):
        for real in (0.2, 0.6, 1.0):
            generated = real * np.exp(-c)
            cells = np.array([real, 1 - real, generated, 1 - generated]) / 2
            chance = multinomial.pmf(counts, 12, cells)
            assert chance[bounds > c].sum() <= 0.025 + 1e-12


def test_null_model_gives_nothing_when_the_baseline_is_as_good_and_epsilon_tilde_is_no_bound():
    """A target that never saw the members: attack and baseline see the same, epsilon~ is 0 or
    tiny.
    """
    rng, positive = np.random.default_rng(6), 0
    for _ in range(300):
        baseline, _, flags = close_generator(rng, 400, 1.5, 0.0)
        result = audit_panoramia(baseline, baseline + 1e-9 * rng.random(400), flags)
        positive += result.epsilon_tilde > 0
    assert_rate_at_most(0.05, positive, 300)
    # A blind baseline leaves all of c in the difference: epsilon~ > epsilon = 0, as the claim
    # warns.
    rng, positive = np.random.default_rng(7), 0
    for _ in range(20):
        ratio, _, flags = close_generator(rng, 2_000, 2.0, 0.0)
        positive += audit_panoramia(rng.random(2_000), ratio, flags).epsilon_tilde > 0.5
    assert positive == 20


def rare_record_game(rng, m, epsilon, rare=0.02, base=0.05):
    """epsilon-DP for adding or removing a record: "yes" with chance q e^eps on a rare record, q on
    none, q e^-eps on any other. One such mechanism per pair; the generator is the true
    distribution.

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
        bound = audit_panoramia(
            *rare_record_game(rng, 60_000, epsilon), search="anytime"
        ).c_plus_epsilon_lb
        above_add_remove += bound > epsilon
        above_replacement += bound > 2 * epsilon
    assert above_add_remove > 20
    assert above_replacement == 0


EXAMPLES = 120


def test_members_alone_are_valid_and_a_set_chosen_on_the_evaluation_is_not():
    """Null scores: any positive bound is false. The twin reports the bound it searched for."""
    rng, trials, sound, twin = np.random.default_rng(3), 100, 0, 0
    for _ in range(trials):
        selection, evaluation = (no_leakage().draw(rng, EXAMPLES) for _ in range(2))
        sound += (
            audit_output_set(selection, evaluation, rule=SelectionRule(guess="members")).epsilon > 0
        )
        rule = SelectionRule(guess="members", error_divisor=1.0)
        twin += (
            one_run_epsilon(*count_guesses(fit_output_set(evaluation, rule=rule), evaluation)) > 0
        )
    assert_rate_at_most(0.05, sound, trials)
    refused("allows", assert_rate_at_most, 0.05, twin, trials, error=AssertionError)


def test_searching_all_levels_is_valid_and_its_twin_that_estimates_on_the_evaluation_is_not():
    """Members' guesses in the order of the estimated ratio, at an epsilon of 1 and of 0."""

    def level_search(selection, judged):
        x, flags = judged.pooled()
        return run_recall_test("mia", ratio_scores(selection, x), flags, 0.05, 0.0, "anytime").bound

    rng, trials, hits = np.random.default_rng(5), 120, {"sound": 0, "null": 0, "twin": 0}
    for _ in range(trials):
        for mechanism, name in ((laplace(1.0), "sound"), (no_leakage(), "null")):
            judged = mechanism.draw(rng, EXAMPLES)
            hits[name] += level_search(mechanism.draw(rng, 60), judged) > mechanism.epsilon
        hits["twin"] += level_search(judged, judged) > 0
    for name in ("sound", "null"):
        assert_rate_at_most(0.05, hits[name], trials)
    refused("allows", assert_rate_at_most, 0.05, hits["twin"], trials, error=AssertionError)
