"""One test for every guess count at once: a mixture supermartingale and Ville's inequality.

(Derivation: book, one-run audit.) If each guess is right with probability at most
``q = e^eps / (1 + e^eps)`` given the earlier ones, then

    M_r = integral over p in [q, 1] of prod_i (p/q)^X_i ((1-p)/(1-q))^(1-X_i) dF(p)

ever reaches ``1/level`` with probability at most ``level``. F is a Beta(1/2, 1/2) cut to [q, 1],
for leaks of any kind, mixed with a point at the log-odds eps + 3, for few guesses that are nearly
sure.

At a fixed r, the Beta part B_r has the slope ``h (B_r - 1) - B_r (k - r q) / (q (1-q))`` in q,
where its hazard h satisfies ``h q (1-q) <= 1/2``; the other part falls in q. M_r >= e implies k - r
q > 1/2. So M_r falls in epsilon wherever it is at least e, and each test can be inverted by
bisection. Levels above 1/3 are tested at 1/3.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincc, betaln

from paperlib.bounds.one_run.tails import last_refuted
from paperlib.core import FloatArray, IntArray
from paperlib.core.checks import check_in

_LOG_BETA_PRIOR = math.log(math.pi)  # betaln(1/2, 1/2)
_SHARP = 3.0  # nats of the point above q
_LARGEST = 60.0  # nats; no audit of fewer than e^60 guesses reaches it
_TOLERANCE = 1e-9
_STEP = 0.25  # nats between two budgets of failures


def sharp_share(most: int | None) -> float:
    """Share of the point in the prior of at most ``most`` guesses, fixed beforehand; None leaves it
    out.
    """
    # Of many guesses enough are nearly sure for the Beta part; there the point would cost other
    # leaks power.
    return 0.0 if most is None else min(0.5, 8 / math.sqrt(most))


def log_mixture(
    correct: ArrayLike, guesses: ArrayLike, epsilon: ArrayLike, share: float = 0.0
) -> FloatArray:
    """Log of the mixture supermartingale M_r after r = ``guesses``, at log-odds ``epsilon``;
    broadcasts.
    """
    k, r, e = np.asarray(correct, float), np.asarray(guesses, float), np.asarray(epsilon, float)
    broad, sharp = _parts(k, r, betaln(k + 0.5, r - k + 0.5), e, share)
    return np.logaddexp(broad + _log_kept(k, r, 1.0 / (1.0 + np.exp(-e))), sharp)


def _log_kept(k: FloatArray, r: FloatArray, q: FloatArray) -> FloatArray:
    """Log of the share of the Beta part that its cut at q leaves."""
    with np.errstate(divide="ignore"):
        return np.log(betaincc(k + 0.5, r - k + 0.5, q))


def _parts(
    k: FloatArray, r: FloatArray, log_beta: FloatArray, e: FloatArray | float, share: float
) -> tuple[FloatArray, FloatArray]:
    """Logs of the two parts of M_r, the Beta part without the cut at q: an upper bound, and
    cheap.
    """
    # The Beta(1/2, 1/2) prior keeps the mass (2/pi) atan(e^(-eps/2)) above q.
    e = np.asarray(e, float)
    prior_kept = np.log(2.0 / math.pi * np.arctan(np.exp(-e / 2)))
    right, wrong = np.log1p(np.exp(-e)), np.logaddexp(0.0, e)  # logs of 1 / q and 1 / (1 - q)
    broad = np.asarray(log_beta - _LOG_BETA_PRIOR - prior_kept + k * right + (r - k) * wrong)
    if share == 0:
        return broad, np.full(broad.shape, -np.inf)
    sharp = k * (right - np.log1p(np.exp(-e - _SHARP))) + (r - k) * (
        wrong - np.logaddexp(0.0, e + _SHARP)
    )
    return math.log1p(-share) + broad, np.asarray(math.log(share) + sharp)


class _CountSearch:
    """Asks whether any given stopping point refutes an epsilon, forgetting those that cannot refute
    more.
    """

    def __init__(
        self, correct: IntArray, guesses: IntArray, level: float, failures: int, most: int | None
    ) -> None:
        self._share = sharp_share(most)
        self._k = np.maximum(np.asarray(correct, float) - failures, 0.0)
        self._r, self._threshold = np.asarray(guesses, float), log_threshold(level)
        self._log_beta = betaln(self._k + 0.5, self._r - self._k + 0.5)
        self._index = np.arange(self._k.size)
        self.best = 0  # position of a count that refutes the last refuted epsilon

    def refutes(self, epsilon: float) -> bool:
        """Whether some count refutes ``epsilon``, nats; later questions must be about larger
        ones.
        """
        broad, sharp = _parts(self._k, self._r, self._log_beta, epsilon, self._share)
        # At or below the accuracy q every factor of M_r is at most 1.
        upper, q = np.logaddexp(broad, sharp), 1.0 / (1.0 + np.exp(-epsilon))
        hopeful = np.flatnonzero((upper >= self._threshold) & (self._k > self._r * q))
        if not hopeful.size:
            return False
        likeliest = hopeful[np.argmax(upper[hopeful])]
        for tried in (np.array([likeliest]), hopeful):
            kept = _log_kept(self._k[tried], self._r[tried], q)
            exact = np.logaddexp(broad[tried] + kept, sharp[tried])
            if exact.max() >= self._threshold:
                self.best = int(self._index[tried[np.argmax(exact)]])
                # M_r falls in epsilon, so a count that fails here fails at every larger epsilon.
                self._k, self._r = self._k[hopeful], self._r[hopeful]
                self._log_beta, self._index = self._log_beta[hopeful], self._index[hopeful]
                return True
        return False

    def alone(self, start: float, end: float) -> FloatArray:
        """Largest epsilon between two, nats, that each count refutes alone, from below, shape
        (counts,); -1 where there is none.
        """

        def refuted(epsilon: ArrayLike) -> NDArray[np.bool_]:
            return log_mixture(self._k, self._r, epsilon, self._share) >= self._threshold

        low, high = np.where(refuted(end), end, start), np.full_like(self._r, end)
        return np.where(refuted(start), last_refuted(refuted, low, high, _TOLERANCE), -1.0)


def failure_budget(mean_failures: float, beta: float) -> tuple[float, int]:
    """Level of the test and failures f: ``level + mean_failures / (f + 1) <= beta``, by Markov."""
    if mean_failures <= 0.7 * beta:
        return beta - mean_failures, 0
    failures = math.ceil(mean_failures / (0.7 * beta)) - 1
    return beta - mean_failures / (failures + 1), failures


def log_threshold(level: float) -> float:
    """What log M_r must reach to refute at error ``level``."""
    return max(math.log(1 / check_in("(0, 1)", "level", level)), math.log(3))


def mean_failures(epsilon: float, m_delta: float, *, sides: int = 2) -> float:
    """Bound on the mean number of failures at ``epsilon``, 1 or 2 sides guessed; it falls with
    epsilon.
    """
    # In PANORAMIA x = c + epsilon stands in for epsilon and the relaxation g for delta: thinning
    # the right guesses to a chance of q takes away (1 - q) (a - e^x b)^+, (1 - q) g / 2 of an
    # example on average.
    return sides / 2 * m_delta / (1 + math.exp(epsilon))


@dataclass(frozen=True)
class AnytimeCounts:
    """Every guess count is tested at once, where right guesses of mean `mean_failures` come for
    free.
    """

    error: float  # error allowed for all counts together, in (0, 1)
    m_delta: float = 0.0  # m times delta, m being all audit examples; at least 0
    sides: int = 2  # 2 if members and non-members are guessed, 1 if members only
    most: int | None = None  # guesses that can be made at all: m, or None for any number

    def best(self, correct: IntArray, guesses: IntArray) -> tuple[float, int]:
        """The largest epsilon that any count refutes, nats, and the position of that count; 0 and
        the last position where nothing is refuted.

        Args:
            correct: Right guesses, shape (counts,).
            guesses: Guesses, right and wrong, shape (counts,).
        """
        epsilon, reached = 0.0, guesses.size - 1
        for start, end, level, failures in self._steps():
            search = _CountSearch(correct, guesses, level, failures, self.most)
            if not search.refutes(start):
                break
            low = high = start
            while high < end:
                high = min(max(1.0, 2 * low), end)
                if not search.refutes(high):
                    break
                low = high
            epsilon, reached = (
                float(last_refuted(search.refutes, low, high, _TOLERANCE)),
                search.best,
            )
            if epsilon != end:
                break
        return epsilon, reached

    def refutes(self, correct: IntArray, guesses: IntArray, epsilon: float) -> bool:
        """Whether the bound of ``correct`` of ``guesses``, shape (counts,), exceeds ``epsilon``,
        nats; it is not computed.
        """
        return all(
            _CountSearch(correct, guesses, level, failures, self.most).refutes(min(end, epsilon))
            for _, end, level, failures in self._steps(epsilon)
        )

    def refuting(
        self, correct: IntArray, guesses: IntArray, game: IntArray, games: int, epsilon: float
    ) -> NDArray[np.bool_]:
        """Whether each game's bound exceeds ``epsilon``, as `refutes` says of one; shape (games,).

        A game does where, in every step of epsilon up to this one, some count of it refutes the end
        of the step.

        Args:
            correct: Right guesses, shape (counts,), of all games one after another.
            guesses: Guesses, right and wrong, shape (counts,).
            game: Number of the game of each count, from 0, shape (counts,).
            games: Their number.
            epsilon: Nats.
        """
        refutes = np.ones(games, dtype=bool)
        share = sharp_share(self.most)
        for _, end, level, failures in self._steps(epsilon):
            k: FloatArray = np.maximum(correct - failures, 0.0)
            r: FloatArray = guesses.astype(np.float64)
            log_beta: FloatArray = betaln(k + 0.5, r - k + 0.5)
            e = min(end, epsilon)
            # The cheap upper bound on M_r leaves few counts to look at.
            upper = np.logaddexp(*_parts(k, r, log_beta, e, share))
            hopeful = np.flatnonzero(upper >= log_threshold(level))
            exact = log_mixture(k[hopeful], r[hopeful], e, share)
            refuting = game[hopeful[exact >= log_threshold(level)]]
            refutes &= np.bincount(refuting, minlength=games) > 0
        return refutes

    def bounds(self, correct: IntArray, guesses: IntArray) -> FloatArray:
        """The largest epsilon that each count refutes, nats, shape (counts,), 0 where it refutes
        none; all of them hold together.

        Args:
            correct: Right guesses, shape (counts,).
            guesses: Guesses, right and wrong, shape (counts,).
        """
        # Epsilon rises in steps, each with a test of its own (see `_steps`). A count goes on to the
        # next step if it refutes the whole of this one.
        bound, alive = np.zeros(guesses.size), np.arange(guesses.size)
        for start, end, level, failures in self._steps():
            search = _CountSearch(correct[alive], guesses[alive], level, failures, self.most)
            refuted = search.alone(start, end)
            some = refuted >= start  # -1 where not even the start is refuted
            alive, refuted = alive[some], refuted[some]
            bound[alive] = refuted
            alive = alive[refuted == end]
            if not alive.size:
                break
        return bound

    def _steps(self, last: float = _LARGEST) -> Iterator[tuple[float, float, float, int]]:
        """Start and end of each step of epsilon up to ``last``, and level and failures of its
        test.
        """
        # Failures are budgeted at the start, where they are most, so that the test of a step has
        # one level and one shift and can be inverted; the first epsilon not refuted ends the
        # search.
        step = _STEP if self.m_delta else _LARGEST
        for number in range(int(last / step) + 1):
            start = number * step
            mean = mean_failures(start, self.m_delta, sides=self.sides)
            yield start, start + step, *failure_budget(mean, self.error)
