"""Figure 3: records and coins, noise and guarantee, choice of settings, bounds against direct
computation.
"""

import math
from dataclasses import replace
from functools import wraps
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from paperlib.bounds import audit_one_run
from paperlib.bounds.one_run.audit import one_run_epsilon
from paperlib.core import MembershipScores
from paperlib.io import read_result
from paperlib.io.budget import UNTIL_VARIABLE, BudgetSpent
from paperlib.io.files import RunResult, file_sha256, write_result
from paperlib.reproduction.papers.measured import measured_table
from paperlib.reproduction.papers.output_sets import dpsgd, dpsgd_models
from paperlib.reproduction.papers.output_sets.claims import dpsgd_evidence
from paperlib.reproduction.papers.verdict.evidence import from_dict
from paperlib.training import epsilon_of
from tests.refusals import refused

CHOICES = {"epochs": 1}, {"epochs": 12, "learning_rate": 0.5}
AUDITED = {"natural": 100, "mislabelled": (60, 100), "epsilons": (8.0, 0.0), "seeds": 2}
SMALL = dpsgd.DpSgdConfig(filters=4, width=16, choices=CHOICES, **AUDITED)


def model(**changes):
    options = {"dataset": "mnist5k", "network": "features", "kind": "mislabelled", "records": 100}
    more = {
        "filters": 4,
        "width": 16,
        "epsilon": 8.0,
        "choice": dpsgd_models.Choice(epochs=2),
        "seed": 1,
    }
    return dpsgd_models.Audited(**{**options, **more, **changes})


def drawn(**changes):
    return dpsgd_models.draw_records(model(**changes), np.arange(2_000) % 10, 10)


def test_records_have_wrong_labels_their_own_coins_and_no_place_among_the_others():
    wrong, again = (drawn(records=1_000, others=500, seed=seed) for seed in (1, 2))
    assert (wrong.labels != wrong.rows % 10).all()
    assert np.unique(wrong.labels).size == 10
    assert 400 < wrong.member.sum() < 600
    assert 0.4 < (again.member != wrong.member).mean() < 0.6
    assert not set(wrong.others) & set(wrong.rows)
    natural = drawn(kind="natural", records=0)
    assert (natural.labels == natural.rows % 10).all()
    assert natural.rows.size == 2_000
    refused("records", drawn, records=1_600, others=500)
    first, second = (drawn(epsilon=epsilon) for epsilon in (1.0, 8.0))
    assert (first.member == second.member).all()  # models of one seed differ in noise alone
    assert (first.labels == second.labels).all()


@pytest.mark.parametrize("examples", [37, 480, 25_000])
@pytest.mark.parametrize("epsilon", [1.0, 100.0])
def test_the_noise_keeps_the_guarantee(examples, epsilon):
    config = dpsgd_models.training_of(model(epsilon=epsilon), examples)
    spent = epsilon_of(
        config.noise_multiplier, config.sampling_rate(examples), config.steps(examples), 1e-5
    )
    assert 0.85 * epsilon < spent <= epsilon
    assert config.record_level
    assert not dpsgd_models.training_of(model(epsilon=math.inf), examples).noise_multiplier


def test_a_model_does_not_depend_on_those_trained_with_it_and_is_read_again(tmp_path):
    models = [model(epsilon=epsilon) for epsilon in (8.0, math.inf)]
    alone = dpsgd_models.trained_answers(models[1:])[0]
    first = dpsgd_models.model_answers(models, folder=tmp_path)
    again = dpsgd_models.model_answers(models[::-1], folder=tmp_path)
    for one in models:
        np.testing.assert_array_equal(first[one]["loss"], again[one]["loss"])
    np.testing.assert_allclose(alone["loss"], first[models[1]]["loss"], rtol=1e-3, atol=1e-4)


def test_members_alone_are_learned_without_noise_and_convolutions_are_trained():
    long, once = (dpsgd_models.Choice(epochs=epochs) for epochs in (120, 1))
    (answers,) = dpsgd_models.trained_answers(
        [model(epsilon=math.inf, width=64, filters=8, choice=long)]
    )
    assert answers["member_accuracy"] > 0.9
    assert (
        answers["loss"][~answers["member"]].mean() > 3 * answers["loss"][answers["member"]].mean()
    )
    assert math.isinf(answers["guarantee"])
    (answers,) = dpsgd_models.trained_answers(
        [model(network="cnn", width=2, records=20, choice=once)]
    )
    assert answers["loss"].shape == (20,)
    assert 0 < answers["guarantee"] <= 8


