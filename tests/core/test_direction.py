"""A reversed direction is told, chance is not, and arrays in place of scores get a hint."""

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import binom, hypergeom, mannwhitneyu

from paperlib.core import MembershipScores, check_scores, reversed_warning
from paperlib.core.direction import REVERSED_LEVEL


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
        warning = reversed_warning(MembershipScores(members, others))
        near = levels and abs(p_value - REVERSED_LEVEL) < 0.003
        assert (warning is not None) == (p_value <= REVERSED_LEVEL) or near
        assert warning is None or levels or f"(p = {p_value:.2g})" in warning


@pytest.mark.parametrize(
    ("members", "others", "high"), [(900, 100, 1), (990, 10, 1), (990, 10, 500), (100, 900, 5)]
)
def test_the_level_holds_with_ties_and_uneven_sides(members, others, high):
    """Exact over all places of the high scores; normal theory alone is wrong ten times as often."""
    total, by_normal, by_warning = members + others, 0.0, 0.0
    for among_members in range(max(0, high - others), min(high, members) + 1):
        chance = hypergeom.pmf(among_members, total, high, members)
        if chance < 1e-12:
            continue
        member, other = np.zeros(members), np.zeros(others)
        member[:among_members], other[: high - among_members] = 1, 1
        scores = MembershipScores(member, other)
        by_warning += chance * (reversed_warning(scores) is not None)
        below = scores.auc() < 0.5
        p_value = mannwhitneyu(member, other, alternative="less", method="asymptotic").pvalue
        by_normal += chance * (below and p_value <= REVERSED_LEVEL)
    assert by_warning <= REVERSED_LEVEL + 0.002, "1,999 permutations know the level to 0.2 %"
    if (members, high) == (900, 1):
        assert by_normal > 0.09


@pytest.mark.parametrize("size", [10, 100, 1_000])
def test_chance_is_seldom_called_reversed(size):
    """At most 1 % of all scores that say nothing; the allowance errs once in a million tests."""
    trials = 1_000
    alarms = sum(reversed_warning(drawn(0.0, size, seed)) is not None for seed in range(trials))
    assert alarms <= binom.ppf(1 - 1e-6, trials, REVERSED_LEVEL)
    assert size < 100 or alarms > 0, "a test that never speaks has no power"


@pytest.mark.parametrize(("auc", "least", "most"), [(0.4, 0.95, 1), (0.6, 0, 0)])
def test_an_auc_of_two_fifths_is_called_reversed_and_one_of_three_fifths_never(auc, least, most):
    shift = np.sqrt(2) * ndtri(auc)  # of two unit normals
    warned = np.mean([reversed_warning(drawn(shift, 500, seed)) is not None for seed in range(100)])
    assert least <= warned <= most


def test_the_warning_names_the_mistakes_and_not_the_other_result():
    sides = np.arange(100.0), np.arange(80.0, 200.0)
    assert reversed_warning(MembershipScores(*sides, higher_means_member=False)) is None
    warning = reversed_warning(losses := MembershipScores(*sides))
    for word in ("AUC 0.", "reversed", "`--kind losses`", "higher_means_member", "membership column"):
        assert word in warning
    assert f"{1 - losses.auc():.3f}" not in warning


def test_what_can_show_nothing_is_not_doubted():
    for member, nonmember, count in ((1.0, 1.0, 1), (1.0, 1.0, 50), (0.0, 1.0, 1), (0.0, 1.0, 2)):
        assert reversed_warning(MembershipScores([member] * count, [nonmember] * count)) is None


def test_scores_are_passed_on_and_lists_get_a_hint():
    scores = MembershipScores([1.0], [0.0])
    assert check_scores("scores", scores) is scores
    for given in (([1.0, 2.0],), ([1.0], [0.0]), (scores, scores), (np.zeros(3), np.zeros(3))):
        with pytest.raises(ValueError, match=r"^scores: expected MembershipScores, got .* audit_losses\("):
            check_scores("scores", *given)
    with pytest.raises(ValueError, match="got 2 arguments, the first of type list; build them with"):
        check_scores("scores", [0.9], [0.1])
