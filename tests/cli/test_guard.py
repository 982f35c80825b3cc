"""The end of a command: one line for any error, a traceback only when it is asked for, and the exit code."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from paperlib.cli import doctor as doctor_module

COMMAND = (sys.executable, "-m", "paperlib")


def breaks(monkeypatch, error):
    """Makes `paperlib doctor` end with an exception."""

    def doctor():
        raise error

    monkeypatch.setattr(doctor_module, "doctor", doctor)


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
        (ValueError("the known ones are:\n  m = 3\n  n = 4"), 2, "the known ones are:\n  m = 3\n  n = 4\n"),
        (KeyboardInterrupt(), 130, "interrupted; no half-finished result was kept"),
    ],
)
def test_every_error_is_one_line_and_an_exit_code(command, monkeypatch, error, code, said):
    """Only a list of what is known keeps its lines."""
    breaks(monkeypatch, error)
    found, out, err = command("doctor")
    assert (found, out) == (code, "")
    assert err.startswith(f"paperlib: {said}")
    assert err.count("\n") == max(1, said.count("\n"))


@pytest.mark.parametrize(
    ("variable", "words", "shown"),
    [("", "--debug doctor", True), ("1", "doctor", True), ("", "doctor", False), ("0", "doctor", False)],
)
def test_a_traceback_is_shown_only_when_it_is_asked_for(monkeypatch, command, variable, words, shown):
    monkeypatch.setenv("PAPERLIB_DEBUG", variable)
    for error, code in ((KeyError("trials"), 1), (ValueError("seed: a mistake of the user"), 2)):
        breaks(monkeypatch, error)
        found, _, err = command.line(words)
        assert (found, "Traceback" in err and "test_guard.py" in err) == (code, shown)
        assert err.splitlines()[-1].startswith("paperlib: ")


def test_a_misspelled_command_or_option_is_one_line_with_a_suggestion(here, command):
    command.refuses("audt", "No such command 'audt'. Did you mean 'audit'")
    command.refuses("xyz", "No such command 'xyz'; `paperlib --help` lists them")
    command.refuses("audit a.csv --desing game", "--design")
    command.refuses("audit a.csv --design gam", "'gam' is not one of")
    assert command()[2].startswith("Usage: paperlib [OPTIONS] COMMAND"), "the help without a command"


@pytest.mark.parametrize(("module", "words"), [("typer", ["--help"]), ("matplotlib", ["audit", "own.csv"])])
def test_a_missing_package_is_one_line_that_says_how_to_get_it(tmp_path, module, words):
    """In a Python that has no such module."""
    (tmp_path / "own.csv").write_text("score,member\n" + "0.5,1\n0.2,0\n" * 50)
    code = (
        f"import sys; sys.modules[{module!r}] = None; sys.argv = {['paperlib', *words]!r}; "
        "from paperlib.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith(f"paperlib: {module} is not installed; to get it: pip install ")
    assert done.stderr.count("\n") == 1
    assert "pip install paperlib" not in done.stderr
    assert "'paperlib[" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_no_gate_is_passed_where_the_output_is_full(tmp_path):
    (tmp_path / "own.csv").write_text("score,member\n" + "0.9,1\n0.1,0\n0.2,0\n0.8,1\n" * 100)
    words = [*COMMAND, "audit", "own.csv", "--fail-above", "4"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(words, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert done.stderr == "paperlib: the output: no space left on device\n"


def test_a_closed_pipe_ends_without_a_word():
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as closed:
        done = subprocess.run([*COMMAND, "--help"], stdout=closed, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize("streams", [">&-", "2>&-"])
def test_closed_output_and_error_streams_change_no_exit_code(streams):
    words = " ".join([*COMMAND, "no-such-command", streams])
    assert subprocess.run(["sh", "-c", words], capture_output=True).returncode == 2
