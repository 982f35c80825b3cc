"""The command: what its parts say and refuse, help with examples, and completion."""

import re
import shlex
from collections import defaultdict
from inspect import signature
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import typer
from typer.main import get_group

import paperlib
from paperlib.cli.app import app
from paperlib.cli.install import install_command
from paperlib.reproduction.cli.options import names_of
from paperlib.reproduction.running import measured_results
from tests.cli.conftest import in_order
from tests.reproduction.running.toys import GOOD, make_project


def project_of(here, **notebooks):
    project = make_project(here, **notebooks)
    (project.notebooks / "profiles" / "toy.yaml").write_text("data: made up\n")
    return project


def test_run_refuses_what_it_does_not_know(here, command):
    project_of(here, good=GOOD)
    for words, message in (
        ("god", "the notebooks are: good"),
        ("", "expected one of good, or --all"),
        ("good -p n=3", "unknown parameter 'n'; the known ones are:\n  m = 3  # how many"),
        ("good n=3", "unknown parameter 'n'"),
        ("good -p m=x", "parameter 'm' should be a whole number like 3, got 'x' (how many)"),
        ("good -p m", "expected name=value, got 'm'"),
        ("good --profile fast", "profile: expected one of default, smoke, toy; got 'fast'"),
        ("--all -p m=3", "--all: expected no notebook and no parameters"),
        ("good --seed 1 -p m=4", "--seed: expected neither parameters"),
        ("--all --jobs 0", "jobs: expected 1 or more"),
        ("--all --measured", "--measured: expected one run"),
        ("good --measured --profile toy", "--measured: expected one run on true data"),
    ):
        code, _, err = command.line(f"run {words}")
        assert (code, message in err) == (2, True), err
        assert {path.name for path in here.iterdir()} == {"notebooks"}


def test_a_profile_for_a_gpu_starts_nothing_where_there_is_none(here, command, monkeypatch):
    project = project_of(here, good=GOOD)
    (project.notebooks / "profiles" / "large.yaml").write_text("base: smoke\ndevice: gpu\n")
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    for words in ("good", "good --minutes 9 --measured", "--all"):
        code, _, err = command.line(f"run {words} --profile large")
        assert (code, len(err.splitlines())) == (2, 1), err
        assert "--profile large: expected a GPU, and torch finds none" in err
    assert {path.name for path in here.iterdir()} == {"notebooks"}
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    assert command.line("run good --profile large")[0] == 0


def test_a_measured_run_stands_with_the_committed_ones(here, command):
    project = project_of(here, good=GOOD)
    code, out, _ = command.line("run good --profile smoke -p m=6 --measured")
    assert (code, str(project.measured / "smoke" / "good.json") in out) == (0, True)
    assert [result.parameters["m"] for result in measured_results(project)] == [6]
    for m, kept in ((6, [6]), (7, [7, 6])):  # one of other parameters takes no other's place
        assert command.line(f"run good --profile smoke -p m={m} --measured")[0] == 0
        assert [result.parameters["m"] for result in measured_results(project)] == kept


def test_outside_a_checkout_the_notebooks_are_those_of_the_package(here, command, monkeypatch):
    command.refuses("run good", "good")
    assert "audit_your_model" in names_of("*.ipynb")
    runs = Path(paperlib.__file__).parents[1] / "runs"
    code, out, _ = command("doctor")
    assert (code, f"{runs}/: " in out, "No checkout" in out) == (0, True, False)
    monkeypatch.setattr("paperlib.cli.doctor._PACKAGE_FOLDER", here)  # as of an installed package
    code, out, _ = command("doctor")
    assert (code, "`paperlib audit` works" in out) == (0, True)


def test_list_shows_parameters_targets_and_status(here, command):
    make_project(here, output_set_shapes=GOOD)
    code, out, _ = command.line("list --profile smoke")
    assert code == 0
    in_order(out, "output_set_shapes: A toy", "m = 3  # how many", "output-sets-figure-05: not yet")


def test_doctor_names_versions_and_folders_and_how_to_get_what_is_missing(
    here, monkeypatch, command
):
    make_project(here)
    monkeypatch.setenv("PAPERLIB_DATA", str(here / "data"))
    code, out, _ = command("doctor")
    data = f"{here / 'data'} (PAPERLIB_DATA): can be made"
    assert code == 0
    assert all(words in out for words in (np.__version__, data, "GPU: ", "runs/: can be made"))
    monkeypatch.setattr("paperlib.cli.doctor.package_version", lambda name: None)
    out = command("doctor")[1]
    assert all(
        f"not installed ({install_command(extra)})" in out for extra in ("train", "book", "dev")
    )
    assert "pip install paperlib" not in out
    assert "'paperlib[" not in out


@pytest.mark.parametrize("name", ["", *(one.name for one in get_group(app).commands.values())])
def test_help_is_given_with_an_example(command, name):
    code, out, _ = command(*filter(None, [name, "--help"]))
    assert code == 0
    _, examples, shown = " ".join(out.split()).partition("Example")
    assert examples
    assert f"paperlib {name}" in shown


