"""PANORAMIA's null has its own place on the page of results, with numbers from the runs."""

from pathlib import Path

import numpy as np
import pytest

from paperlib.reproduction.papers.verdict import Evidence
from paperlib.reproduction.papers.verdict.evidence import rules
from paperlib.reproduction.papers.verdict.nulls import null_markdown, nulls_of
from paperlib.reproduction.papers.verdict.pages import results_pages
from paperlib.reproduction.papers.verdict.status import JudgedTarget, judge
from paperlib.reproduction.running.book import measured_evidence
from paperlib.reproduction.running.project import Project

PROJECT = Project(Path(__file__).parents[4])
RULE = rules()["panoramia-table-07"]


@pytest.fixture(scope="module")
def judged() -> list[JudgedTarget]:
    return judge([], measured_evidence(PROJECT))


def with_null(*values: float, seed: int = 0) -> dict:
    """A run of Table 7 whose null has these values in five games each."""
    games = {term.name: {"": [1.0, 1.1, 0.9, 1.0, 1.05]} for term in RULE.terms}
    games["null"] = {"cosine null": list(values)}
    record = Evidence(RULE.target, "game", games).to_dict()
    return {
        "notebook": RULE.notebooks[0],
        "parameters": {"seed": seed},
        "records": [record | {"level": "substitute", "facts": "toy_models"}],
        "provenance": {},
    }


def test_a_null_is_above_below_or_neither_by_its_whole_interval():
    sections = {
        values: null_markdown(judge([with_null(*values)]))
        for values in (
            (0.50, 0.51, 0.52, 0.50, 0.51),
            (0.01, -0.01, 0.0, 0.02, -0.02),
            (0.3, -0.2, 0.1, 0.4, -0.1),
        )
    }
    counts = [text.split("nulls, ")[1].split(". ")[0] for text in sections.values()]
    assert [count.split(" lie ")[0] for count in counts] == ["1", "0", "0"]
    assert [count.split("interval, ")[1].split(" below")[0] for count in counts] == ["0", "1", "0"]
    assert [count.split("and ")[1].split(" do")[0] for count in counts] == ["0", "0", "1"]
    for values, text in sections.items():
        assert f"The largest is {np.mean(values):.2f} [" in text
        assert "toy\\_models" in text
        assert "{ref}`Table 7 <result-panoramia-table-07>`" in text


def test_without_a_measured_null_there_is_no_section():
    assert null_markdown(judge([])) == ""
    assert null_markdown(judge([with_null(0.5)])) == ""


def test_the_nulls_of_the_page_are_those_of_the_committed_runs_the_largest_first(judged):
    nulls = nulls_of(judged)
    means = [null.contrast.mean for null in nulls]
    assert means == sorted(means, reverse=True)
    assert len({(null.facts, null.contrast.mean) for null in nulls}) == len(nulls) > 5
    largest = nulls[0]
    table3 = next(entry for entry in judged if entry.rule.target == "panoramia-table-03")
    label = largest.contrast.label.partition(", ")[2]
    values = [
        np.mean(run.evidence.samples()["null", label])
        for run in table3.runs
        if ("null", label) in run.evidence.samples()
    ]
    assert np.mean(values) == pytest.approx(largest.contrast.mean)
    assert largest.above
    page = results_pages(judged, pages=[])["results"]
    assert page.index("## PANORAMIA's null") < page.index("## PANORAMIA\n")
    assert f"{largest.contrast.mean:.2f}" in page
