"""Epsilon*: the privacy loss of one trained model against loss-threshold membership inference."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from paperlib.bounds.loss_rates import intervals as intervals
from paperlib.bounds.loss_rates.normal_fit import NormalFit, fit_normal
from paperlib.bounds.loss_rates.rates import (
    EMPIRICAL_RANGE,
    BestThreshold,
    best_empirical_threshold,
    best_normal_threshold,
    ceiling,
    check_delta_below_half,
    normals_epsilon,
)
from paperlib.bounds.loss_rates.rates import epsilon_star_from_rates as epsilon_star_from_rates
from paperlib.core import AuditResult, FloatArray, check_choice, check_confidence, check_delta, check_vector

Method = Literal["parametric", "empirical"]
Transform = Literal["paper", "none"]
IntervalMethod = Literal["region", "delta", "band", "bca"]

_FIT_LEVEL = 0.01
_FEW = 10.0
_SMALLEST_FOR_INTERVAL = 20


@dataclass(frozen=True, kw_only=True, eq=False)
class EpsilonStarResult(AuditResult):
    """Epsilon* of one trained model.

    Attributes:
        epsilon: The estimate, nats, at least 0.
        interval: Confidence interval around it, or None if none was asked for.
        confidence: Its nominal confidence, or None.
        interval_method: "region", "delta", "band", "bca", or None.
        method: "parametric" or "empirical".
        transform: "paper" or "none" (parametric only).
        delta: The delta of Definition 1.
        threshold: Loss at which the supremum is attained: "member" is a loss at or below it.
        false_positive_rate: Share of the population at or below the threshold, as the method sees it.
        false_negative_rate: Share of the training set above it, as the method sees it.
        term: Which ratio of Definition 2 attains the supremum.
        rate_range: Rates the supremum runs over.
        ceiling: Largest value that range and delta allow, nats.
        n_train: Number of training losses.
        n_population: Number of population losses.
        fit_train: Normal fitted to the transformed training losses (parametric only).
        fit_population: The same for the population.
        fit_rejected: Whether a Kolmogorov-Smirnov test rejects either fit at 1 % (parametric only).
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

    @property
    def ks_p_values(self) -> tuple[float, float] | None:
        """Fit p-values of training and population losses; None for the empirical version."""
        if self.fit_train is None or self.fit_population is None:
            return None
        return self.fit_train.ks_p_value, self.fit_population.ks_p_value

    @property
    def headline(self) -> str:
        text = f"Epsilon* ≈ {self.epsilon:.3f} ({self.method} estimate, δ = {self.delta:.3g}"
        if self.interval is not None:
            low, high = math.floor(1000 * self.interval[0]) / 1000, math.ceil(1000 * self.interval[1]) / 1000
            text += f", interval {low:.3f} to {high:.3f} at nominal confidence {self.confidence:g}"
        return text + f", {self.n_train} training and {self.n_population} population losses)"


