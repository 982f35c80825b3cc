"""Measures of each group of records, such as classes or data sources."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from paperlib.core import MembershipScores, check_at_least, score_measures

_FPR = 0.01


def group_table(
    scores: MembershipScores,
    groups: Sequence[Any] | np.ndarray,
    confidence: float = 0.95,
    *,
    most: int = 50,
) -> pd.DataFrame:
    """How well the scores tell members from non-members within each group, largest group first.

    The rows are measurements and no bounds on epsilon, and their intervals hold one by one: among many groups
    some stand out by chance.

    Args:
        scores: Scores of members and non-members.
        groups: One group per example, members first, as `MembershipScores.pooled`; None and NaN make a group
            "not given".
        confidence: Confidence level of each interval, in (0, 1).
        most: Largest number of rows, at least 1.

    Returns:
        Columns group, members, nonmembers, auc, auc_low, auc_high, tpr, tpr_low, tpr_high (true-positive rate
        at 1 % false positives) and note (reason where a value is missing).

    Raises:
        ValueError: Another number of groups than of examples.

    >>> scores = MembershipScores([3, 4, 1], [1, 2, 0])
    >>> group_table(scores, list("aabaab"))[["group", "members", "nonmembers", "auc"]]
      group  members  nonmembers  auc
    0     a        2           2  1.0
    1     b        1           1  1.0
    """
    return groups_and_count(scores, groups, confidence, most)[0]


def groups_and_count(
    scores: MembershipScores, groups: Sequence[Any] | np.ndarray, confidence: float, most: int
) -> tuple[pd.DataFrame, int]:
    """`group_table`, and the number of all groups."""
    check_at_least(1, most=most)
    if len(groups) != len(scores):
        raise ValueError(f"groups: expected one for each of {len(scores)} examples, got {len(groups)}")
    codes, names = _coded(groups)
    sizes = np.bincount(codes, minlength=len(names))
    rows = []
    for code in np.argsort(-sizes, kind="stable")[:most]:
        here = codes == code
        member = scores.member[here[: scores.member.size]]
        nonmember = scores.nonmember[here[scores.member.size :]]
        counts = {"group": names[code], "members": member.size, "nonmembers": nonmember.size}
        rows.append({**counts, **_measures(member, nonmember, scores.higher_means_member, confidence)})
    return pd.DataFrame(rows), len(names)


def _coded(groups: Sequence[Any] | np.ndarray) -> tuple[np.ndarray, list[str]]:
    """A number for each example, and the group that each number stands for."""
    values = groups if isinstance(groups, np.ndarray) else np.asarray(groups, dtype=object)
    codes, found = pd.factorize(values)
    names = [str(name) for name in found]
    if (codes < 0).any():
        codes, names = np.where(codes < 0, len(names), codes), [*names, "not given"]
    return codes, names


def _measures(
    member: np.ndarray, nonmember: np.ndarray, higher_means_member: bool, confidence: float
) -> dict[str, Any]:
    empty = dict.fromkeys(("auc", "auc_low", "auc_high", "tpr", "tpr_low", "tpr_high"), np.nan)
    if not member.size or not nonmember.size:
        return {**empty, "note": f"no {'non-members' if member.size else 'members'}"}
    part = MembershipScores(member, nonmember, higher_means_member=higher_means_member)
    found = score_measures(part, confidence=confidence)
    rate = next(one for one in found.rates if one.false_positive_rate == _FPR)
    low, high = rate.interval or (np.nan, np.nan)
    return {
        "auc": found.auc,
        "auc_low": found.auc_interval[0],
        "auc_high": found.auc_interval[1],
        "tpr": np.nan if rate.true_positive_rate is None else rate.true_positive_rate,
        "tpr_low": low,
        "tpr_high": high,
        "note": rate.note,
    }