def test_a_network_whose_time_is_over_goes_on_from_its_checkpoint(tmp_path, monkeypatch):
    twice = dpsgd_models.Choice(epochs=2, batches=2)
    network = model(network="cnn", width=2, records=20, choice=twice)
    (whole,) = dpsgd_models.trained_answers([network])
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv(UNTIL_VARIABLE, "1")
    for _ in range(2):
        with pytest.raises(BudgetSpent):
            dpsgd_models.trained_answers([network])
    (ended,) = dpsgd_models.trained_answers([network])
    np.testing.assert_array_equal(ended["loss"], whole["loss"])
    assert not list(tmp_path.rglob("*.checkpoint"))


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return dpsgd.run_dpsgd(SMALL, folder=tmp_path_factory.mktemp("sweep"))


def test_every_method_is_judged_on_what_it_did_not_see_in_orders_of_the_package(results, tmp_path):
    bounds = results.bounds
    assert len(bounds) == 3 * 2 * 2 * (len(dpsgd.SETS) + len(dpsgd.ORDERS))
    for _, row in bounds[bounds["method"].isin(dpsgd.SETS)].iterrows():
        half = row["records"] - row["records"] // 2
        bound = one_run_epsilon(row["correct"], row["guesses"], total=half, delta=1e-5)
        assert row["bound"] == pytest.approx(float(bound))
    whole = bounds[bounds["method"] == "whole"]
    assert (whole["guesses"] == whole["records"] / 2).all()
    one = SMALL.model(("mislabelled", 60), 0.0, SMALL.choices[1], 0)
    answers = dpsgd_models.model_answers([one], folder=tmp_path)[one]
    row = next(row for row in dpsgd._audits(SMALL, one, answers) if row["method"] == "adaptive")
    scores = MembershipScores.from_labels(-answers["loss"], answers["member"])
    assert row["bound"] == audit_one_run(scores, delta=1e-5).epsilon


def test_settings_are_chosen_by_the_auc_on_models_that_are_not_judged(results):
    assert set(results.tried["seed"]) == {500}
    assert set(results.bounds["seed"]) == {0, 1}
    best = results.tried.loc[results.tried.groupby(["panel", "epsilon"])["auc"].idxmax()]
    chosen = best.set_index(["panel", "epsilon"])["epochs"]
    for _, row in dpsgd.model_rows(results.bounds).iterrows():
        assert chosen[row["panel"], row["epsilon"]] == row["epochs"]
    assert dpsgd.DpSgdConfig(seed=1).model(("natural", 0), 8.0, {"epochs": 1}, 0).seed == 1000


def test_no_bound_lies_above_the_guarantee_and_committed_ones_read_back_as_they_were(
    results, tmp_path
):
    assert not dpsgd.above_guarantee(results.bounds)["above_guarantee"].any()
    checked = dpsgd.above_guarantee(results.bounds.assign(bound=9.0))
    assert (checked["above_guarantee"] == checked["bounds"]).all()
    results.bounds.to_csv(tmp_path / "a.csv", index=False)
    origin = {"date": "2026-01-02", "cpu": "a CPU", "cores": 2, "gpu": None, "seconds": 60.0}
    origin["files"] = {"a.csv": file_sha256(tmp_path / "a.csv")}
    write_result(tmp_path / "a.json", RunResult(notebook="n", profile="default", provenance=origin))
    table, _ = measured_table(str(tmp_path / "a.csv"))
    assert dpsgd_evidence(table) == dpsgd_evidence(results.bounds)
    assert len(dpsgd.model_rows(table)) == 6
    assert dpsgd.above_guarantee(table).equals(dpsgd.above_guarantee(results.bounds))


def test_a_resumed_sweep_ends_as_an_uninterrupted_one(tmp_path, monkeypatch):
    small = replace(
        SMALL, mislabelled=(60,), epsilons=(0.0,), choices=({"epochs": 1}, {"epochs": 2})
    )
    whole = dpsgd.run_dpsgd(small, folder=tmp_path / "whole").bounds
    first, calls = dpsgd.model_answers, []

    def interrupted(models, **options):
        calls.append(len(models))
        if len(calls) == 2:
            first(models[:3], **options)
            raise KeyboardInterrupt
        return first(models, **options)

    monkeypatch.setattr(dpsgd, "model_answers", interrupted)
    with pytest.raises(KeyboardInterrupt):
        dpsgd.run_dpsgd(small, folder=tmp_path / "stopped")
    train, learned = dpsgd_models.trained_answers, []
    counted = wraps(train)(lambda models: learned.extend(models) or train(models))
    monkeypatch.setattr(dpsgd_models, "trained_answers", counted)
    again = dpsgd.run_dpsgd(small, folder=tmp_path / "stopped").bounds
    assert len(learned) == calls[1] - 3, "what was trained before is read again"
    numbers = again.select_dtypes("number").drop(columns="seconds")
    np.testing.assert_allclose(numbers, whole[numbers.columns], rtol=1e-6, atol=1e-9)


