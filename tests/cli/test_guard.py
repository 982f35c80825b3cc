"""The end of a command: one line for any error, a traceback only when it is asked for, and the exit code."""

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from paperlib.cli import doctor as doctor_module
from tests.cli.test_cli import _same_signals, call  # noqa: F401

COMMAND = (sys.executable, "-m", "paperlib")


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], None]:
    """Makes `paperlib doctor` end with an exception."""

    def let_it_raise(error: BaseException) -> None:
        def doctor() -> None:
            raise error

        monkeypatch.setattr(doctor_module, "doctor", doctor)

    return let_it_raise


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (ValueError("seed: expected 0 or more, got -1"), 2, "seed: expected 0 or more, got -1"),
        (KeyError("trials"), 1, "internal error: KeyError: 'trials'; run again with `paperlib --debug ...`"),
        (RuntimeError("one\n  two"), 1, "internal error: RuntimeError: one two; run again"),
        (AssertionError(), 1, "internal error: AssertionError; run again"),
        (MemoryError(), 1, "out of memory"),
        (FileNotFoundError(errno.ENOENT, "No such file", "a.csv"), 2, "a.csv: no such file"),
        (PermissionError("a.csv: not yours"), 2, "a.csv: not yours"),
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), 2, "the output: no space left on device"),
        (OSError(errno.ECONNREFUSED, "Connection refused"), 2, "connection refused"),
        (ValueError("one line\nand another"), 2, "one line and another"),
        (KeyboardInterrupt(), 130, "interrupted; no half-finished result was kept"),
    ],
)
def test_every_error_is_one_line_and_an_exit_code(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    broken: Callable[[BaseException], None],
    error: BaseException,
    code: int,
    said: str,
) -> None:
    broken(error)
    assert call(monkeypatch, "doctor") == code
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"paperlib: {said}")
    assert printed.err.count("\n") == 1


@pytest.mark.parametrize("by", ["option", "variable", "neither", "zero"])
def test_a_traceback_is_shown_only_when_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    broken: Callable[[BaseException], None],
    by: str,
) -> None:
    broken(KeyError("trials"))
    if by in ("variable", "zero"):
        monkeypatch.setenv("PAPERLIB_DEBUG", "1" if by == "variable" else "0")
    assert call(monkeypatch, *(["--debug"] if by == "option" else []), "doctor") == 1
    said = capsys.readouterr().err
    assert ("Traceback" in said and "test_guard.py" in said) is (by in ("option", "variable"))
    assert "paperlib: internal error: KeyError" in said.splitlines()[-1]


def test_a_users_mistake_has_a_traceback_too_when_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call(monkeypatch, "--debug", "audit", "none.csv") == 2
    said = capsys.readouterr().err
    assert "Traceback" in said
    assert said.splitlines()[-1].startswith("paperlib: none.csv: there is no such file")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("audt",), "No such command 'audt'. Did you mean 'audit'"),
        (("xyz",), "No such command 'xyz'; `paperlib --help` lists them"),
        (("audit", "a.csv", "--desing", "game"), "--design"),
        (("audit", "a.csv", "--design", "gam"), "'gam' is not one of"),
    ],
)
def test_a_misspelled_command_or_option_is_one_line_with_a_suggestion(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    assert call(monkeypatch, *words) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert said in printed.err
    assert printed.err.count("\n") == 1


def test_without_a_command_the_help_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch) == 2
    assert capsys.readouterr().err.startswith("Usage: paperlib [OPTIONS] COMMAND")


def blocked(module: str, *words: str) -> subprocess.CompletedProcess[str]:
    """The command in a Python that has no such module."""
    code = (
        f"import sys; sys.modules[{module!r}] = None; sys.argv = ['paperlib', *{words!r}]; "
        "from paperlib.cli import main; main()"
    )
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("typer", ("--help",)),
        ("matplotlib", ("audit", "own.csv")),
    ],
)
def test_a_missing_package_is_one_line_that_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.csv").write_text("score,member\n" + "0.5,1\n0.2,0\n" * 50)
    done = blocked(module, *words)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith(f"paperlib: {module} is not installed; to get it: pip install ")
    assert done.stderr.count("\n") == 1
    assert "pip install paperlib" not in done.stderr
    assert "'paperlib[" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_below_the_output_is_one_line() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([*COMMAND, "--help"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert done.stderr == "paperlib: the output: no space left on device\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_no_gate_is_passed_where_the_output_is_full(tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text("score,member\n" + "0.9,1\n0.1,0\n0.2,0\n0.8,1\n" * 100)
    words = ["audit", "own.csv", "--fail-above", "4"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*COMMAND, *words], cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 2
    assert done.stderr == "paperlib: the output: no space left on device\n"


def test_a_list_of_what_is_known_keeps_its_lines(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    broken: Callable[[BaseException], None],
) -> None:
    broken(ValueError("unknown 'x'; the known ones are:\n  m = 3\n  n = 4"))
    assert call(monkeypatch, "doctor") == 2
    assert capsys.readouterr().err == "paperlib: unknown 'x'; the known ones are:\n  m = 3\n  n = 4\n"


def test_a_closed_pipe_ends_without_a_word() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as closed:
        done = subprocess.run([*COMMAND, "--help"], stdout=closed, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 141
    assert done.stderr == ""


def test_closed_output_and_error_streams_change_no_exit_code() -> None:
    for streams in (">&-", "2>&-", ">&- 2>&-"):
        words = " ".join([*COMMAND, "audit", "none.csv", streams])
        assert subprocess.run(["sh", "-c", words], capture_output=True).returncode == 2
