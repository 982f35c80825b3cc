"""The audit report: one HTML file that needs nothing else to be read."""

import html
from collections.abc import Mapping, Sequence
from importlib import resources

import matplotlib as mpl
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from paperlib.core import AuditResult, MembershipScores, ScoreAudit
from paperlib.report.audit_figures import (
    bound_figure,
    curve_of,
    describe_bound,
    describe_histogram,
    describe_roc,
    roc_figure,
    score_histogram,
)
from paperlib.report.curve_figures import bounds_figure
from paperlib.report.figures import svg_uri
from paperlib.report.tables import format_cell


def audit_report(
    scores: MembershipScores, audits: Sequence[ScoreAudit], *, title: str, facts: Mapping[str, str]
) -> str:
    """The report of an audit as one HTML page.

    The page makes no request: styles and figures are inside it. It is readable on a phone and
    follows the reader's dark mode.

    Args:
        scores: The audited scores.
        audits: One or more audits, the main one first.
        title: Heading of the page.
        facts: Provenance: heading to text, such as the file's checksum and the command.

    Raises:
        ValueError: There is no audit.
    """
    if not audits:
        raise ValueError("audits: expected at least one")
    with mpl.rc_context({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False}):
        figures = _figures(scores, audits)
    body = [
        f"<h1>{html.escape(title)}</h1>",
        f"<p class='soft'>{scores.member.size} members, {scores.nonmember.size} non-members; "
        f"{'higher' if scores.higher_means_member else 'lower'} values point to members.</p>",
        _main(audits[0]),
        "<h2>All audits</h2>",
        "<p>Each number holds at its own confidence. The main one was chosen before the scores were seen; no "
        "claim covers the largest of several numbers, chosen afterwards.</p>",
        *[_audit(audit) for audit in audits],
        "<h2>Figures</h2>",
        *figures,
        "<h2>Where these numbers come from</h2>",
        _facts(facts),
    ]
    style = resources.files("paperlib.report").joinpath("audit_page.css").read_text(encoding="utf-8")
    return (
        "<!DOCTYPE html>\n<html lang='en'>\n<head>\n<meta charset='utf-8'>\n"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>\n"
        "<link rel='icon' href='data:,'>\n"
        f"<title>{html.escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + "\n</body>\n</html>\n"
    )


def _main(audit: ScoreAudit) -> str:
    if audit.result is None:
        return f"<div class='main'><p class='number'>No bound</p><p>{html.escape(audit.refused)}</p></div>"
    return (
        f"<div class='main'><p class='number'>{html.escape(audit.result.headline)}</p>"
        f"<p>{html.escape(audit.result.claim)}</p>{_notes(audit.result)}</div>"
    )


def _audit(audit: ScoreAudit) -> str:
    head = (
        f"<h3>{html.escape(audit.title)} <span class='kind'>{html.escape(audit.kind)}</span></h3>"
        f"<p class='soft'>{html.escape(audit.purpose)}</p>"
    )
    result = audit.result
    if result is None:
        reason = html.escape(audit.refused)
        return f"<section class='audit'>{head}<p class='warning'>Not possible: {reason}</p></section>"
    warnings = "".join(f"<p class='warning'>{html.escape(text)}</p>" for text in result.warnings)
    assumptions = "".join(f"<li>{html.escape(text)}</li>" for text in result.assumptions)
    return (
        f"<section class='audit'>{head}<p class='number'>{html.escape(result.headline)}</p>"
        f"<p>{html.escape(result.claim)}</p>{_notes(result)}{warnings}"
        f"<p>It holds if:</p><ul>{assumptions}</ul></section>"
    )


def _notes(result: AuditResult) -> str:
    return "".join(f"<p class='soft'>{html.escape(text)}</p>" for text in result.notes)


def _figures(scores: MembershipScores, audits: Sequence[ScoreAudit]) -> list[str]:
    histogram, _ = score_histogram(scores)
    roc, points = roc_figure(scores)
    shown = [
        _figure(histogram, "Scores of members and non-members.", describe_histogram(scores)),
        _figure(
            roc,
            "ROC curve on log axes: the left end shows what can be said about few records with few errors.",
            describe_roc(points, scores.auc()),
        ),
    ]
    for audit in audits:
        curve = curve_of(audit.result)
        if curve is not None:
            shown.append(_two_bounds(audit, curve) if "test" in curve else _bound(audit, curve))
    return shown


def _two_bounds(audit: ScoreAudit, curve: pd.DataFrame) -> str:
    """Of a result with a baseline and an attack, as PANORAMIA's."""
    ceiling = getattr(audit.result, "ceiling", float("nan"))
    fig, words = bounds_figure(curve.assign(target="your model", seed=0, ceiling=ceiling))
    caption = f"{audit.title}: lower bounds on c (baseline) and on c + epsilon (attack) over recall."
    return _figure(fig, caption, words)


def _bound(audit: ScoreAudit, curve: pd.DataFrame) -> str:
    epsilon = audit.result.epsilon if audit.result is not None else None
    epsilon = float(curve["bound"].max()) if epsilon is None else epsilon
    return _figure(
        bound_figure(curve, epsilon),
        f"{audit.title}: the bound over the number of guesses, corrected for trying all of them.",
        describe_bound(curve, epsilon),
    )


def _figure(fig: Figure, caption: str, alt: str) -> str:
    uri = svg_uri(fig)
    plt.close(fig)
    return (
        f"<figure><img src='{uri}' alt='{html.escape(alt, quote=True)}'>"
        f"<figcaption>{html.escape(caption)}</figcaption></figure>"
    )


def _facts(facts: Mapping[str, str]) -> str:
    rows = "".join(
        f"<tr><th scope='row'>{html.escape(name)}</th><td>{html.escape(format_cell(text))}</td></tr>"
        for name, text in facts.items()
    )
    return f"<div class='scroll'><table>{rows}</table></div>"
