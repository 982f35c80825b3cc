"""Lower bounds on the parameter of a family of trade-off curves (f-DP) from guess counts that were
fixed in advance.
"""

from collections.abc import Callable
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from paperlib.core.checks import (
    FloatArray,
    check_choice,
    check_confidence,
    check_counts,
    check_delta,
)

Family = Literal["gaussian", "laplace", "approximate"]
_LARGEST = {"gaussian": 12.0, "laplace": 30.0, "approximate": 30.0}  # parameter that is searched
_SECTIONS = 24  # inner points of a bracket, judged at once
_TOLERANCE = 1e-7  # width of the last bracket


def inverse_blow_up(
    family: str, parameter: FloatArray, y: FloatArray, delta: float = 0.0
) -> FloatArray:
    """Smallest x with ``1 - f(x) >= y`` for the family's trade-off curve f, in [0, 1]; broadcasts.

    Args:
        family: "gaussian", "laplace" or "approximate".
        parameter: Mu of "gaussian", else epsilon, nats; 0 or more.
        y: In [0, 1].
        delta: Of "approximate".
    """
    if family == "gaussian":  # f(x) = Phi(Phi^-1(1 - x) - mu)
        return np.asarray(ndtr(ndtri(y) - parameter))
    shrink = np.exp(-parameter)
    if family == "approximate":  # f(x) = max(0, 1 - delta - e^eps x, e^-eps (1 - delta - x))
        return np.maximum.reduce(
            [np.zeros_like(shrink * y), shrink * (y - delta), 1 - delta - (1 - y) / shrink]
        )
    # Laplace: f(x) = 1 - e^eps x up to x = e^-eps / 2, e^-eps / (4 x) up to 1/2, e^-eps (1 - x).
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
    """Whether counts of guesses refute trade-off curves at error ``level``, shape (n,).

    Args:
        correct, guesses: Right guesses and all guesses, whole, shape (n,).
        total: Audit examples, abstentions included.
        inverse: From parameters and values y to the smallest x of `inverse_blow_up`.
        parameter: Of the curve that each count is tested against, shape (n,).

    Source:
        Mahloujifar, Melis and Chaudhuri (2024), Algorithm 3.
    """
    # Walks i from ``correct`` down, keeping the least mass the curve forces on "i or more right"
    # and on the wrong guesses beside it; more than there are is a contradiction.
    refuted = np.zeros(correct.shape, dtype=bool)
    # Positions of the counts that are not settled yet, and their i, guesses r and parameter e.
    running, i, r, e = np.arange(correct.size), correct - 1, guesses, parameter
    right, wrong = level * correct / total, level * (guesses - correct) / total
    while running.size:
        forced = np.maximum(wrong, inverse(e, right))
        stuck = (forced <= wrong) | (i < 0)  # nothing more is forced: not refuted
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
        grid = low + fractions * (high - low)  # parameters, shape (sections, n)
        hits, made = (np.tile(x.astype(float), grid.shape[0]) for x in (v, r))
        refuted = _refutes(hits, made, total, level, inverse, grid.ravel())
        # Of each count, how many parameters from the low end on are all refuted: the bracket
        # becomes the section between the last of them and the next.
        refuted_first = np.cumprod(refuted.reshape(grid.shape), axis=0).sum(axis=0)
        width = (high - low) / (_SECTIONS + 1)
        low, high = low + np.maximum(refuted_first - 1, 0) * width, low + refuted_first * width
    return low