def made_up(gain):
    """Bounds of five models at two epsilons; Algorithm 1 lies ``gain`` above its rivals with few
    canaries.
    """
    rng = np.random.default_rng(0)
    rows = [
        {"panel": panel, "epsilon": epsilon, "seed": seed, "method": method, "bound": own + extra}
        for panel, level in (
            ("natural", 0.5),
            ("1,000 mislabelled", 2.0),
            ("10,000 mislabelled", 3.0),
        )
        for epsilon in (8.0, math.inf)
        for seed in range(5)
        for own in [level + rng.normal(0, 0.01)]
        for method in dpsgd.SETS
        for extra in [gain * (method == "printed" and panel.startswith("1,000"))]
    ]
    return pd.DataFrame(rows)


def test_the_committed_record_is_that_of_the_committed_table():
    path = Path(__file__).parents[4] / "book" / "measured" / "output_set_dpsgd.csv"
    table, _ = measured_table(str(path))
    (evidence,) = dpsgd_evidence(table)  # the table has Algorithm 1 as printed alone
    kept = [from_dict(record) for record in read_result(path.with_suffix(".json")).records]
    assert [recorded.reading for recorded, _ in kept] == list(dpsgd.READINGS.values())
    assert {scale.level for _, scale in kept} == {"paper's data"}
    (printed,) = [recorded for recorded, _ in kept if recorded.reading == evidence.reading]
    assert printed.samples() == evidence.samples()


def test_evidence_has_a_value_for_each_model_and_gains_are_paired():
    bounds = made_up(0.3)
    # What is infinite is no guarantee, so that it counts in no mean.
    behind = np.isinf(bounds["epsilon"]) & (bounds["method"] == "printed")
    far = bounds.assign(bound=bounds["bound"].where(~behind, bounds["bound"] - 9.0))
    (alone,) = dpsgd_evidence(far)
    assert np.mean(alone.values["optimal at or above top/bottom"]) == pytest.approx(0.3 / 3)
    assert alone.reading == dpsgd.READINGS["printed"]
    others = bounds[bounds["method"] == "printed"]
    readings = pd.concat([others.assign(method=name) for name in ("both_small", "no_threshold")])
    assert [one.reading for one in dpsgd_evidence(bounds, readings)] == list(
        dpsgd.READINGS.values()
    )
    (printed,) = dpsgd_evidence(bounds)
    values = printed.values
    one_of_three = pytest.approx([0.3 / 3] * 5)
    assert values["optimal at or above top/bottom"] == one_of_three
    few = values["gain largest with few canaries"]["1,000 mislabelled against 10,000 mislabelled"]
    assert few == pytest.approx([0.3] * 5)
    above = values["canaries above natural"]
    assert np.mean(above["1,000 mislabelled"]) == pytest.approx(1.8, abs=0.05)
    assert min(values["something found"]) > 2.9
    row = (
        dpsgd.gains(bounds)
        .set_index(["panel", "rival"])
        .loc[("1,000 mislabelled", "top_bottom")]
        .iloc[0]
    )
    assert row["gain"] == pytest.approx(0.3)
    assert row["high"] - row["low"] < 1e-6
    counts = dpsgd.ahead_and_behind(bounds, ["printed", "top_bottom"]).set_index(
        ["method", "rival"]
    )
    settings, rivals = len(bounds.groupby(["panel", "epsilon"])), bounds["method"].nunique() - 1
    wide = dpsgd.gains(bounds, confidence=1 - 0.05 / (settings * rivals)).query(
        "rival == 'top_bottom'"
    )
    row = counts.loc[("printed", "top_bottom")]
    assert row["settings"] == len(wide)
    assert row["ahead"] == (wide["low"] > 0).sum() > 0
    assert counts.loc[("top_bottom", "printed"), "behind"] == row["ahead"]
    assert row["behind"] == (wide["high"] < 0).sum()


def test_settings_out_of_range_are_refused():
    wrong = {"epsilons": (1.0, 1.0)}, {"epsilons": (-1.0,)}, {"choices": ()}, {"seeds": 501}
    for changes in (*wrong, {"tuning_seeds": 0}):
        refused(next(iter(changes)).removeprefix("tuning_"), dpsgd.DpSgdConfig, **changes)
