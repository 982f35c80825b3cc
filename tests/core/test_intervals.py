"""Intervals of shares, areas and error rates against other computations and against draws."""

import json
from dataclasses import astuple

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri
from scipy.stats import binom, binomtest, norm
from scipy.stats import t as student

from paperlib.core import MembershipScores
from paperlib.core.intervals import (
    _levels,
    auc_difference_interval,
    auc_interval,
    score_measures,
    share_interval,
    tpr_interval,
    upper_rate,
)
from tests.refusals import refused
from tests.reproduction.validity.coverage import assert_rate_at_most


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
@pytest.mark.parametrize(
    ("count", "total"), [(0, 1), (0, 50), (1, 50), (25, 50), (50, 50), (3, 10_000)]
)
def test_a_share_has_the_interval_of_clopper_and_pearson(count, total, confidence):
    exact = binomtest(count, total).proportion_ci(confidence_level=confidence, method="exact")
    found = share_interval(count, total, confidence=confidence)
    assert found == pytest.approx((exact.low, exact.high), abs=1e-10)


def test_an_upper_rate_is_rounded_up_and_shares_out_of_range_are_refused():
    rate = upper_rate(3, 50, 0.05)
    assert binom.cdf(3, 50, rate) <= 0.05 < binom.cdf(3, 50, rate * (1 - 1e-9))
    assert upper_rate([0, 5], 5, 0.05).shape == (2,)
    for share, message in (
        ((4, 3), "count: expected at most total = 3, got 4"),
        ((0, 0), "at least 1"),
    ):
        with pytest.raises(ValueError, match=message):
            share_interval(*share)


def wins_of_all_pairs(member, nonmember):
    """For each pair 1, 1/2 or 0, shape (members, non-members)."""
    return (member[:, None] > nonmember) + 0.5 * (member[:, None] == nonmember)


def delong_alone(member, nonmember, confidence):
    """DeLong's interval from all pairs."""
    wins = wins_of_all_pairs(member, nonmember)
    variance = wins.mean(1).var(ddof=1) / member.size + wins.mean(0).var(ddof=1) / nonmember.size
    low, high = norm.interval(confidence, wins.mean(), np.sqrt(variance))
    return max(0.0, low), min(1.0, high)


def wilson_alone(member, nonmember, confidence):
    """The shares whose score test, with the variance scaled from DeLong's, does not reject."""
    wins = wins_of_all_pairs(member, nonmember)
    auc = wins.mean()
    terms = np.array([wins.mean(axis).var(ddof=1) / wins.shape[1 - axis] for axis in (1, 0)])
    freedom = terms.sum() ** 2 / (terms**2 / (np.array(wins.shape) - 1)).sum()
    scale = student.ppf((1 + confidence) / 2, freedom) ** 2 * terms.sum() / (auc * (1 - auc))

    def excess(share):
        return (share - auc) ** 2 - scale * share * (1 - share)

    return brentq(excess, 0, auc), brentq(excess, auc, 1)


def hanley_mcneil_alone(member, nonmember, confidence):
    """The areas whose score test does not reject, the larger of both variances for the larger
    side.
    """
    auc = wins_of_all_pairs(member, nonmember).mean()
    few, many = sorted((member.size, nonmember.size))

    def excess(area):
        two = sorted((area / (2 - area), 2 * area**2 / (1 + area)))
        pairs = area * (1 - area) + (few - 1) * (two[0] - area**2) + (many - 1) * (two[1] - area**2)
        return (area - auc) ** 2 - norm.isf((1 - confidence) / 2) ** 2 * pairs / (few * many)

    return brentq(excess, 1e-12, auc), brentq(excess, auc, 1 - 1e-12)


