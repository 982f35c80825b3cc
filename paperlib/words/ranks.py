"""What a bound from ranks among candidates supports, takes for granted and warns of."""

from typing import TYPE_CHECKING

from paperlib.core.facts import Refusal, RefusalCode
from paperlib.core.results import round_down, round_up
from paperlib.words.directions import reversal

if TYPE_CHECKING:
    from paperlib.bounds.ranks.audit import RankAuditResult

CONDITION = (
    "assumes that each true value was drawn uniformly from its candidate set: it speaks "
    "of replacing it"
)
"""What must stand beside every number from ranks."""

MARGINS_KNOW_THE_HITS = (
    "The margin of every hit is above that of every miss: if the margins were computed with the "
    "true value, the bound does not hold; score_margins gives those of the scores alone."
)
"""The warning about margins that part hits from misses."""

EVERY_CANDIDATE_HITS = (
    "Every candidate counts as a hit (top equals the set size): the audit can show nothing."
)
"""The warning about an audit in which no candidate can miss."""


def headline(result: "RankAuditResult") -> str:
    """The bound, nats, on one line, with the hits behind it."""
    return (
        f"ε ≥ {round_down(result.epsilon):.3f} (replacement, δ = {result.delta:g}, "
        f"confidence {result.confidence:g}, {result.correct} of {result.guesses} hits)"
    )


def claim(epsilon: float, delta: float, confidence: float, ceiling: float) -> str:
    """The sentence that the bound ``epsilon``, nats, supports; ``ceiling`` is the bound if every
    set is a hit, nats.
    """
    if epsilon > 0:
        return (
            f"With confidence {confidence:g}, the training mechanism is not (ε, {delta:g})-"
            f"differentially private for any ε below {round_down(epsilon):.3f}, under replacement "
            "of one identifier by another of its candidate set: a lower bound on the mechanism's ε."
        )
    if ceiling <= 0:
        return (
            f"These sets cannot refute any ε at δ = {delta:g} and confidence {confidence:g} under "
            "replacement of one identifier, however good the attack: nothing is learned from this "
            "audit."
        )
    return (
        f"With confidence {confidence:g} these ranks refute no ε ≥ 0 at δ = {delta:g} under "
        "replacement of one identifier: the lower bound on the mechanism's ε is 0. With every set "
        f"a hit it could have been at most {round_up(ceiling):.3f}."
    )


_DRAWN = (
    "Each true value was drawn uniformly from its candidate set, independently of the others, "
    "and everything else in the training data does not depend on the draws."
)
_REPLACED = (
    "Adjacency is replacement: compare with a theoretical ε for replacement, up to twice the ε "
    "for adding or removing one record."
)
_TIES = "Ties were not broken in favour of the true value."


def assumptions(*, by_margin: bool, mixed_at_delta: bool) -> tuple[str, ...]:
    """What a bound takes for granted. Theorem 2 is that of the paper Natural Identifiers, as
    wherever this module names it.

    Args:
        by_margin: Whether the sets were guessed in the order of their margins.
        mixed_at_delta: Whether sets of several sizes pay what a delta above 0 costs by Theorem 2
            (``delta_term="published"`` of `audit_ranks`).
    """
    conditions = [
        _DRAWN,
        _REPLACED,
        (
            "The top counts and the score were fixed before looking at which candidate is the true "
            "one."
        ),
        _TIES,
    ]
    if by_margin:
        conditions.append(
            "Margins come from the scores of a set alone, not from which candidate is true."
        )
    elif mixed_at_delta:
        # Only where every set counts. A search by margins pays for delta with a budget of failures
        # of its own in place of Theorem 2, so that it need not take for granted what that does.
        conditions.append(
            "With mixed sets, Theorem 2 takes the failures of (ε, δ)-DP as independent of the "
            "other hits; delta_term='sharp' does not."
        )
    return tuple(conditions)


def learned_assumptions(looked_at: int) -> tuple[str, ...]:
    """What a bound takes for granted where guesses and their order were learned from revealed sets,
    of which so many were only looked at.
    """
    return (
        _DRAWN,
        _REPLACED,
        _TIES,
        f"{looked_at} sets, drawn at random, were only looked at. Which candidate is guessed, and "
        "which set comes next, depends on nothing but the features and the sets revealed before.",
    )


def reversed_places(mean: float, *, is_refused: bool) -> Refusal:
    """The refusal, or the doubt, where true values stand significantly below the middle of their
    sets.

    Args:
        mean: Mean place of the true values, as a share of their sets.
        is_refused: Whether it is too far below for a sound audit.
    """
    return reversal(
        f"the true values stand at {mean:.1%} of their sets on average, significantly below the "
        "middle",
        is_refused=is_refused,
        code=RefusalCode.REVERSED,
        check="check higher_means_member",
    )


def delta_shows_nothing(cost: float, error: float) -> str:
    """The warning that nothing can be shown, since what delta costs by Theorem 2 of Natural
    Identifiers, ``cost``, delta times the mean set size, is above the error, 1 - confidence.
    """
    return (
        f"δ times the mean set size is {cost:.3g}, more than 1 - confidence = {error:.3g}: Theorem "
        "2 shows nothing even for a perfect attack. Use smaller sets or delta_term='sharp'."
    )
