"""Epsilon*: check values, brute force, invariances, edges and bad input."""

import json
import math

import numpy as np
import pytest
from scipy.stats import norm

from paperlib.bounds import epsilon_star, epsilon_star_from_rates, epsilon_star_normals
from paperlib.bounds.loss_rates import intervals as intervals
from paperlib.bounds.loss_rates.rates import (
    EMPIRICAL_RANGE,
    TERMS,
    best_empirical_threshold,
    fit_normal,
)
from tests.refusals import refused


def gammas(n, shift, seed=0):
    rng = np.random.default_rng(seed)
    return rng.gamma(2, 5, n), rng.gamma(2 + shift, 5, n)


def definition(tpr, fnr, fpr, tnr, delta):
    """Equation 7, term by term, in plain floats."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = [
            (tpr - delta) / fpr,
            (tnr - delta) / fnr,
            (fnr - delta) / tnr,
            (fpr - delta) / tpr,
        ]
    return math.log(max(1.0, *(float(np.nanmax(r)) for r in ratios)))


def test_normals_give_the_check_values_also_where_tails_underflow_and_refuse_bad_input():
    for population, expected in (((3, 1), 9.239367), ((0.5, 1), 1.993091), ((0.5, 1.2), 4.433481)):
        assert round(epsilon_star_normals(0, 1, *population, delta=1e-5), 6) == expected
    assert epsilon_star_normals(1, 2, 1, 2, delta=1e-6) == 0
    assert epsilon_star_normals(0, 1, 100, 1, delta=1e-5) == pytest.approx(
        math.log((1 - 2e-5) / 1e-5)
    )
    meeting = 2 * -norm.ppf(1e-3)
    limit = math.log((1 - 2e-3) / 1e-3)
    assert epsilon_star_normals(0, 1, meeting * (1 - 1e-9), 1, delta=1e-3) == pytest.approx(
        limit, abs=1e-6
    )
    assert epsilon_star_normals(0, 1, meeting * (1 + 1e-9), 1, delta=1e-3) == pytest.approx(limit)
    assert epsilon_star_normals(0, 1, 0, 1, delta=0) == 0
    assert epsilon_star_normals(0, 1, 0, 1.1, delta=0) == math.inf
    assert epsilon_star_normals(0, 1, 5, 1, delta=0.4) == 0
    # At delta = 1e-280 the rates are near the smallest float, and ratios of cdfs would not do.
    value = epsilon_star_normals(0, 1, 1, 1, delta=1e-280)
    edge = -norm.ppf(1e-280)
    expected = norm.logsf(edge - 1) - norm.logsf(edge)
    assert value == pytest.approx(expected, abs=1e-6)
    refused(
        "std_train: expected a finite number above 0", epsilon_star_normals, 0, 0, 1, 1, delta=1e-5
    )
    refused("std_population", epsilon_star_normals, 0, 1, 1, math.inf, delta=1e-5)
    refused("mean_train", epsilon_star_normals, math.nan, 1, 1, 1, delta=1e-5)
    refused("below 0.5", epsilon_star_normals, 0, 1, 1, 1, delta=0.5)
    refused("delta", epsilon_star_normals, 0, 1, 1, 1, delta=-0.1)
    refused("out of all proportion", epsilon_star_normals, 0, 1e-200, 1, 1e200, delta=1e-5)


@pytest.mark.parametrize("delta", [1e-7, 1e-5, 1e-3, 0.05])
@pytest.mark.parametrize(
    "pair",
    [
        (0, 1, 0.5, 1),
        (0, 1, -1, 1.0001),
        (2, 1, 2, 1.5),
        (7, 0.3, 6.5, 0.2),
        (1, 5, 3, 0.5),
        (0, 1, 2, 1.02),
    ],
)
def test_normals_match_a_dense_grid(pair, delta):
    """The supremum on a fine grid with the allowed ends added, from scipy's own normals."""
    train, population = norm(*pair[:2]), norm(*pair[2:])
    ends = [f(q) for f in (train.ppf, population.ppf) for q in (delta, 1 - delta)]
    x = np.unique(np.concatenate([np.linspace(min(ends), max(ends), 100_001), ends]))
    rates = np.array([train.sf(x), train.cdf(x), population.sf(x), population.cdf(x)])
    # The ends themselves, give or take rounding.
    allowed = rates.min(axis=0) >= delta * (1 - 1e-9)
    expected = definition(*rates[:, allowed], delta)
    assert epsilon_star_normals(*pair, delta=delta) == pytest.approx(expected, abs=1e-6)


