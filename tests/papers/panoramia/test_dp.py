"""Targets with DP-SGD: which ones, their DP guarantees, and verdicts that can fail."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from paperlib.attacks.learned.images import ImageStack
from paperlib.audits.panoramia.config import AuditConfig
from paperlib.audits.panoramia.image_models import ImageHelper
from paperlib.audits.panoramia.pools import Pool, Pools
from paperlib.audits.panoramia.results import TargetAudits, TargetScores
from paperlib.generators.image_quality import FakeFilter
from paperlib.generators.images import FlowConfig
from paperlib.papers.panoramia import dp_tables as tables
from paperlib.papers.panoramia.dp import DpPlan, DpResults, dp_guarantees, run_dp
from paperlib.papers.panoramia.images.data import ImageSplit
from paperlib.papers.panoramia.images.pools import ImageConfig
from paperlib.report.printed import target_ids
from paperlib.training import TrainingConfig, epsilon_of

PLAN = DpPlan(widths=(8, 4), epsilons=(10.0, 2.0))
M = 600


def test_targets_go_up_in_epsilon_with_the_null_first_and_none_private_without_epsilon():
    targets = PLAN.targets()
    assert [target.name for target in targets[:4]] == ["mlp null", "mlp eps 2", "mlp eps 10", "mlp no DP"]
    assert [target.null for target in targets].count(True) == 2
    assert [target.dp_epsilon for target in targets[:4]] == [None, 2.0, 10.0, None]
    assert {target.architecture for target in targets} == {"mlp", "cnn"}


def test_pairs_differ_in_training_and_not_in_epsilon():
    by = {target.name: target for target in PLAN.targets()}
    for first, again in PLAN.pairs():
        assert by[first].dp_epsilon == by[again].dp_epsilon
        assert by[first].run != by[again].run or by[first].epochs != by[again].epochs
    assert by["mlp eps 10 again"].learning_rate == PLAN.dp_rate_again


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"architectures": ("mlp", "mlp")}, "architectures: expected two different names"),
        ({"architectures": ("mlp",)}, "architectures"),
        ({"widths": (8,)}, "widths: expected two"),
        ({"epsilons": ()}, "epsilons: expected one or more"),
        ({"epsilons": (2.0, 2.0)}, "all different"),
        ({"dp_rate_again": 0.01}, "dp_rate_again: expected another rate"),
        ({"epochs_again": 40}, "epochs_again: expected another number"),
    ],
)
def test_plans_that_make_no_sense_are_refused(wrong, named):
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
    assert np.isinf(found.loc[["mlp null", "mlp no DP"], ["epsilon", "epsilon_replacement"]]).all(axis=None)


def made(leaks=None, gaps=None, null=0.0, plan=PLAN):
    """Results whose attacks beat the baseline by what ``leaks`` says of a target, in standard deviations."""
    leaks = {"mlp no DP": 3.0, "cnn no DP": 3.0, "mlp no DP again": 1.5, **(leaks or {})}
    leaks |= {"mlp null": null, "cnn null": null}
    gaps = {"mlp no DP": 0.2, **(gaps or {})}
    targets = plan.targets()
    details = pd.DataFrame(
        {"train_metric": [0.6 + gaps.get(target.name, 0.01) for target in targets], "test_metric": 0.6}
    )
    blank = Pool(np.zeros((2, 1)), {}, {target.name: np.zeros((2, 1)) for target in targets})
    pools = Pools(blank, blank, None, tuple(target.audited for target in targets), details=details)
    config = AuditConfig(train=2, validation=2, test=M, repetitions=2)
    judged = []
    for seed in range(config.repetitions):
        rng = np.random.default_rng(seed)
        membership, noise = rng.random(M) < 0.5, rng.normal(size=M)
        for target in pools.targets:
            attack = noise + membership * (1.0 + leaks.get(target.name, 0.0))
            judged.append(TargetScores(target, "panoramia", seed, noise + membership, attack, membership))
            real = noise + membership * leaks.get(target.name, 0.0)
            judged += [
                TargetScores(target, audit, seed, np.empty(0), real, membership) for audit in ("rm_rn", "o1")
            ]
    epsilons = [target.dp_epsilon or np.inf for target in targets]
    guarantees = pd.DataFrame({"target": list(pools.target_names), "epsilon": epsilons})
    guarantees["epsilon_replacement"] = 2.5 * guarantees["epsilon"]
    return DpResults(
        pools,
        {"helpers": TargetAudits(tuple(judged), config)},
        plan=plan,
        guarantees=guarantees,
        counts=(1000, 500),
    )


def judge(results, relaxed):
    sizes = tables.sizes_table(results, [200, M], results.plan.family(0))
    found = tables.verdicts(results, relaxed, sizes)
    assert all(set(row) == {"target", "holds", "ours", "note", "paper"} for row in found)
    assert {row["target"] for row in found} <= set(target_ids())
    return {row["target"].removeprefix("panoramia-"): row for row in found}


@pytest.fixture(scope="module")
def results():
    return made()


@pytest.fixture(scope="module")
def relaxed(results):
    return tables.table_eleven(results, ["mlp no DP"], gammas=[0.0, 1e-4, 1e-3], deltas=[0.0, 1e-5])


def test_a_leak_without_dp_alone_holds_and_the_note_says_what_it_rests_on(results, relaxed):
    found = judge(results, relaxed)
    assert found["table-07"]["holds"]
    assert found["table-08"]["holds"]
    assert found["figure-05"]["holds"]
    assert found["figure-06"]["holds"]
    assert "rests on the model without DP alone" in found["table-07"]["note"]
    # The pair with DP leaks nothing, so that nothing follows its gaps.
    assert not found["table-10"]["holds"]
    assert "without DP the outcome follows the gap" in found["table-10"]["note"]


def test_leaks_in_the_order_of_epsilon_and_of_gaps_hold(relaxed):
    leaky = made({"mlp eps 10": 2.0, "mlp eps 10 again": 0.0}, {"mlp eps 10": 0.1, "mlp eps 10 again": 0.02})
    found = judge(leaky, relaxed)
    assert found["table-07"]["holds"]
    assert "alone" not in found["table-07"]["note"]
    assert found["table-10"]["holds"]


def test_broken_twins_do_not_hold(relaxed):
    small = judge(made({"mlp eps 2": 2.5, "mlp eps 10": 2.5, "cnn eps 10": 5.0}), relaxed)
    assert not small["table-07"]["holds"]
    assert "not 0 at small epsilon" in small["table-07"]["note"]
    assert not small["table-08"]["holds"]
    assert "falls as epsilon grows" in small["table-08"]["note"]
    gaps = {"mlp eps 10": 0.02, "mlp eps 10 again": 0.1}
    assert not judge(made({"mlp eps 10": 2.0}, gaps), relaxed)["table-10"]["holds"]
    faint = judge(made({"mlp eps 2": 0.06, "mlp eps 10": 0.06, "mlp no DP": 0.1}), relaxed)
    assert not faint["table-07"]["holds"]
    assert "no more than 0.1 above small epsilon without DP" in faint["table-07"]["note"]
    assert not faint["figure-05"]["holds"]
    nothing = judge(made({"mlp no DP": 0.0}), relaxed)
    assert not nothing["table-07"]["holds"]
    assert "no leakage without DP" in nothing["table-07"]["note"]
    assert not nothing["figure-05"]["holds"]


def test_relaxations_price_gamma_and_leave_the_baseline_alone_as_delta_changes(results, relaxed):
    anytime = relaxed[relaxed["search"] == "anytime"]
    assert anytime.groupby("gamma")["c_lb"].nunique().eq(1).all()
    for _, rows in anytime.groupby("delta"):
        assert (np.diff(rows["c_lb"]) < 0).all()
        assert (np.diff(rows["c_plus_eps_lb"]) < 0).all()
    # The union over recall refutes nothing unless 2 m gamma is at most beta / 2.
    union = relaxed[(relaxed["search"] == "union") & (relaxed["gamma"] > 0)]
    assert (union["failures"] > 0.025).all()
    assert union[["c_lb", "c_plus_eps_lb"]].eq(0).all(axis=None)
    assert judge(results, relaxed)["table-11"]["holds"]
    moved = relaxed.assign(c_lb=relaxed["c_lb"] - 1e4 * relaxed["delta"])
    assert not judge(results, moved)["table-11"]["holds"]
    assert not judge(results, relaxed[relaxed["gamma"] == 0])["table-11"]["holds"]


def test_tables_stand_beside_the_papers_numbers(results):
    seven = tables.table_by_epsilon(results, 0).set_index("target")
    assert seven.loc["mlp eps 10", "paper eps_tilde"] == 0.26
    assert seven.loc["mlp no DP", "paper o1"] == 1.471
    assert np.isnan(seven.loc["mlp null", "paper eps_tilde"])
    assert seven.loc["mlp no DP", "gap"] == pytest.approx(20)
    eight = tables.table_by_epsilon(results, 1)
    assert eight.loc[eight["target"] == "(paper only)", "epsilon"].tolist() == [1.0, 15.0, 20.0]
    ten = tables.table_ten(results)
    assert list(ten["source"]) == ["ours"] * 4 + ["paper"] * 4
    assert ten.loc[ten["target"] == "ResNet18, variant 1", "gap"].tolist() == [4.7, 3.31]


def test_few_images_go_all_the_way(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    small = {"epochs": 1, "width": 4}
    plan = replace(PLAN, epsilons=(2.0,), dp_epochs=1, dp_batch=120, epochs=2, epochs_again=1)
    config = ImageConfig(
        split=ImageSplit(generator=60, members=60, nonmembers=60, others=60),
        generator=FlowConfig(width=16, blocks=1, steps=10, sampler_steps=3, levels=5),
        fakes=FakeFilter(threshold=1.0),
        generated=60,
        helper_images=40,
        labeler=ImageHelper(name="labeler", data="real", **small),
        helpers=(ImageHelper(name="synthetic", data="synthetic", **small),),
        targets=plan.targets(),
    )
    audit = AuditConfig(
        train=20, validation=20, test=20, attacks=(ImageStack(loss_steps=10),), repetitions=1, restarts=1
    )
    results = run_dp(config, plan, audit)
    assert results.counts == (120, 60)
    assert results.plan.family(0) == ["mlp eps 2", "mlp no DP"]
    assert results.pools.table["train_metric"].between(0, 1).all()
    assert set(results.audits.table["target"]) == {target.name for target in plan.targets()}
    assert {"rm_rn", "o1"} <= set(tables.table_by_epsilon(results, 0))
