"""Definition 2 of Epsilon*: from error rates, from two normals and their fits, from two samples."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr, ndtr, ndtri

from paperlib.core import FloatArray
from paperlib.core.checks import check_delta, check_vector

_FIT_LEVEL = 0.01  # of the test that both normal fits must pass

EMPIRICAL_RANGE = (0.001, 0.999)
"""Rates that the empirical version may use, ends excluded (Appendix B of the paper)."""

TERMS = ("TPR/FPR", "TNR/FNR", "FNR/TNR", "FPR/TPR")
"""The four ratios of Definition 2, each with delta taken off its numerator."""

# Points of the grid over all thresholds, points of each finer one, and number of the finer ones.
_FIRST_GRID, _ZOOM_GRID, _ZOOMS = 129, 17, 9


@dataclass(frozen=True, kw_only=True)
class BestThreshold:
    """Where Definition 2 attains its supremum."""

    epsilon: float  # the supremum, nats, at least 0
    threshold: float  # the threshold that attains it, in the unit it was searched in
    false_positive_rate: float  # share of the population called members there, as used
    false_negative_rate: float  # share of the training set called nonmembers there, as used
    term: str  # which of `TERMS` it is, or "1" when none exceeds 1
    clipped: bool  # no threshold had both rates in the allowed range, so rates were clipped to it


def epsilon_star_from_rates(
    false_positive_rate: ArrayLike, false_negative_rate: ArrayLike, *, delta: float
) -> Any:
    """Epsilon* of single thresholds, from their error rates in [0, 1]; broadcasts.

    Nats, at least 0; infinite where a rate of 0 meets a numerator above delta. Their maximum is the
    paper's Epsilon* over these thresholds.

    Raises:
        ValueError: A rate outside [0, 1], shapes that do not broadcast, or delta outside [0, 1).

    Source:
        Negoescu et al. (2024), Definition 2, Equation 7.

    >>> epsilon_star_from_rates([0.1, 0.5], [0.5, 0.5], delta=0.0).round(6)
    array([1.609438, 0.      ])
    """
    delta = check_delta(delta)
    fpr, fnr = np.broadcast_arrays(
        _rates("false_positive_rate", false_positive_rate),
        _rates("false_negative_rate", false_negative_rate),
    )
    with np.errstate(divide="ignore"):
        logs = np.log(np.stack([1 - fnr, fnr, fpr, 1 - fpr]))
    return np.maximum(definition_terms(logs, delta).max(axis=0), 0.0)[()]


def _rates(name: str, values: ArrayLike) -> FloatArray:
    """Rates as an array of their shape; a ValueError for one outside [0, 1]."""
    rates = np.asarray(values, dtype=float)
    if not ((rates >= 0) & (rates <= 1)).all():
        raise ValueError(f"{name}: expected rates in [0, 1], got {values!r}")
    return rates


def definition_terms(log_rates: FloatArray, delta: float) -> FloatArray:
    """Logs of the four ratios of Definition 2, the `TERMS`, nats, shape (4, ...).

    Args:
        log_rates: Logs of TPR, FNR, FPR and TNR, shape (4, ...).
        delta: In [0, 1).

    Returns:
        Log of (rate - delta) / other rate; -inf where the rate is at or below delta.
    """
    tpr, fnr, fpr, tnr = log_rates
    numerators = np.stack([tpr, tnr, fnr, fpr])
    denominators = np.stack([fpr, fnr, tnr, tpr])
    if delta == 0:
        excess = numerators
    else:
        # log(rate - delta) = log(rate) + log(1 - delta / rate), exact for rates close to 0.
        with np.errstate(divide="ignore"):
            shortfall = np.minimum(math.log(delta) - np.maximum(numerators, math.log(delta)), 0.0)
            excess = numerators + np.log(-np.expm1(shortfall))
    positive = excess > -np.inf
    return np.where(positive, excess - np.where(positive, denominators, 0.0), -np.inf)


def ceiling(low: float, high: float, delta: float) -> float:
    """Largest value Definition 2 can take with rates in [low, high], floored at 0."""
    return math.log(max((high - delta) / low, 1.0)) if low > 0 else math.inf


def normals_epsilon(gap: ArrayLike, ratio: ArrayLike, delta: float) -> FloatArray:
    """Epsilon* of members' losses from N(0, 1) and the population's from N(gap, ratio^2), nats.

    Args:
        gap: Mean of the population, in standard deviations of the members.
        ratio: Standard deviation of the population over that of the members, above 0.
        delta: In (0, 1/2).

    Returns:
        Values of 0 or more, in the shape to which the arguments broadcast.
    """
    gaps, ratios = np.broadcast_arrays(np.asarray(gap, float), np.asarray(ratio, float))
    threshold, empty = _normal_threshold(gaps, ratios, delta)
    best = definition_terms(_normal_log_rates(threshold, gaps, ratios), delta).max(axis=0)
    return np.where(empty, ceiling(delta, 1 - delta, delta), np.maximum(best, 0.0))


def best_normal_threshold(gap: float, ratio: float, delta: float) -> BestThreshold:
    """Where Epsilon* of members' losses from N(0, 1) and non-members' from N(gap, ratio^2) is
    attained; the threshold in standard deviations of the members from their mean.

    Args:
        gap: Mean of the non-members less that of the members, in standard deviations of the
            members.
        ratio: Standard deviation of the non-members over that of the members, above 0.
        delta: In (0, 1/2).
    """
    gaps, ratios = np.asarray(gap, float), np.asarray(ratio, float)
    threshold, empty = _normal_threshold(gaps, ratios, delta)
    clipped = bool(empty)
    log_rates = _normal_log_rates(threshold, gaps, ratios)
    if clipped:
        log_rates = np.log(np.clip(np.exp(log_rates), delta, 1 - delta))
    return _best(definition_terms(log_rates, delta), log_rates, float(threshold), clipped)


def _best(
    terms: FloatArray, log_rates: FloatArray, threshold: float, clipped: bool
) -> BestThreshold:
    """The largest of the terms, with the rates at the threshold that reaches it.

    Args:
        terms: Logs of the `TERMS` at one threshold, shape (4,), nats.
        log_rates: Logs of TPR, FNR, FPR and TNR at that threshold, shape (4,).
        threshold: Where the rates were taken, in the unit of the caller.
        clipped: Whether the rates were held within [delta, 1 - delta].
    """
    epsilon = float(terms.max())
    return BestThreshold(
        epsilon=max(epsilon, 0.0),
        threshold=threshold,
        false_positive_rate=float(np.exp(log_rates[2])),
        false_negative_rate=float(np.exp(log_rates[1])),
        term=TERMS[int(terms.argmax())] if epsilon > 0 else "1",
        clipped=clipped,
    )


def _normal_log_rates(x: FloatArray, gap: FloatArray, ratio: FloatArray) -> FloatArray:
    """Logs of TPR, FNR, FPR, TNR of "member when the score is at least x"."""
    other = (x - gap) / ratio
    return np.stack([log_ndtr(-x), log_ndtr(x), log_ndtr(-other), log_ndtr(other)])


def _normal_threshold(
    gap: FloatArray, ratio: FloatArray, delta: float
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """The best threshold with both rates in [delta, 1 - delta], in standard deviations of the
    members from their mean, and whether there is none; both of the shape of ``gap`` and ``ratio``.

    These are the mean and the standard deviation of the population, in standard deviations of the
    members, whose mean is 0.
    """
    # A grid, then zooms on the best cell. The interval is at most 2 * 38 standard deviations of the
    # narrower normal wide, so the first grid steps over no peak; its ends, where the supremum often
    # sits, are points.
    reach = -float(ndtri(delta))
    low = np.maximum(-reach, gap - reach * ratio)
    high = np.minimum(reach, gap + reach * ratio)
    empty = low > high
    middle = 0.5 * (low + high)
    low, high = np.where(empty, middle, low), np.where(empty, middle, high)
    left, right, best = low, high, low
    for size in [_FIRST_GRID] + _ZOOMS * [_ZOOM_GRID]:
        grid = left[..., None] + (right - left)[..., None] * np.linspace(0.0, 1.0, size)
        values = definition_terms(
            _normal_log_rates(grid, gap[..., None], ratio[..., None]), delta
        ).max(0)
        best = np.take_along_axis(grid, values.argmax(-1)[..., None], -1)[..., 0]
        cell = (right - left) / (size - 1)
        left, right = np.maximum(low, best - cell), np.minimum(high, best + cell)
    return best, empty


def best_empirical_threshold(
    train: FloatArray, population: FloatArray, delta: float, *, low: float, high: float
) -> BestThreshold:
    """Epsilon* of two samples, over the thresholds whose rates all lie in (low, high).

    Args:
        train, population: Losses, shapes (n,) and (m,).
        delta: In [0, 1).
        low, high: Rates that count, ends excluded; where no threshold has such rates, all
            thresholds count with rates clipped to these.
    """
    # Each distinct loss is a threshold. Stable sorting merges two sorted runs in one pass, so this
    # is close to the cost of two sorts.
    pooled = np.concatenate([np.sort(train), np.sort(population)])
    order = np.argsort(pooled, kind="stable")
    losses = pooled[order]
    last = np.append(np.flatnonzero(losses[1:] != losses[:-1]), losses.size - 1)
    below_train = np.cumsum(order < train.size, dtype=np.int64)[last]
    below_population = last + 1 - below_train
    tpr, fpr = below_train / train.size, below_population / population.size
    # Complements from counts: 1 - 0.999 is not 0.001 in floats.
    fnr = (train.size - below_train) / train.size
    tnr = (population.size - below_population) / population.size
    allowed = (fnr > low) & (fnr < high) & (fpr > low) & (fpr < high)
    clipped = not allowed.any()
    tpr, fnr, fpr, tnr = (np.clip(rate, low, high) for rate in (tpr, fnr, fpr, tnr))
    # Rates at or above `low` need no logarithms, and four divisions are much the faster way.
    ratios = np.maximum((tpr - delta) / fpr, (tnr - delta) / fnr)
    np.maximum(ratios, (fnr - delta) / tnr, out=ratios)
    np.maximum(ratios, (fpr - delta) / tpr, out=ratios)
    if not clipped:
        ratios[~allowed] = -np.inf
    largest = int(ratios.argmax())
    log_rates = np.log(np.array([tpr[largest], fnr[largest], fpr[largest], tnr[largest]]))
    return _best(
        definition_terms(log_rates, delta), log_rates, float(losses[last[largest]]), clipped
    )


def check_delta_below_half(delta: float, name: str = "delta") -> float:
    """Return ``delta`` in [0, 0.5): above it no rate lies in [delta, 1 - delta]. A ValueError for
    others.
    """
    number = check_delta(delta, name)
    if number >= 0.5:
        raise ValueError(
            f"{name}: expected below 0.5, since rates must lie in [delta, 1 - delta]; got "
            f"{number:g}"
        )
    return number


@dataclass(frozen=True, kw_only=True)
class NormalFit:
    """A maximum-likelihood normal and its Kolmogorov-Smirnov check."""

    mean: float  # sample mean
    std: float  # sample standard deviation, divisor n, above 0
    skewness: float  # third standardised moment; 0 for a normal
    kurtosis: float  # fourth standardised moment; 3 for a normal
    ks_distance: float  # largest gap between the sample's and the normal's distribution functions
    ks_p_value: float  # its p-value, corrected for the two fitted parameters (Lilliefors)
    size: int  # number of values

    @property
    def rejected(self) -> bool:
        """Whether the test rejects this fit as one of two, which together are tested at 1 %."""
        return self.ks_p_value < _FIT_LEVEL / 2


class NoSpreadError(ValueError):
    """All values are equal, so that no normal fits them."""


def fit_normal(values: ArrayLike, *, name: str = "values") -> NormalFit:
    """Fit one normal to finite values, shape (n,), by their mean and standard deviation, and test
    the fit by the Kolmogorov-Smirnov distance, with Lilliefors' P-value, as both are fitted.

    Raises:
        NoSpreadError: All values are equal; it is a ValueError, as is raised for fewer than two
            values, and for one that is not finite.
    """
    sample = check_vector(name, values, minimum_size=2)
    mean, std = float(sample.mean()), float(sample.std())
    # Below it lies what rounding makes of equal values.
    if not std > 1e-14 * max(abs(mean), float(np.abs(sample).max())):
        raise NoSpreadError(
            f"{name}: all {sample.size} values equal {mean:g}; a normal needs some spread"
        )
    standard = (sample - mean) / std
    square = standard * standard
    expected = ndtr(np.sort(standard))
    steps = np.arange(standard.size + 1) / standard.size
    distance = float(max((steps[1:] - expected).max(), (expected - steps[:-1]).max()))
    return NormalFit(
        mean=mean,
        std=std,
        skewness=float((square * standard).mean()),
        kurtosis=float((square * square).mean()),
        ks_distance=distance,
        ks_p_value=_lilliefors_p_value(distance, sample.size),
        size=sample.size,
    )


def _lilliefors_p_value(distance: float, size: int) -> float:
    """P-value of a Kolmogorov-Smirnov distance to the normal fitted to the same sample, by
    approximation.
    """
    # Stephens (1974), doi:10.1080/01621459.1974.10480196, scales the distance; above 0.1 R's
    # package nortest has the polynomials, below it Dallal and Wilkinson (1986) the tail,
    # doi:10.1080/00031305.1986.10475419.
    root = math.sqrt(size)
    scaled = (root - 0.01 + 0.85 / root) * distance  # Stephens's modified statistic
    if scaled <= 0.302:  # nortest's first limit
        return 1.0
    for limit, coefficients in _POLYNOMIALS:
        if scaled <= limit:
            value = sum(c * scaled**power for power, c in enumerate(coefficients))
            if value > 0.1:
                return min(value, 1.0)
            break
    # Dallal and Wilkinson's tail (their numbers) at n = 100, on the scaled distance, which makes it
    # serve every n: this is the distance that would be scaled to the same number at n = 100, where
    # the root is 10 and 0.85 / 10 is 0.085. Their formula has n + 2.78019, and 0.974598 / sqrt(n)
    # and 1.67997 / n, here 0.0974598 and 0.0167997.
    at_hundred = scaled / (10 - 0.01 + 0.085)
    root_hundred = math.sqrt(102.78019)
    exponent = (
        -7.01256 * at_hundred**2 * 102.78019
        + 2.99587 * at_hundred * root_hundred
        - 0.122119
        + 0.0974598
        + 0.0167997
    )
    return min(math.exp(exponent), 0.1)


_POLYNOMIALS = (
    (0.5, (2.76773, -19.828315, 80.709644, -138.55152, 81.218052)),
    (0.9, (-4.901232, 40.662806, -97.490286, 94.029866, -32.355711)),
)
