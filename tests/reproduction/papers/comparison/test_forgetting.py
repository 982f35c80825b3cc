"""A model that is trained again shows nothing, and one that forgot nothing is found."""

import copy
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch.nn.functional import cross_entropy

from paperlib.reproduction.papers.comparison.forgetting import (
    METHODS,
    ForgettingConfig,
    compare_forgetting,
    digits_task,
    gpt_task,
    retrained_bounds,
)
from tests.refusals import refused

SMALL = ForgettingConfig(pairs=200, kept=300, outside=100, test=300, noisy_labels=0.5, epochs=60)
FORGOTTEN, UNTOUCHED = "trained again without them", "nothing done"


@pytest.fixture(scope="module")
def table():
    return compare_forgetting(digits_task(SMALL)).set_index("method")


def test_what_was_not_forgotten_is_known_and_a_model_trained_again_shows_nothing(table):
    assert [*table.index] == [*METHODS]
    assert table.loc[UNTOUCHED, "known"] > 0 == table.loc[FORGOTTEN, "epsilon"]
    assert abs(table.loc[FORGOTTEN, "auc"] - 0.5) < 0.1 < table.loc[UNTOUCHED, "auc"] - 0.5
    assert table["detected"].between(1, SMALL.pairs).all()
    assert (table["epsilon"] == table[["known", "forced"]].max(axis=1)).all()
    assert table["accuracy_before"].nunique() == 1


def test_ascent_raises_the_loss_and_stops_at_that_of_unseen_records():
    task = digits_task(replace(SMALL, forget_epochs=100))
    model = task.new_model(0)  # untrained: its losses are those of unseen records
    forgotten, outside = (mean_loss(model, part) for part in (task.forgotten, task.outside))
    climbed = METHODS["ascent"](task, copy.deepcopy(model))
    assert mean_loss(climbed, task.forgotten) > 2 * forgotten
    stopped = METHODS["ascent, stopped"](task, copy.deepcopy(model))
    assert outside <= mean_loss(stopped, task.forgotten) < outside + 0.1


def mean_loss(model, records) -> float:
    with torch.no_grad():
        return float(cross_entropy(model(records.x), records.y))


def test_no_record_is_in_two_parts_and_pairs_have_equal_labels():
    task = digits_task(SMALL)
    assert torch.equal(task.forgotten.y, task.unseen.y)
    parts = (task.kept, task.forgotten, task.unseen, task.outside, task.test)
    rows = torch.cat([part.x for part in parts])
    assert len(rows) == SMALL.records == len(torch.unique(rows, dim=0))


def test_a_text_is_a_record_of_its_tokens():
    small = ForgettingConfig(
        pairs=40, kept=40, outside=20, test=20, epochs=12, forget_epochs=1, seed=1
    )
    rows: Any = compare_forgetting(gpt_task(small)).set_index("method")
    assert rows.loc[UNTOUCHED, "auc"] > rows.loc[FORGOTTEN, "auc"]
    assert rows.loc[FORGOTTEN, "epsilon"] == 0


def test_bounds_of_models_that_were_trained_again_are_seldom_above_zero():
    small = ForgettingConfig(pairs=100, kept=100, outside=1, test=1, epochs=3, width=16)
    again: Any = retrained_bounds(small, models=30)
    assert (again["epsilon"] > 0).sum() <= 5  # more by chance once in 300 at a rate of 5 %
    assert [*again["seed"]] == [*range(30)]


def test_too_few_pairs_and_too_many_records_are_refused():
    refused("pairs", ForgettingConfig, pairs=5)
    refused("records", digits_task, ForgettingConfig(kept=2000))
