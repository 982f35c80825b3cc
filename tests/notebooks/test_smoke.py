"""Every notebook, run in the smoke profile for the book, states all its targets and describes its
figures.
"""

import base64
import contextlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from paperlib.report.figures import SMALLEST_TEXT
from paperlib.reproduction.exhibits import targets
from paperlib.reproduction.papers.verdict.claims_file import claims_text
from paperlib.reproduction.papers.verdict.status import judge
from paperlib.reproduction.running import find_project, outcomes, plan
from paperlib.reproduction.running.book import current_result, kept_folder, measured_evidence
from paperlib.reproduction.running.execute import PAGE, Job
from tests.reproduction.papers.verdict.test_claims_file import planned

HERE = find_project(Path(__file__).parent)


# No other data set may stand in for the one that these are about.
NEED_REAL_DATA = {"epsilon-star-figure-02"}


def targets_of(stem: str) -> set[str]:
    rows = targets().to_dict("records")
    return {str(row["id"]) for row in rows if stem in str(row["notebook"]).split("; ")}


@pytest.mark.browser
@pytest.mark.parametrize("stem", HERE.stems())
def test_the_run_states_all_targets_and_describes_its_figures(stem: str) -> None:
    job = plan(HERE, stem, profile="smoke")
    folder, result = kept_folder(job), current_result(job)
    if not folder.is_dir():
        pytest.skip("not run yet: make book PROFILE=smoke")
    assert result is not None, "changed since it ran: make book PROFILE=smoke"
    text = (folder / PAGE).read_text()
    csvs = {path.name for path in folder.glob("*.csv")}
    recorded = {record["target"] for record in result.records if "answer" not in record}
    assert targets_of(stem) - NEED_REAL_DATA <= recorded <= targets_of(stem)
    assert set(outcomes(result)) == recorded
    assert set(result.data) == csvs
    assert str(HERE.root) not in text
    for shown in outputs(json.loads(text), "text/markdown"):
        check_table(shown)
        check_figure(shown)


def outputs(notebook: dict[str, Any], kind: str) -> list[str]:
    """Every output of one kind, as text."""
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    data = [output.get("data", {}) for cell in cells for output in cell["outputs"]]
    return ["".join(one[kind]) for one in data if kind in one]


def check_table(shown: str) -> None:
    """At most seven columns, more than a page has no room for."""
    for row in re.findall(r"^\|.*\|$", shown, re.MULTILINE):
        assert len(re.findall(r"(?<!\\)\|", row)) - 1 <= 7, row


def check_figure(shown: str) -> None:
    """Words for those who cannot see it, and letters that can be read on a phone."""
    if not shown.startswith("````{figure}"):
        return
    assert re.search(r'^:alt: "(.{30,})"$', shown, re.MULTILINE), shown[-600:]
    svg = base64.b64decode(shown.partition("base64,")[2].partition("\n")[0]).decode()
    size = re.search(f"{SMALLEST_TEXT} ([0-9.a-z]+)", svg)
    assert size is not None, "figures are made by paperlib.report"
    assert float(size[1]) >= 8, f"{size[0]}: {shown[-300:]}"


def test_a_wide_table_and_small_letters_are_seen() -> None:
    check_table("| a | b \\| c |\n| 1 | 2 |\n")
    with pytest.raises(AssertionError):
        check_table("|" + " a |" * 8)
    for size, fits in (("8.30", True), ("7.99", False)):
        svg = base64.b64encode(f"<svg>{SMALLEST_TEXT} {size}</svg>".encode()).decode()
        shown = f'````{{figure}} data:image/svg+xml;base64,{svg}\n:alt: "{"words " * 9}"\n'
        with contextlib.nullcontext() if fits else pytest.raises(AssertionError):
            check_figure(shown)


def claims_by_command(committed: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """The first command of each notebook in ``claims.json``, and the claims that it repeats."""
    content = json.loads(claims_text(judge([], committed), profile="smoke"))
    commands: dict[str, str] = {}
    claims: dict[str, list[dict[str, Any]]] = {}
    for row in content["claims"]:
        for command in row["commands"]:
            first = commands.setdefault(planned(command).stem, command)
            if first == command:
                claims.setdefault(command, []).append(row)
    return claims


def in_smoke(command: str) -> Job:
    """The run of a command with the counts of the smoke profile in place of its own."""
    return plan(HERE, planned(command).stem, profile="smoke")


def check_repeated(row: dict[str, Any], again: dict[str, Any]) -> None:
    """The same claims, each judged; those of an exact computation with the same outcome, unless
    the draws beside it are too few.
    """
    names = {claim["name"] for claim in row["claims"]}
    assert {claim["name"] for claim in again["claims"]} == names, row["id"]
    assert again["outcome"] != "not yet", row["id"]
    exact = targets().set_index("id")["unit"][row["id"]] == "exact"
    assert not exact or again["outcome"] in {row["outcome"], "undecided"}, row["id"]


@pytest.mark.browser
def test_ten_commands_of_the_claims_run_in_the_smoke_profile_and_judge_the_same_claims() -> None:
    claims = claims_by_command(measured_evidence(HERE))
    assert len(claims) >= 10
    ran = {command: current_result(in_smoke(command)) for command in claims}
    results = {command: result for command, result in ran.items() if result is not None}
    if len(results) < 10:
        pytest.skip("not run yet: make book PROFILE=smoke")
    for command, result in results.items():
        content = json.loads(claims_text(judge([vars(result)]), profile="smoke"))
        repeated = {row["id"]: row for row in content["claims"]}
        for row in claims[command]:
            if row["id"] not in NEED_REAL_DATA:
                check_repeated(row, repeated[row["id"]])


def test_a_command_that_judges_other_claims_is_seen() -> None:
    row = {"id": "output-sets-figure-04", "outcome": "disagrees", "claims": [{"name": "one"}]}
    check_repeated(row, row)
    for change in ({"outcome": "agrees"}, {"outcome": "not yet"}, {"claims": []}):
        with pytest.raises(AssertionError):
            check_repeated(row, row | change)


@pytest.mark.parametrize("profile", ["smoke", "default", "paper"])
def test_every_profile_names_every_notebook_and_no_other(profile: str) -> None:
    assert sorted(HERE.profile(profile)) == HERE.stems()
