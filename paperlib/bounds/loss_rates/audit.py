"""Epsilon*: the privacy loss of one trained model against loss-threshold membership inference."""

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from paperlib.bounds.loss_rates import intervals as intervals
from paperlib.bounds.loss_rates.rates import (
    EMPIRICAL_RANGE,
    BestThreshold,
    NormalFit,
    best_empirical_threshold,
    best_normal_threshold,
    ceiling,
    check_delta_below_half,
    fit_normal,
    normals_epsilon,
)
from paperlib.core import AuditResult, FloatArray
from paperlib.core.checks import check_choice, check_confidence, check_delta, check_vector
from paperlib.core.direction import reversed_direction
from paperlib.core.scores import MembershipScores
from paperlib.words import directions
from paperlib.words import epsilon_star as words

Method = Literal["parametric", "empirical"]
Transform = Literal["paper", "none"]
Interval = tuple[float, float]
IntervalMethod = Literal["region", "delta", "band", "bca"]
_SMALLEST_FOR_INTERVAL = 20


@dataclass(frozen=True, kw_only=True, eq=False)
class EpsilonStarResult(AuditResult):
    """Epsilon* of one trained model; fields not listed are arguments of `epsilon_star`, as used.

    Attributes:
        epsilon: The estimate, nats, at least 0.
        threshold: Loss at which the supremum is attained: "member" is a loss at or below it. Both
            rates are those at this loss, as the method sees them.
        term: Which ratio of Definition 2 attains the supremum.
        rate_range: Rates the supremum runs over.
        ceiling: Largest value that range and delta allow, nats.
        fit_train: Normal fitted to the transformed losses, as `fit_population` (parametric only).
        fit_rejected: Whether a Kolmogorov-Smirnov test rejects either fit at 1 % (parametric only).
        empirical: Where a fit is rejected, the empirical version at the same settings, which text
            and HTML then show first. Else None.
    """

    epsilon: float
    interval: tuple[float, float] | None
    confidence: float | None
    interval_method: str | None
    method: str
    transform: str
    delta: float
    threshold: float
    false_positive_rate: float
    false_negative_rate: float
    term: str
    rate_range: tuple[float, float]
    ceiling: float
    n_train: int
    n_population: int
    fit_train: NormalFit | None
    fit_population: NormalFit | None
    fit_rejected: bool | None
    empirical: "EpsilonStarResult | None" = None
    total: int | None = None
    guesses: int | None = None
    correct: int | None = None

    @property
    def trusted(self) -> "EpsilonStarResult":
        """The result to report: this one, or the empirical version where a fit is rejected."""
        return self.empirical or self

    @property
    def headline(self) -> str:
        return words.headline(self)


def epsilon_star_normals(
    mean_train: float,
    std_train: float,
    mean_population: float,
    std_population: float,
    *,
    delta: float,
) -> float:
    """Epsilon* when training and population scores are exactly normal, whichever direction means
    "member".

    Guarantee:
        Equals the supremum of Definition 2 over all thresholds whose error rates lie in [delta, 1 -
        delta], ends included, to better than 1e-6; where the normals lie too far apart for any, its
        limit ``log((1 - 2 delta) / delta)``. At delta = 0 it is 0 for equal normals and infinite
        for any others.

    Raises:
        ValueError: A number that is not finite, a deviation that is not above 0, or delta outside
            [0, 0.5).

    Source:
        Negoescu et al. (2024), Definition 2 and Section 3.1.

    >>> round(epsilon_star_normals(0, 1, 3, 1, delta=1e-5), 6)
    9.239367
    """
    delta = check_delta_below_half(delta)
    for name, value in (("mean_train", mean_train), ("mean_population", mean_population)):
        if not math.isfinite(value):
            raise ValueError(f"{name}: expected a finite number, got {value!r}")
    for name, value in (("std_train", std_train), ("std_population", std_population)):
        if not 0 < value < math.inf:
            raise ValueError(f"{name}: expected a finite number above 0, got {value!r}")
    gap, ratio = _relative(mean_train, std_train, mean_population, std_population)
    if delta == 0:
        return 0.0 if (gap, ratio) == (0.0, 1.0) else math.inf
    return float(normals_epsilon(gap, ratio, delta))


