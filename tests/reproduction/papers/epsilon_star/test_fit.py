"""Mixtures of normals: their Epsilon*, their fits, three ways to test one; and the simulated
losses.
"""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr
from scipy.stats import gamma, skew

from paperlib.bounds import epsilon_star, epsilon_star_from_rates, epsilon_star_normals
from paperlib.data import Dataset
from paperlib.reproduction.papers.epsilon_star import fit
from paperlib.reproduction.papers.epsilon_star import simulated_losses as simulated
from paperlib.reproduction.papers.epsilon_star.grids import landscape_config
from tests.refusals import refused


def mixture(weights, means, stds):
    return fit.NormalMixture(weights=np.array(weights), means=np.array(means), stds=np.array(stds))


TRAIN = mixture([0.7, 0.3], [0.0, 2.0], [1.0, 0.5])
OTHER = mixture([0.9, 0.1], [-0.2, 1.0], [1.1, 0.2])


def normal(mean, std):
    return mixture([1.0], [mean], [std])


def scores(train, population):
    return fit.Scores(math.inf, 0, 0.5, train, population)


@pytest.mark.parametrize("delta", [1e-2, 1e-5, 1e-9])
def test_one_component_is_the_epsilon_of_normals(delta):
    for gap, ratio in [(3.0, 1.0), (0.5, 1.2), (-0.5, 0.7), (0.0, 1.0), (40.0, 1.0)]:
        mixed = fit.mixture_epsilon(normal(0, 1), normal(gap, ratio), delta=delta)[0]
        assert mixed == pytest.approx(epsilon_star_normals(0, 1, gap, ratio, delta=delta), abs=1e-6)


@pytest.mark.parametrize("delta", [1e-2, 1e-5])
def test_mixture_epsilon_matches_a_dense_grid(delta):
    """Rates from the plain distribution functions, thresholds half a millionth apart or so."""
    tau = np.linspace(-7, 7, 400_001)
    fnr, tnr = (ndtr((tau[:, None] - one.means) / one.stds) @ one.weights for one in (TRAIN, OTHER))
    fpr = 1 - tnr
    usable = (np.minimum(fpr, fnr) >= delta) & (np.maximum(fpr, fnr) <= 1 - delta)
    expected = epsilon_star_from_rates(fpr[usable], fnr[usable], delta=delta).max()
    epsilon, threshold = fit.mixture_epsilon(TRAIN, OTHER, delta=delta)
    assert expected - 1e-9 <= epsilon <= expected + 2e-4
    rates = np.exp(fit.log_rates(TRAIN, OTHER, np.array(threshold)))
    assert epsilon_star_from_rates(rates[2], rates[1], delta=delta) == pytest.approx(
        epsilon, abs=1e-6
    )
    twice = mixture(*(np.tile(one, 2) for one in (TRAIN.weights / 2, TRAIN.means, TRAIN.stds)))
    assert fit.mixture_epsilon(twice, OTHER, delta=delta)[0] == pytest.approx(epsilon, abs=1e-9)


def test_draws_follow_the_distribution_function_and_the_fit_finds_it_whatever_the_unit():
    drawn = TRAIN.sample(40_000, np.random.default_rng(0))
    points = np.linspace(-2, 3, 11)
    shares = (drawn[:, None] <= points).mean(axis=0)
    assert np.abs(shares - TRAIN.cdf(points)).max() < 0.015
    assert np.exp(TRAIN.log_cdf(points)) + np.exp(TRAIN.log_sf(points)) == pytest.approx(1)
    for scale in (1.0, 1e-6):
        fitted = fit.fit_mixture(scale * drawn[:20_000], 2)
        order = fitted.means.argsort()
        assert fitted.means[order] / scale == pytest.approx(TRAIN.means, abs=0.15)
        assert fitted.weights[order] == pytest.approx(TRAIN.weights, abs=0.05)


def test_one_component_on_losses_is_epsilon_star():
    rng = np.random.default_rng(2)
    train, population = rng.normal(0, 1, 2_000), rng.normal(0.4, 1.1, 2_000)
    rows = fit.epsilon_by_components([scores(*fit.paper_scores(train, population))], [1])
    assert rows["epsilon_star"][0] == pytest.approx(
        epsilon_star(train, population).epsilon, abs=1e-6
    )
    empirical = epsilon_star(train, population, method="empirical").epsilon
    assert rows["empirical"][0] == pytest.approx(empirical)
    assert 0 < rows["rate"][0] < 0.5


