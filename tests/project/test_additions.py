"""What is added to a room is tested, explained and listed where CONTRIBUTING.md says."""

import inspect
from pathlib import Path

import pytest

from paperlib import bounds
from paperlib.io.sources import imported_names, source_files
from paperlib.reproduction.running import find_project

PROJECT = find_project(Path(__file__).parent)
ROOT = PROJECT.root
BOUNDS = sorted(name for name in dir(bounds) if name.startswith("audit_"))


def reached(folder: Path) -> set[Path]:
    """Files of the package that the imports of a folder's tests lead to."""
    names = {name for path in folder.rglob("*.py") for name in imported_names(path.read_text())}
    return set(source_files(sorted(name for name in names if name.startswith("paperlib."))))


@pytest.mark.parametrize("room", ["attacks", "bounds", "data", "generators", "reproduction/data"])
def test_every_module_is_reached_by_the_tests_of_its_room_or_of_a_paper(room):
    modules = {
        path for path in (ROOT / "paperlib" / room).rglob("*.py") if path.name != "__init__.py"
    }
    of_papers = reached(ROOT / "tests" / "reproduction" / "papers")
    untested = modules - reached(ROOT / "tests" / room) - of_papers
    assert sorted(str(path.relative_to(ROOT)) for path in untested) == []


def test_every_bound_has_a_test_of_its_validity():
    tested = reached(ROOT / "tests" / "reproduction" / "validity")
    untested = [
        name for name in BOUNDS if Path(inspect.getfile(getattr(bounds, name))) not in tested
    ]
    assert untested == []


def test_every_bound_has_a_row_in_the_table_of_what_numbers_mean_and_every_notebook_its_place():
    table = (ROOT / "book" / "what_a_number_means.md").read_text(encoding="utf-8")
    assert [name for name in BOUNDS if f"| `{name}" not in table] == []
    toc = (ROOT / "book" / "_toc.yml").read_text(encoding="utf-8")
    assert [stem for stem in PROJECT.stems() if f"file: notebooks/{stem}\n" not in toc] == []
