"""Targets with DP-SGD: which ones, their DP guarantees, and samples for the rules."""

from dataclasses import asdict, replace

import numpy as np
import pandas as pd
import pytest

from paperlib.audits.panoramia.game import AuditConfig
from paperlib.audits.panoramia.pools import Pool, Pools
from paperlib.audits.panoramia.results import TargetAudits, TargetScores
from paperlib.bounds.one_run.tails import refuted_log_odds
from paperlib.reproduction.papers.panoramia import dp
from paperlib.reproduction.papers.panoramia.dp import DpPlan, DpResults, dp_guarantees, run_dp
from paperlib.reproduction.papers.panoramia.images.data import ImageSplit
from paperlib.reproduction.papers.panoramia.images.pools import ImageConfig
from paperlib.reproduction.papers.panoramia.results import by_game
from paperlib.training import TrainingConfig, epsilon_of

PLAN = DpPlan(widths=(8, 4), epsilons=(10.0, 2.0))
M = 600


def test_targets_go_up_in_epsilon_after_the_null_and_pairs_differ_in_training_alone():
    by = {target.name: target for target in PLAN.targets()}
    assert list(by)[:4] == ["mlp null", "mlp eps 2", "mlp eps 10", "mlp no DP"]
    assert [name for name in by if by[name].null] == ["mlp null", "cnn null"]
    assert [target.dp_epsilon for target in by.values()][:4] == [None, 2.0, 10.0, None]
    for first, again in PLAN.pairs():
        assert by[first].dp_epsilon == by[again].dp_epsilon
        assert by[first].run != by[again].run or by[first].epochs != by[again].epochs
    assert by["mlp eps 10 again"].learning_rate == PLAN.dp_rate_again


def test_plans_that_make_no_sense_are_refused():
    for wrong, named in (
        ({"architectures": ("mlp", "mlp")}, "architectures: expected two different names"),
        ({"choices": ({"epochs": 3},)}, "choices: expected none, or two and more"),
        ({"widths": (8,)}, "widths: expected two"),
        ({"epsilons": ()}, "epsilons: expected one or more"),
        ({"epsilons": (2.0, 2.0)}, "all different"),
        ({"dp_rate_again": 0.01}, "dp_rate_again: expected another value than dp_rate"),
        ({"epochs_again": 40}, "epochs_again: expected another value than epochs"),
    ):
        with pytest.raises(ValueError, match=named):
            DpPlan(**wrong)


def test_guarantees_keep_what_was_asked_for_and_replacement_costs_more():
    plan = replace(PLAN, epsilons=(2.0,), dp_batch=1000, dp_epochs=3)
    found = dp_guarantees(plan.targets(), 1000).set_index("target")
    own = found.loc["mlp eps 2"]
    process = TrainingConfig(epochs=plan.dp_epochs, batch_size=plan.dp_batch, learning_rate=1.0)
    kept = epsilon_of(own["noise"], process.sampling_rate(1000), process.steps(1000), plan.delta)
    assert 1.99 < kept <= 2.0
    assert own["epsilon_replacement"] > 2 * 2.0
    assert np.isinf(found.loc[["mlp null", "mlp no DP"], ["epsilon", "epsilon_replacement"]]).all(
        axis=None
    )


def made(leaks=None, gaps=None, plan=PLAN):
    """Results whose attacks beat the baseline by what ``leaks`` says of a target, in standard
    deviations.
    """
    leaks = {"mlp no DP": 3.0, "cnn no DP": 3.0, "mlp no DP again": 1.5, **(leaks or {})}
    gaps = {"mlp no DP": 0.2, **(gaps or {})}
    targets = plan.targets()
    trained = [0.6 + gaps.get(target.name, 0.01) for target in targets]
    details = pd.DataFrame({"train_metric": trained, "test_metric": 0.6})
    blank = Pool(np.zeros((2, 1)), {}, {target.name: np.zeros((2, 1)) for target in targets})
    pools = Pools(blank, blank, None, tuple(target.audited for target in targets), details=details)
    config = AuditConfig(train=2, validation=2, test=M, repetitions=2)
    judged = []
    for seed in range(config.repetitions):
        rng = np.random.default_rng(seed)
        membership, noise = rng.random(M) < 0.5, rng.normal(size=M)
        for target in pools.targets:
            real = noise + membership * leaks.get(target.name, 0.0)
            baseline, attack = noise + membership, real + membership
            judged.append(TargetScores(target, "panoramia", seed, baseline, attack, membership))
            for audit in ("rm_rn", "o1"):
                judged.append(TargetScores(target, audit, seed, np.empty(0), real, membership))
    epsilons = np.array([target.dp_epsilon or np.inf for target in targets])
    guarantees = pd.DataFrame({"target": list(pools.target_names), "epsilon": epsilons})
    guarantees["epsilon_replacement"] = 2.5 * epsilons
    audits = {"helpers": TargetAudits(tuple(judged), config)}
    return DpResults(pools, audits, plan=plan, guarantees=guarantees, counts=(1000, 500))


