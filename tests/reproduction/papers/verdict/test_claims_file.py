"""``claims.json`` follows its schema, says what the pages show, and names commands that run."""

import hashlib
import json
import math
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError

from paperlib.reproduction.papers.landing import landing_markdown
from paperlib.reproduction.papers.verdict.claims_file import (
    CLAIMS_NAME,
    SCHEMA_NAME,
    claims_text,
    schema_text,
)
from paperlib.reproduction.papers.verdict.pages import results_pages
from paperlib.reproduction.papers.verdict.status import JudgedTarget, judge
from paperlib.reproduction.running.book import measured_evidence, write_status
from paperlib.reproduction.running.execute import Job, plan
from paperlib.reproduction.running.parameters import parse_assignments, split_assignments
from paperlib.reproduction.running.project import Project
from tests.reproduction.running.toys import GOOD, make_project

PROJECT = Project(Path(__file__).parents[4])
FIGURE = r"(?:```\{image\}[^`]+```\n\n)?"
SECTION = re.compile(
    r"\(result-(?P<id>[a-z0-9-]+)\)=\n## (?P<item>.+)\n\n"
    + FIGURE
    + r"\[\S+ (?P<word>[a-z ]+)\]\{\.chip"
)
# What a method claims of itself can be contradicted on any data.
JUDGED_ON_ANY_DATA = {"nid-table-10", "nid-figure-03"}
BY_NAME = re.compile(r"\[\S+ ([a-z ]+)\]\{\.chip [^}]*\} ([^;\n]+?)(?=;|\.\n)")


@pytest.fixture(scope="module")
def judged() -> list[JudgedTarget]:
    """All targets by the committed evidence."""
    return judge([], measured_evidence(PROJECT))


@pytest.fixture(scope="module")
def content(judged: list[JudgedTarget]) -> dict[str, Any]:
    return json.loads(claims_text(judged, profile="default"))


def planned(command: str) -> Job:
    """The run of a command, with every parameter checked as the command checks it."""
    program, _, *words = shlex.split(command)
    if program == "make":
        given = dict(word.split("=", 1) for word in words)
        values = parse_assignments(split_assignments(given.get("P", "")))
        profile = given.get("PROFILE", "default")
        return plan(PROJECT, given["NB"], profile=profile, given=values, where=PROJECT.root)
    assert program == "paperlib"
    notebook, *options = words
    pairs = list(zip(options[::2], options[1::2], strict=True))
    (profile,) = [value for option, value in pairs if option == "--profile"]
    values = parse_assignments([value for option, value in pairs if option == "-p"])
    assert len(values) == len(pairs) - 1
    return plan(PROJECT, notebook, profile=profile, given=values, where=PROJECT.root)


def test_it_follows_its_schema_which_refuses_other_words_and_missing_checksums(content):
    validator = Draft202012Validator(json.loads(schema_text()))
    validator.check_schema(validator.schema)
    validator.validate(content)
    assert len(content["claims"]) == 50
    row = next(row for row in content["claims"] if row["evidence"])
    for broken in (
        row | {"outcome": "holds"},
        row | {"evidence": [row["evidence"][0] | {"sha256": ""}]},
        {name: value for name, value in row.items() if name != "sentence"},
    ):
        with pytest.raises(ValidationError):
            validator.validate(content | {"claims": [broken]})


def test_a_claim_without_a_page_says_where_the_paper_has_it(content):
    pages = {row["id"]: row["page"] for row in content["claims"]}
    # Line numbers stand beside these alone: 54 a page of the anonymous manuscripts.
    assert {target: page for target, page in pages.items() if page is not None} == {
        "nid-figure-02": 9,
        "output-sets-figure-01": 8,
        "output-sets-figure-02": 9,
        "output-sets-figure-03": 10,
        "output-sets-figure-04": 20,
        "output-sets-figure-05": 20,
        "output-sets-figure-06": 21,
    }
    place = re.compile(r"(Table|Figure|Section|Appendix) [A-Z0-9.]+")
    for row in content["claims"]:
        assert place.fullmatch(row["item"]), row["id"]
        assert place.fullmatch(row["number_from"]), row["id"]


FAILING = {"disagrees", "does not carry over"}
HOLDING = {"agrees", "carries over"}
WEAKEST_FIRST = ("disagrees", "does not carry over", "undecided", "carries over", "agrees")


