"""Beside every number: the coins it assumes, the most it could have shown, and doubts about the
direction.
"""

import numpy as np
import pytest

from paperlib import bounds
from paperlib.core import MembershipScores
from paperlib.core.direction import reversed_direction
from paperlib.core.results import round_up
from paperlib.words import directions
from paperlib.words.designs import CONDITIONS

ONE_RUN = {
    "one run": bounds.audit_one_run,
    "f-DP": bounds.audit_f_dp,
    "output set": lambda scores, **options: bounds.audit_output_set(
        *scores.split(seed=1), **options
    ),
}
MANY_RUNS = {
    "Clopper-Pearson": bounds.audit_clopper_pearson,
    "Gaussian DP": lambda observed: bounds.audit_gaussian_dp(observed, delta=1e-5),
    "Bayesian": bounds.audit_bayesian,
}
OF_SCORES = {
    **ONE_RUN,
    **MANY_RUNS,
    "Epsilon*": lambda scores: bounds.epsilon_star(
        -scores.oriented().member, -scores.oriented().nonmember
    ),
}


def drawn(shift, members=210, nonmembers=190, seed=0):
    rng = np.random.default_rng(seed)
    return MembershipScores(rng.normal(shift, 1, members), rng.normal(0, 1, nonmembers))


@pytest.mark.parametrize("audit", ONE_RUN.values(), ids=ONE_RUN)
@pytest.mark.parametrize(("design", "condition"), CONDITIONS.items())
def test_the_coins_stand_beside_every_number_from_one_run(audit, design, condition):
    result = audit(drawn(2.0), design=design)
    assert result.condition == condition
    assert str(result).splitlines()[:2] == [result.headline, condition]
    neighbours = (
        "adding or removing one example" if design == "randomized" else "replacing one example"
    )
    assert neighbours in result.claim
    assert ("replacing one record" in condition) == (design != "randomized")
    assert {"randomized": "before training", "game": "drawn here", "played": "after"}[
        design
    ] in str(result)


def test_ranks_and_panoramia_have_conditions_of_their_own():
    assert "drawn uniformly from its candidate set" in bounds.audit_ranks([1] * 40, 8).condition
    flags = [1, 0] * 50
    measured, known = (
        bounds.audit_panoramia([0.0] * 100, flags, flags, known_c=c) for c in (None, 0.25)
    )
    assert measured.condition.startswith("a measurement")
    assert "c is at most 0.25" in known.condition
    assert bounds.audit_clopper_pearson(bounds.ErrorCounts(1, 9, 1, 9)).condition == ""


@pytest.mark.parametrize("audit", OF_SCORES.values(), ids=OF_SCORES)
def test_every_audit_of_scores_tells_a_reversed_direction(audit):
    scores = drawn(-1.0)
    refusals = directions.refusals(reversed_direction(scores))
    result = audit(scores)
    assert len(refusals) == 1
    assert result.refusals == refusals
    assert result.warnings[0] == refusals[0].sentence
    assert not any("reversed" in text for text in audit(drawn(1.0)).warnings)


def test_a_game_is_doubted_for_all_scores_and_a_fixed_threshold_too():
    scores = drawn(-1.0)
    refusals = directions.refusals(reversed_direction(scores))
    assert bounds.audit_one_run(scores, design="game").refusals == refusals
    assert bounds.audit_clopper_pearson(scores, threshold=0.0).refusals == refusals
    losses = bounds.epsilon_star(-scores.member, -scores.nonmember)
    assert losses.refusals == losses.trusted.refusals == refusals
    values, flags = scores.pooled()
    wrong, right = (
        bounds.audit_panoramia(np.zeros(flags.size), sign * values, flags) for sign in (1, -1)
    )
    assert "probably reversed" in wrong.warnings[0]
    assert not any("reversed" in text for text in right.warnings)


@pytest.mark.parametrize("audit", ONE_RUN.values(), ids=ONE_RUN)
@pytest.mark.parametrize("delta", [1e-5, 1e-3])
def test_a_bound_of_zero_says_what_it_could_have_been(audit, delta):
    result = audit(drawn(0.0), delta=delta)
    assert result.epsilon == 0
    assert (most := round_up(result.ceiling)) > 1
    assert f"refutes no epsilon, and could have refuted at most {most:.3f}:" in result.claim


@pytest.mark.parametrize("audit", ONE_RUN.values(), ids=ONE_RUN)
def test_too_few_examples_say_that_nothing_is_learned(audit):
    scores = MembershipScores([5.0, 6.0, 7.0], [1.0, 2.0])
    if audit is ONE_RUN["output set"]:
        scores = MembershipScores(np.arange(4.0) + 9, np.arange(4.0))
    result = audit(scores, confidence=0.99, delta=1e-9)
    assert result.epsilon == result.ceiling == 0
    assert "cannot refute any epsilon" in result.claim
    assert "nothing is learned" in result.claim
    assert "consistent with perfect privacy" not in result.claim


