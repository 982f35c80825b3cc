"""The command: every mistake is one message on stderr and exit code 2, never a traceback."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import paperlib
from paperlib import cli
from paperlib.bounds import audit_one_run
from paperlib.bounds.one_run.fair_coins import game_size
from paperlib.cli.app import notebook_names
from paperlib.core import MembershipScores
from paperlib.io import OutputError, file_sha256
from paperlib.running.book import measured_results
from tests.running.toys import GOOD, make_project


@pytest.fixture
def scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to stand in, with the scores of a leaky model."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    member = rng.integers(0, 2, 800)
    loss = rng.normal(0, 1, 800) - 2 * member
    pd.DataFrame({"loss": loss, "member": member}).to_csv("own.csv", index=False)
    return tmp_path / "own.csv"


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


def test_an_audit_prints_numbers_and_claims_and_writes_the_report(
    scores: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "audit", "own.csv") == 0
    said = capsys.readouterr()
    table = pd.read_csv(scores)
    member = table["member"] == 1
    main = audit_one_run(
        MembershipScores(table.loc[member, "loss"], table.loc[~member, "loss"], higher_means_member=False)
    )
    assert main.epsilon > 0.5
    assert main.headline in said.out
    assert main.claim in said.out
    for title in ("One training run, optimal output set", "Epsilon*", "Clopper-Pearson"):
        assert title in said.out
    assert said.err == ""
    page = Path("own-audit.html").read_text()
    assert file_sha256(scores) in page
    assert "paperlib audit own.csv" in page
    assert main.claim in page


def test_json_is_one_document_with_every_audit_and_writes_no_report(
    scores: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "audit", "own.csv", "--json", "--delta", "1e-5", "--guess", "members") == 0
    content = json.loads(capsys.readouterr().out)
    assert content["audits"][0]["result"]["delta"] == 1e-5
    assert [item["kind"] for item in content["audits"]] == [
        "lower bound",
        "lower bound",
        "measurement",
        "baseline",
    ]
    assert content["provenance"]["SHA-256 of own.csv"] == file_sha256(scores)
    assert [path.name for path in scores.parent.iterdir()] == ["own.csv"]


def test_losses_read_as_scores_are_another_audit(
    scores: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {}
    for words in (["--losses"], ["--kind", "scores"]):
        call(monkeypatch, "audit", "own.csv", "--json", *words)
        found[words[0]] = json.loads(capsys.readouterr().out)["audits"]
    assert found["--losses"][0]["result"]["epsilon"] > 0.5
    assert found["--kind"][0]["result"]["epsilon"] == 0
    assert len(found["--kind"]) == 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["none.csv"], "none.csv: there is no such file"),
        (["own.csv", "--delta", "1"], r"delta: expected a number in \[0, 1\), got 1"),
        (["own.csv", "--delta=-0.1"], "delta: expected"),
        (["own.csv", "--confidence", "1"], r"confidence: expected a number in \(0, 1\)"),
        (["own.csv", "--confidence", "nan"], "confidence: expected"),
        (["own.csv", "--confidence", "high"], "'--confidence'.*valid number"),
        (["own.csv", "--kind", "logits"], "'--kind'"),
        (["own.csv", "--losses", "--kind", "scores"], "--losses: contradicts"),
        (["own.csv", "--guess", "none"], "'--guess'"),
        (["own.csv", "--score-column", "nll"], "no column 'nll'; the columns are 'loss', 'member'"),
        (["own.csv", "--wrong"], "--wrong"),
        ([], "Missing argument"),
    ],
)
def test_a_wrong_option_is_one_line_and_exit_code_2(
    scores: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    message: str,
) -> None:
    assert call(monkeypatch, "audit", *words) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("paperlib: ")
    assert said.err.count("\n") == 1
    assert re.search(message, said.err), said.err
    assert [path.name for path in scores.parent.iterdir()] == ["own.csv"]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["nan,1", "1,0"], "1 of 2 values are NaN"),
        (["inf,1", "1,0"], "1 of 2 values are infinite"),
        (["1,1", "2,1"], "both classes are needed"),
        (["one,1", "2,0"], "holds 'one', not a number, in row 1"),
        (["1,1", "2"], "Expected 2 columns"),
        ([], "there are no rows"),
        (["0.5,1"] * 900 + ["0.5,0"] * 100, "cannot come from fair coins"),
    ],
)
def test_a_file_that_cannot_be_audited_is_one_line_and_exit_code_2(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    rows: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("\n".join(["score,member", *rows]) + "\n")
    assert call(monkeypatch, "audit", "a.csv") == 2
    said = capsys.readouterr()
    assert message in said.err
    assert said.err.count("\n") == 1
    assert not Path("a-audit.html").exists()


def test_coins_tossed_after_training_bound_replacement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"score": rng.normal(size=1000), "member": rng.integers(0, 2, 1000)})
    frame.to_parquet("a.parquet")
    assert call(monkeypatch, "audit", "a.parquet", "--design", "played", "--json") == 0
    main = json.loads(capsys.readouterr().out)["audits"][0]["result"]
    assert main["total"] == 1000
    assert "replacing one example" in main["claim"]
    assert "after training" in main["assumptions"][0]


def test_unbalanced_classes_can_be_audited_as_a_game(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"score": rng.normal(size=1000), "member": [1] * 900 + [0] * 100})
    frame.to_parquet("a.parquet")
    assert call(monkeypatch, "audit", "a.parquet", "--design", "game", "--json") == 0
    main = json.loads(capsys.readouterr().out)["audits"][0]["result"]
    assert main["total"] == game_size(100)
    assert main["epsilon"] == 0


def test_two_files_are_members_and_nonmembers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("in.npy", np.arange(50.0) + 100)
    np.save("out.npy", np.arange(50.0))
    assert call(monkeypatch, "audit", "in.npy", "out.npy", "--output", "deep/report.html") == 0
    assert "50 members, 50 non-members" in capsys.readouterr().out
    assert Path("deep/report.html").is_file()


def test_a_report_that_cannot_be_written_says_why(
    scores: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("own-audit.html").write_text("old")

    def refuse(*_: object) -> None:
        raise PermissionError(30, os.strerror(30))

    monkeypatch.setattr(os, "replace", refuse)
    assert call(monkeypatch, "audit", "own.csv") == 2
    assert "cannot write own-audit.html: the disk is read-only" in capsys.readouterr().err
    assert Path("own-audit.html").read_text() == "old"
    assert issubclass(OutputError, OSError)


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


@pytest.mark.parametrize("words", [["--help"], ["run", "--help"], ["audit", "--help"], ["list", "--help"]])
def test_help_is_given_with_an_example(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    assert call(monkeypatch, *words) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"paperlib {words[0]}" in said if len(words) == 2 else "audit" in said


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
