"""Helpers that learn members out of fold, and how many members that leaves to be judged."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from paperlib.audits.panoramia.game import largest_test
from paperlib.core import FloatArray, IntArray
from paperlib.core.checks import check_at_least, check_in
from paperlib.report import progress
from paperlib.words.audits import panoramia_data as words

RATIO = 8.0
"""Members that a helper's model should learn, beside D_G, over members judged: the largest ratio
tried in `papers.panoramia.null.experiment`. Null targets pass with it on tables and images; on text
some is left.
"""
MOST = 0.6
"""Largest share of the members that is judged; attacks learn from the others."""
_LEAST = 100
ModelByKind = Callable[[str, IntArray], FloatArray]
"""A trained model: takes a kind of examples and their numbers, and returns its outputs on them, (n,
k).
"""


@dataclass(frozen=True)
class Shares:
    """Numbers of members that tests judge, and of those that helpers and attacks learn."""

    judged: int
    learned: int
    ratio: float  # members that each model of a helper learns, over ``judged``

    @property
    def warnings(self) -> tuple[str, ...]:
        """Says that helpers learn too little; else empty."""
        if self.ratio >= RATIO:
            return ()
        return (words.weak_helpers(self, RATIO),)


def shares_of(members: int, *, pool: int, folds: int, judged: float | None = None) -> Shares:
    """How many of the ``members`` tests judge, and how many helpers and attacks learn.

    Args:
        pool: Number of examples of the kind that has fewest, 30 or more.
        folds: Models of each helper, which leave out the members of their own fold.
        judged: Share of the members to judge, in (0, 1); None leaves helpers enough to learn.

    Raises:
        ValueError: A pool below 30, or ``judged`` outside (0, 1).
    """
    # As many are judged as leave helpers RATIO times as many to learn, those of their own fold left
    # out; but 100 at least (of fewer than 300 members a third, 15 at least), as fewer show little,
    # and never more than MOST of the smallest pool.
    if pool < 30:
        raise ValueError(
            f"members: expected 30 or more, and as many examples of every other kind, got {pool}"
        )
    others = 1 - 1 / folds
    count = max(int(others * members / (RATIO + others)), min(_LEAST, max(15, members // 3)))
    if judged is not None:
        check_in("(0, 1)", "judged", judged)
        count = max(1, round(judged * members))
    count = min(count, int(MOST * pool))
    return Shares(count, members - count, others * (members - count) / count)


def shared_sizes(shares: Shares, pool: int) -> dict[str, int]:
    """Numbers of examples for `GameSplit`, members and others together: the test from judged
    members, training and validation, three to one, from learned ones.

    ``pool`` is the number of examples of the smallest kind.
    """
    rest = min(shares.learned, pool - shares.judged)
    train = round(0.75 * rest)
    return {
        "train": 2 * train,
        "validation": 2 * (rest - train),
        "test": largest_test(shares.judged),
    }


def out_of_fold(
    train: Callable[[IntArray, int], ModelByKind],
    sizes: Mapping[str, int],
    *,
    learned: int,
    folds: int,
    most: int | None = None,
    groups: IntArray | None = None,
    seed: int,
    label: str = "folds",
) -> dict[str, FloatArray]:
    """Outputs (n, k) by kind of a helper that learns real data but no example that it is asked
    about.

    Args:
        train: Function from the members to learn, by number, and the fold to a model.
        sizes: Number of examples of each kind.
        learned: Number of members that are dealt to folds, the first ones.
        folds: Number of models, 2 or more.
        most: Members that a model learns at most, drawn at random; None for all but its fold's.
        groups: Of each of the ``learned`` members, shape (learned,): one group is in one fold.
        seed: Of the folds and of what is drawn.
        label: What a bar of progress calls them.

    Raises:
        ValueError: Numbers out of range.
    """
    # The first ``learned`` members are dealt to folds, members of one group to one, and so is every
    # other example. One model per fold learns these members (``most`` of them, drawn at random) but
    # its own fold's, with whatever ``train`` adds (D_G), and is asked about its fold: an example's
    # fold says nothing about its kind. A member from ``learned`` on changes its own output alone,
    # so that a bound on such members holds as with any other helper. ``learned`` may be all of them
    # for a null target alone.
    check_at_least(2, folds=folds)
    check_in(f"[2, {sizes['members']}]", "learned", learned)
    if most is not None:
        check_at_least(0, most=most)
    rng = np.random.default_rng(seed)
    fold_of = {kind: _dealt(size, folds, rng) for kind, size in sizes.items()}
    if groups is None:
        of_learned = _dealt(learned, folds, rng)
    else:
        of_learned = _dealt_groups(groups, folds, rng)
    of_judged = _dealt(sizes["members"] - learned, folds, rng)
    fold_of["members"] = np.append(of_learned, of_judged)
    outputs: dict[str, FloatArray] = {}
    for fold in progress(range(folds), label=label):
        rows = np.flatnonzero(fold_of["members"][:learned] != fold)
        if most is not None and most < rows.size:
            rows = np.sort(rng.choice(rows, most, replace=False))
        model = train(rows, fold)
        for kind, fold_of_example in fold_of.items():
            asked = np.flatnonzero(fold_of_example == fold)
            answers = model(kind, asked)
            if kind not in outputs:
                outputs[kind] = np.empty((fold_of_example.size, answers.shape[1]))
            outputs[kind][asked] = answers
    return outputs


def _dealt(size: int, folds: int, rng: np.random.Generator) -> IntArray:
    """The fold of each of ``size`` examples, from 0, shape (size,): as many in each as may be, in
    random order.
    """
    return rng.permutation(np.arange(size) % folds)


def _dealt_groups(groups: IntArray, folds: int, rng: np.random.Generator) -> IntArray:
    """The fold of each example, from 0, shape (n,): the same for all examples of a group. Groups,
    in random order, go to the fold that has fewest examples so far.
    """
    _, group_of_example, counts = np.unique(groups, return_inverse=True, return_counts=True)
    fold_of_group = np.empty(counts.size, dtype=np.int64)
    filled = np.zeros(folds, dtype=np.int64)  # examples in each fold so far
    for group in rng.permutation(counts.size):
        fold_of_group[group] = filled.argmin()
        filled[fold_of_group[group]] += counts[group]
    return fold_of_group[group_of_example]
