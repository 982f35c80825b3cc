"""The reference documents every public name and every module of the rooms that it lists, each
once.
"""

import importlib
import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from book._ext.modules import NAMES, below, named

API = Path(__file__).parents[2] / "book" / "api"
PAGES = {page: page.read_text(encoding="utf-8") for page in sorted(API.rglob("*.md"))}
MODULES = re.compile(r"^\.\. modules:: (\S+)\n((?:   :\w+:.*\n)*)", re.MULTILINE)
EXCLUDING = re.compile(
    r"^\.\. automodule:: (\S+)\n(?:   :.*\n)*?   :exclude-members:((?:.+\n)(?:      .+\n)*)",
    re.MULTILINE,
)
ALIASES = {"FloatArray", "IntArray"}


def listed(package: str, pages: Iterable[str] = PAGES.values()) -> list[str]:
    """Names of a package, by itself or behind their module, on the pages of the reference."""
    found = (one for page in pages for one in NAMES.findall(page))
    return sorted(name for of, names in found if of == package for name in names.split())


def own(package: str) -> list[str]:
    """Public functions and classes that a package offers and that no other room defines."""
    room = importlib.import_module(package)
    offered = {name: getattr(room, name) for name in dir(room) if not name.startswith("_")}
    homes = {name: str(getattr(thing, "__module__", "")) for name, thing in offered.items()}
    return sorted(name for name, home in homes.items() if home.startswith(f"{package}."))


def modules_of(pages: Iterable[str], room: str) -> list[str]:
    """The modules of a room that pages document."""
    shown = list[str]()
    for package, options in (found for page in pages for found in MODULES.findall(page)):
        chosen = {key: words.split() for key, words in re.findall(r":(\w+): (.*)", options)}
        shown += below(package, chosen.get("without", ()), chosen.get("only", ()))
    return sorted(name for name in shown if name.startswith(f"{room}."))


@pytest.mark.parametrize("package", ["paperlib.audits", "paperlib.bounds"])
def test_every_public_name_is_documented_once(package):
    assert len(own(package)) > 20
    assert named(PAGES.values(), package) == own(package)
    behind_modules = [name for name in listed(package) if "." in name]
    assert len(behind_modules) == len(set(behind_modules)) > 10
    assert not {name.rpartition(".")[2] for name in behind_modules} & set(own(package))


def test_every_name_on_a_page_is_where_it_says():
    lines = [line for page in PAGES.values() for line in NAMES.findall(page)]
    assert len(lines) > 15
    for package, names in lines:
        for name in names.split():
            module, _, attribute = f"{package}.{name}".rpartition(".")
            assert hasattr(importlib.import_module(module), attribute), name


@pytest.mark.parametrize("room", ["attacks", "audits", "generators", "reproduction.validity"])
def test_every_module_of_a_room_on_several_pages_is_documented_once(room):
    assert modules_of(PAGES.values(), f"paperlib.{room}") == below(f"paperlib.{room}")


def test_a_module_without_a_page_and_one_on_two_pages_are_seen():
    room = "paperlib.generators"
    rest = f".. modules:: {room}\n   :without: text\n"
    assert f"{room}.text" not in modules_of([rest], room)
    assert modules_of([rest, f".. modules:: {room}\n   :only: text\n"], room) == below(room)
    assert modules_of([rest, rest], room).count(f"{room}.tabular") == 2


@pytest.mark.parametrize("package", ["core", "io", "training"])
def test_what_the_page_of_a_package_leaves_out_has_another_page(package):
    name = f"paperlib.{package}"
    excluded = [words for of, words in EXCLUDING.findall("\n".join(PAGES.values())) if of == name]
    assert len(excluded) == 1
    of_package = [found for found in listed(name) if "." not in found]
    assert sorted(set(re.findall(r"\w+", excluded[0])) - ALIASES) == of_package
