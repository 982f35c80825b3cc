"""Rooms stay small and keep to themselves (import-linter checks the directions of imports)."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "paperlib"
MODULES = sorted(PACKAGE.rglob("*.py"))
FOLDERS = sorted({path.parent for path in MODULES})
MOST_ENTRIES, MOST_MODULE_LINES, MOST_LINES, MOST_ROOM_SHARE = 15, 400, 58_330, 0.4  # papers draws its pages


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


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_module_uses_only_public_names_of_other_rooms(path):
    room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    assert private_imports(path.read_text(), room) == []


def test_a_private_import_is_seen():
    assert private_imports("from paperlib.core.checks import _as_floats", "bounds")
    assert private_imports("import paperlib.core._x", "bounds")
    assert not private_imports("from paperlib.bounds.one_run.tails import _x", "bounds")


def lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_folder_shows_few_entries(folder):
    shown = {path.name for path in folder.iterdir() if not path.name.startswith("__")} - {"py.typed"}
    assert len(shown) <= MOST_ENTRIES, sorted(shown)


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_module_is_short(path):
    assert lines(path) <= MOST_MODULE_LINES


def test_the_package_is_small_and_no_room_holds_most_of_it():
    by_room = {room: sum(map(lines, room.rglob("*.py"))) for room in PACKAGE.iterdir() if room.is_dir()}
    total = sum(map(lines, MODULES))
    assert total <= MOST_LINES
    assert {room.name for room, count in by_room.items() if count > MOST_ROOM_SHARE * total} == set()
