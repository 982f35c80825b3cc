"""From scores of candidate sets to ranks, margins and exposure."""

from collections.abc import Sequence
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike

from paperlib.core import FloatArray, IntArray
from paperlib.core.checks import check_choice, check_counts, check_vector

_FEWEST = 20  # sets of which not every one has a tie by chance
CandidateScores = ArrayLike | Sequence[ArrayLike]


def ranks_from_scores(
    true_scores: ArrayLike,
    candidate_scores: CandidateScores,
    *,
    higher_means_member: bool = True,
    ties: str = "random",
    seed: int = 0,
) -> tuple[IntArray, IntArray]:
    """Rank of each true identifier among its own candidates.

    Guarantee:
        A tie never counts in the identifier's favour: "random" gives it a uniform place among the
        tied, "pessimistic" the last one.

    Args:
        true_scores: Score of the identifier seen in training, shape (m,).
        candidate_scores: Scores of the generated alternatives: an (m, c) array, or m 1-D arrays
            whose lengths may differ.
        higher_means_member: False for losses.
        ties: "random" or "pessimistic".
        seed: Of the places of ties.

    Returns:
        Ranks, 1 is best, and set sizes (alternatives + 1), both of shape (m,).

    Raises:
        ValueError: Scores that are not finite or no sets, an unknown rule for ties, or true scores
            that stand among their own candidates.

    >>> ranks_from_scores([3.0, 1.0], [[1.0, 2.0], [2.0, 0.0]])
    (array([1, 2]), array([3, 3]))
    """
    check_choice("ties", ties, ("random", "pessimistic"))
    true, flat, owner, sizes = _flat(true_scores, candidate_scores, higher_means_member)
    # Of each candidate, the true score of its set; of each set, how many candidates beat or tie it.
    true_of_set = true[owner]
    better = np.bincount(owner[flat > true_of_set], minlength=true.size)
    tied = np.bincount(owner[flat == true_of_set], minlength=true.size)
    if true.size >= _FEWEST and (tied == 1).all() and sizes.min() > 1:
        raise ValueError(
            "candidate_scores: every true score stands among its own candidates; leave it out there"
        )
    if ties == "random":
        tied = np.random.default_rng(seed).integers(0, tied + 1)
    return (1 + better + tied).astype(np.int64), sizes + 1


def score_margins(
    true_scores: ArrayLike,
    candidate_scores: CandidateScores,
    *,
    top: int = 1,
    higher_means_member: bool = True,
) -> FloatArray:
    """Gap between the places ``top`` and ``top + 1`` of each set's pooled scores, in their unit,
    shape (m,).

    Guarantee:
        The margin looks at the pooled scores of a set only, not at which is the identifier, so an
        audit may order its guesses by it.

    Args:
        true_scores: Score of the identifier seen in training, shape (m,).
        candidate_scores: Scores of the generated alternatives: an (m, c) array, or m 1-D arrays
            whose lengths may differ.
        top: Number of places that count as a hit, smaller than every set.
        higher_means_member: False for losses.

    Raises:
        ValueError: Scores that are not finite or no sets, or ``top`` not below every set size.

    >>> score_margins([3.0, 1.0], [[1.0, 2.0], [2.0, 0.0]])
    array([1., 1.])
    """
    true, flat, owner, sizes = _flat(true_scores, candidate_scores, higher_means_member)
    last_place = int(check_counts("top", top, minimum=1))
    if last_place > sizes.min():
        raise ValueError(
            f"top: expected less than the smallest set size {sizes.min() + 1}, got {last_place}"
        )
    pooled = np.concatenate([true, flat])
    sets = np.concatenate([np.arange(true.size), owner])
    ordered = pooled[np.lexsort((-pooled, sets))]  # set after set, the best score of each first
    last_hit = np.cumsum(sizes + 1) - (sizes + 1) + last_place - 1
    return ordered[last_hit] - ordered[last_hit + 1]


