"""The landing page is made from results, findings and the guide of the comparison."""

import base64
from pathlib import Path

import nbformat
import pandas as pd

from paperlib.papers.landing import (
    CITED,
    COSTS,
    HEADLINES,
    costs_markdown,
    finding_figures,
    guide_markdown,
    landing_markdown,
)
from paperlib.papers.verdict.status import judge
from paperlib.report.printed import PAPERS

ESTIMATES = Path(__file__).parents[2] / "book" / "measured" / "estimates"
BIBLIOGRAPHY = (Path(__file__).parents[2] / "book" / "references.bib").read_text(encoding="utf-8")


def found() -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "slug": slug,
                "paper": paper,
                "title": f"title of {slug}",
                "sentence": "s",
                "caption": "c",
                "alt": 'a "b"',
            }
            for paper, slug in HEADLINES.items()
        ]
    )


def test_every_paper_has_its_finding_figure_and_chips():
    text = landing_markdown(judge([]), profile="smoke", findings=found())
    assert "Of 50 tables and figures: 50 are not yet run." in text
    assert text.count('<a class="chip not-yet"') == 50
    for paper, name in PAPERS.items():
        assert f"### {{doc}}`{name} <papers/{paper}>`" in text
        assert f"{{cite:t}}`{CITED[paper]}`" in text
        assert f"{{{CITED[paper]}," in BIBLIOGRAPHY
        assert f"**title of {HEADLINES[paper]}.** s" in text
        assert f"```{{figure}} _generated/figures/{HEADLINES[paper]}.svg" in text
    assert ':alt: "a \\"b\\""' in text


def test_without_the_page_of_findings_the_counts_stand_alone():
    text = landing_markdown(judge([]), profile="smoke", findings=None)
    assert "{figure}" not in text
    assert text.count('<a class="chip not-yet"') == 50


def test_figures_are_taken_from_the_executed_page(tmp_path):
    image = base64.b64encode(b"<svg></svg>").decode()
    shown = (
        f'````{{figure}} data:image/svg+xml;base64,{image}\n:alt: "a"\n:name: fig-finding-nulls\n\nc\n````\n'
    )
    output = nbformat.v4.new_output("display_data", data={"text/markdown": shown, "text/plain": "x"})
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("x", outputs=[output])])
    nbformat.write(notebook, tmp_path / "page.ipynb")
    assert finding_figures(tmp_path / "page.ipynb") == {"nulls": "<svg></svg>"}


def test_the_guide_links_the_page_of_each_audit():
    row = {"you_have": "coins", "use": "one run", "page": "one_run", "you_get": "a bound", "seconds": 0.1}
    text = guide_markdown(pd.DataFrame([row]))
    assert "| I have | so I use" in text
    assert "{doc}`one run </one_run>`" in text


def test_the_tables_of_costs_have_seven_columns_and_link_the_others():
    for name in COSTS:
        text = costs_markdown(name, pd.read_csv(ESTIMATES / f"{name}.csv"))
        rows = [line for line in text.splitlines() if line.startswith("|")]
        assert {row.count("|") for row in rows} == {8}
        assert len(rows) == 2 + len(pd.read_csv(ESTIMATES / f"{name}.csv"))
        assert f"</measured/estimates/{name}.csv>" in text
