"""The table of what was tried is that of the tests."""

import csv
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest

from tests.security.tried import HERE, KINDS, ROOT, TABLE, count, kinds, named_test, table

CASES = KINDS.with_name("cases.csv")
"""Attacks and faults, each with the test that tries it, and by which parameter."""


def test_the_table_of_the_page_counts_what_the_tests_try():
    assert TABLE.read_text(encoding="utf-8") == table(), "run python -m tests.security.tried"


def test_every_file_that_the_page_names_is_there():
    page = (ROOT / "book" / "security.md").read_text(encoding="utf-8")
    named = re.findall(r"`(tests/[\w/.]+)`", page)
    assert len(named) >= 10
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_no_test_is_counted_twice():
    named = [test for kind in kinds() for test in kind["tests"]]
    assert len(named) == len(set(named)), KINDS.name


def test_the_count_is_the_product_of_the_parameters_and_a_lost_test_is_named():
    own_words = "tests/security/test_own_words.py"
    assert count(f"{own_words}::test_a_value_is_a_literal_of_its_type_or_refused") == 34 * 6
    assert count(f"{own_words}::test_a_value_is_a_literal_of_its_type_or_refused of NAMES") == 6
    with pytest.raises(ValueError, match="no test test_of_nothing"):
        count(f"{own_words}::test_of_nothing")


def is_parameter(reference: str, parameter: str) -> bool:
    """Whether a test tries this: a value of each of its lists, with " / " between them."""
    marks = [mark for mark in named_test(reference).pytestmark if mark.name == "parametrize"]
    values = parameter.split(" / ")
    if len(values) > len(marks):
        return False
    return all(value in names_of(mark) for value, mark in zip(values, marks, strict=False))


def names_of(mark: Any) -> set[str]:
    """The values of one list, by their names where they have some; of several columns each."""
    if mark.kwargs.get("ids") is not None:
        return set(map(str, mark.kwargs["ids"]))
    names: set[str] = set()
    for value in mark.args[1]:
        columns: Iterable[object] = value if isinstance(value, tuple) else [value]
        names.update(map(str, columns))
    return names


def cases() -> list[dict[str, str]]:
    with CASES.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_each_attack_and_fault_has_a_test_that_is_there():
    made = {name: set(make()) for name, make in HERE.items()}
    lost: list[dict[str, str]] = []
    for row in cases():
        test, _, name = row["test"].partition(" of ")
        parameter = row["parameter"]
        assert callable(named_test(test))
        if name:
            is_known = parameter in made[name]
        else:
            is_known = not parameter or is_parameter(test, parameter)
        if not is_known:
            lost.append(row)
    assert lost == []
    named = [(row["kind"], row["case"]) for row in cases()]
    assert [name for name, times in Counter(named).items() if times > 1] == []
    assert len(named) >= 420


def test_a_lost_test_and_a_lost_parameter_are_seen():
    kept = "tests/security/test_kept_answers.py::test_a_lost_line_is_asked_again"
    with pytest.raises(ValueError, match="no test test_a_lost_line"):
        named_test(kept)
    whole = f"{kept}_and_no_other_answer_moves"
    assert (is_parameter(whole, "5"), is_parameter(whole, "6")) == (True, False)
    yaml = "tests/security/test_own_words.py::test_a_file_of_yaml_is_text_or_refused_in_one_line"
    assert is_parameter(yaml, "deep / plan")
    assert not is_parameter(yaml, "deep / none")
    assert not is_parameter(yaml, "deep / plan / more")
