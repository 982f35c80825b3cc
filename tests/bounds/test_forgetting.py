"""The audit of forgetting: its level by exact enumeration and by retrained models, and what it
sees.
"""

import json
from itertools import product
from math import exp

import numpy as np
import pytest

from paperlib.bounds.forgetting import ForgettingResult, audit_forgetting
from paperlib.bounds.one_run.detection import DetectionLimit
from paperlib.core import MembershipScores
from paperlib.core.results import json_ready
from paperlib.words import forgetting as words
from paperlib.words.verdict import plain_verdict
from tests.refusals import refused


def losses(forgotten, unseen) -> MembershipScores:
    return MembershipScores(forgotten, unseen, higher_means_member=False)


def never_seen(pairs: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).gamma(8, 1, pairs)


def detection_limit(result: ForgettingResult) -> DetectionLimit:
    limit = result.detection
    assert limit is not None
    return limit


def both_at_full_confidence(scores: MembershipScores) -> float:
    """The broken twin: the larger of two directions, each with the whole error."""
    return audit_forgetting(scores, confidence=0.90).epsilon


def every_outcome(pairs: int) -> list[MembershipScores]:
    """Losses of pairs that differ by 1, 2, 3 ..., for each way in which they may lean."""
    sizes = np.arange(1.0, pairs + 1)
    games = []
    for signs in product((1, -1), repeat=pairs):
        games.append(losses(-sizes * signs, np.zeros(pairs)))
    return games


