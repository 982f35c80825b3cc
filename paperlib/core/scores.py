"""`MembershipScores`: what attacks return and bounds take."""

from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from paperlib.core.checks import FloatArray, as_floats, check_in, check_index, check_vector
from paperlib.core.results import table

if TYPE_CHECKING:
    import pandas as pd


def twice_below(values: FloatArray, others: FloatArray) -> NDArray[np.int64]:
    """Twice the number of ``others``, shape (k,), below each of ``values``, shape (n,), ties
    counting one half: whole numbers, shape (n,). Both are sorted.
    """
    # Sorted values are looked up several times as fast as values in any order.
    return np.searchsorted(others, values, side="left") + np.searchsorted(
        others, values, side="right"
    )


def _are_flags(values: FloatArray, scores: int) -> bool:
    """Whether these are as many as the scores, ten or more, and 0 and 1 alone, both present."""
    if values.size != scores or values.size < 10 or values[0] not in (0, 1):
        return False
    return {*values.tolist()} == {0.0, 1.0}


@dataclass(frozen=True, eq=False)
class MembershipScores:
    """Scores of known members and known non-members, kept as given.

    Shapes are (n_member,) and (n_nonmember,); ``higher_means_member`` is their direction, False for
    losses. Infinite scores, such as log odds of a confidence of 1, are the largest or the smallest:
    audits that read the order of scores use them, and those that compute with scores refuse them.

    Raises:
        ValueError: An array is empty, not 1-D, not numeric, or holds NaN.

    >>> MembershipScores([2.0, 1.0], [0.0])
    MembershipScores(2 members, 1 non-members, higher means member)
    """

    member: FloatArray
    nonmember: FloatArray
    higher_means_member: bool

    def __init__(
        self, member: ArrayLike, nonmember: ArrayLike, *, higher_means_member: bool = True
    ) -> None:
        """Check both sides and keep them as read-only arrays."""
        members = check_vector("member scores", member, infinite=True)
        nonmembers = check_vector("nonmember scores", nonmember, infinite=True)
        object.__setattr__(self, "member", members)
        object.__setattr__(self, "nonmember", nonmembers)
        object.__setattr__(self, "higher_means_member", bool(higher_means_member))
        has_fractions = (members != np.floor(members)).any()
        if _are_flags(nonmembers, members.size) and has_fractions:
            raise ValueError(
                "nonmember scores: all are 0 or 1, as memberships are; where they are, give "
                "MembershipScores.from_labels(scores, membership)"
            )

    def __repr__(self) -> str:
        direction = "higher" if self.higher_means_member else "lower"
        sizes = f"{self.member.size} members, {self.nonmember.size} non-members"
        return f"MembershipScores({sizes}, {direction} means member)"

    def __len__(self) -> int:
        return self.member.size + self.nonmember.size

    def oriented(self) -> "MembershipScores":
        """The same scores with higher meaning member: itself, or a negated copy."""
        if self.higher_means_member:
            return self
        return MembershipScores(-self.member, -self.nonmember)

    def pooled(self) -> tuple[FloatArray, NDArray[np.bool_]]:
        """All scores as given and their membership, members first; two arrays of shape (n,)."""
        labels = np.zeros(len(self), dtype=bool)
        labels[: self.member.size] = True
        return np.concatenate([self.member, self.nonmember]), labels

    def auc(self) -> float:
        """Area under the ROC curve, in [0, 1]; ties count one half. 0.5 is no signal.

        >>> MembershipScores([1, 2], [0, 1]).auc()
        0.875
        """
        oriented = self.oriented()
        won = twice_below(np.sort(oriented.member), np.sort(oriented.nonmember))
        return float(won.sum() / (2.0 * oriented.member.size * oriented.nonmember.size))

    def tpr_at_fpr(self, false_positive_rate: float) -> float:
        """True-positive rate at a false-positive rate: a point of the empirical ROC curve, never
        between two.

        It is the share of members above the lowest score that at most ``false_positive_rate`` of
        the non-members exceed. Members tied with this threshold do not count: ties can only lower
        the result.

        Raises:
            ValueError: A rate outside [0, 1].

        >>> MembershipScores([3, 2, 1, 1], [2, 1, 0, 0]).tpr_at_fpr(0.25)
        0.5
        """
        check_in("[0, 1]", "false_positive_rate", false_positive_rate)
        oriented = self.oriented()
        highest_first = np.sort(oriented.nonmember)[::-1]
        allowed = int(false_positive_rate * highest_first.size)
        if allowed == highest_first.size:
            return 1.0
        return float((oriented.member > highest_first[allowed]).mean())

    def to_frame(self) -> "pd.DataFrame":
        """One row per example, members first, as `from_file` reads: score or loss, and member (0 or
        1).
        """
        scores, labels = self.pooled()
        name = "score" if self.higher_means_member else "loss"
        return table({name: scores, "member": labels.astype(np.int64)})

    def roc(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """False-positive rates, true-positive rates and thresholds, from (0, 0, inf), one per
        distinct score, the highest first: three arrays of shape (distinct scores + 1,).

        An example is called a member when its oriented score is at least the threshold.
        """
        scores, labels = self.oriented().pooled()
        order = np.argsort(-scores, kind="stable")
        scores, labels = scores[order], labels[order]
        last = np.append(np.flatnonzero(scores[1:] != scores[:-1]), scores.size - 1)
        true_positives = np.cumsum(labels)[last]
        false_positives = last + 1 - true_positives
        return (
            np.append(0.0, false_positives / self.nonmember.size),
            np.append(0.0, true_positives / self.member.size),
            np.append(np.inf, scores[last]),
        )

    def split(
        self, fraction: float = 0.5, *, seed: int = 0
    ) -> "tuple[MembershipScores, MembershipScores]":
        """Two disjoint random parts: one to select with, a ``fraction`` of all, and one to evaluate
        on.

        The draw does not look at membership, so that fair coins stay fair coins in each part; a
        ValueError if a part would hold no member or no non-member.
        """
        check_in("(0, 1)", "fraction", fraction)
        values, labels = self.pooled()
        order = np.random.default_rng(seed).permutation(values.size)
        cut = round(fraction * values.size)

        def scores_at(indices: NDArray[np.int64]) -> MembershipScores:
            """The scores at these positions of the pooled ones, shape (k,); a ValueError without
            both sides.
            """
            member = labels[indices]
            if member.all() or not member.any():
                sizes = f"{self.member.size} members and {self.nonmember.size} non-members"
                raise ValueError(f"scores: {sizes} are too few to split")
            return MembershipScores(
                values[indices][member],
                values[indices][~member],
                higher_means_member=self.higher_means_member,
            )

        return scores_at(order[:cut]), scores_at(order[cut:])

    @classmethod
    def from_labels(
        cls, scores: ArrayLike, membership: ArrayLike, *, higher_means_member: bool = True
    ) -> "MembershipScores":
        """Build from one score per example and a membership flag (0/1 or bool), both of shape (n,).

        Raises:
            ValueError: Other shapes or flags, NaN, or one side without an example.
        """
        values = check_vector("scores", scores, infinite=True)
        flags = as_floats("membership", membership)
        check_index("membership", scores, membership)
        if flags.shape != values.shape:
            raise ValueError(f"membership: expected {values.size} values, got shape {flags.shape}")
        if not np.isin(flags, [0, 1]).all():
            raise ValueError("membership: expected only 0 and 1 (or False and True)")
        flags = flags.astype(bool)
        if flags.all() or not flags.any():
            present = "members" if flags.all() else "non-members"
            raise ValueError(
                f"membership: both classes are needed, got {flags.size} {present} only"
            )
        return cls(values[flags], values[~flags], higher_means_member=higher_means_member)

    @classmethod
    def from_file(
        cls,
        path: "str | PathLike[str]",
        *,
        score_column: str | None = None,
        member_column: str | None = None,
        kind: str | None = None,
        higher_means_member: bool | None = None,
    ) -> "MembershipScores":
        """Read scores and membership from one file, as `read_scores` and ``paperlib audit`` read
        it.

        Args:
            path: CSV, JSON lines, Parquet, NPZ and other tables with a column of scores and one of
                membership, or with two arrays.
            score_column, member_column: By default those with a common name.
            kind: "scores" or "losses"; needed where no name tells.
            higher_means_member: The same as ``kind``: True for scores, False for losses.

        Raises:
            ValueError: A file or column that cannot be read or is doubtful, or ``kind`` and
                ``higher_means_member`` that contradict each other.
            FileNotFoundError: There is no such file.
        """
        # The room of files makes objects of this class: it is named only where one is asked for.
        from paperlib.reading.scores import read_scores

        if higher_means_member is not None:
            this_kind = "scores" if higher_means_member else "losses"
            if kind not in (None, this_kind):
                raise ValueError(
                    f"higher_means_member: {higher_means_member} contradicts kind={kind!r}; "
                    "give one"
                )
            kind = this_kind
        return read_scores(
            path, score_column=score_column, member_column=member_column, kind=kind
        ).scores

    from_csv = from_file
    from_npz = from_file
