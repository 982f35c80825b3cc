"""Rooms stay small and keep to themselves (import-linter checks the directions of imports)."""

import ast
from collections import Counter
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "paperlib"
MODULES = sorted(PACKAGE.rglob("*.py"))
FOLDERS = sorted({path.parent for path in MODULES})
MOST_ENTRIES = 16


def private_imports(source: str, room: str) -> list[str]:
    """Names with a leading underscore that ``source``, a module of ``room``, takes from other
    rooms.
    """
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("paperlib"):
            taken = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            taken = [alias.name for alias in node.names if alias.name.startswith("paperlib")]
        else:
            continue
        found += [
            name for name in taken if not name.startswith(f"paperlib.{room}.") and "._" in name
        ]
    return found


def test_modules_use_only_public_names_of_other_rooms():
    rooms = {path: path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in MODULES}
    taken = {path: private_imports(path.read_text(), room) for path, room in rooms.items()}
    assert {path: names for path, names in taken.items() if names} == {}


def test_a_private_import_is_seen():
    assert private_imports("from paperlib.core.checks import _as_floats", "bounds")
    assert private_imports("import paperlib.core._x", "bounds")
    assert not private_imports("from paperlib.bounds.one_run.tails import _x", "bounds")


def test_folders_show_few_entries():
    for folder in FOLDERS:
        shown = [path.name for path in folder.iterdir() if not path.name.startswith("__")]
        assert len(shown) <= MOST_ENTRIES, folder


def test_no_two_classes_share_a_name():
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in MODULES)
    names = [
        node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)
    ]
    assert sorted(name for name, count in Counter(names).items() if count > 1) == []
