"""No room reaches into another's private names (import directions are import-linter's work)."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "paperlib"


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


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_module_uses_only_public_names_of_other_rooms(path):
    room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    assert private_imports(path.read_text(), room) == []


def test_a_private_import_is_seen():
    assert private_imports("from paperlib.core.checks import _as_floats", "bounds")
    assert private_imports("import paperlib.core._x", "bounds")
    assert not private_imports("from paperlib.bounds.one_run.tails import _x", "bounds")
