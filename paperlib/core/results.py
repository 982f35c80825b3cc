"""What every audit returns: a frozen record that can say in one sentence what it supports."""

import dataclasses
import html
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from paperlib.core.facts import Adjacency, Doubt, Refusal, ScoreDirection, Sided, certain

if TYPE_CHECKING:
    import pandas as pd

RESULT_SCHEMA_VERSION = 2
"""Version of the JSON that a whole audit is written as; it rises when a field changes its meaning.
"""


def round_down(value: float, digits: int = 3) -> float:
    """Round to so many decimal ``digits`` toward minus infinity, as a lower bound must be shown;
    infinities and NaN as they are.
    """
    if not math.isfinite(value):
        return value
    scale = 10**digits
    return math.floor(value * scale) / scale


def round_up(value: float, digits: int = 3) -> float:
    """Round to so many decimal ``digits`` toward infinity, as the most that an audit could have
    shown must be shown.
    """
    return 0.0 - round_down(-value, digits)


def table(columns: Mapping[str, Any]) -> "pd.DataFrame":
    """A pandas table of columns by name."""
    import pandas as pd  # here, so that the bounds work without it

    return pd.DataFrame(dict(columns))


@dataclass(frozen=True, kw_only=True, eq=False)
class AuditResult(ABC):
    """Base of every audit result: the facts about its number, and the sentences that say them.

    Attributes:
        epsilon: The number as an epsilon, nats; None for a result that is no epsilon.
        delta: Delta of the guarantee that is tested, in [0, 1).
        confidence: Level at which the number holds, in (0, 1); None for one without.
        sided: Whether the number is a one-sided bound or comes with a two-sided interval.
        adjacency: What two neighbouring training sets differ in.
        unit: What one record is where it is not one row: a column's name, or what the audit made;
            "" for one row.
        copies: Number of copies of a record that come and go together, at least 1.
        total: Number of examples audited, abstentions included; None where there is no such count.
        guesses, correct: Number of guesses behind the number, and of those that are right; None
            where it rests on no guesses.
        ceiling: Largest value that so many examples could have shown, nats; None if not known.
        design: How membership was decided, as in ``result.schema.json``; None where it was not.
        direction: Which scores point to members.
        refusals: Why the number is no answer; empty for an answer. Doubts may be given among them.
        doubts: What chance brings in some sound audits too, and a warning says.
        coins, plan: The published hashes of the coins that told membership, and of the plan
            followed; "" for none.
        claim: The exact sentence the number supports, with confidence, adjacency and delta.
        assumptions: Conditions under which the claim holds.
        condition: The one assumption that a reader is likely to miss, shown beside the number; or
            empty.
        warnings: Problems of this very run that weaken its number, those of the refusals and doubts
            first.
        notes: What puts the number in proportion, such as the most that so many examples can show.
    """

    epsilon: float | None
    delta: float
    confidence: float | None
    total: int | None
    guesses: int | None
    correct: int | None
    ceiling: float | None
    sided: Sided = "one"
    adjacency: Adjacency = ""
    unit: str = ""
    copies: int = 1
    design: str | None = None
    direction: ScoreDirection = ""
    refusals: tuple[Refusal, ...] = ()
    doubts: tuple[Doubt, ...] = ()
    coins: str = ""
    plan: str = ""
    claim: str
    assumptions: tuple[str, ...]
    condition: str = ""
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        doubts = (refusal for refusal in self.refusals if isinstance(refusal, Doubt))
        object.__setattr__(self, "doubts", tuple(dict.fromkeys((*self.doubts, *doubts))))
        object.__setattr__(self, "refusals", certain(self.refusals))
        sentences = (reason.sentence for reason in (*self.refusals, *self.doubts))
        object.__setattr__(self, "warnings", tuple(dict.fromkeys((*sentences, *self.warnings))))

    def __init_subclass__(cls) -> None:
        # `dataclass` writes a repr of all fields into every subclass that does not hold one of its
        # own.
        if "__repr__" not in cls.__dict__:
            cls.__repr__ = AuditResult.__repr__

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.headline})"

    @property
    def curve(self) -> "pd.DataFrame | None":
        """The bound over guess counts, with columns guesses, bound and more; None without a
        search.
        """
        return None

    @property
    def most(self) -> float | None:
        """The largest epsilon that so many examples could have shown, nats; None if not known."""
        return self.ceiling

    @property
    def remarks(self) -> tuple[str, ...]:
        """The notes, and what else is known by now: reading them computes nothing."""
        return self.notes

    def seen(self) -> str:
        """What the audit would have seen, in a sentence that may take a moment; "" if not known."""
        return ""

    @property
    @abstractmethod
    def headline(self) -> str:
        """The number with its name, on one line, lower bounds rounded down."""

    def __str__(self) -> str:
        lines = [self.headline, *([self.condition] if self.condition else []), ""]
        lines += [f"Claim: {self.claim}", *self.remarks, "", "Assumptions:"]
        lines += [f"  - {text}" for text in self.assumptions]
        lines += [f"Warning: {text}" for text in self.warnings]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Headline, claim, warnings and assumptions as a notebook shows them, every text
        escaped.
        """
        condition = f"<p><em>{html.escape(self.condition)}</em></p>" if self.condition else ""
        items = "".join(f"<li>{html.escape(text)}</li>" for text in self.assumptions)
        warnings = "".join(
            f"<p><strong>Warning:</strong> {html.escape(text)}</p>" for text in self.warnings
        )
        return (
            f"<div class='audit-result'><p><strong>{html.escape(self.headline)}</strong></p>"
            f"{condition}<p>{html.escape(' '.join((self.claim, *self.remarks)))}</p>{warnings}"
            f"<details><summary>Assumptions</summary><ul>{items}</ul></details></div>"
        )

    def to_dict(self) -> dict[str, Any]:
        """Every field as JSON-ready values; infinities become the strings "inf" and "-inf"."""
        return {
            field.name: json_ready(getattr(self, field.name))
            for field in dataclasses.fields(self)
            if not field.name.startswith("_")
        }

    def to_frame(self) -> "pd.DataFrame":
        """One row with every field that holds one number, truth value or text; the others are left
        out.
        """
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        single = (str, int, float, type(None))
        return table({name: [value] for name, value in values.items() if isinstance(value, single)})


@dataclass(frozen=True, kw_only=True)
class ScoreAudit:
    """One audit of membership scores, or the reason why it was refused.

    ``kind`` is "lower bound", "measurement" or "baseline".
    """

    title: str
    kind: str
    purpose: str
    result: AuditResult | None = None
    refused: str = ""

    def __str__(self) -> str:
        lines = [f"{self.title} ({self.kind})"]
        if self.result is None:
            lines += [f"not possible: {self.refused}"]
        else:
            lines += [
                self.result.headline,
                *([self.result.condition] if self.result.condition else []),
            ]
            lines += [self.result.claim, *self.result.remarks]
            lines += [f"Warning: {text}" for text in self.result.warnings]
        return "\n  ".join(lines)

    def with_claim(self, sentence: str, *assumptions: str, **facts: Any) -> "ScoreAudit":
        """The audit with one more sentence in its claim, further assumptions, and the facts that
        they say, by the names of the fields of `AuditResult`; a refused audit stays as it is.
        """
        if self.result is None:
            return self
        changed = dataclasses.replace(
            self.result,
            claim=" ".join(filter(None, (self.result.claim, sentence))),
            assumptions=(*self.result.assumptions, *assumptions),
            **facts,
        )
        return dataclasses.replace(self, result=changed)

    def to_dict(self) -> dict[str, Any]:
        """Every field as JSON-ready values, with the headline of the result."""
        fields = {name: getattr(self, name) for name in ("title", "kind", "purpose", "refused")}
        if self.result is None:
            return {**fields, "result": None}
        return {**fields, "headline": self.result.headline, "result": self.result.to_dict()}


def json_ready(value: Any) -> Any:
    """Turn numpy values, tuples, mappings and dataclasses, also within each other, into what
    ``json.dumps`` takes: lists, dictionaries by text, and NaN and infinities as text.
    """
    if isinstance(value, Mapping):
        return {str(key): json_ready(item) for key, item in cast(Mapping[Any, Any], value).items()}
    if isinstance(value, np.ndarray | tuple | list):
        return [json_ready(item) for item in cast(list[Any], value)]
    if isinstance(value, np.generic):
        return json_ready(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: json_ready(getattr(value, f.name)) for f in dataclasses.fields(value)}
    return value
