"""What an Epsilon* estimate supports: its claim, its assumptions and its warnings."""

from typing import TYPE_CHECKING

from paperlib.core.results import round_down, round_up

if TYPE_CHECKING:
    from paperlib.bounds.loss_rates.audit import EpsilonStarResult

_FEW = 10.0  # losses; where fewer are expected, a value rests on the fitted normal alone


def not_trusted(epsilon: float) -> str:
    """That a parametric estimate, nats, is not to be used."""
    return f"the parametric estimate, {epsilon:.3f}, is not trusted: its normal fit is rejected"


def beside(epsilon: float) -> str:
    """The note that a parametric estimate, nats, stands beside the empirical one."""
    return f"Beside it, {not_trusted(epsilon)}."


def headline(result: "EpsilonStarResult") -> str:
    """The estimate, nats, on one line: the empirical one where the parametric one is not
    trusted.
    """
    if result.empirical is not None:
        return f"{result.empirical.headline}; {not_trusted(result.epsilon)}"
    text = f"Epsilon* ≈ {result.epsilon:.3f} ({result.method} estimate, δ = {result.delta:.3g}"
    if result.method == "empirical":
        text += f", rates between {result.rate_range[0]:g} and {result.rate_range[1]:g}"
    if result.interval is not None:
        low, high = round_down(result.interval[0]), round_up(result.interval[1])
        text += f", interval {low:.3f} to {high:.3f} at nominal confidence {result.confidence:g}"
    return text + f", {result.n_train} training and {result.n_population} population losses)"


def claim(result: "EpsilonStarResult") -> str:
    """The sentences that the estimate, nats, supports, with its confidence interval if there is
    one.
    """
    text = (
        "Measurement of one trained model, an estimate and not a lower bound: at delta = "
        f"{result.delta:.3g} the {result.method} Epsilon* of this model is {result.epsilon:.3f} "
        "nats. It is the smallest epsilon at which Definition 1 (empirical privacy) holds for the "
        "estimated loss distributions over one-sided loss thresholds, error rates between "
        f"{result.rate_range[0]:.3g} and one minus that. "
        "Its randomness is the draw of a record, from the training set or from the population, "
        "with the model fixed: no add/remove or replacement adjacency is involved, and it says "
        "nothing about the epsilon of the training mechanism."
    )
    if result.interval is None:
        return text + " No confidence is attached to the number."
    low, high = result.interval
    bounds = f"[{round_down(low):.3f}, {round_up(high):.3f}]"
    coverage = _INTERVALS[f"{result.method} {result.interval_method}"]
    return text + f" Interval {bounds}, nominal confidence {result.confidence:g}: {coverage}"


_INTERVALS = {
    "parametric region": (
        "the values that a joint large-sample confidence region of the two normals allows; it "
        "covers the value of the best-fitting normals, at or above the nominal rate in our "
        "simulations of normal losses, and not the error of fitting normals."
    ),
    "parametric delta": (
        "delta method; in our simulations of normal losses it covers less often than its nominal "
        "rate where the two spreads are nearly equal, and it leaves out the error of fitting "
        "normals."
    ),
    "parametric bca": (
        "BCa bootstrap, 999 resamples, the transform held fixed; in our simulations of normal "
        "losses it always misses at equal distributions and covers less often than its nominal "
        "rate where the two spreads are nearly equal, and it leaves out the error of fitting "
        "normals."
    ),
    "empirical band": (
        "simultaneous exact binomial bands around both distribution functions; it covers the "
        "supremum with true rates clipped to that range at least that often, in finite samples and "
        "for any distributions."
    ),
    "empirical bca": (
        "BCa bootstrap, 999 resamples; a supremum over noisy tails breaks its theory, and in our "
        "simulations of normal losses it often covers far less than its nominal rate, at equal "
        "distributions never."
    ),
}


def assumptions(method: str, interval_method: str | None) -> tuple[str, ...]:
    """Conditions under which the claim of Epsilon* by this method holds, and that of its confidence
    interval; ``interval_method`` is None where there is none.
    """
    stated = [
        "The population losses are of records drawn from the population the training records came "
        "from, and none of them was trained on.",
        (
            "The adversary sees the loss alone and calls a record a member when it is at or below "
            "one threshold."
        ),
        "Both arrays come from the same model, and lower loss points to membership.",
    ]
    if method == "parametric":
        stated.append(
            "After the transform each set is normal far into the tail: rates down to delta are "
            "those of the fitted normals, where the samples have few losses or none."
        )
    if interval_method is not None:
        stated.append(
            "For the interval: both sets are independent draws. (If the training losses are "
            "complete, their distribution is known exactly and the interval is wider than it need "
            "be.)"
        )
    return tuple(stated)


def warnings(result: "EpsilonStarResult", *, clipped: bool) -> tuple[str, ...]:
    """Problems of this very run: error rates that were ``clipped``, since no threshold has rates
    within the range of the result, a rejected normal fit, and a value that lies far in the tail.
    """
    texts: list[str] = []
    if clipped:
        texts.append(
            f"No threshold has both error rates between {result.rate_range[0]:.3g} and one minus "
            "that: rates were clipped to that range, and the value shows the range, not the losses."
        )
    if result.method == "empirical":
        return tuple(texts)
    for name, fit in (("training", result.fit_train), ("population", result.fit_population)):
        if fit is not None and fit.rejected:
            texts.append(
                f"The normal fit of the {name} losses is rejected (Kolmogorov-Smirnov distance "
                f"{fit.ks_distance:.3f}, p = {fit.ks_p_value:.2g}): the value may be far too high "
                "or too low."
            )
    fpr, fnr = result.false_positive_rate, result.false_negative_rate
    # Losses beyond the threshold, in the thinner tail of each set; the fewer of both counts.
    expected = min(result.n_population * min(fpr, 1 - fpr), result.n_train * min(fnr, 1 - fnr))
    if result.epsilon > 0 and not clipped and expected < _FEW:
        texts.append(
            f"The supremum lies in the tail, at FPR {fpr:.3g} and FNR {fnr:.3g}, where "
            f"{expected:.2g} losses are expected: the value is the normal's extrapolation."
        )
    return tuple(texts)
