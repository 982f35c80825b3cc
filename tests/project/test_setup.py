"""`make setup`: by uv, by pip where uv fails, and again after it was interrupted.

Python, pip and uv are stand-ins that note how they were called; `.ci/run` calls the real ones.
"""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STAND_IN_PYTHON = """#!/bin/sh
echo "python $*" >> "$CALLS"
case "$*" in
  *"-m venv"*) mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
  *"-m pip --version"*) test -z "${NO_PIP:-}" ;;
  *"config get global.extra-index-url"*) echo "file:///mirror" ;;
  *"config get"*) exit 1 ;;
esac
"""
STAND_IN_UV = """#!/bin/sh
echo "uv $*; asks ${UV_DEFAULT_INDEX:-the usual index} and $UV_INDEX" >> "$CALLS"
exit ${UV_FAILS:-0}
"""


@pytest.fixture
def setup(tmp_path):
    """Runs the script in a folder that holds nothing but the lock; the calls it made."""
    project, tools = tmp_path / "project", tmp_path / "tools"
    (project / ".ci").mkdir(parents=True)
    tools.mkdir()
    shutil.copy(ROOT / ".ci" / "setup.sh", project / ".ci")
    shutil.copy(ROOT / "requirements.lock", project)
    calls = tmp_path / "calls"
    for name, text in (("python3", STAND_IN_PYTHON), ("uv", STAND_IN_UV)):
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)

    def run(*, with_uv=True, **settings):
        if not with_uv:
            (tools / "uv").unlink(missing_ok=True)
        calls.write_text("")
        environment = {"PATH": f"{tools}:/usr/bin:/bin", "CALLS": str(calls), **settings}
        subprocess.run(["/bin/sh", project / ".ci" / "setup.sh"], env=environment, check=True)
        assert (project / ".venv" / ".ready").exists()
        return calls.read_text().splitlines()

    run.project = project
    return run


def locked_installs(calls):
    """The calls that install the lock, by the first word: uv or python."""
    return [
        call.partition(" ")[0]
        for call in calls
        if call.partition(";")[0].endswith("--require-hashes --requirement requirements.lock")
    ]


def test_uv_installs_the_lock_from_the_indexes_of_pip(setup):
    calls = setup()
    assert locked_installs(calls) == ["uv"]
    (call,) = [call for call in calls if call.startswith("uv")]
    assert call.endswith("asks the usual index and file:///mirror ")


def test_pip_installs_the_same_lock_where_uv_fails(setup):
    assert locked_installs(setup(UV_FAILS="1")) == ["uv", "python"]


def test_without_uv_on_the_computer_that_of_the_lock_is_taken(setup):
    """The stand-in of pip brings none, so that pip installs the rest."""
    calls = setup(with_uv=False)
    assert locked_installs(calls) == ["python"]
    assert any(call.endswith("--require-hashes --requirement .venv/uv.lock") for call in calls)
    entry = (setup.project / ".venv" / "uv.lock").read_text()
    assert entry.startswith("uv==")
    assert entry.count("==") == 1
    assert "--hash=sha256:" in entry
    assert not entry.rstrip().endswith("\\")


def test_an_interrupted_setup_is_mended_and_a_finished_one_is_kept(setup):
    setup()
    assert not any("-m venv" in call for call in setup())
    assert any("-m venv --clear .venv" in call for call in setup(NO_PIP="1"))


def test_the_package_is_built_by_what_the_lock_holds(setup):
    assert setup()[-1].endswith("--no-deps --no-build-isolation --editable .")
    assert "setuptools==" in (ROOT / "requirements.lock").read_text()
