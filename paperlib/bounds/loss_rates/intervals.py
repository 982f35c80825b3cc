"""Intervals around Epsilon*: region and delta method for normals, band for samples, BCa for
both.
"""

import math
import warnings
from typing import Any

import numpy as np
from scipy.special import betaincinv, fdtri, ndtri

from paperlib.bounds.loss_rates.rates import NormalFit, definition_terms, normals_epsilon
from paperlib.core import FloatArray

BOOTSTRAP_LIMIT = 5_000
"""Most losses, both sets together, for BCa: its jackknife recomputes Epsilon* once per loss."""

_RESAMPLES = 999  # of the bootstrap
_ANGLES, _RADII = 49, 4  # points of the grid over a disc: around it, and from its middle outward
_FINE = 17  # angles of the finer grid around an extreme of the first
_RANKS_PER_TAIL = 64  # at most, at which a band is held
_STEP = 1e-4  # of a central difference, in units of the gap and of the log ratio

Interval = tuple[float, float]


def region_interval(
    train: NormalFit, population: NormalFit, delta: float, confidence: float
) -> Interval:
    """Smallest and largest Epsilon* over a joint confidence region of the two fitted normals, nats.

    ``delta`` is in (0, 1/2), ``confidence`` in (0, 1).
    """
    # Epsilon* depends on the gap of the means and the ratio of the spreads alone. An ellipse holds
    # this pair with probability `confidence`, so the interval covers whatever the shape of Epsilon*
    # over it, kinks too. `root` maps a disc of radius `reach` to the ellipse around the estimate.
    estimate, root = _gap_and_log_ratio(train, population)
    reach = _reach(train, population, confidence)

    def over_disc(angle: FloatArray, radius: FloatArray) -> FloatArray:
        """Epsilon* at points of the disc, by angles in radians and radii, all shape (points,)."""
        offset = root @ np.stack([radius * np.cos(angle), radius * np.sin(angle)])
        return normals_epsilon(estimate[0] + offset[0], np.exp(estimate[1] + offset[1]), delta)

    # A grid over the whole disc: angles 0 to 2 pi, radii 0 to reach. Its middle is the pair of fits
    # itself, so the interval always holds the estimate.
    angle, radius = _grid(0.0, math.pi, _ANGLES, reach / 2, reach / 2, _RADII)
    values = over_disc(angle, radius)
    angle_step, radius_step = 2 * math.pi / (_ANGLES - 1), reach / (_RADII - 1)
    ends: list[float] = []  # smallest, largest
    for sign, extreme in ((-1, values.argmin()), (1, values.argmax())):
        # A finer grid over the cells around the extreme of the first.
        fine_angle, fine_radius = _grid(
            float(angle[extreme]),
            angle_step,
            _FINE,
            float(radius[extreme]),
            radius_step,
            _FINE // 2,
        )
        finer = over_disc(fine_angle, np.clip(fine_radius, 0.0, reach))
        ends.append(sign * max(float((sign * values).max()), float((sign * finer).max())))
    return (0.0 if _holds_equal(estimate, root, reach) else ends[0]), ends[1]


def _holds_equal(estimate: FloatArray, root: FloatArray, reach: float) -> bool:
    """Whether the ellipse of (gap, log ratio) holds (0, 0): two equal normals, of Epsilon* 0.

    Args:
        estimate: Middle of the ellipse, shape (2,).
        root: Maps a disc of radius ``reach`` to the ellipse, shape (2, 2).
    """
    return float(np.sum(np.linalg.solve(root, estimate) ** 2)) <= reach**2


def _grid(
    angle: float, angle_reach: float, angles: int, radius: float, radius_reach: float, radii: int
) -> tuple[FloatArray, FloatArray]:
    """All pairs of evenly spaced angles, in radians, and radii: within their reach of one pair, in
    two arrays of shape (angles * radii,).
    """
    first = angle + angle_reach * np.linspace(-1, 1, angles)
    second = radius + radius_reach * np.linspace(-1, 1, radii)
    return np.repeat(first, radii), np.tile(second, angles)


def delta_method_interval(
    train: NormalFit, population: NormalFit, delta: float, confidence: float
) -> Interval:
    """Estimate plus and minus a normal quantile times its linearised standard error, nats, floored
    at 0.

    ``delta`` is in (0, 1/2), ``confidence`` in (0, 1).
    """
    estimate, root = _gap_and_log_ratio(train, population)
    # Epsilon* at the estimate and a step from it in each direction: a central difference.
    steps = _STEP * np.array([[0, 1, -1, 0, 0], [0, 0, 0, 1, -1]])
    gap, log_ratio = estimate[:, None] + steps
    values = normals_epsilon(gap, np.exp(log_ratio), delta)
    gradient = np.array([values[1] - values[2], values[3] - values[4]]) / (2 * _STEP)
    half = -float(ndtri((1 - confidence) / 2)) * float(np.linalg.norm(gradient @ root))
    centre = float(values[0])
    # Near equal normals Epsilon* has a kink, which a straight line misses.
    holds_equal = _holds_equal(estimate, root, _reach(train, population, confidence))
    return (0.0 if holds_equal else max(centre - half, 0.0)), centre + half


