"""The rules, one per table or figure: what is compared, by which margin, and what a verdict needs."""

import difflib
import math
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, cast

from paperlib.report import paper_table, targets

Unit = Literal["model", "game", "identifiers", "documents", "draw", "set", "exact"]
"""What is repeated, independently: everything from generator to model; split, coins and attacks on the same
models; clusters of scores of one model; documents of a corpus; simulated data; sets of identifiers; nothing,
since the value is exact."""


@dataclass(frozen=True, kw_only=True)
class Term:
    """One comparison of a rule.

    Attributes:
        name: Short name, by which evidence gives its values.
        claimed: True if the paper claims it; False if it must hold for a verdict to be given.
        quantity: What is measured, in words.
        at_least: Lower end of the claimed range; -inf for none.
        at_most: Upper end of the claimed range; inf for none.
        measure: Unit of measurement, such as "nats"; "share" for values that are 0 or 1.
    """

    name: str
    claimed: bool
    quantity: str
    at_least: float
    at_most: float
    measure: str

    @property
    def limits(self) -> str:
        """The claimed range in words."""
        ends = [(self.at_least, "at least"), (self.at_most, "at most")]
        limits = " and ".join(f"{word} {end:g}" for end, word in ends if math.isfinite(end))
        return f"{limits} {self.measure}".strip()

    def __str__(self) -> str:
        return f"{self.quantity}: {self.limits}"


@dataclass(frozen=True, kw_only=True)
class Rule:
    """How a table or figure of a paper is judged.

    Attributes:
        target: Its id.
        paper: The paper's key.
        item: Its place in the paper, such as "Table 3".
        claim: What the paper claims, in words.
        printed: The paper's headline number.
        notebooks: Notebooks that give evidence; where there are several, each is needed.
        unit: What must be repeated.
        repetitions: Least number of repetitions.
        runs: Least number of runs that differ in the seed alone.
        own_data: True if only the paper's own data can decide.
        widest: Half-width; the target is undecided if every claimed interval is wider than this to each side.
        terms: The comparisons; no claimed one where the paper says nothing that could be false.
    """

    target: str
    paper: str
    item: str
    claim: str
    printed: str
    notebooks: tuple[str, ...]
    unit: Unit
    repetitions: int
    runs: int
    own_data: bool
    widest: float
    terms: tuple[Term, ...]

    @property
    def claims(self) -> tuple[Term, ...]:
        """The terms that the paper claims."""
        return tuple(term for term in self.terms if term.claimed)


@cache
def rules() -> dict[str, Rule]:
    """Every rule by the id of its target, in the papers' order.

    >>> rule = rules()["panoramia-table-02"]
    >>> print(rule.terms[0])
    c_lb, helper on generated data - no helper: at least 0.1 nats
    >>> rule.unit, rule.repetitions
    ('game', 5)
    """
    rows = paper_table("rules", as_printed=True).to_dict("records")
    return {
        row["id"]: _rule(row, tuple(_term(one) for one in rows if one["target"] == row["id"]))
        for row in targets().to_dict("records")
    }


def rule_of(target: str) -> Rule:
    """The rule of a table or figure."""
    known = rules()
    if target not in known:
        near = difflib.get_close_matches(target, known, n=3, cutoff=0.5) or list(known)
        raise ValueError(f"target: {target!r} is not in the list of targets; did you mean {', '.join(near)}?")
    return known[target]


def _rule(row: dict[Any, str], terms: tuple[Term, ...]) -> Rule:
    return Rule(
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
        terms=terms,
    )


def _term(row: dict[Any, str]) -> Term:
    return Term(
        name=row["name"],
        claimed=row["role"] == "claimed",
        quantity=row["quantity"],
        at_least=float(row["at_least"] or "-inf"),
        at_most=float(row["at_most"] or "inf"),
        measure=row["measure"],
    )
