"""`record`: a run's evidence on a table or figure, kept in the result file and shown with its
outcome.
"""

import html
from dataclasses import asdict, replace

from paperlib.data.files import made_up
from paperlib.papers.settings import settings_beside
from paperlib.papers.verdict.evidence import Evidence, Scale
from paperlib.papers.verdict.outcome import Outcome, Word, decide_alone
from paperlib.report.display import RECORDS_FILE, Bundle, keep_line, kept_lines, notebook_name, show

_ALL, _NEAREST = 5, 3  # up to so many comparisons a box lists all, of more the nearest
WORDS: dict[Word, dict[str, str]] = settings_beside(__file__)
SIGNS: dict[Word, str] = {word: words["sign"] for word, words in WORDS.items()}


def record(evidence: Evidence, *, scale: Scale) -> None:
    """Keep evidence in the result file, and show what this run alone says about the table or
    figure.

    Where the data folder holds made-up data, the evidence says so, and decides nothing.

    >>> from paperlib.papers.verdict.evidence import Estimate
    >>> values = {"p falls": Estimate(1.4), "null uniform": Estimate(0.3)}
    >>> scale = Scale("substitute", "made-up numbers")
    >>> record(Evidence("nid-figure-03", "set", values), scale=scale)
    Figure 3, by this run alone: ● agrees
    The paper: p-values fall with the number of identifiers on training data and stay
    uniform on test data. Printed: p-values below 0.01 on training subsets (Section 5).
    p falls 1.4, claimed at least 1
    null uniform 0.3, claimed at least 0.01
    Scale: substitute (made-up numbers).
    """
    scale = replace(scale, level="made-up data") if made_up() else scale
    kept, facts = kept_lines(RECORDS_FILE), asdict(scale)
    named = not any(
        line.get("target") == evidence.target for line in kept
    )  # links lead to the first box
    new_scale = not any(facts.items() <= line.items() for line in kept)
    keep_line(RECORDS_FILE, {**evidence.to_dict(), **facts})
    rule, outcome = evidence.rule, decide_alone(evidence, scale.level)
    title, word = f"{rule.item}, by this run alone:", f"{SIGNS[outcome.word]} {outcome.word}"
    others = len(outcome.contrasts) - _NEAREST if len(outcome.contrasts) > _ALL else 0
    by_margin = tuple(sorted(outcome.contrasts, key=lambda one: one.margin)[:_NEAREST])
    nearest = replace(outcome, contrasts=by_margin) if others else outcome
    # The comparisons stand above a reason that lists them.
    reason, _, _ = outcome.reason.partition(":" if outcome.reason.startswith("too wide") else "\n")
    parts = [
        (named, f"The paper: {rule.claim}.{f' Printed: {rule.printed}.' if rule.printed else ''}"),
        *((True, one) for one in compared(nearest)),
        (others, f"and {others} more comparisons with a wider margin, all in status.csv"),
        (outcome.word == "undecided", f"Why undecided: {reason}."),
        (evidence.note, evidence.note),
        (new_scale, f"Scale: {scale.level} ({scale.facts})."),
    ]
    lines = [line for shown, line in parts if shown]
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
            f"- {{ref}}`All evidence <{anchor(evidence.target)}>`.\n````\n",
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
