"""The command: what its parts say and refuse, help with examples, and completion."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from typer.main import get_group

import paperlib
from paperlib import cli
from paperlib.cli.app import app
from paperlib.cli.install import install_command
from paperlib.cli.options import notebook_names
from paperlib.running.book import measured_results
from tests.running.toys import GOOD, make_project


@pytest.fixture(autouse=True)
def _same_signals() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def call(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr("sys.argv", ["paperlib", *words])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert isinstance(stop.value.code, int)
    return stop.value.code


def test_run_refuses_what_it_does_not_know(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    project = make_project(tmp_path, good=GOOD)
    (project.notebooks / "profiles" / "toy.yaml").write_text("data: made up\n")
    monkeypatch.chdir(tmp_path)
    for words, message in (
        (["god"], "the notebooks are: good"),
        ([], "expected one of good, or --all"),
        (["good", "-p", "n=3"], "unknown parameter 'n'; the known ones are:\n  m = 3  # how many"),
        (["good", "n=3"], "unknown parameter 'n'"),
        (["good", "-p", "m=x"], "parameter 'm' should be a whole number like 3, got 'x' (how many)"),
        (["good", "-p", "m"], "expected name=value, got 'm'"),
        (["good", "--profile", "fast"], "profile: expected one of default, smoke, toy; got 'fast'"),
        (["--all", "-p", "m=3"], "--all: expected no notebook and no parameters"),
        (["good", "--seed", "1", "-p", "m=4"], "--seed: expected neither parameters"),
        (["--all", "--jobs", "0"], "jobs: expected 1 or more"),
        (["--all", "--measured"], "--measured: expected one run"),
        (["good", "--measured", "--profile", "toy"], "--measured: expected one run on true data"),
    ):
        assert call(monkeypatch, "run", *words) == 2
        assert message in capsys.readouterr().err
    assert {path.name for path in tmp_path.iterdir()} == {"notebooks"}


def test_a_measured_run_stands_with_the_committed_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    project = make_project(tmp_path, good=GOOD)
    monkeypatch.chdir(tmp_path)
    assert call(monkeypatch, "run", "good", "--profile", "smoke", "-p", "m=6", "--measured") == 0
    kept = project.measured / "smoke" / "good.json"
    assert str(kept) in capsys.readouterr().out
    assert [result.parameters["m"] for result in measured_results(project)] == [6]


def test_outside_a_checkout_only_run_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call(monkeypatch, "run", "good") == 2
    assert "inside a checkout" in capsys.readouterr().err
    assert call(monkeypatch, "doctor") == 0
    assert "`paperlib audit` works" in capsys.readouterr().out


def test_list_shows_parameters_targets_and_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    make_project(tmp_path, output_set_shapes=GOOD)
    monkeypatch.chdir(tmp_path)
    assert call(monkeypatch, "list", "--profile", "smoke") == 0
    said = capsys.readouterr().out
    for words in ("output_set_shapes: A toy", "m = 3  # how many", "output-sets-figure-05: not yet"):
        assert words in said


def test_doctor_names_versions_folders_and_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    make_project(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PAPERLIB_DATA", str(tmp_path / "data"))
    assert call(monkeypatch, "doctor") == 0
    said = capsys.readouterr().out
    assert np.__version__ in said
    assert f"{tmp_path / 'data'} (PAPERLIB_DATA): can be made" in said
    assert "GPU: " in said
    assert "runs/: can be made" in said


def test_doctor_says_how_to_get_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("paperlib.cli.doctor.package_version", lambda name: None)
    assert call(monkeypatch, "doctor") == 0
    said = capsys.readouterr().out
    for extra in ("train", "book", "dev"):
        assert f"not installed ({install_command(extra)})" in said
    assert "pip install paperlib" not in said
    assert "'paperlib[" not in said


@pytest.mark.parametrize("name", ["", *(command.name for command in get_group(app).commands.values())])
def test_help_is_given_with_an_example(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert call(monkeypatch, *filter(None, [name, "--help"])) == 0
    _, examples, shown = " ".join(capsys.readouterr().out.split()).partition("Example")
    assert examples
    assert f"paperlib {name}" in shown


def test_the_version_is_that_of_the_package(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "--version") == 0
    assert capsys.readouterr().out == f"paperlib {paperlib.__version__}\n"


def test_the_module_is_the_command(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-m", "paperlib", "run", "x"], cwd=tmp_path, capture_output=True)
    assert done.returncode == 2
    assert b"inside a checkout" in done.stderr


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["run", "out"], "output_set_shapes"),
        (["run", "--profile", ""], "default smoke"),
        (["list", "--profile", "s"], "smoke"),
        (["do"], "doctor"),
    ],
)
def test_the_shell_completes_commands_notebooks_and_profiles(
    tmp_path: Path, words: list[str], expected: str
) -> None:
    make_project(tmp_path, output_set_shapes=GOOD)
    variables = {"_PAPERLIB_COMPLETE": "complete_bash", "COMP_WORDS": " ".join(["paperlib", *words])}
    code = "import sys; sys.argv = ['paperlib']; from paperlib.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, **variables, "COMP_CWORD": str(len(words))},
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == expected.split()


def test_outside_a_checkout_nothing_is_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert notebook_names() == []