def test_from_rates_is_equation_7_also_at_the_ends():
    rng = np.random.default_rng(1)
    fpr, fnr = rng.uniform(0.001, 0.999, (2, 500))
    ours = epsilon_star_from_rates(fpr, fnr, delta=0.01)
    for value, t, eta in zip(ours, fpr, fnr, strict=True):
        one = (np.array([r]) for r in (1 - eta, eta, t, 1 - t))
        assert value == pytest.approx(definition(*one, 0.01), abs=1e-12)
    assert epsilon_star_from_rates(0, 0.5, delta=0.1) == math.inf
    assert epsilon_star_from_rates(0, 1, delta=0.0) == 0
    assert epsilon_star_from_rates(1, 0, delta=0.3) == 0
    assert epsilon_star_from_rates([[0.1], [0.2]], [0.3, 0.4, 0.5], delta=0).shape == (2, 3)
    refused(
        r"false_positive_rate: expected rates in \[0, 1\]",
        epsilon_star_from_rates,
        1.2,
        0.5,
        delta=0,
    )
    refused("false_negative_rate", epsilon_star_from_rates, 0.2, math.nan, delta=0)


@pytest.mark.parametrize("rounding", [8, 0])
@pytest.mark.parametrize("sizes", [(300, 300), (1500, 700)])
def test_empirical_matches_a_loop_over_thresholds(sizes, rounding):
    """With and without ties."""
    train, population = (a[:n].round(rounding) for a, n in zip(gammas(1500, 1), sizes, strict=True))
    best = 0.0
    for tau in np.unique(np.concatenate([train, population])):
        fnr, fpr = np.mean(train > tau), np.mean(population <= tau)
        if 0.001 < fnr < 0.999 and 0.001 < fpr < 0.999:
            rates = (np.array([r]) for r in (1 - fnr, fnr, fpr, 1 - fpr))
            best = max(best, definition(*rates, 1e-4))
    result = epsilon_star(train, population, method="empirical", delta=1e-4)
    assert result.epsilon == pytest.approx(best, abs=1e-12)


def test_empirical_leaves_out_rates_of_one_in_a_thousand_and_rates_are_those_of_the_losses():
    train, population = np.arange(1000.0), np.arange(1000.0) + 0.5
    result = epsilon_star(train, population, method="empirical", delta=0.0)
    # At tau = 1 the rates are TPR 0.002 and FPR 0.001: left out. At tau = 2: 0.003 and 0.002.
    assert result.epsilon == pytest.approx(math.log(1.5))
    train, population = gammas(5000, 2)
    result = epsilon_star(train, population, method="empirical")
    assert np.mean(population <= result.threshold) == pytest.approx(result.false_positive_rate)
    assert np.mean(train > result.threshold) == pytest.approx(result.false_negative_rate)
    rng = np.random.default_rng(2)
    train, population = rng.normal(0, 1, 400_000), rng.normal(0.6, 1.3, 400_000)
    result = epsilon_star(train, population, delta=0.02)
    assert np.mean(population <= result.threshold) == pytest.approx(
        result.false_positive_rate, abs=0.01
    )
    assert np.mean(train > result.threshold) == pytest.approx(result.false_negative_rate, abs=0.01)


def test_transform_is_that_of_appendix_b():
    train, population = gammas(2000, 1)
    low, high = min(train.min(), population.min()), max(train.max(), population.max())
    fits = []
    for losses in (train, population):
        p = np.exp(-((losses - low) / (high - low) + 1))
        phi = np.log(p) - np.log(1 - p)
        fits += [phi.mean(), phi.std()]
    expected = epsilon_star_normals(*fits, delta=1e-4)
    assert epsilon_star(train, population, delta=1e-4).epsilon == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("method", ["parametric", "empirical"])
def test_unit_order_and_roles_do_not_matter_and_identical_arrays_give_zero(method):
    train, population = gammas(800, 1)
    options = {"method": method, "delta": 1e-4}
    base = epsilon_star(train, population, **options)
    moved = epsilon_star(7 * train - 30, 7 * population - 30, **options)
    assert moved.epsilon == pytest.approx(base.epsilon, abs=1e-8)
    assert moved.threshold == pytest.approx(7 * base.threshold - 30, abs=1e-5)
    for same in ((train[::-1], population[::-1]), (population, train)):
        assert epsilon_star(*same, **options).epsilon == pytest.approx(base.epsilon, abs=1e-8)
    identical = epsilon_star(train, train, method=method, confidence=0.95)
    assert (identical.epsilon, identical.interval[0], identical.term) == (0, 0, "1")