def test_more_components_see_what_one_does_not():
    """Two humps: one normal is rejected in every way, three are not when held out."""
    rng = np.random.default_rng(3)
    humps = np.concatenate([rng.normal(-2, 0.5, 1_500), rng.normal(2, 0.5, 1_500)])
    config = fit.FitConfig(components=(1, 3), sample_sizes=(100, 500), repeats=3)
    rows = fit.p_values([scores(humps, humps)], config)
    assert len(rows) == 2 * 2 * 3 * 3
    middle = (
        rows[rows["sample_size"] == 500]
        .groupby(["test", "components"])["p_value"]
        .median()
        .unstack()
    )
    assert (middle[1] < 1e-3).all()
    assert (middle[3] > 0.05).all()
    assert rows.equals(fit.p_values([scores(humps, humps)], config))


def test_only_a_held_out_fit_on_many_scores_keeps_the_level():
    shares = fit.false_rejection_rates(components=(1,), size=100, draws=400).iloc[0]
    assert shares["same sample"] <= 0.01
    assert shares["other half"] >= 0.1
    assert shares[["held out", "paper"]].between(0.01, 0.11).all()


def test_models_of_both_kinds_are_trained():
    rng = np.random.default_rng(4)
    x = rng.normal(size=(400, 3)).astype(np.float32)
    y = (x[:, 0] > 0).astype(np.int64)
    about = dict.fromkeys(("name", "source", "licence", "description"), "made up")
    parts = {"train_x": x[:200], "train_y": y[:200], "test_x": x[200:], "test_y": y[200:]}
    grid = {
        "baseline_epochs": (30,),
        "private_epochs": 1,
        "batch_sizes": (128,),
        "epsilons": (1.0,),
    }
    config = replace(landscape_config("randhie", size="smoke"), widths=(4,), **grid)
    models = fit.trained_scores(config, Dataset(**parts, **about, sha256s={}), seed=5)
    kinds = [(epsilon, seed) for epsilon in (math.inf, 1.0) for seed in (5000, 5001)]
    assert [(model.target_epsilon, model.seed) for model in models] == kinds
    assert [model.private for model in models] == [False, False, True, True]
    assert all(np.isfinite(model.train).all() and model.train.size == 200 for model in models)
    table = fit.moments(models)
    assert table["accuracy"].tolist() == [model.accuracy for model in models]
    assert table["skewness"].to_numpy() == pytest.approx(
        [skew(model.train, bias=False) for model in models]
    )
    assert models[0].accuracy > 0.6


def test_bad_input_is_refused_in_words():
    few = fit.FitConfig(sample_sizes=(100,))
    refused("seeds", replace, landscape_config("adult"), seeds=0)
    refused("components", fit.FitConfig, components=())
    refused("components", fit.FitConfig, components=(1, 0))
    refused("sample_sizes", fit.FitConfig, sample_sizes=(10,), components=(20,))
    refused("repeats", fit.FitConfig, repeats=0)
    refused("values", fit.fit_mixture, np.ones(5), 1)
    refused("components|n_samples", fit.fit_mixture, np.array([1.0, 2.0]), 3)
    refused("losses", fit.paper_scores, np.ones(3), np.ones(3))
    refused("losses", fit.paper_scores, np.array([0.0, np.inf]), np.ones(3))
    refused("losses", fit.paper_scores, np.array([0.0, np.nan]), np.ones(3))
    refused("delta", fit.mixture_epsilon, normal(0, 1), normal(1, 1), delta=0.0)
    refused("delta", fit.mixture_epsilon, normal(0, 1), normal(1, 1), delta=0.5)
    refused("sample_sizes", fit.p_values, [scores(*np.ones((2, 9)))], few)


@pytest.mark.parametrize("shift", [1, 2, 3])
def test_true_values_from_the_series_at_zero(shift):
    """With P[Gamma(k) <= y] = y^k / k! near 0 both suprema have a closed form, close at small
    delta.
    """
    delta, k = 1e-9, 2 + shift
    edge = (math.factorial(k) * delta) ** (1 / k)
    at_edge = math.log((edge**2 / 2 - delta) / delta)
    best = math.sqrt(2 * delta * k / (k - 2))
    everywhere = math.log((best**2 / 2 - delta) * math.factorial(k) / best**k)
    for low, expected, close in ((delta, at_edge, 0.06), (simulated.ALL_RATES, everywhere, 1e-3)):
        value = simulated.true_gamma_value(simulated.GammaConfig(), shift, delta=delta, low=low)
        assert value == pytest.approx(expected, abs=close)


