"""What the audits of one set of scores are called, why they are refused, and what they warn of."""

from paperlib.core.facts import Refusal, RefusalCode
from paperlib.words.directions import SAYS_NOTHING, reversal

MAIN_TITLE = "One training run, every threshold"
MAIN_PURPOSE = (
    "The main number: a lower bound on epsilon of the training procedure, from one model."
)
OUTPUT_SET_TITLE = "One training run, optimal output set"
OUTPUT_SET_PURPOSE = (
    "Where to guess is learned on one half of the scores and tested on the other; strong "
    "when members sit in the middle or in several places."
)
EPSILON_STAR_TITLE = "Epsilon*"
EPSILON_STAR_PURPOSE = (
    "How well one threshold on the loss tells this model's training records from others."
)
"""Titles and purposes of the audits, in their order."""

SETTLE_DIRECTION = "direction or membership is probably reversed; settle that first"
"""Why an audit beside the main one was not made."""

_STEPS_OF_EQUAL_SCORES = (
    "compute them again with all their digits, each from its own record",
    "if they stay equal, take another score",
)


def equal_scores(value: float) -> Refusal:
    """The refusal of scores that all have this value."""
    steps = _STEPS_OF_EQUAL_SCORES
    sentence = f"all scores are {value:g}, {SAYS_NOTHING}; {'; '.join(steps)}"
    return Refusal(code=RefusalCode.EQUAL_SCORES, sentence=sentence, steps=steps)


def other_direction(*, is_refused: bool) -> Refusal:
    """The refusal, or the doubt, of scores that show a leak only where they are read the other
    way.
    """
    return reversal(
        "the scores show a leak in the other direction",
        is_refused=is_refused,
        code=RefusalCode.OTHER_DIRECTION,
    )


def rounded(share: float, value: float) -> str:
    """The warning about scores of which this share has one value."""
    return (
        f"{share:.0%} of the scores are {value:g}: if they "
        "were rounded, or computed in 16 bits, a leak among them is not seen; compute them in 64 "
        "bits"
    )


def delta_of_epsilon_star(delta: float, n_train: int, *, is_default: bool) -> str:
    """The note on the delta that Epsilon* is taken at, and why it is that one.

    Args:
        delta: In (0, 1).
        n_train: Number of training losses, of which a default is made.
        is_default: Whether no delta above 0 was asked for.
    """
    if not is_default:
        return f"Epsilon* is taken at delta = {delta:.3g}, as given."
    return (
        f"Epsilon* is taken at delta = {delta:.3g}, which is 1 / (n log n) for n = "
        f"{n_train} training losses, since its parametric version needs one above 0 and "
        "none was given."
    )
