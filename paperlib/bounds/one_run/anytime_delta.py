"""The anytime search under (epsilon, delta)-DP: some right guesses come for free, and few do.

Given everything else, call a guess failed when it is right and its posterior chance of being
right exceeds ``q = e^eps / (1 + e^eps)``, just often enough to bring that chance down to q. What
remains is right with probability at most q, as under pure DP. With P_1 and P_0 the laws of the
output with and without the example, a failed guess "member" has probability at most

    1/2 (1 - q) integral of (P_1 - e^eps P_0)^+  <=  1/2 (1 - q) delta,

and likewise for "non-member": in all at most ``m delta / (1 + e^eps)`` failures on average, half
of that if only members are guessed. Knowing less than everything else lowers it (Jensen).
"""

import math
from collections.abc import Callable

import numpy as np

from paperlib.bounds.one_run.anytime import (
    LARGEST,
    TOLERANCE,
    AnytimeBound,
    count_search,
    failure_budget,
    log_mixture,
    log_threshold,
)
from paperlib.core import FloatArray, IntArray

STEP = 0.25  # nats between two budgets of failures

MeanFailures = Callable[[float], float]


def one_run_failures(total: int, delta: float, *, sides: int = 2) -> MeanFailures:
    """Bound on the mean number of failures in a one-run audit, as a function of epsilon.

    Args:
        total: Audit examples m, abstentions included.
        delta: In [0, 1).
        sides: 2 if members and non-members are guessed, 1 if members only.

    >>> round(one_run_failures(10_000, 1e-5)(0.0), 6)
    0.05
    """
    return lambda epsilon: sides / 2 * total * delta / (1 + math.exp(epsilon))


def anytime_with_failures(
    correct: IntArray, guesses: IntArray, *, error: float, mean_failures: MeanFailures
) -> AnytimeBound:
    """The anytime search over given stopping points when some right guesses come for free.

    Epsilon is searched in steps of a quarter. On each, failures are budgeted by Markov's
    inequality (`failure_budget`) at the step's lower end, where they are most, so the test there
    has one level and one shift and can be inverted; the first epsilon not refuted ends the search.

    Guarantee:
        If each guess, given the earlier ones, is right with probability at most
        ``e^eps / (1 + e^eps)`` but for failures of mean at most ``mean_failures(eps)``, the result
        exceeds eps with probability at most ``error``.

    Args:
        correct: Right guesses among the first ``guesses``, shape (n,), from one fixed order.
        guesses: Guess counts at which stopping is allowed, increasing, shape (n,).
        error: Total error, in (0, 1).
        mean_failures: Falling function of epsilon.

    Source:
        This project.

    >>> k = np.arange(1, 101)
    >>> bound = anytime_with_failures(k, k, error=0.05, mean_failures=one_run_failures(100, 1e-4))
    >>> round(bound.epsilon, 3)
    3.253
    """
    found = AnytimeBound(0.0, 0, 0, error, 0)
    for start in _starts(LARGEST):
        level, failures = failure_budget(mean_failures(start), error)
        search = count_search(correct, guesses, level, failures)
        if not search.refutes(start):
            return found
        end = start + STEP
        epsilon = end if search.refutes(end) else search.bisect(start, end)
        found = AnytimeBound(epsilon, int(guesses[search.best]), int(correct[search.best]), level, failures)
        if epsilon < end:
            return found
    return found


def anytime_curve_with_failures(
    correct: IntArray, guesses: IntArray, *, error: float, mean_failures: MeanFailures, ceiling: float
) -> FloatArray:
    """The bound each guess count gives alone; all hold together at ``error``.

    Args:
        correct: Right guesses among the first ``guesses``, shape (n,).
        guesses: Guess counts, shape (n,).
        error: Total error, in (0, 1).
        mean_failures: As in `anytime_with_failures`.
        ceiling: No entry exceeds this by more than a step, nats.

    Returns:
        Nats, shape (n,). Its maximum is `anytime_with_failures`.
    """
    bound, alive = np.zeros(guesses.size), np.arange(guesses.size)
    for start in _starts(ceiling + STEP):
        level, failures = failure_budget(mean_failures(start), error)
        k = np.maximum(np.asarray(correct[alive], float) - failures, 0.0)
        r, threshold = np.asarray(guesses[alive], float), log_threshold(level)
        refuted = log_mixture(k, r, start) >= threshold
        alive, k, r = alive[refuted], k[refuted], r[refuted]
        bound[alive] = _last_refuted(k, r, threshold, start)
        alive = alive[bound[alive] >= start + STEP]
    return bound


def _last_refuted(k: FloatArray, r: FloatArray, threshold: float, start: float) -> FloatArray:
    """Largest refuted epsilon of one step at each count, from below."""
    low, high = np.full_like(r, start), np.full_like(r, start + STEP)
    whole = log_mixture(k, r, high) >= threshold
    while high.size and float((high - low).max()) > TOLERANCE:
        middle = (low + high) / 2
        refuted = log_mixture(k, r, middle) >= threshold
        low, high = np.where(refuted, middle, low), np.where(refuted, high, middle)
    return np.where(whole, start + STEP, low)


def _starts(end: float) -> list[float]:
    return [i * STEP for i in range(math.ceil(end / STEP))]