def epsilon_star_normals(
    mean_train: float, std_train: float, mean_population: float, std_population: float, *, delta: float
) -> float:
    """Epsilon* when training and population scores are exactly normal.

    Guarantee:
        Equals the supremum of Definition 2 over all thresholds whose false-positive and
        false-negative rates lie in [delta, 1 - delta], ends included, to better than 1e-6. If no
        threshold qualifies, because the normals lie too far apart, the value is
        ``log((1 - 2 delta) / delta)``, which is also its limit as they move apart to that point. At
        delta = 0 it is 0 for equal normals and infinite for any others: tails differ without bound.

    Args:
        mean_train: Mean of the training scores, any unit.
        std_train: Their standard deviation, above 0, same unit.
        mean_population: Mean of the population scores.
        std_population: Their standard deviation, above 0.
        delta: In [0, 0.5).

    Returns:
        Nats, at least 0. The same whichever direction of the score means "member".

    Raises:
        ValueError: A standard deviation not above 0, a value that is not finite, delta outside [0, 0.5).

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


def _relative(
    mean_train: float, std_train: float, mean_other: float, std_other: float
) -> tuple[float, float]:
    ratio = float(std_other) / float(std_train)
    if not 1e-300 < ratio < 1e300:
        raise ValueError(f"std_population: {std_other!r} is out of all proportion to std_train {std_train!r}")
    return (float(mean_other) - float(mean_train)) / float(std_train), ratio


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
        None beyond an estimate: Epsilon* measures this model (Definition 1), it is no lower bound on
        the epsilon of the training mechanism, and the parametric version can lie above the value of
        the true distributions when the normal tail does not fit. The ``"band"`` interval (empirical)
        covers the supremum with true rates clipped to [0.001, 0.999] with at least the stated confidence,
        in finite samples; ``"region"`` (parametric) covers the value of the best-fitting
        normals in large samples. ``"delta"`` and ``"bca"`` are the customary intervals and miss more
        often than they say; ``"bca"`` always does when the distributions are equal.

    Args:
        train_losses: Losses of training records, shape (n_train,); lower means member.
        population_losses: Losses of other records from the same population, shape (n_population,).
        delta: In [0, 1), below 0.5 for the parametric version; 1 / (n_train log n_train) by default.
        method: "parametric" fits one normal to each transformed set; "empirical" uses the empirical
            distributions, rates in (0.001, 0.999).
        confidence: Nominal confidence of an interval, in (0, 1); None gives none.
        transform: Parametric only. "paper": min-max over both sets, plus 1, exp(-x), logit. "none":
            normals are fitted to the losses as they are, for losses that already are logit margins.
        interval_method: By default "region" for the parametric and "band" for the empirical version;
            also "delta" (parametric) and "bca" (both, at most 5,000 losses in all).
        seed: Seed of the "bca" resampling.

    Returns:
        The estimate with its interval, threshold, fit check, claim and assumptions.

    Raises:
        ValueError: Fewer than two losses in a set, NaN or infinite losses, constant losses in the
            parametric version, or an option outside what is allowed.

    Source:
        Negoescu et al. (2024), Definition 2, Section 3.1, Appendix B.

    >>> rng = np.random.default_rng(0)
    >>> result = epsilon_star(rng.gamma(2, 5, 10_000), rng.gamma(3, 5, 10_000), confidence=0.95)
    >>> round(result.epsilon, 2), result.fit_rejected
    (4.82, True)
    """
    check_choice("method", method, ("parametric", "empirical"))
    check_choice("transform", transform, ("paper", "none"))
    train = check_vector("train_losses", train_losses, minimum_size=2)
    population = check_vector("population_losses", population_losses, minimum_size=2)
    if confidence is not None:
        confidence = check_confidence(confidence)
    chosen = _interval_method(method, confidence, interval_method)
    level = _delta(delta, method, train.size)
    if method == "parametric":
        found = _parametric(train, population, level, transform, _Ask(confidence, chosen, seed))
    else:
        found = _empirical(train, population, level, _Ask(confidence, chosen, seed))
    low, high = found.rate_range
    return EpsilonStarResult(
        epsilon=found.best.epsilon,
        interval=found.interval,
        confidence=confidence,
        interval_method=chosen,
        method=method,
        transform=transform if method == "parametric" else "none",
        delta=level,
        threshold=found.threshold,
        false_positive_rate=found.best.false_positive_rate,
        false_negative_rate=found.best.false_negative_rate,
        term=found.best.term,
        rate_range=found.rate_range,
        ceiling=ceiling(low, high, level),
        n_train=train.size,
        n_population=population.size,
        fit_train=found.fits[0] if found.fits else None,
        fit_population=found.fits[1] if found.fits else None,
        fit_rejected=_fit_rejected(found),
        claim=_claim(found, method, level, confidence, chosen),
        assumptions=_assumptions(method, chosen),
        warnings=_warnings(found, train.size, population.size),
    )


@dataclass(frozen=True)
class _Ask:
    confidence: float | None
    method: str | None
    seed: int


@dataclass(frozen=True, kw_only=True)
class _Found:
    best: BestThreshold
    threshold: float
    interval: tuple[float, float] | None
    rate_range: tuple[float, float]
    fits: tuple[NormalFit, NormalFit] | None = None


def _interval_method(method: str, confidence: float | None, chosen: str | None) -> str | None:
    allowed = ("region", "delta", "bca") if method == "parametric" else ("band", "bca")
    if chosen is not None:
        check_choice(f"interval_method (with method={method!r})", chosen, allowed)
        if confidence is None:
            raise ValueError(f"interval_method: {chosen!r} needs a confidence, got None")
    return None if confidence is None else chosen or allowed[0]


