"""The reference documents every public name of the rooms that it lists by name, each once."""

import importlib
import re
from pathlib import Path

import pytest

API = Path(__file__).parents[2] / "book" / "api"
LISTED = re.compile(r"^\.\. names:: (\S+)\n\n((?:   \w+\n)+)", re.MULTILINE)


def listed(package: str) -> list[str]:
    """Names of a package on the pages of the reference."""
    pages = [page.read_text(encoding="utf-8") for page in (API / package.rpartition(".")[2]).glob("*.md")]
    return sorted(
        name
        for page in pages
        for of, names in LISTED.findall(page)
        if of == package
        for name in names.split()
    )


def own(package: str) -> list[str]:
    """Public functions and classes that a package offers and that no other room defines."""
    room = importlib.import_module(package)
    offered = {name: getattr(room, name) for name in dir(room) if not name.startswith("_")}
    return sorted(
        name
        for name, thing in offered.items()
        if str(getattr(thing, "__module__", "")).startswith(f"{package}.")
    )


@pytest.mark.parametrize("package", ["paperlib.audits", "paperlib.bounds"])
def test_every_public_name_is_documented_once(package):
    assert len(own(package)) > 20
    assert listed(package) == own(package)
