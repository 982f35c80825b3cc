"""What an Epsilon* estimate supports: its claim, its assumptions and its warnings."""

import math
from dataclasses import dataclass

from paperlib.bounds.loss_rates.rates import BestThreshold, NormalFit

_FIT_LEVEL = 0.01
_FEW = 10.0

NOT_TRUSTED = "the parametric estimate, {:.3f}, is not trusted: its normal fit is rejected"


@dataclass(frozen=True, kw_only=True)
class RatesEstimate:
    """Epsilon* of two samples of losses."""

    best: BestThreshold  # threshold that attains the supremum, in the unit it was searched in
    threshold: float  # the same threshold as a loss
    interval: tuple[float, float] | None  # confidence interval, nats, or None
    rate_range: tuple[float, float]  # rates the supremum runs over
    fits: tuple[NormalFit, NormalFit] | None = None  # training and population, transformed (parametric only)


def fit_rejected(estimate: RatesEstimate) -> bool | None:
    """Whether a Kolmogorov-Smirnov test rejects either fit at 1 %; None without fits."""
    if estimate.fits is None:
        return None
    # Two fits are tested, so each at half the level.
    return min(fit.ks_p_value for fit in estimate.fits) < _FIT_LEVEL / 2


def claim(
    estimate: RatesEstimate, method: str, delta: float, confidence: float | None, chosen: str | None
) -> str:
    """The sentence that the estimate supports."""
    text = (
        f"Measurement of one trained model, an estimate and not a lower bound: at delta = {delta:.3g} the "
        f"{method} Epsilon* of this model is {estimate.best.epsilon:.3f} nats. It is the smallest epsilon at "
        "which Definition 1 (empirical privacy) holds for the estimated loss distributions over one-sided "
        f"loss thresholds, error rates between {estimate.rate_range[0]:.3g} and one minus that. "
        "Its randomness is the draw of a record, from the training set or from the population, with the "
        "model fixed: no add/remove or replacement adjacency is involved, and it says nothing about the "
        "epsilon of the training mechanism."
    )
    if estimate.interval is None or confidence is None:
        return text + " No confidence is attached to the number."
    low, high = estimate.interval
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


def assumptions(method: str, chosen: str | None) -> tuple[str, ...]:
    """Conditions under which the claim holds."""
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


def warnings(estimate: RatesEstimate, n_train: int, n_population: int) -> tuple[str, ...]:
    """Problems of this very run."""
    best, texts = estimate.best, list[str]()
    if best.clipped:
        texts.append(
            f"No threshold has both error rates between {estimate.rate_range[0]:.3g} and one minus that: "
            "rates were clipped to that range, and the value shows the range, not the losses."
        )
    if estimate.fits is None:
        return tuple(texts)
    for name, fit in zip(("training", "population"), estimate.fits, strict=True):
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
