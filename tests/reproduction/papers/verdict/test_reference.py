"""Margins stand once: those of the rules are those of the list of targets, and the list is that of
the reference where it is available.
"""

import csv
import math
import os
import re
from pathlib import Path

import pytest

from paperlib.reproduction.exhibits import paper_table
from paperlib.reproduction.papers.verdict.evidence import rules

REFERENCE = Path(os.environ.get("PAPERLIB_REFERENCE", "/nonexistent"))
"""Folder with the list of targets that the project's own follows (``targets.csv``)."""
TARGETS = {row["id"]: row for row in paper_table("targets", as_printed=True).to_dict("records")}
AS_IN_THE_NOTEBOOK = "as in the notebook today"
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:[.,]\d+)*")
COMPARED = re.compile(r"(?:>=|<=) (-?\d+(?:\.\d+)?)")
OTHERWISE = {
    "panoramia-figure-12": "twice the share is part of the compared quantity",
    "panoramia-table-01": "99 % stands in undecided_if",
    "panoramia-table-11": "within rounding: half of the last printed decimal",
    "nid-figure-04": AS_IN_THE_NOTEBOOK,
}
"""Rules whose margins the text does not hold as numbers."""
WITHIN_QUANTITIES = ("(largest finite, >= 15)", "over recall <= 0.3")
"""Parts of what is compared, which are no margins."""


def text_of(target: str) -> str:
    """The rule's text; that of another table or figure where it points there."""
    row = TARGETS[target]
    text = f"{row['agrees_if']}; {row['undecided_if']}"
    pointed = re.search(r"as (Table|Figure) (\d+)", text)
    if pointed:
        kind, number = pointed.groups()
        paper = re.split("-table-|-figure-", target)[0]
        text += f"; {text_of(f'{paper}-{kind.lower()}-{int(number):02d}')}"
    return text


def test_every_margin_of_a_rule_stands_in_the_list_of_targets():
    for target, rule in rules().items():
        text = text_of(target)
        if AS_IN_THE_NOTEBOOK in text or target in OTHERWISE:
            continue
        numbers = {abs(float(number.replace(",", ""))) for number in NUMBER.findall(text)}
        numbers |= {number / 100 for number in numbers} | {0.0}
        for term in rule.terms:
            for end in (term.at_least, term.at_most, term.on_substitute):
                if term.claimed and math.isfinite(end):
                    assert abs(end) in numbers, (target, term.name, end)


def test_every_compared_number_of_the_list_is_a_margin_of_its_rule():
    for target, rule in rules().items():
        ends = {0.0}
        for term in rule.terms:
            ends |= {term.at_least, term.at_most, term.at_least / 100}
        text = TARGETS[target]["agrees_if"]
        for condition in WITHIN_QUANTITIES:
            text = text.replace(condition, "")
        for number in map(float, COMPARED.findall(text)):
            if target in OTHERWISE:
                continue
            assert {number, -number} & ends or rule.unit == "identifiers", (target, number)


@pytest.fixture(scope="module")
def reference():
    if not (REFERENCE / "targets.csv").is_file():
        pytest.skip("PAPERLIB_REFERENCE names no folder with the reference's targets.csv")
    with (REFERENCE / "targets.csv").open(encoding="utf-8") as file:
        return {row["id"]: row for row in csv.DictReader(file)}


def ours(text: str) -> str:
    """The reference's text in the project's words."""
    return text.replace("picture", "image").strip("-")


def test_the_list_is_that_of_the_reference_claim_by_claim(reference):
    assert list(TARGETS) == list(reference)
    for target, row in TARGETS.items():
        given = reference[target]
        for column in ("paper", "item"):
            assert row[column] == given[column], target
        for column in ("agrees_if", "undecided_if"):
            assert row[column] == ours(given[column]), (target, column)
        contradicted = given["contradicted_by"]
        assert row["contradicted_by"] == contradicted.replace("any scale", ""), target
        assert row["revised"].startswith(given["revised"]), target


def test_repetitions_and_notebooks_are_those_of_the_reference(reference):
    others = {}
    for target, rule in rules().items():
        given = reference[target]
        unit, _, number = given["repetitions"].partition(" >= ")
        unit = {"split": "model", "generator seeds": "model"}.get(unit, unit)
        if number and unit in ("model", "game", "draw") and target != "panoramia-figure-07":
            least = int(re.match(r"\d+", number).group())
            assert (rule.unit, rule.repetitions) == (unit, least), target
        if "; ".join(rule.notebooks) != given["notebook"]:
            others[target] = set(given["notebook"].split("; ")) - set(rule.notebooks)
    # The paper's own numbers on text contradict the claim: test_printed_numbers.py.
    assert others == {"panoramia-figure-06": {"panoramia_text"}}
