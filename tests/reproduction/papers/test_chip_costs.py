"""What a chip is asked for is counted as on paper, and measured times stay beside it."""

from pathlib import Path

import pandas as pd
import pytest
import torch
from torch import nn

from paperlib.reproduction.papers import chip_costs as costs
from paperlib.reproduction.running import find_project, plan

HERE = find_project(Path(__file__).parent)
COMMITTED = HERE.measured / "estimates" / "chip_costs.csv"


def test_operations_and_memory_of_two_layers_are_those_counted_by_hand():
    step = costs.counted(
        lambda: nn.Sequential(nn.Linear(30, 20), nn.ReLU(), nn.Linear(20, 7)),
        lambda count: (torch.empty(count, 30),),
    )
    assert step.parameters == 31 * 20 + 21 * 7
    assert step.forward == 2 * (30 * 20 + 20 * 7)
    # Back to both weights, and to the hidden units; none to the inputs.
    assert step.training == step.forward + 2 * (30 * 20 + 20 * 7 + 20 * 7)
    assert step.kept == 2 * 20, "the hidden units in bfloat16; inputs and weights are there anyway"


def test_known_models_have_their_size_and_a_stage_adds_up():
    step = costs._classifier("resnet101")
    assert step.parameters == pytest.approx(42.5e6, rel=0.01)
    assert step.forward == pytest.approx(5.0e9, rel=0.02)
    row = costs.Stage("a", "b", step, trained=1e6, asked=1e5, batch=4, private=True).row()
    work = 1e6 * step.training * 4 / 3 + 1e5 * step.forward
    assert row["PFLOP"] == pytest.approx(work / 1e15)
    assert row["estimate, s"] == pytest.approx(work / (0.4 * 989.4e12))
    assert row["steps"] == 250_000


def test_the_committed_table_is_that_of_the_profile(monkeypatch):
    committed = pd.read_csv(COMMITTED)
    makefile = (HERE.root / "Makefile").read_text("utf-8")
    assert f"GPU_NB  ?= {' '.join(costs._TARGETS)}\n" in makefile
    assert list(committed["notebook"].drop_duplicates()) == list(costs._TARGETS)
    few = ("epsilon_star_landscape", "output_set_dpsgd")
    monkeypatch.setattr(costs, "_TARGETS", {name: costs._TARGETS[name] for name in few})
    table = costs.chip_costs(lambda stem: plan(HERE, stem, profile="gpu").parameters)
    rows = committed[committed["notebook"].isin(few)].reset_index(drop=True)
    pd.testing.assert_frame_equal(rows[table.columns], table, rtol=1e-3, check_dtype=False)
    # No target is planned for longer than its ten minutes, nor a stage for longer than four.
    assert committed.groupby("notebook")["estimate, s"].sum().max() < 600
    assert committed["estimate, s"].max() < 240


def test_measured_seconds_stay_when_the_stages_are_counted_again():
    table = pd.DataFrame({"notebook": ["a", "a"], "stage": ["x", "y"], "PFLOP": [98.94, 1.0]})
    first = costs.with_measured(table, None)
    assert first["measured, s"].isna().all()
    first.loc[0, "measured, s"] = 200.0
    again = costs.with_measured(table, first)
    assert again["measured, s"].tolist()[0] == 200
    assert again["share of peak"].tolist()[0] == pytest.approx(0.5)
    assert again["share of peak"].isna().tolist() == [False, True]
