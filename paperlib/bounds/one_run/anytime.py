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
from typing import NamedTuple

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
_STEP = 0.25  # nats; width of a range of epsilon that one budget of failures serves


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
    """Log of the mixture supermartingale M_r, in nats, in the shape to which the arguments
    broadcast.

    Args:
        correct: Right guesses k, from 0 to r.
        guesses: Guesses r, right and wrong.
        epsilon: Log-odds of a right guess under the hypothesis, nats.
        share: Share of the sharp point in the prior, in [0, 1) (see `sharp_share`).
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
    """Logs of the two parts of M_r, the Beta part and the point at e + 3, in one shape.

    The Beta part is taken without its cut at q, as an upper bound that is cheap. ``log_beta`` is
    the log of Beta(k + 1/2, r - k + 1/2); e, the log-odds of q, is in nats.
    """
    # Over the whole prior p^k (1 - p)^(r - k) has the integral Beta(k + 1/2, r - k + 1/2) / pi. It
    # is divided by the mass of the prior above q, (2/pi) atan(e^(-eps/2)), and by q^k (1 - q)^(r -
    # k). At the point p the factors p / q and (1 - p) / (1 - q) are taken as they are.
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


class _Step(NamedTuple):
    """A range of epsilon in which every value is put to the same test."""

    start: float  # nats, least epsilon of the range
    end: float  # nats, largest
    level: float  # error of the test, in (0, 1)
    failures: int  # right guesses taken off every count before the test, as paid for by delta


class _CountSearch:
    """The test of one step on many guess counts, asked about one epsilon after the other.

    Counts that do not refute an epsilon are forgotten once another count refutes it: they refute no
    larger one either.
    """

    def __init__(self, correct: IntArray, guesses: IntArray, step: _Step, most: int | None) -> None:
        """Take the counts, both of shape (counts,); ``most`` is as in `AnytimeCounts`."""
        self._share = sharp_share(most)
        self._k = np.maximum(np.asarray(correct, float) - step.failures, 0.0)
        self._r, self._threshold = np.asarray(guesses, float), log_threshold(step.level)
        self._log_beta = betaln(self._k + 0.5, self._r - self._k + 0.5)
        self._index = np.arange(self._k.size)  # where each remaining count stood at first
        self.best = 0  # position of a count that refutes the last refuted epsilon

    def refutes(self, epsilon: float) -> bool:
        """Whether some count refutes ``epsilon``, nats; each must be larger than every epsilon
        refuted before.
        """
        broad, sharp = _parts(self._k, self._r, self._log_beta, epsilon, self._share)
        # At or below the accuracy q every factor of M_r is at most 1.
        upper, q = np.logaddexp(broad, sharp), 1.0 / (1.0 + np.exp(-epsilon))
        hopeful = np.flatnonzero((upper >= self._threshold) & (self._k > self._r * q))
        if not hopeful.size:
            return False
        # The exact M_r of one count is cheap: only if it fails, those of all hopeful ones.
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

    def last_of_any(self, step: _Step) -> float:
        """The largest epsilon of the step, nats, that some count refutes; its start is refuted."""
        low = high = step.start
        # Doubling finds a bracket near the start, where most answers lie.
        while high < step.end:
            high = min(max(1.0, 2 * low), step.end)
            if not self.refutes(high):
                break
            low = high
        # Where the end itself is refuted, low = high and nothing is left to bisect.
        return float(last_refuted(self.refutes, low, high, _TOLERANCE))

    def last_of_each(self, step: _Step) -> FloatArray:
        """The largest epsilon of the step, nats, that each count refutes by itself, rounded down,
        shape (counts,); -1 where it does not refute the start. Nothing may be forgotten before.
        """
        start, end = step.start, step.end

        def refuted(epsilon: ArrayLike) -> NDArray[np.bool_]:
            """Whether each count refutes its own epsilon, nats, or one for all; shape (counts,)."""
            return log_mixture(self._k, self._r, epsilon, self._share) >= self._threshold

        low, high = np.where(refuted(end), end, start), np.full_like(self._r, end)
        return np.where(refuted(start), last_refuted(refuted, low, high, _TOLERANCE), -1.0)


def failure_budget(mean_failures: float, beta: float) -> tuple[float, int]:
    """How an error ``beta`` is divided: the level of the test, and the right guesses f given up.

    More than f failures have probability at most ``mean_failures / (f + 1)`` (Markov), so that
    ``level + mean_failures / (f + 1) <= beta``.
    """
    # At most 0.7 of the error goes to the failures; every split is valid.
    if mean_failures <= 0.7 * beta:
        return beta - mean_failures, 0
    failures = math.ceil(mean_failures / (0.7 * beta)) - 1
    return beta - mean_failures / (failures + 1), failures


def log_threshold(level: float) -> float:
    """What log M_r must reach to refute at error ``level``."""
    return max(math.log(1 / check_in("(0, 1)", "level", level)), math.log(3))


def mean_failures(epsilon: float, m_delta: float, *, sides: int = 2) -> float:
    """Upper bound on the mean number of right guesses that delta, not epsilon, pays for.

    Args:
        epsilon: Nats; the bound falls with it.
        m_delta: Number of audit examples times delta.
        sides: 2 if members and non-members are guessed, 1 if members only.
    """
    # In PANORAMIA x = c + epsilon stands in for epsilon and the relaxation g for delta: thinning
    # the right guesses to a chance of q takes away (1 - q) (a - e^x b)^+, (1 - q) g / 2 of an
    # example on average.
    return sides / 2 * m_delta / (1 + math.exp(epsilon))


@dataclass(frozen=True)
class AnytimeCounts:
    """The test of every guess count at once: lower bounds on epsilon from right and wrong guesses.

    The mean number of right guesses that delta pays for falls with epsilon (`mean_failures`). So
    epsilon is cut into steps (`_steps`), and in each of them one test, with the failures of its
    start, serves every epsilon. An epsilon is refuted by the test of its own step, and the bound
    ends at the first one that is not refuted: no error is shared between steps.
    """

    error: float  # error allowed for all counts together, in (0, 1)
    m_delta: float = 0.0  # m times delta, m being all audit examples; at least 0
    sides: int = 2  # 2 if members and non-members are guessed, 1 if members only
    most: int | None = None  # guesses that can be made at all: m, or None for any number

    def best(self, correct: IntArray, guesses: IntArray) -> tuple[float, int]:
        """The epsilon, nats, up to which some count refutes each value, and the position of a count
        that refutes the last one; 0 and the last position where nothing is refuted.

        Args:
            correct: Right guesses, shape (counts,).
            guesses: Guesses, right and wrong, shape (counts,).
        """
        epsilon, position = 0.0, guesses.size - 1
        spared: _Step | None = None  # the last step, where only the count at `position` was asked
        for step in self._steps():
            # The count that refuted the step before often refutes the whole of this one as well:
            # M_r falls in epsilon, so that it is enough to ask at the end.
            known = slice(position, position + 1)
            if _CountSearch(correct[known], guesses[known], step, self.most).refutes(step.end):
                epsilon, spared = step.end, step
                continue
            search = _CountSearch(correct, guesses, step, self.most)
            if not search.refutes(step.start):
                break
            epsilon, position, spared = search.last_of_any(step), search.best, None
            if epsilon != step.end:  # some epsilon of this step stands: the bound ends here
                break
        if spared is not None:  # of the counts that refute its end, the one furthest above
            search = _CountSearch(correct, guesses, spared, self.most)
            search.last_of_any(spared)
            position = search.best
        return epsilon, position

    def refutes(self, correct: IntArray, guesses: IntArray, epsilon: float) -> bool:
        """Whether the bound of `best` exceeds ``epsilon``, nats, without computing it; ``correct``
        and ``guesses`` are right guesses and all guesses, shape (counts,).
        """
        # M_r falls in epsilon, so a step is refuted as a whole where its end is.
        return all(
            _CountSearch(correct, guesses, step, self.most).refutes(min(step.end, epsilon))
            for step in self._steps(epsilon)
        )

    def refuting(
        self, correct: IntArray, guesses: IntArray, game: IntArray, games: int, epsilon: float
    ) -> NDArray[np.bool_]:
        """Whether the bound of each of several games exceeds ``epsilon``, shape (games,).

        It does where, in every step of epsilon up to this one, some count of the game refutes the
        end of the step: `refutes`, of all games at once.

        Args:
            correct: Right guesses, shape (counts,), of all games one after another.
            guesses: Guesses, right and wrong, shape (counts,).
            game: Number of the game of each count, from 0, shape (counts,).
            games: Their number.
            epsilon: Nats.
        """
        refutes = np.ones(games, dtype=bool)
        share = sharp_share(self.most)
        for step in self._steps(epsilon):
            k: FloatArray = np.maximum(correct - step.failures, 0.0)
            r: FloatArray = guesses.astype(np.float64)
            log_beta: FloatArray = betaln(k + 0.5, r - k + 0.5)
            e = min(step.end, epsilon)
            # The cheap upper bound on M_r leaves few counts to look at.
            upper = np.logaddexp(*_parts(k, r, log_beta, e, share))
            hopeful = np.flatnonzero(upper >= log_threshold(step.level))
            exact = log_mixture(k[hopeful], r[hopeful], e, share)
            refuting_games = game[hopeful[exact >= log_threshold(step.level)]]
            refutes &= np.bincount(refuting_games, minlength=games) > 0
        return refutes

    def bounds(self, correct: IntArray, guesses: IntArray) -> FloatArray:
        """The epsilon, nats, up to which each count by itself refutes every value, shape (counts,),
        0 where it refutes none; all of them hold together.

        Args:
            correct: Right guesses, shape (counts,).
            guesses: Guesses, right and wrong, shape (counts,).
        """
        bound = np.zeros(guesses.size)
        alive = np.arange(guesses.size)  # counts that refuted all steps so far
        for step in self._steps():
            search = _CountSearch(correct[alive], guesses[alive], step, self.most)
            last = search.last_of_each(step)
            refutes_start = last >= step.start
            bound[alive[refutes_start]] = last[refutes_start]
            alive = alive[last == step.end]  # which refute the whole step go on to the next
            if not alive.size:
                break
        return bound

    def _steps(self, last: float = _LARGEST) -> Iterator[_Step]:
        """The steps of epsilon from 0 to the one that holds ``last``, nats; one step where delta is
        0, since no failures have to be paid for.
        """
        # Failures are budgeted at the start of a step, where they are most, so that its test has
        # one level and one number of failures, and can be inverted.
        width = _STEP if self.m_delta else _LARGEST
        for number in range(int(last / width) + 1):
            start = number * width
            mean = mean_failures(start, self.m_delta, sides=self.sides)
            level, failures = failure_budget(mean, self.error)
            yield _Step(start, start + width, level, failures)
