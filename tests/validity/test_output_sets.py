"""Output-set audits exceed a known epsilon no more often than they may; searching on the evaluation does."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom, norm

from paperlib.bounds import audit_output_set, one_run_epsilon, ratio_scores
from paperlib.bounds.one_run.search import run_recall_test
from paperlib.bounds.output_sets.choices import METHODS, fit_output_set
from paperlib.bounds.output_sets.selection import SelectionRule
from paperlib.core import MembershipScores
from tests.validity.coverage import assert_rate_at_most

TRIALS, EXAMPLES = 4000, 120


def laplace_mixture(rng, flags):
    """Log-ratio of the two mixtures: at most 1 everywhere, 1 beyond +-2. So epsilon is 1."""
    first, second = np.where(flags, -1.0, -2.0), np.where(flags, 2.0, 1.0)
    return np.where(rng.random(flags.shape) < 0.5, first, second) + rng.laplace(size=flags.shape)


def gaussian(rng, flags):
    return 1.2 * flags + rng.normal(size=flags.shape)


def gaussian_delta(epsilon, mean=1.2):
    """Smallest delta of a Gaussian mechanism of sensitivity ``mean`` and noise 1 (Balle and Wang)."""
    return norm.cdf(mean / 2 - epsilon / mean) - np.exp(epsilon) * norm.cdf(-mean / 2 - epsilon / mean)


def leaky_response(rng, flags, epsilon=0.8, delta=0.02):
    """Randomized response that shouts the truth with probability delta: the extreme (eps, delta)-DP case."""
    answer = np.where(rng.random(flags.shape) < expit(epsilon), flags, ~flags)
    shout = np.where(flags, 5.0, -5.0)
    return np.where(rng.random(flags.shape) < delta, shout, answer + 0.01 * rng.normal(size=flags.shape))


def no_signal(rng, flags):
    return rng.normal(size=flags.shape)


CASES = {
    "laplace": (laplace_mixture, 1.0, 0.0),
    "gaussian": (gaussian, 1.5, float(gaussian_delta(1.5))),
    "leaky": (leaky_response, 0.8, 0.02),
    "null": (no_signal, 0.0, 0.0),
}


def draw(rng, mechanism, examples):
    flags = rng.random(examples) < 0.5
    scores = mechanism(rng, flags)
    return MembershipScores.from_labels(scores, flags)


def chosen_set(rng, mechanism, method, delta, examples=EXAMPLES, **settings):
    rule = SelectionRule(**settings)
    return fit_output_set(
        draw(rng, mechanism, examples), method=method, total=examples, delta=delta, rule=rule
    )


def bounds_on_fresh_scores(rng, chosen, mechanism, delta, confidence=0.95, examples=EXAMPLES):
    """One bound for each of many evaluations: the set is fixed, so the counts are vectorised."""
    flags = rng.random((TRIALS, examples)) < 0.5
    guess = chosen.guess(mechanism(rng, flags))
    correct = ((guess == 1) & flags).sum(axis=1) + ((guess == -1) & ~flags).sum(axis=1)
    guesses = (guess != 0).sum(axis=1)
    return one_run_epsilon(correct, guesses, total=examples, delta=delta, confidence=confidence)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("method", METHODS)
def test_bound_on_fresh_scores_keeps_its_error_rate(method, case):
    mechanism, epsilon, delta = CASES[case]
    rng = np.random.default_rng([METHODS.index(method), list(CASES).index(case)])
    for divisor, guess in ((1.0, "both"), (20.0, "both"), (20.0, "members")):
        chosen = chosen_set(rng, mechanism, method, delta, error_divisor=divisor, guess=guess)
        bounds = bounds_on_fresh_scores(rng, chosen, mechanism, delta)
        assert_rate_at_most(0.05, int((bounds > epsilon).sum()), TRIALS)


def test_a_laxer_level_is_caught():
    rng = np.random.default_rng(1)
    chosen = chosen_set(rng, laplace_mixture, "top_bottom", 0.0)
    bounds = bounds_on_fresh_scores(rng, chosen, laplace_mixture, 0.0, confidence=0.8)
    with pytest.raises(AssertionError, match="allows"):
        assert_rate_at_most(0.05, int((bounds > 1.0).sum()), TRIALS)


def test_delta_left_out_is_caught():
    rng = np.random.default_rng(2)
    chosen = chosen_set(rng, leaky_response, "whole", 0.0, examples=1000)
    bounds = bounds_on_fresh_scores(rng, chosen, leaky_response, 0.0, examples=1000)
    with pytest.raises(AssertionError, match="allows"):
        assert_rate_at_most(0.05, int((bounds > 0.8).sum()), TRIALS)


@pytest.mark.parametrize(
    ("method", "guess"),
    [("optimal", "both"), ("optimal", "members"), ("top_bottom", "both"), ("dp_sniper", "both")],
)
def test_whole_audit_is_valid_and_its_twin_that_selects_on_the_evaluation_is_not(method, guess):
    """Null scores: any positive bound is false. The twin reports the bound it searched for."""
    rng = np.random.default_rng(3)
    sound = twin = 0
    trials = 150
    for _ in range(trials):
        evaluation = draw(rng, no_signal, EXAMPLES)
        selection = draw(rng, no_signal, EXAMPLES)
        rule = SelectionRule(guess=guess)
        sound += audit_output_set(selection, evaluation, method=method, rule=rule).epsilon > 0
        rule = SelectionRule(guess=guess, error_divisor=1.0)
        found = fit_output_set(evaluation, method=method, total=EXAMPLES, rule=rule)
        right = (found.guess(evaluation.member) == 1).sum() + (found.guess(evaluation.nonmember) == -1).sum()
        made = (found.guess(evaluation.member) != 0).sum() + (found.guess(evaluation.nonmember) != 0).sum()
        twin += one_run_epsilon(right, made) > 0
    assert_rate_at_most(0.05, sound, trials)
    with pytest.raises(AssertionError, match="allows"):
        assert_rate_at_most(0.05, twin, trials)


def test_searching_all_levels_of_a_ratio_is_valid_and_its_twin_that_estimates_on_the_evaluation_is_not():
    """Members' guesses in the order of the estimated ratio, at an epsilon of 1 and of 0."""
    rng = np.random.default_rng(5)
    trials = 120
    hits = {"sound": 0, "null": 0, "twin": 0}
    for _ in range(trials):
        for mechanism, epsilon, name in ((laplace_mixture, 1.0, "sound"), (no_signal, 0.0, "null")):
            judged = draw(rng, mechanism, EXAMPLES)
            hits[name] += level_search(draw(rng, mechanism, 60), judged) > epsilon
        hits["twin"] += level_search(judged, judged) > 0
    for name in ("sound", "null"):
        assert_rate_at_most(0.05, hits[name], trials)
    with pytest.raises(AssertionError, match="allows"):
        assert_rate_at_most(0.05, hits["twin"], trials)


def level_search(selection, judged):
    x, flags = judged.pooled()
    return run_recall_test("mia", ratio_scores(selection, x), flags, 0.05, 0.0, "anytime").bound


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("delta", [0.0, 0.01])
def test_randomized_response_is_covered_exactly(epsilon, delta):
    """Bits as scores and any set: all outcomes enumerated, guesses of both bits or of one."""
    n = 40
    right = delta + (1 - delta) * expit(epsilon)
    for made in (n, n // 2):
        counts = np.arange(made + 1)
        bounds = one_run_epsilon(counts, made, total=n, delta=delta)
        assert binom.pmf(counts, made, right)[bounds > epsilon].sum() <= 0.05 + 1e-12


def test_900_members_and_100_nonmembers_without_signal_cannot_pass():
    rng = np.random.default_rng(4)
    hits, trials = 0, 60
    for seed in range(trials):
        uneven = MembershipScores(rng.normal(size=900), rng.normal(size=100))
        selection = draw(rng, no_signal, EXAMPLES)
        hits += audit_output_set(selection, uneven, design="game", seed=seed).epsilon > 0
    assert_rate_at_most(0.05, hits, trials)
    with pytest.raises(ValueError, match="fair coins"):
        audit_output_set(selection, uneven)
