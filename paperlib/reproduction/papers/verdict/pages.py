"""Outcomes as pages: a section for each table and figure, and a chip for each on the landing
page.
"""

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

import pandas as pd

from paperlib.io.files import RunResult
from paperlib.report.tables import pipe_table
from paperlib.reproduction.exhibits.printed import PAPERS
from paperlib.reproduction.papers.verdict.evidence import TargetRule, rules
from paperlib.reproduction.papers.verdict.nulls import null_markdown
from paperlib.reproduction.papers.verdict.outcome import Claim, Outcome, over_models
from paperlib.reproduction.papers.verdict.reasons import Cause
from paperlib.reproduction.papers.verdict.records import (
    SIGNS,
    WORDS,
    anchor,
    chip,
    claim_lines,
    class_of,
    compared,
    escaped,
    page_of,
)
from paperlib.reproduction.papers.verdict.status import (
    CSV_NAME,
    LEVELS,
    JudgedTarget,
    Run,
    each_once,
    seeds_of,
)
from paperlib.reproduction.papers.verdict.thumbnails import thumbnail_alt

_LONGEST_COMMAND = 80  # characters of a command that the page shows
_FAVOURS: dict[str, str] = {
    "authors": "in the authors' favour",
    "neither": "in nobody's",
    "against": "against the authors",
}
_MOST_BESIDE = 2  # comparisons of a claim that stands beside
_MOST_COMPARED = 4  # comparisons of a target that the page lists


def results_pages(
    judged: Sequence[JudgedTarget], *, pages: Collection[str], answers: str = ""
) -> dict[str, str]:
    """The results as MyST, by name of the page: "results", an overview, and pages for the tables
    and the figures of each paper.

    Args:
        judged: Entries of all targets, of each the best evidence first.
        pages: Names of the notebooks that are pages of the book.
        answers: Stands at the top of the overview, before PANORAMIA's null and the papers; may be
            empty.
    """
    overview: list[str] = []
    for block in (answers, null_markdown(judged)):
        if block:
            overview.append(block)
    by_page: dict[str, str] = {}
    for paper, title in PAPERS.items():
        of_paper = [entry for entry in judged if entry.rule.paper == paper]
        for name, entries in groupby(of_paper, key=lambda entry: page_of(entry.rule)):
            by_target = groupby(entries, key=lambda entry: entry.rule.target)
            sections = [_target(list(of_target), pages) for _, of_target in by_target]
            by_page[name] = "\n\n".join(sections) + "\n"
        overview.append(
            f"## {escaped(title)}\n\n{counts_in_words(of_paper)}\n\n{chips_html(of_paper)}"
        )
    link = f"{{download}}`{CSV_NAME} </_generated/data/{CSV_NAME}>`"
    download = f"All rows, with the command of each run: {link}."
    return {"results": "\n\n".join([*overview, download]) + "\n"} | by_page


def executions_markdown(paper: str, results: Sequence[RunResult]) -> str:
    """What the runs behind a paper's outcomes took, as a Markdown table with a row for each
    notebook, profile and machine: number of runs, first and last date, and hours.

    ``paper`` is its key; of ``results`` those of its notebooks are taken.
    """
    notebooks = {
        notebook for rule in rules().values() if rule.paper == paper for notebook in rule.notebooks
    }
    rows: list[tuple[object, ...]] = []
    for result in results:
        if result.notebook not in notebooks:
            continue
        by = result.provenance
        machine = f"{by['gpu'] or by['cpu']}, {by['cores']} cores"
        name = f"`{result.notebook}`"
        rows.append((name, result.profile, machine, by["date"][:10], by["seconds"] / 3600))
    runs = pd.DataFrame(rows, columns=["notebook", "profile", "machine", "date", "hours"])
    whole = runs.groupby(["notebook", "profile", "machine"], as_index=False).agg(
        runs=("date", "size"), first=("date", "min"), last=("date", "max"), hours=("hours", "sum")
    )
    total = f"{len(runs)} runs, {runs['hours'].sum():.1f} hours in all."
    text = whole.assign(hours=whole["hours"].map("{:.2f}".format)).astype(str)
    return f"{pipe_table(text)}\n\n{total}\n"