@pytest.mark.parametrize("confidence", [0.8, 0.99])
@pytest.mark.parametrize(
    ("members", "others", "levels", "gap"),
    [(300, 500, None, 0.4), (200, 70, 2, 1.0), (30, 400, 1, 0.0), (500, 400, None, 3.0)],
)
def test_the_interval_of_the_area_is_the_hull_of_three(members, others, levels, gap, confidence):
    rng = np.random.default_rng(members)
    member, nonmember = rng.normal(gap, 1, members), rng.normal(0, 1, others)
    if levels:
        member, nonmember = np.round(levels * member), np.round(levels * nonmember)
    three = [
        method(member, nonmember, confidence)
        for method in (delong_alone, wilson_alone, hanley_mcneil_alone)
    ]
    expected = min(low for low, _ in three), max(high for _, high in three)
    found = auc_interval(MembershipScores(member, nonmember), confidence=confidence)
    assert found == pytest.approx(expected, abs=1e-9)
    losses = MembershipScores(-member, -nonmember, higher_means_member=False)
    assert auc_interval(losses, confidence=confidence) == found


def misses_of_the_area(members, others, gap, spread=1.0, draws=400):
    """How many of the draws the interval, and DeLong's alone where it has a width, miss the true
    area of normal scores.
    """
    rng, truth = np.random.default_rng(0), float(ndtr(gap / np.hypot(1, spread)))
    missed, by_delong = 0, 0
    for _ in range(draws):
        member, other = rng.normal(gap, spread, members), rng.normal(0, 1, others)
        low, high = auc_interval(MembershipScores(member, other))
        missed += not low <= truth <= high
        if 0 < wins_of_all_pairs(member, other).mean() < 1:
            low, high = delong_alone(member, other, 0.95)
        by_delong += not low <= truth <= high
    return missed, by_delong


@pytest.mark.parametrize("gap", [0.0, 1.0, 3.0])
@pytest.mark.parametrize(("members", "others"), [(5, 5), (5, 100), (100, 10), (20, 20), (60, 60)])
def test_the_interval_of_the_area_covers_with_few_examples(members, others, gap):
    missed, by_delong = misses_of_the_area(members, others, gap)
    assert_rate_at_most(0.05, missed, 400)
    if (gap, members) == (3.0, 60):
        refused("hits", assert_rate_at_most, 0.05, by_delong, 400, error=AssertionError)


@pytest.mark.parametrize(
    ("members", "others", "gap", "spread"),
    [(300, 300, 4, 1), (300, 300, 5, 1), (250, 250, -5, 1), (300, 300, 10, 4), (300, 300, 3, 0.2)],
)
def test_the_interval_of_the_area_covers_near_0_and_1_at_any_size(members, others, gap, spread):
    """DeLong's alone, once taken from 200 of the smaller side on, covers 64 to 87 % here."""
    missed, by_delong = misses_of_the_area(members, others, gap, spread)
    assert_rate_at_most(0.05, missed, 400)
    refused("hits", assert_rate_at_most, 0.05, by_delong, 400, error=AssertionError)


def test_the_interval_of_the_area_covers_where_few_members_spread_far_on_both_sides():
    """DeLong's and Hanley and McNeil's together cover 92 % here."""
    rng, truth, missed, missed_by_two = np.random.default_rng(0), 0.5, 0, 0
    for _ in range(2_500):
        member, other = rng.normal(0, 5, 10), rng.normal(0, 1, 10)
        low, high = auc_interval(MembershipScores(member, other))
        missed += not low <= truth <= high
        if 0 < wins_of_all_pairs(member, other).mean() < 1:
            two = [method(member, other, 0.95) for method in (delong_alone, hanley_mcneil_alone)]
            missed_by_two += not min(two)[0] <= truth <= max(high for _, high in two)
    assert_rate_at_most(0.05, missed, 2_500)
    refused("hits", assert_rate_at_most, 0.05, missed_by_two, 2_500, error=AssertionError)


def test_without_a_width_pairs_give_an_exact_interval():
    apart = MembershipScores([5.0, 6, 7], [1.0, 2, 3, 4])
    low, high = auc_interval(apart)
    assert high == 1.0
    assert low**3 == pytest.approx(0.025), "three right pairs of three are then this likely"
    assert auc_interval(MembershipScores(apart.nonmember, apart.member)) == pytest.approx(
        (0.0, 1 - low)
    )
    tied = auc_interval(MembershipScores([1.0] * 3, [1.0] * 4))
    assert tied == pytest.approx((low / 2, 1 - low / 2))
    assert auc_interval(MembershipScores([2.0], [1.0, 3.0])) == (0.0, 1.0)