def _reach(train: NormalFit, population: NormalFit, confidence: float) -> float:
    """Radius of a region in two dimensions: Hotelling's, a little above the chi-squared one at
    small n.
    """
    smaller = min(train.size, population.size)
    return math.sqrt(2 * (smaller - 1) / (smaller - 2) * float(fdtri(2, smaller - 2, confidence)))


def _gap_and_log_ratio(train: NormalFit, population: NormalFit) -> tuple[FloatArray, FloatArray]:
    """Gap of the means and log ratio of the standard deviations, in standard deviations of the
    training set, shape (2,), and the lower Cholesky root of their large-sample covariance, shape
    (2, 2), by the moments of the samples and not of a normal ("sandwich").
    """
    # Skewness and kurtosis of the samples widen the region for heavy tails; a kurtosis below 3,
    # which small normal samples tend to show, counts as 3, else the region would miss more often
    # than it says.
    gap = (population.mean - train.mean) / train.std
    ratio = population.std / train.std
    spread_train, spread_population = (
        (max(fit.kurtosis, 3.0) - 1) / 4 for fit in (train, population)
    )
    gap_variance = (1 + gap * train.skewness + gap**2 * spread_train) / train.size
    gap_variance += ratio**2 / population.size
    covariance = (train.skewness / 2 + gap * spread_train) / train.size
    covariance += ratio * population.skewness / 2 / population.size
    log_ratio_variance = spread_train / train.size + spread_population / population.size
    corner = math.sqrt(gap_variance)
    below = covariance / corner
    # Rounding alone could make this negative: kurtosis is at least 1 + skewness squared.
    rest = math.sqrt(max(log_ratio_variance - below**2, 1e-12 * log_ratio_variance))
    return np.array([gap, math.log(ratio)]), np.array([[corner, 0.0], [below, rest]])


def band_interval(
    train: FloatArray,
    population: FloatArray,
    delta: float,
    confidence: float,
    *,
    low: float,
    high: float,
) -> Interval:
    """Range of Epsilon* over every pair of distributions that two simultaneous bands allow.

    Args:
        train, population: Losses, shape (n,) and (m,).
        delta: In [0, 0.5).
        confidence: In (0, 1).
        low, high: Ends of the range that rates are clipped to.

    Returns:
        Both ends, nats.
    """
    # Exact binomial limits at up to 128 ranks of each sample, fixed by its size, share the error:
    # the result holds the supremum with rates clipped to [low, high] in finite samples, for any
    # distributions.
    ranks = [_ranks(sample.size, low) for sample in (train, population)]
    level = (1 - confidence) / (2 * sum(r.size for r in ranks))
    points = [
        np.sort(s)[r.astype(np.int64) - 1] for s, r in zip((train, population), ranks, strict=True)
    ]
    edges = np.unique(np.concatenate(points))
    limits: list[FloatArray] = []  # least and most of the members' rates, then of the population's
    for sample, losses_at_ranks, r in zip((train, population), points, ranks, strict=True):
        # Limits of F on (-inf, edges[0]) and on every [edges[i], edges[i+1]): F >= lower at and
        # after each rank's loss, F <= upper before it.
        passed = np.append(0, np.searchsorted(losses_at_ranks, edges, side="right"))
        lower, upper = (betaincinv(r, sample.size - r + 1, p) for p in (level, 1 - level))
        limits += [np.append(0.0, lower)[passed], np.append(upper, 1.0)[passed]]
    tpr, most_tpr, fpr, most_fpr = (np.clip(limit, low, high) for limit in limits)
    lower_end = _corner(tpr, most_tpr, fpr, most_fpr, delta)
    upper_end = _corner(most_tpr, tpr, most_fpr, fpr, delta)
    return lower_end, upper_end


def _ranks(size: int, low: float) -> FloatArray:
    """Ranks from 1 to ``size`` on a geometric grid from both ends, rising, 128 at most; rates far
    below ``low``, the least that counts, need none.
    """
    first, middle = max(1.0, low * size / 2), max(1.0, (size + 1) / 2)
    tail = np.unique(np.round(np.geomspace(min(first, middle), middle, _RANKS_PER_TAIL)))
    return np.unique(np.concatenate([tail, size + 1 - tail]))


