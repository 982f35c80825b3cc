"""Scores an audit takes: what they must be, and whether their direction is probably reversed."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from paperlib.core.scores import MembershipScores

REVERSED_LEVEL = 0.01
"""Chance of a word by each check of a direction, where scores have nothing to do with membership,
at most.
"""
REFUSED_LEVEL = 5e-4
"""The same of a refusal: an audit makes at most two checks, so that of 1,000 sound audits one is
refused for its direction.
"""

# In a test by permutations, the membership at hand among them: enough that the level of a refusal
# can be reached.
_MEMBERSHIPS = 4_000
_GROUPS = 128  # of neighbouring scores, at most, among which memberships are permuted
_FEW = 50  # members, or non-members, below which normal theory is not relied upon
_MOST_TIED = 0.05  # share of the scores that may be one value for normal theory


def check_scores(name: str, scores: object, *others: object) -> MembershipScores:
    """Return ``scores`` if they are `MembershipScores`, alone; else a ValueError says how to build
    them.
    """
    if isinstance(scores, MembershipScores) and not others:
        return scores
    received = f"{1 + len(others)} arguments, the first" if others else "an argument"
    raise ValueError(
        f"{name}: expected MembershipScores, got {received} of type {type(scores).__name__}; build "
        "them with MembershipScores(member, nonmember), or call audit_losses(members, nonmembers) "
        "for losses"
    )


@dataclass(frozen=True)
class Reversal:
    """What shows that a direction is reversed: members score significantly less like members than
    non-members do.

    Attributes:
        auc: Area under the ROC curve, below one half.
        p_value: Chance of an area this small at most, if scores have nothing to do with membership.
        is_refused: Whether that is too small for a sound audit, so that its number is no answer;
            else a warning says what to check.
    """

    auc: float
    p_value: float
    is_refused: bool


def reversed_direction(scores: MembershipScores, *, tests: int = 1) -> Reversal | None:
    """What shows that members score significantly less like members than non-members do; None where
    nothing does.

    A one-sided Mann-Whitney test of the area under the ROC curve, with corrections for ties and
    continuity, at level 0.01 for all ``tests`` that are made, and at 0.0005 for a refusal. Below 50
    of one side, or where a score is held by more than 5 % of all, normal theory is confirmed by
    permutations, which keep the levels for any scores.

    Args:
        scores: Of members and non-members, in either direction.
        tests: How many such tests share the level, 1 or more.

    Source:
        Mann and Whitney (1947); variance with ties as in Lehmann (1975), Nonparametrics, section
        1.4.

    >>> reversed_direction(MembershipScores(range(20), range(10, 30)))
    Reversal(auc=0.125, p_value=0.00025, is_refused=True)
    >>> reversed_direction(MembershipScores(range(10, 30), range(20))) is None
    True
    """
    auc = scores.auc()
    members, nonmembers, total = scores.member.size, scores.nonmember.size, len(scores)
    ties = np.unique(scores.pooled()[0], return_counts=True)[1].astype(float)
    tied = float((ties**3 - ties).sum()) / (total * (total - 1))
    # The number of pairs that members win is normal, but for continuity (1/2), with this variance.
    pairs = float(members * nonmembers)
    variance = pairs / 12 * (total + 1 - tied)
    p_value = 1.0
    if auc < 0.5 and variance > 0:  # else all scores are equal
        p_value = float(ndtr(((auc - 0.5) * pairs + 0.5) / math.sqrt(variance)))
    if p_value <= REVERSED_LEVEL / tests:
        p_value = max(p_value, _permuted_chance(scores, tests))
    if p_value > REVERSED_LEVEL / tests:
        return None
    return Reversal(auc, p_value, is_refused=p_value <= REFUSED_LEVEL / tests)


def _permuted_chance(scores: MembershipScores, tests: int) -> float:
    """Share of random memberships in which members rank as low as these do, a p-value; 0 where
    normal theory needs no such confirmation.

    The more ``tests`` share the level, the more memberships are drawn, so that it can be reached.
    """
    oriented = scores.oriented()
    members, total = oriented.member.size, len(scores)
    values = np.concatenate([oriented.member, oriented.nonmember])
    # Equal scores form a group; groups are numbered from the lowest score on.
    _, group_of, sizes = np.unique(values, return_inverse=True, return_counts=True)
    fewer = min(members, total - members)
    if fewer >= _FEW and sizes.max() <= _MOST_TIED * total:
        return 0.0
    if sizes.size > _GROUPS:
        group_of, sizes = _joined_groups(group_of, sizes)

    ranks = 2 * np.cumsum(sizes) - sizes  # twice the middle rank, so that sums are whole numbers
    members_of_group = np.bincount(group_of[:members], minlength=sizes.size)
    # Seeded by the data: one seed for all audits would fix the error of the draws in one direction.
    rng = np.random.default_rng(members_of_group)
    # To permute memberships is to draw how many members each group gets.
    memberships = _MEMBERSHIPS * tests  # with the one at hand
    permuted = rng.multivariate_hypergeometric(sizes, members, size=memberships - 1)
    as_low = int(np.sum(permuted @ ranks <= members_of_group @ ranks))
    return (1 + as_low) / memberships


def _joined_groups(
    group_of: NDArray[np.intp], sizes: NDArray[np.intp]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """At most `_GROUPS` groups of about equal size, neighbours joined: this costs a little power,
    and permutations of many scores take no longer than those of few.

    Args:
        group_of: Number of each score's group, from the lowest scores on, shape (n,).
        sizes: Scores of each group, shape (groups,).

    Returns:
        The same of the joined groups.
    """
    scores_below = np.cumsum(sizes) - sizes
    share_of_all = scores_below * _GROUPS // sizes.sum()
    _, joined = np.unique(share_of_all, return_inverse=True)  # numbered without gaps
    return joined[group_of], np.bincount(joined, weights=sizes).astype(int)
