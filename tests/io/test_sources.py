"""What a kept result depends on: the files that a module reaches by its imports."""

import gc
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import paperlib
from paperlib.io import code_tag, source_files
from paperlib.io.sources import imported_names

ROOT = Path(paperlib.__file__).parent
N, P = "paperlib.papers.natural_identifiers", "paperlib.papers.panoramia"
GAMES = "paperlib.audits.panoramia.run"
LANDSCAPE = "paperlib.papers.epsilon_star.landscape_models"
TRAINS = [
    LANDSCAPE,
    f"{P}.images.pools",
    f"{P}.tables.pools",
    f"{P}.tables.lira",
    f"{P}.text.bench",
    f"{N}.planted",
    f"{N}.dp_models",
    f"{N}.natural_models",
    f"{N}.census.corpus",
    "paperlib.papers.comparison.classifiers",
    "paperlib.papers.comparison.language_models",
]
"""Modules whose results are kept and depend on no bound."""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package with a module that reaches some files and not others."""
    files = {
        "__init__.py": "from some_package.face.low import helper as helper",
        "main.py": "from some_package.face import helper\nimport some_package.sub.used",
        "face/__init__.py": '"""Face."""\nfrom .low import helper\nfrom .other import more\n__all__ = ["f"]',
        "face/low.py": "def helper():\n    from some_package.deep import late\n    return late",
        "face/other.py": "more = 1",
        "deep.py": "late = 1",
        "sub/__init__.py": "setting = 1",
        "sub/used.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import some_package.unread",
        "unread.py": "",
    }
    for name, text in files.items():
        path = tmp_path / "some_package" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path / "some_package"
    for name in [name for name in sys.modules if name.startswith("some_package")]:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("name", "reached"),
    [
        ("main.py", True),
        ("face/low.py", True),  # passed on by a package
        ("deep.py", True),  # imported inside a function
        ("sub/used.py", True),
        ("sub/__init__.py", True),  # it does something, and an import below runs it
        ("face/other.py", False),  # the package passes it on, but it was not asked for
        ("face/__init__.py", False),  # passes names on and does nothing else
        ("unread.py", False),  # for type checkers alone
    ],
)
def test_the_tag_changes_with_reached_files_and_with_no_others(package, name, reached):
    before = code_tag("some_package.main")
    (package / name).write_text((package / name).read_text() + "\n# changed")
    assert (code_tag("some_package.main") != before) == reached


def test_a_name_passed_on_from_elsewhere_changes_the_tag(package):
    before = code_tag("some_package.main")
    text = (package / "face/__init__.py").read_text()
    (package / "face/__init__.py").write_text(text.replace(".low import helper", ".other import helper"))
    assert code_tag("some_package.main") != before


def test_a_lazy_package_is_read_from_its_stub(package):
    stub = (package / "face/__init__.py").read_text() + "\n__version__: str"
    (package / "face/__init__.pyi").write_text(stub)
    (package / "face/__init__.py").write_text("import lazy\n__getattr__ = lazy.attach()")
    found = {str(file.relative_to(package)) for file in source_files(["some_package.main"])}
    assert "face/low.py" in found
    assert "face/other.py" not in found


@pytest.mark.parametrize("name", ["no_such_package", "sys", "paperlib_of_nobody.part"])
def test_a_module_without_source_is_refused(name):
    with pytest.raises(ValueError, match=f"no module '{name}'"):
        code_tag(name)


def test_imports_inside_functions_and_relative_ones_count():
    source = "def f():\n    from ..b import c\nfrom . import d"
    assert set(imported_names(source, "a.x")) == {"a.b.c", "a.x.d"}


@pytest.mark.parametrize(
    ("builder", "reached"),
    [
        (f"{N}.dp_models", "training/batches.py"),  # Poisson sampling
        (f"{N}.dp_models", "training/config.py"),
        (f"{N}.dp_models", "training/private/accounting.py"),
        (f"{N}.dp_models", "data/text/dialogues.py"),  # its training text
        (f"{N}.dp_models", "papers/natural_identifiers/planted.py"),  # source_words
        (LANDSCAPE, "training/many/ensembles.py"),
        (LANDSCAPE, "training/batches.py"),
        (LANDSCAPE, "data/tables/purchase.py"),  # the generator of its data
        (LANDSCAPE, "papers/epsilon_star/landscape_grids.py"),
        (f"{N}.planted", "training/batches.py"),
        (f"{N}.planted", "models/language.py"),  # the tokenizer's training
        (f"{P}.text.bench", "training/batches.py"),
        (f"{P}.text.bench", "training/private/accounting.py"),
        (f"{P}.text.bench", "data/text/wikitext.py"),
        (f"{P}.images.pools", "training/private/dp.py"),
        (f"{P}.tables.pools", "training/private/accounting.py"),
        (GAMES, "core/scores.py"),  # how auc() breaks ties
        (GAMES, "attacks/learned/choice.py"),
        (f"{N}.census.corpus", "generators/identifiers/scan.py"),
    ],
)
def test_builders_notice_a_change_of_what_their_results_depend_on(builder, reached, tmp_path, monkeypatch):
    """In a copy of the package, where a file can be edited."""
    copy = tmp_path / "paperlib"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns("__pycache__", "*.csv"))
    monkeypatch.setattr("paperlib.io.sources._top", lambda package, name: copy / "__init__.py")
    before = code_tag(builder)
    (copy / "report" / "status.py").write_text("# an unrelated edit")
    assert code_tag(builder) == before
    file = copy / reached
    file.write_text(file.read_text() + "\n# repaired")
    assert code_tag(builder) != before


@pytest.mark.parametrize("builder", TRAINS)
def test_no_change_of_a_bound_trains_a_model_again(builder):
    assert not [file for file in source_files([builder]) if "bounds" in file.relative_to(ROOT).parts]


class Pause:
    """Garbage whose collection, in the middle of parsing, lets other threads go on."""

    def __init__(self):
        self.me = self

    def __del__(self):
        time.sleep(0.002)


def read_from_deep(depth):
    if depth:
        return read_from_deep(depth - 1)
    for turn in range(20):
        gc.disable()
        for _ in range(5):
            Pause()
        gc.enable()
        source = "\n".join(f"x{i} = f(a, {turn})" for i in range(1000))
        assert imported_names.__wrapped__(source) == ()
    return True


def test_threads_of_different_depth_may_read_sources_at_once():
    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(read_from_deep, (0, 3, 6, 9)))
