"""`MembershipScores`: orientation, splits, files, refusals, and a warning of a reversed
direction.
"""

import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.special import ndtri
from scipy.stats import binom, hypergeom, mannwhitneyu

from paperlib.audits import audit_scores
from paperlib.bounds import audit_one_run
from paperlib.core import MembershipScores, unit_means
from paperlib.core.direction import REVERSED_LEVEL, check_scores, reversed_direction
from paperlib.core.facts import RefusalCode
from paperlib.words import directions
from tests.refusals import refused


def test_arrays_are_kept_as_given_and_read_only_and_lists_get_a_hint():
    given = np.array([1.0, 2.0])
    scores = MembershipScores(given, [0], higher_means_member=False)
    given[0] = 9
    assert scores.member.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="read-only"):
        scores.member[0] = 3
    assert check_scores("scores", scores) is scores
    for given in (([1.0, 2.0],), (scores, scores), (np.zeros(3), np.zeros(3))):
        refused(
            r"^scores: expected MembershipScores, got .* audit_losses\(",
            check_scores,
            "scores",
            *given,
        )
    refused(
        "got 2 arguments, the first of type list; build them with",
        check_scores,
        "scores",
        [0.9],
        [0.1],
    )


def test_auc_is_the_mann_whitney_statistic_and_roc_has_one_point_per_distinct_score():
    rng = np.random.default_rng(0)
    member, nonmember = rng.integers(0, 9, 300), rng.integers(0, 7, 200)
    expected = mannwhitneyu(member, nonmember).statistic / (300 * 200)
    assert MembershipScores(member, nonmember).auc() == pytest.approx(expected)
    losses = MembershipScores(-member, -nonmember, higher_means_member=False)
    assert losses.auc() == pytest.approx(expected)
    fpr, tpr, thresholds = MembershipScores([2, 1, 1], [1, 0]).roc()
    assert fpr.tolist() == [0, 0, 0.5, 1]
    assert tpr.tolist() == pytest.approx([0, 1 / 3, 1, 1])
    assert thresholds.tolist() == [np.inf, 2, 1, 0]


def test_split_is_disjoint_complete_seeded_and_blind_to_membership():
    scores = MembershipScores(np.arange(60.0), np.arange(100.0, 160))
    first, second = scores.split(seed=3)
    every = np.concatenate([first.member, first.nonmember, second.member, second.nonmember])
    assert sorted(every) == [*np.arange(60.0), *np.arange(100.0, 160)]
    assert scores.split(seed=3)[0].member.tolist() == first.member.tolist()
    sizes = {scores.split(seed=seed)[0].member.size for seed in range(20)}
    assert len(sizes) > 1  # a split stratified by membership would always take 30
    refused("too few", MembershipScores([1.0], [2.0]).split)
    refused("fraction", scores.split, 1.0)


def test_tensors_and_nullable_flags_are_read():
    tensor = torch.tensor([1.0, 2.5], requires_grad=True)
    scores = MembershipScores(tensor, tensor.detach().bfloat16())
    assert scores.member.tolist() == scores.nonmember.tolist() == [1.0, 2.5]
    nullable = pd.array([True, False], dtype="boolean")  # for numpy an array of objects
    for flags in (torch.tensor([True, False]), nullable, pd.Series(nullable)):
        assert MembershipScores.from_labels(tensor, flags).member.tolist() == [1.0]
    missing = pd.array([True, None], dtype="boolean")
    for flags in (missing, pd.Series(missing)):
        refused("membership: ", MembershipScores.from_labels, [1, 2], flags)


def test_bad_scores_and_labels_are_refused():
    for build, first, second, message in (
        (
            MembershipScores,
            [1, np.nan, np.nan],
            [1],
            r"member scores: 2 of 3 .* NaN \(first at index 1\)",
        ),
        (MembershipScores, [1], [np.inf, np.nan], "nonmember scores: 1 of 2 values are NaN"),
        (MembershipScores, [], [1], "member scores: expected at least 1"),
        (MembershipScores, [[1]], [1], "1-D"),
        (MembershipScores, ["a"], [1], "real numbers"),
        (MembershipScores, [1], [None], "real numbers"),
        (MembershipScores, [1], [10**400], r"nonmember scores: expected numbers up to 1\.8e\+308"),
        (
            MembershipScores,
            np.ma.masked_greater([1.0, 2.0], 1),
            [1],
            "member scores: some values are masked",
        ),
        (
            MembershipScores.from_labels,
            [1, 2],
            np.ma.masked_equal([0, 1], 1),
            "membership: some values are",
        ),
        (MembershipScores.from_labels, [1, 2], [1], "expected 2 values"),
        (MembershipScores.from_labels, [1, 2], [1, 2], "only 0 and 1"),
        (MembershipScores.from_labels, [1, 2], [1, 1], "both classes"),
    ):
        refused(message, build, first, second)


