"""The audit report: one HTML file that needs nothing else to be read."""

import json
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from paperlib.core import (
    RESULT_SCHEMA_VERSION,
    MembershipScores,
    ScoreAudit,
    ScoreMeasures,
    json_ready,
    reversed_warning,
    score_measures,
)
from paperlib.report.audit import cards, tables
from paperlib.report.audit.about import About
from paperlib.report.audit.figures import (
    bound_figure,
    curve_of,
    describe_bound,
    describe_histogram,
    describe_roc,
    roc_figure,
    score_histogram,
    svg_image,
)
from paperlib.report.audit.parts import escape, section
from paperlib.report.audit.verdict import Verdict, is_reversed, no_verdict, plain_verdict

_STYLE: dict[Any, Any] = {"font.size": 10, "axes.spines.top": False, "axes.spines.right": False}


def audit_report(
    scores: MembershipScores,
    audits: Sequence[ScoreAudit],
    *,
    title: str,
    facts: Mapping[str, str],
    verdict: Verdict | None = None,
    measures: ScoreMeasures | None = None,
    about: About | None = None,
    ids: Sequence[Any] | np.ndarray | None = None,
    groups: Sequence[Any] | np.ndarray | None = None,
    data: Mapping[str, Any] | None = None,
    warnings: Sequence[str] = (),
    more: Sequence[str] = (),
) -> str:
    """The report of an audit as one HTML page.

    The page makes no request and runs no script: styles, figures and the result as JSON are inside it. It
    begins with a verdict in plain words. It is readable on a phone, follows the reader's dark mode, and
    prints.

    Args:
        scores: The audited scores.
        audits: One or more audits, the main one first.
        title: Heading of the page.
        facts: Provenance: heading to text, such as the file's checksum and the command.
        verdict: What the main number means; by default that of `plain_verdict`.
        measures: AUC and true-positive rates with intervals; by default `score_measures` of the scores.
        about: The model in its owner's words, as `read_about` gives it.
        ids: One name per example, members first, for the most exposed records.
        groups: One group per example, members first, for a table of groups.
        data: Content of the machine-readable block, such as what ``paperlib audit --json`` prints; by default
            what the other arguments say, in the same form.
        warnings: Warnings of the whole audit, beside those of the main result.
        more: Further sections of HTML, shown before the figures.

    Raises:
        ValueError: There is no audit, or another number of ids or groups than of scores.
    """
    if not audits:
        raise ValueError("audits: expected at least one")
    main = audits[0]
    measures = measures or score_measures(scores)
    warnings = _warnings(scores, measures, main, warnings)
    verdict = verdict or _verdict(main, warnings)
    if data is None:
        data = _content(audits, verdict, measures, about, warnings, facts)
    with mpl.rc_context(_STYLE):
        figures = _figures(scores, audits, measures)
    body = [
        _opening(scores, title, about),
        cards.verdict_card(verdict),
        cards.steps(verdict),
        cards.number_card(main, warnings),
        tables.measures_section(measures, main.result),
        tables.exposed_section(scores, ids, doubted=any(map(is_reversed, warnings))),
        tables.groups_section(scores, groups, measures.confidence),
        *more,
        section("Figures", *figures),
        cards.all_audits(audits),
        tables.about_section(about),
        tables.facts_section(facts),
        cards.main_assumptions(main.result),
        cards.glossary(),
        _block(data),
    ]
    style = resources.files("paperlib.report.audit").joinpath("page.css").read_text(encoding="utf-8")
    return (
        "<!DOCTYPE html>\n<html lang='en'>\n<head>\n<meta charset='utf-8'>\n"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>\n"
        "<link rel='icon' href='data:,'>\n"
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(filter(None, body))
        + "\n</main>\n</body>\n</html>\n"
    )


def _warnings(
    scores: MembershipScores, measures: ScoreMeasures, main: ScoreAudit, given: Sequence[str]
) -> tuple[str, ...]:
    """All warnings about the main number, each once, that of a reversed direction first."""
    own = () if main.result is None else main.result.warnings
    found = list(dict.fromkeys((*given, *own)))
    if measures.auc < 0.5 and not any(map(is_reversed, found)):
        found += filter(None, [reversed_warning(scores)])
    return tuple(sorted(found, key=is_reversed, reverse=True))


