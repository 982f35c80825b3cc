"""The cases of the validity page with few audits, and the power comparison: every twin is
caught.
"""

from dataclasses import replace

import numpy as np
import pytest

from paperlib.bounds import audit_one_run
from paperlib.core import MembershipScores
from paperlib.reproduction.validity import power
from paperlib.reproduction.validity.cases import our_cases
from paperlib.reproduction.validity.common_rules import rule_cases
from paperlib.reproduction.validity.coverage import ValidityConfig, simulate
from paperlib.reproduction.validity.detection import detection_misses
from paperlib.reproduction.validity.one_run_cases import searched_epsilon
from paperlib.reproduction.validity.power import (
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
from tests.reproduction.validity.coverage import assert_rate_at_most

CONFIG = ValidityConfig(trials=80)
ONE_RUN = ("one run", "delta in one run", "f-DP in one run")
FAMILIES = (*ONE_RUN, "several runs", "PANORAMIA", "ranks", "output sets", "Epsilon*", "many runs")
ABOVE = "above the nominal level"


@pytest.fixture(scope="module")
def cases():
    return our_cases(CONFIG)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_sound_bound_keeps_its_level(cases, family):
    sound = [case for case in cases if case.valid and case.family == family]
    assert sound
    for row in simulate(sound, CONFIG).itertuples():
        assert_rate_at_most(0.05, row.wrong, row.trials)


@pytest.mark.parametrize("number", range(11))
def test_every_twin_is_caught(cases, number):
    twins = [case for case in cases if "(twin)" in case.bound]
    assert len(twins) == 11
    assert {case.family for case in cases} == set(FAMILIES)
    assert not twins[number].valid
    bound = twins[number].bound
    # Enough for each to be seen.
    trials = 30 if "looked at" in bound else 400 if bound.startswith("default, blind") else 150
    assert simulate([twins[number]], replace(CONFIG, trials=trials))["verdict"].item() == ABOVE


def test_limits_of_detection_hold_and_one_that_forgets_the_looks_is_caught():
    rows = detection_misses(CONFIG)
    assert rows["valid"].sum() == 5
    for row in rows[rows["valid"]].itertuples():
        assert_rate_at_most(0.2, row.wrong, row.trials, 1e-4)
    assert (rows.loc[~rows["valid"], "verdict"] == ABOVE).all()


def test_every_rule_in_common_use_is_caught_the_control_is_not_and_every_row_has_its_own_name(
    cases,
):
    """All but one that is wrong in a little more than 5 % of its audits, too few to be seen
    here.
    """
    seen = [case for case in rule_cases(CONFIG) if "size of the ROC hull" not in case.bound]
    frame = simulate(seen, replace(CONFIG, trials=200))
    above = frame.assign(above=frame["verdict"] == ABOVE).groupby("bound")["above"].any()
    assert set(above[~above].index) == {"control: number of guesses fixed in advance"}
    names = [(case.family, case.bound, case.mechanism) for case in [*cases, *rule_cases(CONFIG)]]
    assert len(set(names)) == len(names)


def test_the_game_removes_the_pull_of_unbalanced_classes():
    """900 members, 100 non-members, no signal; the rules above show what skipping the game does."""
    rng = np.random.default_rng(13)
    draws = (MembershipScores(rng.normal(size=900), rng.normal(size=100)) for _ in range(150))
    played = sum(audit_one_run(s, design="game", seed=i).epsilon > 0 for i, s in enumerate(draws))
    assert_rate_at_most(0.05, played, 150)


def test_power_table_and_hindsight_find_either_end():
    table = mean_bounds(PowerConfig(sizes=(300, 3_000), deltas=(0.0, 1e-4), draws=3))
    of_gaussian = [name for name in BOUNDS if "Gaussian" in name]  # no finite epsilon at delta 0
    assert len(table) == 2 * (2 * len(BOUNDS) - len(of_gaussian))
    assert (table["highest"] <= table["truth"]).all()
    assert (table["lowest"] <= table["mean"]).all()
    wide = table.query("examples == 3000 and delta == 1e-4").set_index("bound")["mean"]
    assert wide["anytime (default)"] > wide["every count, published delta"]
    assert wide["dyadic counts, sharp delta"] >= wide["dyadic counts, published delta"]
    rng = np.random.default_rng(4)
    top = MembershipScores(np.append(rng.normal(size=400), np.full(60, 9.0)), rng.normal(size=440))
    bottom = MembershipScores(-top.nonmember, -top.member)
    assert (
        hindsight(top, 0.95)
        == hindsight(bottom, 0.95)
        > audit_one_run(top, guess="members").epsilon
        > 2
    )


def test_no_design_on_the_same_scores_passes_the_line_in_hindsight():
    table = design_bounds(PowerConfig(sizes=(400, 2_000), draws=3))
    assert len(table) == 2 * len(LEAKS) * (len(DESIGNS) + 1)
    wide = table.pivot(index=["leak", "examples"], columns="design", values="mean")
    for design in set(DESIGNS) - {"ranks of sets"}:
        assert (wide[design] <= wide[ORACLE]).all()
    assert wide.loc[("one member in ten", 2_000), "randomized, members"] > 2


def test_little_is_lost_against_the_best_fixed_rule_and_a_default_of_both_ends_is_caught(
    monkeypatch,
):
    table = shape_bounds(ShapesConfig(sizes=(1_000,), deltas=(0.0,), draws=10)).set_index("shape")
    for shape in SHAPES:
        assert table.loc[shape, "lost"] < (0.5 if shape == "3 % of members memorised" else 0.25), (
            shape
        )
    for rule in power.FIXED:
        assert (table.adaptive - table[rule]).max() > 1

    def both(scores, guess, **more):
        return searched_epsilon(scores, guess="both", **more)

    monkeypatch.setattr(power, "searched_epsilon", both)
    lost = shape_bounds(ShapesConfig(sizes=(1_000,), deltas=(0.0,), draws=2))
    assert lost["adaptive"].equals(lost["both"])
