"""One-run audits: printed values, brute force, invariances, refusals."""

from functools import partial

import numpy as np
import pytest
from scipy.stats import binom

from paperlib.bounds import audit_one_run, one_run_epsilon, one_run_p_value
from paperlib.bounds.one_run.fair_coins import fair_coin_p_value, game_size
from paperlib.bounds.one_run.guesses import dyadic_counts, guess_path
from paperlib.bounds.one_run.tails import random_count_p_value, refuted_log_odds
from paperlib.core import MembershipScores
from tests.refusals import refused

SEARCHES = ("anytime", "dyadic", "bonferroni", "split")


def gaussian_scores(m):
    """Seeded scores of known audits: fair coins, unit normals, members shifted by one."""
    rng = np.random.default_rng(20250 + m)
    labels = rng.integers(0, 2, m)
    return MembershipScores.from_labels(rng.normal(size=m) + labels, labels)


@pytest.mark.parametrize(
    ("counts", "options", "value"),
    [
        ((90, 100), {}, 1.630823),
        ((100, 100), {}, 3.492965),
        ((5200, 10000), {}, 0.046924),
        ((50, 100), {}, 0.0),
        ((900, 1000), {"delta": 1e-6}, 2.020646),
        ((900, 1000), {"delta": 1e-5}, 2.015194),
        ((900, 1000), {"delta": 1e-4}, 1.927656),
        ((900, 1000), {"delta": 1e-4, "sides": 1}, 1.986206),
    ],
)
def test_check_values_of_counts(counts, options, value):
    assert one_run_epsilon(*counts, total=10_000, **options) == pytest.approx(value, abs=1e-6)


@pytest.mark.parametrize(("delta", "least"), [(0, (1.47, 2.15, 2.57)), (1e-5, (1.45, 1.84, 2.45))])
def test_power_of_the_default_search(delta, least):
    for m, bound in zip((1_000, 10_000, 100_000), least, strict=True):
        assert audit_one_run(gaussian_scores(m), delta=delta, guess="members").epsilon >= bound


@pytest.mark.parametrize(
    ("m", "value", "dyadic"),
    [(1000, 1.285247, 1.521651), (10_000, 1.070357, 2.099747), (100_000, 1.151502, None)],
)
def test_values_of_a_fixed_threshold_at_small_delta_and_of_dyadic_counts(m, value, dyadic):
    """The values of counts fixed in advance; the audit pays for a random count, but half of
    delta.
    """
    found = audit_one_run(gaussian_scores(m), delta=1e-5, guess="members", thresholds=1.0)
    counts = found.correct, found.guesses
    assert one_run_epsilon(*counts, total=m, delta=1e-5) == pytest.approx(value, abs=1e-6)
    p_value = partial(random_count_p_value, level=0.05)
    paid = refuted_log_odds(*counts, 0.05, m * 1e-5 / 2, p_value)
    assert found.epsilon == pytest.approx(float(paid), abs=1e-9)
    if dyadic is not None:
        found = audit_one_run(gaussian_scores(m), guess="members", thresholds="dyadic")
        assert found.epsilon == pytest.approx(dyadic, abs=1e-6)


def test_counts_broadcast():
    table = one_run_epsilon(np.array([[90], [95]]), np.array([100, 120]))
    assert table.shape == (2, 2)
    assert table[0, 0] == one_run_epsilon(90, 100)
    assert one_run_p_value([90, 50], 100, [[1.0], [2.0], [3.0]]).shape == (3, 2)


def test_both_path_is_top_k_and_bottom_k():
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 2, 40)
    values = rng.normal(size=40)
    path = guess_path(MembershipScores.from_labels(values, labels), "both")
    ordered = labels[np.argsort(-values)]
    right = [ordered[:k].sum() + (1 - ordered[-k:]).sum() for k in range(1, 21)]
    assert (path.guesses.tolist(), path.correct.tolist()) == (list(range(2, 41, 2)), right)


def test_tied_blocks_enter_whole():
    scores = MembershipScores([3, 2, 2, 1], [2, 1, 1, 0])
    top = guess_path(scores, "members")
    assert top.guesses.tolist() == [1, 4, 7, 8]
    assert top.correct.tolist() == [1, 3, 4, 4]
    assert (guess_path(scores, "both").guesses <= 8).all()
    binary = guess_path(MembershipScores([1] * 9 + [0], [0] * 7 + [1]), "both")
    assert (binary.guesses[-1], binary.correct[-1]) == (18, 16)


