"""Why scores are no answer: their direction is probably reversed, or they say nothing."""

from collections.abc import Sequence
from dataclasses import replace

from paperlib.core.direction import REVERSED_LEVEL, Reversal
from paperlib.core.facts import Doubt, Refusal, RefusalCode
from paperlib.core.results import round_down
from paperlib.words.one_run import of_run

_CHECK_BOTH = (
    "check whether the values are losses or scores (`--kind losses` of `paperlib audit`, or "
    "higher_means_member in Python) and who is a member, by the membership column or by the files"
)

SAYS_NOTHING = "so they say nothing of membership"
"""Middle of the sentence of a refusal because of equal scores, or of answers without a guess."""


def reversal(
    observed: str, *, is_refused: bool, code: RefusalCode, check: str = _CHECK_BOTH
) -> Refusal:
    """The refusal, or the doubt, that a direction is reversed.

    Args:
        observed: What was seen, as the opening of the sentence.
        is_refused: Whether it is too strange for a sound audit; else it is a doubt.
        code: Which check saw it.
        check: What to look at, as the end of the sentence.
    """
    if is_refused:
        sentence = (
            f"{observed}, so the direction of the score or the membership is probably reversed and "
            f"a leak may be missed: {check}"
        )
        return Refusal(code=code, sentence=sentence)
    sentence = (
        f"{observed}, which chance brings in at most one of {1 / REVERSED_LEVEL:.0f} sound audits; "
        "else the direction of the score or the membership is reversed and a leak may be missed: "
        f"{check}"
    )
    return Doubt(code=code, sentence=sentence)


def refusals(*reversals: Reversal | None) -> tuple[Refusal, ...]:
    """Why these scores are no answer, or doubtful: one for each reversed direction there is.

    >>> from paperlib.core import MembershipScores
    >>> from paperlib.core.direction import reversed_direction
    >>> scores = MembershipScores(range(20), range(10, 30))
    >>> print(refusals(reversed_direction(scores))[0].sentence)
    AUC 0.125 is significantly below one half (p = 0.00025), so the direction of the score or the
    membership is probably reversed and a leak may be missed: ...
    """
    return tuple(_refusal(found) for found in reversals if found is not None)


def refusals_of_runs(reversals: Sequence[Reversal | None]) -> tuple[Refusal, ...]:
    """Why scores of several runs are no answer, or doubtful: one refusal for each reversed
    direction, in the order of the runs, whose number, from 1, stands before it; None is no reversed
    one.
    """
    together: list[Refusal] = []
    for number, of_one in enumerate(reversals, 1):
        for refusal in refusals(of_one):
            together.append(replace(refusal, sentence=of_run(number, refusal.sentence)))
    return tuple(together)


def _refusal(found: Reversal) -> Refusal:
    """The refusal, or the doubt, because of one direction that the AUC shows to be reversed."""
    auc = f"AUC {round_down(found.auc):.3f}"
    return reversal(
        f"{auc} is significantly below one half (p = {found.p_value:.2g})",
        is_refused=found.is_refused,
        code=RefusalCode.REVERSED,
    )
