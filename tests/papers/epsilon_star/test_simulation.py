"""The Epsilon* simulations: their true values and their refusals."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import gamma

from paperlib.papers.epsilon_star import simulated_losses as simulated


@pytest.mark.parametrize("shift", [1, 2, 3])
def test_true_values_from_the_series_at_zero(shift):
    """With P[Gamma(k) <= y] = y^k / k! near 0 both suprema have a closed form, close at small delta."""
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
    true, sample = (curves[curves["source"] == s].sort_values("position") for s in ("true", "empirical"))
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
        with pytest.raises(ValueError, match=message):
            simulated.GammaConfig(**change)


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
    table = simulated.interval_coverage((0.0, 1.0), size=40, draws=8).set_index(["method", "interval"])
    assert table["coverage"]["parametric", "region"] >= 0.5
    assert table["coverage"]["empirical", "band"] == 1
    assert table["coverage"]["empirical", "bca"] == 0
