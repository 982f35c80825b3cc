"""Search over thresholds on the scores that are tested: every strategy, and its correction for the
search.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from paperlib.bounds.one_run.anytime import AnytimeCounts
from paperlib.bounds.one_run.guesses import GuessPath, dyadic_path, guess_path, threshold_path
from paperlib.bounds.one_run.tails import (
    P_VALUES,
    PValue,
    best_count,
    published_p_value,
    random_count_p_value,
    refuted_log_odds,
)
from paperlib.core.checks import FloatArray, IntArray, check_choice
from paperlib.core.options import DeltaTerm, Guess, RecallSearch, Search
from paperlib.core.scores import MembershipScores
from paperlib.words import searches

RECALL_SEARCHES: dict[RecallSearch, Search] = {"union": "bonferroni", "anytime": "anytime"}
"""The search over guess counts that a search over recall levels is."""

CURVE_POINTS = 200  # of a curve over guess counts, at most
_RECALL_POINTS = 1_000  # rows of a PANORAMIA curve whose bounds are costly


@dataclass(frozen=True)
class SingleCounts:
    """Each guess count is tested alone at ``level``, its share of the error."""

    level: float  # error allowed at each count, in (0, 1)
    m_delta: float  # delta times all audit examples, half of it for one-sided guesses; at least 0
    p_value: PValue = published_p_value  # P-value of one count

    def best(self, correct: IntArray, guesses: IntArray) -> tuple[float, int]:
        """Largest log-odds refuted at any guess count, nats, and the position where it is reached;
        right guesses and guesses have shape (counts,).
        """
        return best_count(correct, guesses, self.level, self.m_delta, self.p_value)

    def bounds(self, correct: IntArray, guesses: IntArray) -> FloatArray:
        """Log-odds refuted at each guess count, nats, shape (counts,), corrected for the search."""
        return refuted_log_odds(correct, guesses, self.level, self.m_delta, self.p_value)


@dataclass(frozen=True, eq=False)
class ThresholdBound:
    """The best bound over the stopping points of a path."""

    epsilon: float  # the bound, nats, corrected for the search
    at: int  # position on the path where it is reached
    path: GuessPath
    test: SingleCounts | AnytimeCounts  # the test of its guess counts
    words: str  # description of the search
    tests: int = 1  # number of tests the error was divided by

    def ceiling(self, most: int | None = None) -> float:
        """The bound of the same test if ``most`` guesses, by default all examples, are right,
        nats.
        """
        all_right = np.array([self.path.total if most is None else min(most, self.path.total)])
        return self.test.best(all_right, all_right)[0]

    def shown(self) -> IntArray:
        """At most `CURVE_POINTS` positions, evenly spaced in log guesses, with ``at`` among them,
        rising, shape (points,).
        """
        guesses = self.path.guesses
        if guesses.size <= CURVE_POINTS:
            return np.arange(guesses.size)
        counts = np.exp(np.linspace(math.log(guesses[0]), math.log(guesses[-1]), CURVE_POINTS - 1))
        return np.unique(
            np.append(np.searchsorted(guesses, counts), self.at).clip(0, guesses.size - 1)
        )

    def bounds(self, positions: IntArray) -> FloatArray:
        """The bounds in nats at ``positions`` of the path, corrected for the search, of their
        shape.
        """
        return self.test.bounds(self.path.correct[positions], self.path.guesses[positions])


@dataclass(frozen=True)
class Hypothesis:
    """(epsilon, delta)-DP, tested with one total error."""

    delta: float  # delta of DP, in [0, 1)
    error: float  # error allowed for the whole search, in (0, 1)
    delta_term: DeltaTerm = "published"  # P-value of single counts at delta above 0

    def single(
        self, guess: Guess, total: int, tests: int = 1, *, random: bool = False
    ) -> SingleCounts:
        """The test of single guess counts, each at its share of the error.

        Args:
            guess: Which sides are guessed; on one side alone half of delta is paid.
            total: Audit examples, abstentions included.
            tests: Number of counts among which the error is shared out.
            random: Whether a count depends on the data, which needs a P-value of its own, whatever
                the ``delta_term``.
        """
        level = self.error / tests
        p_value = (
            partial(random_count_p_value, level=level) if random else P_VALUES[self.delta_term]
        )
        return SingleCounts(level, _sides(guess) / 2 * total * self.delta, p_value)


def _sides(guess: Guess) -> int:
    return 1 if guess in ("members", "nonmembers") else 2


def search_thresholds(
    scores: MembershipScores,
    guess: Guess,
    thresholds: Search | float | None,
    hypothesis: Hypothesis,
    *,
    seed: int,
) -> ThresholdBound:
    """The best bound on epsilon of one strategy, nats, corrected for its search.

    Args:
        scores: Of members and non-members, by fair coins.
        guess: Which sides are guessed.
        thresholds: The search over guess counts; a number is a threshold fixed in advance, on
            oriented scores; None is "anytime", or "bonferroni" for the guess "grid".
        hypothesis: Delta of DP, and the error of the whole search.
        seed: Of the halves of "split".

    Raises:
        ValueError: A search that the guess does not allow, or a threshold that is not finite.
    """
    if guess == "grid":
        if thresholds not in (None, "bonferroni"):
            raise ValueError(
                f"thresholds: with guess='grid' expected None or 'bonferroni', got {thresholds!r}"
            )
        path = guess_path(scores, guess)
        tests = path.guesses.size
        words = _single_counts("grid", tests, scores, hypothesis)
        return _best(path, hypothesis.single(guess, path.total, tests), words, tests)
    guess = guesses_made(guess, thresholds)
    if isinstance(thresholds, int | float):
        if not math.isfinite(thresholds):
            raise ValueError(f"thresholds: expected a finite number, got {float(thresholds)!r}")
        high = math.inf if guess == "nonmembers" else float(thresholds)
        path = threshold_path(scores, high, -math.inf if guess == "members" else float(thresholds))
        words = searches.fixed_threshold(thresholds)
        # The scores decide how many guesses lie beyond a threshold: their number is random.
        return _best(path, hypothesis.single(guess, path.total, random=True), words, 1)
    name = thresholds or "anytime"
    check_choice("thresholds", name, Search)
    if name == "split":
        return _chosen_on_one_half(scores, guess, hypothesis, seed)
    path = guess_path(scores, guess)
    if name == "anytime":
        return every_count(path, hypothesis, _sides(guess))
    tests = path.total
    if name == "dyadic":
        path, tests = dyadic_path(path)
    words = _single_counts(name, tests, scores, hypothesis)
    return _best(path, hypothesis.single(guess, path.total, tests), words, tests)


def _chosen_on_one_half(
    scores: MembershipScores, guess: Guess, hypothesis: Hypothesis, seed: int
) -> ThresholdBound:
    """The bound at the thresholds that are best on a random half of the scores, by the other half;
    ``seed`` draws the halves.
    """
    selection, evaluation = scores.split(seed=seed)
    path = guess_path(selection, guess)
    test = hypothesis.single(guess, len(evaluation), random=True)
    _, reached = test.best(path.correct, path.guesses)
    high, low = float(path.high[reached]), float(path.low[reached])
    return _best(threshold_path(evaluation, high, low), test, searches.ONE_HALF, 1)


def every_count(path: GuessPath, hypothesis: Hypothesis, sides: int) -> ThresholdBound:
    """The anytime search over a path whose order may depend on the coins revealed before each
    guess; the bound is in nats.

    ``sides`` is 2 where members and non-members are guessed, 1 where only one of them is.
    """
    test = AnytimeCounts(hypothesis.error, path.total * hypothesis.delta, sides, path.total)
    epsilon, reached = test.best(path.correct, path.guesses)
    return ThresholdBound(epsilon, reached, path, test, searches.EVERY_COUNT)


def guesses_made(guess: Guess, thresholds: Search | float | None) -> Guess:
    """The guesses of a search: only the anytime one may learn its order from the coins; else
    "both".
    """
    return "both" if guess == "adaptive" and thresholds not in (None, "anytime") else guess


def _single_counts(
    search: str, tests: int, scores: MembershipScores, hypothesis: Hypothesis
) -> str:
    """The words of a search over ``tests`` single counts, and whether ties make counts random,
    which matters at delta above 0.
    """
    random = False
    if hypothesis.delta > 0:
        random = np.unique(scores.pooled()[0]).size < len(scores)
    return searches.single_counts(search, tests, random=random)


def _best(path: GuessPath, test: SingleCounts, words: str, tests: int) -> ThresholdBound:
    """The error shared by ``tests`` guess counts fixed in advance."""
    epsilon, reached = test.best(path.correct, path.guesses)
    return ThresholdBound(epsilon, reached, path, test, words, tests)


@dataclass(frozen=True, kw_only=True, eq=False)
class RecallTest:
    """One of PANORAMIA's two tests, with everything needed to draw its curve."""

    name: Literal["baseline", "mia"]
    search: RecallSearch
    best: ThresholdBound  # the best bound over all thresholds: c_lb, or {c+epsilon}_lb
    ceiling: (
        float  # bound that the same test would give an attack that ranks every member first, nats
    )

    @property
    def bound(self) -> float:
        """Largest log-odds refuted at any threshold, nats."""
        return self.best.epsilon

    def shown(self) -> IntArray:
        """Positions of the thresholds a curve shows, rising, shape (points,): all, or about 1,000
        where each bound is costly.
        """
        count, test = self.best.path.guesses.size, self.best.test
        if count <= _RECALL_POINTS or (isinstance(test, SingleCounts) and test.m_delta == 0):
            return np.arange(count)
        spread = np.unique(np.geomspace(1, count, _RECALL_POINTS).astype(np.int64)) - 1
        return np.union1d(spread, [self.best.at])


