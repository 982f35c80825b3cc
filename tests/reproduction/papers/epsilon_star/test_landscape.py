"""The landscape: numbers against brute force, tables on made-up models, and a small run from end to
end.
"""

import itertools
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from paperlib.bounds import epsilon_star_normals
from paperlib.reproduction.exhibits import paper_table
from paperlib.reproduction.papers.epsilon_star import landscape_measures, landscape_models
from paperlib.reproduction.papers.epsilon_star import landscape_tables as tables
from paperlib.reproduction.papers.epsilon_star.grids import landscape_config
from paperlib.reproduction.papers.epsilon_star.landscape import landscape, mechanism_epsilon
from paperlib.reproduction.papers.epsilon_star.landscape_measures import (
    MEASURES,
    privacy_of_losses,
    shuffled_epsilon,
    two_interval_epsilon,
)
from paperlib.reproduction.papers.measured import measured_table
from paperlib.training import epsilon_of
from paperlib.training.private.accounting import paper_delta
from tests.interrupts import stopping
from tests.refusals import refused

DELTA = 1e-4


@pytest.mark.parametrize(
    "normals",
    [(0, 1, 0, 2), (0, 2, 0.3, 1), (0, 1, 1, 1.3), (1, 1, 0, 1), (0, 1, 0, 1), (5, 0.2, 5.1, 0.25)],
)
def test_two_intervals_match_a_search_over_all_intervals(normals):
    """Definition 2 over every interval of a grid, without knowing that the best ones share a
    middle.
    """
    m, s, mu, sigma = normals
    grid = np.linspace(min(m, mu) - 6 * max(s, sigma), max(m, mu) + 6 * max(s, sigma), 700)
    train, other = norm(m, s).cdf(grid), norm(mu, sigma).cdf(grid)
    tpr = np.maximum(train[None, :] - train[:, None], 0)
    fpr = np.maximum(other[None, :] - other[:, None], 0)
    usable = (np.minimum(tpr, fpr) >= DELTA) & (np.maximum(tpr, fpr) <= 1 - DELTA)
    tpr, fpr = tpr[usable], fpr[usable]
    pairs = [(tpr, fpr), (1 - fpr, 1 - tpr), (1 - tpr, 1 - fpr), (fpr, tpr)]
    best = math.log(max(1.0, *(((top - DELTA) / bottom).max() for top, bottom in pairs)))
    searched = max(best, epsilon_star_normals(*normals, delta=DELTA))
    epsilon = two_interval_epsilon(normals, delta=DELTA)
    assert (
        searched - 1e-9 <= epsilon <= searched + 0.1
    )  # the grid of the search misses the edge by a step


def test_two_intervals_are_never_below_one_know_no_unit_and_reach_the_closed_form():
    rng = np.random.default_rng(0)
    for _ in range(20):
        m, mu = rng.normal(size=2)
        s, sigma = rng.uniform(0.5, 2, 2)
        epsilon = two_interval_epsilon((m, s, mu, sigma), delta=DELTA)
        assert epsilon >= epsilon_star_normals(m, s, mu, sigma, delta=DELTA)
        moved = (7 - 3 * m, 3 * s, 7 - 3 * mu, 3 * sigma)
        assert two_interval_epsilon(moved, delta=DELTA) == pytest.approx(epsilon, abs=1e-6)
    far = -norm.ppf(5e-6)
    expected = math.log((2 * norm.cdf(-far / 2) - 1e-5) / 1e-5)
    assert two_interval_epsilon((0, 1, 0, 2), delta=1e-5) == pytest.approx(expected, abs=1e-8)


def random_models(rng, count):
    gaps, stds = rng.normal(1, 0.7, count), rng.uniform(0.8, 1.3, (count, 2))
    return [(gap, one, 0.0, other) for gap, (one, other) in zip(gaps, stds, strict=True)]


def both_sides(models):
    bound, values = mechanism_epsilon(models, models, delta=DELTA)
    return bound, float(np.logaddexp.reduce(values) - math.log(len(values))), values.min()


