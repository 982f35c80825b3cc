"""How many members are judged: few enough that helpers learn several times as many."""

from dataclasses import dataclass

from paperlib.audits.panoramia.game import largest_test
from paperlib.core import check_in

RATIO = 8.0
"""Members that a helper's model should learn, beside D_G, over members judged: the largest ratio tried in
`papers.panoramia.null.experiment`. Null targets pass with it on tables and images; on text some is left."""
MOST = 0.6
"""Largest share of the members that is judged; attacks learn from the others."""
_LEAST = 100


@dataclass(frozen=True)
class Shares:
    """Members that are judged, and those that helpers and attacks learn.

    Attributes:
        judged: Number of members that tests show.
        learned: Number of the others.
        ratio: Members that each model of a helper learns, over ``judged``.
    """

    judged: int
    learned: int
    ratio: float

    @property
    def warnings(self) -> tuple[str, ...]:
        """Says that helpers learn too little; else empty."""
        if self.ratio >= RATIO:
            return ()
        return (
            f"helpers learn {self.ratio:.1f} times as many members as the {self.judged} that are judged, "
            f"not {RATIO:g} times: epsilon~ may be above 0 for a model that never saw the members; bring "
            "more members",
        )


def shares_of(members: int, *, pool: int, folds: int, judged: float | None = None) -> Shares:
    """How members are shared out.

    As many are judged as leave helpers `RATIO` times as many to learn, those of their own fold left out. But
    100 at least (of fewer than 300 members a third, 15 at least), as fewer show little, and never more than
    `MOST` of the smallest pool.

    Args:
        members: Number of members, 30 or more.
        pool: Size of the smallest of the pools: members, generated and, where there are some, nonmembers.
        folds: Number of folds, 2 or more.
        judged: Share of the members to judge, in (0, 1), in the place of this rule.

    Raises:
        ValueError: Too few members, or a share out of range.

    >>> shares_of(7_000, pool=7_000, folds=4)
    Shares(judged=600, learned=6400, ratio=8.0)
    >>> shares_of(600, pool=600, folds=4).judged
    100
    """
    if pool < 30:
        raise ValueError(
            f"members: expected 30 or more, and as many examples of every other kind, got {pool}"
        )
    kept = 1 - 1 / folds
    count = max(int(kept * members / (RATIO + kept)), min(_LEAST, max(15, members // 3)))
    if judged is not None:
        check_in("(0, 1)", "judged", judged)
        count = max(1, round(judged * members))
    count = min(count, int(MOST * pool))
    return Shares(count, members - count, kept * (members - count) / count)


def shared_sizes(shares: Shares, pool: int) -> dict[str, int]:
    """Sizes for `GameSplit`: the test from judged members, training and validation from learned ones.

    The validation part gets a quarter of the learned members; ``pool`` is as for `shares_of`.

    >>> shared_sizes(shares_of(7_000, pool=7_000, folds=4), 7_000)
    {'train': 9600, 'validation': 3200, 'test': 1039}
    """
    rest = min(shares.learned, pool - shares.judged)
    train = round(0.75 * rest)
    return {"train": 2 * train, "validation": 2 * (rest - train), "test": largest_test(shares.judged)}
