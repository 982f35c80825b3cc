"""The most that an audit of m examples can show: the bound when every guess is right."""

import numpy as np
from scipy.special import bdtrik

from paperlib.bounds.one_run.anytime import anytime_with_failures
from paperlib.bounds.one_run.fair_coins import IMPLAUSIBLE
from paperlib.bounds.one_run.guesses import dyadic_counts
from paperlib.bounds.one_run.tails import published_p_value, refuted_log_odds
from paperlib.core import Guess, check_choice
from paperlib.core.checks import FloatArray, IntArray, check_confidence, check_counts, check_delta

_ONE_SIDED = ("members", "nonmembers")


def perfect_epsilon(m: int, delta: float = 0.0, confidence: float = 0.95) -> float:
    """The epsilon that the default audit of m examples shows if every one of m guesses is right.

    Guarantee:
        No audit of m examples by the default search shows more, however good the attack.

    Args:
        m: Number of audit examples, at least 1.
        delta: Delta of (epsilon, delta)-DP, in [0, 1).
        confidence: Confidence level of the bound, in (0, 1).

    Returns:
        Nats, at least 0.

    Raises:
        ValueError: A value is out of range.

    >>> round(perfect_epsilon(1000, 1e-5), 2)
    5.57
    """
    total = int(check_counts("m", m, minimum=1))
    m_delta, error = total * check_delta(delta), 1 - check_confidence(confidence)
    return _anytime(total, error, m_delta, sides=2)


def most_guesses(m: int, guess: Guess) -> int:
    """Largest number of guesses that can all be right, of m examples included by fair coins.

    Guesses on one side can all be right only on as many examples as the coins put there; counts that
    `audit_one_run` refuses as no outcome of fair coins stay out.

    >>> most_guesses(1000, "both"), most_guesses(1000, "members")
    (1000, 577)
    """
    return m if guess not in _ONE_SIDED else min(m, int(np.ceil(bdtrik(1 - IMPLAUSIBLE / 2, m, 0.5))))


def perfect_curve(guesses: IntArray, m: int, delta: float, confidence: float, guess: Guess) -> FloatArray:
    """The bound at each guess count if all of them are right, nats, same shape as ``guesses``."""
    check_choice("guess", guess, Guess)
    m_delta, error = m * delta, 1 - confidence
    if guess == "grid":
        return refuted_log_odds(guesses, guesses, error / _grid_pairs(m), m_delta, published_p_value)
    sides = 1 if guess in _ONE_SIDED else 2
    return np.array([_anytime(int(r), error, m_delta, sides=sides) for r in guesses])


def _anytime(right: int, error: float, m_delta: float, *, sides: int) -> float:
    count = np.array([right])
    return anytime_with_failures(count, count, error=error, m_delta=m_delta, sides=sides).epsilon


def _grid_pairs(m: int) -> int:
    sizes = np.append(dyadic_counts(m, smallest=4), 0)
    pairs = sizes[:, None] + sizes[None, :]
    return int(((pairs > 0) & (pairs <= m)).sum())
