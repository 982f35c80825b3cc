"""Outcomes as pages: a section for each table and figure, and a chip for each on the landing
page.
"""

from collections.abc import Collection, Iterator, Sequence
from itertools import groupby

import pandas as pd

from paperlib.io import RunResult
from paperlib.papers.verdict.evidence import TargetRule, rules
from paperlib.papers.verdict.outcome import over_models
from paperlib.papers.verdict.records import SIGNS, WORDS, anchor, chip, class_of, compared, escaped
from paperlib.papers.verdict.status import CSV_NAME, LEVELS, JudgedTarget, Run, joined, seeds_of
from paperlib.report.printed import PAPERS
from paperlib.report.tables import pipe_table

_LONGEST_COMMAND = 80  # characters of a command that the page shows
_MOST_COMPARED = 4  # comparisons of a target that the page lists


def results_pages(judged: Sequence[JudgedTarget], *, pages: Collection[str]) -> dict[str, str]:
    """The results as MyST: an overview, and pages for the tables and the figures of each paper."""
    overview, by_page = [], dict[str, str]()
    for paper in PAPERS:
        own = [one for one in judged if one.rule.paper == paper]
        for name, some in groupby(own, key=lambda one: page_of(one.rule)):
            parts = [
                _target(list(same), pages)
                for _, same in groupby(some, key=lambda one: one.rule.target)
            ]
            by_page[name] = "\n\n".join(parts) + "\n"
        overview.append(
            f"## {escaped(PAPERS[paper])}\n\n{counts_in_words(own)}\n\n{chips_html(own)}"
        )
    link = f"{{download}}`{CSV_NAME} </_generated/data/{CSV_NAME}>`"
    download = f"All rows, with the command of each run: {link}."
    return {"results": "\n\n".join([*overview, download]) + "\n"} | by_page


def page_of(rule: TargetRule) -> str:
    """The page of the book, without its folder, that has a target's outcome; PANORAMIA's figures
    fill two.
    """
    kind, number = rule.item.split()[:2]
    second = (rule.paper, kind) == ("panoramia", "Figure") and int(number) >= 9
    return f"{rule.paper}_{'more_' if second else ''}{kind.lower()}s"


def executions_markdown(paper: str, results: Sequence[RunResult]) -> str:
    """What the runs behind a paper's outcomes took, as a Markdown table: by notebook, profile and
    machine.
    """
    named = {
        notebook for rule in rules().values() if rule.paper == paper for notebook in rule.notebooks
    }
    made = [(one, one.provenance) for one in results if one.notebook in named]
    rows = list[tuple[object, ...]]()
    for one, by in made:
        machine = f"{by['gpu'] or by['cpu']}, {by['cores']} cores"
        rows.append(
            (f"`{one.notebook}`", one.profile, machine, by["date"][:10], by["seconds"] / 3600)
        )
    runs = pd.DataFrame(rows, columns=["notebook", "profile", "machine", "date", "hours"])
    whole = runs.groupby(["notebook", "profile", "machine"], as_index=False).agg(
        runs=("date", "size"), first=("date", "min"), last=("date", "max"), hours=("hours", "sum")
    )
    total = f"{len(runs)} runs, {runs['hours'].sum():.1f} hours in all."
    shown = whole.assign(hours=whole["hours"].map("{:.2f}".format)).astype(str)
    return f"{pipe_table(shown)}\n\n{total}\n"


def _target(evidence: list[JudgedTarget], pages: Collection[str]) -> str:
    """A table or figure: claim, outcome by the best evidence, and further evidence below,
    folded.
    """
    best, *others = evidence
    rule, looks = best.rule, round(0.05 / best.rule.error)
    revised = f"The rule was changed on {rule.revised}. Before: {rule.outcome_before}."
    number = rule.printed.removeprefix("No number printed").removeprefix("; ")
    printed = f" Printed: {escaped(number)}." if number else ""
    lines = [
        f"({anchor(rule.target)})=",
        f"## {rule.item}",
        "",
        _outcome(best, best=True),
        "",
        f"- The paper: {escaped(rule.claim)}.{printed}",
        *(f"- {line}" for line in _evidence(best)),
        *(f"- {line}" for line in _shown(evidence, pages)),
        *([f"- {escaped(revised)}"] if rule.revised else []),
        *(
            [f"- Runs were added: each of {looks} looks has 1/{looks} of the error."]
            if looks > 1
            else []
        ),
    ]
    if others:
        lines += [
            "",
            f"````{{dropdown}} Further evidence: {joined(one.outcome.word for one in others)}",
        ]
    for one in others:
        reading = f"{escaped(one.reading)}: " if one.reading else ""
        lines += ["", f"- {reading}{' '.join([_outcome(one), *_scale(one)])}"]
    return "\n".join([*lines, *(["````"] if others else [])])


def _outcome(one: JudgedTarget, *, best: bool = False) -> str:
    """The outcome and its reason; of further evidence the first of several reasons, all stand in
    the CSV.
    """
    first, *others = [one.outcome.reason] if best else one.outcome.reason.split("; ")
    first = (
        first.partition(":")[0] if best and first.startswith("too wide") else first
    )  # listed below
    reason = f"{first}; and more" if others else first
    return f"{chip(one.outcome.word)} {f'{escaped(reason)}.' if reason else ''}"


