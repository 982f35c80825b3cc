"""The rules, one per table or figure: what is compared, by which margin, and what a verdict needs."""

import math
from dataclasses import dataclass
from functools import cache
from typing import Literal, cast

from paperlib.report import paper_table, targets

Unit = Literal["model", "game", "identifiers", "documents", "draw", "set", "exact"]
"""What is repeated, independently: everything from generator to model; split, coins and attacks on the same
models; clusters of scores of one model; documents of a corpus; simulated data; sets of identifiers; nothing,
since the value is exact."""


@dataclass(frozen=True, kw_only=True)
class Term:
    """One comparison of a rule."""

    name: str  # by which evidence gives its values
    claimed: bool  # by the paper; the others must hold for a verdict to be given
    at_least: float  # lower end of the claimed range; -inf for none
    at_most: float  # upper end; inf for none
    measure: str  # unit of measurement, such as "nats"; "share" for values that are 0 or 1

    @property
    def limits(self) -> str:
        """The claimed range in words."""
        ends = [(self.at_least, "at least"), (self.at_most, "at most")]
        limits = " and ".join(f"{word} {end:g}" for end, word in ends if math.isfinite(end))
        return f"{limits} {self.measure}".strip()


@dataclass(frozen=True, kw_only=True)
class TargetRule:
    """How a table or figure of a paper is judged."""

    target: str  # its id
    paper: str  # the paper's key
    item: str  # its place in the paper, such as "Table 3"
    claim: str  # what the paper claims, in words
    printed: str  # the paper's headline number
    notebooks: tuple[str, ...]  # which give evidence; where there are several, each is needed
    unit: Unit  # what must be repeated
    repetitions: int  # least number of repetitions
    runs: int  # least number of runs that differ in the seed alone
    own_data: bool  # whether only the paper's own data can decide
    widest: float  # undecided if every claimed interval is wider than this to each side
    contradicted_at: str  # the scale from which evidence can contradict the claim; empty for any
    contradicted_by: str  # what can, in words
    readings: tuple[str, ...]  # what the paper leaves open, each judged by itself; none where it is clear
    revised: str  # when the rule was changed after a look at outcomes, and why
    outcome_before: str  # what the rule before gave
    terms: tuple[Term, ...]  # no claimed one where the paper says nothing that could be false


@cache
def rules() -> dict[str, TargetRule]:
    """Every rule by the id of its target, in the papers' order."""
    terms: dict[str, list[Term]] = {}
    for row in paper_table("rules", as_printed=True).to_dict("records"):
        term = Term(
            name=row["name"],
            claimed=row["role"] == "claimed",
            at_least=float(row["at_least"] or "-inf"),
            at_most=float(row["at_most"] or "inf"),
            measure=row["measure"],
        )
        terms.setdefault(row["target"], []).append(term)
    return {
        row["id"]: TargetRule(
            target=row["id"],
            paper=row["paper"],
            item=row["item"],
            claim=row["claim"],
            printed=row["headline"],
            notebooks=tuple(row["notebook"].split("; ")),
            unit=cast(Unit, row["unit"]),
            repetitions=int(row["repetitions"] or 1),
            runs=int(row["runs"] or 1),
            own_data=row["own_data"] == "yes",
            widest=float(row["widest"] or "inf"),
            contradicted_at=row["contradicted_at"],
            contradicted_by=row["contradicted_by"],
            readings=tuple(filter(None, row["readings"].split("; "))),
            revised=row["revised"],
            outcome_before=row["outcome_before"],
            terms=tuple(terms.get(row["id"], ())),
        )
        for row in targets().to_dict("records")
    }