def exposure(ranks: ArrayLike, set_sizes: ArrayLike) -> FloatArray:
    """Exposure ``log2(set size) - log2(rank)``, bits, shape (m,): 0 for the last place, 1 for the
    median.

    The paper divides by the number of alternatives, for which the last place gives a negative
    value; we use the set size, as Carlini et al. do.

    Args:
        ranks: Place of the true value, 1 is best, shape (m,).
        set_sizes: Candidates per set with the true one, scalar or shape (m,), at least 2.

    Raises:
        ValueError: Ranks that are not in their sets.

    Source:
        Natural identifiers, section 2; Carlini et al. (2019), The secret sharer.

    >>> exposure([1, 64, 128], 128)
    array([7., 1., 0.])
    """
    true_ranks, sizes = check_ranks(ranks, set_sizes)
    return np.log2(sizes) - np.log2(true_ranks)


def check_ranks(ranks: ArrayLike, set_sizes: ArrayLike) -> tuple[IntArray, IntArray]:
    """Ranks and set sizes as whole numbers of one shape (m,), each rank in its set.

    Raises:
        ValueError: No whole numbers of such shapes, or a rank beyond its set.
    """
    true_ranks = check_counts("ranks", ranks, minimum=1)
    if true_ranks.ndim != 1 or not true_ranks.size:
        raise ValueError(f"ranks: expected a non-empty 1-D array, got shape {true_ranks.shape}")
    sizes = spread("set_sizes", set_sizes, true_ranks.size, minimum=2)
    if (true_ranks > sizes).any():
        first = int(np.flatnonzero(true_ranks > sizes)[0])
        raise ValueError(
            f"ranks: expected 1 to the set size, got rank {true_ranks[first]} in a set of "
            f"{sizes[first]} (index {first})"
        )
    return true_ranks, sizes


def spread(name: str, values: ArrayLike, size: int, *, minimum: int) -> IntArray:
    """Whole numbers of shape (size,) from a scalar or an array of that shape.

    Raises:
        ValueError: Another shape, or no whole numbers of ``minimum`` or more; the message begins
            with ``name``.
    """
    counts = check_counts(name, values, minimum=minimum)
    if counts.shape not in ((), (size,)):
        raise ValueError(f"{name}: expected one number or {size} of them, got shape {counts.shape}")
    return np.broadcast_to(counts, (size,)).copy()


class _FlatScores(NamedTuple):
    """Scores of sets of different sizes, one set after another; higher means member."""

    true: FloatArray  # of the true identifiers, shape (sets,)
    candidates: FloatArray  # of the generated alternatives of all sets, shape (candidates,)
    owner: IntArray  # number of the set that each of these belongs to, shape (candidates,)
    sizes: IntArray  # alternatives in each set, shape (sets,)


def _flat(
    true_scores: ArrayLike, candidate_scores: CandidateScores, higher_means_member: bool
) -> _FlatScores:
    """Scores of sets, checked, turned so that higher means member, and laid end to end.

    Raises:
        ValueError: Another number of sets than of true scores, a set without a candidate, or a
            number that is not finite.
    """
    true = check_vector("true_scores", true_scores)
    rows = [np.asarray(row) for row in cast(Sequence[ArrayLike], candidate_scores)]
    if len(rows) != true.size:
        raise ValueError(
            f"candidate_scores: expected {true.size} sets like true_scores, got {len(rows)}"
        )
    sizes = np.array([row.size for row in rows], dtype=np.int64)
    if not sizes.all() or any(row.ndim != 1 for row in rows):
        raise ValueError(
            "candidate_scores: expected at least one score per set, one dimension each"
        )
    flat = check_vector("candidate_scores", np.concatenate(rows))
    sign = 1.0 if higher_means_member else -1.0
    owner = np.repeat(np.arange(true.size), sizes)
    return _FlatScores(sign * true, sign * flat, owner, sizes)
