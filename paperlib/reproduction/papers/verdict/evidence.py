"""Rules, one per table or figure, and evidence: a sample for each comparison of its rule, and the
scale.
"""

import difflib
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from typing import Any, Literal, cast, get_args

import numpy as np

from paperlib.core.checks import check_choice
from paperlib.reproduction.exhibits import paper_table, targets
from paperlib.reproduction.papers.verdict.earlier import values_of_today
from paperlib.reproduction.papers.verdict.samples import Estimate, Sample

Unit = Literal["model", "game", "identifiers", "documents", "draw", "set", "exact"]
"""What is repeated, independently: everything from generator to model; split, coins and attacks on
the same models; clusters of scores of one model; documents of a corpus; simulated data; sets of
identifiers; nothing, since the value is exact."""


Role = Literal["claimed", "needed", "beside"]
"""What a comparison is for: claims decide about a target; what is needed must hold for a verdict
to be given; what stands beside is a further claim, with an outcome of its own alone."""

How = Literal["", "any data", "largest", "mean on public models"]
"""How a comparison is judged otherwise than by the interval of each of its samples: as a property
of a method, which any data can contradict; by one interval of the largest of the means; or, where
one public model has as few identifiers as the paper, by its mean."""


@dataclass(frozen=True, kw_only=True)
class Term:
    """One comparison of a rule."""

    name: str  # by which evidence gives its values
    role: Role
    at_least: float  # lower end of the claimed range; -inf for none
    at_most: float  # upper end; inf for none
    measure: str  # unit of measurement, such as "nats"; "share" for values that are 0 or 1
    on_substitute: float = math.nan  # lower end on a substitute; NaN for the same
    how: How = ""

    @property
    def claimed(self) -> bool:
        """Whether it decides about the target."""
        return self.role == "claimed"

    @property
    def bounded(self) -> bool:
        """Whether the range has an end; what has none is shown alone."""
        return math.isfinite(self.at_least) or math.isfinite(self.at_most)

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
    looks: int  # how often the target was judged, with this verdict
    error: float  # of this look, divided by the number of its deciding comparisons (Bonferroni)
    widest: float  # undecided if every claimed interval is wider than this to each side
    contradicted_at: str  # the scale from which evidence decides; empty for all but a substitute
    contradicted_by: str  # what can decide, in words
    parts: str  # data and models of the paper, in words
    readings: tuple[str, ...]  # of what the paper leaves open, each judged by itself; or none
    revised: str  # when the rule was changed after a look at outcomes, and why
    outcome_before: str  # what the rule before gave; of several, one after the other
    favour: str  # whom the change of the rule favoured: "authors", "neither" or "against" them
    terms: tuple[Term, ...]  # no claimed one where the paper says nothing that could be false

    def on(self, level: "Level") -> "TargetRule":
        """The rule for evidence of one scale: a substitute may need more, and one public model is
        one run whatever its seeds.
        """
        if level == "substitute":
            terms = tuple(_on_substitute(term) for term in self.terms)
            return replace(self, terms=terms)
        if self.unit == "identifiers":
            # It has all the identifiers there are, so that no look can be added.
            return replace(self, runs=1, error=_WHOLE_ERROR)
        return self

    def replaces_a_part(self, level: "Level") -> bool:
        """Whether evidence of this scale lacks a part that the claim is about: data, models or a
        generator. A substitute does; so does a scale that is farther from the paper than the one
        from which evidence decides.
        """
        if level == "substitute":
            return True
        levels = get_args(Level)  # the nearest to the paper first
        return bool(self.contradicted_at) and levels.index(level) > levels.index(
            self.contradicted_at
        )


def _on_substitute(term: Term) -> Term:
    """The term for a substitute: its own lower end, and the interval where public models have a
    mean.
    """
    at_least = term.at_least if math.isnan(term.on_substitute) else term.on_substitute
    how: How = "" if term.how == "mean on public models" else term.how
    return replace(term, at_least=at_least, how=how)


_WHOLE_ERROR = 0.05  # of all looks at a target together


def error_of_look(look: int) -> float:
    """The error that a look may spend, 0.05 / 2^look, counted from 1.

    The errors of all looks sum to less than 0.05 however many there become, which a share of the
    looks so far (0.05 / K as K grows) does not.
    """
    return _WHOLE_ERROR / 2**look


_AS_WRITTEN = (
    "paper",
    "item",
    "claim",
    "contradicted_at",
    "contradicted_by",
    "parts",
    "revised",
    "outcome_before",
    "favour",
)


@cache
def rules() -> dict[str, TargetRule]:
    """Every rule by the id of its target, in the papers' order."""
    terms: dict[str, list[Term]] = {}
    for row in paper_table("rules", as_printed=True).to_dict("records"):
        term = Term(
            name=row["name"],
            role=cast(Role, row["role"]),
            at_least=float(row["at_least"] or "-inf"),
            at_most=float(row["at_most"] or "inf"),
            measure=row["measure"],
            on_substitute=float(row["on_substitute"] or "nan"),
            how=cast(How, row["how"]),
        )
        terms.setdefault(row["target"], []).append(term)
    return {
        row["id"]: TargetRule(
            target=row["id"],
            printed=row["headline"],
            notebooks=tuple(row["notebook"].split("; ")),
            unit=cast(Unit, row["unit"]),
            repetitions=int(row["repetitions"] or 1),
            runs=int(row["runs"] or 1),
            own_data=row["own_data"] == "yes",
            looks=int(row["looks"]),
            error=error_of_look(int(row["looks"])),
            widest=float(row["widest"] or "inf"),
            readings=tuple(filter(None, row["readings"].split("; "))),
            terms=tuple(terms.get(row["id"], ())),
            **{name: row[name] for name in _AS_WRITTEN},
        )
        for row in targets().to_dict("records")
    }


