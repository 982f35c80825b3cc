"""Outcomes as pages: a section for each table and figure, and a chip for each on the landing page."""

from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from typing import get_args

from paperlib.papers.verdict.outcome import Outcome, Word
from paperlib.papers.verdict.records import SIGNS, anchor, chip, class_of, compared, escaped
from paperlib.papers.verdict.status import CSV_NAME, Judged, Run, joined, seeds_of
from paperlib.report.printed import PAPERS

WORDS: tuple[Word, ...] = get_args(Word)
_VERBS: dict[Word, tuple[str, str]] = {
    "agrees": ("agrees", "agree"), "disagrees": ("disagrees", "disagree"),
    "undecided": ("is undecided", "are undecided"), "shown": ("is only shown", "are only shown"),
    "not yet": ("is not yet run", "are not yet run"),
}  # fmt: skip
_LONGEST_COMMAND = 80
"""Characters of a command that the page shows."""
_MOST_COMPARED = 4
"""Comparisons of a target that the page lists."""


def results_markdown(judged: Sequence[Judged], *, pages: Collection[str]) -> str:
    """The page of results as MyST: a section for each paper, and in it one for each table and figure."""
    parts = []
    for paper in PAPERS:
        own = [one for one in judged if one.rule.paper == paper]
        sections = [_target(list(some), pages) for _, some in groupby(own, key=lambda one: one.rule.target)]
        parts.append("\n\n".join([f"## {escaped(PAPERS[paper])}", f"{counts_in_words(own)}", *sections]))
    return "\n\n".join([*parts, f"All rows: {{download}}`{CSV_NAME} </_generated/data/{CSV_NAME}>`."]) + "\n"


def _target(evidence: list[Judged], pages: Collection[str]) -> str:
    """A table or figure: claim, outcome by the best evidence, and further evidence below, folded."""
    best, *others = evidence
    rule = best.rule
    printed = f" Printed: {escaped(rule.printed)}." if rule.printed else ""
    lines = [
        f"({anchor(rule.target)})=",
        f"### {rule.item}",
        "",
        f"{chip(best.outcome.word)} {_about(best.outcome)}",
        "",
        f"- The paper's claim: {escaped(rule.claim)}.{printed}",
        *(f"- {line}" for line in _evidence(best, pages)),
    ]
    if others:
        lines += ["", f"````{{dropdown}} Further evidence: {', '.join(one.outcome.word for one in others)}"]
    for one in others:
        lines += ["", f"Further evidence: {chip(one.outcome.word)} {_about(one.outcome)}", ""]
        lines += [f"- {line}" for line in _evidence(one, pages)]
    return "\n".join([*lines, *(["````"] if others else [])])


def _about(outcome: Outcome) -> str:
    return f"{escaped(outcome.reason)}." if outcome.reason else ""


def _evidence(one: Judged, pages: Collection[str]) -> Iterator[str]:
    """What was compared, on what, where it is shown, and how it is repeated."""
    if one.outcome.closest:
        yield f"Closest: {escaped(f'{one.outcome.closest}, claimed {one.outcome.closest.term.limits}')}."
    others = [line for line in compared(one.outcome) if not line.startswith(str(one.outcome.closest))]
    if 0 < len(others) <= _MOST_COMPARED:
        yield f"Also compared: {escaped('; '.join(others))}."
    if one.level:
        facts = escaped(joined(run.scale.facts for run in one.runs))
        yield f"Scale: {one.level} ({facts}). {_seeds_by_origin(one.runs)}.".replace(" .", "")
    if notes := joined(run.evidence.note.rstrip(".") for run in one.runs):
        yield f"{escaped(notes)}."
    shown = [name for name in dict.fromkeys(run.notebook for run in one.runs) if name in pages]
    here = {run.notebook for run in one.runs if not run.origin}
    if links := ", ".join(_link(name, one.rule.target, name in here) for name in shown):
        yield f"Shown on: {links}."
    commands = {run.notebook: run.command for run in reversed(one.runs) if run.command}
    again = [
        f"`{text}`"
        if len(text) <= _LONGEST_COMMAND
        else f"the command in {CSV_NAME}, at the end of this page"
        for text in commands.values()
    ]
    if again:
        yield f"Run it again: {'; '.join(dict.fromkeys(again))}"


def _link(notebook: str, target: str, here: bool) -> str:
    """The verdict on a notebook's page, or the page alone where the evidence is of another run."""
    if here:
        return f"{{ref}}`{notebook} <{anchor(target, notebook)}>`"
    return f"{{doc}}`{notebook} </notebooks/{notebook}>`"


def _seeds_by_origin(runs: Sequence[Run]) -> str:
    """Which seeds were run here, and which on another occasion."""
    parts = []
    for origin in dict.fromkeys(run.origin for run in runs):
        seeds = seeds_of([run for run in runs if run.origin == origin])
        named = f"seed{'s' if len(seeds) > 1 else ''} {', '.join(seeds)}" if seeds else ""
        parts.append(" ".join(filter(None, [named, origin or (named and "run here")])))
    words = "; ".join(filter(None, parts))
    return words[:1].upper() + words[1:]


def best_of(judged: Sequence[Judged]) -> list[Judged]:
    """One entry for each target, by its best evidence."""
    return list({one.rule.target: one for one in reversed(judged)}.values())[::-1]


def counts_in_words(judged: Sequence[Judged]) -> str:
    """How many of the tables and figures have which outcome, at least one.

    >>> from paperlib.papers.verdict.status import judge
    >>> counts_in_words(judge([]))
    'Of 50 tables and figures: 50 are not yet run.'
    """
    words = [one.outcome.word for one in best_of(judged)]
    counts: dict[Word, int] = {word: words.count(word) for word in WORDS if word in words}
    counted = [f"{count} {_VERBS[word][count > 1]}" for word, count in counts.items()]
    return f"Of {len(words)} tables and figures: {', '.join(counted)}."


def legend_html(judged: Sequence[Judged]) -> str:
    """The key of the chips, with the count of every outcome."""
    words = [one.outcome.word for one in best_of(judged)]
    keys = [
        f'<li><span class="key {class_of(word)}" aria-hidden="true">{SIGNS[word]}</span> {word} '
        f'<span data-outcome="{class_of(word)}" data-count="{words.count(word)}">'
        f"({words.count(word)})</span></li>"
        for word in WORDS
    ]
    return f'<ul class="chip-legend">{"".join(keys)}</ul>'


def chips_html(judged: Sequence[Judged]) -> str:
    """A linked chip for each table and figure of a paper, by its best evidence."""
    return f'<p class="chips">{" ".join(_chip(one) for one in best_of(judged))}</p>'


def _chip(one: Judged) -> str:
    kind, _, number = one.rule.item.partition(" ")
    word, words = one.outcome.word, f"{one.rule.item}: {one.outcome.word}"
    return (
        f'<a class="chip {class_of(word)}" href="results.html#{anchor(one.rule.target)}" title="{words}" '
        f'aria-label="{words}">{kind[0]}{number} {SIGNS[word]}</a>'
    )