def test_h_is_help_summaries_fit_and_commands_stand_in_groups(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = command("-h")
    assert (code, out) == (0, command("--help")[1])
    groups = re.findall(
        r"^(\S.*):\n((?:  \S+ .*\n)+)", out.partition("-h, --help")[2], re.MULTILINE
    )
    titles = [title for title, _ in groups]
    assert titles == [
        "Audits",
        "Planning, coins and receipts",
        "Texts and identifiers",
        "Papers, in a checkout",
        "This installation",
    ]
    summaries = "".join(rows for _, rows in groups).splitlines()
    assert {row.split()[0] for row in summaries} == set(get_group(app).commands)
    assert [row for row in summaries if not row.endswith(".") or row.endswith("...")] == []
    for name in get_group(app).commands:
        assert command(name, "-h") == command(name, "--help")


def test_examples_stand_on_a_line_each_and_their_options_exist(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    commands = get_group(app).commands
    options = {
        name: {flag for parameter in command.params for flag in parameter.opts}
        for name, command in commands.items()
    }
    for name in commands:
        _, _, below = command(name, "--help")[1].partition("Examples:\n")
        # A line that ends in a backslash goes on in the next.
        lines = [line.strip() for line in below.replace("\\\n", " ").splitlines()]
        calls = [line.partition("paperlib ")[2] for line in lines if not line.startswith("#")]
        assert any(call.startswith(name) for call in calls)
        for call in calls:
            called, *words = shlex.split(call)
            flags = {word for word in words if word.startswith("-") and word != "-"}
            assert flags <= options[called], call


def test_what_a_command_needs_is_shown_as_needed(here, command):
    for words, missing in (
        ("audit-lm", "Missing argument 'MODEL'"),
        ("audit-lm gpt2", "Missing argument 'CORPUS'"),
        ("audit-data --target a.py:f", "Missing argument 'MEMBERS'"),
        ("audit-data rows.csv", "Missing option '--target'"),
        ("audit", "Missing argument 'FILE'"),
    ):
        command.refuses(words, missing)
    usage, optional = command("audit", "-h")[1].partition("NONMEMBERS")[::2]
    assert (usage.endswith("["), optional.startswith("]")) == (True, True)


@pytest.mark.parametrize(
    "words",
    [
        "audit s.csv --output new/a.html",
        "audit s.csv --json --junit new/a.xml",
        "combine s.csv t.csv --output new/a.html",
        "audit-data rows.csv --target a.py:f --output new/a.html",
        "audit-lm gpt2 docs --output new/a.html",
        "audit-chat http://localhost:1 docs --model m --answers new/a.jsonl",
        "audit-texts gpt2 a.jsonl b.jsonl --junit new/a.xml",
        "audit-release a.csv b.csv c.csv --output new/a.html",
        "coins s.csv --out new/train.csv",
        "canaries s.csv --count 2 --kind random --out new/train.csv",
        "identifiers numpy --out new/pack.jsonl.gz",
        "verify a.html --output new/a.html",
    ],
)
def test_an_output_in_a_folder_that_is_not_there_is_refused_at_once(here, command, words):
    """Before anything is read: no input of these calls is there."""
    option = words.split()[-2]
    command.refuses(words, f"'{option}': there is no folder new; make it first, or name a file in")


def test_the_name_of_a_sweep_makes_no_folder(here, command):
    project_of(here, good=GOOD)
    command.refuses("sweep good -p m=3 --name a/b --dry-run", "--name: expected a name without")


def declared_options():
    """The declaration of each argument and option, by its name and its help."""
    declared = defaultdict(list)
    for registered in app.registered_commands:
        for parameter in signature(registered.callback).parameters.values():
            if parameter.annotation is not typer.Context:
                (info,) = get_args(parameter.annotation)[1:]
                declared[parameter.name, info.help].append(info)
    return declared


def test_each_option_is_declared_once_and_commands_keep_their_signatures():
    """Commands that share an option share its declaration; none is made when they are added."""
    declared = declared_options()
    assert ("delta", "Delta of the DP guarantee that is tested, in [0, 1).") in declared
    repeated = [key for key, infos in declared.items() if len(set(map(id, infos))) > 1]
    assert repeated == []
    rewritten = [
        command.callback.__name__
        for command in app.registered_commands
        if hasattr(command.callback, "__signature__")
    ]
    assert rewritten == []


def test_the_version_is_printed_and_every_audit_ends_with_the_options_of_all(command):
    """In one order, whatever a command has of its own."""
    assert command("--version") == (0, f"paperlib {paperlib.__version__}\n", "")
    options = (
        "--claimed-epsilon",
        "--fail-above",
        "--junit",
        "--about",
        "--output",
        "--json",
        "--help",
    )
    for name in ("audit", "audit-data", "audit-lm", "audit-texts", "combine"):
        shown = command(name, "--help")[1].partition("Options")[2]
        in_order(shown, *(f" {option} " for option in options))


def test_the_shell_completes_commands_notebooks_and_profiles(here, monkeypatch, command):
    make_project(here, output_set_shapes=GOOD)
    monkeypatch.setenv("_PAPERLIB_COMPLETE", "complete_bash")
    completed = {"run out": "output_set_shapes", "run --profile ": "default smoke"}
    completed |= {"list --profile s": "smoke", "do": "doctor"}
    for words, expected in completed.items():
        monkeypatch.setenv("COMP_WORDS", f"paperlib {words}")
        monkeypatch.setenv("COMP_CWORD", str(words.count(" ") + 1))
        assert command()[1].split() == expected.split()
