"""The landing page: what was found, paper by paper, and which audit fits."""

import base64
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from paperlib.report.tables import format_cell, pipe_table
from paperlib.reproduction.exhibits.printed import PAPERS
from paperlib.reproduction.papers.settings import settings_beside
from paperlib.reproduction.papers.verdict.claims_file import claims_links
from paperlib.reproduction.papers.verdict.pages import (
    best_of,
    chips_html,
    counts_in_words,
    legend_html,
    rules_in_words,
    scales_table,
)
from paperlib.reproduction.papers.verdict.records import WORDS
from paperlib.reproduction.papers.verdict.status import JudgedTarget

FINDINGS_PAGE, FINDINGS = "what_the_papers_do_not_say", "findings"
"""The notebook of findings, and its table of them."""
_SETTINGS = settings_beside(__file__)
CITED = _SETTINGS["cited"]
HEADLINES = _SETTINGS["headlines"]
ANSWERS = _SETTINGS["answers"]
COSTS = _SETTINGS["costs"]
GUIDE_PAGE, GUIDE = "compare_audits", "compare-decision-guide"
"""The notebook that puts one model under every audit, and its table of advice."""
_FIGURE = re.compile(
    r"data:image/svg\+xml;base64,(?P<svg>\S+)\n:alt: (?P<alt>.+)\n"
    r":name: fig-finding-(?P<slug>\S+)\n"
    r"(?::.+\n)*\n(?P<caption>.+)\n"
)
"""A finding's figure as `show_figure` writes it."""
Finding = dict[Any, str]
"""slug, finding and sentence; svg, alt (as JSON) and caption of its figure."""


def landing_markdown(
    judged: Sequence[JudgedTarget], *, profile: str, findings: Mapping[str, Finding]
) -> str:
    """The landing page as MyST: counts, and for each paper a finding, its figure and a chip for
    every table and figure.

    Args:
        judged: Entries of all targets, of each the best evidence first.
        profile: Of the book's runs.
        findings: By their slug; a paper whose finding is missing has none.
    """
    best = best_of(judged)
    blocks = [
        answers_table(best),
        f"{counts_in_words(best)} Each was judged [by a rule](results). {rules_in_words()} The "
        f"runs of this book have the profile `{profile}`.",
        legend_html(best),
        f"By the scale of the evidence, the nearest to the paper first:\n\n{scales_table(best)}",
        claims_links(),
    ]
    for paper, name in PAPERS.items():
        of_paper = [entry for entry in best if entry.rule.paper == paper]
        blocks.append(f"### {{doc}}`{name} <papers/{paper}>`")
        finding = findings.get(HEADLINES[paper])
        if finding:
            blocks.append(f"**{finding['finding']}.** {finding['sentence']}")
            blocks.append(_finding_figure(finding))
        blocks.append(chips_html(of_paper))
        blocks.append(f"{{cite:t}}`{CITED[paper]}`. {counts_in_words(of_paper)}")
    return "\n\n".join(blocks) + "\n"


def answers_table(judged: Sequence[JudgedTarget]) -> str:
    """A row for each paper: what its number is, whether it may be printed as a guarantee and what
    may be said in its place, and how many tables and figures agree.
    """
    rows: list[dict[str, str]] = []
    for paper, name in PAPERS.items():
        of_paper = [entry for entry in judged if entry.rule.paper == paper]
        row = {
            "paper": f"{{doc}}`{name} <papers/{paper}>`",
            "its number": ANSWERS[paper]["number"],
            "a guarantee?": ANSWERS[paper]["printed"],
            "outcome": _in_six_words(of_paper),
        }
        rows.append(row)
    return pipe_table(pd.DataFrame(rows))


def _in_six_words(judged: Sequence[JudgedTarget]) -> str:
    """How many tables and figures agree and disagree, of how many; substitutes can do neither."""
    words = [entry.outcome.word for entry in best_of(judged)]
    counted: list[str] = []
    for word in ("agrees", "disagrees"):
        count = words.count(word)
        counted.append(f"{count} {WORDS[word]['one' if count == 1 else 'several']}")
    return f"{', '.join(counted)} of {len(words)}"


def _finding_figure(finding: Finding) -> str:
    """The figure of a finding as MyST."""
    return (
        f"```{{figure}} _generated/figures/{finding['slug']}.svg\n:alt: {finding['alt']}\n"
        f":class: dark-light\n:figclass: themed headline\n\n{finding['caption']}\n```"
    )


def read_findings(table: pd.DataFrame, page: Path) -> dict[str, Finding]:
    """Findings by their slug, from their table, a row each with its slug, and the executed notebook
    ``page`` that shows their figures; a KeyError names a finding without a figure.
    """
    cells = json.loads(page.read_text(encoding="utf-8"))["cells"]
    outputs = [output.get("data", {}) for cell in cells for output in cell.get("outputs", [])]
    matches = [_FIGURE.search("".join(data.get("text/markdown", ""))) for data in outputs]
    figures = {match["slug"]: match.groupdict() for match in matches if match}
    for figure in figures.values():
        figure["svg"] = base64.b64decode(figure["svg"]).decode()
    return {row["slug"]: row | figures[row["slug"]] for row in table.to_dict("records")}


def guide_markdown(guide: pd.DataFrame) -> str:
    """The guide to an audit as a MyST table, a row for each row of ``guide``.

    ``guide`` is the table `GUIDE` of the notebook `GUIDE_PAGE`. Its columns are text: "you_have",
    "use" (name of the audit), "page" (path of its page in the book), "you_get"; and "seconds", a
    number. Others are left out. A KeyError names one that is missing.
    """
    columns = {
        "I have": guide["you_have"],
        "so I use": "{doc}`" + guide["use"] + " </" + guide["page"] + ">`",
        "and get": guide["you_get"],
        "Seconds": guide["seconds"].map(format_cell),
    }
    return f"{pipe_table(pd.DataFrame(columns))}\n"


def costs_markdown(name: str, table: pd.DataFrame) -> str:
    """A table of costs as MyST, with a link to all its columns."""
    settings = COSTS[name]
    rows = pipe_table(table[list(settings["columns"])].map(format_cell))
    file = f"{{download}}`{name}.csv </measured/estimates/{name}.csv>`"
    start = f"````{{table}} {settings['caption']}\n:name: tbl-{settings['label']}\n\n"
    return f"{start}{rows}\n````\n\nAll columns: {file}.\n"