@pytest.mark.parametrize("higher", [True, False])
def test_infinite_scores_are_the_largest_and_the_smallest(higher):
    """Log odds of confidence 1 are infinite: without these rows 2.003 became 1.112."""
    rng = np.random.default_rng(5)
    member, nonmember = rng.normal(1, 1, 200), rng.normal(0, 1, 200)
    member[:60], nonmember[:5] = np.inf, -np.inf
    sign = 1 if higher else -1
    scores = MembershipScores(sign * member, sign * nonmember, higher_means_member=higher)
    large = MembershipScores(
        np.nan_to_num(sign * member, posinf=1e9, neginf=-1e9),
        np.nan_to_num(sign * nonmember, posinf=1e9, neginf=-1e9),
        higher_means_member=higher,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert scores.auc() == large.auc()
        assert scores.tpr_at_fpr(0.01) == large.tpr_at_fpr(0.01)
        for infinite, finite in zip(scores.roc()[:2], large.roc()[:2], strict=True):
            assert infinite.tolist() == finite.tolist()
        for guess in ("adaptive", "both", "members", "nonmembers"):
            bound = audit_one_run(scores, guess=guess, design="game").epsilon
            assert bound == audit_one_run(large, guess=guess, design="game").epsilon
        audits = audit_scores(scores, design="game")
    dropped = MembershipScores(sign * member[60:], sign * nonmember[5:], higher_means_member=higher)
    assert audits.headline.epsilon > audit_one_run(dropped, design="game").epsilon + 0.5
    reasons = [audit.refused for audit in audits if audit.result is None]
    assert reasons  # what computes with scores says that it cannot
    assert all("values are infinite" in reason for reason in reasons)


def test_a_unit_of_both_infinities_has_no_mean():
    refused("inf and of -inf", unit_means, np.array([np.inf, -np.inf, 1.0]), ["a", "a", "b"])
    assert unit_means(np.array([np.inf, 2.0, 1.0]), ["a", "a", "b"])[0].tolist() == [np.inf, 1.0]


def test_the_direction_can_be_given_in_two_ways_that_must_agree(tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text("value,member\n1,1\n2,0\n")
    refused(
        "does a high value of column 'value' point to a member", MembershipScores.from_file, path
    )
    for higher, kind in ((True, "scores"), (False, "losses")):
        direction = {"higher_means_member": higher}
        for options in ({"kind": kind}, direction, {"kind": kind, **direction}):
            assert MembershipScores.from_file(path, **options).higher_means_member is higher
    with pytest.raises(ValueError, match="higher_means_member: True contradicts kind='losses'"):
        MembershipScores.from_file(path, kind="losses", higher_means_member=True)


def thresholds_by_hand(member, nonmember, rate):
    """Largest true-positive rate of "above t" over every t that at most this share of non-members
    exceeds.
    """
    cuts = np.concatenate([[-np.inf], member, nonmember])
    allowed = [t for t in cuts if (nonmember > t).sum() <= int(rate * nonmember.size)]
    return max(float((member > t).mean()) for t in allowed if np.isinf(t) or t in nonmember)


@pytest.mark.parametrize("levels", [1, 2, 5, 10_000])
def test_tpr_at_fpr_is_the_best_threshold_among_the_nonmembers(levels):
    rng = np.random.default_rng(levels)
    member, nonmember = rng.integers(0, levels, 150) / 7, rng.integers(0, levels, 90) / 7
    losses = MembershipScores(-member, -nonmember, higher_means_member=False)
    for rate in (0.0, 0.01, 0.3, 0.99, 1.0):
        expected = thresholds_by_hand(member, nonmember, rate)
        assert MembershipScores(member, nonmember).tpr_at_fpr(rate) == expected
        assert losses.tpr_at_fpr(rate) == expected
    for rate in (-0.1, 1.1, float("nan")):
        refused("false_positive_rate", losses.tpr_at_fpr, rate)


@pytest.mark.parametrize("higher", [True, False])
def test_a_table_of_scores_is_read_back_with_its_direction(tmp_path, higher):
    scores = MembershipScores([1.0, 2.0], [0.5], higher_means_member=higher)
    scores.to_frame().to_csv(tmp_path / "scores.csv", index=False)
    again = MembershipScores.from_csv(tmp_path / "scores.csv")
    assert (again.member.tolist(), again.nonmember.tolist()) == ([1.0, 2.0], [0.5])
    assert again.higher_means_member is higher


def drawn(shift, size, seed):
    rng = np.random.default_rng([seed, size])
    return MembershipScores(rng.normal(shift, 1, size), rng.normal(0, 1, size))


@pytest.mark.parametrize("levels", [3, 10, None])
def test_the_test_is_mann_whitney_s_with_ties(levels):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        members, others = rng.normal(-0.3, 1, 60), rng.normal(0, 1, 90)
        if levels:
            members, others = np.round(levels * members), np.round(levels * others)
        p_value = mannwhitneyu(members, others, alternative="less", method="asymptotic").pvalue
        warning = reversed_direction(MembershipScores(members, others))
        near = levels and abs(p_value - REVERSED_LEVEL) < 0.003
        assert (warning is not None) == (p_value <= REVERSED_LEVEL) or near
        assert warning is None or levels or warning.p_value == pytest.approx(p_value)


@pytest.mark.parametrize(
    ("members", "others", "high"), [(900, 100, 1), (990, 10, 1), (990, 10, 500), (100, 900, 5)]
)
def test_the_level_holds_with_ties_and_uneven_sides(members, others, high):
    """Exact over all places of the high scores; normal theory alone is wrong ten times as often."""
    total, by_warning, by_normal = members + others, 0.0, 0.0
    for among_members in range(max(0, high - others), min(high, members) + 1):
        chance = hypergeom.pmf(among_members, total, high, members)
        if chance < 1e-12:
            continue
        member, other = np.zeros(members), np.zeros(others)
        member[:among_members], other[: high - among_members] = 1, 1
        by_warning += chance * (reversed_direction(MembershipScores(member, other)) is not None)
        p_value = mannwhitneyu(member, other, alternative="less", method="asymptotic").pvalue
        by_normal += chance * (p_value <= REVERSED_LEVEL)
    assert by_warning <= REVERSED_LEVEL + 0.002, "1,999 permutations know the level to 0.2 %"
    assert by_normal > 0.09 or (members, high) != (900, 1)


@pytest.mark.parametrize("tests", [1, 25, 100])
def test_a_clear_reversal_of_few_scores_is_named_among_any_number_of_tests(tests):
    """1,999 permutations cannot go below 0.0005, which 25 tests ask for more than."""
    turned = MembershipScores(np.arange(30.0), np.arange(30.0) + 40)
    assert reversed_direction(turned, tests=tests) is not None


@pytest.mark.parametrize("size", [10, 200])
def test_chance_is_seldom_called_reversed(size):
    """At most 1 % of all scores that say nothing; the allowance errs once in a million tests."""
    trials = 2_000
    alarms = sum(reversed_direction(drawn(0.0, size, seed)) is not None for seed in range(trials))
    assert alarms <= binom.ppf(1 - 1e-6, trials, REVERSED_LEVEL)
    assert size < 100 or alarms > 0, "a test that never speaks has no power"


@pytest.mark.parametrize(("auc", "least", "most"), [(0.4, 0.955, 1), (0.6, 0, 0)])
def test_an_auc_of_two_fifths_is_called_reversed_and_one_of_three_fifths_never(auc, least, most):
    shift = np.sqrt(2) * ndtri(auc)  # of two unit normals
    warned = np.mean(
        [reversed_direction(drawn(shift, 500, seed)) is not None for seed in range(200)]
    )
    assert least <= warned <= most


def test_the_warning_names_the_mistakes_and_doubts_nothing_that_shows_nothing():
    sides = np.arange(100.0), np.arange(80.0, 200.0)
    assert reversed_direction(MembershipScores(*sides, higher_means_member=False)) is None
    losses = MembershipScores(*sides)
    reversal = reversed_direction(losses)
    assert reversal.auc == losses.auc() < 0.5
    (refusal,) = directions.refusals(reversal, None)
    assert refusal.code == RefusalCode.REVERSED
    for word in (
        "AUC 0.",
        "reversed",
        "`--kind losses`",
        "higher_means_member",
        "membership column",
    ):
        assert word in refusal.sentence
    assert f"{1 - losses.auc():.3f}" not in refusal.sentence
    for member, nonmember, count in ((1.0, 1.0, 1), (1.0, 1.0, 50), (0.0, 1.0, 1), (0.0, 1.0, 2)):
        assert reversed_direction(MembershipScores([member] * count, [nonmember] * count)) is None


def test_memberships_in_the_place_of_scores_and_rows_in_another_order_are_refused():
    losses, flags = np.random.default_rng(0).random(40), np.arange(40) % 2
    refused("give MembershipScores.from_labels", MembershipScores, losses, flags)
    MembershipScores(np.arange(40), flags)  # numbers of right answers
    series = pd.Series(losses)
    refused("in another order", MembershipScores.from_labels, series[::-1], pd.Series(flags))
    MembershipScores.from_labels(series[::-1].reset_index(drop=True), pd.Series(flags))
