"""`record`: a run's evidence on a table or figure, kept in the result file and shown with its outcome."""

import html
from dataclasses import asdict, replace

from paperlib.data.files import made_up
from paperlib.papers.settings import settings_beside
from paperlib.papers.verdict.evidence import Evidence, Scale
from paperlib.papers.verdict.outcome import Outcome, Word, decide_alone
from paperlib.report.display import (
    RECORDS_FILE,
    Bundle,
    keep_line,
    kept_lines,
    notebook_name,
    show,
)

_MOST_SHOWN = 5  # comparisons that a page lists
WORDS: dict[Word, dict[str, str]] = settings_beside(__file__)
SIGNS: dict[Word, str] = {word: words["sign"] for word, words in WORDS.items()}


def record(evidence: Evidence, *, scale: Scale) -> None:
    """Keep evidence in the result file, and show what this run alone says about the table or figure.

    Where the data folder holds made-up data, the evidence says so, and decides nothing.

    >>> from paperlib.papers.verdict.evidence import Estimate
    >>> values = {"p falls": Estimate(1.4), "null uniform": Estimate(0.3)}
    >>> record(Evidence("nid-figure-03", "set", values), scale=Scale("substitute", "made-up numbers"))
    Figure 3, by this run alone: ● agrees
    The paper's claim: p-values fall with the number of identifiers on training data and stay
    uniform on test data. Printed: p-values below 0.01 on training subsets (Section 5).
    p falls 1.4, claimed at least 1
    null uniform 0.3, claimed at least 0.01
    Scale: substitute (made-up numbers).
    """
    scale = replace(scale, level="made-up data") if made_up() else scale
    # Links lead to the box with a name, the first of its target on a page.
    named = not any(line.get("target") == evidence.target for line in kept_lines(RECORDS_FILE))
    keep_line(RECORDS_FILE, {**evidence.to_dict(), **asdict(scale)})
    rule, outcome = evidence.rule, decide_alone(evidence, scale.level)
    title, word = f"{rule.item}, by this run alone:", f"{SIGNS[outcome.word]} {outcome.word}"
    others = len(outcome.contrasts) - _MOST_SHOWN
    by_margin = sorted(outcome.contrasts, key=lambda one: one.margin)[:_MOST_SHOWN]
    nearest = by_margin if others > 0 else outcome.contrasts
    wide, _, _ = outcome.reason.partition(":")  # the comparisons stand above it
    reason = wide if wide.startswith("too wide") else outcome.reason
    lines = [
        f"The paper's claim: {rule.claim}.{f' Printed: {rule.printed}.' if rule.printed else ''}",
        *compared(replace(outcome, contrasts=tuple(nearest))),
        *([f"and {others} more comparisons with a wider margin, all in status.csv"] if others > 0 else []),
        *([f"Why undecided: {reason}."] if outcome.word == "undecided" else []),
        *([evidence.note] if evidence.note else []),
        f"Scale: {scale.level} ({scale.facts}).",
    ]
    listed = "\n".join(f"- {escaped(line)}" for line in lines)
    name = f":name: {anchor(evidence.target, notebook_name())}\n" if named else ""
    show(
        Bundle(
            html=f"<p><strong>{html.escape(title)} {html.escape(word)}</strong></p>"
            f"<ul>{''.join(f'<li>{html.escape(line)}</li>' for line in lines)}</ul>",
            markdown=f"````{{admonition}} {title} {chip(outcome.word)}\n"
            f":class: verdict {class_of(outcome.word)}\n"
            f"{name}\n"
            f"{listed}\n"
            f"- {{ref}}`All evidence on it <{anchor(evidence.target)}>`.\n````\n",
            text="\n".join([f"{title} {word}", *lines]),
        )
    )


def class_of(word: Word) -> str:
    return word.replace(" ", "-")


def chip(word: Word) -> str:
    """An outcome as a coloured chip of a page, in MyST."""
    return f"[{SIGNS[word]} {word}]{{.chip .{class_of(word)}}}"


def anchor(target: str, notebook: str = "") -> str:
    """The label of a target on the page of results, or of its verdict on the page of a notebook."""
    return f"verdict-{target}-{notebook.replace('_', '-')}" if notebook else f"result-{target}"


def compared(outcome: Outcome) -> list[str]:
    """Every claimed comparison with its interval and the claimed range, one line each."""
    return [f"{one}, claimed {one.term.limits}" for one in outcome.contrasts]


def escaped(text: str) -> str:
    """Text in which Markdown reads no star, tilde, brace or dollar as markup."""
    return "".join("\\" + letter if letter in "*_~{}$[]<>`" else letter for letter in text)
