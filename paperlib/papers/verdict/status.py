"""All tables and figures of the papers with their outcomes, a row for each."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np
import pandas as pd

from paperlib.papers.verdict.evidence import (
    Estimate,
    Evidence,
    Level,
    Scale,
    TargetRule,
    from_dict,
    rules,
)
from paperlib.papers.verdict.outcome import MOST_REPETITIONS, Outcome, Word, decide, pool
from paperlib.papers.verdict.records import compared

CSV_NAME = "status.csv"
LEVELS: tuple[Level, ...] = get_args(Level)[:-1]  # no made-up data on the page


@dataclass(frozen=True)
class Run:
    """Evidence of one run on one target."""

    notebook: str
    setting: (
        str  # its parameters but the seed, as text: runs that differ in the seed alone are pooled
    )
    seed: str
    evidence: Evidence
    scale: Scale
    origin: str  # when and on what it was measured; empty for a run of this book
    command: str  # what repeats it
    seconds: float = 0.0  # how long it took


@dataclass(frozen=True)
class JudgedTarget:
    """One target judged by runs of equal settings."""

    rule: TargetRule
    outcome: Outcome
    runs: tuple[Run, ...] = ()

    @property
    def reading(self) -> str:
        """The reading of the paper that its runs share; empty for several, or where the rule has
        none.
        """
        readings = {run.evidence.reading for run in self.runs}
        return readings.pop() if len(readings) == 1 else ""

    @property
    def level(self) -> Level | None:
        """The lowest scale of the runs."""
        levels: list[Level] = [one.scale.level for one in self.runs]
        return max(levels, key=LEVELS.index, default=None)

    @property
    def to_decide(self) -> str:
        """What would decide an undecided target if mean and spread stay as they are, and its
        cost.
        """
        more, told = self.outcome.more, any("measured" in run.scale.facts for run in self.runs)
        hours = (
            0.0 if told else sum(run.seconds for run in self.runs) / 3600
        )  # told: the facts say how long
        if self.outcome.word != "undecided" or math.isnan(more) or more == 1:
            return ""
        if math.isinf(more):
            spent = f"; these took {hours:.1f} hours" if hours else ""
            return f"other settings, not {MOST_REPETITIONS:,} repetitions{spent}"
        spent = f": {more * hours:.1f} hours in place of {hours:.1f}" if hours else ""
        return f"about {more:,.{int(more < 10)}f} times the repetitions{spent}"

    @property
    def rank(self) -> tuple[int, bool, int]:
        """Smaller is better: the nearer scale, then what lacks no measurement, then the more
        repetitions.
        """
        samples = [one for run in self.runs for one in run.evidence.samples().values()]
        values = sum(1 if isinstance(one, Estimate) else len(one) for one in samples)
        lacks = self.outcome.reason.startswith("not measured")
        return LEVELS.index(self.level) if self.level else len(LEVELS), lacks, -values


def judge(
    runs: Iterable[Mapping[str, Any]], measured: Iterable[Mapping[str, Any]] = ()
) -> list[JudgedTarget]:
    """Every target by the evidence at hand, at least one entry each, its best evidence first."""
    kept = [one for run in measured for one in _evidence(run, committed=True)]
    # A page that shows the table of a committed run records its evidence again: that run alone
    # counts.
    every = [one for run in runs for one in _evidence(run) if not _repeats(one, kept)] + kept
    judged: list[JudgedTarget] = []
    for target, rule in rules().items():
        own = _judged(rule, [one for one in every if one.evidence.target == target])
        own = sorted(own, key=lambda one: one.rank)
        together = [_over_readings(rule, own)] if rule.readings and own else []
        judged += [*together, *own] or [JudgedTarget(rule, Outcome("not yet"))]
    return judged


def _repeats(one: Run, kept: Iterable[Run]) -> bool:
    """Whether a run of another setting has the same value of each repetition; exact ones are equal
    anyhow.
    """
    exact = all(
        isinstance(sample, Estimate) or not len(sample)
        for sample in one.evidence.samples().values()
    )
    return not exact and any(
        one.setting != run.setting and one.evidence == run.evidence for run in kept
    )


def _evidence(run: Mapping[str, Any], *, committed: bool = False) -> Iterator[Run]:
    """Evidence of a result file but that on made-up data."""
    # Empty parameters count as absent: earlier runs lack parameters that came later.
    parameters = {
        name: value for name, value in run["parameters"].items() if value not in ("", [], {})
    }
    setting = repr(sorted((name, value) for name, value in parameters.items() if name != "seed"))
    seed, by = repr(run["parameters"].get("seed")), run["provenance"]
    measured = f"measured {str(by.get('date', ''))[:10]} on {by.get('gpu') or by.get('cpu')}"
    origin, command = measured if committed else "", by.get("command", "")
    for evidence, scale in map(from_dict, run["records"]):
        if scale.level != "made-up data":
            seconds = float(by.get("seconds", 0.0))
            yield Run(run["notebook"], setting, seed, evidence, scale, origin, command, seconds)


def _judged(rule: TargetRule, runs: Sequence[Run]) -> list[JudgedTarget]:
    """One outcome for each setting; where a rule needs several notebooks, one from the best of
    each.
    """
    settings: dict[tuple[str, ...], dict[str, Run]] = {}
    for one in runs:  # a seed that was run here and elsewhere counts once
        setting = (
            one.notebook,
            one.setting,
            one.scale.level,
            one.scale.facts,
            one.evidence.reading,
        )
        group = settings.setdefault(setting, {})
        if all(
            other.evidence != one.evidence for other in group.values()
        ):  # and so does a committed table
            group.setdefault(one.seed, one)
    alone = [_decided(rule, [list(group.values())]) for group in settings.values()]
    if len(rule.notebooks) == 1 or not alone:
        return alone
    best = [
        min((one for one in alone if one.runs[0].notebook == name), key=lambda one: one.rank)
        for name in dict.fromkeys(one.notebook for one in runs)
    ]
    return [_decided(rule, [one.runs for one in best])]


def _decided(rule: TargetRule, groups: Sequence[Sequence[Run]]) -> JudgedTarget:
    """The outcome of the runs of each notebook."""
    evidence = {group[0].notebook: pool([one.evidence for one in group]) for group in groups}
    judged = JudgedTarget(rule, Outcome("not yet"), tuple(one for group in groups for one in group))
    level = judged.level or LEVELS[-1]
    return replace(judged, outcome=decide(rule, evidence, level, seeds=min(map(len, groups))))


def _over_readings(rule: TargetRule, judged: Sequence[JudgedTarget]) -> JudgedTarget:
    """What all readings of the paper agree on, by the best evidence in each."""
    best = {
        reading: [one for one in judged if one.reading == reading][:1] for reading in rule.readings
    }
    words: dict[str, Word] = {
        name: own[0].outcome.word if own else "not yet" for name, own in best.items()
    }
    own = [one for some in best.values() for one in some]
    contrasts = tuple(
        replace(contrast, label=", ".join(filter(None, [one.reading, contrast.label])))
        for one in own
        for contrast in one.outcome.contrasts
    )
    if len(every := set(words.values())) == 1:
        reasons = [f"{one.reading}: {one.outcome.reason}" for one in own if one.outcome.reason]
        most = float(np.max([one.outcome.more for one in own]))
        outcome = Outcome(every.pop(), "; ".join(["in each reading", *reasons]), contrasts, most)
    else:
        each = "; ".join(f"{reading}: {word}" for reading, word in words.items())
        reason = f"the paper can be read in several ways, which differ: {each}"
        outcome = Outcome("undecided", reason, contrasts)
    return JudgedTarget(rule, outcome, tuple(run for one in own for run in one.runs))


def status_table(judged: Sequence[JudgedTarget]) -> pd.DataFrame:
    """One row per entry of `judge`; ``best`` is true for one row of each target."""
    rows = [
        {
            "id": one.rule.target,
            "paper": one.rule.paper,
            "item": one.rule.item,
            "outcome": one.outcome.word,
            "reason": one.outcome.reason,
            "to_decide": one.to_decide,
            "reading": one.reading,
            "scale": one.level or "",
            "facts": joined(run.scale.facts for run in one.runs),
            "claim": one.rule.claim,
            "compared": "; ".join(compared(one.outcome)),
            "paper_number": one.rule.printed,
            "notebook": joined(run.notebook for run in one.runs) or "; ".join(one.rule.notebooks),
            "seeds": ", ".join(seeds_of(one.runs)),
            "command": joined(run.command for run in one.runs),
            "origin": joined(run.origin for run in one.runs),
            "note": joined(run.evidence.note for run in one.runs),
        }
        for one in judged
    ]
    table = pd.DataFrame(rows)
    table.insert(3, "best", ~table["id"].duplicated())
    return table


def joined(texts: Iterable[str]) -> str:
    """Different texts, one after the other."""
    return "; ".join(dict.fromkeys(filter(None, texts)))


def seeds_of(runs: Sequence[Run]) -> list[str]:
    return sorted({run.seed for run in runs} - {"None"}, key=int)
