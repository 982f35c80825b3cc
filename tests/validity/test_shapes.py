"""The default audit comes near the best rule that knew the shape of the leak."""

import pytest

from paperlib.bounds import audit_one_run
from paperlib.validity import shapes
from paperlib.validity.shapes import SHAPES, ShapesConfig, shape_bounds


@pytest.fixture(scope="module")
def table():
    return shape_bounds(ShapesConfig(sizes=(1_000,), deltas=(0.0,), draws=20)).set_index("shape")


@pytest.mark.parametrize("shape", SHAPES)
def test_little_is_lost_against_the_best_rule_in_hindsight(table, shape):
    goal = 0.5 if shape == "3 % of members memorised" else 0.25
    assert table.loc[shape, "lost"] < goal


def test_every_fixed_rule_is_far_behind_somewhere(table):
    for rule in shapes.FIXED:
        assert (table.adaptive - table[rule]).max() > 1


def test_a_default_that_guesses_both_ends_is_caught(monkeypatch):
    monkeypatch.setattr(
        shapes, "audit_one_run", lambda scores, guess, **more: audit_one_run(scores, guess="both", **more)
    )
    table = shape_bounds(ShapesConfig(sizes=(1_000,), deltas=(0.0,), draws=2))
    assert table["adaptive"].equals(table["both"])
