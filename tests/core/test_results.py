"""Results speak, escape and serialise; bounds are shown rounded down."""

import json
import math
from dataclasses import dataclass, replace

import numpy as np
import pytest

from paperlib.core import (
    AuditResult,
    Guess,
    Sides,
    check_choice,
    check_counts,
    check_nonnegative,
    json_ready,
    round_down,
)
from paperlib.core.results import ScoreAudit, round_up


@dataclass(frozen=True, kw_only=True, eq=False)
class Example(AuditResult):
    epsilon: float
    values: np.ndarray

    @property
    def headline(self):
        return f"epsilon >= {round_down(self.epsilon)}"


RESULT = Example(
    claim="a < b",
    assumptions=("x & y",),
    condition="if p < q",
    warnings=("look",),
    epsilon=math.inf,
    values=np.array([1.0, np.nan]),
)


def test_text_and_html():
    assert str(RESULT).splitlines()[1:4] == ["if p < q", "", "Claim: a < b"]
    assert str(replace(RESULT, condition="")).splitlines()[1:3] == ["", "Claim: a < b"]
    assert "Warning: look" in str(RESULT)
    page = RESULT._repr_html_()
    assert (
        page.index(f"{RESULT.headline.replace('>', '&gt;')}")
        < page.index("if p &lt; q")
        < page.index("a &lt; b")
    )
    assert "<em>" not in replace(RESULT, condition="")._repr_html_()
    assert "x &amp; y" in page


def test_to_dict_is_json():
    assert json.loads(json.dumps(RESULT.to_dict())) == {
        "claim": "a < b",
        "assumptions": ["x & y"],
        "condition": "if p < q",
        "warnings": ["look"],
        "notes": [],
        "epsilon": "inf",
        "values": [1.0, "nan"],
    }


def test_the_repr_of_a_result_is_one_line_with_its_headline():
    assert repr(RESULT) == "Example(epsilon >= inf)"
    shown = repr(ScoreAudit(title="a", kind="lower bound", purpose="b", result=RESULT))
    assert "Example(epsilon >= inf)" in shown
    assert "\n" not in shown


def test_a_subclass_may_have_a_repr_of_its_own():
    @dataclass(frozen=True, kw_only=True, eq=False)
    class Own(Example):
        def __repr__(self):
            return "own"

    assert repr(Own(claim="", assumptions=(), epsilon=1.0, values=np.zeros(2))) == "own"


def test_the_text_of_one_of_several_audits_has_the_condition_below_the_number():
    one = ScoreAudit(title="a", kind="lower bound", purpose="b", result=RESULT)
    assert str(one).splitlines()[1:3] == [f"  {RESULT.headline}", "  if p < q"]
    assert one.to_dict()["result"]["condition"] == "if p < q"


def test_results_are_frozen():
    with pytest.raises(AttributeError):
        RESULT.epsilon = 1


@pytest.mark.parametrize(
    ("value", "shown"), [(1.6308, 1.63), (1.6309999, 1.63), (0.0, 0.0), (-0.1234, -0.124)]
)
def test_round_down(value, shown):
    assert round_down(value) == pytest.approx(shown)
    assert round_down(math.inf) == math.inf


@pytest.mark.parametrize(
    ("value", "shown"), [(1.6301, 1.631), (1.63, 1.63), (0.0, 0.0), (1e-9, 0.001), (math.inf, math.inf)]
)
def test_round_up(value, shown):
    assert round_up(value) == pytest.approx(shown)
    assert math.copysign(1, round_up(value)) == 1


def test_checks_name_the_argument():
    with pytest.raises(ValueError, match="mode: expected one of 'a', 'b', got 'c'"):
        check_choice("mode", "c", ("a", "b"))
    with pytest.raises(ValueError, match="n: expected at least 1, got 0"):
        check_counts("n", 0, minimum=1)
    with pytest.raises(ValueError, match="x: expected a number in"):
        check_nonnegative("x", -1)
    with pytest.raises(ValueError, match="x: expected a number, got 'a'"):
        check_nonnegative("x", "a")


def test_json_ready_nested():
    assert json_ready({"a": (np.int64(1), {"b": np.bool_(True)})}) == {"a": [1, {"b": True}]}


def test_a_table_of_a_result_has_one_row_of_its_single_values():
    table = RESULT.to_frame()
    assert list(table.columns) == ["claim", "condition", "epsilon"]
    assert table["epsilon"].tolist() == [math.inf]
    assert RESULT.curve is None


def test_options_are_checked_by_their_literal():
    check_choice("guess", "grid", Guess)
    with pytest.raises(ValueError, match="guess: expected one of 'both', 'members', got 'grid'"):
        check_choice("guess", "grid", Sides)
