"""Output-set audits keep their error rate beyond the page's cases: members alone, and orders by a ratio."""

import numpy as np
import pytest

from paperlib.bounds import SelectionRule, audit_output_set, fit_output_set, one_run_epsilon, ratio_scores
from paperlib.bounds.one_run.search import run_recall_test
from paperlib.bounds.output_sets.level_sets import count_guesses
from paperlib.validity.mechanisms import laplace, no_leakage
from tests.validity.coverage import assert_rate_at_most

EXAMPLES = 120


def test_members_alone_are_valid_and_a_set_chosen_on_the_evaluation_is_not():
    """Null scores: any positive bound is false. The twin reports the bound it searched for."""
    rng, trials, sound, twin = np.random.default_rng(3), 100, 0, 0
    for _ in range(trials):
        selection, evaluation = (no_leakage().draw(rng, EXAMPLES) for _ in range(2))
        sound += audit_output_set(selection, evaluation, rule=SelectionRule(guess="members")).epsilon > 0
        rule = SelectionRule(guess="members", error_divisor=1.0)
        twin += one_run_epsilon(*count_guesses(fit_output_set(evaluation, rule=rule), evaluation)) > 0
    assert_rate_at_most(0.05, sound, trials)
    with pytest.raises(AssertionError, match="allows"):
        assert_rate_at_most(0.05, twin, trials)


def level_search(selection, judged):
    x, flags = judged.pooled()
    return run_recall_test("mia", ratio_scores(selection, x), flags, 0.05, 0.0, "anytime").bound


def test_searching_all_levels_of_a_ratio_is_valid_and_its_twin_that_estimates_on_the_evaluation_is_not():
    """Members' guesses in the order of the estimated ratio, at an epsilon of 1 and of 0."""
    rng, trials, hits = np.random.default_rng(5), 120, {"sound": 0, "null": 0, "twin": 0}
    for _ in range(trials):
        for mechanism, name in ((laplace(1.0), "sound"), (no_leakage(), "null")):
            judged = mechanism.draw(rng, EXAMPLES)
            hits[name] += level_search(mechanism.draw(rng, 60), judged) > mechanism.epsilon
        hits["twin"] += level_search(judged, judged) > 0
    for name in ("sound", "null"):
        assert_rate_at_most(0.05, hits[name], trials)
    with pytest.raises(AssertionError, match="allows"):
        assert_rate_at_most(0.05, hits["twin"], trials)
