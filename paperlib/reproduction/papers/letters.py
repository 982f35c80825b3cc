"""What a letter to the authors of a paper says of results: every number is read from judged
runs.
"""

from collections.abc import Mapping, Sequence

from paperlib.reproduction.exhibits.printed import PAPERS
from paperlib.reproduction.papers.landing import HEADLINES, Finding
from paperlib.reproduction.papers.verdict.evidence import TargetRule
from paperlib.reproduction.papers.verdict.nulls import nulls_of
from paperlib.reproduction.papers.verdict.outcome import FAILS
from paperlib.reproduction.papers.verdict.pages import best_of, counts_in_words
from paperlib.reproduction.papers.verdict.records import anchor, chip, escaped
from paperlib.reproduction.papers.verdict.status import JudgedTarget, each_once


def letters(judged: Sequence[JudgedTarget], *, findings: Mapping[str, Finding]) -> dict[str, str]:
    """For each paper the part of its letter that says what was found, as MyST."""
    best = best_of(judged)
    return {
        paper: _letter(paper, [entry for entry in best if entry.rule.paper == paper], findings)
        for paper in PAPERS
    }


def _letter(paper: str, judged: Sequence[JudgedTarget], findings: Mapping[str, Finding]) -> str:
    """The part of a letter on one paper, as MyST: counts, what fails, the null, the finding that
    stands for the paper, and what we could not tell.

    ``judged`` has the best evidence on each of its targets; ``findings`` are by their slug.
    """
    blocks = [f"{counts_in_words(judged)} {_changed_rules(judged)}"]
    failing = [entry for entry in judged if entry.outcome.word in FAILS]
    if failing:
        blocks.append("What does not hold here:")
        blocks.append("\n".join(_failing(entry) for entry in failing))
    null = _null(judged)
    if null:
        blocks.append(null)
    finding = findings.get(HEADLINES[paper])
    if finding:
        blocks.append(finding["sentence"])
    several = [entry.rule for entry in judged if len(entry.rule.readings) > 1]
    if several:
        blocks.append("What your text leaves open to us; each reading was judged by itself:")
        blocks.append("\n".join(_readings(rule) for rule in several))
    return "\n\n".join(blocks) + "\n"


def _changed_rules(judged: Sequence[JudgedTarget]) -> str:
    """How many rules of a paper were changed with the outcomes known, and how many of them in the
    authors' favour.
    """
    changed = [entry.rule for entry in judged if entry.rule.revised]
    favour = sum(rule.favour == "authors" for rule in changed)
    return (
        f"We changed {len(changed)} of the rules with the outcomes known, {favour} of them in your "
        "favour."
    )


def _failing(entry: JudgedTarget) -> str:
    """A table or figure that fails: its claim, the comparison that lies furthest outside, and the
    scale.
    """
    lines = [f"- {_link(entry.rule)} {chip(entry.outcome.word)} {escaped(entry.rule.claim)}."]
    closest = entry.outcome.closest
    if closest:
        lines.append(f"Here: {escaped(f'{closest}, claimed {closest.term.limits}')}.")
    if entry.level:
        lines.append(f"Scale: {entry.level}.")
    notes = each_once(run.evidence.note.rstrip(".") for run in entry.runs)
    if notes:
        lines.append(f"{escaped(notes)}.")
    return " ".join(lines)


def _null(judged: Sequence[JudgedTarget]) -> str:
    """The largest null among a paper's results; empty where none lies above its margin."""
    above = [null for null in nulls_of(judged) if null.above]
    if not above:
        return ""
    largest = above[0]
    contrast = largest.contrast
    return (
        f"A target that never saw the members gives {contrast.mean:.2f} [{contrast.low:.2f}, "
        f"{contrast.high:.2f}] {contrast.term.measure} ({escaped(largest.facts)}), where "
        f"{contrast.term.at_most:g} is the most that we allow; see {{ref}}`the nulls <the-null>`."
    )


def _readings(rule: TargetRule) -> str:
    """The readings of a table or figure as an item of a list."""
    return f"- {_link(rule)}: {escaped('; '.join(rule.readings))}."


def _link(rule: TargetRule) -> str:
    """A link to the section of a table or figure."""
    return f"{{ref}}`{rule.item} <{anchor(rule.target)}>`"