@pytest.mark.parametrize("guess", ["both", "members", "nonmembers", "grid", "adaptive"])
@pytest.mark.parametrize("delta", [0.0, 1e-4])
def test_the_ceiling_is_what_perfect_scores_show(guess, delta):
    perfect = MembershipScores(np.arange(100.0) + 200, np.arange(100.0))
    result = bounds.audit_one_run(perfect, guess=guess, delta=delta)
    assert result.epsilon <= result.ceiling
    if guess != "adaptive":
        assert result.epsilon == pytest.approx(result.ceiling)
    assert f"at most {round_up(result.ceiling):.3f}" in result.notes[0]


@pytest.mark.parametrize("guess", ["both", "members"])
@pytest.mark.parametrize("family", ["gaussian", "laplace", "approximate"])
def test_the_ceiling_of_a_curve_is_what_perfect_scores_show(guess, family):
    perfect = MembershipScores(np.arange(64.0) + 200, np.arange(64.0))
    result = bounds.audit_f_dp(perfect, guess=guess, family=family)
    assert result.epsilon == pytest.approx(result.ceiling)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("thresholds", ["anytime", "dyadic", "bonferroni", "split", 0.5])
def test_no_bound_exceeds_its_ceiling(thresholds, seed):
    rng = np.random.default_rng(seed)
    scores = drawn(float(rng.exponential(3)), 20, 25, seed)
    for guess in ("both", "members", "nonmembers"):
        for delta in (0.0, 1e-3):
            result = bounds.audit_one_run(scores, guess=guess, thresholds=thresholds, delta=delta)
            assert result.epsilon <= result.ceiling + 1e-9
    for audit in (bounds.audit_f_dp, ONE_RUN["output set"]):
        result = audit(scores, delta=1e-3)
        assert result.epsilon <= result.ceiling + 1e-9


@pytest.mark.parametrize("delta", [0.0, 1e-4])
@pytest.mark.parametrize("guess", ["both", "members", "nonmembers", "grid", "adaptive"])
@pytest.mark.parametrize("thresholds", [None, "anytime", "dyadic", "bonferroni", "split", 1.0, 0.0])
def test_tied_scores_show_nothing_and_do_not_fail(guess, thresholds, delta):
    if guess == "grid" and thresholds not in (None, "bonferroni"):
        return
    ties = MembershipScores([1.0] * 50, [1.0] * 50)
    result = bounds.audit_one_run(ties, guess=guess, thresholds=thresholds, delta=delta)
    assert result.epsilon == 0
    assert np.isfinite(result.curve.bound).all()
    assert result.ceiling > 0
    assert "could have refuted at most" in result.claim


@pytest.mark.parametrize("audit", MANY_RUNS.values(), ids=MANY_RUNS)
def test_error_counts_that_refute_nothing_say_what_they_could_have_refuted(audit):
    best = audit(bounds.ErrorCounts(0, 100, 0, 100)).epsilon
    claim = audit(bounds.ErrorCounts(50, 100, 50, 100)).claim
    assert f"could have refuted at most {round_up(best):.3f}, without an error" in claim
    few = audit(bounds.ErrorCounts(1, 1, 1, 1)).claim
    assert ("nothing is learned" in few) == (audit(bounds.ErrorCounts(0, 1, 0, 1)).epsilon <= 0)
    assert "could have" not in audit(bounds.ErrorCounts(0, 100, 0, 100)).claim


def test_ranks_that_refute_nothing_say_what_they_could_have_refuted():
    for options in ({}, {"margins": np.arange(200.0)}, {"delta_term": "sharp", "delta": 1e-6}):
        best, nothing = (bounds.audit_ranks([rank] * 200, 8, **options) for rank in (1, 8))
        assert best.epsilon > 2
        assert f"could have been at most {round_up(best.epsilon):.3f}" in nothing.claim
        assert "could have" not in best.claim
    assert "nothing is learned" in bounds.audit_ranks([1] * 20, 2, top=2).claim


def test_panoramia_that_shows_nothing_says_what_it_could_have_shown():
    flags = np.tile([1, 0], 50)
    silent = np.tile([0.0, 1.0], 50)
    measured = bounds.audit_panoramia(silent, silent, flags)
    assert f"c + epsilon of at most {round_up(measured.ceiling):.3f}" in measured.claim
    known = bounds.audit_panoramia(silent, silent, flags, known_c=0.5)
    assert f"could have refuted at most {round_up(known.ceiling - 0.5):.3f}" in known.claim
    for known_c in (None, 0.0):
        few = bounds.audit_panoramia([0.0] * 4, [0.0] * 4, [1, 0, 1, 0], known_c=known_c)
        assert few.ceiling == 0
        assert "nothing is learned" in few.claim
    assert "at most" not in bounds.audit_panoramia(silent, flags, flags).claim


@pytest.mark.parametrize("given", [[1.0, 2.0], np.zeros(3)], ids=["list", "array"])
def test_lists_in_place_of_scores_get_a_hint(given):
    alone = (bounds.audit_one_run, bounds.audit_f_dp, *MANY_RUNS.values(), bounds.fit_output_set)
    calls = [(audit, (given,)) for audit in alone]
    calls += [
        (bounds.audit_output_set, pair) for pair in ((given, drawn(1.0)), (drawn(1.0), given))
    ]
    for audit, arguments in calls:
        with pytest.raises(
            ValueError, match=r"expected MembershipScores.*MembershipScores\(member, nonm"
        ):
            audit(*arguments)