def test_separated_losses_give_the_ceiling_and_a_warning_and_constant_ones_fit_no_normal():
    train, population = np.linspace(0, 1, 400), np.linspace(50, 51, 400)
    result = epsilon_star(train, population, method="empirical", delta=1e-4, confidence=0.95)
    assert result.epsilon == pytest.approx(math.log((0.999 - 1e-4) / 0.001))
    assert result.epsilon == pytest.approx(result.ceiling)
    assert "clipped" in result.warnings[0]
    assert result.interval[1] == pytest.approx(result.ceiling)
    assert 0 < result.interval[0] < result.ceiling
    parametric = epsilon_star(train, population, delta=1e-4)
    assert parametric.epsilon == pytest.approx(math.log((1 - 2e-4) / 1e-4))
    assert parametric.epsilon == pytest.approx(parametric.ceiling)
    assert any("clipped" in text for text in parametric.warnings)
    assert train.max() < parametric.threshold < population.min()
    constant, varied = np.full(50, 2.0), gammas(50, 0)[0]
    assert epsilon_star(constant, constant, method="empirical").epsilon == 0
    assert epsilon_star(constant, constant + 1, method="empirical").epsilon > 5
    refused("expected a spread of losses, they are all equal 2", epsilon_star, constant, constant)
    refused(r"train_losses \(as fitted\): all 50 values equal", epsilon_star, constant, varied)
    refused(r"population_losses \(as fitted\)", epsilon_star, varied, constant)


BAD_INPUT = [
    ({"train": [1.0]}, "train_losses: expected at least 2 values, got 1"),
    ({"train": [1.0, math.nan, 2.0]}, "train_losses: 1 of 3 values are NaN"),
    ({"population": [1.0, math.inf]}, "population_losses: 1 of 2 values are infinite"),
    ({"train": ["a", "b"]}, "train_losses: expected real numbers"),
    ({"train": [[1.0, 2.0]]}, "train_losses: expected a 1-D array"),
    ({"train": [-1e308, 1e308], "delta": 0.1}, "too far apart for floats"),
    ({"delta": 1.0}, "delta"),
    ({"delta": 0.5}, "below 0.5"),
    ({"delta": 0}, "delta above 0"),
    ({"method": "kde"}, "method: expected one of 'parametric', 'empirical', got 'kde'"),
    ({"transform": "logit"}, "transform"),
    ({"confidence": 95}, "confidence"),
    ({"interval_method": "bca"}, "interval_method: 'bca' needs a confidence"),
    ({"interval_method": "band", "confidence": 0.9}, "interval_method"),
    ({"interval_method": "delta", "confidence": 0.9, "method": "empirical"}, "interval_method"),
    ({"train": [1.0, 2.0]}, r"1 / \(n log n\) at n = 2; pass another"),
    ({"train": [1.0, 2.0, 3.0], "delta": 0.1, "confidence": 0.9}, "at least 20 losses"),
]


@pytest.mark.parametrize(("change", "message"), BAD_INPUT)
def test_bad_input_is_named(change, message):
    train, population = gammas(100, 1)
    options = {k: v for k, v in change.items() if k not in ("train", "population")}
    with pytest.raises(ValueError, match=message):
        epsilon_star(change.get("train", train), change.get("population", population), **options)


def test_result_says_what_it_supports():
    train, population = gammas(2000, 1)
    result = epsilon_star(train, population, confidence=0.9, delta=1e-5)
    assert "not a lower bound" in result.claim
    assert result.fit_rejected
    assert max(result.fit_train.ks_p_value, result.fit_population.ks_p_value) < 0.01
    assert any("rejected" in text for text in result.warnings)
    assert any("extrapolation" in text for text in result.warnings)
    record = json.loads(json.dumps(result.to_dict()))
    assert record["epsilon"] == result.epsilon
    assert record["fit_train"]["size"] == 2000
    assert result.term in TERMS
    bare = epsilon_star(train, population)
    assert "No confidence" in bare.claim
    assert bare.delta == pytest.approx(1 / (2000 * math.log(2000)))


