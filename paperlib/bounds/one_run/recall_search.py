"""One-sided threshold search: the best bound over every recall level, paid for.

Only positive guesses count. Used by PANORAMIA for the baseline and for the membership attack.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, expit

from paperlib.bounds.one_run.anytime import anytime_curve, anytime_from_counts
from paperlib.bounds.one_run.anytime_delta import (
    MeanFailures,
    anytime_curve_with_failures,
    anytime_with_failures,
)
from paperlib.bounds.one_run.tails import invert_slack, slack_p_value
from paperlib.core import FloatArray, IntArray

_PROBES = 256  # thresholds inverted per round of the search,
_PROBES_WITH_SLACK = 8  # fewer where each inversion is a bisection
_SHOWN = 1_000  # rows of a curve whose bounds are costly


@dataclass(frozen=True, kw_only=True, eq=False)
class RecallTest:
    """One of the two tests, with everything needed to draw its curve.

    Attributes:
        name: "baseline" or "mia".
        bound: Largest log-odds refuted at any threshold, nats: c_lb, or {c+epsilon}_lb.
        guesses: Positive guesses at each distinct threshold, highest threshold first, shape (k,).
        true_positives: Members among them, shape (k,).
        best_guesses: Guess count at which ``bound`` is reached (0 if nothing is refuted).
        ceiling: What the same test would give an attack that ranks every member first, nats.
        level: Error this test may make over all thresholds together.
        slack: Twice m times the relaxation: mean number of failures (0 without gamma and delta).
        search: "union" or "anytime".
        total: Audit examples m; the union is over m recall levels.
    """

    name: Literal["baseline", "mia"]
    bound: float
    guesses: IntArray
    true_positives: IntArray
    best_guesses: int
    ceiling: float
    level: float
    slack: float
    search: str
    total: int

    def shown(self) -> IntArray:
        """Positions of the thresholds a curve shows: all, or about 1,000 where each bound is costly."""
        count = self.guesses.size
        if count <= _SHOWN or (self.search == "union" and self.slack == 0):
            return np.arange(count)
        spread = np.unique(np.geomspace(1, count, _SHOWN).astype(np.int64)) - 1
        return np.union1d(spread, np.flatnonzero(self.guesses == self.best_guesses))

    def bounds(self, at: IntArray) -> FloatArray:
        """The bound of the thresholds at positions ``at``, same shape, already paying for the search."""
        correct, guesses = self.true_positives[at], self.guesses[at]
        if self.search == "union":
            return np.asarray(invert_slack(correct, guesses, self.level / self.total, self.slack), float)
        top = self.bound + 1e-6
        if self.slack == 0:
            return anytime_curve(correct, guesses, level=self.level, ceiling=top)
        mean = _mean_failures(self.slack)
        return anytime_curve_with_failures(
            correct, guesses, error=self.level, mean_failures=mean, ceiling=top
        )


def run_recall_test(
    name: Literal["baseline", "mia"],
    scores: FloatArray,
    flags: NDArray[np.bool_],
    level: float,
    slack: float,
    search: str,
) -> RecallTest:
    """Search every distinct threshold; a tied block is one threshold.

    Guarantee:
        If each positive guess is right with probability at most ``e^x / (1 + e^x)`` given the
        earlier ones, up to failures of mean ``slack``, the bound exceeds x with probability at
        most ``level``.

    Args:
        name: Of the test.
        scores: Higher means member, shape (m,).
        flags: True for members, shape (m,), both classes present.
        level: Error allowed over all thresholds together, in (0, 1/2].
        slack: 2 m g with the relaxation g (gamma, or gamma + delta - gamma delta): the mean number
            of failures in the union search; the anytime search gives up less.
        search: "union" or "anytime".
    """
    order = np.argsort(-scores)
    ordered = scores[order]
    last = np.append(np.flatnonzero(np.diff(ordered)), scores.size - 1)
    guesses, true_positives = last + 1, np.cumsum(flags[order], dtype=np.int64)[last]
    perfect = np.array([flags.sum()], dtype=np.int64)
    run = _union_search if search == "union" else _anytime_search
    bound, best = run(true_positives, guesses, level, slack, flags.size)
    # A perfect attack does best by guessing every member: more right guesses, none wrong.
    ceiling, _ = run(perfect, perfect, level, slack, flags.size)
    return RecallTest(
        name=name,
        bound=bound,
        guesses=guesses,
        true_positives=true_positives,
        best_guesses=best,
        ceiling=ceiling,
        level=level,
        slack=slack,
        search=search,
        total=int(flags.size),
    )


def _mean_failures(slack: float) -> MeanFailures:
    """Mean number of right guesses for free, where log-odds x are tested.

    Propositions 3 and 4 fail an example with probability 2 g, g the relaxation, guessed or not:
    slack = 2 m g. What must be given up is less. With densities a and b of "member, as seen" and
    "generated, as seen" and q = e^x / (1 + e^x), thinning the right guesses to a chance of q takes
    away a - q (a + b) = (1 - q) (a - e^x b) where that is positive, on average at most
    (1 - q) g / 2 of an example, since both membership coins have probability 1/2.
    """
    return lambda log_odds: slack / 4 * float(expit(-log_odds))


def _anytime_search(
    correct: IntArray, guesses: IntArray, level: float, slack: float, total: int
) -> tuple[float, int]:
    if slack == 0:
        found = anytime_from_counts(correct, guesses, level=level)
    else:
        found = anytime_with_failures(correct, guesses, error=level, mean_failures=_mean_failures(slack))
    return found.epsilon, found.guesses


def _union_search(
    correct: IntArray, guesses: IntArray, level: float, slack: float, total: int
) -> tuple[float, int]:
    """Exact maximum over thresholds of the bound at ``level / total``, most never inverted.

    Inverts a few thresholds spread over the rest, then drops every threshold that does not refute
    the best bound so far, and repeats on what is left.
    """
    each = level / total
    refutes = _refuter(each, slack)
    # The p-value is at least min(1, slack / correct) (the window i = correct), so few right
    # guesses cannot refute anything.
    left = np.flatnonzero(correct * each >= slack * (1 - each))
    best, at = 0.0, 0
    if slack > 0:
        left = left[refutes(correct[left], guesses[left], best)]
    while left.size:
        probe = np.zeros(left.size, dtype=bool)
        probe[:: max(1, left.size // (_PROBES_WITH_SLACK if slack > 0 else _PROBES))] = True
        probes = left[probe]
        values = np.asarray(invert_slack(correct[probes], guesses[probes], each, slack), float)
        top = int(np.argmax(values))
        if values[top] > best:
            best, at = float(values[top]), int(guesses[probes[top]])
        left = left[~probe]
        left = left[refutes(correct[left], guesses[left], best)]
    return best, at


def _refuter(level: float, slack: float) -> Callable[[IntArray, IntArray, float], NDArray[np.bool_]]:
    def refutes(correct: IntArray, guesses: IntArray, log_odds: float) -> NDArray[np.bool_]:
        q = expit(log_odds)
        # The binomial median is at least floor(r q), so a tail of at most one half needs this much.
        refuted = (correct > guesses * q - 1) & (correct > 0)
        v, r = correct[refuted], guesses[refuted]
        # P[Binomial(r, q) >= v]; the slack can only add to it.
        refuted[refuted] = betainc(v, r - v + 1.0, q) <= level
        if slack > 0:
            refuted[refuted] = slack_p_value(correct[refuted], guesses[refuted], log_odds, slack) <= level
        return refuted

    return refutes
