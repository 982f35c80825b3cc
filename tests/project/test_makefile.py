"""The Makefile says what it offers, refuses an old Python plainly, and cleans only what is
generated.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="no make on the PATH")


def make(*arguments: str) -> subprocess.CompletedProcess[str]:
    words = ["make", "--no-print-directory", *arguments]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True)


def test_help_lists_every_target_and_clean_removes_nothing_that_is_committed():
    phony = re.search(r"^\.PHONY: (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert phony is not None
    listed = re.findall(r"^  make (\w+)", make("help").stdout, re.MULTILINE)
    assert sorted(listed) == sorted(phony[1].split())
    shown = make("--dry-run", "clean").stdout
    removed = [path for line in shown.splitlines() for path in line.split()[2:]]  # rm -rf PATH…
    assert removed
    tracked = subprocess.run(
        ["git", "ls-files", *removed], cwd=ROOT, capture_output=True, text=True
    )
    assert tracked.stdout == ""


def test_mistakes_are_refused_in_words(tmp_path):
    old = tmp_path / "python"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    refused = make("--always-make", f"PYTHON={old}", "setup")
    assert refused.returncode != 0
    assert "needs Python 3.11.5 or newer" in refused.stdout
    assert "name a notebook" in make("--dry-run", "run", "NB=").stdout
    assert 'there is no room "bound"' in make("--dry-run", "test", "ROOM=bound").stdout


@pytest.mark.parametrize(
    "words", ["a='two words' b=[1, 2]", 'a="$HOME $(shell false)" b=`x` #c', ""]
)
@pytest.mark.parametrize("asked", ["command line", "environment"])
def test_run_hands_its_parameters_on_as_they_were_typed(tmp_path, words, asked):
    """Through a makefile with the rules of ours, and a command that says what it was given."""
    lines = (ROOT / "Makefile").read_text().splitlines()
    rules = [line for line in lines if re.match("unexport|run: export", line)]
    told = '@printf \'%s\\n%s\' "$$PAPERLIB_P" "$$PAPERLIB_FROM"'
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "Makefile").write_text("\n".join([*rules, "run:", f"\t{told}", ""]))
    given = [f"P={words}"] if asked == "command line" else []
    variables = {**os.environ, "PWD": str(tmp_path), **({} if given else {"P": words})}
    for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS"):
        variables.pop(name, None)

    def said(*arguments: str, folder: Path) -> list[str]:
        call = ["make", "-s", *arguments, "run", *given]
        done = subprocess.run(call, cwd=folder, env=variables, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return [line for line in done.stdout.splitlines() if not line.startswith("make:")]

    assert said("-C", "there", "-w", folder=tmp_path)[:1] == [words]
    assert said("-C", "there", "-w", folder=tmp_path)[1].startswith(str(tmp_path))
    assert said(folder=tmp_path / "there") == [words, str(tmp_path / "there")]


def paths_of_test(*arguments: str) -> list[str]:
    """Paths that `make test` gives to pytest."""
    shown = make("--dry-run", "test", *arguments).stdout
    (line,) = [line for line in shown.splitlines() if "pytest -n" in line]
    return line.partition('"not browser"')[2].partition(";")[0].split()


def test_one_room_is_tested_by_its_folders_and_every_room_has_tests():
    assert paths_of_test() == []  # everything
    assert paths_of_test("ROOM=report") == ["tests/report", "paperlib/report"]
    both = "tests/bounds paperlib/bounds tests/reproduction/validity paperlib/reproduction/validity"
    assert paths_of_test("ROOM=bounds validity") == both.split()
    rooms = [path.parent.name for path in (ROOT / "paperlib").glob("*/__init__.py")]
    assert [room for room in rooms if not (ROOT / "tests" / room).is_dir()] == []
