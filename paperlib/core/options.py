"""Named options of the public functions: each is checked once, where a user's value enters."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Literal, TypeVar

T = TypeVar("T")

READ_LIMIT = 8 << 30
"""Bytes that reading one file may take where nobody chose another limit, and memory allows it."""

Sides = Literal["both", "members"]
"""Guesses "member" and "non-member", or "member" alone."""

Guess = Literal["adaptive", Sides, "nonmembers", "grid"]
"""As `Sides`; "nonmembers": guesses "non-member" alone; "adaptive": what is guessed next depends on
the coins revealed so far; "grid": pairs of counts of both guesses from a fixed grid."""

Design = Literal["randomized", "game", "played"]
"""Fair coins decided membership before training; the audit draws a fair-coin subsample; or fair
coins decided who is shown after training, and nothing is drawn. The last two give bounds for
replacing one example.
"""

ScoreDesign = Literal[Design, "forget"]
"""As `Design`, of an audit of scores; "forget": in pairs of like records fair coins decided before
training which was trained on and then forgotten, and which was never seen.
"""

Search = Literal["anytime", "dyadic", "bonferroni", "split"]
"""Correction for testing many thresholds in a one-run audit."""

RecallSearch = Literal["union", "anytime"]
"""Correction for testing many recall levels in PANORAMIA."""

DeltaTerm = Literal["published", "sharp"]
"""Price of delta above 0 in a p-value."""

RankBound = Literal["tight", "paper"]
"""Chance of a true record to rank among the first: ours, or the paper's."""


Questions = Literal["edpb", "nist-226", "aisvs"]
"""Public texts whose questions a report answers: EDPB Opinion 28/2024, NIST SP 800-226 and OWASP
AISVS 1.0."""


def from_parameters(settings: type[T], values: Mapping[str, Any], **others: Any) -> T:
    """A dataclass with fields from a notebook's parameters of the same names; lists become tuples.

    ``values`` are such as ``globals()``: names that are no field are left out. ``others`` go before
    them.

    >>> from dataclasses import make_dataclass
    >>> sizes = make_dataclass("Sizes", ["widths", "seed"])
    >>> from_parameters(sizes, {"widths": [8, 4], "x": 1}, seed=3)
    Sizes(widths=(8, 4), seed=3)
    """
    names = {field.name for field in fields(settings)}  # pyright: ignore[reportArgumentType]
    field_values = {name: values[name] for name in names & set(values)}
    for name in field_values:
        if isinstance(field_values[name], list):
            field_values[name] = tuple(field_values[name])
    return settings(**{**field_values, **others})
