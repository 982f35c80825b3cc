"""The command: what its parts say and refuse, help with examples, and completion."""

import numpy as np
import pytest
from typer.main import get_group

import paperlib
from paperlib.cli.app import app
from paperlib.cli.install import install_command
from paperlib.cli.options import names_of
from paperlib.running import measured_results
from tests.running.toys import GOOD, make_project


def test_run_refuses_what_it_does_not_know(tmp_path, monkeypatch, command):
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
        code, _, err = command("run", *words)
        assert code == 2
        assert message in err
    assert {path.name for path in tmp_path.iterdir()} == {"notebooks"}


def test_a_measured_run_stands_with_the_committed_ones(tmp_path, monkeypatch, command):
    project = make_project(tmp_path, good=GOOD)
    monkeypatch.chdir(tmp_path)
    code, out, _ = command("run", "good", "--profile", "smoke", "-p", "m=6", "--measured")
    assert code == 0
    assert str(project.measured / "smoke" / "good.json") in out
    assert [result.parameters["m"] for result in measured_results(project)] == [6]


def test_outside_a_checkout_only_run_is_refused(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    code, _, err = command("run", "good")
    assert code == 2
    assert "inside a checkout" in err
    code, out, _ = command("doctor")
    assert code == 0
    assert "`paperlib audit` works" in out
    assert names_of("*.ipynb") == []


def test_list_shows_parameters_targets_and_status(tmp_path, monkeypatch, command):
    make_project(tmp_path, output_set_shapes=GOOD)
    monkeypatch.chdir(tmp_path)
    code, out, _ = command("list", "--profile", "smoke")
    assert code == 0
    for words in ("output_set_shapes: A toy", "m = 3  # how many", "output-sets-figure-05: not yet"):
        assert words in out


def test_doctor_names_versions_and_folders_and_how_to_get_what_is_missing(tmp_path, monkeypatch, command):
    make_project(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PAPERLIB_DATA", str(tmp_path / "data"))
    code, out, _ = command("doctor")
    assert code == 0
    for words in (
        np.__version__,
        f"{tmp_path / 'data'} (PAPERLIB_DATA): can be made",
        "GPU: ",
        "runs/: can be made",
    ):
        assert words in out
    monkeypatch.setattr("paperlib.cli.doctor.package_version", lambda name: None)
    out = command("doctor")[1]
    for extra in ("train", "book", "dev"):
        assert f"not installed ({install_command(extra)})" in out
    assert "pip install paperlib" not in out
    assert "'paperlib[" not in out


@pytest.mark.parametrize("name", ["", *(one.name for one in get_group(app).commands.values())])
def test_help_is_given_with_an_example(command, name):
    code, out, _ = command(*filter(None, [name, "--help"]))
    assert code == 0
    _, examples, shown = " ".join(out.split()).partition("Example")
    assert examples
    assert f"paperlib {name}" in shown


def test_the_version_is_printed_and_every_audit_ends_with_the_options_of_all(command):
    """In one order, whatever a command has of its own."""
    assert command("--version") == (0, f"paperlib {paperlib.__version__}\n", "")
    options = ("--claimed-epsilon", "--fail-above", "--junit", "--about", "--output", "--json", "--help")
    for name in ("audit", "audit-data", "audit-lm", "audit-texts", "combine"):
        shown = command(name, "--help")[1].partition("Options")[2]
        at = [shown.find(f" {option} ") for option in options]
        assert -1 not in at
        assert at == sorted(at)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["run", "out"], "output_set_shapes"),
        (["run", "--profile", ""], "default smoke"),
        (["list", "--profile", "s"], "smoke"),
        (["do"], "doctor"),
    ],
)
def test_the_shell_completes_commands_notebooks_and_profiles(tmp_path, monkeypatch, command, words, expected):
    make_project(tmp_path, output_set_shapes=GOOD)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("_PAPERLIB_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", " ".join(["paperlib", *words]))
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    assert command()[1].split() == expected.split()
