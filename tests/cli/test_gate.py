"""An audit as a gate: it fails closed, its JUnit file can be parsed, and no report takes another's place."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from paperlib.cli.gate import FAILED_GATE, Wishes, report_name, report_path


def outcome(said=("ε ≥ 2.000", "The training leaks."), name="own", epsilon=2.0, ceiling=None, **wishes):
    return Wishes(**wishes).judge(name, said, epsilon=epsilon, ceiling=ceiling)


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
def test_a_gate_passes_only_what_could_have_failed_and_without_a_limit_there_is_none(
    capsys, changed, code, said
):
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
    assert (suite.get("name"), suite.get("tests"), case.get("name")) == ("paperlib", "1", "a\\x1b[31m\\xd800")
    assert (suite.get("failures"), suite.get("skipped")) == counts
    assert [part.tag for part in case] == parts
    assert case[-1].text == "ε ≥ 2.000\nodd <data> & one\\x00two\ttab"
    if parts == ["failure"]:
        assert case[0].get("message") == "gate failed: epsilon 2.000 is above 1"


def test_a_report_is_named_by_all_of_the_files_name_but_its_ending():
    files = "../runs/my.model.v2.csv", "losses.csv.gz", "own", ".hidden", "-"
    assert [report_name(file) for file in files] == ["my.model.v2", "losses", "own", ".hidden", "stdin"]


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
    for text in ("", "<script id='audit-result'>{</script>", "<script id='audit-result'>[1]</script>"):
        Path("own-audit.html").write_text(text)  # which does not say its data
        assert path_of(first) == "own-audit-3.html"
