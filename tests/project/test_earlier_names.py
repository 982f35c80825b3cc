"""Earlier names of a package work, with a warning that says where each one is."""

import ast
import importlib
from importlib.util import find_spec
from pathlib import Path

import pytest

PACKAGES = ("paperlib", "paperlib.bounds", "paperlib.audits")


def earlier(package: str) -> dict[str, str]:
    return importlib.import_module(package)._EARLIER


@pytest.mark.parametrize("package", PACKAGES)
def test_each_earlier_name_is_in_its_place_and_no_longer_exported(package):
    assert earlier(package)
    for name, place in earlier(package).items():
        path = Path(find_spec(place).origin)
        stub = path.with_suffix(".pyi")
        tree = ast.parse((stub if stub.is_file() else path).read_text(encoding="utf-8"))
        defined = {getattr(node, "name", "") for node in tree.body}
        for node in tree.body:
            if isinstance(node, ast.ImportFrom):
                defined |= {alias.asname or alias.name for alias in node.names}
        assert name in defined, f"{place} has no {name}"
    assert not set(earlier(package)) & set(importlib.import_module(package).__all__)


@pytest.mark.parametrize(
    ("package", "name"),
    [
        ("paperlib", "audit_ranks"),
        ("paperlib.bounds", "AuditPlan"),
        ("paperlib.audits", "Audits"),
    ],
)
def test_an_earlier_name_warns_and_works(package, name):
    place = earlier(package)[name]
    with pytest.warns(DeprecationWarning, match=f"write from {place} import {name}") as caught:
        value = getattr(importlib.import_module(package), name)
    assert value is getattr(importlib.import_module(place), name)
    assert [warning.filename for warning in caught] == [__file__]