def test_theorem_2_holds_for_any_models_with_equality_for_equal_ones_and_fails_with_the_smallest():
    rng = np.random.default_rng(0)
    left, right, smallest = np.array([both_sides(random_models(rng, 5)) for _ in range(100)]).T
    assert (left <= right + 1e-12).all()
    assert (right - left).max() > 0.1
    assert (left > smallest + 1e-9).mean() > 0.5
    left, right, _ = both_sides([(1, 1, 0, 1)] * 3)
    assert left == pytest.approx(right, abs=1e-12)
    assert right == pytest.approx(epsilon_star_normals(1, 1, 0, 1, delta=DELTA), abs=1e-3)
    most = math.log((1 - 2 * DELTA) / DELTA)
    assert both_sides([(50, 1, 0, 1)] * 3) == pytest.approx((most, most, most))


def beaten(cost, gain, at):
    """Whether a mix of two other points is at least as good on both counts and better on one."""
    others = [i for i in range(len(cost)) if (cost[i], gain[i]) != (cost[at], gain[at])]
    share = np.linspace(0, 1, 2_001)
    for a, b in itertools.product(others, others):
        mixed_cost, mixed_gain = (share * one[a] + (1 - share) * one[b] for one in (cost, gain))
        no_worse = (mixed_cost <= cost[at]) & (mixed_gain >= gain[at])
        if (no_worse & ((mixed_cost < cost[at] - 1e-9) | (mixed_gain > gain[at] + 1e-9))).any():
            return True
    return False


def test_frontier_is_what_its_definition_says():
    rng = np.random.default_rng(1)
    for _ in range(15):
        cost, gain = rng.random(9), rng.random(9)
        chosen = tables.convex_frontier(cost, gain)
        assert sorted(chosen) == [at for at in range(9) if not beaten(cost, gain, at)]
        assert list(cost[chosen]) == sorted(cost[chosen])
    assert tables.convex_frontier(np.array([1.0]), np.array([1.0])) == [0]
    assert tables.convex_frontier(np.array([1.0, 1.0, 0.5]), np.array([0.2, 0.9, 0.1])) == [2, 1]
    assert tables.convex_frontier(np.zeros(3), np.array([0.1, 0.3, 0.2])) == [1]


def measure(train, other, **options):
    return privacy_of_losses(train, other, **{"delta": DELTA, "confidence": 0.95, **options})


def test_a_model_that_knows_its_records_shows_in_every_number_and_one_that_does_not_in_none():
    other, known, unknown = np.random.default_rng(0).normal([[0], [-2], [0]], 1, (3, 3_000))
    measures, nothing = measure(known, other), measure(unknown, other)
    assert tuple(measures) == tuple(nothing) == MEASURES
    for name in ("epsilon_star", "interval_low", "epsilon_star_empirical", "one_run", "output_set"):
        assert measures[name] > 1
        assert nothing[name] < 0.9
    assert nothing["one_run"] == nothing["interval_low"] == 0
    assert 1 < measures["one_run_both"] < measures["one_run"] + 1
    assert measures["loss_auc"] > 0.9
    assert measures["epsilon_shuffled"] < 0.2 * measures["epsilon_star"]
    assert measures["interval_low"] < measures["epsilon_star"] < measures["interval_high"]


def test_losses_that_are_not_finite_constant_separated_identical_or_a_single_value_in_float32():
    some = np.linspace(0, 1, 30)
    for bad in (np.nan, np.inf):
        assert all(math.isnan(value) for value in measure(np.append(some, bad), some).values())
    constant = measure(np.ones(30), np.ones(20))
    assert constant["epsilon_star"] == constant["one_run"] == constant["interval_high"] == 0
    assert constant["loss_auc"] == 0.5
    assert math.isnan(constant["ks_train"])
    separated = measure(np.linspace(-10, -9, 400), np.linspace(9, 10, 400))
    assert separated["epsilon_star"] == pytest.approx(math.log((1 - 2 * DELTA) / DELTA), abs=1e-6)
    assert separated["loss_auc"] == 1
    same = np.random.default_rng(0).normal(size=400)
    assert measure(same, same)["epsilon_star"] == pytest.approx(0, abs=1e-9)
    train = np.random.default_rng(0).normal(size=500)
    outlier = np.where(
        np.arange(500) == 0, 1e13, 0.0
    )  # beside it the others are one value, as in float32
    assert all(math.isnan(value) for value in measure(train + outlier, np.zeros(400)).values())
    assert all(
        math.isfinite(measure(train, train[:400] + 0.1)[name])
        for name in ("epsilon_star", "one_run")
    )