def _corner(
    tpr: FloatArray, tpr_other: FloatArray, fpr: FloatArray, fpr_other: FloatArray, delta: float
) -> float:
    """Largest value of Definition 2, nats, with numerators at one end of their bands and
    denominators at the other; all arrays of shape (thresholds,).

    ``tpr`` and ``fpr`` are the least rates for the lower end of the interval and the most for its
    upper end; the ``_other`` ones are the opposite ends.
    """
    # The ratios TPR/FPR, TNR/FNR, FNR/TNR and FPR/TPR. From (least, most) pairs: what is surely
    # reached; from (most, least) pairs: what surely bounds it.
    numerators = np.stack([tpr, 1 - fpr_other, 1 - tpr_other, fpr]) - delta
    denominators = np.stack([fpr_other, 1 - tpr, 1 - fpr, tpr_other])
    return math.log(float((numerators / denominators).max(initial=1.0)))


def bootstrap_interval(
    train: FloatArray, population: FloatArray, statistic: Any, confidence: float, *, seed: int
) -> Interval:
    """BCa bootstrap interval (scipy) of Epsilon*, nats.

    Args:
        train, population: Losses or their ranks, shapes (n,) and (m,), 5,000 in all at most.
        statistic: From resamples of both, shapes (..., n) and (..., m), and ``axis=-1`` to Epsilon*
            of each, shape (...).
        confidence: In (0, 1).
        seed: Of the resamples.

    Raises:
        ValueError: Too many losses, or resamples that are all equal or on one side of the estimate.
    """
    total = train.size + population.size
    if total > BOOTSTRAP_LIMIT:
        raise ValueError(
            f"interval_method: 'bca' recomputes Epsilon* once per loss and takes at most "
            f"{BOOTSTRAP_LIMIT} losses in all, got {total}; use 'region', 'delta' or 'band'"
        )
    from scipy.stats import DegenerateDataWarning, bootstrap  # here, since it is slow to load

    with warnings.catch_warnings():
        # scipy warns, and gives NaN, where resamples are all equal or all on one side of the
        # estimate.
        warnings.simplefilter("ignore", DegenerateDataWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        interval = bootstrap(
            (train, population),
            statistic,
            n_resamples=_RESAMPLES,
            batch=100,
            vectorized=True,
            axis=-1,
            confidence_level=confidence,
            method="BCa",
            rng=np.random.default_rng(seed),
        ).confidence_interval
    low, high = float(interval.low), float(interval.high)
    if not low < high:  # equal, or NaN
        raise ValueError(
            "interval_method: 'bca' cannot correct these resamples, all equal or all on one side "
            "of the estimate; use 'region', 'delta' or 'band'"
        )
    return low, high


def resampled_normals_epsilon(
    train: FloatArray, population: FloatArray, axis: int = -1, *, delta: float
) -> FloatArray:
    """Parametric Epsilon* of each row, nats: shapes (..., n_train) and (..., n_population), of
    which the first axes broadcast. ``axis`` is there for scipy's bootstrap and is the last one.
    """
    spread = train.std(axis=-1)
    gap = (population.mean(axis=-1) - train.mean(axis=-1)) / spread
    return normals_epsilon(gap, population.std(axis=-1) / spread, delta)


def resampled_empirical_epsilon(
    train: FloatArray,
    population: FloatArray,
    axis: int = -1,
    *,
    delta: float,
    low: float,
    high: float,
) -> FloatArray:
    """Empirical Epsilon* of each row, nats, shape (...): losses, (..., n) and (..., m), are
    whole-number ranks among the pooled losses.

    Rates are clipped to [``low``, ``high``]; ``axis`` is there for scipy's bootstrap and is the
    last one.
    """
    width = int(max(train.max(), population.max())) + 1
    tpr, fpr = _cumulated(train, width), _cumulated(population, width)
    tpr, fpr = np.broadcast_arrays(tpr, fpr)
    # Thresholds whose rates lie inside the range; all of them where none does.
    allowed = (tpr > low) & (tpr < high) & (fpr > low) & (fpr < high)
    allowed |= ~allowed.any(axis=-1, keepdims=True)
    tpr, fpr = np.clip(tpr, low, high), np.clip(fpr, low, high)
    terms = definition_terms(np.log(np.stack([tpr, 1 - tpr, fpr, 1 - fpr])), delta).max(axis=0)
    return np.maximum(np.where(allowed, terms, -np.inf).max(axis=-1), 0.0)


def _cumulated(ranks: FloatArray, width: int) -> FloatArray:
    """Share of each row at or below each rank, shape (..., width)."""
    rows = ranks.reshape(-1, ranks.shape[-1]).astype(np.int64)
    flat = rows + width * np.arange(rows.shape[0])[:, None]
    counts = np.bincount(flat.ravel(), minlength=rows.shape[0] * width)
    shares = np.cumsum(counts.reshape(rows.shape[0], width), axis=1) / rows.shape[1]
    return shares.reshape(*ranks.shape[:-1], width)
