"""Each row of the results has a small figure: our intervals, the claimed range, printed numbers."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from paperlib.reproduction.exhibits import paper_table
from paperlib.reproduction.papers.verdict import Estimate, Evidence
from paperlib.reproduction.papers.verdict.evidence import rules
from paperlib.reproduction.papers.verdict.pages import best_of, figure_path, results_pages
from paperlib.reproduction.papers.verdict.records import SIGNS
from paperlib.reproduction.papers.verdict.status import JudgedTarget, judge
from paperlib.reproduction.papers.verdict.thumbnails import thumbnail_alt, thumbnail_svg
from paperlib.reproduction.running.book import measured_evidence
from paperlib.reproduction.running.project import Project

PROJECT = Project(Path(__file__).parents[4])
SVG = "{http://www.w3.org/2000/svg}"
RULE = rules()["nid-table-06"]


@pytest.fixture(scope="module")
def judged() -> list[JudgedTarget]:
    return best_of(judge([], measured_evidence(PROJECT)))


def rates(trained: float, held_out: float) -> JudgedTarget:
    """Table 6 with these rates, in per cent, each with an error of 0.1."""
    values = {term.name: {"": Estimate(1000.0)} for term in RULE.terms}
    values["trained near 1 %"] = {"": Estimate(trained, 0.1)}
    values["held out near 1 %"] = {"": Estimate(held_out, 0.1)}
    record = Evidence(RULE.target, RULE.unit, values).to_dict()
    run = {
        "notebook": RULE.notebooks[0],
        "parameters": {"seed": 0},
        "records": [record | {"level": "substitute", "facts": "toy"}],
        "provenance": {},
    }
    return next(entry for entry in best_of(judge([run])) if entry.rule == RULE)


def test_dots_lie_in_the_band_exactly_where_the_values_lie_in_the_range():
    drawing = ElementTree.fromstring(thumbnail_svg(rates(trained=7.0, held_out=1.0)))
    dots = [float(dot.attrib["cx"]) for dot in drawing.iter(f"{SVG}circle")]
    bands = [
        (float(band.attrib["x"]), float(band.attrib["x"]) + float(band.attrib["width"]))
        for band in drawing.iter(f"{SVG}rect")
    ]
    inside = [low <= dot <= high for dot, (low, high) in zip(dots, bands, strict=True)]
    assert inside == [False, True]
    marks = [path for path in drawing.iter(f"{SVG}path") if path.get("class") == "printed"]
    assert len(marks) == 2  # one printed rate of each side
    moved = ElementTree.fromstring(thumbnail_svg(rates(trained=1.0, held_out=1.0)))
    dots = [float(dot.attrib["cx"]) for dot in moved.iter(f"{SVG}circle")]
    ends = [
        float(band.attrib["x"]) + float(band.attrib["width"]) for band in moved.iter(f"{SVG}rect")
    ]
    assert all(dot <= end for dot, end in zip(dots, ends, strict=True))


def test_the_words_beside_the_figure_hold_its_numbers():
    alt = thumbnail_alt(rates(trained=7.0, held_out=1.0))
    assert alt.startswith(f"Table 6, {rates(7.0, 1.0).outcome.word}: trained near 1 % 7 [")
    printed = paper_table("marks", as_printed=True).query("target == @RULE.target")
    assert len(printed) == 2
    for value in printed["value"]:
        assert f"printed {float(value):.3g}" in alt


def test_every_row_with_a_comparison_has_its_figure_on_its_page(judged):
    pages = "\n".join(results_pages(judged, pages=[]).values())
    without: list[str] = []
    for entry in judged:
        section = pages.split(f"(result-{entry.rule.target})=")[1].split("(result-")[0]
        drawing = thumbnail_svg(entry)
        if not drawing:
            without.append(entry.rule.target)
            assert "{image}" not in section
            continue
        ElementTree.fromstring(drawing)
        path = figure_path(entry.rule.target)
        found = re.search(
            rf"```{{image}} /_generated/{path}\n:alt: (.+)\n:class: dark-light", section
        )
        assert found, entry.rule.target
        assert json.loads(found[1]) == thumbnail_alt(entry)
    measured = {entry.rule.target for entry in judged if entry.outcome.contrasts}
    assert not measured & set(without)
    assert len(measured) > 40


def test_the_sign_of_no_outcome_is_the_mark_of_a_printed_number(judged):
    assert "△" not in SIGNS.values()
    assert any("△ printed" in thumbnail_svg(entry) for entry in judged)