def test_rates_at_few_false_positives_say_when_they_cannot_be_measured_in_text_and_dictionary():
    rng = np.random.default_rng(0)
    scores = MembershipScores(rng.normal(2, 1, 400), rng.normal(0, 1, 300))
    low, high = map(astuple, score_measures(scores).rates)
    assert low == (0.001, None, None, "needs 1,000 non-members, there are 300")
    assert high == (0.01, scores.tpr_at_fpr(0.01), tpr_interval(scores, 0.01), "")
    for nonmembers, measured in ((99, 0), (100, 1), (999, 1), (1_000, 2)):
        rates = score_measures(
            MembershipScores(np.arange(10.0), np.arange(float(nonmembers)))
        ).rates
        assert sum(rate.true_positive_rate is not None for rate in rates) == measured
    found = score_measures(
        MembershipScores(np.arange(1_000.0) + 500, np.arange(1_000.0)), confidence=0.9
    )
    written = json.loads(json.dumps(found.to_dict()))
    rates = written.pop("rates")
    assert written == {
        "auc": found.auc,
        "auc_interval": list(found.auc_interval),
        "confidence": 0.9,
    }
    assert [rate["false_positive_rate"] for rate in rates] == [0.001, 0.01]
    assert "AUC 0.8750 [" in str(found)
    assert "TPR at 0.1 % FPR: 0.5010 [" in str(found)


@pytest.mark.parametrize("gap", [0, 1, 3])
@pytest.mark.parametrize(
    ("members", "others", "rate"),
    [(1_000, 1_000, 0.01), (10_000, 1_000, 0.001), (1_000, 100, 0.01)],
)
def test_a_true_positive_rate_is_covered_with_its_threshold(members, others, rate, gap):
    rng, truth = np.random.default_rng(0), float(ndtr(gap + ndtri(rate)))
    drawn = [
        MembershipScores(rng.normal(gap, 1, members), rng.normal(0, 1, others)) for _ in range(200)
    ]
    assert (
        sum(low <= truth <= high for low, high in (tpr_interval(one, rate) for one in drawn)) >= 190
    )
    fixed = (share_interval(round(one.tpr_at_fpr(rate) * members), members) for one in drawn)
    assert sum(low <= truth <= high for low, high in fixed) < 186, (
        "a threshold taken as known is too sure"
    )


def quarters(scores, rate):
    """The rule before: a quarter of the error for each end of the threshold and of the share."""
    others = np.sort(scores.nonmember)[::-1]
    ranks = np.arange(1, others.size + 1)
    strict = int(np.sum(binom.cdf(ranks - 1, others.size, rate) <= 0.0125))
    loose = int(np.sum(binom.sf(ranks - 1, others.size, rate) > 0.0125))
    edges = np.concatenate([[np.inf], others, [-np.inf]])
    counts = [int((scores.member > edges[rank]).sum()) for rank in (strict, loose + 1)]
    members = scores.member.size
    return 1 - upper_rate(members - counts[0], members, 0.0125), upper_rate(
        counts[1], members, 0.0125
    )


@pytest.mark.parametrize(
    ("members", "others", "rate", "gap", "spread"),
    [
        (20, 100, 0.01, 0.2, 1),
        (300, 300, 0.01, 0, 1),
        (1_000, 1_000, 0.01, 1, 1),
        (200, 2_000, 0.001, 0, 3),
        (50, 1_000, 0.01, 2, 1),
        (400, 400, 0.01, 3, 1),
    ],
)
def test_a_true_positive_rate_pays_for_its_threshold_once(members, others, rate, gap, spread):
    """Covered, and narrower than where each of four errors has its own quarter."""
    rng, truth = np.random.default_rng(0), float(norm.sf((norm.isf(rate) - gap) / spread))
    missed, width, by_quarters = 0, 0.0, 0.0
    for _ in range(100):
        scores = MembershipScores(rng.normal(gap, spread, members), rng.normal(0, 1, others))
        low, high = tpr_interval(scores, rate)
        missed += not low <= truth <= high
        width += high - low
        low, high = quarters(scores, rate)
        by_quarters += high - low
    assert_rate_at_most(0.05, missed, 100)
    assert width < 0.96 * by_quarters


