"""All tables and figures of the papers with their outcomes: counts for the landing page, a row for each."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import pandas as pd

from paperlib.papers.verdict.evidence import Estimate, Evidence, Level, Scale, from_dict
from paperlib.papers.verdict.outcome import Outcome, Word, decide, pool
from paperlib.papers.verdict.records import compared, escaped
from paperlib.papers.verdict.rules import Rule, rules
from paperlib.report.printed import PAPERS
from paperlib.report.tables import pipe_table

CSV_NAME = "status.csv"
_LONGEST_COMMAND = 80
"""Characters of a command that the page shows."""
_LEVELS: tuple[Level, ...] = get_args(Level)[:-1]  # no made-up data on the page
_WORDS: tuple[Word, ...] = get_args(Word)


@dataclass(frozen=True)
class Run:
    """Evidence of one run on one target.

    Attributes:
        notebook: Stem of the notebook.
        setting: Its parameters but the seed, as text: runs of equal settings and other seeds are pooled.
            Empty values ("", [], {}) count as absent: earlier runs lack parameters that came later.
        seed: The seed, as text.
        evidence: What it measured.
        scale: How near it is to the paper's.
        origin: When and on what it was measured; empty for a run of this book.
        command: What repeats it.
    """

    notebook: str
    setting: str
    seed: str
    evidence: Evidence
    scale: Scale
    origin: str = ""
    command: str = ""


@dataclass(frozen=True)
class Judged:
    """One target judged by runs of equal settings.

    Attributes:
        rule: The rule.
        outcome: The outcome.
        runs: The runs; none for "not yet".
    """

    rule: Rule
    outcome: Outcome
    runs: tuple[Run, ...] = ()

    @property
    def level(self) -> Level | None:
        """The lowest scale of the runs."""
        levels: list[Level] = [one.scale.level for one in self.runs]
        return max(levels, key=_LEVELS.index, default=None)

    @property
    def rank(self) -> tuple[int, int]:
        """Smaller is better: the nearer scale, then the more repetitions."""
        samples = [one for run in self.runs for one in run.evidence.samples().values()]
        values = sum(1 if isinstance(one, Estimate) else len(one) for one in samples)
        return _LEVELS.index(self.level) if self.level else len(_LEVELS), -values


def judge(runs: Iterable[Mapping[str, Any]], measured: Iterable[Mapping[str, Any]] = ()) -> list[Judged]:
    """Every target by the evidence at hand, at least one entry each, its best evidence first.

    Args:
        runs: Result files of the notebooks run here, as mappings.
        measured: Committed result files of larger runs.
    """
    kept = [one for run in runs for one in _evidence(run, "")]
    kept += [one for run in measured for one in _evidence(run, _measured_on(run))]
    kept = [one for one in kept if one.scale.level != "made-up data"]
    judged: list[Judged] = []
    for target, rule in rules().items():
        own = _judged(rule, [one for one in kept if one.evidence.target == target])
        judged += sorted(own, key=lambda one: one.rank) or [Judged(rule, Outcome("not yet"))]
    return judged


def _evidence(run: Mapping[str, Any], origin: str) -> Iterator[Run]:
    given = run["parameters"].items()
    others = sorted((name, value) for name, value in given if name != "seed" and value not in ("", [], {}))
    seed = repr(run["parameters"].get("seed"))
    for kept in run["records"]:
        command = run["provenance"].get("command", "")
        yield Run(run["notebook"], repr(others), seed, *from_dict(kept), origin, command)


def _measured_on(run: Mapping[str, Any]) -> str:
    origin = run["provenance"]
    return f"measured {str(origin.get('date', ''))[:10]} on {origin.get('gpu') or origin.get('cpu')}"


def _judged(rule: Rule, runs: Sequence[Run]) -> list[Judged]:
    """One outcome for each setting; where a rule needs several notebooks, one from the best of each."""
    settings: dict[tuple[str, ...], dict[str, Run]] = {}
    for one in runs:  # a seed that was run here and elsewhere counts once
        group = settings.setdefault((one.notebook, one.setting, one.scale.level, one.scale.facts), {})
        if all(other.evidence != one.evidence for other in group.values()):  # and so does a committed table
            group.setdefault(one.seed, one)
    alone = [_decided(rule, [list(group.values())]) for group in settings.values()]
    if len(rule.notebooks) == 1 or not alone:
        return alone
    best = [
        min((one for one in alone if one.runs[0].notebook == name), key=lambda one: one.rank)
        for name in dict.fromkeys(one.notebook for one in runs)
    ]
    return [_decided(rule, [one.runs for one in best])]


def _decided(rule: Rule, groups: Sequence[Sequence[Run]]) -> Judged:
    evidence = {group[0].notebook: pool([one.evidence for one in group]) for group in groups}
    judged = Judged(rule, Outcome("not yet"), tuple(one for group in groups for one in group))
    level = judged.level or _LEVELS[-1]
    return Judged(rule, decide(rule, evidence, level, seeds=min(map(len, groups))), judged.runs)


def status_table(judged: Sequence[Judged]) -> pd.DataFrame:
    """One row per entry of `judge`; ``best`` is true for one row of each target.

    Returns:
        Columns id, paper, item, best, outcome, reason, scale, facts, claim, compared, paper_number, notebook,
        seeds, command, origin, note.
    """
    rows = [_row(one) for one in judged]
    table = pd.DataFrame(rows)
    table.insert(3, "best", ~table["id"].duplicated())
    return table


def _row(one: Judged) -> dict[str, Any]:
    return {
        "id": one.rule.target,
        "paper": one.rule.paper,
        "item": one.rule.item,
        "outcome": one.outcome.word,
        "reason": one.outcome.reason,
        "scale": one.level or "",
        "facts": _joined(run.scale.facts for run in one.runs),
        "claim": one.rule.claim,
        "compared": "; ".join(compared(one.outcome)),
        "paper_number": one.rule.printed,
        "notebook": _joined(run.notebook for run in one.runs) or "; ".join(one.rule.notebooks),
        "seeds": ", ".join(_seeds(one.runs)),
        "command": _joined(run.command for run in one.runs),
        "origin": _joined(run.origin for run in one.runs),
        "note": _joined(run.evidence.note for run in one.runs),
    }


def _joined(texts: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(filter(None, texts)))


def status_markdown(judged: Sequence[Judged], *, profile: str) -> str:
    """The landing page's part as MyST: how many targets have which outcome, by paper and by scale.

    Args:
        judged: Result of `judge`.
        profile: Profile of the runs.
    """
    table = status_table(judged)
    best = table[table["best"]]
    papers = pd.crosstab(best["paper"], best["outcome"], margins=True, margins_name="all")
    papers = papers.reindex(index=[*PAPERS, "all"], columns=[*_WORDS, "all"], fill_value=0)
    papers = papers.rename(index=PAPERS).rename_axis("paper").reset_index()
    scales = pd.crosstab(best["scale"].replace("", "none"), best["outcome"])
    scales = scales.reindex(index=[*_LEVELS, "none"], columns=list(_WORDS), fill_value=0)
    return (
        f"All {len(best)} tables and figures of the four papers, each judged by "
        f"[a rule fixed before the run](results). Runs of this book: profile `{profile}`.\n\n"
        f"{_myst_table('Outcomes by paper', 'status-papers', papers)}\n\n"
        f"{_myst_table('Outcomes by scale', 'status-scales', scales.rename_axis('scale').reset_index())}\n"
    )


def results_markdown(judged: Sequence[Judged], *, pages: Collection[str]) -> str:
    """The page of results as MyST: a section per paper, a row per target, and all evidence below.

    Args:
        judged: Result of `judge`.
        pages: Notebooks that have a page in the book; only these are linked.
    """
    parts = [_section(paper, [one for one in judged if one.rule.paper == paper], pages) for paper in PAPERS]
    return "\n\n".join([*parts, f"All rows: {{download}}`{CSV_NAME} </_generated/data/{CSV_NAME}>`."]) + "\n"


def _section(paper: str, judged: Sequence[Judged], pages: Collection[str]) -> str:
    rows, seen = [], set[str]()
    for one in judged:
        first = one.rule.target not in seen
        seen.add(one.rule.target)
        rows.append(
            {
                "Item": _link(one, pages) if first else "",
                "The paper's claim": _claim(one.rule) if first else "further evidence",
                "Outcome": _outcome(one.outcome),
                "Evidence": _sources(one) or "–",
            }
        )
    name = f"results-{paper.replace('_', '-')}"
    return f"## {escaped(PAPERS[paper])}\n\n{_myst_table(escaped(PAPERS[paper]), name, pd.DataFrame(rows))}"


def _claim(rule: Rule) -> str:
    return _lines(escaped(rule.claim), escaped(rule.printed and f"Printed: {rule.printed}"))


def _outcome(outcome: Outcome) -> str:
    one = outcome.closest
    word = f"**{outcome.word}**" + (f": {escaped(outcome.reason)}" if outcome.reason else "")
    return _lines(word, escaped(f"Closest: {one}, claimed {one.term.limits}" if one else ""))


def _sources(one: Judged) -> str:
    facts = _joined(run.scale.facts for run in one.runs)
    notes = _joined(run.evidence.note for run in one.runs)
    commands = {run.notebook: run.command for run in reversed(one.runs) if run.command}
    short = [
        f"`{text}`" if len(text) <= _LONGEST_COMMAND else "command in the CSV" for text in commands.values()
    ]
    scale = escaped(f"{one.level}: {facts}") if one.level else ""
    return _lines(scale, _seeds_by_origin(one.runs), escaped(notes), "; ".join(short))


def _seeds_by_origin(runs: Sequence[Run]) -> str:
    """Which seeds were run here, and which on another occasion."""
    parts = []
    for origin in dict.fromkeys(run.origin for run in runs):
        seeds = _seeds([run for run in runs if run.origin == origin])
        named = f"seed{'s' if len(seeds) > 1 else ''} {', '.join(seeds)}" if seeds else ""
        parts.append(" ".join(filter(None, [named, origin or (named and "run here")])))
    return "; ".join(filter(None, parts))


def _seeds(runs: Sequence[Run]) -> list[str]:
    return sorted({run.seed for run in runs} - {"None"})


def _lines(*parts: str) -> str:
    """The parts of a cell, one below the other."""
    return "<br>".join(filter(None, parts))


def _myst_table(caption: str, name: str, table: pd.DataFrame) -> str:
    return f"````{{table}} {caption}\n:name: tbl-{name}\n\n{pipe_table(table)}\n````"


def _link(one: Judged, pages: Collection[str]) -> str:
    page = next((name for name in one.rule.notebooks if name in pages), None)
    whole = one.rule.item.replace(" ", "\N{NO-BREAK SPACE}")
    return f"{{doc}}`{whole} </notebooks/{page}>`" if page else whole
