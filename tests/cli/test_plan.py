"""``paperlib plan``: the numbers of `plan_audit`, and one line for every mistake."""

import json

import numpy as np
import pandas as pd
import pytest

from paperlib.bounds import plan_audit
from paperlib.core import MembershipScores


@pytest.fixture
def pilot(here, monkeypatch):
    """A pilot in three files: a table of losses, and one file per class."""
    monkeypatch.setattr(
        "paperlib.bounds.one_run.pilot._BURN_IN", 100
    )  # the same short walk on both sides
    monkeypatch.setattr("paperlib.bounds.one_run.pilot._STEPS", 600)
    rng = np.random.default_rng(0)
    member = rng.integers(0, 2, 200)
    loss = rng.normal(0, 1, 200) - 1.5 * member
    pd.DataFrame({"nll": loss, "member": member}).to_csv("pilot.csv", index=False)
    np.save("members.npy", loss[member == 1])
    np.save("others.npy", loss[member == 0])
    return MembershipScores(loss[member == 1], loss[member == 0], higher_means_member=False)


def test_the_ceiling_and_the_examples_for_an_epsilon_are_printed(command):
    plan = plan_audit(100, 1e-5)
    assert command.line("plan --m 100 --delta 1e-5") == (0, f"{plan}\n", "")
    words = "plan --epsilon 1 --auc 0.99 --power 0.6 --simulations 3 --json"
    printed = json.loads(command.line(words)[1])
    plan = plan_audit(epsilon=1.0, power=0.6, attack=0.99, simulations=3)
    assert (printed["total"], printed["headline"], printed["power"]) == (
        plan.total,
        plan.headline,
        0.6,
    )
    assert printed["reached"] >= 1


def test_a_pilot_is_read_as_the_audit_reads_it(pilot, command):
    plan = plan_audit(60, attack=pilot, simulations=5)
    table = "plan --m 60 --simulations 5 --pilot pilot.csv --score-column nll"
    pair = "plan --m 60 --simulations 5 --pilot members.npy --nonmembers others.npy --kind losses"
    for words in (f"{table} --losses", pair):
        assert command.line(words) == (0, f"{plan}\n", "")
    assert command.line(f"{table} --kind scores")[1] != f"{plan}\n"


def test_a_mistake_is_one_line(pilot, command):
    refuses = command.of("plan").refuses
    refuses("", "give --m")
    refuses("--m 10 --epsilon 1", "--epsilon: contradicts --m")
    refuses("--m 10 --auc 0.7 --pilot pilot.csv", "--auc: contradicts --pilot")
    refuses("--m 10 --auc 1.5", "--auc: expected a number in [0.5, 1)")
    refuses("--m 10 --losses", "--pilot: is missing")
    refuses("--m 10 --pilot none.csv", "none.csv")
    refuses("--m 10 --pilot pilot.csv --score-column xyz", "no column 'xyz'")
    refuses("--m 10 --pilot pilot.csv --kind scores --losses", "contradicts --kind scores")
    refuses("--m 1", "m: ")
    refuses("--epsilon 1 --power 80", "power: expected a number in [0.5, 0.99]")
    refuses("--epsilon 40", "no audit of up to 10000000 examples shows 40")
    refuses("--m ten", "--m")
