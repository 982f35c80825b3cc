"""What a kept result depends on: the files that a module reaches by its imports."""

import gc
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import paperlib
from paperlib.io.sources import code_tag, imported_names, source_files

ROOT = Path(paperlib.__file__).parent
N, P = "paperlib.reproduction.papers.natural_identifiers", "paperlib.reproduction.papers.panoramia"
BATCHES, ACCOUNTING = "training/batches.py", "training/private/accounting.py"  # of Poisson sampling
DP_DATA = (
    "training/config.py",
    "reproduction/data/text/dialogues.py",
    "reproduction/papers/natural_identifiers/planted.py",
)
LANDSCAPE_DATA = ("reproduction/data/tables/purchase.py",)
TRAINS = {
    f"{N}.dp_models": (BATCHES, ACCOUNTING, *DP_DATA),
    "paperlib.reproduction.papers.epsilon_star.landscape_models": (
        BATCHES,
        "training/ensembles.py",
        *LANDSCAPE_DATA,
    ),
    f"{N}.planted": (BATCHES, "models/language.py"),  # the tokenizer's training
    f"{P}.text.bench": (BATCHES, ACCOUNTING, "reproduction/data/text/sets.py"),
    f"{P}.images.pools": ("training/private/dp.py",),
    f"{P}.tables.pools": (ACCOUNTING,),
    f"{N}.census.corpus": ("generators/identifiers/scan.py",),
    f"{P}.tables.lira": (),
    f"{N}.natural_models": (),
    "paperlib.reproduction.papers.comparison.classifiers": (),
    "paperlib.reproduction.papers.comparison.language_models": (),
}
"""Modules whose results are kept and depend on no bound, with files that they depend on."""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package with a module that reaches some files and not others."""
    files = {
        "__init__.py": "from some_package.face.low import helper as helper",
        "main.py": "from some_package.face import helper\nimport some_package.sub.used",
        "face/__init__.py": (
            '"""Face."""\nfrom .low import helper\nfrom .other import more\n__all__ = ["f"]'
        ),
        "face/low.py": "def helper():\n    from some_package.deep import late\n    return late",
        "face/other.py": "more = 1",
        "deep.py": "late = 1",
        "deep.yaml": "late: 1",
        "sub/__init__.py": "setting = 1",
        "sub/used.py": (
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import some_package.unread"
        ),
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


def test_the_tag_changes_with_reached_files_and_with_no_others(package):
    for name, reached in {
        "main.py": True,
        "face/low.py": True,  # passed on by a package
        "deep.py": True,  # imported inside a function
        "deep.yaml": True,  # settings of a module that is reached
        "sub/used.py": True,
        "sub/__init__.py": True,  # it does something, and an import below runs it
        "face/other.py": False,  # the package passes it on, but it was not asked for
        "face/__init__.py": False,  # passes names on and does nothing else
        "unread.py": False,  # for type checkers alone
    }.items():
        before, text = code_tag("some_package.main"), (package / name).read_text()
        (package / name).write_text(text + "\n# changed")
        assert (code_tag("some_package.main") != before) == reached
    before, text = code_tag("some_package.main"), (package / "face/__init__.py").read_text()
    (package / "face/__init__.py").write_text(
        text.replace(".low import helper", ".other import helper")
    )
    assert code_tag("some_package.main") != before, "the name comes from elsewhere"


def test_a_lazy_package_is_read_from_its_stub_and_relative_imports_count(package):
    stub = (package / "face/__init__.py").read_text() + "\n__version__: str"
    (package / "face/__init__.pyi").write_text(stub)
    (package / "face/__init__.py").write_text("import lazy\n__getattr__ = lazy.attach()")
    files = source_files(["some_package.main"])
    assert package / "face/low.py" in files
    assert package / "face/other.py" not in files
    source = "def f():\n    from ..b import c\nfrom . import d"
    assert set(imported_names(source, "a.x")) == {"a.b.c", "a.x.d"}


@pytest.mark.parametrize("name", ["no_such_package", "sys", "paperlib_of_nobody.part"])
def test_a_module_without_source_is_refused(name):
    with pytest.raises(ValueError, match=f"no module '{name}'"):
        code_tag(name)


def test_builders_depend_on_their_training_and_data_and_on_no_bound_or_report():
    for builder, needed in TRAINS.items():
        files = {file.relative_to(ROOT).as_posix() for file in source_files([builder])}
        assert files.issuperset(needed)
        shown = {file for file in files if file.startswith(("bounds/", "report/"))}
        assert shown <= {
            "report/bars.py",
            "report/display.py",
        }  # a bar, and notes of the data that were used
    games = {
        file.relative_to(ROOT).as_posix()
        for file in source_files(["paperlib.audits.panoramia.run"])
    }
    assert games.issuperset(
        {"core/scores.py", "attacks/learned/interface.py"}
    )  # how auc() breaks ties


class Pause:
    """Garbage whose collection, in the middle of parsing, lets other threads go on."""

    def __init__(self):
        self.me = self

    def __del__(self):
        time.sleep(0.002)


def read_from_deep(depth):
    if depth:
        return read_from_deep(depth - 1)
    for turn in range(8):
        gc.disable()
        for _ in range(5):
            Pause()
        gc.enable()
        source = "\n".join(f"x{i} = f(a, {turn})" for i in range(300))
        assert imported_names.__wrapped__(source) == ()
    return True


def test_threads_of_different_depth_may_read_sources_at_once():
    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(read_from_deep, (0, 3, 6, 9)))
