"""One test for every guess count at once: a mixture supermartingale and Ville's inequality.

Order the guesses by confidence, an order computed from the scores alone. If each guess is right
with probability at most ``q = e^eps / (1 + e^eps)`` given the earlier ones, then

    M_r = integral over p in [q, 1] of prod_i (p/q)^X_i ((1-p)/(1-q))^(1-X_i) dF(p)

is a supermartingale, and it ever reaches ``1/level`` with probability at most ``level``. With F a
Beta(1/2, 1/2) cut to [q, 1] the integral is a ratio of incomplete betas.

At a fixed r, log M_r has the slope ``h (1 - 1/M_r) - (k - r q) / (q (1-q))`` in q, where the hazard h
of the prior satisfies ``h q (1-q) <= 1/2``; and M_r >= e implies k - r q > 1/2. So M_r falls in epsilon
wherever it is at least e, and each test can be inverted by bisection. Levels above 1/3 are tested at 1/3.

Under (epsilon, delta)-DP some right guesses come for free, and few do. Given everything else, call a
guess failed when it is right and its posterior chance of being right exceeds q, just often enough to
bring that chance down to q. What remains is right with probability at most q, as under pure DP. With
P_1 and P_0 the laws of the output with and without the example, a failed guess "member" has
probability at most

    1/2 (1 - q) integral of (P_1 - e^eps P_0)^+  <=  1/2 (1 - q) delta,

and likewise for "non-member": in all at most ``m delta / (1 + e^eps)`` failures on average, half of
that if only members are guessed. Knowing less than everything else lowers it (Jensen).
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincc, betaln

from paperlib.bounds.one_run.tails import last_refuted
from paperlib.core import FloatArray, IntArray, check_counts, check_in, check_nonnegative

_LOG_BETA_PRIOR = math.log(math.pi)  # betaln(1/2, 1/2)
LARGEST = 60.0  # nats; no audit of fewer than e^60 guesses reaches it
TOLERANCE = 1e-9
STEP = 0.25  # nats between two budgets of failures


@dataclass(frozen=True, eq=False)
class AnytimeBound:
    """Outcome of an anytime search."""

    epsilon: float  # largest log-odds refuted, nats, at least 0, rounded down
    guesses: int  # guess count at which it was reached (0 if nothing is refuted)
    correct: int  # right guesses among them
    level: float  # error probability spent on all guess counts together
    failures: int  # right guesses given away before testing


def log_mixture(correct: ArrayLike, guesses: ArrayLike, epsilon: ArrayLike) -> FloatArray:
    """Log of the mixture supermartingale M_r for ``correct`` right guesses among the first r = ``guesses``.

    ``epsilon`` is the log-odds tested, nats, at least 0; everything broadcasts. -inf where the value
    underflows, which only weakens the test.

    >>> round(float(log_mixture(100, 100, 3.254826)), 4)
    2.9957
    """
    k, r, e = np.asarray(correct, float), np.asarray(guesses, float), np.asarray(epsilon, float)
    with np.errstate(divide="ignore"):
        kept = np.log(betaincc(k + 0.5, r - k + 0.5, _expit(e)))
    return np.asarray(_log_upper(k, r, _log_evidence(k, r), e) + kept)


def _expit(e: FloatArray | float) -> FloatArray:
    return np.asarray(1.0 / (1.0 + np.exp(-np.asarray(e))))


def _log_evidence(k: FloatArray, r: FloatArray) -> FloatArray:
    return betaln(k + 0.5, r - k + 0.5) - _LOG_BETA_PRIOR


def _log_upper(k: FloatArray, r: FloatArray, evidence: FloatArray, e: FloatArray | float) -> FloatArray:
    """The mixture without its cut at q: an upper bound on log M_r, and cheap.

    The Beta(1/2, 1/2) prior keeps the mass (2/pi) atan(e^(-eps/2)) above q.
    """
    e = np.asarray(e, float)
    prior_kept = np.log(2.0 / math.pi * np.arctan(np.exp(-e / 2)))
    return evidence - prior_kept + k * np.log1p(np.exp(-e)) + (r - k) * np.logaddexp(0.0, e)


def anytime_epsilon(correct: ArrayLike, *, level: float) -> AnytimeBound:
    """Largest epsilon refuted by a sequence of guesses, searching every guess count.

    Guarantee:
        If each guess, given the earlier ones, is right with probability at most
        ``e^eps / (1 + e^eps)``, the result exceeds eps with probability at most ``level``.

    Args:
        correct: 1 for a right guess, 0 for a wrong one, most confident first, shape (n,).
        level: Error allowed, in (0, 1); more than 1/3 is treated as 1/3.

    Raises:
        ValueError: Values other than 0 and 1, or a level outside (0, 1).

    Source:
        Ville's inequality for the beta mixture; this project (formulas: one-run audit).

    >>> round(anytime_epsilon([1] * 100, level=0.05).epsilon, 6)
    3.254826
    """
    hits = check_counts("correct", correct)
    if hits.ndim != 1 or (hits > 1).any():
        raise ValueError(
            f"correct: expected a 1-D array of 0 and 1, got shape {hits.shape}, max {hits.max()}"
        )
    return anytime_from_counts(np.cumsum(hits), np.arange(1, hits.size + 1), level=level)


def anytime_from_counts(
    correct: IntArray, guesses: IntArray, *, level: float, failures: int = 0
) -> AnytimeBound:
    """`anytime_epsilon` from running counts, shape (n,), at the allowed, increasing stopping points only.

    Guarantee:
        With ``failures`` = f it still holds when up to f further guesses are right for free.

    Raises:
        ValueError: Level outside (0, 1).
    """
    search = CountSearch(correct, guesses, level, failures)
    low, high = 0.0, 1.0
    if not search.refutes(low):
        return AnytimeBound(0.0, 0, 0, level, failures)
    while high < LARGEST and search.refutes(high):
        low, high = high, 2 * high
    low = search.bisect(low, high)
    return AnytimeBound(low, int(guesses[search.best]), int(correct[search.best]), level, failures)


class CountSearch:
    """Asks whether any given stopping point refutes an epsilon, forgetting those that cannot refute more."""

    def __init__(self, correct: IntArray, guesses: IntArray, level: float, failures: int) -> None:
        self._k = np.maximum(np.asarray(correct, float) - check_nonnegative("failures", failures), 0.0)
        self._r, self._threshold = np.asarray(guesses, float), log_threshold(level)
        self._evidence = _log_evidence(self._k, self._r)
        self._index = np.arange(self._k.size)
        self.best = 0  # position of a count that refutes the last refuted epsilon

    def refutes(self, epsilon: float) -> bool:
        """Whether some count refutes ``epsilon``; later questions must be about larger ones."""
        upper = _log_upper(self._k, self._r, self._evidence, epsilon)
        # At or below the accuracy q every factor of M_r is at most 1.
        hopeful = np.flatnonzero((upper >= self._threshold) & (self._k > self._r * _expit(epsilon)))
        if not hopeful.size:
            return False
        found = self._confirmed(hopeful, upper, epsilon)
        if found is None:
            return False
        self.best = int(self._index[found])
        # M_r falls in epsilon, so a count that fails here fails at every larger epsilon.
        self._k, self._r = self._k[hopeful], self._r[hopeful]
        self._evidence, self._index = self._evidence[hopeful], self._index[hopeful]
        return True

    def bisect(self, low: float, high: float) -> float:
        """Largest refuted epsilon between a refuted and an unrefuted one, from below."""
        while high - low > TOLERANCE:
            middle = (low + high) / 2
            low, high = (middle, high) if self.refutes(middle) else (low, middle)
        return low

    def _confirmed(self, hopeful: IntArray, upper: FloatArray, epsilon: float) -> int | None:
        """A count among ``hopeful`` that refutes epsilon exactly; the likeliest is tried first."""
        likeliest = hopeful[np.argmax(upper[hopeful])]
        for tried in (np.array([likeliest]), hopeful):
            exact = log_mixture(self._k[tried], self._r[tried], epsilon)
            if exact.max() >= self._threshold:
                return int(tried[np.argmax(exact)])
        return None


def anytime_curve(
    correct: IntArray, guesses: IntArray, *, level: float, failures: int = 0, ceiling: float = LARGEST
) -> FloatArray:
    """The bound each guess count gives alone; all hold together at error ``level`` in (0, 1).

    Counts have shape (n,), ``correct`` among the first ``guesses``; ``failures`` right guesses are given
    away before testing. No entry exceeds ``ceiling``, nats: a known bound saves time.

    Returns:
        Nats, shape (n,), 0 where nothing is refuted. Its maximum is `anytime_from_counts`.
    """
    threshold = log_threshold(level)
    k = np.maximum(np.asarray(correct, float) - failures, 0.0)
    r = np.asarray(guesses, float)
    some = log_mixture(k, r, 0.0) >= threshold
    return np.where(some, _last_refuted(k, r, threshold, 0.0, ceiling), 0.0)


def _last_refuted(k: FloatArray, r: FloatArray, threshold: float, start: float, end: float) -> FloatArray:
    """Largest epsilon between two that each guess count refutes alone, from below."""
    low, high = np.full_like(r, start), np.full_like(r, end)
    return last_refuted(lambda e: log_mixture(k, r, e) >= threshold, low, high, TOLERANCE)


def failure_budget(mean_failures: float, beta: float) -> tuple[float, int]:
    """Split an error ``beta`` in (0, 1) between the anytime test and free right guesses of known mean.

    By Markov's inequality more than f free right guesses happen with probability at most
    ``mean_failures / (f + 1)``; the rest of beta goes to the test.

    Returns:
        Level of the test and f, both fixed in advance;
        ``level + mean_failures / (f + 1) <= beta``.

    >>> failure_budget(0.0, 0.05)
    (0.05, 0)
    """
    if mean_failures <= 0.7 * beta:
        return beta - mean_failures, 0
    failures = math.ceil(mean_failures / (0.7 * beta)) - 1
    return beta - mean_failures / (failures + 1), failures


def log_threshold(level: float) -> float:
    """What log M_r must reach to refute at error ``level``."""
    return max(math.log(1 / check_in("(0, 1)", "level", level)), math.log(3))


def mean_failures(epsilon: float, m_delta: float, *, sides: int = 2) -> float:
    """Bound on the mean number of failures of an audit at ``epsilon``, in nats; it falls with epsilon.

    ``m_delta`` is m times delta, m being all audit examples, abstentions included; ``sides`` is 2 if members
    and non-members are guessed, 1 if members only.

    In PANORAMIA the log-odds x = c + epsilon stand in for epsilon and the relaxation g for delta:
    Propositions 3 and 4 fail an example with probability 2 g, guessed or not. What must be given up
    is less. With densities a and b of "member, as seen" and "generated, as seen" and
    q = e^x / (1 + e^x), thinning the right guesses to a chance of q takes away
    a - q (a + b) = (1 - q) (a - e^x b) where that is positive, on average at most (1 - q) g / 2 of an
    example, since both membership coins have probability 1/2.

    >>> round(mean_failures(0.0, 10_000 * 1e-5), 6)
    0.05
    """
    return sides / 2 * m_delta / (1 + math.exp(epsilon))


def anytime_with_failures(
    correct: IntArray, guesses: IntArray, *, error: float, m_delta: float, sides: int = 2
) -> AnytimeBound:
    """The anytime search over given stopping points when some right guesses come for free.

    ``correct`` counts right guesses among the first ``guesses``, both of shape (n,) and from one fixed
    order; ``m_delta`` and ``sides`` are those of `mean_failures`. Epsilon is searched in steps of a quarter.
    On each, failures are budgeted by Markov's inequality (`failure_budget`) at the step's lower end, where
    they are most, so the test there has one level and one shift and can be inverted; the first epsilon not
    refuted ends the search.

    Guarantee:
        If each guess, given the earlier ones, is right with probability at most
        ``e^eps / (1 + e^eps)`` but for failures of mean at most `mean_failures`, the result
        exceeds eps with probability at most ``error``, in (0, 1).

    Source:
        This project.

    >>> k = np.arange(1, 101)
    >>> bound = anytime_with_failures(k, k, error=0.05, m_delta=100 * 1e-4)
    >>> round(bound.epsilon, 3)
    3.253
    """
    bound = AnytimeBound(0.0, 0, 0, error, 0)
    for start in _starts(LARGEST):
        level, failures = failure_budget(mean_failures(start, m_delta, sides=sides), error)
        search = CountSearch(correct, guesses, level, failures)
        if not search.refutes(start):
            return bound
        end = start + STEP
        epsilon = end if search.refutes(end) else search.bisect(start, end)
        bound = AnytimeBound(epsilon, int(guesses[search.best]), int(correct[search.best]), level, failures)
        if epsilon < end:
            return bound
    return bound


def anytime_curve_with_failures(
    correct: IntArray, guesses: IntArray, *, error: float, m_delta: float, sides: int = 2, ceiling: float
) -> FloatArray:
    """The bound each guess count gives alone, nats, shape (n,); all hold together at ``error``.

    Arguments as for `anytime_with_failures`, whose bound is the maximum; no entry exceeds ``ceiling``, nats,
    by more than a step.
    """
    bound, alive = np.zeros(guesses.size), np.arange(guesses.size)
    for start in _starts(ceiling + STEP):
        level, failures = failure_budget(mean_failures(start, m_delta, sides=sides), error)
        k = np.maximum(np.asarray(correct[alive], float) - failures, 0.0)
        r, threshold = np.asarray(guesses[alive], float), log_threshold(level)
        refuted = log_mixture(k, r, start) >= threshold
        alive, k, r = alive[refuted], k[refuted], r[refuted]
        end = start + STEP
        whole = log_mixture(k, r, end) >= threshold
        bound[alive] = np.where(whole, end, _last_refuted(k, r, threshold, start, end))
        alive = alive[bound[alive] >= end]
    return bound


def _starts(end: float) -> list[float]:
    return [i * STEP for i in range(math.ceil(end / STEP))]