def _verdict(main: ScoreAudit, warnings: Sequence[str]) -> Verdict:
    if main.result is None:
        return no_verdict(main.refused)
    return plain_verdict(main.result, warnings=warnings, kind=main.kind)


def _opening(scores: MembershipScores, title: str, about: About | None) -> str:
    named = [] if about is None else [about.model, about.version, about.owner]
    line = ", ".join(filter(None, named))
    model = f"<p class='soft'>{escape(line)}</p>" if line else ""
    direction = "higher" if scores.higher_means_member else "lower"
    counts = f"{scores.member.size:,} members, {scores.nonmember.size:,} non-members"
    return (
        f"<header><h1>{escape(title)}</h1>{model}"
        f"<p class='soft'>{counts}; {direction} values point to members.</p></header>"
    )


def _content(
    audits: Sequence[ScoreAudit],
    verdict: Verdict,
    measures: ScoreMeasures,
    about: About | None,
    warnings: Sequence[str],
    facts: Mapping[str, str],
) -> dict[str, Any]:
    """The machine-readable block where none is given, in the form of ``paperlib audit --json``."""
    main = audits[0]
    names = ("epsilon", "headline", "claim", "condition", "assumptions", "delta", "confidence", "design")
    return {
        "schema_version": RESULT_SCHEMA_VERSION,
        **{name: getattr(main.result, name, None) for name in names},
        "kind": main.kind,
        "warnings": warnings,
        "measures": measures.to_dict(),
        "audits": [one.to_dict() for one in audits],
        "verdict": verdict.to_dict(),
        "about": (about or About()).to_dict(),
        "provenance": dict(facts),
    }


def _block(data: Mapping[str, Any]) -> str:
    """The result for programs; "<" is written as an escape, so that no text can end the block."""
    text = json.dumps(json_ready(data), ensure_ascii=False, allow_nan=False, sort_keys=True)
    escaped = text.replace("<", "\\u003c")
    return f"<script type='application/json' id='audit-result'>{escaped}</script>"


def _figures(scores: MembershipScores, audits: Sequence[ScoreAudit], measures: ScoreMeasures) -> list[str]:
    roc, points = roc_figure(scores, confidence=measures.confidence, auc=measures.auc)
    histogram, _ = score_histogram(scores)
    shown = [
        _figure(
            roc,
            "ROC curve on log axes: the left end shows what can be said about few records with few errors. "
            f"The band is the {100 * measures.confidence:g} % Clopper-Pearson interval of the true-positive "
            "rate at each single threshold.",
            describe_roc(points, measures.auc),
        ),
        _figure(histogram, "Scores of members and non-members.", describe_histogram(scores)),
    ]
    for audit in audits:
        curve = curve_of(audit.result)
        if curve is not None and audit.kind != "baseline":
            shown.append(_two_bounds(audit, curve) if "test" in curve else _bound(audit, curve))
    return shown


def _two_bounds(audit: ScoreAudit, curve: pd.DataFrame) -> str:
    """Of a result with a baseline and an attack, as PANORAMIA's."""
    from matplotlib import pyplot as plt

    from paperlib.report.curve_figures import bounds_figure
    from paperlib.report.figures import svg_uri

    ceiling = getattr(audit.result, "ceiling", float("nan"))
    fig, words = bounds_figure(curve.assign(target="your model", seed=0, ceiling=ceiling))
    caption = f"{audit.title}: lower bounds on c (baseline) and on c + epsilon (attack) over recall."
    plt.close(fig)
    return _figure(fig, caption, words, uri=svg_uri(fig))


def _bound(audit: ScoreAudit, curve: pd.DataFrame) -> str:
    curve = curve[curve["guesses"] > 0]
    if curve.empty:  # no guess was made
        return ""
    epsilon = audit.result.epsilon if audit.result is not None else None
    epsilon = float(curve["bound"].max()) if epsilon is None else epsilon
    return _figure(
        bound_figure(curve, epsilon),
        f"{audit.title}: the bound over the number of guesses, corrected for trying all of them.",
        describe_bound(curve, epsilon),
    )


def _figure(fig: Figure, caption: str, alt: str, uri: str = "") -> str:
    return (
        f"<figure><img src='{uri or svg_image(fig)}' alt='{escape(alt)}'>"
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )
