"""Evidence on a table or figure of a paper: a sample for every comparison of its rule, and the scale."""

import difflib
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from paperlib.core import check_choice
from paperlib.papers.verdict.rules import TargetRule, Unit, rules

Level = Literal["paper's scale", "paper's data", "substitute", "made-up data"]
"""The paper's data, sizes and models; its data with other sizes or models; other data; a rehearsal, which
decides nothing."""


@dataclass(frozen=True)
class Scale:
    """How near a run is to the paper's."""

    level: Level
    facts: str  # data, sizes and models, in words

    def __post_init__(self) -> None:
        check_choice("level", self.level, Level)
        if not self.facts.strip():
            raise ValueError("facts: expected data, sizes and models in words")


@dataclass(frozen=True)
class Estimate:
    """A number whose standard error is known otherwise than from repetitions; 0 where it is exact."""

    value: float
    error: float = 0.0


Sample = Sequence[float] | Estimate
"""One value per repetition (none: not measured), or an estimate with its error."""


@dataclass(frozen=True)
class Evidence:
    """What a run measured for one table or figure.

    Attributes:
        target: Id of the table or figure.
        unit: What the values are repetitions of.
        values: Name of each term of the rule to its sample, or to several, by setting, level or panel.
        note: What a reader must know of these values; may be empty.
        reading: Which of the rule's readings of the paper the values follow; empty where it has none.

    >>> Evidence("nid-figure-03", "set", {"p falls": Estimate(1.4)})
    Traceback (most recent call last):
        ...
    ValueError: values: the rule of nid-figure-03 has the terms p falls, null uniform; got p falls
    """

    target: str
    unit: Unit
    values: Mapping[str, Sample | Mapping[str, Sample]]
    note: str = ""
    reading: str = ""

    def __post_init__(self) -> None:
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
                about = f"{self.target}, {name} {label}".strip()
                raise ValueError(f"values: expected finite numbers, got {np.asarray(numbers)} for {about}")

    @property
    def rule(self) -> TargetRule:
        known = rules()
        if self.target not in known:
            near = difflib.get_close_matches(self.target, known, n=3, cutoff=0.5) or list(known)
            raise ValueError(
                f"target: {self.target!r} is not in the list of targets; did you mean {', '.join(near)}?"
            )
        return known[self.target]

    def samples(self) -> dict[tuple[str, str], Sample]:
        """Every sample by the name of its term and its label, "" where a term has one sample alone."""
        return {
            (name, label): sample
            for name, samples in self.values.items()
            for label, sample in (samples if isinstance(samples, Mapping) else {"": samples}).items()
        }

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON-ready values; `from_dict` reads them."""
        values: dict[str, dict[str, Any]] = {name: {} for name in self.values}
        for (name, label), sample in self.samples().items():
            exact = isinstance(sample, Estimate)
            values[name][label] = asdict(sample) if exact else [float(value) for value in sample]
        about = {"target": self.target, "unit": self.unit, "values": values, "note": self.note}
        return about | ({"reading": self.reading} if self.reading else {})


def from_dict(line: Mapping[str, Any]) -> tuple[Evidence, Scale]:
    """Evidence and scale as `record` wrote them into a result file."""
    values = {
        name: {label: Estimate(**one) if isinstance(one, dict) else one for label, one in samples.items()}
        for name, samples in line["values"].items()
    }
    evidence = Evidence(line["target"], line["unit"], values, line["note"], line.get("reading", ""))
    return evidence, Scale(line["level"], line["facts"])
