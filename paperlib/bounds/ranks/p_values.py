"""P-values of rank audits: how likely are this many hits under (epsilon, delta)-DP?

Each set holds one value seen in training and generated alternatives from the same distribution.
Under epsilon-DP for replacing one value by another, two candidates of a set differ in likelihood by
at most ``e^epsilon``. If the ``r`` best of ``n`` candidates are all ``e^epsilon`` times likelier
than the rest, they hold the true one with probability ``r e^epsilon / (r e^epsilon + n - r)``, and
never with more.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, logit

from paperlib.bounds.one_run.tails import NUMERICAL_MARGIN, log_sf, published_p_value
from paperlib.bounds.ranks.candidates import spread
from paperlib.core import FloatArray, IntArray
from paperlib.core.checks import (
    check_choice,
    check_confidence,
    check_counts,
    check_delta,
    check_nonnegative,
)
from paperlib.core.options import DeltaTerm, RankBound

# No sum of coins of variance s^2 takes one value with more probability than this over s.
_CONCENTRATION = 0.46883  # Baillon, Cominetti and Vaisman (2016), rounded up


@dataclass(frozen=True, eq=False)
class CandidateSets:
    """Candidate sets by distinct (size, top): sets of one kind share their success probability."""

    sizes: FloatArray  # candidates of a set of each kind, shape (kinds,)
    tops: FloatArray  # how many of them are guessed, shape (kinds,)
    kind: IntArray  # number of each set's kind, shape (m,)
    bound: RankBound  # which bound on the chance of a hit is used

    @property
    def count(self) -> int:
        """Number of sets, m."""
        return self.kind.size

    @property
    def total_size(self) -> float:
        """Candidates of all sets together."""
        return float(self.sizes[self.kind].sum())

    def chances(self, epsilon: float) -> FloatArray:
        """Largest chance of a hit in a set of each kind, shape (kinds,), at ``epsilon``, nats."""
        return _success(self.sizes, self.tops, np.float64(epsilon), self.bound)


def rank_p_value(
    correct: int,
    set_sizes: ArrayLike,
    epsilon: float,
    *,
    top: ArrayLike = 1,
    delta: float = 0.0,
    bound: RankBound = "tight",
    delta_term: DeltaTerm = "published",
) -> float:
    """Largest probability of ``correct`` hits or more under any (epsilon, delta)-DP training.

    Guarantee:
        At delta = 0 and with the sharp delta term, always; with Theorem 2 and sets of one kind,
        always; with Theorem 2 and mixed sets as far as that theorem holds (see the book). Never
        rounded down.

    Args:
        correct: Number of hits, 0 to m.
        set_sizes: Candidates per set, shape (m,), at least 2.
        epsilon: Nats, at least 0, under replacement.
        top: Places that count as a hit, scalar or shape (m,), at most the set size.
        delta: In [0, 1).
        bound: "tight" (ours) or "paper" (Theorem 1).
        delta_term: "published" (Theorem 2) or "sharp" (ours, with the tight bound).

    Raises:
        ValueError: A count, size, place, epsilon or delta out of range, or an unknown bound or term
            of delta.

    >>> round(rank_p_value(400, [64] * 500, 5.341780), 4)
    0.05
    """
    sizes = check_counts("set_sizes", set_sizes, minimum=2)
    if sizes.ndim != 1 or not sizes.size:
        raise ValueError(f"set_sizes: expected a non-empty 1-D array, got shape {sizes.shape}")
    sets = candidate_sets(sizes, top, bound)
    hits = int(check_counts("correct", correct))
    if hits > sets.count:
        raise ValueError(f"correct: expected at most {sets.count}, the number of sets, got {hits}")
    check_delta_term(sets, delta_term)
    level = check_nonnegative("epsilon", epsilon)
    return p_value(hits, sets, level, check_delta(delta), delta_term)


def rank_epsilon(
    correct: ArrayLike,
    sets: ArrayLike,
    set_size: ArrayLike,
    *,
    top: ArrayLike = 1,
    confidence: float = 0.95,
    bound: RankBound = "tight",
) -> FloatArray:
    """Lower bound on epsilon at delta = 0 from counts, for sets of one size: nats, rounded down;
    broadcasts.

    Guarantee:
        If training is epsilon-DP under replacement of one value and each true value was drawn
        uniformly from its set, each entry by itself exceeds epsilon with probability at most
        ``1 - confidence``.

    Args:
        correct: Hits, 0 to ``sets``, the number of sets.
        set_size: Candidates in every set, at least 2.
        top: Places that count as a hit, at most the set size.
        confidence: In (0, 1).
        bound: "tight" (ours) or "paper" (Theorem 1).

    Raises:
        ValueError: More hits than sets, a size, place or confidence out of range, or an unknown
            bound.

    Source:
        Theorem 1 inverted at the Clopper-Pearson end of the hit rate.

    >>> float(rank_epsilon(450, 500, 64, top=8, bound="paper").round(6))
    2.046166
    """
    check_choice("bound", bound, RankBound)
    v, m, n, r = np.broadcast_arrays(
        check_counts("correct", correct),
        check_counts("sets", sets, minimum=1),
        check_counts("set_size", set_size, minimum=2),
        check_counts("top", top, minimum=1),
    )
    if (v > m).any():
        raise ValueError(
            f"correct: expected at most the number of sets, got {v[v > m][0]} of {m[v > m][0]}"
        )
    _check_tops(n, r)
    # The least hit rate that the hits leave open; then the epsilon whose chance of a hit it is.
    rate = betaincinv(np.maximum(v, 1), m - v + 1.0, 1.0 - check_confidence(confidence))
    with np.errstate(divide="ignore"):
        if bound == "tight":
            raw = logit(rate) + np.log(n - r) - np.log(r)
        else:
            raw = np.log(rate) + np.log(n - 1.0) - np.log(r - rate)
    lowered = raw - NUMERICAL_MARGIN * (1.0 + np.abs(raw))
    return np.asarray(np.where((v > 0) & (lowered > 0), lowered, 0.0))


def rank_success_probability(
    set_size: ArrayLike, epsilon: ArrayLike, *, top: ArrayLike = 1, bound: RankBound = "tight"
) -> FloatArray:
    """Largest chance that the true value is among the ``top`` best, under epsilon-DP for
    replacement.

    Guarantee:
        "tight" is attained by the subset-selection mechanism; "paper" is never smaller, clipped at
        1.

    Args:
        set_size: Candidates, at least 2; broadcasts, as do the next two.
        epsilon: Nats, at least 0.
        top: Places that count as a hit, at most the set size.
        bound: "tight" (this project's) or "paper" (natural identifiers, Theorem 1).

    Raises:
        ValueError: ``epsilon`` below 0, a size below 2, places beyond a set, or an unknown bound.

    >>> rank_success_probability(64, 1.5, top=[1, 8]).round(6)
    array([0.066413, 0.390334])
    """
    check_choice("bound", bound, RankBound)
    sizes, tops = np.broadcast_arrays(
        check_counts("set_size", set_size, minimum=2), check_counts("top", top, minimum=1)
    )
    _check_tops(sizes, tops)
    epsilons = np.asarray(epsilon, dtype=np.float64)
    if not (epsilons >= 0).all():
        raise ValueError(f"epsilon: expected at least 0, got {epsilons[~(epsilons >= 0)][0]:g}")
    return _success(sizes.astype(float), tops.astype(float), epsilons, bound)


def _success(
    sizes: FloatArray, tops: FloatArray, epsilon: ArrayLike, bound: RankBound
) -> FloatArray:
    """Largest chance under epsilon-DP that the true candidate is among the top ones of its set.

    Args:
        sizes, tops: Candidates of each kind of set, and how many of them are guessed, shape (k,).
        epsilon: Nats, one number or shape (k,).

    Returns:
        Chances in (0, 1], shape (k,).
    """
    shrink = np.exp(-np.asarray(epsilon, dtype=np.float64))  # e^-epsilon never overflows
    if bound == "tight":
        return np.asarray(tops / (tops + (sizes - tops) * shrink))
    return np.asarray(np.minimum(1.0, tops / (1.0 + (sizes - 1.0) * shrink)))


def p_value(
    correct: int, sets: CandidateSets, epsilon: float, delta: float, delta_term: DeltaTerm
) -> float:
    """Largest probability of ``correct`` hits or more, among all sets, under any (epsilon,
    delta)-DP training; epsilon in nats. Nothing is checked.

    ``delta_term`` is "published" (Theorem 2) or "sharp" (ours).
    """
    if correct == 0:
        return 1.0
    chances = sets.chances(epsilon)
    if sets.sizes.size > 1:
        return _mixed_p_value(correct, sets, chances, delta, delta_term)
    chance = float(chances[0])
    base = float(np.exp(log_sf(correct, sets.count, chance)))
    if delta == 0:
        return base
    exact = _exact_p_value(correct, sets, epsilon, delta)
    if delta_term == "sharp":
        return exact
    # Theorem 2 takes the failures as independent of the hits, which can understate p near 1.
    # It gives each set n delta failures where sets of two give 2 delta, so m delta is half of their
    # sum.
    m_delta = delta * sets.total_size / 2
    return max(exact, float(published_p_value(correct, sets.count, logit(chance), m_delta)))


def _mixed_p_value(
    correct: int, sets: CandidateSets, chances: FloatArray, delta: float, delta_term: DeltaTerm
) -> float:
    """P-value of ``correct`` hits among sets of several kinds: their tail, and what delta adds to
    it.

    Args:
        chances: Largest chance of a hit for each kind of set, shape (k,).
        delta_term: Which of two upper bounds of what delta adds is taken.
    """
    hits = poisson_binomial(chances[sets.kind])
    base = float(hits.upper_tail(correct))
    if delta == 0:
        return base
    if delta_term == "sharp":
        return min(1.0, base + delta * _martingale_cost(sets, chances))
    # Theorem 2's dual solution; any upper bound of the tail keeps it feasible.
    steps = np.arange(1, correct + 1)
    slope = np.max((hits.upper_tail(correct - steps) - base) / steps)
    return min(1.0, base + delta * sets.total_size * max(0.0, float(slope)))


def _martingale_cost(sets: CandidateSets, chances: FloatArray) -> float:
    """How much each unit of delta can add to the probability of v hits or more, for any v and sets
    of any kinds.

    Source:
        The page natural identifiers of the book.
    """
    # Take the sets one after the other. Set j, of n_j candidates of which r_j are guessed, is a hit
    # (X_j = 1) with chance q_j at delta = 0. The gain over independent coins is the sum, over the
    # sets, of the means of
    #     (X_j - q_j) * P[the later coins hit exactly v - 1 - earlier hits times],
    # each at most delta * factor_j * (the largest such probability), where
    #     factor_j = (1 - q_j) (n_j - 1) / (n_j - r_j).
    costs = sets.sizes > sets.tops  # where all candidates are guessed, a hit is sure and is free
    size, top, chance = sets.sizes[costs], sets.tops[costs], chances[costs]
    factor_of_kind = (1.0 - chance) * (size - 1.0) / (size - top)
    sets_of_kind = np.bincount(sets.kind, minlength=sets.sizes.size)[costs]

    # Any order is valid. Sets of large factors come first, while many coins are still to come: the
    # more the later hits vary, the less probable is any one number of them.
    largest_first = np.argsort(-factor_of_kind)
    repeats = sets_of_kind[largest_first]
    factors = np.repeat(factor_of_kind[largest_first], repeats)
    variances = np.repeat((chance * (1.0 - chance))[largest_first], repeats)
    from_here_on = np.cumsum(variances[::-1])[::-1]
    later_variance = np.append(from_here_on[1:], 0.0)  # nothing comes after the last set

    with np.errstate(divide="ignore"):  # where no later coin varies, the probability may be 1
        most_probable = np.minimum(1.0, _CONCENTRATION / np.sqrt(later_variance))
    rounding = 1.0 + 1e-9  # so that the cost is never rounded down
    return float((factors * most_probable).sum()) * rounding


def _exact_p_value(correct: int, sets: CandidateSets, epsilon: float, delta: float) -> float:
    """Largest probability of ``correct`` hits or more over all (epsilon, delta)-DP mechanisms, for
    sets of one kind: ``1 - (1 - b)(1 - c)``; epsilon in nats.
    """
    # W is the number of hits at delta = 0, of m sets of n candidates of which r are guessed, and v
    # is ``correct``: b = P[W >= v], c = delta (m / v) ((n - 1) / (n - r)) / P[W = v | W >= v].
    # Attained by subset selection that with chance c is conditioned on v hits or more; the proof is
    # in the book, page natural identifiers.
    n, r, m, v = sets.sizes[0], sets.tops[0], sets.count, correct
    if r == n:
        return 1.0
    chance = float(_success(n, r, epsilon, "tight"))
    log_tail = float(log_sf(v, m, chance))
    log_next = float(log_sf(v + 1, m, chance)) if v < m else -np.inf
    at_v = -np.expm1(log_next - log_tail)  # P[W = v | W >= v]
    if not at_v > 0:
        return 1.0
    lift = min(1.0, delta * m / v * (n - 1.0) / (n - r) / at_v * (1.0 + 1e-9))
    base = float(np.exp(log_tail))
    return base + lift * (1.0 - base)


def mean_failures_of_sets(sets: CandidateSets, delta: float, epsilon: float) -> float:
    """Bound on the mean number of hits, of all sets, to give up, so that the others are those of
    epsilon-DP; ``delta`` in [0, 1), ``epsilon`` in nats.
    """
    # Let x_1, ..., x_n be the likelihoods of the output given each candidate of a set and all other
    # sets, A the r guessed ones and B the others. Where a hit has a chance above q, it is given up
    # just often enough to bring it down to q: a mass of (sum_A x - q sum x)+ / n. That is at most
    # the sum over A x B of (x_a - e^eps x_b)+ / (n (r e^eps + n - r)), of n (n - 1) terms that
    # integrate to delta at most. Knowing the earlier sets alone lowers the mass further (Jensen).
    # The paper's q is larger, and gives up less.
    free = (sets.sizes - 1.0) * (sets.sizes > sets.tops)
    each = free * np.exp(-epsilon) / (sets.tops + (sets.sizes - sets.tops) * np.exp(-epsilon))
    return delta * float(each @ np.bincount(sets.kind, minlength=each.size))


def candidate_sets(sizes: IntArray, top: ArrayLike, bound: RankBound) -> CandidateSets:
    """Group sets of ``sizes`` candidates, shape (m,), by size and ``top``, the number of guessed
    ones, one number or (m,).

    Returns:
        The kinds of sets, and the kind of each set, shape (m,).

    Raises:
        ValueError: More guessed candidates than a set has, or an unknown bound.
    """
    check_choice("bound", bound, RankBound)
    tops = spread("top", top, sizes.size, minimum=1)
    _check_tops(sizes, tops)
    kinds, kind = np.unique(np.stack([sizes, tops], axis=1), axis=0, return_inverse=True)
    return CandidateSets(kinds[:, 0].astype(float), kinds[:, 1].astype(float), kind.ravel(), bound)


def _check_tops(sizes: IntArray, tops: IntArray) -> None:
    """Refuse (ValueError) more guessed candidates than a set has: ``sizes`` and ``tops`` are the
    candidates, and the guessed ones, of each set, shape (m,).
    """
    if (tops > sizes).any():
        first = int(np.flatnonzero(tops > sizes)[0])
        raise ValueError(
            f"top: expected at most the set size, got {tops.flat[first]} for a set of "
            f"{sizes.flat[first]}"
        )


def check_delta_term(sets: CandidateSets, delta_term: DeltaTerm) -> None:
    """Refuse (ValueError) an unknown delta term, and the sharp one with the paper's bound, for
    which it is not made.
    """
    check_choice("delta_term", delta_term, DeltaTerm)
    if delta_term == "sharp" and sets.bound != "tight":
        raise ValueError(
            f"delta_term: 'sharp' needs bound='tight', got bound={sets.bound!r}; use 'published'"
        )


# The tail of a sum of independent coins, never reported too small. A Fourier transform loses one of
# 1e-20 in round-off of size 1e-16. Here the coins are merged in a binary tree by direct
# convolution: every term is nonnegative, so nothing cancels. Ends of negligible mass are cut, and
# the cut mass is added to every tail.
_BLOCK = 64  # coins merged without cutting, all blocks at once
_CUT = 1e-32  # mass that one cut may remove at either end: far below 1 - confidence of any float


@dataclass(frozen=True, eq=False)
class PoissonBinomial:
    """Distribution of the number of heads among independent coins."""

    start: int  # count of the first entry of ``mass``
    mass: FloatArray  # probability of ``start``, ``start + 1``, ..., shape (k,)
    missing: float  # probability cut away at both ends, an upper bound
    coins: int

    def upper_tail(self, counts: ArrayLike) -> FloatArray:
        """P[heads >= count] for each count, same shape: never understated, exact to a relative 1e-9
        above 1e-22.
        """
        tails = np.append(np.cumsum(self.mass[::-1])[::-1], 0.0)
        # The tree depends on the probabilities, whose own round-off counts once per coin as well.
        tails = tails * (1.0 + 8.0 * (self.coins + 16) * np.finfo(float).eps) + self.missing
        whole_counts = np.asarray(counts, dtype=np.int64)
        offsets = np.clip(whole_counts - self.start, 0, self.mass.size)
        return np.where(whole_counts <= 0, 1.0, np.minimum(tails[offsets], 1.0))


def poisson_binomial(probabilities: ArrayLike) -> PoissonBinomial:
    """Distribution of the number of heads among independent coins, by direct convolution in a tree.

    Args:
        probabilities: Of heads, one for each coin, of any shape.

    Raises:
        ValueError: No coin, or a number outside [0, 1].
    """
    chances = np.sort(np.asarray(probabilities, dtype=np.float64).ravel())
    if not chances.size or not ((chances >= 0) & (chances <= 1)).all():
        raise ValueError(
            f"probabilities: expected values in [0, 1], got {chances.size} values {chances[:3]}"
        )
    missing = 0.0
    # Of each group of coins, the heads of its first entry and the probabilities from there on.
    sums: list[tuple[int, FloatArray]] = []
    for block in _blocks(chances):
        start, mass, cut = _trim(0, block)
        sums.append((start, mass))
        missing += cut
    while len(sums) > 1:
        merged: list[tuple[int, FloatArray]] = [sums[-1]] if len(sums) % 2 else []
        for (first, left), (second, right) in zip(sums[0:-1:2], sums[1::2], strict=False):
            start, mass, cut = _trim(first + second, np.convolve(left, right))
            merged.append((start, mass))
            missing += cut
        sums = merged
    start, mass = sums[0]
    return PoissonBinomial(start, mass, missing, chances.size)


def _blocks(chances: FloatArray) -> FloatArray:
    """Probabilities of 0, 1, 2, ... heads in each block of consecutive coins, 64 or fewer, shape
    (blocks, coins per block + 1); ``chances`` are those of heads, shape (coins,).
    """
    size = min(_BLOCK, 1 << (chances.size - 1).bit_length())
    padded = np.zeros(-(-chances.size // size) * size)
    padded[: chances.size] = chances  # a coin that never shows heads changes nothing
    masses = np.stack([1.0 - padded, padded], axis=1)  # blocks of one coin
    for _ in range(size.bit_length() - 1):  # each round joins neighbours, by convolution
        left, right = masses[0::2], masses[1::2]
        width = left.shape[1]
        masses = np.zeros((left.shape[0], 2 * width - 1))
        for shift in range(width):
            masses[:, shift : shift + width] += left[:, shift, None] * right
    return masses


def _trim(start: int, mass: FloatArray) -> tuple[int, FloatArray, float]:
    """Cut both ends while the mass lost at each stays below 1e-32.

    Args:
        start: Heads of the first entry of ``mass``.
        mass: Probabilities of ``start``, ``start + 1``, ... heads.

    Returns:
        The same two of what is kept, and an upper bound on the probability that was lost.
    """
    from_left, from_right = np.cumsum(mass), np.cumsum(mass[::-1])
    low = int(np.searchsorted(from_left, _CUT, side="right"))
    high = int(np.searchsorted(from_right, _CUT, side="right"))
    kept: NDArray[np.float64] = mass[low : mass.size - high]
    lost = (from_left[low - 1] if low else 0.0) + (from_right[high - 1] if high else 0.0)
    return start + low, kept, float(lost) * (1.0 + 1e-9)