def test_the_papers_grids_have_the_papers_numbers():
    adult, purchase = (landscape_config(name, size="paper") for name in ("adult", "purchase100"))
    assert (adult.instances // 5, purchase.instances // 5) == (52, 51)
    settings = paper_table("epsilon_star_settings")
    for config in (adult, purchase):
        mine = settings[settings["dataset"] == config.dataset].groupby(["component", "setting"])[
            "value"
        ]
        for place, ours in {
            ("baseline", "epochs"): config.baseline_epochs,
            ("dp_sgd", "target_eps"): config.epsilons,
            ("dp_sgd", "clipping_norm"): config.clip_norms,
            ("dp_sgd", "batch_size"): config.batch_sizes,
            ("dp_sgd", "micro_batches"): config.microbatches,
        }.items():
            assert mine.get_group(place).astype(float).tolist() == list(map(float, ours))
    for name, size in (("adults", "paper"), ("adult", "huge")):
        refused("expected one of", landscape_config, name, size=size)


def test_a_number_of_models_takes_the_place_of_that_of_the_grid():
    grid, one = (landscape_config("adult", size="paper", models=models) for models in (0, 1))
    assert one == replace(grid, seeds=1)
    assert grid.seeds > 1


GRID = {
    "baseline_epochs": (1, 4),
    "private_epochs": 1,
    "microbatches": (2, None),
    "epsilons": (1.0,),
}
TINY = replace(
    landscape_config("randhie", size="smoke"), batch_sizes=(256,), widths=(8,), seeds=2, **GRID
)


def test_noise_reaches_the_target_and_grids_of_other_seeds_share_no_model():
    data = landscape_models.landscape_data(TINY.dataset, TINY.options)
    instances = landscape_models.landscape_models(TINY, data)
    assert len(instances) == TINY.instances == 8
    for instance in instances:
        training = instance.training
        if instance.target_epsilon is None:
            assert not training.is_private
            continue
        args = (training.sampling_rate(1_380), training.steps(1_380), paper_delta(1_380))
        assert epsilon_of(training.noise_multiplier, *args) <= 1.0
        assert epsilon_of(0.95 * training.noise_multiplier, *args) > 1.0
        assert training.record_level == (training.microbatches is None)
    others = landscape_models.landscape_models(replace(TINY, seed=1), data)
    assert [{one.training.seed for one in models} for models in (instances, others)] == [
        {0, 1},
        {1000, 1001},
    ]
    refused("seed", replace, TINY, seed=-1)


def test_a_small_landscape_is_kept_and_does_not_depend_on_who_shares_a_stack(tmp_path, monkeypatch):
    frame = landscape(TINY, folder=tmp_path / "a", workers=0)
    assert len(frame) == 8
    assert frame["auroc"].between(0.4, 0.8).all()
    assert set(MEASURES) <= set(frame.columns)
    dp = frame[frame["kind"] == "dp"]
    assert (dp["dp_epsilon"] <= 1).all()
    assert (dp["dp_epsilon_pld"] <= dp["dp_epsilon"] + 1e-6).all()
    half = landscape(replace(TINY, seeds=1), folder=tmp_path / "b", workers=0)
    alone, names = frame[frame["seed"] == 0], ["accuracy", "auroc", "epsilon_star"]
    np.testing.assert_allclose(half[names], alone[names], rtol=0.02, atol=0.01)
    monkeypatch.setattr(landscape_models, "fit_ensemble", None)  # nothing is trained again
    monkeypatch.setattr(landscape_measures, "code_tag", lambda name: "a bound was changed")
    pd.testing.assert_frame_equal(frame, landscape(TINY, folder=tmp_path / "a", workers=0))
    monkeypatch.setattr(landscape_measures, "privacy_of_losses", None)  # nor measured
    pd.testing.assert_frame_equal(frame, landscape(TINY, folder=tmp_path / "a", workers=0))


def test_a_landscape_that_was_stopped_goes_on_to_the_same_numbers(tmp_path, monkeypatch):
    """Stopped between parts of several models each: bit for bit the same table."""
    monkeypatch.setattr(landscape_models, "_LARGE", 1)
    tiny = replace(TINY, microbatches=(None,), seeds=3)
    whole = landscape(tiny, folder=tmp_path / "whole", workers=0)
    calls = stopping(monkeypatch, landscape_models, "train_models", 3)
    with pytest.raises(KeyboardInterrupt):
        landscape(tiny, folder=tmp_path / "stopped", workers=0)
    assert max(len(trainings) for trainings, _ in calls) > 1
    resumed = landscape(tiny, folder=tmp_path / "stopped", workers=0)
    frames = (one.drop(columns="seconds") for one in (resumed, whole))
    pd.testing.assert_frame_equal(*frames, check_exact=True)


def made_up(baseline, private, *, dataset="adult", diverged=False):
    """Models of baselines (epochs to Epsilon*, utility) and of DP (target to Epsilon*, utility),
    two each.
    """
    always = {**dict.fromkeys(MEASURES, 0.5), "dataset": dataset, "batch_size": 64, "delta": DELTA}
    plain = {"kind": "baseline", "clip_norm": None, "record_level": False, "target_epsilon": None}
    noisy = {"kind": "dp", "clip_norm": 1.0, "record_level": True, "epochs": 10}
    models = [(plain | {"epochs": epochs}, *one) for epochs, one in baseline.items()]
    models += [(noisy | {"target_epsilon": epsilon}, *one) for epsilon, one in private.items()]
    rows = [
        always | about | {"seed": seed, "accuracy": gain, "epsilon_star": star + 0.02 * seed - 0.01}
        for (about, star, gain), seed in itertools.product(models, (0, 1))
    ]
    table = pd.DataFrame(rows).assign(microbatches=None, seconds=1.0)
    if diverged:
        table.loc[(table["kind"] == "dp") & (table["seed"] == 1), "epsilon_star"] = math.nan
    auroc = table["accuracy"] if dataset == "adult" else math.nan
    return table.assign(dp_epsilon=table["target_epsilon"], auroc=auroc)


SOUND = (
    {1: (0.05, 0.9), 5: (0.15, 0.91), 10: (0.2, 0.912), 20: (0.28, 0.913)},
    {1: (0.04, 0.8), 100: (0.1, 0.89)},
)


def test_strategies_count_diverged_models_keep_the_range_and_take_auroc_where_there_is_one():
    table = tables.strategies(made_up(*SOUND, diverged=True).assign(accuracy=0.1))
    assert table["models"].tolist() == [2] * 6
    assert table["diverged"].tolist() == [0, 0, 0, 0, 1, 1]
    first = table.iloc[0]
    assert (first["epsilon_star_min"], first["epsilon_star_max"]) == pytest.approx((0.04, 0.06))
    assert first["epsilon_star"] == pytest.approx(0.05)
    assert table["strategy"][0] == "no DP, 1 epoch"
    assert (
        tables.strategy_name(table.iloc[5].replace({math.nan: 32.0}))
        == "DP 100, clip 1, batch 64, 32 groups"
    )
    assert (first["utility"], table["fits_rejected"][0]) == (0.9, 0)
    many = made_up(*SOUND, dataset="purchase100").assign(auroc=math.nan)
    assert tables.strategies(many.assign(accuracy=0.1))["utility"].iloc[0] == 0.1  # without AUROC
    gone = made_up(SOUND[0], {1: (math.nan, 0.5)})
    assert len(tables.strategies(gone)) == 4
    assert set(tables.pareto(tables.strategies(gone))["kind"]) == {"baseline"}


def test_every_number_of_section_42_is_compared():
    purchase = ({10: (2.5, 0.86), 50: (7.0, 0.9), 100: (7.8, 0.91)}, {100: (0.6, 0.7)})
    frames = {"adult": made_up(*SOUND), "purchase100": made_up(*purchase, dataset="purchase100")}
    table = pd.concat(
        tables.section_42(name, {"ours": one, "again": one}) for name, one in frames.items()
    )
    printed = paper_table("epsilon_star_text").query("section == '4.2'")
    assert len(table) == len(printed)
    assert table["again"].equals(table["ours"])
    ours = dict(zip(table["what"], table["ours"], strict=True))
    assert ours["mean Epsilon*, no DP, 50 epochs"] == "7.00"
    assert ours["test accuracy, no DP, 10 epochs"] == "86.0 %"
    assert ours["largest Epsilon*, DP"] == "0.61"
    assert ours["Pareto strategies at DP epsilon 100"] == "1"
    assert ours["baselines of 5 or more epochs above DP models"].startswith("yes")
    assert ours["baseline of 1 epoch at the elbow of the frontier"] == "yes"


def test_tables_work_on_models_of_every_kind_beside_what_is_printed():
    points, limit = tables.printed_landscape("purchase100")
    assert (points["epsilon_star"].tolist(), limit) == ([2.48, 7.06, 7.79], 1.0)
    points, limit = tables.printed_landscape("adult")
    assert (len(points), limit) == (0, 0.3)
    for frame in (made_up(*SOUND, diverged=True), made_up({1: (0.1, 0.5)}, {})):
        assert tables.which_number_moves(frame)["models"].sum() == len(frame)
    frame = made_up({10: (2.5, 0.86)}, {1: (1.2, 0.01), 100: (0.6, 0.7)}, dataset="purchase100")
    frame["one_run"] = np.where(frame["kind"] == "dp", 0.2, math.nan)
    table = tables.noise_models(frame).set_index("group")
    assert table.loc["DP, Epsilon* above 1", "utility"] == pytest.approx(0.01)
    assert table.loc["DP, utility above 0.5", "epsilon_star"] == pytest.approx(0.6)
    assert table["models"].tolist() == [2, 2, 2]
    assert table["lower_bound"].tolist() == pytest.approx([0.2, 0.2, 0.5])


def test_readings_pair_the_baseline_with_the_largest_dp_model_of_its_seed():
    exact, clipped = [0.2, 0.4, 0.5, 0.1, 0.3, math.nan], [0.1, 0.2, 0.3, 0.4, 0.1, 0.0]
    frame = pd.DataFrame(
        {"kind": ["baseline"] * 2 + ["dp"] * 4, "seed": [0, 1, 0, 0, 1, 1], "epochs": 5}
    )
    frame = frame.assign(epsilon_star=exact, epsilon_star_clipped=clipped)
    table = tables.readings({"8 relu": frame, "9 tanh": frame.assign(epsilon_star=1.0)})
    assert table["network"].tolist() == ["8 relu"] * 2 + ["9 tanh"] * 2
    assert table["losses"].tolist() == ["exact", "clipped"] * 2
    exact, clipped, flat, _ = table.to_dict("records")
    assert (exact["largest"], exact["largest_dp"], exact["baseline"]) == pytest.approx(
        (0.5, 0.4, 0.3)
    )
    assert [exact["difference"], clipped["difference"]] == pytest.approx(
        [-0.1, -0.1]
    )  # -0.3 and 0.1
    ends = -0.1 - 12.7062 * 0.2, -0.1 + 12.7062 * 0.2
    assert (exact["low"], exact["high"]) == pytest.approx(ends, abs=1e-4)
    assert (flat["difference"], flat["seeds"]) == (0, 2)


def test_clipped_losses_hide_what_lies_beyond_one_run_finds_non_members_and_shuffling_hides():
    rng = np.random.default_rng(0)
    train, other = rng.normal(0, 1, (2, 2_000))
    same = measure(train, other)
    assert same["epsilon_star_clipped"] == same["epsilon_star"]
    other[:20] += 1e6
    beyond = measure(train - 100, other - 100 - 2e6)
    assert beyond["epsilon_star"] > 0 == beyond["epsilon_star_clipped"]
    missed = np.where(rng.random(2_000) < 0.1, 8.0, 0.0)
    measures = measure(rng.normal(size=2_000), rng.normal(size=2_000) + missed)
    assert measures["one_run"] > measures["one_run_both"] + 1 > 1
    small, large = (
        shuffled_epsilon(rng.normal(size=2 * n), n, delta=DELTA, seed=0) for n in (100, 10_000)
    )
    assert 0 < large < 0.3 * small


def test_the_committed_measurement_is_the_whole_adult_grid(monkeypatch):
    monkeypatch.chdir(Path(__file__).parents[3])
    frame, origin = measured_table("book/measured/epsilon_star_landscape_adult.csv")
    assert len(frame) == landscape_config("adult", size="paper").instances
    assert len(tables.strategies(frame)) == 52
    assert set(MEASURES[:-1]) <= set(tables.both_ends_named(frame).columns)
    assert tables.both_ends_named(frame)["one_run_both"].equals(frame["one_run"])
    assert tables.both_ends_named(frame)["one_run"].isna().all()
    assert "2 cores" in origin
