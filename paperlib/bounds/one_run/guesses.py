"""Sets of guesses, most confident first, as running counts.

The order is computed from the scores alone. A block of tied scores enters as a whole, so that
it is one threshold and no order within it matters.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from paperlib.bounds.one_run.adaptive import Bets, ends_of, reveal
from paperlib.core import FloatArray, IntArray, MembershipScores
from paperlib.core.options import Guess


@dataclass(frozen=True, eq=False)
class GuessPath:
    """Growing sets of guesses, one entry per allowed stopping point; arrays of shape (n,)."""

    as_member: IntArray  # number of the highest scores, guessed to be members
    as_nonmember: IntArray  # number of the lowest scores, guessed to be non-members
    true_members: IntArray  # right guesses among ``as_member``
    true_nonmembers: IntArray  # right guesses among ``as_nonmember``
    high: FloatArray  # "member" is guessed at or above this score (inf where nobody is)
    low: FloatArray  # "non-member" is guessed at or below this score (-inf where nobody is)
    total: int  # number of audit examples, abstentions included

    @property
    def guesses(self) -> IntArray:
        """Guess counts r, increasing, shape (stopping points,)."""
        return self.as_member + self.as_nonmember

    @property
    def correct(self) -> IntArray:
        """Right guesses v among them, shape (stopping points,)."""
        return self.true_members + self.true_nonmembers

    def at(self, positions: IntArray) -> "GuessPath":
        """The stopping points at ``positions``, shape (k,), alone."""
        arrays = {name: values[positions] for name, values in vars(self).items() if name != "total"}
        return replace(self, **arrays)


def dyadic_counts(m: int, *, smallest: int = 8) -> IntArray:
    """m, m/2, m/4, ... down to ``smallest`` (m itself if smaller), largest first: (counts,)."""
    counts = [m]
    while counts[-1] // 2 >= smallest:
        counts.append(counts[-1] // 2)
    return np.array(counts, dtype=np.int64)


def bets_path(bets: Bets, values: FloatArray) -> GuessPath:
    """The stopping points of bets as running counts of guesses, and the thresholds so far.

    Args:
        bets: Guesses in their order.
        values: Scores of all examples, higher meaning member, shape (m,).
    """
    stop = bets.stop
    top = bets.as_member  # bets on members, from the top of the scores
    outcomes = np.array([top, ~top, top & bets.right, ~top & bets.right], dtype=np.int64)
    counts_at_stops = np.cumsum(outcomes, axis=1)[:, stop]
    as_member, as_nonmember, true_members, true_nonmembers = counts_at_stops
    # The thresholds so far: the lowest score guessed a member, the highest guessed a non-member.
    high = np.minimum.accumulate(np.where(top, values[bets.examples], np.inf))[stop]
    low = np.maximum.accumulate(np.where(top, -np.inf, values[bets.examples]))[stop]
    return GuessPath(as_member, as_nonmember, true_members, true_nonmembers, high, low, values.size)


def guess_path(scores: MembershipScores, guess: Guess) -> GuessPath:
    """The nested guesses of an option; where ties allow none, one stopping point without a
    guess.
    """
    values, labels = scores.oriented().pooled()
    order = np.argsort(-values)
    return path_of(values[order], labels[order], guess)


def path_of(
    values: FloatArray, labels: NDArray[np.bool_], guess: Guess, total: int | None = None
) -> GuessPath:
    """The nested guesses of an option, from scores that are sorted; where ties allow none, one
    stopping point without a guess.

    Args:
        values: Scores, higher meaning member, the highest first, shape (n,).
        labels: Whether each is a member, shape (n,).
        guess: Which sides are guessed, and at which numbers of guesses one may stop.
        total: Audit examples, of which the n are the two ends; None where they are all. Only the
            adaptive order asks for it.
    """
    if guess == "adaptive":
        path = bets_path(reveal(ends_of(values), labels, total=total), values)
    else:
        # Ends of tied blocks, counted from the highest score and from the lowest.
        last_of_block = np.append(np.flatnonzero(values[1:] != values[:-1]), values.size - 1)
        top = last_of_block + 1
        bottom = values.size - np.append(0, top[:-1])[::-1]
        as_member, as_nonmember = _wanted_counts(guess, top, bottom, values.size)
        path = _pairs(
            values, labels, _whole_blocks(top, as_member), _whole_blocks(bottom, as_nonmember)
        )
    return path if path.guesses.size else no_guess(values.size)


def _wanted_counts(
    guess: Guess, top: IntArray, bottom: IntArray, total: int
) -> tuple[IntArray, IntArray]:
    """Numbers of examples to be guessed members, from the top, and non-members, from the bottom, at
    each stopping point, shape (n,) each, before they are rounded down to whole tied blocks.

    ``top`` and ``bottom`` are the ends of tied blocks, counted from either end, of ``total``
    examples.
    """
    if guess == "members":
        return top, 0 * top
    if guess == "nonmembers":
        return 0 * bottom, bottom
    if guess == "grid":  # all pairs of {0, m, m/2, m/4, ... >= 4}
        sizes = np.append(dyadic_counts(total, smallest=4), 0).astype(np.int64)
        plus, minus = (axis.ravel() for axis in np.meshgrid(sizes, sizes))
        fits = (plus + minus <= total) & (plus + minus > 0)
        return plus[fits], minus[fits]
    both = np.union1d(top, bottom)
    return both, both


def no_guess(total: int) -> GuessPath:
    """The single stopping point of an audit of ``total`` examples that guesses nothing."""
    none = np.zeros(1, dtype=np.int64)
    return GuessPath(none, none, none, none, np.array([math.inf]), np.array([-math.inf]), total)


def dyadic_path(path: GuessPath) -> tuple[GuessPath, int]:
    """The path at m, m/2, ... >= 8 guesses, or the next count that ties allow, and the number of
    tests.
    """
    counts = dyadic_counts(path.total)
    positions = np.searchsorted(path.guesses, counts, side="right") - 1
    return path.at(np.unique(positions[positions >= 0])), counts.size


def threshold_path(scores: MembershipScores, high: float, low: float) -> GuessPath:
    """The single stopping point of thresholds on oriented scores: "member" at or above ``high``,
    "non-member" at or below ``low``, but only below it where both are equal.
    """
    oriented = scores.oriented()
    below = np.less if low == high else np.less_equal
    # Of the members, and of the non-members: how many are guessed members, and non-members.
    counts = [
        [(side >= high).sum(), below(side, low).sum()]
        for side in (oriented.member, oriented.nonmember)
    ]
    (true_members, false_others), (false_members, true_others) = np.array(counts)[..., None]
    return GuessPath(
        true_members + false_members,
        false_others + true_others,
        true_members,
        true_others,
        np.array([high]),
        np.array([low]),
        len(scores),
    )


def _whole_blocks(ends: IntArray, counts: IntArray) -> IntArray:
    """The largest block end of at most each wanted count, 0 if there is none."""
    return np.append(0, ends)[np.searchsorted(ends, counts, side="right")]


def _pairs(values: FloatArray, labels: NDArray[np.bool_], a: IntArray, b: IntArray) -> GuessPath:
    """One stopping point for each i: the highest a[i] scores are guessed to be members, the lowest
    b[i] non-members; without those that overlap or guess nothing.

    ``values`` fall, and ``labels``, true for members, stand in their order, shapes (m,).
    """
    keep = (a + b <= values.size) & (a + b > 0)
    a, b = a[keep], b[keep]
    members = np.append(0, np.cumsum(labels, dtype=np.int64))  # among the first 0, 1, ... scores
    true_nonmembers = b - (members[-1] - members[values.size - b])
    high = np.where(a > 0, values[np.maximum(a - 1, 0)], np.inf)
    low = np.where(b > 0, values[np.minimum(values.size - b, values.size - 1)], -np.inf)
    return GuessPath(
        as_member=a,
        as_nonmember=b,
        true_members=members[a],
        true_nonmembers=true_nonmembers,
        high=high,
        low=low,
        total=values.size,
    )