@pytest.fixture(scope="module")
def outcomes() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each way in which eight pairs may lean: how many guesses are right, the bound, and that
    of the broken twin.
    """
    games = every_outcome(8)
    right = np.array([(game.member < game.nonmember).sum() for game in games])
    bounds = np.array([audit_forgetting(game).epsilon for game in games])
    broken = np.array([both_at_full_confidence(game) for game in games])
    return right, bounds, broken


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.2])
def test_the_level_holds_by_exact_enumeration(outcomes, epsilon):
    """Guesses are right as often as this epsilon lets them be: every outcome with its chance."""
    right, bounds, _ = outcomes
    share = exp(epsilon) / (1 + exp(epsilon))
    chances = share**right * (1 - share) ** (8 - right)
    assert chances.sum() == pytest.approx(1)
    assert 0 < chances @ (bounds > epsilon) <= 0.05


def test_exact_enumeration_sees_the_broken_twin(outcomes):
    _, bounds, broken = outcomes
    assert np.mean(broken > 0) > 0.05 >= np.mean(bounds > 0)


def test_no_order_of_the_pairs_changes_the_answer():
    rng = np.random.default_rng(0)
    forgotten, unseen = np.round(rng.normal(0.6, 1, 200)), np.round(rng.normal(0, 1, 200))
    leaning = forgotten - unseen
    by_leaning = np.argsort(leaning, kind="stable")
    among_equal_ones = np.lexsort((-leaning, np.abs(leaning)))
    answers = set()
    for order in (by_leaning, by_leaning[::-1], among_equal_ones, rng.permutation(200)):
        result = audit_forgetting(MembershipScores(forgotten[order], unseen[order]))
        answers.add((result.epsilon, result.guesses, result.correct))
    assert len(answers) == 1
    assert answers.pop()[0] > 0


def test_what_fits_too_well_and_too_badly_is_seen_and_named():
    unseen = never_seen(300)
    known = audit_forgetting(losses(unseen / 4, unseen))
    forced = audit_forgetting(losses(4 * unseen, unseen))
    for result, state, direction in ((known, "known", "lower"), (forced, "forced", "higher")):
        assert (result.state, result.direction, result.design) == (state, direction, "forget")
        assert result.epsilon == max(result.epsilon_known, result.epsilon_forced) > 3
        assert min(result.epsilon_known, result.epsilon_forced) == 0
        assert (result.refusals, result.adjacency, result.total) == ((), "replace", 300)
        assert result.confidence == 0.95
        assert {one.confidence for one in result.directions} == {0.975}
    scores = MembershipScores(-unseen / 4, -unseen)
    assert audit_forgetting(scores).epsilon == known.epsilon
    assert audit_forgetting(scores).direction == "higher"


def test_without_a_difference_the_state_is_empty_and_the_limit_of_detection_is_said():
    result = audit_forgetting(losses(never_seen(200), never_seen(200, seed=1)))
    assert (result.epsilon, result.state) == (0, "")
    limit = detection_limit(result)
    assert 5 < (limit.records or 0) < 30
    assert (limit.of, limit.power) == (200, 0.8)
    assert f"Had {limit.records} of 200 pairs been ranked first" in result.seen()


def test_the_limit_of_detection_is_what_real_audits_show():
    pairs = 100
    result = audit_forgetting(losses(never_seen(pairs), never_seen(pairs, 1)))
    records = detection_limit(result).records or 0
    shown = {records: 0, records // 2: 0}
    for exposed in shown:
        for seed in range(200):
            forgotten, unseen = np.random.default_rng(seed).normal(size=(2, pairs))
            forgotten[:exposed] = unseen[:exposed] - 10
            forgotten[:exposed] -= np.arange(exposed)
            shown[exposed] += audit_forgetting(losses(forgotten, unseen)).epsilon_known > 0
    assert shown[records] >= 0.7 * 200
    assert shown[records // 2] <= 0.5 * 200


def test_utility_stands_beside_the_bound_and_decides_nothing():
    scores = losses(never_seen(100) / 4, never_seen(100))
    plain, beside = audit_forgetting(scores), audit_forgetting(scores, utility=(0.9, 0.1))
    assert plain.epsilon == beside.epsilon
    assert (plain.utility, beside.utility) == (None, (0.9, 0.1))
    assert words.NO_UTILITY in plain.notes
    assert "before forgetting 0.9, after it 0.1" in " ".join(beside.notes)
    assert json.loads(json.dumps(json_ready(beside.to_dict())))["utility"] == [0.9, 0.1]


def test_the_verdict_speaks_of_forgetting_and_reads_a_claim_twice():
    known = audit_forgetting(losses(never_seen(400) / 4, never_seen(400)))
    verdict = plain_verdict(known, claimed_epsilon=1)
    assert words.GUESSED in verdict.sentences[0]
    assert verdict.refuted
    assert not plain_verdict(known, claimed_epsilon=known.epsilon - 0.5).refuted
    assert any("Train again without" in step for step in verdict.next_steps)
    nothing = audit_forgetting(losses(never_seen(100), never_seen(100, seed=1)))
    assert plain_verdict(nothing).sentences[-1] == words.NO_PROOF


def test_infinite_and_equal_scores_of_a_pair_lean_to_neither():
    infinite = np.full(50, np.inf)
    assert audit_forgetting(losses(infinite, infinite)).epsilon == 0
    assert audit_forgetting(losses(np.zeros(50), infinite)).epsilon > 1


def test_bad_input_is_refused_in_one_line():
    fine = never_seen(50)
    refused("50 forgotten records and 49 never seen", audit_forgetting, losses(fine, fine[1:]))
    refused("7 pairs are too few", audit_forgetting, losses(fine[:7], fine[:7]))
    refused("MembershipScores", audit_forgetting, fine, fine)
    scores = losses(fine, fine)
    for utility in ((0.5,), "ab", (0.5, 2.0), (float("nan"), 0.5)):
        refused("utility", audit_forgetting, scores, utility=utility)
    refused("confidence", audit_forgetting, scores, confidence=1.0)
    refused("delta", audit_forgetting, scores, delta=-0.1)


def logistic_losses(features, labels, trained, rows) -> np.ndarray:
    """Losses of some rows under a logistic regression with a little weight decay."""
    x, y = features[trained], labels[trained]
    weights = np.zeros(features.shape[1])
    for _ in range(25):  # Newton's steps
        chances = 1 / (1 + np.exp(-x @ weights))
        curvature = (x * (chances * (1 - chances))[:, None]).T @ x + 0.1 * np.eye(len(weights))
        weights -= np.linalg.solve(curvature, x.T @ (chances - y) + 0.1 * weights)
    margins = np.where(labels[rows] == 1, 1, -1) * (features[rows] @ weights)
    return np.logaddexp(0, -margins)


def retrained(seed: int, *, forgotten_in_training: bool) -> MembershipScores:
    """Pairs of a class each; the model is trained on 60 other records, and on the forgotten ones or
    again without them.
    """
    rng = np.random.default_rng(seed)
    pairs = 60
    features = rng.normal(size=(2 * pairs + 60, 40))
    labels = (features[:, 0] + rng.normal(size=len(features)) > 0).astype(float)
    labels[pairs : 2 * pairs] = labels[:pairs]  # row i and row pairs + i have one label
    heads = rng.random(pairs) < 0.5
    forgotten = np.where(heads, np.arange(pairs), pairs + np.arange(pairs))
    unseen = np.where(heads, pairs + np.arange(pairs), np.arange(pairs))
    trained = np.arange(2 * pairs, len(features))
    if forgotten_in_training:
        trained = np.append(trained, forgotten)
    return losses(
        logistic_losses(features, labels, trained, forgotten),
        logistic_losses(features, labels, trained, unseen),
    )


def test_models_trained_again_show_a_difference_in_five_of_a_hundred_at_most():
    results = [retrained(seed, forgotten_in_training=False) for seed in range(400)]
    above = sum(audit_forgetting(scores).epsilon > 0 for scores in results)
    assert 0 < above <= 28  # 7 %


def test_models_that_keep_what_they_were_to_forget_are_seen():
    results = [retrained(seed, forgotten_in_training=True) for seed in range(20)]
    assert sum(audit_forgetting(scores).epsilon > 0 for scores in results) >= 16