def test_true_value_matches_a_plain_grid_and_does_not_depend_on_the_scale():
    tau = np.linspace(0.01, 120, 400_001)
    train, population = gamma(2, scale=5), gamma(4, scale=5)
    tpr, fpr = train.cdf(tau), population.cdf(tau)
    usable = (fpr >= 0.001) & (1 - tpr >= 0.001) & (fpr <= 0.999) & (tpr >= 0.001)
    ratios = np.maximum((tpr - 1e-5) / fpr, (1 - fpr - 1e-5) / (1 - tpr))[usable]
    value = simulated.true_gamma_value(simulated.GammaConfig(), 2, delta=1e-5, low=0.001)
    assert value == pytest.approx(math.log(ratios.max()), abs=1e-3)
    scaled = simulated.true_gamma_value(simulated.GammaConfig(scale=0.1), 2, delta=1e-5, low=0.001)
    assert scaled == pytest.approx(value, abs=1e-9)


def test_curves_follow_the_truth_where_rates_are_large():
    curves = simulated.curve_terms(size=5000)
    assert set(curves["source"]) == {"true", "empirical"}
    true, sample = (
        curves[curves["source"] == s].sort_values("position") for s in ("true", "empirical")
    )
    middle = sample[(sample["fpr"] > 0.2) & (sample["fpr"] < 0.8)]
    expected = np.interp(middle["position"], true["position"], true["tpr_ratio"])
    assert np.abs(middle["tpr_ratio"] / expected - 1).max() < 0.1
    noise = simulated.curve_noise(simulated.ratio_errors(size=5000, draws=10))
    assert noise["tpr_ratio"].iloc[-1] < noise["tpr_ratio"].iloc[1] / 3


def test_gamma_table_has_every_cell():
    config = simulated.GammaConfig(shifts=(0, 2), sizes=(200, 2000), repeats=3)
    runs = pd.DataFrame(simulated.gamma_runs(config))
    summary = simulated.gamma_summary(config, runs)
    assert len(summary) == 8
    assert summary.notna().all().all()
    assert (summary[summary["d"] == 0]["true"] == 0).all()
    assert (summary["true"] >= summary["true_delta_range"]).all()
    assert (summary["true_delta_range"] >= summary["true_own_range"] - 1e-9).all()
    pd.testing.assert_frame_equal(runs, pd.DataFrame(simulated.gamma_runs(config)))
    short = simulated.undershoot(runs, summary)
    assert len(short) == 4
    wide = summary.query("d == 2 and method == 'empirical'").set_index("size")
    for _, row in short.iterrows():
        own = wide.loc[row["size"]]
        assert row["undershoot"] == pytest.approx(own[row["truth"]] - own["epsilon_star"])
        assert row["half_width"] == pytest.approx(1.96 * own["epsilon_star_sd"] / math.sqrt(3))


def test_settings_without_a_figure_are_refused():
    for change, message in (
        ({"shifts": (1, 2)}, "shifts: expected 0 and at least one number above it"),
        ({"shifts": (0,)}, "shifts"),
        ({"sizes": (5,)}, "sizes: expected numbers of losses of at least 20"),
        ({"repeats": 1}, "repeats"),
    ):
        refused(message, simulated.GammaConfig, **change)


def test_curves_meet_the_estimates_laplace_losses_have_their_gap_and_no_interval_is_a_miss():
    values, fits = simulated.value_over_thresholds(simulated.GammaConfig(), 1, 2000)
    assert set(values["source"]) == {"true", "empirical", "parametric"}
    assert list(fits["set"]) == ["training", "population"]
    assert (fits["skewness_of_losses"] > 0).all()
    assert (fits["skewness"] < 0).all()
    table = simulated.laplace_values((0.5, 1.0), size=5000, repeats=2, seed=0)
    assert table["true"].to_numpy() == pytest.approx([0.5, 1.0], abs=1e-3)
    assert (table["parametric"] > 2 * table["true"]).all()
    assert (table["rejected"] == 1).all()
    table = simulated.interval_coverage((0.0, 1.0), size=40, draws=8).set_index(
        ["method", "interval"]
    )
    assert table["coverage"]["parametric", "region"] >= 0.5
    assert table["coverage"]["empirical", "band"] == 1
    assert table["coverage"]["empirical", "bca"] == 0
