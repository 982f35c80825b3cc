"""The default audit comes near the best rule that knew the shape of the leak."""

import pytest

from paperlib.validity import shapes
from paperlib.validity.one_run_cases import searched_epsilon
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
        shapes,
        "searched_epsilon",
        lambda scores, guess, **more: searched_epsilon(scores, guess="both", **more),
    )
    lost = shape_bounds(ShapesConfig(sizes=(1_000,), deltas=(0.0,), draws=2))
    assert lost["adaptive"].equals(lost["both"])
