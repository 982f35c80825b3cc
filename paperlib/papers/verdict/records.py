"""`record`: a run's evidence on a table or figure, kept in the result file and shown with its outcome."""

import html
from dataclasses import asdict, replace

from paperlib.data.files import made_up
from paperlib.papers.verdict.evidence import Evidence, Scale
from paperlib.papers.verdict.outcome import Outcome, decide_alone
from paperlib.report.display import RECORDS_FILE, Bundle, keep_line, show
from paperlib.report.printed import PAPERS

_MOST_SHOWN = 8
"""Comparisons that a page lists."""
_CLASSES = {"agrees": "tip", "disagrees": "warning"}


def record(evidence: Evidence, *, scale: Scale) -> None:
    """Keep evidence in the result file, and show what this run alone says about the table or figure.

    Where the data folder holds made-up data, the evidence says so, and decides nothing.

    Args:
        evidence: A sample for every term of the target's rule.
        scale: How near this run is to the paper's.

    >>> from paperlib.papers.verdict.evidence import Estimate
    >>> values = {"p falls": Estimate(1.4), "null uniform": Estimate(0.3)}
    >>> record(Evidence("nid-figure-03", "set", values), scale=Scale("substitute", "made-up numbers"))
    Natural Identifiers, Figure 3, by this run alone: agrees (substitute: made-up numbers).
    p falls 1.4, claimed at least 1
    null uniform 0.3, claimed at least 0.01
    The paper: p-values below 0.01 on training subsets (Section 5).
    """
    scale = replace(scale, level="made-up data") if made_up() else scale
    keep_line(RECORDS_FILE, {**evidence.to_dict(), **asdict(scale)})
    show(_bundle(evidence, scale))


def _bundle(evidence: Evidence, scale: Scale) -> Bundle:
    rule, outcome = evidence.rule, decide_alone(evidence, scale.level)
    title = f"{PAPERS[rule.paper]}, {rule.item}, by this run alone: {outcome} ({scale.level}: {scale.facts})."
    lines = [*_shown(outcome), f"The paper: {rule.printed}.", *filter(None, [evidence.note])]
    listed = "\n".join(f"- {line}" for line in lines)
    kind = _CLASSES.get(outcome.word, "note")
    return Bundle(
        html=f"<p><strong>{html.escape(title)}</strong></p>"
        f"<ul>{''.join(f'<li>{html.escape(line)}</li>' for line in lines)}</ul>",
        markdown=f"````{{admonition}} {title}\n:class: {kind}\n\n{listed}\n````\n",
        text="\n".join([title, *lines]),
    )


def compared(outcome: Outcome) -> list[str]:
    """Every claimed comparison with its interval and the claimed range, one line each."""
    return [f"{one}, claimed {one.term.limits}" for one in outcome.contrasts]


def _shown(outcome: Outcome) -> list[str]:
    """The comparisons nearest to deciding against the claim, and how many others there are."""
    lines = compared(replace(outcome, contrasts=tuple(sorted(outcome.contrasts, key=lambda one: one.margin))))
    if len(lines) <= _MOST_SHOWN:
        return compared(outcome)
    others = len(lines) - _MOST_SHOWN
    return [*lines[:_MOST_SHOWN], f"and {others} more comparisons with a wider margin, all in status.csv"]