@pytest.fixture(scope="module")
def results():
    return made()


def values_of(results):
    return {one.target.removeprefix("panoramia-"): one.values for one in dp.evidence(results)}


def test_epsilons_are_compared_within_games_and_families_as_far_as_the_plan_has_them():
    plan = replace(PLAN, epsilons=(15.0, 2.0, 1.0))
    leaky = made(
        {"mlp eps 15": 2.0, "mlp eps 2": -0.5, "cnn eps 15": 0.5}, {"mlp eps 15": 0.1}, plan=plan
    )
    eps = {name: by_game(leaky.decisive, name) for name in leaky.pools.target_names}
    found = values_of(leaky)
    seven = found["table-07"]
    assert seven["0 at small epsilon"] == {
        name: eps[name].tolist() for name in ("mlp eps 1", "mlp eps 2")
    }
    assert max(seven["0 at small epsilon"]["mlp eps 2"]) < 0, "not clipped"
    assert seven["grows with epsilon"] == (eps["mlp eps 15"] - eps["mlp eps 2"]).tolist()
    assert seven["most without DP"] == (eps["mlp no DP"] - eps["mlp eps 15"]).tolist()
    assert seven["null"] == {"mlp null": eps["mlp null"].tolist()}
    assert seven["something to find"].value == pytest.approx(10)
    shares = [(0.7 * 0.3, 1000), (0.6 * 0.4, 500)]
    assert seven["something to find"].error == pytest.approx(
        100 * sum(v / n for v, n in shares) ** 0.5
    )
    assert (
        found["table-08"]["grows with epsilon"] == (eps["cnn eps 15"] - eps["cnn eps 2"]).tolist()
    )
    both = [
        by_game(leaky.decisive, name, column="c_plus_eps_lb")
        for name in ("mlp eps 15", "mlp eps 1")
    ]
    assert found["figure-05"]["c+eps grows with epsilon"] == (both[0] - both[1]).tolist()
    assert found["figure-06"]["null"] == seven["null"]
    alone = values_of(made(plan=replace(PLAN, epsilons=(20.0,))))
    assert alone["table-07"]["0 at small epsilon"] == {}
    assert (
        alone["table-07"]["grows with epsilon"]
        == alone["figure-05"]["c+eps grows with epsilon"]
        == []
    )


def test_of_two_trainings_with_one_epsilon_the_wider_gap_comes_first():
    gaps = {"mlp eps 10": 0.02, "mlp eps 10 again": 0.1}
    leaky = made({"mlp eps 10": 2.0, "mlp eps 10 again": 0.0}, gaps)
    ten = values_of(leaky)["table-10"]
    eps = {name: by_game(leaky.decisive, name) for name in gaps}
    assert ten["wider gap leaks more"] == (eps["mlp eps 10 again"] - eps["mlp eps 10"]).tolist()
    assert max(ten["wider gap leaks more"]) < -0.1
    assert ten["something leaks"] == eps["mlp eps 10"].tolist()
    assert ten["gaps apart"].value == pytest.approx(8)
    assert ten["gaps apart"].error > leaky.numbers["gap_error"]["mlp eps 10"]


def test_printed_relaxations_are_set_against_what_the_propositions_leave():
    ranges = dp.table_eleven_ranges()
    assert len(ranges) == 18
    above = ranges.query("epsilon == 2 and delta == 0")["c_lb high"]
    assert above.round(3).tolist() == [2.503, 2.37, 0.659]
    row = ranges.query("epsilon == 10 and delta == 0 and gamma == 1e-5").iloc[0]
    # By hand: of the pairs with a bound of 2.833 the one with most guesses loses least.
    right, guesses = np.meshgrid(np.arange(2400, 2501), np.arange(2500, 2700))
    bounds = refuted_log_odds(right, guesses, 0.025, 0.0)
    shows = np.abs(bounds - 2.833) <= 0.0005
    left = refuted_log_odds(right[shows], guesses[shows], 0.025, 0.1)
    assert row["c_plus_eps_lb high"] == pytest.approx(left.max(), abs=1e-9)
    assert row["c_plus_eps_lb low"] < row["c_plus_eps_lb"] == 2.801 < row["c_plus_eps_lb high"]
    assert row["c_lb"] > row["c_lb high"]
    (values,) = dp.table_eleven_evidence(ranges).values.values()
    assert values["eps 10, delta 0, gamma 1e-05"].value == pytest.approx(2.507 - row["c_lb high"])
    inside = ranges.assign(c_lb=ranges["c_lb high"], c_plus_eps_lb=ranges["c_plus_eps_lb low"])
    (values,) = dp.table_eleven_evidence(inside).values.values()
    assert {one.value for one in values.values()} == {0.0}