def sides(claim: dict[str, Any]) -> set[str]:
    """On which side of its range each interval of a claim lies, from the numbers alone."""
    found: set[str] = set()
    for case in claim["comparisons"]:
        ends = (
            ("low", -math.inf),
            ("high", math.inf),
            ("at_least", -math.inf),
            ("at_most", math.inf),
        )
        low, high, least, most = (
            missing if case[name] is None else case[name] for name, missing in ends
        )
        inside = least <= low and high <= most
        outside = high < least or most < low
        found.add("inside" if inside else "outside" if outside else "across")
    return found


def check_words(row: dict[str, Any]) -> None:
    """That the outcome of a row, and of each of its claims, is what their numbers allow."""
    words = [claim["outcome"] for claim in row["claims"] if not claim["beside"]]
    if words:
        assert row["outcome"] == next(word for word in WEAKEST_FIRST if word in words)
    for claim in row["claims"]:
        if claim["outcome"] in FAILING:
            assert "outside" in sides(claim), claim["name"]
        if claim["outcome"] in HOLDING:
            assert sides(claim) == {"inside"}, claim["name"]
        if claim["outcome"] == "undecided" and row["outcome"] != "undecided":
            assert sides(claim) in ({"across"}, {"across", "inside"}), claim["name"]
        if claim["outcome"] in {"agrees", "disagrees"}:
            assert row["scale"] != "substitute" or row["id"] in JUDGED_ON_ANY_DATA


def test_no_row_has_words_that_its_numbers_do_not_allow(content):
    for row in content["claims"]:
        check_words(row)
    row = next(row for row in content["claims"] if row["outcome"] == "agrees")
    first = row["claims"][0]
    far = {"low": 1e9, "high": 2e9, "at_least": None, "at_most": 1e8}
    moved = [case | far for case in first["comparisons"]]
    for wrong in (
        row | {"outcome": "disagrees"},
        row | {"claims": [first | {"comparisons": moved}, *row["claims"][1:]]},
        row | {"scale": "substitute"},
    ):
        with pytest.raises(AssertionError):
            check_words(wrong)


def test_its_outcomes_are_those_of_the_pages(judged, content):
    pages = results_pages(judged, pages=[])
    rows = {row["id"]: row for row in content["claims"]}
    sections: dict[str, tuple[str, str, str]] = {}
    for page, text in pages.items():
        for match in SECTION.finditer(text):
            sections[match["id"]] = (page, match["item"], match["word"])
    assert sections == {
        row["id"]: (row["section"].split("/")[1].split(".html")[0], row["item"], row["outcome"])
        for row in rows.values()
    }
    for target, row in rows.items():
        chip = f'#result-{target}" title="{row["item"]}: {row["outcome"]}"'
        assert chip in pages["results"]
    whole = "\n".join(pages.values())
    for row in rows.values():
        section = whole.split(f"(result-{row['id']})=")[1].split("(result-")[0]
        shown = [line for line in section.splitlines() if line.startswith("- Claim by claim:")]
        words = {claim["name"]: claim["outcome"] for claim in row["claims"] if not claim["beside"]}
        differ = len(words) > 1 and set(words.values()) != {row["outcome"]}
        assert len(shown) == differ, row["id"]
        if differ:
            on_page = {name: word for word, name in BY_NAME.findall(f"{shown[0]}\n")}
            assert {name.replace("\\", ""): word for name, word in on_page.items()} == words


def test_its_evidence_is_the_committed_files_with_their_checksums(content):
    for row in content["claims"]:
        for run in row["evidence"]:
            data = (PROJECT.root / run["file"]).read_bytes()
            assert hashlib.sha256(data).hexdigest() == run["sha256"], run["file"]
            assert run["measured"].startswith("measured ")
            assert json.loads(data)["profile"] == run["profile"]


def test_every_command_names_a_notebook_and_parameters_that_the_runner_takes(content):
    commands = {command for row in content["claims"] for command in row["commands"]}
    assert len(commands) > 50
    for command in commands:
        planned(command)
    with pytest.raises(ValueError, match="no_such_parameter"):
        planned('make run NB=panoramia_text P="no_such_parameter=1" PROFILE=smoke')


def test_the_step_that_writes_the_outcomes_writes_it_and_the_first_page_links_it(tmp_path, judged):
    project = make_project(tmp_path, good=GOOD)
    write_status(project, "smoke")
    data = project.generated / "data"
    written = json.loads((data / CLAIMS_NAME).read_text(encoding="utf-8"))
    assert {row["outcome"] for row in written["claims"]} == {"not yet"}
    assert (data / SCHEMA_NAME).read_text(encoding="utf-8") == schema_text()
    text = landing_markdown(judged, profile="smoke", findings={})
    for name in (CLAIMS_NAME, SCHEMA_NAME):
        assert f"{{download}}`{name} </_generated/data/{name}>`" in text
