"""What an undecided target says of the repetitions that would decide it."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t

from paperlib.papers.verdict import Estimate, Evidence
from paperlib.papers.verdict.evidence import rules
from paperlib.papers.verdict.outcome import decide
from paperlib.papers.verdict.status import judge, status_table

RULE = rules()["panoramia-table-01"]  # two claims over models, at least 2 and 0.5 points; two conditions
GOOD = {"gap grows": Estimate(9.0), "overfitted": Estimate(99.5), "clean labels": Estimate(0.0)}


def times(**values) -> float:
    given = Evidence(RULE.target, "model", GOOD | values)
    return decide(replace(RULE, repetitions=2), {RULE.notebooks[0]: given}, "paper's data", seeds=9).more


def of_mean(mean: float, size: int) -> list[float]:
    """Values of this mean and the standard deviation 1."""
    values = np.arange(size) - (size - 1) / 2
    return list(mean + values / values.std(ddof=1))


@pytest.mark.parametrize("mean", [0.9, 0.1], ids=["claimed", "contradicted"])
def test_the_stated_repetitions_decide_and_one_fewer_does_not(mean):
    size = round(5 * times(**{"test falls": of_mean(mean, 5)}))
    for count, decided in ((size, True), (size - 1, False)):
        low, high = t.interval(1 - RULE.error / 2, count - 1, mean, 1 / math.sqrt(count))
        assert (low >= 0.5 or high < 0.5) == decided
        given = Evidence(RULE.target, "model", GOOD | {"test falls": of_mean(mean, count)})
        word = decide(RULE, {RULE.notebooks[0]: given}, "paper's data", seeds=9).word
        assert word == ("undecided" if not decided else "agrees" if mean > 0.5 else "disagrees")


def test_each_look_has_the_same_share_of_the_error():
    assert {rule.error for rule in rules().values()} == {0.05, 0.05 / 2, 0.05 / 4}
    wide = of_mean(0.9, 5)
    given = {RULE.notebooks[0]: Evidence(RULE.target, "model", GOOD | {"test falls": wide})}
    contrasts = decide(replace(RULE, error=0.025), given, "paper's data", seeds=9).contrasts
    low, high = t.interval(1 - 0.025 / 2, 4, 0.9, 1 / math.sqrt(5))
    assert [(one.low, one.high) for one in contrasts if one.mean == pytest.approx(0.9)] == [
        (pytest.approx(low), pytest.approx(high))
    ]


def test_a_condition_is_waited_for_and_one_that_fails_in_the_mean_is_no_matter_of_repetitions():
    wide = {"test falls": of_mean(0.9, 5)}
    assert times(**wide, overfitted=of_mean(99.1, 5)) > times(**wide)
    assert times(**wide, overfitted=of_mean(98.9, 5)) == math.inf
    assert times(**{"test falls": of_mean(0.5 + 1e-9, 5)}) == math.inf
    assert math.isnan(times(**{"test falls": Estimate(0.9, 1.0)}))
    assert math.isnan(times(**{"test falls": [], "gap grows": []}))
    assert math.isnan(times(**{"test falls": {}, "gap grows": {}}))


def test_where_more_than_repetitions_is_lacking_no_number_of_them_is_named():
    wide, rule = GOOD | {"test falls": of_mean(0.9, 5)}, replace(RULE, repetitions=2)
    given = {RULE.notebooks[0]: Evidence(RULE.target, "model", wide)}
    assert decide(rule, given, "substitute", seeds=9).more > 1
    assert math.isnan(decide(replace(rule, own_data=True), given, "substitute", seeds=9).more)
    assert math.isnan(decide(replace(rule, repetitions=8), given, "paper's data", seeds=9).more)
    unmet = {**wide, "overfitted": of_mean(99.1, 5)}
    given = {RULE.notebooks[0]: Evidence(RULE.target, "model", unmet)}
    assert decide(rule, given, "paper's data", seeds=9).more > 1
    assert math.isnan(decide(replace(rule, repetitions=8), given, "paper's data", seeds=9).more)


def test_the_table_names_the_cost_by_the_runs_that_were_made():
    values = GOOD | {"test falls": of_mean(0.9, 6)}
    line = {**Evidence(RULE.target, "model", values).to_dict(), "level": "paper's data", "facts": "made up"}
    run = {"notebook": RULE.notebooks[0], "parameters": {"seed": 1}, "provenance": {"seconds": 7200.0}}
    first = status_table(judge([run | {"records": [line]}])).iloc[0]
    assert first["outcome"] == "undecided"
    factor = float(first["to_decide"].split()[1])
    before, after = first["to_decide"].split(": ")[1].split(" hours in place of ")
    assert (float(before), after) == (pytest.approx(2 * factor, abs=0.15), "2.0")
    away = {**line, "facts": "made up, measured elsewhere"}
    assert "hours" not in status_table(judge([run | {"records": [away]}])).iloc[0]["to_decide"]
