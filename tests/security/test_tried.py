"""The table of what was tried is that of the tests."""

import re

import pytest

from tests.security.tried import KINDS, ROOT, TABLE, count, kinds, table


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
