"""What an audit of forgetting supports, takes for granted and advises."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from paperlib.core.facts import Forgotten
from paperlib.core.results import round_down, round_up
from paperlib.words.claims import ceiling_note
from paperlib.words.designs import SCORE_DEPENDS

if TYPE_CHECKING:
    from paperlib.bounds.forgetting import ForgettingResult
    from paperlib.core.results import AuditResult

MAIN_TITLE = "Forgotten against never seen, both directions"
MAIN_PURPOSE = (
    "The main number: a lower bound on the epsilon between a forgotten record and one that was "
    "never seen, from one model."
)
TITLES = (
    "Forgotten records fit too well: still known",
    "Forgotten records fit too badly: forced forgetting",
)
PURPOSE = "One of the two directions, with half of the error."
"""Title and purpose of the main number and of its two directions."""

CONDITION = (
    "assumes that a fair coin tossed before training decided which record of each pair was trained "
    "on and then forgotten, and which was never seen: it speaks of exchanging the two"
)
"""What must stand beside the number."""

_PAIRS = (
    "in each pair a fair coin of its own, tossed before training, decided which record was trained "
    "on and then forgotten; the other one was used neither in training nor in forgetting"
)
_PROCEDURE = (
    "the bound speaks of training and forgetting with their randomness, not of this one model"
)
_HALVES = "each of the two directions is tested with half of the error"
_EXCHANGE = "exchanging a forgotten record for one that was never seen"


_GUESSES = (
    "in each pair the record that fits better (in the other direction: worse) is guessed to be the "
    "forgotten one, the pairs that differ most first; pairs of equal scores count as wrong; "
    "threshold search: "
)


def assumptions(search: str) -> tuple[str, ...]:
    """Conditions of the bound, whose number of guesses was searched as ``search`` says."""
    return (_PAIRS, SCORE_DEPENDS, f"{_GUESSES}{search}", _HALVES, _PROCEDURE)


def claim(epsilon: float, delta: float, confidence: float, ceiling: float) -> str:
    """The sentence that the bound supports, nats; ``ceiling`` is the most it could have been."""
    if epsilon > 0:
        return (
            f"With confidence {confidence:g}, training and forgetting together are not (epsilon, "
            f"{delta:g})-indistinguishable under {_EXCHANGE} for any epsilon below "
            f"{round_down(epsilon):.3f}."
        )
    if ceiling <= 0:
        return (
            f"So few pairs cannot refute any epsilon under {_EXCHANGE} (delta = {delta:g}, "
            f"confidence {confidence:g}): nothing is learned from this audit."
        )
    return (
        f"At confidence {confidence:g} this audit refutes no epsilon under {_EXCHANGE} (delta = "
        f"{delta:g}), and could have refuted at most {round_up(ceiling):.3f}. It does not show "
        "that the records are forgotten."
    )


_STATES: dict[Forgotten, str] = {
    "known": "forgotten records still known",
    "forced": "forced forgetting",
    "": "no difference shown",
}


def headline(result: "ForgettingResult") -> str:
    """The bound, nats, on one line, with its direction and the guesses behind it."""
    return (
        f"ε ≥ {round_down(result.epsilon):.3f}, {_STATES[result.state]} (δ = {result.delta:g}, "
        f"confidence {result.confidence:g}; {result.correct} of {result.guesses} guesses right, "
        f"{result.total} pairs)"
    )


def directions_note(too_well: float, too_badly: float) -> str:
    """The bounds of both directions, nats, in one sentence."""
    return (
        f"Forgotten records that fit too well show {round_down(too_well):.3f}, and those that fit "
        f"too badly {round_down(too_badly):.3f}; both hold together."
    )


def most_of_pairs(pairs: int, ceiling: float) -> str:
    """The most that an audit of so many pairs can show, in one sentence."""
    return ceiling_note(pairs, ceiling, what="pairs")


HALF = (
    "An exchange forgets one record and trains on another: forgetting one record, against never "
    "having had it, has an epsilon of at least half of the bound at delta = 0."
)
"""What the bound says of forgetting alone."""

NO_UTILITY = (
    "No utility was given: a model that no longer works shows no difference either, so look at its "
    "accuracy on other records."
)
"""What stands in place of a utility."""


def utility_note(before: float, after: float) -> str:
    """The utility of the model before and after forgetting, as it was given."""
    return (
        f"Utility before forgetting {before:g}, after it {after:g}, as given: a model that no "
        "longer works shows no difference either."
    )


EXPOSED = "pairs been ranked first, with the forgotten record on the side that is tested,"
"""What exposed pairs are; the end of "had k of n ..."."""

GUESSED = "which of two records, like each other, was trained on and then forgotten"
"""What whoever sees the model guesses."""

NO_PROOF = (
    "That does not show that the records are forgotten: a better attack or more pairs may find a "
    "difference."
)
"""What stands after a bound of 0."""

KEPT = "a promise that allows fewer right guesses does not hold for this way to forget."
"""What a bound above 0 refutes, as the end of a sentence."""

_STEPS: dict[Forgotten, str] = {
    "known": (
        "Train again without the forgotten records, or forget by a method that this audit finds no "
        "difference with: these records are still known."
    ),
    "forced": (
        "Forget less: these records fit worse than records that were never seen, which tells who "
        "was forgotten. Stop at the loss of unseen records outside the pairs."
    ),
    "": (
        "Look at the utility of the model beside this number, and try a stronger attack, before "
        "you rely on it."
    ),
}


def steps(result: "AuditResult") -> Iterator[str]:
    """What to do first after an audit of forgetting; the result of another design has no state and
    is taken for one without a difference.
    """
    state = cast(Forgotten, getattr(result, "state", ""))
    yield _STEPS[state]
