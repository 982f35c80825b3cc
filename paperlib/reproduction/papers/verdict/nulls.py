"""What PANORAMIA reports of models that were never trained on the members: a result of its own."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import pandas as pd

from paperlib.report.tables import pipe_table
from paperlib.reproduction.papers.verdict.contrasts import Contrast
from paperlib.reproduction.papers.verdict.evidence import TargetRule
from paperlib.reproduction.papers.verdict.records import anchor, escaped
from paperlib.reproduction.papers.verdict.status import JudgedTarget, each_once

_NULL = "null"  # the name of the condition in the rules


@dataclass
class Null:
    """One null target with its interval, on what it was measured, and the rules that need it."""

    contrast: Contrast
    facts: str
    rules: list[TargetRule] = field(default_factory=list)

    @property
    def above(self) -> bool:
        """Whether the whole interval lies above the margin: leakage that is not there."""
        return self.contrast.low > self.contrast.term.at_most

    @property
    def below_margin(self) -> bool:
        """Whether the whole interval lies below the upper end of the margin."""
        return self.contrast.high <= self.contrast.term.at_most


def nulls_of(judged: Sequence[JudgedTarget]) -> list[Null]:
    """The nulls of the best evidence, the largest first; one that several rules need stands once.

    ``judged`` has the best evidence on each target first. Nulls of a single repetition, which have
    no interval, are left out.
    """
    nulls: dict[tuple[str, float], Null] = {}  # by data and models, and value
    seen: set[str] = set()  # targets
    for entry in judged:
        if entry.rule.target in seen:
            continue
        seen.add(entry.rule.target)
        for contrast in entry.outcome.conditions:
            if contrast.term.name != _NULL or not math.isfinite(contrast.low):
                continue
            facts = _facts_of(entry, contrast)
            null = nulls.setdefault((facts, contrast.mean), Null(contrast, facts))
            null.rules.append(entry.rule)
    return sorted(nulls.values(), key=lambda null: -null.contrast.mean)


def _facts_of(entry: JudgedTarget, contrast: Contrast) -> str:
    """Data and models of a null: of the notebook that its label names, or else of all runs."""
    named = [run for run in entry.runs if contrast.label.startswith(f"{run.notebook}, ")]
    return each_once(run.scale.facts for run in named or entry.runs)


def null_markdown(judged: Sequence[JudgedTarget]) -> str:
    """The nulls as a section of the page of results in MyST; empty where none was measured."""
    nulls = nulls_of(judged)
    if not nulls:
        return ""
    margin = nulls[0].contrast.term
    above = [null for null in nulls if null.above]
    below = [null for null in nulls if null.below_margin]
    open_rows = len(nulls) - len(above) - len(below)
    largest = nulls[0].contrast
    counts = (
        f"Of {len(nulls)} nulls, {len(above)} lie above {margin.at_most:g} {margin.measure} with "
        f"the whole interval, {len(below)} below, and {open_rows} do neither. The largest is "
        f"{largest.mean:.2f} [{largest.low:.2f}, {largest.high:.2f}]."
    )
    return "\n\n".join(
        [
            "(the-null)=\n## PANORAMIA's null",
            "A *null target* is trained like the target, but never on the members, so that "
            "$\\tilde\\varepsilon$ should be 0 for it. "
            f"{counts} Where a null lies above, a part of the target's number is no leakage, and "
            "more seeds do not help. This is a result about the method itself; the paper has no "
            "null target.",
            pipe_table(pd.DataFrame([_row(null) for null in nulls])),
        ]
    )


def _row(null: Null) -> dict[str, str]:
    """A null as a row: its value, on what it was measured, and the tables and figures that need
    it.
    """
    contrast = null.contrast
    _, _, label = contrast.label.rpartition(", null")
    links = [f"{{ref}}`{rule.item} <{anchor(rule.target)}>`" for rule in null.rules]
    return {
        f"null, {contrast.term.measure}": f"{contrast.mean:.2f}",
        "interval": f"[{contrast.low:.2f}, {contrast.high:.2f}]",
        "setting": escaped(label.strip(" ,") or contrast.label),
        "data and models": escaped(null.facts),
        "needed by": ", ".join(links),
    }