def run_recall_test(
    name: Literal["baseline", "mia"],
    scores: FloatArray,
    flags: NDArray[np.bool_],
    level: float,
    relaxation: float,
    search: RecallSearch,
) -> RecallTest:
    """Search every distinct threshold; only positive guesses count, and a tied block is one
    threshold.

    Args:
        name: Which of PANORAMIA's tests it is; the result keeps it.
        scores, flags: A score of each example, and True for a member, shape (n,) each.
        level: Error that the test may make, in (0, 1).
        relaxation: Chance with which a single guess may be right at no cost, in [0, 1).
        search: "union" (each count at its share of the error) or "anytime".
    """
    # Valid if each positive guess is right with chance at most e^x / (1 + e^x) given the earlier
    # ones, up to failures of mean 2 m relaxation (gamma, or gamma + delta - gamma delta); the
    # anytime search has fewer. Single counts on one side pay half; Propositions 3 and 4 pay for
    # both, and are kept as they are.
    price = relaxation * (2 if search == "union" else 1)
    labelled, hypothesis = MembershipScores.from_labels(scores, flags), Hypothesis(price, level)
    best = search_thresholds(labelled, "members", RECALL_SEARCHES[search], hypothesis, seed=0)
    return recall_test(name, best, int(flags.sum()), search)


def recall_test(
    name: Literal["baseline", "mia"], best: ThresholdBound, members: int, search: RecallSearch
) -> RecallTest:
    """A searched test of positive guesses, with its ceiling on examples of which ``members`` are
    real.
    """
    # A perfect attack does best by guessing every member: more right guesses, none wrong.
    perfect = np.array([members], dtype=np.int64)
    ceiling, _ = best.test.best(perfect, perfect)
    return RecallTest(name=name, search=search, best=best, ceiling=ceiling)