def epsilon_star(
    train_losses: ArrayLike,
    population_losses: ArrayLike,
    *,
    delta: float | None = None,
    method: Method = "parametric",
    confidence: float | None = None,
    transform: Transform = "paper",
    interval_method: IntervalMethod | None = None,
    seed: int = 0,
) -> EpsilonStarResult:
    """Estimate how far one trained model's losses tell training records from other records.

    Guarantee:
        None beyond an estimate of this model (Definition 1): it is no lower bound on the epsilon of
        the training mechanism, and where the normal tail does not fit the parametric version can
        lie above the true value. The "band" interval covers the supremum with true rates clipped to
        [0.001, 0.999] at the stated confidence, in finite samples; "region" the value of the
        best-fitting normals, in large ones. "delta" and "bca" miss more often than they say, "bca"
        always when the distributions are equal.

    Args:
        train_losses: Losses of training records, shape (n,), at least two; lower means member.
        population_losses: Losses of other records from the same population, shape (m,), at least
            two.
        delta: Delta of Definition 1, in [0, 1), or in (0, 1/2) if parametric; default 1 / (n_train
            log n_train).
        method: "parametric" fits one normal to each transformed set; "empirical" uses the empirical
            distributions, rates in (0.001, 0.999).
        confidence: Nominal confidence of an interval, in (0, 1); None gives none.
        transform: Parametric only. "paper": min-max over both sets, plus 1, exp(-x), logit. "none":
            normals are fitted to the losses as they are, for losses that already are logit margins.
        interval_method: By default "region" for the parametric and "band" for the empirical
            version; also "delta" (parametric) and "bca" (both, at most 5,000 losses in all,
            resampled by ``seed``). Intervals are in nats.

    Raises:
        ValueError: Constant losses in the parametric version, or an option outside what is allowed.

    Source:
        Negoescu et al. (2024), Definition 2, Section 3.1, Appendix B.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> result = epsilon_star(rng.gamma(2, 5, 10_000), rng.gamma(3, 5, 10_000), confidence=0.95)
    >>> round(result.epsilon, 2), result.fit_rejected
    (4.82, True)
    >>> round(result.trusted.epsilon, 2), result.trusted.method
    (2.53, 'empirical')
    """
    check_choice("method", method, Method)
    check_choice("transform", transform, Transform)
    train = check_vector("train_losses", train_losses, minimum_size=2)
    population = check_vector("population_losses", population_losses, minimum_size=2)
    if confidence is not None:
        confidence = check_confidence(confidence)
    allowed = ("region", "delta", "bca") if method == "parametric" else ("band", "bca")
    if interval_method is not None:
        check_choice(f"interval_method (with method={method!r})", interval_method, allowed)
        if confidence is None:
            raise ValueError(f"interval_method: {interval_method!r} needs a confidence, got None")
    used_interval = None if confidence is None else interval_method or allowed[0]
    level = _delta(delta, method, train.size)
    fits, (low, high) = None, EMPIRICAL_RANGE
    if method == "parametric":
        best, interval, fits = _parametric(
            train, population, level, transform, confidence, used_interval, seed
        )
        low, high = level, 1 - level
    else:
        best, interval = _empirical(train, population, level, confidence, used_interval, seed)
    losses = MembershipScores(train, population, higher_means_member=False)
    result = EpsilonStarResult(
        epsilon=best.epsilon,
        interval=interval,
        confidence=confidence,
        interval_method=used_interval,
        method=method,
        transform=transform if method == "parametric" else "none",
        delta=level,
        threshold=best.threshold,
        false_positive_rate=best.false_positive_rate,
        false_negative_rate=best.false_negative_rate,
        term=best.term,
        rate_range=(low, high),
        ceiling=ceiling(low, high, level),
        n_train=train.size,
        n_population=population.size,
        fit_train=fits[0] if fits else None,
        fit_population=fits[1] if fits else None,
        fit_rejected=any(fit.rejected for fit in fits) if fits else None,
        sided="two",
        direction="lower",
        refusals=directions.refusals(reversed_direction(losses)),
        claim="",
        assumptions=words.assumptions(method, used_interval),
    )
    warnings = words.warnings(result, clipped=best.clipped)
    result = replace(result, claim=words.claim(result), warnings=warnings)
    if not result.fit_rejected:
        return result
    counted = epsilon_star(
        train, population, delta=level, method="empirical", confidence=confidence
    )
    note = words.beside(result.epsilon)
    return replace(
        result, empirical=replace(counted, notes=(note,)), claim=f"{counted.claim} {note}"
    )


def _delta(delta: float | None, method: str, size: int) -> float:
    """The delta of an audit of ``size`` losses, by default the paper's 1 / (n log n).

    Raises:
        ValueError: A delta outside [0, 1), or for the parametric method outside (0, 1/2).
    """
    name = "delta"
    if delta is None:
        name, delta = (
            f"delta (1 / (n log n) at n = {size}; pass another)",
            1 / (size * math.log(size)),
        )
    if method == "empirical":
        return check_delta(delta, name)
    if delta == 0:
        raise ValueError(
            "delta: the parametric version needs delta above 0, since the ratio of two normal "
            "tails has no bound; got 0; method='empirical' takes 0"
        )
    return check_delta_below_half(delta, name)


