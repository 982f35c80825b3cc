"""What import contracts cannot see: modules and packages that code loads by a text."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "paperlib"
LOADERS = {"import_module", "__import__", "find_spec", "optional_package"}
TAKE_A_NAME = {"core/earlier_names.py", "core/packages.py"}
"""Modules whose functions load what their callers name."""
FEW = {"core": {"core"}, "bounds": {"core", "words", "bounds"}}
"""Rooms that need numpy and scipy alone, and the rooms that they may name."""


def modules(room: str = "") -> list[Path]:
    found = sorted((PACKAGE / room).rglob("*.py"))
    return [path for path in found if "reproduction" not in path.relative_to(PACKAGE).parts]


def texts(tree: ast.Module) -> list[str]:
    """Texts of a module that are dotted names of this package; docstrings are sentences."""
    constants = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    names = (value for value in constants if isinstance(value, str))
    return [name for name in names if re.fullmatch(r"paperlib(\.\w+)+", name)]


def loaded(tree: ast.Module) -> Iterator[ast.expr]:
    """What calls of a loader are given."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args:
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            if name in LOADERS:
                yield node.args[0]


@pytest.mark.parametrize("room", FEW)
def test_core_and_bounds_load_nothing_by_a_text(room):
    by_text, upwards = [], []
    for path in modules(room):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        name = path.relative_to(PACKAGE).as_posix()
        if name not in TAKE_A_NAME:
            by_text += [f"{name}: {ast.unparse(argument)}" for argument in loaded(tree)]
        upwards += [
            f"{name}: {text}" for text in texts(tree) if text.split(".")[1] not in FEW[room]
        ]
    assert by_text == []
    assert upwards == []


def test_the_tool_names_no_module_of_the_reproduction():
    named = [
        f"{path.name}: {text}"
        for path in modules()
        for text in texts(ast.parse(path.read_text(encoding="utf-8")))
        if text.startswith("paperlib.reproduction")
    ]
    assert named == []