def _target(evidence: list[JudgedTarget], pages: Collection[str]) -> str:
    """A table or figure as a section of MyST: outcome by the best evidence, which is the first,
    claim, comparisons, and further evidence below, folded. ``pages`` are the book's notebooks.
    """
    best, *others = evidence
    rule = best.rule
    # Many rules print no number, and of those some say what is printed in its place.
    number = rule.printed.removeprefix("No number printed").removeprefix("; ")
    printed = f" Printed: {escaped(number)}." if number else ""
    lines = [
        f"({anchor(rule.target)})=",
        f"## {rule.item}",
        "",
        *_figure(best),
        f"{chip(best.outcome.word)} {_sentence(_whole_reason(best))}",
        "",
        f"- The paper: {escaped(rule.claim)}.{printed}",
    ]
    lines += [f"- {line}" for line in claim_lines(best.outcome, _claim_chip)]
    lines += [f"- {line}" for line in _evidence(best)]
    lines += [f"- {line}" for line in _pages_with(evidence, pages)]
    lines += [f"- {line}" for line in _changes(rule)]
    if others:
        lines += ["", *_further(others)]
    return "\n".join(lines)


def figure_path(target: str) -> str:
    """Where the small figure of a target lies below the book's generated files."""
    return f"figures/rows/{target}.svg"


def _figure(entry: JudgedTarget) -> list[str]:
    """The small figure of the runs that decide; nothing where there is none."""
    alt = thumbnail_alt(entry)
    if not alt:
        return []
    return [
        f"```{{image}} /_generated/{figure_path(entry.rule.target)}",
        f":alt: {json.dumps(alt, ensure_ascii=False)}",
        ":class: dark-light row-figure",
        "```",
        "",
    ]


def _changes(rule: TargetRule) -> Iterator[str]:
    """How the rule was changed, and whether runs were added, after a look at outcomes."""
    if rule.revised:
        before = f" Before: {rule.outcome_before}." if rule.outcome_before else ""
        yield escaped(f"The rule was changed on {rule.revised}.{before}")
    if rule.looks > 1:
        yield (
            f"Runs or designs were added: this is look {rule.looks}, which spends "
            f"0.05 / {2**rule.looks} of error."
        )


def _claim_chip(claim: Claim) -> str:
    """A claim with its outcome as a chip; one beside the rule with its comparisons, which stand
    nowhere else.
    """
    words = _beside_in_words(claim) if claim.beside and claim.contrasts else claim.name
    return f"{chip(claim.word)} {escaped(words)}"


def _beside_in_words(claim: Claim) -> str:
    """The comparisons of a claim beside the rule: of many their counts, and those that decide.

    What lies outside comes first, then what is across an end, then what is inside.
    """
    in_order = sorted(
        claim.contrasts,
        key=lambda contrast: (not contrast.outside, contrast.inside, contrast.margin),
    )
    named = ", ".join(map(str, in_order[:_MOST_BESIDE]))
    if len(in_order) <= _MOST_BESIDE:
        return named
    inside = sum(contrast.inside for contrast in in_order)
    outside = sum(contrast.outside for contrast in in_order)
    return (
        f"{claim.name}: of {len(in_order)} comparisons {inside} inside the claimed range and "
        f"{outside} outside, among them {named}"
    )


def _further(others: Sequence[JudgedTarget]) -> Iterator[str]:
    """Lines of the folded list of further evidence."""
    words = each_once(entry.outcome.word for entry in others)
    yield f"````{{dropdown}} Further evidence: {words}"
    for entry in others:
        reading = f"{escaped(entry.reading)}: " if entry.reading else ""
        outcome = f"{chip(entry.outcome.word)} {_sentence(_first_of_reason(entry))}"
        yield ""
        yield f"- {reading}{' '.join([outcome, *_scale(entry)])}"
    yield "````"


