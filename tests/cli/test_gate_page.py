"""The book's page about the gate: its example runs, and its tables are complete."""

import json
import re
from pathlib import Path

import pytest
import yaml

from paperlib.cli import gate, guard
from tests.cli.test_audit import audit, document, leaky  # noqa: F401

PAGE = (Path(__file__).parents[2] / "book" / "gate.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def rows(name):
    """First cells of a table, each as the names in it."""
    table = PAGE.partition(f":name: {name}")[2].partition("````")[0]
    lines = [line for line in table.splitlines() if line.startswith("| ")][2:]
    return [re.findall(r"[\w-]+", line.split("|")[1]) for line in lines]


def test_the_pytest_example_passes_and_can_fail(capsys):
    names: dict[str, object] = {}
    (code,) = blocks("python")
    exec(code, names)
    check = names["test_the_model_is_not_shown_to_leak_more_than_the_limit"]
    check()
    names["LIMIT"] = 0.0
    with pytest.raises(AssertionError, match="differentially private"):
        check()


def test_the_tables_of_fields_and_exit_codes_are_those_of_the_command_and_the_ci_examples_run(audit):  # noqa: F811
    listed = [field for row in rows("tbl-audit-json") for field in row]
    assert sorted(listed) == sorted(document(audit, "own.csv"))
    known = {
        0, guard.INTERNAL_ERROR, guard.USAGE_ERROR, gate.FAILED_GATE, guard.INTERRUPTED, guard.BROKEN_PIPE,
    }  # fmt: skip
    assert {int(code) for (code,) in rows("tbl-exit-codes")} == known
    leaky(0, size=2000, gap=0.5).to_csv("scores.csv", index=False)
    for text in blocks("yaml"):
        steps = json.dumps(yaml.safe_load(text))
        (words,) = re.findall(r"paperlib (audit [^\"]*)", steps)
        assert audit(*words.split()[1:])[0] == 0
        assert Path("audit.html").is_file()
        assert Path("audit.xml").is_file()