def _relative(
    mean_train: float, std_train: float, mean_other: float, std_other: float
) -> tuple[float, float]:
    """Gap of the means, others less training records, and ratio of the standard deviations, both
    in standard deviations of the training records; a ValueError for a ratio that floats do not
    hold.
    """
    ratio = float(std_other) / float(std_train)
    if not 1e-300 < ratio < 1e300:
        raise ValueError(
            f"std_population: {std_other!r} is out of all proportion to std_train {std_train!r}"
        )
    return (float(mean_other) - float(mean_train)) / float(std_train), ratio


def _parametric(
    train: FloatArray,
    population: FloatArray,
    delta: float,
    transform: Transform,
    confidence: float | None,
    interval_method: str | None,
    seed: int,
) -> tuple[BestThreshold, Interval | None, tuple[NormalFit, NormalFit]]:
    """Epsilon* of the normals that are fitted to the transformed losses.

    Args:
        train, population: Losses, shapes (n,) and (m,).
        delta: In (0, 1/2).
        confidence, interval_method: Of the interval; both None for none.
        seed: Of the resamples of a "bca" interval.

    Returns:
        Where Epsilon* is attained, its threshold as a loss; the interval, nats, or None; and the
        fits of both sets.

    Raises:
        ValueError: Equal losses, too few for an interval, or resamples that "bca" cannot correct.
    """
    smallest = float(min(train.min(), population.min()))
    scale = float(max(train.max(), population.max())) - smallest
    if not 0 < scale < math.inf:
        problem = f"all equal {smallest:g}" if scale == 0 else "too far apart for floats"
        raise ValueError(
            f"train_losses and population_losses: expected a spread of losses, they are {problem}"
        )
    pair = (
        _scores(train, smallest, scale, transform),
        _scores(population, smallest, scale, transform),
    )
    # Sorted, since the last digit of a sum depends on the order of what is added.
    fits = (
        fit_normal(np.sort(pair[0]), name="train_losses (as fitted)"),
        fit_normal(np.sort(pair[1]), name="population_losses (as fitted)"),
    )
    gap, ratio = _relative(fits[0].mean, fits[0].std, fits[1].mean, fits[1].std)
    best = best_normal_threshold(gap, ratio, delta)
    score = fits[0].mean + fits[0].std * best.threshold
    interval = None
    if confidence is not None:
        if min(fits[0].size, fits[1].size) < _SMALLEST_FOR_INTERVAL:
            raise ValueError(
                f"confidence: a large-sample interval needs at least {_SMALLEST_FOR_INTERVAL} "
                f"losses in each set, got {fits[0].size} and {fits[1].size}"
            )
        if interval_method == "region":
            interval = intervals.region_interval(*fits, delta, confidence)
        elif interval_method == "delta":
            interval = intervals.delta_method_interval(*fits, delta, confidence)
        else:
            statistic = partial(intervals.resampled_normals_epsilon, delta=delta)
            interval = intervals.bootstrap_interval(*pair, statistic, confidence, seed=seed)
    loss = -score  # the inverse of `_scores`
    if transform == "paper":
        loss = smallest + scale * (float(np.logaddexp(0.0, -score)) - 1)
    return replace(best, threshold=loss), interval, fits


def _scores(losses: FloatArray, smallest: float, scale: float, transform: str) -> FloatArray:
    """Appendix B: min-max, plus alpha = 1, p = exp(-x), logit(p); falls as the loss grows."""
    if transform == "none":
        return -losses
    return -np.log(np.expm1(1 + (losses - smallest) / scale))


def _empirical(
    train: FloatArray,
    population: FloatArray,
    delta: float,
    confidence: float | None,
    interval_method: str | None,
    seed: int,
) -> tuple[BestThreshold, Interval | None]:
    """Epsilon* of the empirical distributions, rates in `EMPIRICAL_RANGE`.

    Args:
        train, population: Losses, shapes (n,) and (m,).
        delta: In [0, 1).
        confidence, interval_method: Of the interval, "band" or "bca"; both None for none.
        seed: Of the resamples of a "bca" interval.

    Returns:
        Where Epsilon* is attained, and the interval, nats, or None.
    """
    low, high = EMPIRICAL_RANGE
    best = best_empirical_threshold(train, population, delta, low=low, high=high)
    interval = None
    if confidence is not None and interval_method == "band":
        interval = intervals.band_interval(train, population, delta, confidence, low=low, high=high)
    elif confidence is not None:
        # Ranks among all losses, from 0: Epsilon* depends on the order of the losses alone.
        ranks = np.unique(np.concatenate([train, population]), return_inverse=True)[1].astype(
            np.float64
        )
        statistic = partial(intervals.resampled_empirical_epsilon, delta=delta, low=low, high=high)
        pair = ranks[: train.size], ranks[train.size :]
        interval = intervals.bootstrap_interval(*pair, statistic, confidence, seed=seed)
    return best, interval
