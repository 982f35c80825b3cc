"""Multi-run bounds against independent oracles, published values, and inputs at the edge."""

import json
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from dp_accounting import get_epsilon_gaussian
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import betaln, ndtr
from scipy.stats import beta, binomtest, norm

from paperlib.bounds import ErrorCounts, audit_bayesian, audit_clopper_pearson, audit_gaussian_dp
from paperlib.bounds.many_runs.bayesian import posterior_cdf, posterior_quantile
from paperlib.bounds.many_runs.clopper_pearson import clopper_pearson_epsilon, epsilon_from_rates
from paperlib.bounds.many_runs.gaussian_dp import gaussian_dp_epsilon, gaussian_dp_mu
from paperlib.core import MembershipScores
from tests.refusals import refused

NUMBERS = (
    (5, 100, 50, 100),
    (0, 100, 50, 1_000),
    (0, 40, 0, 40),
    (20, 40, 20, 40),
    (3, 5_000, 4_000, 5_000),
)
SHAPES = [ErrorCounts(*numbers) for numbers in (*NUMBERS, (1, 1, 0, 1))]
AUDITS = [audit_clopper_pearson, partial(audit_gaussian_dp, delta=1e-5), audit_bayesian]


def scores(n=400, mu=1.5, seed=0):
    rng = np.random.default_rng(seed)
    return MembershipScores(rng.normal(size=n) + mu, rng.normal(size=n))


@pytest.mark.parametrize("counts", SHAPES)
@pytest.mark.parametrize("delta", [0.0, 1e-3, 0.1])
def test_clopper_pearson_by_hand(counts, delta):
    ends = [
        binomtest(errors, trials).proportion_ci(0.95, method="exact").high
        for errors, trials in (
            (counts.false_positives, counts.nonmembers),
            (counts.false_negatives, counts.members),
        )
    ]
    ratios = [max(1 - delta - a, 1e-300) / b for a, b in (ends, ends[::-1])]
    result = audit_clopper_pearson(counts, delta=delta)
    assert result.epsilon == pytest.approx(max(0.0, *np.log(ratios)), abs=1e-6)
    assert (result.false_positive_upper, result.false_negative_upper) == pytest.approx(tuple(ends))


def test_both_directions_count_rates_may_be_at_the_corners_and_bounds_broadcast():
    """Few false positives or few false negatives refute equally."""
    forward, backward = ErrorCounts(1, 1_000, 600, 1_000), ErrorCounts(600, 1_000, 1, 1_000)
    assert audit_clopper_pearson(forward).epsilon == audit_clopper_pearson(backward).epsilon > 3
    assert epsilon_from_rates(0.0, 0.5) == np.inf
    assert epsilon_from_rates(1.0, 0.0) == 0.0  # always guessing "member" shows nothing
    assert epsilon_from_rates(0.0, 1.0) == 0.0
    assert epsilon_from_rates(0.5, 0.5, 0.2) == 0.0
    grid = clopper_pearson_epsilon(np.arange(4)[:, None], 50, np.arange(3), 60)
    assert grid.shape == (4, 3)
    assert grid[2, 1] == audit_clopper_pearson(ErrorCounts(2, 50, 1, 60)).epsilon


@pytest.mark.parametrize("mu", [0.05, 0.5, 1.0, 3.0, 10.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.01])
def test_gaussian_dp_conversion(mu, delta):
    def gap(epsilon):
        return ndtr(-epsilon / mu + mu / 2) - np.exp(epsilon) * ndtr(-epsilon / mu - mu / 2) - delta

    expected = brentq(gap, 0.0, 200.0, xtol=1e-10) if gap(0.0) > 0 else 0.0
    assert gaussian_dp_epsilon(mu, delta) == pytest.approx(expected, abs=2e-6)
    assert gaussian_dp_epsilon(mu, delta) <= expected + 1e-6
    assert gaussian_dp_epsilon(mu, delta) == pytest.approx(
        get_epsilon_gaussian(1 / mu, delta), abs=1e-8
    )


def test_mu_by_hand_and_never_its_absolute_value():
    x, y = (binomtest(k, 500).proportion_ci(0.95, method="exact").high for k in (80, 90))
    assert gaussian_dp_mu(80, 500, 90, 500) == pytest.approx(norm.isf(x) - norm.ppf(y), abs=1e-8)
    assert gaussian_dp_mu(420, 500, 410, 500) == 0.0
    assert audit_gaussian_dp(ErrorCounts(420, 500, 410, 500), delta=1e-5).epsilon == 0.0


def test_mu_stands_beside_its_epsilon_rounded_down():
    """Mu is refuted whatever the curve of training is; its epsilon needs the curve to be
    Gaussian.
    """
    result = audit_gaussian_dp(ErrorCounts(159, 1_000, 500, 1_000), delta=1e-5)
    assert result.epsilon == gaussian_dp_epsilon(result.mu, 1e-5)
    assert result.to_dict()["mu"] == result.mu > 0.824
    assert "mu ≥ 0.824, epsilon of that mu 3.505" in result.headline
    assert (
        "training is not mu-GDP for any mu below 0.824; if its trade-off curve is Gaussian"
        in result.claim
    )


