"""The power comparison: every bound below the truth, the default search the strongest where it should be."""

import numpy as np

from paperlib.bounds import audit_one_run
from paperlib.core import MembershipScores
from paperlib.validity import power
from paperlib.validity.one_run_cases import searched_epsilon
from paperlib.validity.power import (
    BOUNDS,
    DESIGNS,
    LEAKS,
    ORACLE,
    SHAPES,
    PowerConfig,
    ShapesConfig,
    design_bounds,
    hindsight,
    mean_bounds,
    shape_bounds,
)


def test_power_table_and_hindsight_find_either_end():
    table = mean_bounds(PowerConfig(sizes=(300, 3_000), deltas=(0.0, 1e-4), draws=3))
    assert len(table) == 2 * (2 * len(BOUNDS) - 1)
    assert (table["highest"] <= table["truth"]).all()
    assert (table["lowest"] <= table["mean"]).all()
    wide = table.query("examples == 3000 and delta == 1e-4").set_index("bound")["mean"]
    assert wide["anytime (default)"] > wide["every count, published delta"]
    assert wide["dyadic counts, sharp delta"] >= wide["dyadic counts, published delta"]
    rng = np.random.default_rng(4)
    top = MembershipScores(np.append(rng.normal(size=400), np.full(60, 9.0)), rng.normal(size=440))
    bottom = MembershipScores(-top.nonmember, -top.member)
    assert hindsight(top, 0.95) == hindsight(bottom, 0.95) > audit_one_run(top, guess="members").epsilon > 2


def test_no_design_on_the_same_scores_passes_the_line_in_hindsight():
    table = design_bounds(PowerConfig(sizes=(400, 2_000), draws=3))
    assert len(table) == 2 * len(LEAKS) * (len(DESIGNS) + 1)
    wide = table.pivot(index=["leak", "examples"], columns="design", values="mean")
    for design in set(DESIGNS) - {"ranks of sets"}:
        assert (wide[design] <= wide[ORACLE]).all()
    assert wide.loc[("one member in ten", 2_000), "randomized, members"] > 2


def test_little_is_lost_against_the_best_fixed_rule_and_a_default_that_guesses_both_ends_is_caught(
    monkeypatch,
):
    table = shape_bounds(ShapesConfig(sizes=(1_000,), deltas=(0.0,), draws=10)).set_index("shape")
    for shape in SHAPES:
        assert table.loc[shape, "lost"] < (0.5 if shape == "3 % of members memorised" else 0.25), shape
    for rule in power.FIXED:
        assert (table.adaptive - table[rule]).max() > 1

    def both(scores, guess, **more):
        return searched_epsilon(scores, guess="both", **more)

    monkeypatch.setattr(power, "searched_epsilon", both)
    lost = shape_bounds(ShapesConfig(sizes=(1_000,), deltas=(0.0,), draws=2))
    assert lost["adaptive"].equals(lost["both"])
