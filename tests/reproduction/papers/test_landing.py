"""The landing page is made from results, findings and the guide of the comparison."""

from pathlib import Path

import nbformat
import pandas as pd
import pytest

from paperlib.report import figures, panels, show_figure
from paperlib.reproduction.exhibits.printed import PAPERS
from paperlib.reproduction.papers.landing import (
    CITED,
    COSTS,
    HEADLINES,
    answers_table,
    costs_markdown,
    landing_markdown,
    read_findings,
)
from paperlib.reproduction.papers.verdict.outcome import Outcome, Word
from paperlib.reproduction.papers.verdict.status import JudgedTarget, judge

ESTIMATES = Path(__file__).parents[3] / "book" / "measured" / "estimates"
ROWS = pd.DataFrame(
    [{"slug": slug, "finding": f"title of {slug}", "sentence": "s"} for slug in HEADLINES.values()]
)
BIBLIOGRAPHY = (Path(__file__).parents[3] / "book" / "references.bib").read_text(encoding="utf-8")


@pytest.fixture
def page(tmp_path, monkeypatch):
    """An executed page with a figure for each finding of the landing page, as `show_figure` shows
    it.
    """
    shown: list[str] = ["other"]
    monkeypatch.setattr(figures, "show", lambda bundle: shown.append(bundle.markdown))
    for slug in HEADLINES.values():
        show_figure(
            panels()[0], name=f"finding-{slug}", caption="A caption.", alt='a "b"', data=ROWS
        )
    outputs = [
        nbformat.v4.new_output("display_data", data={"text/markdown": text}) for text in shown
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("x", outputs=outputs)])
    nbformat.write(notebook, tmp_path / "page.ipynb")
    return tmp_path / "page.ipynb"


def test_every_paper_has_its_finding_figure_and_chips(page):
    findings = read_findings(ROWS, page)
    text = landing_markdown(judge([]), profile="smoke", findings=findings)
    assert "Of 50 tables and figures: 50 are not yet run." in text
    assert text.count('<a class="chip not-yet"') == 50
    for paper, name in PAPERS.items():
        slug = HEADLINES[paper]
        assert findings[slug]["svg"].startswith("<svg")
        assert f"### {{doc}}`{name} <papers/{paper}>`" in text
        assert f"{{cite:t}}`{CITED[paper]}`" in text
        assert f"{{{CITED[paper]}," in BIBLIOGRAPHY
        assert f"**title of {slug}.** s" in text
        assert f"```{{figure}} _generated/figures/{slug}.svg" in text
    assert text.count(':alt: "a \\"b\\""\n') == text.count("\n\nA caption.\n```") == len(PAPERS)
    alone = landing_markdown(judge([]), profile="smoke", findings={})
    assert "{figure}" not in alone
    assert alone.count('<a class="chip not-yet"') == 50


def test_the_answers_stand_first_with_a_row_for_each_paper_and_call_no_number_a_guarantee():
    text = landing_markdown(judge([]), profile="smoke", findings={})
    first, rest = text.split("\n\n", 1)
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in first.splitlines()[2:]]
    assert len(rows) == len(PAPERS)
    for row, (paper, name) in zip(rows, PAPERS.items(), strict=True):
        assert row[0] == f"{{doc}}`{name} <papers/{paper}>`"
        assert row[2].startswith("no; ")
        number = sum(entry.rule.paper == paper for entry in judge([]))
        assert row[3] == f"0 agree, 0 disagree of {number}"
        assert len(row[3].split()) <= 6
    assert rest.startswith("Of 50 tables and figures")


def test_the_outcomes_of_the_answers_are_counted_and_substitutes_are_no_part_of_them():
    words: list[Word] = ["agrees", "carries over", "disagrees", "does not carry over", "undecided"]
    rules_of = [entry.rule for entry in judge([]) if entry.rule.paper == "output_sets"][:5]
    judged = [JudgedTarget(rule, Outcome(word)) for rule, word in zip(rules_of, words, strict=True)]
    assert "| 1 agrees, 1 disagrees of 5 |" in answers_table(judged)


def test_the_tables_of_costs_have_seven_columns_and_link_the_others():
    for name in COSTS:
        table = pd.read_csv(ESTIMATES / f"{name}.csv")
        text = costs_markdown(name, table)
        rows = [line for line in text.splitlines() if line.startswith("|")]
        assert {row.count("|") for row in rows} == {8}
        assert len(rows) == 2 + len(table)
        assert f"</measured/estimates/{name}.csv>" in text