def _sentence(text: str) -> str:
    """Text as a sentence of the page; nothing for no text."""
    return f"{escaped(text)}." if text else ""


def _whole_reason(entry: JudgedTarget) -> str:
    """The reason of an outcome, without intervals, which are listed below it."""
    reason = entry.outcome.first_reason
    if reason is not None and reason.cause is Cause.ACROSS_THE_END:
        return reason.without_details
    return entry.outcome.reason


def _first_of_reason(entry: JudgedTarget) -> str:
    """The reason of an outcome with the first item of its list: all stand in the CSV."""
    reason = entry.outcome.first_reason
    if reason is None:
        return ""
    first, *others = reason.items
    return f"{first}; and more" if others else first


def _evidence(entry: JudgedTarget) -> Iterator[str]:
    """What was compared, on what, and how it is repeated."""
    yield from _comparisons(entry.outcome)
    if entry.to_decide:
        yield f"To decide: {entry.to_decide}."
    yield from _scale(entry)
    if entry.rule.unit == "identifiers" and len(entry.runs) > 1 and entry.level:
        models = over_models([run.evidence for run in entry.runs], entry.level)
        yield f"If each run counted as one model: {escaped(str(models))}."
    notes = each_once(run.evidence.note.rstrip(".") for run in entry.runs)
    if notes:
        yield f"{escaped(notes)}."
    commands = _short_commands(entry.runs)
    if commands:
        yield f"Run it again: {'; '.join(commands)}"


def _comparisons(outcome: Outcome) -> Iterator[str]:
    """The comparison nearest to deciding, and the others where they are few."""
    closest = outcome.closest
    if closest:
        yield f"Closest: {escaped(f'{closest}, claimed {closest.term.limits}')}."
    others = tuple(contrast for contrast in outcome.contrasts if contrast is not closest)
    if 0 < len(others) <= _MOST_COMPARED:
        lines = compared(replace(outcome, contrasts=others))
        yield f"Also compared: {escaped('; '.join(lines))}."


def _short_commands(runs: Sequence[Run]) -> list[str]:
    """The command of the first run of each notebook as code; a long one stands in the CSV alone."""
    commands = {run.notebook: run.command for run in reversed(runs) if run.command}
    short = [f"`{text}`" for text in commands.values() if len(text) <= _LONGEST_COMMAND]
    return list(dict.fromkeys(short))


def _scale(entry: JudgedTarget) -> Iterator[str]:
    """On what scale, and with which seeds."""
    if entry.level:
        facts = escaped(each_once(run.scale.facts for run in entry.runs))
        seeds = "; ".join(_seeds_by_origin(entry.runs))
        yield f"Scale: {entry.level} ({facts}). {seeds[:1].upper() + seeds[1:]}.".replace(" .", "")


def _pages_with(evidence: Sequence[JudgedTarget], pages: Collection[str]) -> Iterator[str]:
    """The pages of the book that show the target, by whatever evidence."""
    runs = [run for entry in evidence for run in entry.runs]
    run_here = {run.notebook for run in runs if not run.origin}
    links: list[str] = []
    for name in dict.fromkeys(run.notebook for run in runs):
        if name not in pages:
            continue
        if name in run_here:
            links.append(f"{{ref}}`{name} <{anchor(evidence[0].rule.target, name)}>`")
        else:  # the page has no verdict where the evidence is of another run
            links.append(f"{{doc}}`{name} </notebooks/{name}>`")
    if links:
        yield f"Shown on: {', '.join(links)}."


def _seeds_by_origin(runs: Sequence[Run]) -> Iterator[str]:
    """Which seeds were run here, and which on another occasion."""
    for origin in dict.fromkeys(run.origin for run in runs):
        seeds = seeds_of([run for run in runs if run.origin == origin])
        words = [_seeds_in_words(seeds)] if seeds else []
        if origin:
            words.append(origin)
        elif seeds:
            words.append("run here")
        if words:
            yield " ".join(words)


