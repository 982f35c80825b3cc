"""What an audit of labels supports, takes for granted and warns of."""

from typing import TYPE_CHECKING, Literal

from paperlib.core.results import round_down, round_up
from paperlib.words.claims import NEIGHBOURS
from paperlib.words.designs import SCORE_DEPENDS, THE_PROCEDURE

if TYPE_CHECKING:
    from paperlib.audits.labels import LabelsResult
    from paperlib.core.results import AuditResult

COPIES = "keep one row of each record"
"""What to do about records that stand several times."""

Basis = Literal["law", "unseen", "tossed"]
"""What parts a leak from proxies of another law: nothing, records that the model did not learn
from, or a coin tossed before training.
"""

CONDITIONS: dict[Basis, str] = {
    "law": (
        "finds epsilon plus the gap between the law of the proxies and that of the true labels, "
        "which was not measured: it speaks of replacing one label"
    ),
    "unseen": (
        "assumes that, without a leak, proxies are told from labels no better among the training "
        "records that the model is surest of than among as large a share of the unseen ones: it "
        "speaks of replacing one label"
    ),
    "tossed": (
        "assumes that a fair coin tossed before training decided which of two labels each record "
        "was trained with: it speaks of replacing one label"
    ),
}
"""What must stand beside every number."""

_INDEPENDENT = (
    "given the features, the label of each record and its proxy are independent draws, independent "
    "of all other labels, each of a law that is the same for all records with these features"
)
ASSUMPTIONS: dict[Basis, str] = {
    "law": f"{_INDEPENDENT}: a gap between the two laws counts as leakage",
    "unseen": (
        f"{_INDEPENDENT}; the unseen records were drawn like the training records, and the model "
        "learned nothing from them: the gap between the two laws is, on average, no larger among "
        "the training records that were guessed on than among as large a share of the unseen ones"
    ),
    "tossed": (
        "for each record a fair coin of its own, tossed before training, decided which of its two "
        "labels was trained on"
    ),
}
"""What the claim takes for granted of labels and proxies."""


def assumptions_after_gap(counts: int) -> tuple[str, ...]:
    """Conditions of the bound after the gap, which tries so many numbers of guesses."""
    return (
        ASSUMPTIONS["unseen"],
        SCORE_DEPENDS,
        "the pairs that the model is surest of are guessed: all, a half, a quarter and so on, and "
        "as large a share of those of the unseen records; threshold search: fixed numbers of "
        f"guesses and of guesses on unseen records, Bonferroni over {2 * counts}",
        THE_PROCEDURE,
    )


MEASURED_TITLE = "One training run, against unseen records"
MEASURED_PURPOSE = (
    "The main number: a lower bound on epsilon of label privacy, after the gap between proxies and "
    "labels, as records show it that the model did not learn from."
)
"""Title and purpose of the bound after the gap."""


def headline(result: "LabelsResult") -> str:
    """The number, nats, on one line: epsilon, or epsilon plus the gap of the proxies where that was
    not measured.
    """
    counts = (
        f"(δ = {result.delta:g}, confidence {result.confidence:g}; {result.correct} of "
        f"{result.guesses} guesses right, {result.total} examples)"
    )
    if result.epsilon is None or result.gap is None:
        return f"ε + gap of the proxies ≥ {round_down(result.epsilon_plus_gap):.3f} {counts}"
    return (
        f"ε ≥ {round_down(result.epsilon):.3f} {counts}, after a gap of the proxies of at most "
        f"{round_up(result.gap):.3f} ({result.gap_correct} of {result.gap_guesses} guesses on "
        "unseen records right)"
    )


def claim_with_gap(epsilon_plus_gap: float, result: "AuditResult") -> str:
    """The sentence that a bound on epsilon plus the gap, nats, supports at the delta and the
    confidence of the result.
    """
    return (
        f"With confidence {result.confidence:g}, epsilon and the gap between the laws of proxies "
        f"and labels are together at least {round_down(epsilon_plus_gap):.3f} under "
        f"{NEIGHBOURS['label']} (delta = {result.delta:g}). This is no lower bound on epsilon "
        "alone: give unseen labelled records for one."
    )


def seldom_equal(equal: int, records: int, chance: float) -> str:
    """The warning that proxies equal the label in few records.

    Args:
        equal: How many of ``records`` do.
        chance: Probability, at most, of so few if both are of one law.
    """
    return (
        f"proxies: {equal} of {records} equal the label, so few by chance {chance:.2g} at most: "
        "proxies drawn to differ from it look like a leak; pairs that agree belong to the data"
    )


def uneven_class(number: int, as_label: int, as_proxy: int, chance: float) -> str:
    """The beginning of a warning or an error about a class that is the label much more often than
    the proxy, or less.

    Args:
        number: Of the class.
        as_label, as_proxy: Records in which it is the label, and the proxy.
        chance: Probability of counts as uneven if both are of one law.
    """
    return (
        f"proxies: class {number} is the label in {as_label} records and the proxy in {as_proxy}, "
        f"which one law gives with probability {chance:.2g}"
    )


def uneven_class_warning(number: int, as_label: int, as_proxy: int, chance: float) -> str:
    """The warning about a class that is the label much more often than the proxy, or less;
    arguments as of `uneven_class`.
    """
    return f"{uneven_class(number, as_label, as_proxy, chance)}: another law looks like a leak"