def test_grid_path_depends_on_m_alone():
    assert dyadic_counts(1000).tolist() == [1000, 500, 250, 125, 62, 31, 15]
    assert dyadic_counts(5).tolist() == [5]
    rng = np.random.default_rng(4)
    paths = [
        guess_path(MembershipScores(rng.normal(size=50), rng.normal(size=50)), "grid")
        for _ in range(2)
    ]
    np.testing.assert_array_equal(paths[0].as_member, paths[1].as_member)
    np.testing.assert_array_equal(paths[0].as_nonmember, paths[1].as_nonmember)


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("guess", ["both", "members"])
def test_order_shift_scale_and_direction_do_not_matter(search, guess):
    scores = gaussian_scores(1000)
    reference = audit_one_run(scores, thresholds=search, guess=guess).epsilon
    moved = MembershipScores(5 + 3 * scores.member, 5 + 3 * scores.nonmember)
    flipped = MembershipScores(-scores.member, -scores.nonmember, higher_means_member=False)
    for same in (moved, flipped):
        found = audit_one_run(same, thresholds=search, guess=guess).epsilon
        assert found == pytest.approx(reference, abs=1e-9)
    if search != "split":
        shuffled = MembershipScores(scores.member[::-1], scores.nonmember[::-1])
        assert audit_one_run(shuffled, thresholds=search, guess=guess).epsilon == reference


@pytest.mark.parametrize("search", SEARCHES)
def test_curve_maximum_is_the_bound(search):
    result = audit_one_run(gaussian_scores(1000), thresholds=search, delta=1e-6)
    assert result.curve.bound.max() == pytest.approx(result.epsilon, abs=1e-7)
    assert list(result.curve.columns) == ["guesses", "correct", "threshold", "bound"]


def test_operating_point_recomputes_the_reported_counts():
    scores = gaussian_scores(1000)
    result = audit_one_run(scores, guess="both")
    right = (scores.member >= result.high).sum() + (scores.nonmember <= result.low).sum()
    wrong = (scores.nonmember >= result.high).sum() + (scores.member <= result.low).sum()
    assert (right, right + wrong) == (result.correct, result.guesses)
    assert result.false_positive_rate == (scores.nonmember >= result.high).mean()


def test_unfair_counts_are_refused_with_advice():
    rng = np.random.default_rng(0)
    scores = MembershipScores(rng.normal(size=900), rng.normal(size=100))
    refused(r"900 members and 100 non-members.*design=\"game\"", audit_one_run, scores)
    played = audit_one_run(scores, design="game")
    assert played.total == game_size(100)
    assert "one distribution" in played.assumptions[0]


def test_fair_coin_p_value_is_the_two_sided_binomial():
    for a, b in [(500, 500), (520, 480), (900, 100), (1, 0)]:
        expected = min(1.0, 2 * binom.sf(max(a, b) - 1, a + b, 0.5))
        assert fair_coin_p_value(a, b) == pytest.approx(expected, rel=1e-9)


def test_bad_counts_are_refused():
    refused("correct: expected at most guesses", one_run_epsilon, correct=11, guesses=10)
    refused("correct: expected at least 0", one_run_epsilon, correct=-1, guesses=10)
    refused("whole numbers", one_run_epsilon, correct=1.5, guesses=10)
    refused("total", one_run_epsilon, correct=9, guesses=10, delta=1e-5)
    refused("guesses: expected at most total", one_run_epsilon, correct=9, guesses=10, total=5)
    refused("delta", one_run_epsilon, correct=9, guesses=10, delta=1.0, total=10)
    refused("confidence", one_run_epsilon, correct=9, guesses=10, confidence=1.0)
    refused("delta_term", one_run_epsilon, correct=9, guesses=10, delta_term="exact")
    refused("sides", one_run_epsilon, correct=9, guesses=10, sides=3)
    for epsilon in ([-0.1, 1.0], np.nan, np.inf):
        refused("epsilon: expected finite numbers of at least 0", one_run_p_value, 9, 10, epsilon)


def test_bad_options_are_refused():
    refused("guess: expected one of", audit_one_run, gaussian_scores(1000), guess="all")
    refused("design", audit_one_run, gaussian_scores(1000), design="none")
    refused("thresholds", audit_one_run, gaussian_scores(1000), thresholds="best")
    refused("thresholds", audit_one_run, gaussian_scores(1000), thresholds=np.inf)
    refused("thresholds", audit_one_run, gaussian_scores(1000), guess="grid", thresholds=1.0)
    refused("delta", audit_one_run, gaussian_scores(1000), delta=1.0)
    refused("confidence", audit_one_run, gaussian_scores(1000), confidence=95)


@pytest.mark.parametrize(
    "how", [{"thresholds": "dyadic"}, {"thresholds": "bonferroni"}, {"guess": "grid"}]
)
def test_ties_at_positive_delta_are_named_where_they_matter(how):
    scores = gaussian_scores(400)
    tied = MembershipScores(np.round(scores.member), np.round(scores.nonmember))

    def said(audited, **more):
        return any("chooses ties" in text for text in audit_one_run(audited, **more).assumptions)

    assert said(tied, delta=1e-6, **how)
    assert not said(tied, **how)
    assert not said(scores, delta=1e-6, **how)
    assert not said(tied, delta=1e-6)
