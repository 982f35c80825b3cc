"""What PANORAMIA says of a user's own data: of the null target, helpers, generator and columns."""

from math import ceil
from typing import TYPE_CHECKING

from paperlib.core import facts
from paperlib.core.results import round_down

if TYPE_CHECKING:
    from paperlib.audits.panoramia.folds import Shares
    from paperlib.audits.panoramia.memorization import Copies
    from paperlib.audits.panoramia.results import AucGain, NullCheck
    from paperlib.generators.text import CopiedText

TITLE = "Privacy audit with generated non-members"
"""The title of the document."""

GENERATED_TITLE = "PANORAMIA, generated non-members"
GENERATED_PURPOSE = "Known members against generated points."
REAL_TITLE = "Real non-members (RM;RN)"
REAL_PURPOSE = "The same attack on real examples the model was not trained on."
"""Titles and purposes of its two audits."""

AUC_TITLE = "What the model adds"
AUC_HEADINGS = ("AUC of the attack", "AUC of the baseline", "Difference [interval]")
"""The section on the areas of attack and baseline."""

NULL_NOT_CHECKED = "null not checked"
"""What stands beside a measurement without a null target."""

NO_HELPERS = (
    "without a label or train_again there are no helpers: the baseline sees the examples "
    "alone and may be weak"
)
"""The warning about a baseline without helpers."""


def auc_note(gain: "AucGain") -> str:
    """What the two areas are of, and what their difference is not."""
    return (
        f"The {100 * gain.confidence:g} % interval is that of the difference, since attack and "
        "baseline rank the same examples. No bound on epsilon."
    )


def answer_name(subject: str, title: str) -> str:
    """What one of the audits is called among the answers; ``subject`` is what was audited."""
    return f"{subject}: {title}"


def null_outcome(check: "NullCheck", limit: float) -> str:
    """What a null target gave, to be seen beside the number.

    ``limit`` is how far from 0 a mean may lie that passes, nats.
    """
    if check.games < 2:
        return "null not checked enough: one game"
    mean = round(check.mean, 2) + 0.0  # no minus before a zero
    # Away from the middle, so that the interval shown holds the whole one.
    low = round_down(check.low, 2)
    high = ceil(100 * check.high) / 100
    interval = f"null: {mean:.2f} [{low:.2f}, {high:.2f}]"
    if check.passes:
        return f"{interval}, passes"
    if abs(check.mean) <= limit:
        return f"{interval}, not shown to pass: more games would tell"
    if check.mean > 0:
        return f"{interval}, FAILS: so much of ε~ may be no leakage"
    return f"{interval}, FAILS: the attack is weaker than the baseline, and ε~ may be too small"


def unit_sentence(unit: str) -> str:
    """What one example is, for a claim; ``unit`` is the column that names the units, or
    `NAMES_GIVEN`.
    """
    named = "named by unit=" if unit == facts.NAMES_GIVEN else f"of {unit}"
    return f"One example is one unit {named}, with all its rows; one row of each was drawn."


def weak_helpers(shares: "Shares", ratio: float) -> str:
    """The warning that helpers learn too few members; ``ratio`` is enough of them, over those
    judged.
    """
    return (
        f"helpers learn {shares.ratio:.1f} times as many members as the {shares.judged} that are "
        f"judged, not {ratio:g} times: epsilon~ may be above 0 for a model that never saw the "
        "members; bring more members"
    )


def repeats_itself(copies: "Copies") -> str:
    """The warning about a generator whose examples equal one another."""
    return (
        f"the generator repeats itself: {copies.repeated:.1%} of its examples equal an "
        "earlier one; the audit takes them as independent draws"
    )


def memorises(copies: "Copies") -> str:
    """The warning about a generator whose examples equal what it learned, or lie too near."""
    return (
        f"the generator memorises: {copies.copied:.1%} of its examples equal one of its "
        f"training data (held-out data: {copies.copied_others:.1%}), and {copies.nearer:.0%} "
        "lie nearer to its training data than to as many held-out examples; stop its "
        "training earlier or give it more data"
    )


def copies_text(compared: "CopiedText") -> str:
    """The warning about a generator of texts that repeats its training text."""
    return (
        f"the generator copies: {compared.copied:.1%} of its chunks hold {compared.run} tokens in "
        f"a row of its training text (other real text: {compared.by_chance:.1%}); stop its "
        "training earlier or give it more text"
    )


def generated_members(copied: float) -> str:
    """The warning that this share of the generated rows are members."""
    return (
        f"{copied:.0%} of the generated rows are members, which no audit can tell apart: it misses "
        "what the target leaks; bring the rows of a generator that has not seen the members"
    )


def names_rows(column: object, values: int, rows: int) -> str:
    """The warning about a column with so many different values in so many rows."""
    return (
        f"column {column!r} has {values:,} different values in {rows:,} rows: "
        "it names rows, so the generator draws it without regard to the others, and helpers leave "
        "it out"
    )
