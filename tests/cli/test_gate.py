"""An audit as a gate: it fails closed, its JUnit file can be parsed, and no report takes another's place."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from paperlib.cli.gate import FAILED_GATE, finish, report_name, report_path


def outcome(**changed: Any) -> int:
    given = {
        "name": "own", "epsilon": 2.0, "headline": "ε ≥ 2.000", "claim": "The training leaks.",
        "warnings": [], "fail_above": None, "junit": None, **changed,
    }  # fmt: skip
    return finish(**given)


def test_without_a_limit_there_is_no_gate(capsys: pytest.CaptureFixture[str]) -> None:
    assert outcome() == 0
    assert outcome(epsilon=None) == 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("changed", "code", "said"),
    [
        ({"fail_above": 3.0}, 0, "gate passed: epsilon 2.000 is not above 3"),
        ({"fail_above": 2.0}, 0, "gate passed: epsilon 2.000 is not above 2"),
        ({"fail_above": 1.5}, FAILED_GATE, "gate failed: epsilon 2.000 is above 1.5"),
        ({"fail_above": 0.0}, FAILED_GATE, "gate failed: epsilon 2.000 is above 0"),
        ({"fail_above": 2.0, "epsilon": 2.0001}, FAILED_GATE, "gate failed: epsilon 2.0001 is above 2"),
        ({"fail_above": 3.0, "epsilon": float("inf")}, FAILED_GATE, "gate failed: epsilon inf is above 3"),
        ({"fail_above": 3.0, "epsilon": None}, FAILED_GATE, "gate failed: the audit gives no answer"),
        ({"fail_above": 3.0, "ceiling": 2.5}, FAILED_GATE, "can show at most epsilon 2.500, which is not"),
        ({"fail_above": 3.0, "ceiling": 3.0}, FAILED_GATE, "bring more examples"),
        ({"fail_above": 3.0, "ceiling": 3.5}, 0, "gate passed"),
    ],
)
def test_a_gate_passes_only_what_could_have_failed(
    capsys: pytest.CaptureFixture[str], changed: dict[str, Any], code: int, said: str
) -> None:
    assert outcome(**changed) == code
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert said in printed.err


def case(path: Path) -> tuple[ElementTree.Element, ElementTree.Element]:
    suites = ElementTree.parse(path).getroot()
    assert suites.tag == "testsuites"
    (suite,) = suites
    (one,) = suite
    assert (suite.tag, suite.get("name"), suite.get("tests"), one.tag) == (
        "testsuite",
        "paperlib",
        "1",
        "testcase",
    )
    return suite, one


def test_a_failed_gate_is_a_failure_with_number_claim_and_warnings(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "audit.xml"
    assert outcome(fail_above=1.0, junit=file, warnings=["odd <data> & more"]) == FAILED_GATE
    suite, one = case(file)
    assert (suite.get("failures"), suite.get("skipped"), one.get("name")) == ("1", "0", "own")
    (failure,) = one
    assert failure.tag == "failure"
    assert failure.get("message") == "gate failed: epsilon 2.000 is above 1"
    assert failure.text == "ε ≥ 2.000\nThe training leaks.\nWarning: odd <data> & more"


@pytest.mark.parametrize("limit", [None, 2.5])
def test_a_passed_gate_has_its_number_in_the_output(tmp_path: Path, limit: float | None) -> None:
    file = tmp_path / "audit.xml"
    assert outcome(fail_above=limit, junit=file) == 0
    suite, one = case(file)
    assert suite.get("failures") == "0"
    assert [part.tag for part in one] == ["system-out"]
    assert "ε ≥ 2.000" in (one[0].text or "")


def test_no_answer_and_no_limit_is_a_skipped_case(tmp_path: Path) -> None:
    file = tmp_path / "audit.xml"
    assert outcome(epsilon=None, junit=file) == 0
    suite, one = case(file)
    assert (suite.get("failures"), suite.get("skipped")) == ("0", "1")
    assert [part.tag for part in one] == ["skipped", "system-out"]


def test_what_xml_cannot_hold_is_written_with_its_number(tmp_path: Path) -> None:
    file = tmp_path / "audit.xml"
    outcome(name="a\x1b[31m\ud800", junit=file, headline="one\x00two\ttab")
    _, one = case(file)
    assert one.get("name") == "a\\x1b[31m\\xd800"
    assert "one\\x00two\ttab" in (one[0].text or "")


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("my.model.v2.csv", "my.model.v2"),
        ("../runs/my.model.v3.csv", "my.model.v3"),
        ("losses.csv.gz", "losses"),
        ("own", "own"),
        (".hidden", ".hidden"),
        ("-", "stdin"),
    ],
)
def test_a_report_is_named_by_all_of_the_files_name_but_its_ending(file: str, name: str) -> None:
    assert report_name(file) == name


def page(inputs: dict[str, str] | None) -> str:
    return (
        f"<html><script type='application/json' id=\"audit-result\">{json.dumps({'inputs': inputs})}</script>"
    )


def test_a_report_of_other_data_stays_and_one_of_the_same_data_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    first, second = {"own.csv": "aa"}, {"own.csv": "bb"}

    def path_of(inputs: dict[str, str] | None) -> str:
        return str(report_path(None, "own", as_json=False, inputs=inputs))

    assert path_of(first) == "own-audit.html"
    Path("own-audit.html").write_text(page(first))
    assert path_of(first) == "own-audit.html"
    assert path_of(second) == "own-audit-2.html"
    Path("own-audit-2.html").write_text(page(second))
    assert path_of(second) == "own-audit-2.html"
    assert path_of(first) == "own-audit.html"
    assert path_of({"own.csv": "cc"}) == "own-audit-3.html"
    assert path_of(None) == "own-audit-3.html"


@pytest.mark.parametrize(
    "text", ["", "<script id='audit-result'>{</script>", "<script id='audit-result'>[1]</script>"]
)
def test_a_page_that_does_not_say_its_data_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own-audit.html").write_text(text)
    assert report_path(None, "own", as_json=False, inputs={"own.csv": "aa"}) == Path("own-audit-2.html")


def test_a_given_path_is_taken_and_json_alone_writes_no_report(tmp_path: Path) -> None:
    given = tmp_path / "report.html"
    given.write_text("old")
    assert report_path(given, "own", as_json=False) == given
    assert report_path(given, "own", as_json=True) == given
    assert report_path(None, "own", as_json=True) is None
