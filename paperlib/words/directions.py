"""Why scores are no answer: their direction is probably reversed, or they say nothing."""

from collections.abc import Sequence
from dataclasses import replace

from paperlib.core.direction import Reversal
from paperlib.core.facts import Refusal, RefusalCode
from paperlib.core.results import round_down
from paperlib.words.one_run import of_run

PROBABLY_REVERSED = (
    "so the direction of the score or the membership is probably reversed and a leak may be "
    "missed: check whether the values are losses or scores (`--kind losses` of `paperlib audit`, "
    "or higher_means_member in Python) and who is a member, by the membership column or by the "
    "files"
)
"""End of a warning that a direction is probably reversed."""

SAYS_NOTHING = "so they say nothing of membership"
"""Middle of the sentence of a refusal because of equal scores, or of answers without a guess."""


def refusals(*reversals: Reversal | None) -> tuple[Refusal, ...]:
    """Why these scores are no answer: a refusal for each reversed direction there is.

    >>> from paperlib.core import MembershipScores
    >>> from paperlib.core.direction import reversed_direction
    >>> scores = MembershipScores(range(20), range(10, 30))
    >>> print(refusals(reversed_direction(scores))[0].sentence)
    AUC 0.125 is significantly below one half (p = 0.0005), so the direction of the score or the
    membership is probably reversed and a leak may be missed: ...
    """
    return tuple(_refusal(reversal) for reversal in reversals if reversal is not None)


def refusals_of_runs(reversals: Sequence[Reversal | None]) -> tuple[Refusal, ...]:
    """The same for each of several runs, in their order, whose number stands before it."""
    together: list[Refusal] = []
    for number, reversal in enumerate(reversals, 1):
        for refusal in refusals(reversal):
            together.append(replace(refusal, sentence=of_run(number, refusal.sentence)))
    return tuple(together)


def _refusal(reversal: Reversal) -> Refusal:
    """The refusal because of one reversed direction."""
    sentence = (
        f"AUC {round_down(reversal.auc):.3f} is significantly below one half "
        f"(p = {reversal.p_value:.2g}), {PROBABLY_REVERSED}"
    )
    return Refusal(code=RefusalCode.REVERSED, sentence=sentence)
