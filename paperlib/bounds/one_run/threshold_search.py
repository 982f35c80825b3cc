"""Searching thresholds on the scores that are tested: every strategy, and what each one pays."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from paperlib.bounds.one_run.anytime import anytime_curve, anytime_from_counts
from paperlib.bounds.one_run.anytime_delta import (
    anytime_curve_with_failures,
    anytime_with_failures,
    one_run_failures,
)
from paperlib.bounds.one_run.guesses import GuessPath, both_path, dyadic_counts, grid_path, member_path
from paperlib.bounds.one_run.tails import (
    PValue,
    best_of_slack,
    invert_slack,
    sharp_p_value,
    slack_p_value,
)
from paperlib.core import FloatArray, IntArray, MembershipScores, check_choice

Guess = Literal["both", "members", "grid"]
Search = Literal["anytime", "dyadic", "bonferroni", "split"]
DeltaTerm = Literal["published", "sharp"]
DELTA_TERMS = ("published", "sharp")
CURVE_POINTS = 200


@dataclass(frozen=True, eq=False)
class Found:
    """What a search found.

    Attributes:
        epsilon: The bound, nats, search paid for.
        at: Position on the path where it is reached.
        path: The nested guesses.
        shown: Positions of the curve, shape (n,).
        bounds: The bound at those positions, corrected in the same way, shape (n,).
        words: How the threshold was found.
        tests: Number of tests the error was divided by.
    """

    epsilon: float
    at: int
    path: GuessPath
    shown: IntArray
    bounds: FloatArray
    words: str
    tests: int = 1


def search_thresholds(
    scores: MembershipScores,
    guess: Guess,
    thresholds: Search | float | None,
    delta: float,
    error: float,
    seed: int,
    delta_term: DeltaTerm,
) -> Found:
    """Run one strategy at total error ``error``; the arguments are those of `audit_one_run`.

    Raises:
        ValueError: An unknown strategy, or one that does not go with ``guess``.
    """
    if guess == "grid":
        if thresholds not in (None, "bonferroni"):
            raise ValueError(
                f"thresholds: with guess='grid' expected None or 'bonferroni', got {thresholds!r}"
            )
        return _paid(
            grid_path(scores), delta, error, delta_term, words="a fixed grid of pairs of counts, Bonferroni"
        )
    if isinstance(thresholds, int | float):
        return _fixed(scores, guess, float(thresholds), delta, error, delta_term)
    name = check_choice("thresholds", thresholds or "anytime", ("anytime", "dyadic", "bonferroni", "split"))
    if name == "split":
        return _split(scores, guess, delta, error, seed, delta_term)
    path = guess_path(scores, guess)
    if name == "anytime":
        return _anytime(path, delta, error, sides=2 if guess == "both" else 1)
    if name == "dyadic":
        path, tests = dyadic_path(path)
        return _paid(path, delta, error, delta_term, tests=tests, words="dyadic guess counts, Bonferroni")
    return _paid(path, delta, error, delta_term, tests=path.total, words="every guess count, Bonferroni")


def guess_path(scores: MembershipScores, guess: Guess) -> GuessPath:
    """The nested guesses of "both" or "members"."""
    return both_path(scores) if guess == "both" else member_path(scores)


def dyadic_path(path: GuessPath) -> tuple[GuessPath, int]:
    """The path at m, m/2, m/4, ... >= 8 guesses, and how many tests that grid costs.

    Where ties forbid a count, the largest allowed count below it stands in.
    """
    wanted = dyadic_counts(path.total)
    at = np.searchsorted(path.guesses, wanted, side="right") - 1
    return _at(path, np.unique(at[at >= 0])), wanted.size


def _at(path: GuessPath, chosen: IntArray) -> GuessPath:
    return GuessPath(
        path.as_member[chosen],
        path.as_nonmember[chosen],
        path.true_members[chosen],
        path.true_nonmembers[chosen],
        path.high[chosen],
        path.low[chosen],
        path.total,
    )


def _anytime(path: GuessPath, delta: float, error: float, sides: int) -> Found:
    k, r = path.correct, path.guesses
    free = one_run_failures(path.total, delta, sides=sides)
    if delta == 0:
        bound = anytime_from_counts(k, r, level=error)
    else:
        bound = anytime_with_failures(k, r, error=error, mean_failures=free)
    at = int(np.searchsorted(r, bound.guesses)) if bound.guesses else r.size - 1
    shown = _thinned(r, at)
    k, r, top = k[shown], r[shown], bound.epsilon + 1e-6
    if delta == 0:
        bounds = anytime_curve(k, r, level=error, ceiling=top)
    else:
        bounds = anytime_curve_with_failures(k, r, error=error, mean_failures=free, ceiling=top)
    words = "every guess count at once by a mixture supermartingale"
    return Found(bound.epsilon, at, path, shown, bounds, words)


def _paid(
    path: GuessPath,
    delta: float,
    error: float,
    delta_term: DeltaTerm,
    *,
    words: str,
    tests: int | None = None,
) -> Found:
    """Bonferroni over ``tests`` guess counts fixed in advance (by default those of the path)."""
    tests = path.guesses.size if tests is None else tests
    p_value, slack = delta_test(delta_term, path.total * delta)
    epsilon, at = best_of_slack(path.correct, path.guesses, error / tests, slack, p_value)
    shown = _thinned(path.guesses, at)
    bounds = invert_slack(path.correct[shown], path.guesses[shown], error / tests, slack, p_value)
    return Found(epsilon, at, path, shown, bounds, f"{words} over {tests}", tests)


def delta_test(delta_term: str, extra: float) -> tuple[PValue, float]:
    """P-value and its last argument for a delta term, with ``extra = m delta``.

    Raises:
        ValueError: Neither "published" nor "sharp".
    """
    if check_choice("delta_term", delta_term, DELTA_TERMS) == "sharp":
        return sharp_p_value, extra
    return slack_p_value, 2 * extra


def _fixed(
    scores: MembershipScores,
    guess: Guess,
    threshold: float,
    delta: float,
    error: float,
    delta_term: DeltaTerm,
) -> Found:
    path = fixed_path(scores, guess, threshold)
    return _paid(path, delta, error, delta_term, words=f"threshold {threshold:g} fixed before looking; tests")


def fixed_path(scores: MembershipScores, guess: Guess, threshold: float) -> GuessPath:
    """The single stopping point of a threshold on the oriented score, fixed before looking.

    Raises:
        ValueError: The threshold is not finite.
    """
    if not math.isfinite(threshold):
        raise ValueError(f"thresholds: expected a finite number, got {threshold!r}")
    return _above(scores, threshold, threshold if guess == "both" else -math.inf)


def _above(scores: MembershipScores, high: float, low: float) -> GuessPath:
    """The single stopping point of given thresholds: at or above ``high``, below ``low`` (or at it)."""
    oriented = scores.oriented()
    below = np.less if low == high else np.less_equal
    members, nonmembers = oriented.member, oriented.nonmember
    return GuessPath(
        _one((members >= high).sum() + (nonmembers >= high).sum()),
        _one(below(members, low).sum() + below(nonmembers, low).sum()),
        _one((members >= high).sum()),
        _one(below(nonmembers, low).sum()),
        np.array([high]),
        np.array([low]),
        len(scores),
    )


def _one(count: np.intp) -> IntArray:
    return np.array([count], dtype=np.int64)


def _split(
    scores: MembershipScores, guess: Guess, delta: float, error: float, seed: int, delta_term: DeltaTerm
) -> Found:
    selection, evaluation = scores.split(seed=seed)
    path = guess_path(selection, guess)
    p_value, slack = delta_test(delta_term, len(evaluation) * delta)
    _, at = best_of_slack(path.correct, path.guesses, error, slack, p_value)
    chosen = _above(evaluation, float(path.high[at]), float(path.low[at]))
    return _paid(
        chosen,
        delta,
        error,
        delta_term,
        words="threshold chosen on one random half, tested on the other; tests",
    )


def _thinned(guesses: IntArray, at: int) -> IntArray:
    """At most `CURVE_POINTS` positions, evenly spaced in log guesses, with ``at`` among them."""
    if guesses.size <= CURVE_POINTS:
        return np.arange(guesses.size)
    wanted = np.exp(np.linspace(math.log(guesses[0]), math.log(guesses[-1]), CURVE_POINTS - 1))
    return np.unique(np.append(np.searchsorted(guesses, wanted), at).clip(0, guesses.size - 1))