@pytest.mark.parametrize(("others", "rate"), [(100, 0.01), (1_000, 0.001), (1_000, 0.01), (30, 0)])
def test_levels_of_thresholds_spend_the_error_exactly(others, rate):
    """Over all counts of non-members above the true threshold the chance of a miss is the error."""
    counts = np.arange(others + 1)
    for chances, law in (
        (binom.sf(counts - 1, others, rate), binom.pmf(counts, others, rate)),
        (binom.cdf(counts, others, rate)[::-1], binom.pmf(counts, others, rate)[::-1]),
    ):
        likely = chances > 1e-15
        levels = np.append(_levels(chances[likely], 0.025), np.ones(np.sum(~likely)))
        assert (np.diff(levels) >= 0).all(), "so that fewer above a threshold cost no more"
        assert law @ levels == pytest.approx(0.025, rel=1e-6)
        assert law @ levels <= 0.025


def test_a_tied_true_positive_rate_is_covered():
    rng, truth, covered = (
        np.random.default_rng(0),
        0.5,
        0,
    )  # of members above 0, and 5 % of non-members
    for _ in range(200):
        member, other = rng.choice(2, 400), rng.choice(2, 400, p=[0.95, 0.05])
        low, high = tpr_interval(MembershipScores(member, other), 0.051)
        covered += low <= truth <= high
    assert covered / 200 >= 0.95


def attack_pairs(count, members, others, gaps):
    """Scores of two attacks on the same rows, correlated by .8, members ``gaps`` above others."""
    rng = np.random.default_rng(11)
    for _ in range(count):
        shared = rng.normal(size=(2, members + others))
        both = np.stack([shared[0], 0.8 * shared[0] + 0.6 * shared[1]])
        member = both[:, :members] + np.array(gaps)[:, None]
        yield [MembershipScores(*rows) for rows in zip(member, both[:, members:], strict=True)]


def delong_difference(scores, others):
    """DeLong's interval of the difference of two areas, from all pairs."""
    wins = wins_of_all_pairs(scores.member, scores.nonmember)
    wins = wins - wins_of_all_pairs(others.member, others.nonmember)
    terms = [wins.mean(axis).var(ddof=1) / wins.shape[1 - axis] for axis in (1, 0)]
    return norm.interval(0.95, wins.mean(), np.sqrt(sum(terms)))


def test_the_interval_of_a_difference_of_areas_covers_near_1_where_delongs_does_not():
    gaps, draws = (3.0, 2.5), 600
    truth = ndtr(gaps[0] / np.sqrt(2)) - ndtr(gaps[1] / np.sqrt(2))
    misses = {"joined": 0, "delong": 0}
    for scores, others in attack_pairs(draws, 50, 50, gaps):
        for name, interval in (("joined", auc_difference_interval), ("delong", delong_difference)):
            low, high = interval(scores, others)
            misses[name] += not low <= truth <= high
    assert binomtest(misses["joined"], draws, 0.05, alternative="greater").pvalue > 0.01
    assert binomtest(misses["delong"], draws, 0.05, alternative="greater").pvalue < 0.01


def test_a_difference_of_areas_is_about_as_wide_as_delongs_where_that_holds_and_changes_sign():
    for scores, others in attack_pairs(5, 200, 200, (1.0, 0.5)):
        low, high = auc_difference_interval(scores, others)
        delong = delong_difference(scores, others)
        assert low < scores.auc() - others.auc() < high
        assert 1 < (high - low) / (delong[1] - delong[0]) < 1.1
        assert auc_difference_interval(others, scores) == pytest.approx((-high, -low))
        mirrored = MembershipScores(-others.member, -others.nonmember, higher_means_member=False)
        assert auc_difference_interval(scores, mirrored) == pytest.approx((low, high))


def test_other_rows_have_no_difference():
    with pytest.raises(ValueError, match="others: expected the scores of the same rows, 2 members"):
        auc_difference_interval(MembershipScores([1, 2], [0]), MembershipScores([1], [0, 2]))
