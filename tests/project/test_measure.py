"""Complexity, parameters and public names are limited; their lists of exceptions only lose rows."""

import subprocess
from pathlib import Path

import measure
import pytest

SOURCE = '''
class Store:
    def put(self, a, b):
        """Two, without the instance."""

    @staticmethod
    def take(a, b, c):
        """Three."""

def door(scores, *, delta=0, confidence=0.95):
    """One, as its options are those of a facade."""

def inner(scores, *, delta, confidence):
    """Three."""

def branches(rows):
    for row in rows:
        for value in row:
            if value and row or rows:
                return [a if a else b for a in row for b in rows]
'''


@pytest.fixture
def package(tmp_path: Path) -> Path:
    package = tmp_path / "paperlib"
    package.mkdir()
    (package / "store.py").write_text(SOURCE)
    (package / "__init__.pyi").write_text("from .store import door as door, Store as Store\n")
    return package


def test_what_is_measured(package):
    names, parameters = measure.public_names(package), measure.parameters(package)
    assert names == {"paperlib": ["door", "Store"]}
    assert parameters == {
        "store.py: Store.put": 2,
        "store.py: Store.take": 3,
        "store.py: door": 1,
        "store.py: inner": 3,
    } | {"store.py: branches": 1}
    complexities = measure.complexities(package)
    assert complexities["store.py: inner"] == 0
    assert complexities["store.py: branches"] > 10  # comprehensions and operators count, too


def test_a_function_above_the_limit_fails_and_so_does_a_row_that_is_not_needed():
    measured = {"a.py: f": 20, "a.py: g": 9}
    assert measure.faults(measured, {"a.py: f": 20}, 15) == []
    assert measure.faults(measured, {}, 15) == ["a.py: f is 20, above 15"]
    assert measure.faults(measured, {"a.py: f": 21}, 15) != []
    assert measure.faults(measured, {"a.py: f": 20, "a.py: g": 9}, 15) == [
        "a.py: g: remove its row"
    ]


def test_a_row_that_is_added_to_the_exceptions_fails_in_every_later_commit(tmp_path):
    table = tmp_path / "complexity.csv"

    def commit(rows: dict[str, int]) -> list[str]:
        table.write_text(measure.written(rows))
        assert measure.read(table.read_text()) == rows
        for words in ("add .", "-c user.name=a -c user.email=a commit --quiet --message rows"):
            subprocess.run(["git", "-C", tmp_path, *words.split()], check=True)
        earlier = measure.earlier_versions(table)
        return [text for version in earlier for text in measure.risen(rows, version)]

    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    assert commit({"a.py: f": 20, "a.py: g": 18}) == []
    assert commit({"a.py: f": 19}) == []
    assert commit({"a.py: f": 19, "a.py: h": 16}) == ["a.py: h is new", "a.py: h is new"]
    assert commit({"a.py: f": 20}) == ["a.py: f rose from 19 to 20", "a.py: f rose from 19 to 20"]


def test_nothing_is_exempted_in_a_comment():
    root = Path(__file__).parents[2]
    switches = (
        "fmt: " + "skip",
        "fmt: " + "off",
        "complexipy: " + "ignore",
        "noqa: " + "complexipy",
    )
    for folder in ("paperlib", "tests", ".ci", "book/_ext"):
        for path in (root / folder).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            assert not [word for word in switches if word in text], path
