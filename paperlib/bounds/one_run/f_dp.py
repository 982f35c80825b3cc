"""One-run audit of a whole trade-off curve (f-DP), stronger than (epsilon, delta) for known
families.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from paperlib.bounds.many_runs.gaussian_dp import gaussian_dp_epsilon
from paperlib.bounds.one_run.fair_coins import (
    adjacency_of,
    fair_game,
    score_facts,
    score_warnings,
)
from paperlib.bounds.one_run.guesses import dyadic_path, guess_path
from paperlib.core.checks import (
    FloatArray,
    check_choice,
    check_confidence,
    check_counts,
    check_delta,
)
from paperlib.core.direction import check_scores, reversed_direction
from paperlib.core.options import Design, Sides
from paperlib.core.results import AuditResult
from paperlib.core.scores import MembershipScores
from paperlib.words import directions
from paperlib.words.designs import CONDITIONS
from paperlib.words.one_run import f_dp_assumptions, f_dp_claim, f_dp_headline

Family = Literal["gaussian", "laplace", "approximate"]
_LARGEST = {"gaussian": 12.0, "laplace": 30.0, "approximate": 30.0}  # parameter that is searched
_SECTIONS = 24  # inner points of a bracket, judged at once
_TOLERANCE = 1e-7  # width of the last bracket


@dataclass(frozen=True, kw_only=True, eq=False)
class FdpResult(AuditResult):
    """Lower bound on the parameter of a family of trade-off curves; fields not listed as in
    `OneRunResult`.

    Attributes:
        epsilon: The bound as epsilon at ``delta``, nats.
        parameter: The bound on the family's own parameter (mu for "gaussian", else epsilon).
    """

    epsilon: float
    parameter: float
    family: str
    delta: float
    confidence: float
    correct: int
    guesses: int
    total: int
    tests: int
    ceiling: float

    @property
    def headline(self) -> str:
        return f_dp_headline(self)


def inverse_blow_up(
    family: str, parameter: FloatArray, y: FloatArray, delta: float = 0.0
) -> FloatArray:
    """Smallest x with ``1 - f(x) >= y`` for the family's trade-off curve f; broadcasts."""
    if family == "gaussian":
        return np.asarray(ndtr(ndtri(y) - parameter))
    shrink = np.exp(-parameter)
    if family == "approximate":
        return np.maximum.reduce(
            [np.zeros_like(shrink * y), shrink * (y - delta), 1 - delta - (1 - y) / shrink]
        )
    middle = shrink / (4 * np.maximum(1 - y, 1e-300))
    return np.where(y <= 0.5, shrink * y, np.where(middle <= 0.5, middle, 1 - (1 - y) / shrink))


def _refutes(
    correct: FloatArray,
    guesses: FloatArray,
    total: int,
    level: float,
    inverse: Callable[..., FloatArray],
    parameter: FloatArray,
) -> NDArray[np.bool_]:
    """Whether ``correct`` of ``guesses`` refute a trade-off curve at error ``level``; shape
    (n,).
    """
    # Mahloujifar et al. (2024), Algorithm 3: walks i from ``correct`` down, keeping the least mass
    # the curve forces on "i or more right" and on the wrong guesses beside it; more than there are
    # is a contradiction.
    refuted = np.zeros(correct.shape, dtype=bool)
    running, i, r, e = np.arange(correct.size), correct - 1, guesses, parameter
    right, wrong = level * correct / total, level * (guesses - correct) / total
    while running.size:
        forced = np.maximum(wrong, inverse(e, right))
        stuck = (forced <= wrong) | (i < 0)
        right = np.minimum(right + i / np.maximum(r - i, 1.0) * (forced - wrong), 1.0)
        wrong = forced
        over = (right + wrong > r / total) & ~stuck
        refuted[running[over]] = True
        i = i - 1
        done = over | stuck
        if done.any():
            keep = ~done
            running, i, r, e = running[keep], i[keep], r[keep], e[keep]
            right, wrong = right[keep], wrong[keep]
    return refuted