@pytest.mark.parametrize("counts", SHAPES)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.0), (0.7, 0.0), (2.0, 0.01), (5.0, 0.1)])
def test_posterior_against_quadrature(counts, epsilon, delta):
    """Adaptive, over the false-positive rate itself, in log-odds."""
    a, b = counts.false_positives + 0.5, counts.nonmembers - counts.false_positives + 0.5
    fnr = beta(counts.false_negatives + 0.5, counts.members - counts.false_negatives + 0.5)
    ratio, whole = np.exp(epsilon), 1 - delta

    def integrand(z):
        x = 1 / (1 + np.exp(-z))
        least = max((whole - x) / ratio, whole - ratio * x)
        log_density = -a * np.logaddexp(0, -z) - b * np.logaddexp(0, z) - betaln(a, b)
        return np.exp(log_density) * fnr.sf(least)

    kink = np.log(whole / (1 + ratio)) - np.log1p(-whole / (1 + ratio))
    points = np.unique(
        np.clip([*np.linspace(-60, 60, 61), kink, *(kink + np.linspace(-2, 2, 17))], -60, 60)
    )
    expected = sum(quad(integrand, *ends, epsabs=1e-12, limit=200)[0] for ends in pairwise(points))
    assert posterior_cdf(epsilon, counts, delta=delta) == pytest.approx(expected, abs=1e-6)
    quantile = posterior_quantile(0.05, counts, delta=delta)
    reached = posterior_cdf(quantile, counts, delta=delta)
    assert reached == pytest.approx(0.05, abs=1e-6) or (quantile == 0 and reached > 0.05)


def test_bayesian_quantiles_are_in_order():
    result = audit_bayesian(ErrorCounts(5, 100, 50, 100))
    low, high = result.interval
    assert 0 < low < result.epsilon < result.median < high
    assert "Not a confidence bound" in result.claim
    assert "audit-result" in result._repr_html_()
    assert json.loads(json.dumps(result.to_dict()))["epsilon"] == result.epsilon


def test_losses_and_scores_agree_and_the_threshold_is_inclusive_on_ties():
    data = scores()
    losses = MembershipScores(-data.member, -data.nonmember, higher_means_member=False)
    a, b = audit_clopper_pearson(data, threshold=1.0), audit_clopper_pearson(losses, threshold=-1.0)
    assert a.epsilon == b.epsilon > 0.5
    assert a.counts == b.counts
    first, second = audit_clopper_pearson(data), audit_clopper_pearson(losses)
    assert first.epsilon == second.epsilon
    assert first.threshold == -second.threshold
    counts = ErrorCounts.from_scores(MembershipScores([1.0, 1.0, 0.0], [1.0, 0.0]), 1.0)
    assert counts == ErrorCounts(1, 2, 1, 3)


@pytest.mark.parametrize("audit", AUDITS)
def test_split_counts_errors_on_unseen_scores(audit):
    result = audit(scores(), seed=4)
    assert result.counts.members + result.counts.nonmembers == 400
    assert any("seed 4" in text for text in result.assumptions)
    assert result.threshold is not None
    assert audit(scores(), seed=4).epsilon == result.epsilon > 0


@pytest.mark.parametrize("audit", AUDITS)
def test_no_signal_gives_zero(audit):
    for counts in (
        ErrorCounts(50, 100, 50, 100),
        ErrorCounts(1, 1, 1, 1),
        ErrorCounts(90, 100, 90, 100),
    ):
        assert audit(counts).epsilon == 0.0


def test_bad_counts_options_and_calls_are_refused():
    refused("false_positives", ErrorCounts, -1, 10, 0, 10)
    refused("false_positives: expected at most nonmembers = 10, got 11", ErrorCounts, 11, 10, 0, 10)
    refused("false_negatives: expected at most members = 10, got 11", ErrorCounts, 0, 10, 11, 10)
    refused("members", ErrorCounts, 0, 10, 0, 0)
    refused("whole numbers", ErrorCounts, 0.5, 10, 0, 10)
    refused("NaN", ErrorCounts, np.nan, 10, 0, 10)
    refused(r"delta.*infinite", audit_gaussian_dp, ErrorCounts(1, 10, 1, 10), delta=0.0)
    refused(
        "allowed with scores only", audit_clopper_pearson, ErrorCounts(1, 10, 1, 10), threshold=0.5
    )
    refused("too few to split", audit_clopper_pearson, MembershipScores([1.0], [0.0]))
    for audit in AUDITS:
        for name, value in {"confidence": 1.0, "delta": 1.0, "threshold": np.nan}.items():
            refused(name, audit, scores(20), **{name: value})
