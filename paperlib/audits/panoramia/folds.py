"""Helpers that learn members out of fold, and how many members that leaves to be judged."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paperlib.audits.panoramia.game import largest_test
from paperlib.audits.panoramia.pools import Batch, Trainer, check_model, columns, joined, take
from paperlib.core import FloatArray, IntArray, check_at_least, check_in
from paperlib.report import progress

RATIO = 8.0
"""Members that a helper's model should learn, beside D_G, over members judged: the largest ratio tried in
`papers.panoramia.null.experiment`. Null targets pass with it on tables and images; on text some is left."""
MOST = 0.6
"""Largest share of the members that is judged; attacks learn from the others."""
_LEAST = 100
Answer = Callable[[str, IntArray], FloatArray]
"""A trained model: takes a kind of examples and their numbers, and returns its outputs on them, (n, k)."""


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


def out_of_fold(
    train: Callable[[IntArray, int], Answer],
    sizes: Mapping[str, int],
    *,
    learned: int,
    folds: int,
    most: int | None = None,
    groups: IntArray | None = None,
    seed: int,
    label: str = "folds",
) -> dict[str, FloatArray]:
    """Outputs of a helper that learns real data which the tests do not show.

    The first ``learned`` members are dealt to folds, and so is every other example. One model per fold learns
    all of these members but its own fold's, with whatever ``train`` adds (D_G), and is asked about its fold.
    So no model is asked about what it learned, and an example's fold says nothing about its kind.

    Guarantee:
        A member from ``learned`` on changes its own output alone, so that a bound on such members holds as
        with any other helper.

    Args:
        train: Function from the numbers of the members to learn, ascending, and the fold's number to a
            trained model.
        sizes: Kind to number of examples: "members", "generated" and, where there are some, "nonmembers".
        learned: Number of members that may be learned, from 2 to all of them; all only for a null target, as
            none is left for a bound that helpers must not move.
        folds: Number of folds, 2 or more.
        most: Most members that one model learns, drawn at random, 0 or more; None for all of other folds.
        groups: Number of the group of each member that may be learned, such as its document, shape
            (learned,): a group is dealt as a whole, since the tests show other groups. None where members do
            not belong together.
        seed: Seed of the folds, 0 or more.
        label: Name of the progress bar over the folds.

    Returns:
        Kind to outputs, shape (n, k).

    >>> def train(rows, fold):  # a "model" that says whether it learned a member
    ...     return lambda kind, asked: np.isin(asked, rows if kind == "members" else [])[:, None] * 1.0
    >>> said = out_of_fold(train, {"members": 6, "generated": 6}, learned=4, folds=2, seed=0)
    >>> said["members"].ravel().tolist()
    [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    """
    check_at_least(2, folds=folds)
    check_in(f"[2, {sizes['members']}]", "learned", learned)
    if most is not None:
        check_at_least(0, most=most)
    rng = np.random.default_rng(seed)
    fold_of = {kind: _dealt(size, folds, rng) for kind, size in sizes.items()}
    own = _dealt(learned, folds, rng) if groups is None else _dealt_groups(groups, folds, rng)
    fold_of["members"] = np.append(own, _dealt(sizes["members"] - learned, folds, rng))
    found: dict[str, NDArray[Any]] = {}
    for fold in progress(range(folds), label=label):
        rows = np.flatnonzero(fold_of["members"][:learned] != fold)
        if most is not None and most < rows.size:
            rows = np.sort(rng.choice(rows, most, replace=False))
        model = train(rows, fold)
        for kind, places in fold_of.items():
            asked = np.flatnonzero(places == fold)
            said = model(kind, asked)
            found.setdefault(kind, np.empty((places.size, said.shape[1])))[asked] = said
    return found


def taught_out_of_fold(
    name: str,
    train: Trainer,
    batches: Mapping[str, Batch],
    *,
    known: Batch | None,
    learned: int,
    folds: int,
    seed: int,
) -> dict[str, FloatArray]:
    """Outputs by kind of models that ``train`` makes, as `out_of_fold`.

    Args:
        name: Whose models they are, for messages.
        train: Function from a batch and a seed, ``seed`` plus the fold's number, to a model.
        batches: Kind to examples.
        known: Real examples that every model learns (D_G), or None.
        learned, folds, seed: As for `out_of_fold`.

    Raises:
        ValueError: A model that is no function, or does not give one loss for each example.
    """

    def learn(rows: IntArray, fold: int) -> Answer:
        own = take(batches["members"], rows)
        shown = own if known is None else joined(known, own)
        model = check_model(name, train(*shown, seed + fold))
        return lambda kind, asked: columns(name, model(*take(batches[kind], asked)), asked.size)

    sizes = {kind: len(batch[0]) for kind, batch in batches.items()}
    return out_of_fold(learn, sizes, learned=learned, folds=folds, seed=seed, label=name)


def _dealt(size: int, folds: int, rng: np.random.Generator) -> IntArray:
    """The fold of each example, as even as may be, in random order."""
    return rng.permutation(np.arange(size) % folds)


def _dealt_groups(groups: IntArray, folds: int, rng: np.random.Generator) -> IntArray:
    """The fold of each example: groups in random order, each to the smallest fold so far."""
    _, place, counts = np.unique(groups, return_inverse=True, return_counts=True)
    fold_of, filled = np.empty(counts.size, dtype=np.int64), np.zeros(folds, dtype=np.int64)
    for group in rng.permutation(counts.size):
        fold_of[group] = filled.argmin()
        filled[fold_of[group]] += counts[group]
    return fold_of[place]
