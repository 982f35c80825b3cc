"""What is said of a model that completes identifiers: claim, conditions, warnings and remarks."""

from typing import TYPE_CHECKING, Literal

from paperlib.core.facts import Refusal, RefusalCode
from paperlib.core.results import round_down
from paperlib.words.directions import SAYS_NOTHING

if TYPE_CHECKING:
    from paperlib.audits.language.chat import ChatResult

DOCUMENT_TITLE = "Privacy audit of a model that writes text"
AUDIT_TITLE = "Identifiers completed"
PURPOSE = "How often the model writes the next digits of an identifier that was drawn at random."
"""What the audit asks, beside its title."""

TABLE_TITLE = "Best-known identifiers"
TABLE_TEXT = (
    "Leading digits right in the best answer, all in a hit. One in 16 has the first by luck."
)
"""What the numbers of the table of identifiers are."""

CONDITION = (
    "assumes that identifiers were drawn at random, and that the model answers without search: it "
    "speaks of replacing one identifier"
)
"""What must stand beside every number from completed identifiers."""

ASSUMPTIONS = (
    (
        "Identifiers were drawn at random as their kinds say, independently of each other and all "
        "else."
    ),
    (
        "Answers come from the trained model alone: it searches nothing, and keeps nothing of "
        "requests."
    ),
    ("Adjacency is replacement: its ε is up to twice the one for adding or removing one record."),
    "Questions and tries were fixed before the first answer, and every answer counts.",
)
"""What a bound takes for granted."""

Unfair = Literal["repeated", "checksum", "time", "in the text before"]
"""Why no fair question can be asked about an identifier."""
LEFT_OUT: dict[Unfair, str] = {
    "repeated": "stands more than once in the corpus",
    "checksum": "letter case is a checksum",
    "time": "UUID that holds a time",
    "in the text before": "last digits shown stand in the text before",
}
"""The reason as the log of what was left out says it."""

_LOOK = "look at what the model writes"


def headline(result: "ChatResult") -> str:
    """The bound, nats, on one line, with adjacency, delta, confidence and hits."""
    return (
        f"ε ≥ {round_down(result.epsilon):.3f} (replacement, δ = {result.delta:g}, confidence "
        f"{result.confidence:g}, {result.hits} of {result.total} identifiers completed)"
    )


def claim(model: str, epsilon: float, delta: float, confidence: float) -> str:
    """The sentence that the bound supports about the training of ``model``."""
    return f"With confidence {confidence:g}, {_refuted(model, epsilon, delta)}"


def _refuted(model: str, epsilon: float, delta: float) -> str:
    """Which values of epsilon, nats, the answers of ``model`` refute, as the end of a claim."""
    if epsilon <= 0:
        return (
            f"these answers of {model} refute no ε ≥ 0 at δ = {delta:g} under replacement of one "
            "identifier."
        )
    return (
        f"the training of {model} is not (ε, {delta:g})-differentially private for any ε below "
        f"{round_down(epsilon):.3f}, under replacement of one identifier, wherever it stands, "
        "by another of its kind: a lower bound on the training mechanism's ε."
    )


def note(total: int, p_value: float, bound_of_one: float, bound_of_all: float) -> str:
    """What the hits of ``total`` questions, a single one and all of them say.

    Args:
        total: Number of questions.
        p_value: Chance of so many hits, at most, if the model saw none of the identifiers.
        bound_of_one, bound_of_all: The bound on epsilon from one hit, and from a hit in every
            question, nats.
    """
    return (
        "A model that saw none of them completes so many with probability "
        f"{min(1, 1.05 * p_value):.2g} at most. One shows ε ≥ "
        f"{round_down(bound_of_one):.3f}, all {total} show "
        f"{round_down(bound_of_all):.3f}."
    )


def few_guesses(guessed: int, total: int) -> str:
    """The warning that fewer than half of the answers hold digits."""
    return f"{_digits_held(guessed, total)}; {_LOOK}"


def no_guesses(guessed: int, total: int) -> Refusal:
    """The refusal where too few answers hold digits to say anything."""
    sentence = f"{_digits_held(guessed, total)}, {SAYS_NOTHING}; {_LOOK}"
    return Refusal(code=RefusalCode.NO_GUESS, sentence=sentence, steps=(_LOOK,))


def _digits_held(guessed: int, total: int) -> str:
    """How many answers hold digits."""
    return f"{guessed} of {total} answers hold digits"


def equal_prompts(count: int) -> str:
    """The warning that so many prompts are like another one."""
    return f"{count} prompts are like another one; take more of the text (--before, --shown)"