def _seeds_in_words(seeds: Sequence[str]) -> str:
    """At least one seed as "seed 3", "seeds 0, 4" or, one after the other, "seeds 0 to 4"."""
    first, last = seeds[0], seeds[-1]
    in_turn = len(seeds) > 2 and int(last) - int(first) == len(seeds) - 1
    listed = f"{first} to {last}" if in_turn else ", ".join(seeds)
    return f"seed{'s' if len(seeds) > 1 else ''} {listed}"


def best_of(judged: Sequence[JudgedTarget]) -> list[JudgedTarget]:
    """One entry for each target, by its best evidence."""
    return list({entry.rule.target: entry for entry in reversed(judged)}.values())[::-1]


def counts_in_words(judged: Sequence[JudgedTarget]) -> str:
    """How many of the tables and figures have which outcome, at least one."""
    words = [entry.outcome.word for entry in best_of(judged)]
    counted: list[str] = []
    for word, verbs in WORDS.items():
        count = words.count(word)
        if count:
            counted.append(f"{count} {verbs['several' if count > 1 else 'one']}")
    return f"Of {len(words)} tables and figures: {', '.join(counted)}."


def rules_in_words() -> str:
    """How many rules stand as they were fixed before the runs, and in whose favour the others were
    changed with the outcomes known.
    """
    every_rule = rules().values()
    changed = [rule for rule in every_rule if rule.revised]
    counts = [
        f"{sum(rule.favour == favour for rule in changed)} {words}"
        for favour, words in _FAVOURS.items()
    ]
    return (
        f"{len(every_rule) - len(changed)} of {len(every_rule)} rules stand as they were fixed "
        f"before the runs. {len(changed)} were changed later, with the outcomes known: "
        f"{', '.join(counts)}. How substitutes and looks count was changed for all of them."
    )


def scales_table(judged: Sequence[JudgedTarget]) -> str:
    """How many of the tables and figures have which outcome on which scale, as a Markdown table:
    a row for each scale, a column for each outcome.
    """
    # What was never run has no scale, and its outcome, the last sign, no column.
    best = [entry for entry in best_of(judged) if entry.level]
    counts = pd.crosstab([entry.level for entry in best], [entry.outcome.word for entry in best])
    table = counts.reindex(LEVELS, fill_value=0).reindex(columns=[*SIGNS][:-1], fill_value=0)
    return pipe_table(
        table.rename_axis(columns=None).rename_axis("scale").reset_index().astype(str)
    )


def legend_html(judged: Sequence[JudgedTarget]) -> str:
    """The key of the chips, with the count of every outcome."""
    words = [entry.outcome.word for entry in best_of(judged)]
    keys = [
        f'<li><span class="key {class_of(word)}" aria-hidden="true">{sign}</span> {word} '
        f'<span data-outcome="{class_of(word)}" data-count="{words.count(word)}">'
        f"({words.count(word)})</span></li>"
        for word, sign in SIGNS.items()
    ]
    return f'<ul class="chip-legend">{"".join(keys)}</ul>'


def chips_html(judged: Sequence[JudgedTarget]) -> str:
    """A linked chip for each table and figure of a paper, by its best evidence."""
    chips: list[str] = []
    for entry in best_of(judged):
        word = entry.outcome.word
        words = f"{entry.rule.item}: {word}"
        kind, _, number = entry.rule.item.partition(" ")
        address = f"results/{page_of(entry.rule)}.html#{anchor(entry.rule.target)}"
        chips.append(
            f'<a class="chip {class_of(word)}" href="{address}" title="{words}" '
            f'aria-label="{words}">{kind[0]}{number} {SIGNS[word]}</a>'
        )
    return f'<p class="chips">{" ".join(chips)}</p>'