def _delta(delta: float | None, method: str, size: int) -> float:
    name = "delta"
    if delta is None:
        name, delta = f"delta (1 / (n log n) at n = {size}; pass another)", 1 / (size * math.log(size))
    if method == "empirical":
        return check_delta(delta, name)
    if delta == 0:
        raise ValueError(
            "delta: the parametric version needs delta above 0, since the ratio of two normal tails has no "
            "bound; got 0; method='empirical' takes 0"
        )
    return check_delta_below_half(delta, name)


def _parametric(train: FloatArray, population: FloatArray, delta: float, transform: str, ask: _Ask) -> _Found:
    smallest = float(min(train.min(), population.min()))
    scale = float(max(train.max(), population.max())) - smallest
    if not 0 < scale < math.inf:
        problem = f"all equal {smallest:g}" if scale == 0 else "too far apart for floats"
        raise ValueError(
            f"train_losses and population_losses: expected a spread of losses, they are {problem}"
        )
    pair = _scores(train, smallest, scale, transform), _scores(population, smallest, scale, transform)
    fits = (
        fit_normal(pair[0], name="train_losses (as fitted)"),
        fit_normal(pair[1], name="population_losses (as fitted)"),
    )
    gap, ratio = _relative(fits[0].mean, fits[0].std, fits[1].mean, fits[1].std)
    best = best_normal_threshold(gap, ratio, delta)
    score = fits[0].mean + fits[0].std * best.threshold
    return _Found(
        best=best,
        threshold=_loss(score, smallest, scale, transform),
        interval=_parametric_interval(fits, pair, delta, ask),
        rate_range=(delta, 1 - delta),
        fits=fits,
    )


def _scores(losses: FloatArray, smallest: float, scale: float, transform: str) -> FloatArray:
    """Appendix B: min-max, plus alpha = 1, p = exp(-x), logit(p); falls as the loss grows.

    logit(exp(-x)) is -log(exp(x) - 1), which needs no p.
    """
    if transform == "none":
        return -losses
    return -np.log(np.expm1(1 + (losses - smallest) / scale))


def _loss(score: float, smallest: float, scale: float, transform: str) -> float:
    """Inverse of `_scores`."""
    return -score if transform == "none" else smallest + scale * (float(np.logaddexp(0.0, -score)) - 1)


def _parametric_interval(
    fits: tuple[NormalFit, NormalFit], pair: tuple[FloatArray, FloatArray], delta: float, ask: _Ask
) -> tuple[float, float] | None:
    if ask.confidence is None:
        return None
    if min(fits[0].size, fits[1].size) < _SMALLEST_FOR_INTERVAL:
        raise ValueError(
            f"confidence: a large-sample interval needs at least {_SMALLEST_FOR_INTERVAL} losses in each "
            f"set, got {fits[0].size} and {fits[1].size}"
        )
    if ask.method == "region":
        return intervals.region_interval(*fits, delta, ask.confidence)
    if ask.method == "delta":
        return intervals.delta_method_interval(*fits, delta, ask.confidence)

    def statistic(train: FloatArray, population: FloatArray, axis: int = -1) -> FloatArray:
        return intervals.resampled_normals_epsilon(train, population, delta)

    return intervals.bootstrap_interval(*pair, statistic, ask.confidence, seed=ask.seed)


def _empirical(train: FloatArray, population: FloatArray, delta: float, ask: _Ask) -> _Found:
    low, high = EMPIRICAL_RANGE
    best = best_empirical_threshold(train, population, delta, low=low, high=high)
    interval = None
    if ask.confidence is not None and ask.method == "band":
        interval = intervals.band_interval(train, population, delta, ask.confidence, low=low, high=high)
    elif ask.confidence is not None:
        ranks = np.unique(np.concatenate([train, population]), return_inverse=True)[1].astype(np.float64)

        def statistic(a: FloatArray, b: FloatArray, axis: int = -1) -> FloatArray:
            return intervals.resampled_empirical_epsilon(a, b, delta, low=low, high=high)

        pair = ranks[: train.size], ranks[train.size :]
        interval = intervals.bootstrap_interval(*pair, statistic, ask.confidence, seed=ask.seed)
    return _Found(best=best, threshold=best.threshold, interval=interval, rate_range=EMPIRICAL_RANGE)


def _fit_rejected(found: _Found) -> bool | None:
    if found.fits is None:
        return None
    # Two fits are tested, so each at half the level.
    return min(fit.ks_p_value for fit in found.fits) < _FIT_LEVEL / 2


