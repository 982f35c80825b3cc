"""The members whose scores point to membership most."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from paperlib.core import MembershipScores, check_at_least


def most_exposed(
    scores: MembershipScores, ids: Sequence[Any] | np.ndarray | None = None, count: int = 20
) -> pd.DataFrame:
    """The members with the most extreme scores, most extreme first.

    These are scores of single records and no bounds: nothing is claimed about one of them, so that picking
    them needs no correction.

    Args:
        scores: Scores of members and non-members.
        ids: One name per example, members first, as `MembershipScores.pooled`; None names the members by
            their place among the members, from 1 on.
        count: Largest number of rows, at least 1.

    Returns:
        Columns record, score (as given), nonmembers_as_extreme (number of non-members whose score points to
        membership at least as much) and share (the same as a share of all non-members, in [0, 1]). Members
        with equal scores stay in the order they were given.

    Raises:
        ValueError: Another number of ids than of examples.

    >>> most_exposed(MembershipScores([1, 5, 3], [2, 4]), ids=list("abcde"), count=2)
      record  score  nonmembers_as_extreme  share
    0      b    5.0                      0    0.0
    1      c    3.0                      1    0.5
    """
    check_at_least(1, count=count)
    if ids is not None and len(ids) != len(scores):
        raise ValueError(f"ids: expected one for each of {len(scores)} examples, got {len(ids)}")
    oriented = scores.oriented()
    member, shown = oriented.member, min(count, oriented.member.size)
    least = np.partition(member, member.size - shown)[member.size - shown]
    among = np.flatnonzero(member >= least)
    at = among[np.argsort(-member[among], kind="stable")[:shown]]
    above = np.array([np.count_nonzero(oriented.nonmember >= value) for value in member[at]])
    return pd.DataFrame(
        {
            "record": at + 1 if ids is None else [ids[int(one)] for one in at],
            "score": scores.member[at],
            "nonmembers_as_extreme": above,
            "share": above / scores.nonmember.size,
        }
    )


def tied_with_last(scores: MembershipScores, shown: pd.DataFrame) -> int:
    """Number of members that are not shown and have the score of the last one that is."""
    last = float(shown["score"].iloc[-1])
    return int(np.count_nonzero(scores.member == last) - np.count_nonzero(shown["score"] == last))


def standing_out(scores: MembershipScores, share: float = 0.01) -> int:
    """Number of members whose score at most this share of the non-members reach."""
    oriented = scores.oriented()
    others = np.sort(oriented.nonmember)
    reached = others.size - np.searchsorted(others, oriented.member, side="left")
    return int(np.count_nonzero(reached <= share * others.size))
