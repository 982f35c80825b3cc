"""The parts of a report that speak of bounds: verdict, next steps, the number, every audit, the glossary."""

from collections.abc import Sequence

from paperlib.core import AuditResult, ScoreAudit
from paperlib.report.audit.parts import escape, items, paragraphs, section
from paperlib.report.audit.verdict import Verdict, is_reversed

GLOSSARY = {
    "member, non-member": "A record that the model was trained on, and one that it was not trained on.",
    "epsilon (ε)": "How much one record can change what the training gives out. 0 is no change; each further "
    "0.7 doubles the odds with which somebody can be right about a record.",
    "delta (δ)": "A small probability with which a guarantee of differential privacy may fail.",
    "confidence": "How often, at least, an audit like this one gives a lower bound that does not exceed the "
    "true value.",
    "AUC": "The chance that a member drawn at random scores more like a member than a non-member drawn at "
    "random: 0.5 is guessing, 1 is perfect.",
    "true-positive rate (TPR), false-positive rate (FPR)": "The share of the members, and of the "
    "non-members, that an attack calls members.",
}
"""Terms a reviewer meets in a report, in plain words."""


def verdict_card(verdict: Verdict) -> str:
    """What the number means, with the condition it stands under."""
    first, *others = verdict.sentences
    stop = first.startswith("Not an answer")
    return section(
        "Verdict",
        f"<p class='lead'>{escape(first)}</p>",
        paragraphs(others),
        _condition(verdict.condition),
        name="verdict stop" if stop else "verdict",
    )


def steps(verdict: Verdict) -> str:
    """What to do next."""
    return section("What to do next", items(verdict.next_steps, "ol"), name="steps")


def number_card(audit: ScoreAudit, warnings: Sequence[str]) -> str:
    """The main number, its condition right beside it, warnings, claim and notes."""
    result = audit.result
    if result is None:
        return section(
            "The number", "<p class='number'>No number</p>", paragraphs([audit.refused]), name="main"
        )
    doubted = any(map(is_reversed, warnings))
    return section(
        "The number",
        f"<p class='{'figure' if doubted else 'number'}'>{escape(result.headline)}</p>",
        _condition(result.condition),
        paragraphs(warnings, "warning"),
        f"<p>{escape(result.claim)}</p>",
        paragraphs(result.notes, "soft"),
        name="main",
    )


def all_audits(audits: Sequence[ScoreAudit]) -> str:
    """Every audit as a card; baselines stand apart, in small type."""
    main, *others = audits
    baselines = [one for one in others if one.kind == "baseline"]
    cards = [_main_again(main), *(_card(one) for one in others if one not in baselines)]
    apart = ""
    if baselines:
        apart = (
            "<div class='baseline'><h3>For comparison only</h3><p>What follows is no result about this "
            "model, since its assumptions do not hold for the scores of one model.</p>"
            f"{''.join(_card(one) for one in baselines)}</div>"
        )
    return section(
        "All audits",
        "<p>Each number holds at its own confidence. The main one was chosen before the scores were seen; no "
        "claim covers the largest of several numbers, chosen afterwards.</p>",
        *cards,
        apart,
        name="audits",
    )


def main_assumptions(result: AuditResult | None) -> str:
    """Conditions under which the claim of the main number holds."""
    return "" if result is None else section("What the main number assumes", items(result.assumptions))


def glossary() -> str:
    """A few terms in plain words."""
    entries = "".join(f"<dt>{escape(word)}</dt><dd>{escape(text)}</dd>" for word, text in GLOSSARY.items())
    return section("Words used here", f"<dl>{entries}</dl>")


def _condition(text: str) -> str:
    return f"<p class='condition'>Condition: {escape(text)}.</p>" if text else ""


def _head(audit: ScoreAudit) -> str:
    return (
        f"<h3>{escape(audit.title)} <span class='kind'>{escape(audit.kind)}</span></h3>"
        f"<p class='soft'>{escape(audit.purpose)}</p>"
    )


def _main_again(audit: ScoreAudit) -> str:
    if audit.result is None:
        return _card(audit)
    return (
        f"<div class='audit'>{_head(audit)}<p class='figure'>{escape(audit.result.headline)}</p>"
        f"{_condition(audit.result.condition)}"
        "<p class='soft'>Its claim stands under “The number”, its assumptions follow below.</p></div>"
    )


def _card(audit: ScoreAudit) -> str:
    result = audit.result
    if result is None:
        refused = escape(audit.refused)
        return f"<div class='audit'>{_head(audit)}<p class='warning'>Not possible: {refused}</p></div>"
    return (
        f"<div class='audit'>{_head(audit)}<p class='figure'>{escape(result.headline)}</p>"
        f"{_condition(result.condition)}<p>{escape(result.claim)}</p>"
        f"{paragraphs(result.notes, 'soft')}{paragraphs(result.warnings, 'warning')}"
        f"<p class='holds'>It holds if:</p>{items(result.assumptions)}</div>"
    )
