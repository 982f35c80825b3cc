"""Rooms stay small and keep to themselves (import-linter checks the directions of imports)."""

import ast
from collections import Counter
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "paperlib"
MODULES = sorted(PACKAGE.rglob("*.py"))
FOLDERS = sorted({path.parent for path in MODULES})
MOST_ENTRIES, MOST_MODULE_LINES, MOST_ROOM_SHARE = 15, 400, 0.3
MOST_LINES, SLACK = 45_330, 200  # falls with the package, and rises by what a new audit may add


def private_imports(source: str, room: str) -> list[str]:
    """Names with a leading underscore that ``source``, a module of ``room``, takes from other rooms."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("paperlib"):
            taken = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            taken = [alias.name for alias in node.names if alias.name.startswith("paperlib")]
        else:
            continue
        found += [name for name in taken if not name.startswith(f"paperlib.{room}.") and "._" in name]
    return found


def test_modules_use_only_public_names_of_other_rooms():
    rooms = {path: path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in MODULES}
    taken = {path: private_imports(path.read_text(), room) for path, room in rooms.items()}
    assert {path: names for path, names in taken.items() if names} == {}


def test_a_private_import_is_seen():
    assert private_imports("from paperlib.core.checks import _as_floats", "bounds")
    assert private_imports("import paperlib.core._x", "bounds")
    assert not private_imports("from paperlib.bounds.one_run.tails import _x", "bounds")


def lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def test_folders_show_few_entries():
    for folder in FOLDERS:
        shown = [path.name for path in folder.iterdir() if not path.name.startswith("__")]
        assert len(shown) <= MOST_ENTRIES, folder


def test_modules_are_short():
    assert {path: lines(path) for path in MODULES if lines(path) > MOST_MODULE_LINES} == {}


def test_the_package_only_shrinks_and_no_room_holds_most_of_it():
    by_room = {room: sum(map(lines, room.rglob("*.py"))) for room in PACKAGE.iterdir() if room.is_dir()}
    total = sum(map(lines, MODULES))
    assert MOST_LINES - SLACK <= total <= MOST_LINES, "lower MOST_LINES with the package"
    assert {room.name for room, count in by_room.items() if count > MOST_ROOM_SHARE * total} == set()


def test_no_two_classes_share_a_name():
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in MODULES)
    names = [node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    assert sorted(name for name, count in Counter(names).items() if count > 1) == []