def _claim(found: _Found, method: str, delta: float, confidence: float | None, chosen: str | None) -> str:
    text = (
        f"Measurement of one trained model, an estimate and not a lower bound: at delta = {delta:.3g} the "
        f"{method} Epsilon* of this model is {found.best.epsilon:.3f} nats. It is the smallest epsilon at "
        "which Definition 1 (empirical privacy) holds for the estimated loss distributions over one-sided "
        f"loss thresholds, error rates between {found.rate_range[0]:.3g} and one minus that. "
        "Its randomness is the draw of a record, from the training set or from the population, with the "
        "model fixed: no add/remove or replacement adjacency is involved, and it says nothing about the "
        "epsilon of the training mechanism."
    )
    if found.interval is None or confidence is None:
        return text + " No confidence is attached to the number."
    low, high = found.interval
    shown = f"[{math.floor(1e3 * low) / 1e3:.3f}, {math.ceil(1e3 * high) / 1e3:.3f}]"
    return text + f" Interval {shown}, nominal confidence {confidence:g}: {_INTERVALS[f'{method} {chosen}']}"


_INTERVALS = {
    "parametric region": (
        "the values that a joint large-sample confidence region of the two normals allows; it covers the "
        "value of the best-fitting normals, at or above the nominal rate in our simulations of normal "
        "losses, and not the error of fitting normals."
    ),
    "parametric delta": (
        "delta method; in our simulations of normal losses it covers less often than its nominal rate "
        "where the two spreads are nearly equal, and it leaves out the error of fitting normals."
    ),
    "parametric bca": (
        "BCa bootstrap, 999 resamples, the transform held fixed; in our simulations of normal losses it "
        "always misses at equal distributions and covers less often than its nominal rate where the two "
        "spreads are nearly equal, and it leaves out the error of fitting normals."
    ),
    "empirical band": (
        "simultaneous exact binomial bands around both distribution functions; it covers the supremum with "
        "true rates clipped to that range at least that often, in finite samples and for any distributions."
    ),
    "empirical bca": (
        "BCa bootstrap, 999 resamples; a supremum over noisy tails breaks its theory, and in our simulations "
        "of normal losses it often covers far less than its nominal rate, at equal distributions never."
    ),
}


def _assumptions(method: str, chosen: str | None) -> tuple[str, ...]:
    stated = [
        "The population losses are of records drawn from the population the training records came from, "
        "and none of them was trained on.",
        "The adversary sees the loss alone and calls a record a member when it is at or below one threshold.",
        "Both arrays come from the same model, and lower loss points to membership.",
    ]
    if method == "parametric":
        stated.append(
            "After the transform each set is normal far into the tail: rates down to delta are read off the "
            "fitted normals, where the samples hold few losses or none."
        )
    if chosen is not None:
        stated.append(
            "For the interval: both sets are independent draws. (If the training losses are complete, their "
            "distribution is known exactly and the interval is wider than it need be.)"
        )
    return tuple(stated)


def _warnings(found: _Found, n_train: int, n_population: int) -> tuple[str, ...]:
    best, texts = found.best, list[str]()
    if best.clipped:
        texts.append(
            f"No threshold has both error rates between {found.rate_range[0]:.3g} and one minus that: rates "
            "were clipped to that range, and the value is what the range allows, not what the losses show."
        )
    if found.fits is None:
        return tuple(texts)
    for name, fit in zip(("training", "population"), found.fits, strict=True):
        if fit.ks_p_value < _FIT_LEVEL / 2:
            texts.append(
                f"The normal fit of the {name} losses is rejected (Kolmogorov-Smirnov distance "
                f"{fit.ks_distance:.3f}, p = {fit.ks_p_value:.2g}): the value may be far off, either way."
            )
    expected = min(
        n_population * min(best.false_positive_rate, 1 - best.false_positive_rate),
        n_train * min(best.false_negative_rate, 1 - best.false_negative_rate),
    )
    if best.epsilon > 0 and not best.clipped and expected < _FEW:
        texts.append(
            f"The supremum sits in the tail, at FPR {best.false_positive_rate:.3g} and FNR "
            f"{best.false_negative_rate:.3g}, where {expected:.2g} losses are expected: the value is the "
            "normal's extrapolation."
        )
    return tuple(texts)