def test_relaxations_price_gamma_and_leave_the_baseline_alone_as_delta_changes(results):
    relaxed = dp.table_eleven(results, ["mlp no DP"], gammas=[0.0, 1e-4, 1e-3], deltas=[0.0, 1e-5])
    anytime = relaxed[relaxed["search"] == "anytime"]
    assert anytime.groupby("gamma")["c_lb"].nunique().eq(1).all()
    for _, rows in anytime.groupby("delta"):
        assert (np.diff(rows["c_lb"]) < 0).all()
        assert (np.diff(rows["c_plus_eps_lb"]) < 0).all()
    # The union over recall refutes nothing unless 2 m gamma is at most beta / 2.
    union = relaxed[(relaxed["search"] == "union") & (relaxed["gamma"] > 0)]
    assert (union["failures"] > 0.025).all()
    assert union[["c_lb", "c_plus_eps_lb"]].eq(0).all(axis=None)


def test_tables_stand_beside_the_papers_numbers_the_wider_gap_first(results):
    seven = dp.table_by_epsilon(results, 0).set_index("target")
    assert seven.loc["mlp eps 10", "paper_eps_tilde"] == 0.26
    assert seven.loc["mlp no DP", "paper_o1"] == 1.471
    assert np.isnan(seven.loc["mlp null", "paper_eps_tilde"])
    assert seven.loc["mlp no DP", "gap"] == pytest.approx(20)
    eight = dp.table_by_epsilon(results, 1)
    assert eight["target"].tolist()[-3:] == [
        "the paper, eps 1",
        "the paper, eps 15",
        "the paper, eps 20",
    ]
    plan = replace(PLAN, epsilons=(20.0,))
    ten = dp.table_ten(made({"mlp eps 20 again": 0.5}, plan=plan)).set_index("target")
    own = ["mlp eps 20", "mlp eps 20 again", "mlp no DP", "mlp no DP again"]
    assert list(ten.index) == [*own, *["the paper, eps 15"] * 2]
    printed = ten.loc[own[:2], ["paper_target", "paper_gap", "paper_eps_tilde"]].to_numpy().tolist()
    assert printed == [["ResNet18, variant 1", 4.7, 1.06], ["ResNet18, variant 2", 3.7, 0.0]]
    assert ten.loc["mlp no DP", "paper_target"] is np.nan


@pytest.mark.parametrize("at", [0, 1, 2])
def test_of_the_settings_tried_that_of_the_highest_training_accuracy_is_kept(monkeypatch, at):
    choices = (
        {"learning_rate": 0.5, "optimizer": "sgd"},
        {"batch_size": 99, "epochs": 3, "clip_norm": 0.5},
        {"epochs": 2, "batch_size": 50, "learning_rate": 0.1, "optimizer": "adam"},
    )
    plan, asked = replace(PLAN, choices=choices), []

    def accuracies(config):
        asked.append(config.targets)
        return [0.4 + 0.1 * ((number - at - 1) % 3) for number, _ in enumerate(config.targets)]

    monkeypatch.setattr(dp, "training_accuracies", accuracies)
    tuned = dp._tuned(ImageConfig(targets=plan.targets()), plan)
    targets = {one.name: one for one in tuned}
    assert [len(tried) for tried in asked] == [3] * 4  # both families at both epsilons
    own, again = targets["cnn eps 2"], targets["mlp eps 10 again"]
    assert asdict(own).items() >= choices[at].items()
    assert own.run == asked[2][at].run, "what was trained while tuning is not trained again"
    assert asdict(again).items() >= choices[(at + 1) % 3].items()  # of the lowest accuracy
    assert again.dp_epsilon == 10
    for one, planned in zip(tuned, plan.targets(), strict=True):
        assert one.name == planned.name
        assert one == planned or planned.dp_epsilon is not None


def test_the_accountant_is_asked_about_as_many_examples_as_the_targets_learn(monkeypatch):
    """The smoke profile of the notebook trains and audits; here both are left out."""
    monkeypatch.setattr(dp, "image_pools", lambda config: None)
    monkeypatch.setattr(dp, "audit_pools", lambda pools, audit: None)
    plan = replace(PLAN, epsilons=(2.0,), dp_batch=120)
    split = ImageSplit(generator=60, members=60, nonmembers=50, others=70)
    config = ImageConfig(split=split, targets=plan.targets())
    results = run_dp(config, plan, AuditConfig(train=2, validation=2, test=M))
    assert results.counts == (120, 50)
    pd.testing.assert_frame_equal(results.guarantees, dp_guarantees(plan.targets(), 120))
    assert results.settings["target"].tolist() == ["mlp eps 2", "cnn eps 2", "mlp eps 2 again"]
