"""Results speak, escape and serialise; bounds are shown rounded down."""

import json
import math
from dataclasses import dataclass, replace

import numpy as np
import pytest

from paperlib import core
from paperlib.core.checks import check_choice, check_counts, check_nonnegative, did_you_mean
from paperlib.core.options import Sides
from paperlib.core.results import ScoreAudit, json_ready, round_up
from tests.refusals import refused


@dataclass(frozen=True, kw_only=True, eq=False)
class Example(core.AuditResult):
    epsilon: float
    values: np.ndarray
    delta: float = 0.0
    confidence: float | None = None
    total: int | None = None
    guesses: int | None = None
    correct: int | None = None
    ceiling: float | None = None

    @property
    def headline(self):
        return f"epsilon >= {core.round_down(self.epsilon)}"


SAID = {"claim": "a < b", "assumptions": ("x & y",), "condition": "if p < q", "warnings": ("look",)}
RESULT = Example(**SAID, epsilon=math.inf, values=np.array([1.0, np.nan]))


def test_text_and_html():
    assert str(RESULT).splitlines()[1:4] == ["if p < q", "", "Claim: a < b"]
    assert str(replace(RESULT, condition="")).splitlines()[1:3] == ["", "Claim: a < b"]
    assert "Warning: look" in str(RESULT)
    page = RESULT._repr_html_()
    places = [
        page.index(text) for text in ("epsilon &gt;= inf", "if p &lt; q", "a &lt; b", "x &amp; y")
    ]
    assert places == sorted(places)
    assert "<em>" not in replace(RESULT, condition="")._repr_html_()


def test_to_dict_is_json():
    assert json_ready({"a": (np.int64(1), {"b": np.bool_(True)})}) == {"a": [1, {"b": True}]}
    lists = {"assumptions": ["x & y"], "warnings": ["look"], "notes": [], "values": [1.0, "nan"]}
    lists |= {"doubts": []}
    facts = {"delta": 0.0, "copies": 1, "sided": "one", "refusals": [], "adjacency": ""}
    facts |= dict.fromkeys(("direction", "unit", "coins", "plan"), "")
    absent = ("confidence", "total", "guesses", "correct", "ceiling", "design")
    facts |= dict.fromkeys(absent, None)
    written = json.loads(json.dumps(RESULT.to_dict()))
    assert written == {**SAID, **lists, **facts, "epsilon": "inf"}


def test_the_repr_table_and_part_of_several_of_a_result():
    assert repr(RESULT) == "Example(epsilon >= inf)"

    @dataclass(frozen=True, kw_only=True, eq=False)
    class Own(Example):
        def __repr__(self):
            return "own"

    assert repr(Own(claim="", assumptions=(), epsilon=1.0, values=np.zeros(2))) == "own"
    one = ScoreAudit(title="a", kind="lower bound", purpose="b", result=RESULT)
    lines = ["epsilon >= inf", "if p < q", "a < b", "Warning: look"]
    assert str(one).split("\n  ") == ["a (lower bound)", *lines]
    assert one.to_dict()["result"]["condition"] == "if p < q"
    assert str(replace(one, result=None, refused="no")) == "a (lower bound)\n  not possible: no"
    table = RESULT.to_frame()
    assert {"claim", "condition", "epsilon", "delta", "adjacency"} <= set(table.columns)
    assert not {"values", "warnings", "refusals"} & set(table.columns)
    assert table["epsilon"].tolist() == [math.inf]
    assert RESULT.curve is None


def test_bounds_are_rounded_to_their_safe_side():
    for value, below, above in (
        (1.6301, 1.63, 1.631),
        (1.63, 1.63, 1.63),
        (0.0, 0.0, 0.0),
        (-0.1234, -0.124, -0.123),
        (1e-9, 0, 0.001),
    ):
        assert (core.round_down(value), round_up(value)) == pytest.approx((below, above))
    assert math.copysign(1, round_up(0.0)) == 1
    assert core.round_down(math.inf) == round_up(math.inf) == math.inf


def test_checks_name_the_argument():
    refused("mode: expected one of 'a', 'b', got 'c'", check_choice, "mode", "c", ("a", "b"))
    refused(
        "guess: expected one of 'both', 'members', got",
        check_choice,
        "guess",
        "grid",
        Sides,
    )
    refused("x: expected a number in", check_nonnegative, "x", -1)
    refused("x: expected a number, got 'a'", check_nonnegative, "x", "a")
    refused(r"n: expected whole numbers, got 1\.5", check_counts, "n", [[1, 1.5]])
    refused("n: expected at least 0, got -1", check_counts, "n", -1)


def test_the_nearest_known_word_is_suggested_and_no_far_one():
    for word, known in (
        ("los", "loss"),
        ("Loss", "loss"),
        ("membr", "Member"),
        ("far", ""),
        ("", ""),
    ):
        hint = f"; did you mean {known!r}?" if known else ""
        assert did_you_mean(word, ["loss", "Member", "id"]) == hint
        assert did_you_mean(word, []) == ""