def f_dp_parameter(
    correct: ArrayLike,
    guesses: ArrayLike,
    *,
    total: int,
    confidence: float = 0.95,
    family: Family = "gaussian",
    delta: float = 0.0,
) -> FloatArray:
    """Largest refuted parameter of a family of trade-off curves for each count, shape (n,), rounded
    down.

    Guarantee:
        With each of ``total`` examples included by its own fair coin, exceeds the parameter of an
        f-DP training of this family with probability at most ``1 - confidence``, for guess counts
        fixed in advance. Add/remove adjacency.

    Args:
        correct: Right guesses, 0 to ``guesses``, shape (n,).
        guesses: Guesses made, shape (n,).
        total: Audit examples, abstentions included.
        family: "gaussian" (mu), "laplace" (epsilon) or "approximate" (epsilon at ``delta``).
        delta: Delta of "approximate", in [0, 1).

    Raises:
        ValueError: A count, confidence or delta out of range, or an unknown family.

    Source:
        Mahloujifar, Melis and Chaudhuri (2024), arXiv:2410.22235.

    >>> f_dp_parameter([90], [100], total=100, confidence=0.95).round(3)
    array([0.841])
    """
    v, r = (
        np.atleast_1d(check_counts("correct", correct)),
        np.atleast_1d(check_counts("guesses", guesses)),
    )
    check_choice("family", family, Family)
    level, delta = 1 - check_confidence(confidence), check_delta(delta)
    if (v > r).any() or (r > total).any():
        raise ValueError(
            f"correct: expected correct <= guesses <= total = {total}, got {correct!r}, {guesses!r}"
        )
    inverse = partial(inverse_blow_up, family, delta=delta)
    low: FloatArray = np.zeros(v.shape)
    high: FloatArray = np.full(v.shape, _LARGEST[family])
    fractions = np.arange(_SECTIONS + 1, dtype=float)[:, None] / (_SECTIONS + 1)
    while float((high - low).max()) > _TOLERANCE:
        grid = low + fractions * (high - low)
        hits, made = (np.tile(x.astype(float), grid.shape[0]) for x in (v, r))
        refuted = _refutes(hits, made, total, level, inverse, grid.ravel())
        # The section that holds the end of the run of refutations that starts at the low end.
        steps = np.cumprod(refuted.reshape(grid.shape), axis=0).sum(axis=0)
        width = (high - low) / (_SECTIONS + 1)
        low, high = low + np.maximum(steps - 1, 0) * width, low + steps * width
    return low


def audit_f_dp(
    scores: MembershipScores,
    *,
    delta: float = 1e-5,
    confidence: float = 0.95,
    family: Family = "gaussian",
    guess: Sides = "both",
    design: Design = "randomized",
    seed: int = 0,
) -> FdpResult:
    """Lower-bound the parameter of a trade-off curve from one training run.

    Other arguments, errors and the source are those of `audit_one_run` and `f_dp_parameter`.

    Guarantee:
        If training satisfies f-DP for a curve of this family, the bound exceeds its parameter with
        probability at most ``1 - confidence``. The epsilon read off a Gaussian or Laplace curve
        says nothing outside the family. Ties are broken at random, since this test holds for guess
        counts fixed in advance alone.

    Args:
        delta: Delta at which epsilon is read off a Gaussian curve, in (0, 1); delta of
            "approximate".
        guess: "both" or "members".
    """
    delta, confidence = check_delta(delta), check_confidence(confidence)
    check_choice("guess", guess, Sides)
    check_choice("family", family, Family)
    if family == "gaussian" and delta == 0:
        raise ValueError(
            "delta: a Gaussian trade-off curve has no finite epsilon at delta = 0; give delta > 0"
        )
    refusals = directions.refusals(reversed_direction(check_scores("scores", scores)))
    scores = fair_game(scores, design, seed=seed)
    values, labels = scores.oriented().pooled()
    # Coins for ties, from another stream of the seed than the game above.
    coins = np.random.default_rng([seed, 1]).random(values.size)
    untied = np.argsort(np.lexsort((coins, values)))  # ranks, those of tied scores in random order
    path, tests = dyadic_path(guess_path(MembershipScores.from_labels(untied, labels), guess))
    level = (1 - confidence) / tests
    most = np.array([scores.member.size if guess == "members" else path.total])
    bounds = f_dp_parameter(
        np.append(path.correct, most),  # the last one is that of a perfect attack
        np.append(path.guesses, most),
        total=path.total,
        confidence=1 - level,
        family=family,
        delta=delta,
    )
    strongest = int(np.argmax(bounds[:-1]))
    parameter = float(bounds[strongest])
    epsilons = (
        gaussian_dp_epsilon(bounds[[strongest, -1]], delta)
        if family == "gaussian"
        else bounds[[strongest, -1]]
    )
    epsilon, ceiling = float(epsilons[0]), float(epsilons[1])
    shown_delta = 0.0 if family == "laplace" else delta
    claim = f_dp_claim(
        family, parameter, epsilon, shown_delta, confidence, adjacency_of(design), ceiling=ceiling
    )
    return FdpResult(
        claim=claim,
        condition=CONDITIONS[design],
        assumptions=f_dp_assumptions(design, family, delta, tests),
        refusals=refusals,
        warnings=score_warnings(scores, design),
        **score_facts(scores, design),
        epsilon=epsilon,
        parameter=parameter,
        family=family,
        delta=shown_delta,
        confidence=confidence,
        correct=int(path.correct[strongest]),
        guesses=int(path.guesses[strongest]),
        total=path.total,
        tests=tests,
        ceiling=ceiling,
    )
