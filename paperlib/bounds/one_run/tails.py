"""Binomial tails and their inverses, vectorised: what every bound on guess counts rests on."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, betaincinv, betaln, expit, xlog1py, xlogy

from paperlib.core import FloatArray, IntArray
from paperlib.core.options import DeltaTerm

NUMERICAL_MARGIN = (
    1e-11  # nats by which bounds are lowered, above the error of the special functions
)
_MOST_TERMS = 2_000  # of a tail's sum; the rest is bounded
_UNDERFLOW = -650.0  # log of a tail below which the incomplete beta function is not relied upon
_WEIGHT_RATE = 0.1  # any value is valid; this one spends little of the error on small m delta
_BATCH, _CLOSED_FORM_BATCH = 16, 256  # counts inverted per round of a search, and at delta = 0

PValue = Callable[[ArrayLike, ArrayLike, ArrayLike, ArrayLike], Any]


def log_sf(count: ArrayLike, trials: ArrayLike, probability: ArrayLike) -> Any:
    """Log of ``P[Binomial(trials, probability) >= count]``, nats, also where the tail underflows.

    Args:
        count, trials: Whole numbers, of any shapes that broadcast; -inf where count > trials.
        probability: In [0, 1].

    Returns:
        The logs, in the shape to which the arguments broadcast.
    """
    k, n, p = np.broadcast_arrays(
        np.asarray(count, float), np.asarray(trials, float), np.asarray(probability, float)
    )
    shape = k.shape
    with np.errstate(divide="ignore", invalid="ignore"):
        result = np.atleast_1d(np.log(_sf(k, n, p)))
    k, n, p = np.atleast_1d(k, n, p)
    tiny = (k > 0) & (k <= n) & (p > 0) & (result < _UNDERFLOW)
    if tiny.any():
        result[tiny] = _log_far_tail(k[tiny], n[tiny], p[tiny])
    return result.reshape(shape)[()]


def _log_far_tail(k: FloatArray, n: FloatArray, p: FloatArray) -> FloatArray:
    """Log of P[W >= k] of a binomial W of n trials with chance p, all of one shape, where p < k/n:
    its first term times a hypergeometric sum whose terms shrink; never below but for rounding.
    """
    log_binomial = -betaln(k, n - k + 1) - np.log(k)  # of n over k
    log_first = log_binomial + k * np.log(p) + (n - k) * np.log1p(-p)
    odds = p / (1 - p)
    total, term = np.ones_like(p), np.ones_like(p)
    for j in range(_MOST_TERMS):
        term = term * odds * np.maximum(n - k - j, 0) / (k + 1 + j)
        total = total + term
        if (term <= 1e-17 * total).all():
            return log_first + np.log(total)
    # Each term is smaller than the one before by more than the last ratio: a geometric sum of it
    # bounds those that were not added.
    ratio = odds * np.maximum(n - k - _MOST_TERMS, 0) / (k + 1 + _MOST_TERMS)
    return log_first + np.log(total + term * ratio / (1 - ratio))


def epsilon_from_counts(correct: ArrayLike, guesses: ArrayLike, level: ArrayLike) -> Any:
    """Largest epsilon refuted by ``correct`` of ``guesses`` at error ``level``, nats, at least 0,
    rounded down; arrays of any shape, which broadcast.

    Source:
        Steinke, Nasr and Jagielski (2023), Proposition 5.1 at delta = 0, inverted.
    """
    # The accuracy is the lower Clopper-Pearson limit of k right ones of n, epsilon its log-odds.
    k, n, a = (np.asarray(x, float) for x in (correct, guesses, level))
    accuracy = np.asarray(betaincinv(np.maximum(k, 1.0), n - k + 1.0, a), float)
    with np.errstate(divide="ignore"):
        epsilon = np.log(accuracy) - np.log1p(-accuracy)
    epsilon = np.maximum(epsilon - NUMERICAL_MARGIN * np.maximum(1.0, epsilon), 0.0)
    return np.where(k > 0, epsilon, 0.0)[()]


def published_p_value(
    correct: ArrayLike, guesses: ArrayLike, log_odds: ArrayLike, m_delta: ArrayLike
) -> Any:
    """P-value under (epsilon, delta)-DP of Steinke et al. (2023), Theorem 5.2.

    Args:
        correct, guesses: Right guesses v, and all guesses r, 0 <= v <= r.
        log_odds: Epsilon of the hypothesis, e, nats, 0 or more.
        m_delta: Number of examples times delta, s, 0 or more.

    Returns:
        P-values in [0, 1], in the shape to which the arguments broadcast.
    """
    # W is binomial of r trials with chance q = e^epsilon / (1 + e^epsilon), and b = P[W >= v]. The
    # value is b + 2 m_delta max_i (P[W >= v - i] - b) / i, a running mean with one peak. Theorem
    # 5.2 takes failures as independent of other guesses and near 1 can be too small: the sharp
    # value, proved without, is a floor.
    v, r, e, s = np.broadcast_arrays(
        *(np.asarray(x, float) for x in (correct, guesses, log_odds, m_delta))
    )
    q = np.asarray(expit(e), float)
    base = _sf(v, r, q)
    peak = _best_window(v, r, q)
    # Steps beside the peak guard against rounding in the bisection.
    windows = [np.clip(peak + step, 1, np.maximum(v, 1)) for step in (-1, 0, 1)]
    mean = np.max([(_sf(v - i, r, q) - base) / i for i in windows], axis=0)
    published = np.where(v > 0, np.minimum(1.0, base + 2 * s * np.maximum(mean, 0.0)), 1.0)
    return np.maximum(published, sharp_p_value(v, r, e, s))[()]


def sharp_p_value(
    correct: ArrayLike, guesses: ArrayLike, log_odds: ArrayLike, m_delta: ArrayLike
) -> Any:
    """Largest chance of ``correct`` right guesses or more under any (epsilon, delta)-DP training,
    for guess counts fixed in advance.

    Args:
        correct, guesses: Right guesses v, and all guesses r, 0 <= v <= r.
        log_odds: Epsilon of the hypothesis, e, nats, 0 or more.
        m_delta: Number of examples times delta, s, 0 or more.

    Returns:
        Chances in [0, 1], in the shape to which the arguments broadcast.
    """
    # W is binomial of r trials with chance q = e^epsilon / (1 + e^epsilon). The value is
    # b + (1 - b) min(1, m_delta / v * b / P_v), with b = P[W >= v] and P_v = P[W = v]; the proof is
    # in the book, page natural identifiers (sets of two, top 1). Guesses on one side alone pay half
    # of ``m_delta``.
    v, r, e, s = np.broadcast_arrays(
        *(np.asarray(x, float) for x in (correct, guesses, log_odds, m_delta))
    )
    q = np.asarray(expit(e), float)
    base = _sf(v, r, q)
    with np.errstate(divide="ignore", invalid="ignore"):
        lift = np.exp(np.minimum(0.0, np.log(s) - np.log(v) + _log_mean_overshoot(v, r, q, base)))
    return np.where(v > 0, base + (1 - base) * np.where(s > 0, lift, 0.0), 1.0)[()]


def random_count_p_value(
    correct: ArrayLike, guesses: ArrayLike, log_odds: ArrayLike, m_delta: ArrayLike, level: float
) -> Any:
    """P-value where the mechanism may choose how many guesses are made.

    Args:
        correct, guesses: Right guesses v, and all guesses r, 0 <= v <= r.
        log_odds: Epsilon of the hypothesis, e, nats, 0 or more.
        m_delta: Number of examples times delta, s, 0 or more.
        level: Error at which it is tested, in (0, 1), fixed in advance.

    Returns:
        P-values in [0, 1], in the shape to which the first four broadcast.
    """
    # W is binomial of r trials with chance q = e^epsilon / (1 + e^epsilon), b = P[W >= v] and P_v =
    # P[W = v]. Delta is spent where weights b / (v P_v) are largest. So a largest weight w is fixed
    # in advance, from m_delta and the level; the value is b + m_delta w where the weight is at most
    # w, else 1.
    v, r, e, s = np.broadcast_arrays(
        *(np.asarray(x, float) for x in (correct, guesses, log_odds, m_delta))
    )
    q = np.asarray(expit(e), float)
    base = _sf(v, r, q)
    with np.errstate(all="ignore"):
        largest = np.minimum(_WEIGHT_RATE * np.sqrt(level / s), level / (2 * s))
        weight = np.exp(_log_mean_overshoot(v, r, q, base) - np.log(v))
        paid = base + np.where(s > 0, s * largest, 0.0)
    return np.where((v > 0) & (weight <= largest), np.minimum(paid, 1.0), 1.0)[()]


def _log_mean_overshoot(
    v: FloatArray, r: FloatArray, q: FloatArray, base: FloatArray
) -> FloatArray:
    """Log of P[W >= v] / P[W = v] for a binomial W of r trials with chance q, rounded up.

    ``base`` is P[W >= v]; where it underflows a geometric series bounds the ratio.
    """
    shrink = (r - v) * q / ((v + 1) * (1 - q))
    series = np.where(shrink < 1, -np.log1p(-np.minimum(shrink, 1.0)), np.inf)
    return np.where(base > 1e-250, np.log(base) - _log_pmf(v, r, q), series) + 1e-9


def _sf(k: FloatArray, n: FloatArray, p: FloatArray) -> FloatArray:
    """P[W >= k] of a binomial W of n trials with chance p, by the incomplete beta function."""
    inside = betainc(np.clip(k, 1, np.maximum(n, 1)), np.maximum(n - k, 0) + 1, p)
    return np.where(k <= 0, 1.0, np.where(k > n, 0.0, inside))


def _log_pmf(k: FloatArray, n: FloatArray, p: FloatArray) -> FloatArray:
    """Log of P[W = k] of a binomial W of n trials with chance p."""
    log_choose = -betaln(k + 1, n - k + 1) - np.log1p(n)
    return np.asarray(log_choose + xlogy(k, p) + xlog1py(n - k, -p))


def _best_window(v: FloatArray, r: FloatArray, q: FloatArray) -> FloatArray:
    """Window length i in 1..v with the highest mean of P[W = v-1], ..., P[W = v-i], which has one
    peak; W is binomial of r trials with chance q. A bisection, of all entries at once.
    """
    # The mean still rises at i while the next probability, P[W = v-1-i], exceeds it.
    base = _sf(v, r, q)
    mode = np.floor((r + 1) * q)
    low = np.clip(v - 1 - mode, 1, np.maximum(v, 1))
    high = np.maximum(v, 1.0)
    for _ in range(int(np.ceil(np.log2(max(2.0, float(np.max(high - low, initial=1.0)) + 1)))) + 1):
        middle = np.floor((low + high) / 2)
        mean = (_sf(v - middle, r, q) - base) / middle
        with np.errstate(divide="ignore", invalid="ignore"):
            next_mass = np.where(middle > v - 1, 0.0, np.exp(_log_pmf(v - 1 - middle, r, q)))
        rising = (middle < high) & (next_mass > mean)
        low, high = np.where(rising, middle + 1, low), np.where(rising, high, middle)
        if (low >= high).all():
            break
    return low


P_VALUES: dict[DeltaTerm, PValue] = {"published": published_p_value, "sharp": sharp_p_value}


def last_refuted(
    refutes: Callable[[Any], Any], low: ArrayLike, high: ArrayLike, tolerance: float
) -> FloatArray:
    """The largest values that are refuted, to ``tolerance``, by bisection of each element.

    Args:
        refutes: From values to whether each is refuted, same shape.
        low, high: Refuted values, and larger ones that are not; same shape as what is returned.
    """
    low, high = np.asarray(low, float), np.asarray(high, float)
    while float((high - low).max(initial=0.0)) > tolerance:
        middle = (low + high) / 2
        refuted = refutes(middle)
        low, high = np.where(refuted, middle, low), np.where(refuted, high, middle)
    return low


def refuted_log_odds(
    correct: ArrayLike,
    guesses: ArrayLike,
    level: ArrayLike,
    m_delta: ArrayLike,
    p_value: PValue = published_p_value,
) -> NDArray[np.float64]:
    """Largest log-odds that so many right guesses refute, nats; 0 where none is refuted.

    Args:
        correct, guesses: Right guesses k, and all guesses n.
        level: Error a, in (0, 1).
        m_delta: Number of examples times delta, s, 0 or more.
        p_value: Of these counts at given log-odds.

    Returns:
        The log-odds, in the shape to which the arguments broadcast.
    """
    # P-values rise with the log-odds wherever they are below one half (tested): the refuted end is
    # valid.
    k, n, a, s = np.broadcast_arrays(
        *(np.asarray(x, float) for x in (correct, guesses, level, m_delta))
    )
    # Delta can only lower the bound: the one without is an upper end, raised beyond rounding.
    upper = np.asarray(epsilon_from_counts(k, n, a), float) + 1e-9
    if not np.any(s > 0):
        return np.maximum(upper - 1e-9, 0.0)
    lower = np.zeros_like(upper)
    refuting = (upper > 1e-9) & (p_value(k, n, 0.0, s) <= a)
    k, n, a, s = k[refuting], n[refuting], a[refuting], s[refuting]
    from scipy.optimize.elementwise import find_root  # here, since it is slow to load

    def excess(
        e: FloatArray, k: FloatArray, n: FloatArray, a: FloatArray, s: FloatArray
    ) -> FloatArray:
        """Log of the p-value over the error, above 0 where the log-odds ``e`` are not refuted."""
        # A p-value of 0 has no log.
        return np.log(np.maximum(p_value(k, n, e, s), 1e-300) / a)

    # Logs are nearly straight: a third of the p-values that bisection needs.
    root = find_root(
        excess, (lower[refuting], upper[refuting]), args=(k, n, a, s), tolerances={"xatol": 1e-10}
    )
    # Of the last bracket the end at which the log-odds are refuted.
    lower[refuting] = np.where(root.f_bracket[0] <= 0, *root.bracket)
    return lower


def best_count(
    correct: IntArray,
    guesses: IntArray,
    level: float,
    m_delta: float,
    p_value: PValue = published_p_value,
) -> tuple[float, int]:
    """The largest log-odds that any of several guess counts refutes, nats, and the position of that
    count; (0.0, 0) if none refutes.

    Args:
        correct, guesses: Right guesses and all guesses, shape (counts,).
        level: Error at each count, in (0, 1).
        m_delta: Number of examples times delta, 0 or more.
        p_value: Of counts at given log-odds.
    """
    # Inverts a few counts spread over the rest, drops every count that does not refute the best so
    # far, and repeats on what is left: most are never inverted.
    k, r = np.asarray(correct, float), np.asarray(guesses, float)
    best, reached = 0.0, 0
    # Both p-values are at least m_delta / k (1 - level): few right guesses refute nothing.
    left = np.flatnonzero((k > 0) & (k * level >= m_delta * (1 - level)))
    while left.size:
        # Delta can only add to the plain tail; at most one half of it lies above its median,
        # floor(r q).
        q = np.asarray(expit(best))
        if level <= 0.5:
            left = left[k[left] > r[left] * q - 1]
        left = left[_sf(k[left], r[left], q) <= level]
        if m_delta > 0:
            left = left[np.asarray(p_value(k[left], r[left], best, m_delta)) <= level]
        batch = _BATCH if m_delta > 0 else _CLOSED_FORM_BATCH
        probe = np.zeros(left.size, dtype=bool)  # those to be inverted now
        probe[:: max(1, left.size // batch)] = True
        tried, left = left[probe], left[~probe]
        bounds = refuted_log_odds(k[tried], r[tried], level, m_delta, p_value)
        if bounds.size and bounds.max() > best:
            best, reached = float(bounds.max()), int(tried[np.argmax(bounds)])
    return best, reached
