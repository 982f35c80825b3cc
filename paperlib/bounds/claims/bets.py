"""A test of a whole trade-off curve in any predictable order: bets with a limit at each log-odds.

(Theorem and proof: book, one-run audit, a whole curve in any order.) The stake starts with a share
of the error. Guesses are bet on at the fair odds of a few fixed log-odds e: a bet of w wins w where
the guess is right and loses ``w e^e`` where it is wrong. What the curve lets a guess win beyond
these odds is at most ``delta(e)`` times the largest bet at e, on average, for each example of the
audit. So the stake ever reaches c times the error with probability at most 1/c.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from paperlib.bounds.claims.curves import Profile
from paperlib.core import FloatArray, IntArray

# Mean failures m delta(e) at the log-odds that are bet on, beyond those that no log-odds avoid, and
# what share of the error each pays; the stake starts with the rest. Few log-odds leave each a large
# limit. The first pays for many guesses that are little better than chance, the last for a dozen
# that are nearly sure, which a leak of few records gives. Fixed before any score is seen; every
# choice is valid.
_FAILURES = np.array([5.0, 1.0, 0.2, 0.02, 0.002])
_SHARES = np.array([0.26, 0.18, 0.1, 0.05, 0.02])
_LARGEST = 60.0  # nats; log-odds that are searched
_LARGEST_BET = 1.0  # refutes from a stake of nothing
_ROUNDS = 60  # of bisections, which leave 60 nats / 2^60
_RIGHT, _WRONG = 6.0, 0.2  # guesses counted before the first
_HALF_LIFE = 200.0  # guesses after which one counts half in the accuracy that is expected
_SEGMENTS = 16  # equal parts of a run, from its first guesses to its last
_HIT, _MISS = 1.0, 0.1  # guesses counted beside those in a segment of earlier runs
_HALF_LIVES = 8  # at least, within a run of several
_SINGLE = 200  # guesses whose bets are chosen one by one; then a block for each so many


@dataclass(frozen=True, eq=False)
class Limits:
    """Largest bets against several curves at one error; arrays of shape (curves, log-odds)."""

    error: float  # what the start and all failures cost together, in (0, 1)
    log_odds: FloatArray  # e, nats, rising
    largest: FloatArray  # largest bet at each
    start: FloatArray  # stake before the first guess, shape (curves,)


def limits_of(profiles: list[Profile], total: int, error: float) -> Limits:
    """The limits of bets on ``total`` examples against curves with these profiles.

    The largest bet w at each log-odds e is as large as its share of the ``error``, in (0, 1), pays
    for: ``total * delta(e) * w`` is what the curve lets bets at e win beyond fair odds, on average.
    The stake starts with what all of them leave of the error.

    Args:
        profiles: Of each curve, from epsilons, nats, to the least delta at each.
        total: Examples of the audit, or of all runs together.
        error: Level of the test of each curve, in (0, 1).
    """
    # All of shape (curves, log-odds).
    log_odds = np.array([_log_odds(profile, total) for profile in profiles])
    delta = np.array([profile(row) for profile, row in zip(profiles, log_odds, strict=True)])
    with np.errstate(divide="ignore"):
        largest = np.minimum(error * _SHARES / (total * delta), _LARGEST_BET)
    paid = total * (largest * delta).sum(axis=1)
    return Limits(error=error, log_odds=log_odds, largest=largest, start=error - paid)


def _log_odds(profile: Profile, total: int) -> FloatArray:
    """The log-odds that are bet on, nats, rising, shape (5,): the smallest at which ``total``
    examples have at most each of `_FAILURES` mean failures; by bisection, rounded up.
    """
    low, high = np.zeros(_FAILURES.size), np.full(_FAILURES.size, _LARGEST)
    allowed = (_FAILURES / total) + profile(high)  # delta; what 60 nats have left, none avoids
    for _ in range(_ROUNDS):
        middle = (low + high) / 2
        is_enough = profile(middle) <= allowed
        low, high = np.where(is_enough, low, middle), np.where(is_enough, middle, high)
    return np.asarray(high)


def highest_stake(
    right: NDArray[np.bool_], limits: Limits, guesses: IntArray | None = None
) -> FloatArray:
    """The highest stake against each curve, shape (curves,), or in each audit, shape (audits,).

    Guarantee:
        Where the curve holds, a stake reaches 1 with probability at most the error of the limits.

    Args:
        right: Whether each guess is right, shape (n,), in an order in which every guess, and
            whether it is made, depends on the output and on earlier coins alone. Tied examples
            stand in an order that knows no coins. Of several audits and a single curve: shape
            (audits, n).
        limits: Of as many examples as the audit has, looks and abstentions included.
        guesses: Guesses of each audit, shape (audits,), where some have fewer than n; what stands
            behind them is not read.
    """
    audits_or_curves = max(len(np.atleast_2d(right)), limits.start.size)  # one of the two is 1
    stake = np.zeros(audits_or_curves) + limits.start
    return np.maximum(stake, _path(right, stake, limits, guesses).max(axis=1, initial=0.0))


def highest_stake_of_runs(runs: Sequence[NDArray[np.bool_]], limits: Limits) -> FloatArray:
    """The highest stake against each curve, shape (curves,), where runs are read one after the
    other: the stake goes on, and the accuracy that is expected of a guess is that of the same
    segment, a sixteenth of a run, in the earlier runs.

    Args:
        runs: Whether each guess of a run is right, as for `highest_stake`, shape (n,) each.
        limits: Of as many examples as all runs will have together.
    """
    stake = highest = limits.start
    hits = made = np.zeros(_SEGMENTS)  # right guesses, and all, in each segment of earlier runs
    for right in runs:
        if not right.size:
            continue
        segment = np.arange(right.size) * _SEGMENTS // right.size  # number of each guess's
        expected = None
        if made.any():
            expected = ((_near(hits) + _HIT) / (_near(made) + _HIT + _MISS))[segment]
        half_life = right.size / _HALF_LIVES
        path = _path(right, stake, limits, half_life=half_life, expected=expected)
        stake, highest = path[:, -1], np.maximum(highest, path.max(axis=1))
        hits = hits + np.bincount(segment, right, _SEGMENTS)
        made = made + np.bincount(segment, None, _SEGMENTS)
    return highest


def _near(counts: FloatArray) -> FloatArray:
    """The counts of each segment and of those beside it together, shape (segments,)."""
    return np.convolve(counts, np.ones(3), mode="same")


def _path(
    right: NDArray[np.bool_],
    stake: FloatArray,
    limits: Limits,
    guesses: IntArray | None = None,
    *,
    half_life: float = _HALF_LIFE,
    expected: FloatArray | None = None,
) -> FloatArray:
    """The stakes after each guess of a run, shape (rows, n); a row is an audit or a curve.

    Args:
        right: Whether each guess is right, shape (n,), or (audits, n).
        stake: Stakes before the first guess, shape (rows,).
        limits: Of the bets.
        guesses: Guesses of each audit, shape (audits,); those behind them bet nothing. None: n.
        half_life: A guess counts half in the accuracy that is expected of another so many guesses
            later, 200 at most.
        expected: The accuracy that is expected of each guess where it is known before, shape (n,);
            None takes it from the guesses so far.
    """
    rows = np.atleast_2d(right)
    paths = np.empty((stake.size, rows.shape[1]))
    # Right guesses and all guesses so far, old ones counted less, beside those of the start.
    hits, made = np.full(len(rows), _RIGHT), np.full(len(rows), _RIGHT + _WRONG)
    start = 0
    while start < rows.shape[1]:
        size = 1 + start // _SINGLE
        block = rows[:, start : start + size]
        accuracy = hits / made if expected is None else expected[start : start + 1]
        wins, losses = _bets(stake, accuracy, limits)
        steps = np.where(block, wins[:, None], -losses[:, None])
        if guesses is not None:
            steps[np.arange(start, start + block.shape[1]) >= guesses[:, None]] = 0.0
        path = _stakes(stake, steps, losses)
        paths[:, start : start + size] = path
        stake = path[:, -1]
        kept = 0.5 ** (block.shape[1] / min(half_life, _HALF_LIFE))
        hits = _RIGHT + kept * (hits - _RIGHT) + np.count_nonzero(block, axis=1)
        made = (_RIGHT + _WRONG) + kept * (made - _RIGHT - _WRONG) + block.shape[1]
        start += size
    return paths


def _bets(stake: FloatArray, accuracy: FloatArray, limits: Limits) -> tuple[FloatArray, FloatArray]:
    """What a right guess wins and a wrong one loses, both of shape (rows,): the bets of fastest
    growth (Kelly) within the limits, lower log-odds first; they lose less than the stake.

    ``accuracy`` is the chance that the guess is right, as expected, shape (rows,) or (1,).
    """
    wins, losses = np.zeros_like(stake), np.zeros_like(stake)
    # A bet b more makes the stake W + b where the guess is right and L - odds b where it is wrong.
    # The mean logarithm, a log(W + b) + (1 - a) log(L - odds b), is largest at a L / odds - (1 - a)
    # W, for W = stake + wins and L = stake - losses.
    for odds, largest in zip(np.exp(limits.log_odds.T), limits.largest.T, strict=True):
        growth = accuracy * (stake - losses) / odds - (1 - accuracy) * (stake + wins)
        bet = np.clip(growth, 0.0, largest)
        wins += bet
        losses += bet * odds
    return wins, losses


def _stakes(stake: FloatArray, steps: FloatArray, losses: FloatArray) -> FloatArray:
    """The stakes after each guess of a block with one bet, shape (rows, guesses); a stake that
    cannot lose the bet again is kept until the block ends.

    Args:
        stake: Before the block, shape (rows,).
        steps: What each guess of the block adds to the stake, shape (rows, guesses).
        losses: What a wrong guess takes, shape (rows,).
    """
    path = np.asarray(stake[:, None] + np.cumsum(steps, axis=1))
    is_short = path < losses[:, None]
    is_short[:, -1] = True  # nothing is left to be kept
    first_short: IntArray = np.argmax(is_short, axis=1)[:, None]
    kept = np.take_along_axis(path, first_short, axis=1)
    guess_numbers: IntArray = np.arange(path.shape[1], dtype=np.int64)
    return np.where(guess_numbers > first_short, kept, path)
