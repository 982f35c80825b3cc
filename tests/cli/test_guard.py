"""The end of a command: one line for any error, the exit code, and a gate that fails closed."""

import errno
import json
import os
import subprocess
import sys
import unicodedata
from pathlib import Path
from xml.etree import ElementTree

import pytest

from paperlib.cli import doctor as doctor_module
from paperlib.cli.gate import FAILED_GATE, Wishes, report_name, report_path

COMMAND = (sys.executable, "-m", "paperlib")


def breaks(monkeypatch, error):
    """Makes `paperlib doctor` end with an exception."""

    def doctor():
        raise error

    monkeypatch.setattr(doctor_module, "doctor", doctor)


@pytest.fixture(scope="module")
def accented(tmp_path_factory):
    """A folder with a file of scores whose column has an accent; the scores tell members."""
    folder = tmp_path_factory.mktemp("Prüfung")
    rows = [f"{number % 2 + number / 1_000:.3f},{number % 2}\n" for number in range(200)]
    (folder / "werte.csv").write_text("Verlust_é,member\n" + "".join(rows), encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("terminal", "letter"),
    [
        ({"PYTHONIOENCODING": "ascii"}, "eps >="),
        ({"PYTHONIOENCODING": "latin-1"}, "eps >="),
        ({"PYTHONIOENCODING": "cp1252"}, "eps >="),
        ({"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, "ε ≥"),
    ],
)
def test_any_terminal_gets_the_number_and_the_exit_code_of_the_gate(accented, terminal, letter):
    env = {name: text for name, text in os.environ.items() if not name.startswith("LC_")}
    call = ["audit", "werte.csv", "--score-column", "Verlust_é", "--kind", "scores"]
    call += ["--design", "game", "--fail-above", "1", "--output", "größe.html"]

    def outcome(*options):
        return subprocess.run(
            [*COMMAND, *call, *options], cwd=accented, env=env | terminal, capture_output=True
        )

    printed = outcome()
    assert printed.returncode == FAILED_GATE
    encoding = terminal.get("PYTHONIOENCODING", "utf-8")
    assert letter in printed.stdout.decode(encoding)
    assert (accented / "größe.html").exists()
    as_json = outcome("--json")
    assert as_json.returncode == FAILED_GATE
    assert json.loads(as_json.stdout.decode("ascii"))["headline"].startswith("ε ≥ ")


def test_every_error_is_one_line_and_an_exit_code(command, monkeypatch):
    """Only a list of what is known keeps its lines."""
    for error, code, said in (
        (ValueError("seed: expected 0 or more, got -1"), 2, "seed: expected 0 or more, got -1"),
        (
            KeyError("trials"),
            1,
            "internal error: KeyError: 'trials'; run again with `paperlib --debug ...`",
        ),
        (RuntimeError("one\n  two"), 1, "internal error: RuntimeError: one two; run again"),
        (AssertionError(), 1, "internal error: AssertionError; run again"),
        (MemoryError(), 1, "out of memory"),
        (FileNotFoundError(errno.ENOENT, "No such file", "a.csv"), 2, "a.csv: no such file"),
        (PermissionError("a.csv: not yours"), 2, "a.csv: not yours"),
        (
            OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
            2,
            "the output: no space left on device",
        ),
        (OSError(errno.ECONNREFUSED, "Connection refused"), 2, "connection refused"),
        (ValueError("one line\nand another"), 2, "one line and another"),
        (
            ValueError("the known ones are:\n  m = 3\n  n = 4"),
            2,
            "the known ones are:\n  m = 3\n  n = 4\n",
        ),
        (KeyboardInterrupt(), 130, "interrupted; no half-finished result was kept"),
    ):
        breaks(monkeypatch, error)
        found, out, err = command("doctor")
        assert (found, out) == (code, "")
        assert err.startswith(f"paperlib: {said}")
        assert err.count("\n") == max(1, said.count("\n"))


@pytest.mark.parametrize(
    ("variable", "words", "shown"),
    [
        ("", "--debug doctor", True),
        ("1", "doctor", True),
        ("", "doctor", False),
        ("0", "doctor", False),
    ],
)
def test_a_traceback_is_shown_only_when_it_is_asked_for(
    monkeypatch, command, variable, words, shown
):
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
    assert command()[2].startswith("Usage: paperlib [OPTIONS] COMMAND"), (
        "the help without a command"
    )


@pytest.mark.parametrize(
    ("module", "words"), [("typer", ["--help"]), ("matplotlib", ["audit", "own.csv"])]
)
def test_a_missing_package_is_one_line_that_says_how_to_get_it(tmp_path, module, words):
    """In a Python that has no such module."""
    (tmp_path / "own.csv").write_text("score,member\n" + "0.5,1\n0.2,0\n" * 50)
    code = (
        f"import sys; sys.modules[{module!r}] = None; sys.argv = {['paperlib', *words]!r}; "
        "from paperlib.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True
    )
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
        done = subprocess.run(
            [*COMMAND, "--help"], stdout=closed, stderr=subprocess.PIPE, text=True
        )
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize("streams", [">&-", "2>&-"])
def test_closed_output_and_error_streams_change_no_exit_code(streams):
    words = " ".join([*COMMAND, "no-such-command", streams])
    assert subprocess.run(["sh", "-c", words], capture_output=True).returncode == 2


def outcome(
    said=("ε ≥ 2.000", "The training leaks."), name="own", epsilon=2.0, ceiling=None, **wishes
):
    return Wishes(**wishes).judge(name, said, epsilon=epsilon, ceiling=ceiling)


@pytest.mark.parametrize(
    ("changed", "code", "said"),
    [
        ({"fail_above": 3.0}, 0, "gate passed: epsilon 2.000 is not above 3"),
        ({"fail_above": 2.0}, 0, "gate passed: epsilon 2.000 is not above 2"),
        ({"fail_above": 1.5}, FAILED_GATE, "gate failed: epsilon 2.000 is above 1.5"),
        ({"fail_above": 0.0}, FAILED_GATE, "gate failed: epsilon 2.000 is above 0"),
        (
            {"fail_above": 2.0, "epsilon": 2.0001},
            FAILED_GATE,
            "gate failed: epsilon 2.0001 is above 2",
        ),
        (
            {"fail_above": 3.0, "epsilon": float("inf")},
            FAILED_GATE,
            "gate failed: epsilon inf is above 3",
        ),
        (
            {"fail_above": 3.0, "epsilon": None},
            FAILED_GATE,
            "gate failed: the audit gives no answer",
        ),
        (
            {"fail_above": 3.0, "ceiling": 2.5},
            FAILED_GATE,
            "can show at most epsilon 2.500, which is not",
        ),
        ({"fail_above": 3.0, "ceiling": 3.0}, FAILED_GATE, "bring more examples"),
        ({"fail_above": 3.0, "ceiling": 3.5}, 0, "gate passed"),
    ],
)
def test_a_gate_passes_only_what_could_have_failed_and_has_a_limit(capsys, changed, code, said):
    assert outcome() == outcome(epsilon=None) == 0
    assert capsys.readouterr() == ("", "")
    assert outcome(**changed) == code
    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("\n")) == ("", 1)
    assert said in printed.err


@pytest.mark.parametrize(
    ("changed", "counts", "parts"),
    [
        ({"fail_above": 1.0}, ("1", "0"), ["failure"]),
        ({"fail_above": 2.5}, ("0", "0"), ["system-out"]),
        ({}, ("0", "0"), ["system-out"]),
        ({"epsilon": None}, ("0", "1"), ["skipped", "system-out"]),
    ],
)
def test_a_junit_file_has_one_case_with_number_claim_and_warnings(tmp_path, changed, counts, parts):
    """What XML cannot hold is written with its number."""
    file = tmp_path / "deep" / "audit.xml"
    said = ("ε ≥ 2.000", "odd <data> & one\x00two\ttab")
    outcome(said, name="a\x1b[31m\ud800", junit=file, **changed)
    suites = ElementTree.parse(file).getroot()
    ((case,),) = (suite,) = suites
    assert (suites.tag, suite.tag, case.tag) == ("testsuites", "testsuite", "testcase")
    assert (suite.get("name"), suite.get("tests"), case.get("name")) == (
        "paperlib",
        "1",
        "a\\x1b[31m\\xd800",
    )
    assert (suite.get("failures"), suite.get("skipped")) == counts
    assert [part.tag for part in case] == parts
    assert case[-1].text == "ε ≥ 2.000\nodd <data> & one\\x00two\ttab"
    if parts == ["failure"]:
        assert case[0].get("message") == "gate failed: epsilon 2.000 is above 1"


def test_a_report_is_named_by_all_of_the_files_name_but_its_ending():
    files = "../runs/my.model.v2.csv", "losses.csv.gz", "own", ".hidden", "-"
    assert [report_name(file) for file in files] == [
        "my.model.v2",
        "losses",
        "own",
        ".hidden",
        "stdin",
    ]


def test_a_report_of_other_data_stays_and_one_of_the_same_data_is_replaced(here):
    first, second = {"own.csv": "aa"}, {"own.csv": "bb"}

    def path_of(inputs):
        return str(report_path(None, "own", as_json=False, inputs=inputs))

    for name, inputs in (("own-audit.html", first), ("own-audit-2.html", second)):
        assert path_of(inputs) == name
        content = json.dumps({"inputs": inputs})
        page = f"<html><script type='application/json' id=\"audit-result\">{content}</script>"
        Path(name).write_text(page)
        assert path_of(inputs) == name
    assert path_of(first) == "own-audit.html"
    assert path_of({"own.csv": "cc"}) == path_of(None) == "own-audit-3.html"
    for text in (
        "",
        "<script id='audit-result'>{</script>",
        "<script id='audit-result'>[1]</script>",
    ):
        Path("own-audit.html").write_text(text)  # which does not say its data
        assert path_of(first) == "own-audit-3.html"


HOSTILE = "\x1b[2J\x1b[1;1Hgate passed\u202e\x9b8m\r"
"""Clears the screen, writes over it and turns the direction of what follows."""


def steers(text):
    """Whether a text holds anything but letters and ends of lines that a terminal acts on."""
    return [letter for letter in text if letter != "\n" and unicodedata.category(letter)[0] == "C"]


@pytest.mark.parametrize("place", ["file", "column", "group", "plan", "unknown key", "missing"])
def test_text_of_others_cannot_steer_the_terminal(command, here, place):
    """Names of files, columns, groups and fields that somebody else wrote, in output and errors."""
    rows = "".join(f"{number % 2 + number / 1_000:.3f},{number % 2},a\n" for number in range(200))
    name = f"{HOSTILE}.csv" if place == "file" else "scores.csv"
    column = f'"score{HOSTILE}"' if place == "column" else "score"
    Path(name).write_text(f"{column},member,part\n{rows}", encoding="utf-8", newline="")
    if place == "group":
        text = Path(name).read_text(encoding="utf-8").replace(",a\n", f',"a{HOSTILE}"\n')
        Path(name).write_text(text, encoding="utf-8", newline="")
    words = ["audit", name, "--kind", "scores", "--group-column", "part", "--design", "game"]
    if place in ("plan", "unknown key"):
        key = f"notes{HOSTILE}" if place == "unknown key" else "notes"
        Path("plan.yaml").write_text(json.dumps({key: HOSTILE, "epsilon": HOSTILE}))
        words = ["seal", "plan.yaml"]
    if place == "missing":
        words = ["audit", f"nowhere{HOSTILE}.csv"]
    code, out, error = command(*words)
    assert code == (2 if place in ("plan", "unknown key", "missing") else 0), error
    assert steers(out + error) == []
    is_named = place not in ("group", "plan")  # groups and notes stand in the report alone
    assert ("\\x1b[2J" in out + error) is is_named, "what stands there is shown as what it is"
