"""The Makefile says what it offers, refuses an old Python plainly, and cleans only what is generated."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="no make on the PATH")


def make(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", "--no-print-directory", *arguments], cwd=ROOT, capture_output=True, text=True
    )


def test_help_lists_every_target():
    phony = re.search(r"^\.PHONY: (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert phony is not None
    listed = re.findall(r"^  make (\w+)", make("help").stdout, re.MULTILINE)
    assert sorted(listed) == sorted(phony[1].split())


def test_clean_removes_nothing_that_is_committed():
    removed = [
        path for line in make("--dry-run", "clean").stdout.splitlines() for path in line.split()[2:]
    ]  # rm -rf PATH…
    assert removed
    tracked = subprocess.run(["git", "ls-files", *removed], cwd=ROOT, capture_output=True, text=True)
    assert tracked.stdout == ""


def test_an_old_python_is_refused_in_words(tmp_path):
    old = tmp_path / "python"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    refused = make("--always-make", f"PYTHON={old}", "setup")
    assert refused.returncode != 0
    assert "needs Python 3.11 or newer" in refused.stdout


def test_run_without_a_notebook_says_what_to_type():
    refused = make("--dry-run", "run", "NB=")
    assert "name a notebook" in refused.stdout


def paths_of_test(*arguments: str) -> list[str]:
    """Paths that `make test` gives to pytest."""
    (line,) = [
        line for line in make("--dry-run", "test", *arguments).stdout.splitlines() if "pytest -n" in line
    ]
    return line.partition('"not browser"')[2].split()


def test_one_room_is_tested_by_its_folders():
    assert paths_of_test() == []  # everything
    assert paths_of_test("ROOM=report") == ["tests/report", "paperlib/report"]
    assert paths_of_test("ROOM=bounds validity") == [
        "tests/bounds",
        "paperlib/bounds",
        "tests/validity",
        "paperlib/validity",
    ]


def test_every_room_has_tests():
    rooms = [path.parent.name for path in (ROOT / "paperlib").glob("*/__init__.py")]
    assert [room for room in rooms if not (ROOT / "tests" / room).is_dir()] == []


def test_an_unknown_room_is_refused_in_words():
    refused = make("--dry-run", "test", "ROOM=bound")
    assert 'there is no room "bound"' in refused.stdout