Level = Literal["paper's scale", "paper's data", "substitute", "made-up data"]
"""The paper's data, sizes and models; its data with other sizes or models; other data; a rehearsal,
which decides nothing."""


@dataclass(frozen=True)
class Scale:
    """How near a run is to the paper's."""

    level: Level
    facts: str  # data, sizes and models, in words
    # whether the run took the measurement; not where it shows a table that another run kept
    measured_here: bool = True

    def __post_init__(self) -> None:
        check_choice("level", self.level, Level)
        if not self.facts.strip():
            raise ValueError("facts: expected data, sizes and models in words")


@dataclass(frozen=True)
class Evidence:
    """What a run measured for one table or figure.

    Attributes:
        target: Id of the table or figure.
        unit: What the values are repetitions of.
        values: Name of each term of the rule to its sample, or to several, by setting, level or
            panel.
        note: What a reader must know of these values; may be empty.
        reading: Which of the rule's readings of the paper the values follow; empty where it has
            none.

    >>> Evidence("nid-figure-03", "set", {"p falls": Estimate(1.4)})
    Traceback (most recent call last):
        ...
    ValueError: values: the rule of nid-figure-03 has the terms p falls, null uniform; got p falls
    """

    target: str
    unit: Unit
    values: Mapping[str, Sample | Mapping[str, Sample]]
    note: str = field(default="", compare=False)  # the same values count once, whatever it says
    reading: str = ""

    def __post_init__(self) -> None:
        """Refuse (ValueError) values that are not those of the rule's terms, NaN and infinities."""
        names = [term.name for term in self.rule.terms]
        if set(self.values) != set(names):
            raise ValueError(
                f"values: the rule of {self.target} has the terms {', '.join(names)}; "
                f"got {', '.join(self.values) or 'none'}"
            )
        check_choice("unit", self.unit, Unit)
        check_choice("reading", self.reading, ("", *self.rule.readings))
        for (name, label), sample in self.samples().items():
            numbers = [sample.value, sample.error] if isinstance(sample, Estimate) else list(sample)
            if not all(map(math.isfinite, numbers)):
                comparison = f"{self.target}, {name} {label}".strip()
                raise ValueError(
                    f"values: expected finite numbers, got {np.asarray(numbers)} for {comparison}"
                )

    @property
    def rule(self) -> TargetRule:
        """The rule of the target; a ValueError for a target without one, with similar names."""
        all_rules = rules()
        if self.target not in all_rules:
            similar = difflib.get_close_matches(self.target, all_rules, n=3, cutoff=0.5)
            names = ", ".join(similar or all_rules)
            raise ValueError(
                f"target: {self.target!r} is not in the list of targets; did you mean {names}?"
            )
        return all_rules[self.target]

    def samples(self) -> dict[tuple[str, str], Sample]:
        """Every sample by the name of its term and its label, "" where a term has one sample
        alone.
        """
        by_key: dict[tuple[str, str], Sample] = {}
        for name, samples in self.values.items():
            by_label = samples if isinstance(samples, Mapping) else {"": samples}
            for label, sample in by_label.items():
                by_key[name, label] = sample
        return by_key

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON-ready values; `from_dict` reads them."""
        values: dict[str, dict[str, Any]] = {name: {} for name in self.values}
        for (name, label), sample in self.samples().items():
            if isinstance(sample, Estimate):
                values[name][label] = asdict(sample)
            else:
                values[name][label] = [float(value) for value in sample]
        fields = {"target": self.target, "unit": self.unit, "values": values, "note": self.note}
        if self.reading:
            fields["reading"] = self.reading
        return fields


def from_dict(line: Mapping[str, Any]) -> tuple[Evidence, Scale]:
    """Evidence and scale from a line that `record` wrote into a result file, by today's terms.

    Raises ValueError for a target without a rule, and for values that are not finite.
    """
    kept_values = {
        name: {label: _sample(kept) for label, kept in samples.items()}
        for name, samples in line["values"].items()
    }
    values = values_of_today(line["target"], _term_names(line["target"]), kept_values)
    evidence = Evidence(line["target"], line["unit"], values, line["note"], line.get("reading", ""))
    # Records from before this field was added are of runs that measured, unless they have it.
    measured_here = line.get("measured_here", True)
    return evidence, Scale(line["level"], line["facts"], measured_here)


def _term_names(target: str) -> list[str]:
    """Names of the terms of a target; none of one without a rule, which `Evidence` refuses."""
    return [term.name for term in rules()[target].terms] if target in rules() else []


def _sample(kept: dict[str, float] | list[float]) -> Sample:
    """A sample as a result file has it: the fields of an estimate, or a list of values."""
    return Estimate(**kept) if isinstance(kept, dict) else kept