@pytest.mark.parametrize("size", [30, 1000])
def test_lilliefors_p_values_are_uniform_under_a_normal(size):
    rng = np.random.default_rng(size)
    p = np.array([fit_normal(rng.normal(3, 2, size)).ks_p_value for _ in range(4000)])
    for level in (0.01, 0.05, 0.1, 0.5):
        # Five standard errors, and a fifth of the level for the approximation.
        assert abs((p <= level).mean() - level) <= 0.2 * level + 5 * math.sqrt(level / 4000)


def test_plain_ks_p_values_would_not_be():
    """The broken twin of the check above: the fit is to the same sample, so plain p-values are too
    large.
    """
    rng = np.random.default_rng(3)
    fits = [fit_normal(rng.normal(size=200)) for _ in range(1000)]
    from scipy.stats import kstwo

    plain = np.array([kstwo.sf(fit.ks_distance, 200) for fit in fits])
    assert (plain <= 0.05).mean() < 0.005


def test_covariance_of_the_fit_matches_simulation():
    rng = np.random.default_rng(9)
    train, population = rng.gamma(4, 1, (4000, 500)), rng.gamma(6, 1.2, (4000, 800))
    gap = (population.mean(1) - train.mean(1)) / train.std(1)
    estimates = np.stack([gap, np.log(population.std(1) / train.std(1))])
    big = fit_normal(rng.gamma(4, 1, 10**6)), fit_normal(rng.gamma(6, 1.2, 10**6))
    resized = [type(f)(**{**f.__dict__, "size": n}) for f, n in zip(big, (500, 800), strict=True)]
    _, root = intervals._gap_and_log_ratio(*resized)
    assert np.cov(estimates) == pytest.approx(root @ root.T, rel=0.12)


def test_resampled_epsilons_match_one_by_one_and_bca_refuses_what_it_cannot_do():
    rng = np.random.default_rng(6)
    a, b = rng.integers(0, 90, (7, 80)).astype(float), rng.integers(10, 100, (7, 60)).astype(float)
    ends = dict(zip(("low", "high"), EMPIRICAL_RANGE, strict=True))
    rows = intervals.resampled_empirical_epsilon(a, b, delta=1e-3, **ends)
    ones = [best_empirical_threshold(x, y, 1e-3, **ends).epsilon for x, y in zip(a, b, strict=True)]
    assert rows == pytest.approx(ones)
    mixed = intervals.resampled_empirical_epsilon(a, b[0], delta=1e-3, **ends)
    assert mixed[0] == pytest.approx(ones[0])
    normals = intervals.resampled_normals_epsilon(a, b, delta=1e-3)
    one = epsilon_star(a[3], b[3], delta=1e-3, transform="none").epsilon
    assert normals[3] == pytest.approx(one, abs=1e-8)
    train, population = gammas(2600, 1)
    with pytest.raises(ValueError, match="at most 5000 losses in all, got 5200"):
        epsilon_star(train, population, confidence=0.9, interval_method="bca")
    with pytest.raises(ValueError, match="'bca' cannot correct these resamples"):
        epsilon_star(
            np.zeros(30), np.ones(30), method="empirical", confidence=0.9, interval_method="bca"
        )


def test_where_the_fit_is_rejected_and_only_there_the_counted_value_and_its_band_come_first():
    losses = gammas(4_000, 1)
    found = epsilon_star(*losses, confidence=0.9, delta=1e-4)
    counted = epsilon_star(*losses, confidence=0.9, delta=1e-4, method="empirical")
    assert found.fit_rejected
    assert found.trusted.epsilon == counted.epsilon != found.epsilon
    assert found.trusted.interval == counted.interval
    both = found, found.trusted
    for text in (found.claim, *map(str, both), *(result._repr_html_() for result in both)):
        first, rejected = text.index(f"{counted.epsilon:.3f}"), text.index(f"{found.epsilon:.3f}")
        assert first < rejected
        assert "not trusted" in text[rejected : rejected + 60]
    assert found.headline.startswith(counted.headline)
    assert found.warnings  # the reason, with its p-value, stays
    rng = np.random.default_rng(0)
    found = epsilon_star(
        rng.normal(0, 1, 2_000), rng.normal(1, 1, 2_000), confidence=0.9, transform="none"
    )
    assert not found.fit_rejected
    assert found.trusted is found
    assert "not trusted" not in str(found)
    counted = epsilon_star(*gammas(4_000, 1), method="empirical")
    assert counted.trusted is counted
