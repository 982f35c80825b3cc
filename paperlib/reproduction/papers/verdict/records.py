"""`record`: a run's evidence on a table or figure, kept in the result file and shown with its
outcome.
"""

import html
from collections.abc import Callable
from dataclasses import asdict, replace

from paperlib.data.files import made_up
from paperlib.report.display import RECORDS_FILE, Bundle, keep_line, kept_lines, notebook_name, show
from paperlib.reproduction.papers.settings import settings_beside
from paperlib.reproduction.papers.verdict.evidence import Evidence, Scale, TargetRule
from paperlib.reproduction.papers.verdict.outcome import FAILS, Claim, Outcome, Word, decide_alone
from paperlib.reproduction.papers.verdict.reasons import Cause

_MOST_LISTED = 5  # comparisons of which a box lists all
_NEAREST = 3  # of more comparisons it lists the nearest to the ends of their ranges
WORDS: dict[Word, dict[str, str]] = settings_beside(__file__)
"""For each outcome its sign and its verbs, from ``records.yaml``."""
SIGNS: dict[Word, str] = {word: words["sign"] for word, words in WORDS.items()}


def record(evidence: Evidence, *, scale: Scale) -> None:
    """Keep evidence in the result file, and show what this run alone says about the table or
    figure.

    Where the data folder holds made-up data, the evidence says so, and decides nothing.

    >>> from paperlib.reproduction.papers.verdict.evidence import Estimate
    >>> values = {"p falls": Estimate(1.4), "null uniform": Estimate(0.3)}
    >>> scale = Scale("substitute", "made-up numbers")
    >>> record(Evidence("nid-figure-03", "set", values), scale=scale)
    Figure 3, by this run alone: ◆ carries over
    The paper: p-values fall with the number of identifiers on training data and stay
    uniform on test data. Printed: p-values below 0.01 on training subsets (Section 5).
    p falls 1.4, claimed at least 1
    null uniform 0.3, claimed at least 0.01
    Claim by claim: p falls: carries over; null uniform: agrees.
    Replaced here: Pythia and OLMo models, identifiers of the Pile and Dolma.
    Scale: substitute (made-up numbers).
    """
    if made_up():
        scale = replace(scale, level="made-up data")
    facts = asdict(scale)
    earlier = kept_lines(RECORDS_FILE)
    # Links lead to the first box of a target, which also says what the paper claims.
    first_box = all(line.get("target") != evidence.target for line in earlier)
    new_scale = not any(facts.items() <= line.items() for line in earlier)
    keep_line(RECORDS_FILE, {**evidence.to_dict(), **facts})
    outcome = decide_alone(evidence, scale.level)
    lines: list[str] = []
    if first_box:
        printed = f" Printed: {evidence.rule.printed}." if evidence.rule.printed else ""
        lines.append(f"The paper: {evidence.rule.claim}.{printed}")
    lines += _compared_lines(outcome)
    lines += claim_lines(outcome, str)
    if outcome.word == "undecided":
        lines.append(f"Why undecided: {_reason_below_comparisons(outcome)}.")
    for reason in outcome.reasons:
        if reason.cause is Cause.REPLACED_PART:
            sentence = str(reason)
            lines.append(f"{sentence[:1].upper()}{sentence[1:]}.")
    if evidence.note:
        lines.append(evidence.note)
    if new_scale:
        lines.append(f"Scale: {scale.level} ({scale.facts}).")
    show(_box(evidence, outcome.word, lines, labelled=first_box))


def _compared_lines(outcome: Outcome) -> list[str]:
    """The comparisons, or of many the nearest to the ends of their ranges and the number of
    others.
    """
    others = len(outcome.contrasts) - _NEAREST
    if len(outcome.contrasts) <= _MOST_LISTED:
        return compared(outcome)
    nearest = sorted(outcome.contrasts, key=lambda contrast: contrast.margin)[:_NEAREST]
    return [
        *compared(replace(outcome, contrasts=tuple(nearest))),
        f"and {others} more comparisons with a wider margin, all in status.csv",
    ]


def _reason_below_comparisons(outcome: Outcome) -> str:
    """The reason, without the comparisons that stand above it."""
    reason = outcome.first_reason
    if reason is not None and reason.cause is Cause.ACROSS_THE_END:
        return reason.without_details
    return outcome.reason


def _box(evidence: Evidence, word: Word, lines: list[str], *, labelled: bool) -> Bundle:
    """The outcome of this run alone above these lines, as HTML, Markdown and text.

    ``labelled`` gives the box the name that links lead to; the first box of a target has it.
    """
    title = f"{evidence.rule.item}, by this run alone:"
    outcome = f"{SIGNS[word]} {word}"
    items = "".join(f"<li>{html.escape(line)}</li>" for line in lines)
    listed = "\n".join(f"- {escaped(line)}" for line in lines)
    name = f":name: {anchor(evidence.target, notebook_name())}\n" if labelled else ""
    return Bundle(
        html=f"<p><strong>{html.escape(title)} {html.escape(outcome)}</strong></p><ul>{items}</ul>",
        markdown=f"````{{admonition}} {title} {chip(word)}\n"
        f":class: verdict {class_of(word)}\n"
        f"{name}\n"
        f"{listed}\n"
        f"- {{ref}}`All evidence <{anchor(evidence.target)}>`.\n````\n",
        text="\n".join([f"{title} {outcome}", *lines]),
    )


def class_of(word: Word) -> str:
    """The name of an outcome as a class of a style sheet."""
    return word.replace(" ", "-")


def chip(word: Word) -> str:
    """An outcome as a coloured chip of a page, in MyST."""
    return f"[{SIGNS[word]} {word}]{{.chip .{class_of(word)}}}"


def page_of(rule: TargetRule) -> str:
    """The page of the book, without its folder, that has a target's outcome; PANORAMIA's figures
    fill two.
    """
    kind, number = rule.item.split()[:2]
    second = (rule.paper, kind) == ("panoramia", "Figure") and int(number) >= 9
    return f"{rule.paper}_{'more_' if second else ''}{kind.lower()}s"


def anchor(target: str, notebook: str = "") -> str:
    """The label of a target on the page of results, or of its verdict on the page of a notebook."""
    if notebook:
        return f"verdict-{target}-{notebook.replace('_', '-')}"
    return f"result-{target}"


def claim_lines(outcome: Outcome, shown: Callable[[Claim], str]) -> list[str]:
    """A line on each of several claims by itself, what fails first, unless all have the outcome of
    the row; and one on claims that stand beside.
    """
    failing_first = sorted(outcome.claims, key=lambda claim: claim.word not in FAILS)
    claims = [shown(claim) for claim in failing_first if not claim.beside]
    beside = [shown(claim) for claim in failing_first if claim.beside]
    differ = any(claim.word != outcome.word for claim in outcome.claims if not claim.beside)
    lines: list[str] = []
    if differ and len(claims) > 1:
        lines.append(f"Claim by claim: {'; '.join(claims)}.")
    if beside:
        lines.append(f"Beside the rule: {'; '.join(beside)}.")
    return lines


def compared(outcome: Outcome) -> list[str]:
    """Every claimed comparison with its interval and the claimed range, one line each."""
    return [f"{contrast}, claimed {contrast.term.limits}" for contrast in outcome.contrasts]


def escaped(text: str) -> str:
    """Text in which Markdown reads no star, tilde, brace or dollar as markup."""
    return "".join("\\" + letter if letter in "*_~{}$[]<>`" else letter for letter in text)
