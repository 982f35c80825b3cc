"""Values of parameters and YAML files as somebody writes them who wants code to run."""

import ast
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from paperlib.audits.planned.sealed_plan import seal_plan
from paperlib.report.audit.about import About, read_about
from paperlib.reproduction.running.parameters import (
    assignment,
    check_parameters,
    parse_assignments,
    parse_parameters,
    split_assignments,
    with_values,
)
from paperlib.reproduction.sweeps.schedulers import sweep_place

CELL = (
    "scores = ''\nkind = 'scores'\ndelta = 1e-05\nsizes = [1, 2]\nflag = True\nanything = None\n"
    "count = 3\n"
)
NAMES = ("scores", "anything", "sizes", "count", "delta", "flag")
RUNS = "__import__('pathlib').Path('RAN').touch()"
VALUES = [
    f"x'\n{RUNS}#",
    f'"""\n{RUNS}\n"""',
    "\\",
    "\\'",
    "a\rb",
    "a\u2028b",
    "\x00",
    "{{x}}",
    "$(touch RAN)",
    "`id`",
    "%run x",
    "!touch RAN",
    "é\ud800",
    "'''",
    "a" * 100_000,
    RUNS,
    f"[{RUNS}]",
    "(lambda: 1)()",
    "(" * 300 + ")" * 300,
    "[" * 100_000,
    "9" * 10_000,
    "1e999",
    "nan",
    "-0",
    "0x10",
    "1_000",
    "٣",
    "True",
    "{'a': 1}",
    "b'x'",
    "[1, [2]]",
    "[1.0]",
    f"1;{RUNS}",
    f"1\n{RUNS}",
]


def written_back(name: str, value: str) -> dict[str, Any] | None:
    """What the cell says after it was given a value, as Python reads it; None where it is refused.

    All statements must still be assignments of literals.
    """
    parameters = parse_parameters(CELL, "toy")
    try:
        checked = check_parameters(parameters, {name: value}, "toy")
    except ValueError:
        return None
    statements = ast.parse(with_values(CELL, checked)).body
    found: dict[str, Any] = {}
    for statement in statements:
        assert isinstance(statement, ast.Assign)
        found[ast.unparse(statement.targets[0])] = ast.literal_eval(statement.value)
    assert found == checked
    return found


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
def test_a_value_is_a_literal_of_its_type_or_refused(here, name, value):
    found = written_back(name, value)
    assert not Path("RAN").exists()
    if found is None:
        return
    types = {"scores": str, "sizes": list, "count": int, "delta": float, "flag": bool}
    assert isinstance(found[name], types.get(name, object))
    if name == "delta":
        assert math.isfinite(found[name])


@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
def test_the_command_that_repeats_a_run_gives_the_value_again(value):
    parameters = parse_parameters(CELL, "toy")
    checked = check_parameters(parameters, {"scores": value}, "toy")
    words = split_assignments(assignment("scores", checked["scores"]))
    assert check_parameters(parameters, parse_assignments(words), "toy") == checked


def laughs(key: str) -> str:
    """A text of which each line holds nine times the one before it: 9^11 words."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    for number in range(1, 12):
        inner = ", ".join([f"*a{number - 1}"] * 9)
        lines.append(f"a{number}: &a{number} [{inner}]")
    return "\n".join([*lines, f"{key}: *a11\n"])


YAML: dict[str, str | bytes] = {
    "a tag that calls": "coins: !!python/object/apply:os.mkdir ['RAN']\nscore: x\n",
    "a tag that names": "score: !!python/name:os.system\n",
    "laughs": laughs("b"),
    "laughs in a field": laughs("model"),
    "deep": "a: " + "[" * 50_000,
    "deep in lines": "\n".join(" " * depth + "a:" for depth in range(300)),
    "an anchor on itself": "a: &a [*a]\n",
    "merged keys": "x: &x {score: a}\n<<: *x\n",
    "a key twice": "score: a\nscore: b\n",
    "two documents": "score: a\n---\nscore: b\n",
    "no character": 'score: "\\0"\n',
    "bytes": b"\xff\xfe\x00",
    "a list": "- a\n",
    "a number as key": "1: x\n",
    "a set": "model: !!set {a, b}\n",
    "a long line": "model: " + "a" * 5_000_000 + "\n",
    "empty": "",
    "a comment": "# x\n",
}


def place_of(path: Path) -> object:
    """Where a sweep would run by a file of a batch system."""
    return sweep_place(f"slurm:{path}")


READERS: dict[str, Callable[[Path], object]] = {"plan": seal_plan, "about": read_about}
EMPTY = {"empty", "a comment"}
TEXTS = {
    "terminal codes": 'notes: "\\e[2J"\n',
    "a tag of bytes": "model: !!binary aGk=\n",
    "words for yes": "model: yes\nversion: on\nowner: no\n",
}
"""YAML that means text here, whatever it means elsewhere."""


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", YAML)
def test_a_file_of_yaml_is_text_or_refused_in_one_line(here, reader, name):
    """No tag makes anything, nothing swells, and nothing is read beyond what is too much."""
    content = YAML[name]
    path = Path("x.yaml")
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    if reader == "about" and name in EMPTY:
        assert READERS[reader](path) == About()
        return
    with pytest.raises(ValueError) as caught:
        READERS[reader](path)
    _, *listed = str(caught.value).split("\n")
    assert all(line.startswith("  ") for line in listed), "a line, and a list of what is wrong"
    assert len(str(caught.value)) < 1_000
    assert not Path("RAN").exists()


@pytest.mark.parametrize("name", TEXTS)
def test_yaml_that_means_something_else_elsewhere_is_text(here, name):
    """In a description; a plan that lacks its fields, and a file of a batch system, refuse it."""
    path = Path("x.yaml")
    path.write_text(TEXTS[name])
    about = read_about(path)
    assert all(isinstance(text, str) for text in about.to_dict().values())
    assert (about.model, about.owner) != ("True", "False")
    for reader in (seal_plan, place_of):
        with pytest.raises(ValueError):
            reader(path)


@pytest.mark.parametrize("name", YAML)
def test_a_file_of_a_batch_system_runs_nothing(here, name):
    content = YAML[name]
    Path("x.yaml").write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ValueError):
        place_of(Path("x.yaml"))
    assert not Path("RAN").exists()


@pytest.mark.parametrize(
    "text",
    [
        "jobqueue:\n  slurm:\n    cores: 1\n    x: &x [a, a]\n    y: [*x, *x]\n",
        "jobqueue:\n  slurm:\n    cores: 1\n    x: " + "a" * 5_000_000,
    ],
    ids=["references", "a long line"],
)
def test_a_file_of_a_batch_system_that_swells_is_one_line(here, text):
    Path("x.yaml").write_text(text)
    with pytest.raises(ValueError, match="holds") as caught:
        place_of(Path("x.yaml"))
    assert len(str(caught.value)) < 200
