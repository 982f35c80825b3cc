"""What the number of an audit speaks of, as values that every decision reads."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

Adjacency = Literal["add/remove", "replace", "label", ""]
"""What two neighbouring training sets differ in: a record that is there or not, one record in
another's place, or one label in another's place; "" where the number speaks of no neighbours.
"""
Sided = Literal["one", "two"]
"""Whether a number is a one-sided bound, or comes with a two-sided interval."""
ScoreDirection = Literal["higher", "lower", ""]
"""Which scores point to members; "" where the audit takes no scores."""

Forgotten = Literal["known", "forced", ""]
"""What an audit of forgetting shows of forgotten records: they are still known, they were forced
below records that were never seen, or "" for no difference.
"""

NAMES_GIVEN = "the names given"
"""The unit of a record whose units have names that stand in no column; else a unit is the column's
name, or what an audit made, such as "canary".
"""


class RefusalCode(StrEnum):
    """Why the number of an audit is no answer."""

    REVERSED = "reversed"  # members score significantly less like members than others do
    OTHER_DIRECTION = "other_direction"  # the scores show a leak if they are read the other way
    EQUAL_SCORES = "equal_scores"  # most of the scores are one value
    NO_GUESS = "no_guess"  # the model's answers hold too few guesses
    NOT_COMPARABLE = "not_comparable"  # columns of a release are written unlike the records
    UNFAIR_DRAW = "unfair_draw"  # published versions of texts stand apart without the model


_DIRECTIONS = frozenset({RefusalCode.REVERSED, RefusalCode.OTHER_DIRECTION})


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """A reason why the number of an audit is no answer: no limit passes and no claim is judged.

    Attributes:
        code: What decisions read.
        sentence: What the reader is told; it stands first among the warnings of the result.
        steps: What to do first, most urgent first; empty where that is the same for every reason of
            this code.
    """

    code: RefusalCode
    sentence: str
    steps: tuple[str, ...] = ()

    @property
    def is_direction(self) -> bool:
        """Whether the direction of the scores, or who is a member, is in doubt."""
        return self.code in _DIRECTIONS


def reasons(*refusals: Refusal | None) -> tuple[Refusal, ...]:
    """The refusals that there are."""
    return tuple(refusal for refusal in refusals if refusal is not None)


@dataclass(frozen=True, kw_only=True)
class Doubt(Refusal):
    """A reason that chance brings in some sound audits: a result warns of it, and it closes no
    gate.
    """


def certain(refusals: Iterable[Refusal]) -> tuple[Refusal, ...]:
    """The refusals that are no mere doubts."""
    return tuple(refusal for refusal in refusals if not isinstance(refusal, Doubt))


@dataclass(frozen=True, kw_only=True)
class AgainstName:
    """A column that the user turned round, against its name.

    Attributes:
        column: The column, as messages call it.
        read_as: "scores" or "losses", as the user says.
        by_name: What its name points to.
    """

    column: str
    read_as: str
    by_name: str


@dataclass(frozen=True, kw_only=True)
class TwoMeasures:
    """Columns of two files, of members and of non-members, whose names are of different measures.

    Attributes:
        first_file, second_file: Names of the files.
        first, second: Names of their columns.
    """

    first_file: str
    first: str
    second_file: str
    second: str