def _evidence(one: JudgedTarget) -> Iterator[str]:
    """What was compared, on what, and how it is repeated."""
    if closest := one.outcome.closest:
        yield f"Closest: {escaped(f'{closest}, claimed {closest.term.limits}')}."
    others = [line for line in compared(one.outcome) if not line.startswith(str(closest))]
    if 0 < len(others) <= _MOST_COMPARED:
        yield f"Also compared: {escaped('; '.join(others))}."
    if one.to_decide:
        yield f"To decide: {one.to_decide}."
    yield from _scale(one)
    if one.rule.unit == "identifiers" and len(one.runs) > 1 and one.level:
        models = over_models([run.evidence for run in one.runs], one.level)
        yield f"If each run counted as one model: {escaped(str(models))}."
    if notes := joined(run.evidence.note.rstrip(".") for run in one.runs):
        yield f"{escaped(notes)}."
    commands = {run.notebook: run.command for run in reversed(one.runs) if run.command}
    again = [f"`{text}`" for text in commands.values() if len(text) <= _LONGEST_COMMAND]
    if again:  # a longer one stands in the CSV alone
        yield f"Run it again: {'; '.join(dict.fromkeys(again))}"


def _scale(one: JudgedTarget) -> Iterator[str]:
    """On what scale, and with which seeds."""
    if one.level:
        facts = escaped(joined(run.scale.facts for run in one.runs))
        seeds = "; ".join(_seeds_by_origin(one.runs))
        yield f"Scale: {one.level} ({facts}). {seeds[:1].upper() + seeds[1:]}.".replace(" .", "")


def _shown(evidence: Sequence[JudgedTarget], pages: Collection[str]) -> Iterator[str]:
    """The pages that show it, by whatever evidence."""
    runs = [run for one in evidence for run in one.runs]
    here = {run.notebook for run in runs if not run.origin}
    shown = [name for name in dict.fromkeys(run.notebook for run in runs) if name in pages]
    links = [  # to the verdict, or to the page alone where the evidence is of another run
        f"{{ref}}`{name} <{anchor(evidence[0].rule.target, name)}>`"
        if name in here
        else f"{{doc}}`{name} </notebooks/{name}>`"
        for name in shown
    ]
    if links:
        yield f"Shown on: {', '.join(links)}."


def _seeds_by_origin(runs: Sequence[Run]) -> Iterator[str]:
    """Which seeds were run here, and which on another occasion."""
    for origin in dict.fromkeys(run.origin for run in runs):
        seeds = seeds_of([run for run in runs if run.origin == origin])
        in_turn = len(seeds) > 2 and int(seeds[-1]) - int(seeds[0]) == len(seeds) - 1
        listed = f"{seeds[0]} to {seeds[-1]}" if in_turn else ", ".join(seeds)
        named = f"seed{'s' if len(seeds) > 1 else ''} {listed}" if seeds else ""
        if words := " ".join(filter(None, [named, origin or (named and "run here")])):
            yield words


def best_of(judged: Sequence[JudgedTarget]) -> list[JudgedTarget]:
    """One entry for each target, by its best evidence."""
    return list({one.rule.target: one for one in reversed(judged)}.values())[::-1]


def counts_in_words(judged: Sequence[JudgedTarget]) -> str:
    """How many of the tables and figures have which outcome, at least one."""
    words = [one.outcome.word for one in best_of(judged)]
    counts = [(words.count(word), verbs) for word, verbs in WORDS.items()]
    counted = [
        f"{count} {verbs['several' if count > 1 else 'one']}" for count, verbs in counts if count
    ]
    return f"Of {len(words)} tables and figures: {', '.join(counted)}."


def scales_table(judged: Sequence[JudgedTarget]) -> str:
    """How many of the tables and figures have which outcome on which scale, as a Markdown table."""
    best = [one for one in best_of(judged) if one.level]
    counts = pd.crosstab([one.level for one in best], [one.outcome.word for one in best])
    table = counts.reindex(LEVELS, fill_value=0).reindex(columns=[*SIGNS][:-1], fill_value=0)
    return pipe_table(
        table.rename_axis(columns=None).rename_axis("scale").reset_index().astype(str)
    )


def legend_html(judged: Sequence[JudgedTarget]) -> str:
    """The key of the chips, with the count of every outcome."""
    words = [one.outcome.word for one in best_of(judged)]
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
    for one in best_of(judged):
        word, words = one.outcome.word, f"{one.rule.item}: {one.outcome.word}"
        kind, _, number = one.rule.item.partition(" ")
        address = f"results/{page_of(one.rule)}.html#{anchor(one.rule.target)}"
        chips.append(
            f'<a class="chip {class_of(word)}" href="{address}" title="{words}" '
            f'aria-label="{words}">{kind[0]}{number} {SIGNS[word]}</a>'
        )
    return f'<p class="chips">{" ".join(chips)}</p>'
