"""How often two sides of texts are told apart without a model, where no model saw either.

``python -m paperlib.reproduction.entries.text_sides FILE`` counts them for the book, in minutes,
and goes on with the rows that FILE does not have.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np

from paperlib.audits.language.blind import blind_table
from paperlib.bounds import audit_one_run
from paperlib.core import MembershipScores
from paperlib.reproduction.entries.counting import (
    FIRST,
    SEED,
    Cells,
    count_rows,
    interval_cells,
)
from paperlib.reproduction.entries.made_up_rows import chosen

HEADING = "sides"
TEXTS = 100  # on each side
_KEYS, _COLON, _LINE_END = [1, 2, 3, 4, 5], 20, 21  # tokens that every text has
_OPENS, _CLOSES = 22, 23
_EXTRA = 24  # a token that texts of the second kind alone have
_FORM_KNOWN = 3.0  # how far a model that knows one kind ranks it above the other; chosen

Kind = Literal["word", "order"]
"""What the second kind of texts has: a word more, or two parts in another order."""


@dataclass(frozen=True)
class Sides:
    """Pairs of sides whose texts are of two kinds, in shares that differ or not.

    Attributes:
        kind: What tells the two kinds apart.
        difference: Share of texts of the second kind among the members, less that among the
            others; the mean of both is one half.
        files: Pairs drawn for the book.
    """

    kind: Kind
    difference: float
    files: int

    @property
    def name(self) -> str:
        """What the texts differ in, and by how much the shares do."""
        said = {"word": "a word more", "order": "two parts in another order"}[self.kind]
        if self.difference == 0:
            return f"{said}, in as many texts of both sides by coins"
        return f"{said}, in {100 * self.difference:g} % more of the members"


SIDES = {
    sides.name: sides
    for sides in (
        Sides("order", 0.0, 1_000),
        Sides("order", 0.1, 200),
        Sides("order", 0.3, 200),
        Sides("word", 0.1, 200),
        Sides("word", 0.3, 200),
        Sides("word", 0.0, 200),
    )
}


@dataclass(frozen=True)
class PairOutcome:
    """What is said of a pair of sides that no model saw."""

    is_apart: bool  #: by the test without the model
    is_above: bool  #: the bound of a model that knows the kinds of texts lies above 0


def outcome_of(name: str, number: int) -> PairOutcome:
    """The outcome of the pair of this number in a row of `SIDES`, drawn again each time."""
    sides = SIDES[name]
    rng = np.random.default_rng([SEED, number, *name.encode()])
    member = np.arange(2 * TEXTS) < TEXTS
    shares = 0.5 + sides.difference * (member - 0.5)
    is_second = rng.random(member.size) < shares
    make = chosen(rng, [_fields, _turns])
    texts = [make(rng, sides.kind, bool(second)) for second in is_second]
    table = blind_table(texts, member, {}, seed=number)
    scores = _FORM_KNOWN * is_second + rng.normal(size=member.size)
    bound = audit_one_run(
        MembershipScores(scores[member], scores[~member]), design="game", seed=number
    )
    return PairOutcome(bool(table["apart"].any()), bound.epsilon > 0)


def _parts(kind: Kind, is_second: bool) -> list[int]:
    """Names of the parts of a text, in their order."""
    parts = list(_KEYS)
    if is_second and kind == "order":
        parts[2:4] = parts[3], parts[2]
    return parts


def _values(rng: np.random.Generator, most: int) -> list[int]:
    """One to ``most`` tokens of a part, of numbers from 100 on."""
    return rng.integers(100, 180, rng.integers(1, most + 1)).tolist()


def _fields(rng: np.random.Generator, kind: Kind, is_second: bool) -> list[int]:
    """A text of fields: each key, a colon, its values and the end of a line."""
    text: list[int] = []
    for key in _parts(kind, is_second):
        text += [key, _COLON, *_values(rng, 4), _LINE_END]
    return text + [_EXTRA] * (is_second and kind == "word")


def _turns(rng: np.random.Generator, kind: Kind, is_second: bool) -> list[int]:
    """A chat: the mark of each role, and what it says."""
    text: list[int] = []
    for role in _parts(kind, is_second):
        text += [_OPENS, role, _CLOSES, *_values(rng, 20)]
    return text + [_EXTRA] * (is_second and kind == "word")


def counted(name: str, files: int) -> dict[str, int]:
    """Of so many pairs of a row of `SIDES`: those told apart, the bounds above 0 without that test,
    and those that it leaves.
    """
    outcomes = [outcome_of(name, number) for number in range(files)]
    return {
        "apart": sum(outcome.is_apart for outcome in outcomes),
        "above": sum(outcome.is_above for outcome in outcomes),
        "left": sum(outcome.is_above and not outcome.is_apart for outcome in outcomes),
    }


def count_sides(name: str, files: int) -> Cells:
    """The row of the table, with the counts of the first pairs beside those of all."""
    counts = counted(name, files)
    first = {f"{key}_of_first": count for key, count in counted(name, FIRST).items()}
    return {"files": files, **counts, **interval_cells(counts["apart"], files), **first}


if __name__ == "__main__":
    rows: dict[str, Callable[[], Cells]] = {
        name: partial(count_sides, name, sides.files) for name, sides in SIDES.items()
    }
    count_rows(Path(sys.argv[1]), HEADING, rows)
