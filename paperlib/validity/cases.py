"""Every bound of the library on mechanisms whose epsilon is known."""

from functools import partial
from typing import Any

import numpy as np
from scipy.special import ndtr

from paperlib.bounds import (
    ErrorCounts,
    audit_clopper_pearson,
    audit_f_dp,
    audit_gaussian_dp,
    audit_one_run,
    audit_output_set,
    audit_panoramia,
    audit_ranks,
    epsilon_star,
    epsilon_star_from_rates,
    epsilon_star_normals,
)
from paperlib.bounds.many_runs.bayesian import posterior_cdf
from paperlib.bounds.output_sets.choices import METHODS, Method
from paperlib.core import FloatArray
from paperlib.validity import mechanisms as known
from paperlib.validity.coverage import Case, ValidityConfig, against
from paperlib.validity.mechanisms import Mechanism


def our_cases(config: ValidityConfig) -> list[Case]:
    """Every bound of the library."""
    groups = (_one_run, _f_dp, _panoramia, _ranks, _output_sets, _epsilon_star, _classical)
    return [case for group in groups for case in group(config)]


def _pure() -> list[Mechanism]:
    return [known.no_leakage(), known.randomized_response(1.0), known.laplace(1.0)]


def _approximate(config: ValidityConfig) -> list[Mechanism]:
    return [
        known.gaussian(1.0, config.delta),
        known.subsampled_gaussian(0.5, 2.0, config.delta),
        known.truth_teller(1.0, config.delta),
    ]


def _one_run(config: ValidityConfig) -> list[Case]:
    def case(mechanism: Mechanism, guess: Any, search: Any, share: float) -> Case:
        name = f"{'threshold fixed in advance' if search == 0.5 else search}, {guess}"
        options = {"delta": mechanism.delta, "confidence": config.confidence}
        audit = partial(audit_one_run, guess=guess, thresholds=search, **options)
        return against("one run", name, mechanism, audit, config.examples, share=share)

    fast: list[tuple[str, Any]] = [
        ("both", "dyadic"),
        ("both", "bonferroni"),
        ("both", "split"),
        ("both", 0.5),
        ("members", "dyadic"),
        ("grid", "bonferroni"),
    ]
    sides = ("both", "members")
    cases = [case(mechanism, guess, search, 1.0) for mechanism in _pure() for guess, search in fast]
    cases += [case(mechanism, guess, "anytime", 0.3) for mechanism in _pure() for guess in sides]
    cases += [case(mechanism, "both", "anytime", 0.3) for mechanism in _approximate(config)]
    slow: list[Any] = ["dyadic", "split", 0.5]
    # The truth teller alone: the others' epsilon is far above what a score of one bit can show.
    return cases + [case(_approximate(config)[2], "both", how, 0.3) for how in slow]


def _f_dp(config: ValidityConfig) -> list[Case]:
    def case(mechanism: Mechanism, family: Any, delta: float) -> Case:
        audit = partial(audit_f_dp, delta=delta, confidence=config.confidence, family=family)
        name = f"{family} curve, dyadic"
        return against("f-DP in one run", name, mechanism, audit, config.examples, share=0.25)

    gaussian, _, truth = _approximate(config)
    return [
        case(gaussian, "gaussian", config.delta),
        case(known.no_leakage(), "gaussian", config.delta),
        case(known.laplace(1.0), "laplace", config.delta),
        case(truth, "approximate", config.delta),
    ]


def _panoramia(config: ValidityConfig) -> list[Case]:
    ln_2 = float(np.log(2))

    def case(c: float, epsilon: float, search: str, share: float, gamma: float = 0.0) -> Case:
        options: dict[str, Any] = {"search": search, "gamma": gamma, "confidence": config.confidence}

        def trial(rng: np.random.Generator) -> tuple[float, bool]:
            game = known.close_generator(rng, config.examples, c, epsilon, gamma)
            result = audit_panoramia(*game, **options)
            wrong = result.c_lb > c or result.c_plus_epsilon_lb > c + epsilon
            return result.c_plus_epsilon_lb, wrong

        name = f"c and c + ε together, {search}" + (", γ relaxed" if gamma else "")
        mechanism = f"{'ln 2' if c else '0'}-close generator, ε = {epsilon:g}"
        mechanism += f", γ = {gamma:g}" if gamma else ""
        return Case("PANORAMIA", name, mechanism, c + epsilon, 0.0, trial, share)

    cases = [
        case(c, epsilon, search, share)
        for c, epsilon in ((0.0, 0.0), (ln_2, 1.0))
        for search, share in (("union", 1.0), ("anytime", 0.3))
    ]
    return [*cases, case(ln_2, 1.0, "anytime", 0.3, gamma=2e-4)]


def _ranks(config: ValidityConfig) -> list[Case]:
    def case(
        epsilon: float, size: int, top: int, share: float, informed: float = 1.0, **options: Any
    ) -> Case:
        searched = informed < 1

        def trial(rng: np.random.Generator) -> tuple[float, bool]:
            ranks, margins = known.ranked_sets(rng, config.examples, size, top, epsilon, informed)
            more: dict[str, Any] = {**options, "margins": margins} if searched else options
            found = audit_ranks(ranks, size, top=top, confidence=config.confidence, **more)
            return found.epsilon, found.epsilon > epsilon

        words = "".join(f", {value}" for key, value in options.items() if key != "delta")
        name = f"top {top} of {size}{words}" + (", anytime over sets" if searched else "")
        mechanism = f"{'subset selection' if top > 1 else 'k-valued response'}, ε = {epsilon:g}"
        return Case("ranks", name, mechanism, epsilon, options.get("delta", 0.0), trial, share)

    relaxed = {"delta": config.delta}
    return [
        case(0.0, 8, 1, 1.0),
        case(1.0, 8, 1, 1.0),
        case(1.0, 64, 8, 1.0, bound="tight"),
        case(1.0, 64, 8, 1.0, bound="paper"),
        case(1.0, 8, 1, 0.5, informed=0.5),
        case(1.0, 8, 1, 0.5, delta_term="published", **relaxed),
        case(1.0, 8, 1, 0.5, delta_term="sharp", **relaxed),
    ]


def _output_sets(config: ValidityConfig) -> list[Case]:
    def case(mechanism: Mechanism, method: Method, share: float) -> Case:
        def trial(rng: np.random.Generator) -> tuple[float, bool]:
            chosen, tested = (mechanism.draw(rng, config.examples) for _ in range(2))
            found = audit_output_set(
                chosen, tested, method=method, delta=mechanism.delta, confidence=config.confidence
            )
            return found.epsilon, found.epsilon > mechanism.epsilon

        return Case(
            "output sets", f"{method} set", mechanism.name, mechanism.epsilon, mechanism.delta, trial, share
        )

    cases = [case(mechanism, method, 0.5) for mechanism in _pure() for method in METHODS]
    return [*cases, case(_approximate(config)[2], "optimal", 0.15)]


def _epsilon_star(config: ValidityConfig) -> list[Case]:
    def case(gap: float, method: str, interval: str, share: float, valid: bool = True) -> Case:
        truth = _star_truth(gap, method, config.delta)
        options: dict[str, Any] = {"method": method, "interval_method": interval}
        if method == "parametric":
            options["transform"] = "none"

        def trial(rng: np.random.Generator) -> tuple[float, bool]:
            losses = rng.normal(size=config.examples), gap + rng.normal(size=config.examples)
            found = epsilon_star(*losses, delta=config.delta, confidence=config.confidence, **options)
            low, high = found.interval or (0.0, 0.0)
            return low, not low - 1e-9 <= truth <= high + 1e-9

        name = f"{method}, {interval} interval (two-sided)"
        mechanism = f"normal losses {gap:g} apart"
        return Case("Epsilon*", name, mechanism, truth, config.delta, trial, share, valid)

    return [
        *(case(gap, "empirical", "band", 1.0) for gap in (0.0, 1.0)),
        *(case(gap, "parametric", "region", 0.25) for gap in (0.0, 1.0)),
        case(0.5, "parametric", "delta", 1.0, valid=False),
    ]


def _star_truth(gap: float, method: str, delta: float) -> float:
    """The value of the true distributions; the empirical version clips rates to [0.001, 0.999]."""
    if method == "parametric":
        return float(epsilon_star_normals(0, 1, gap, 1, delta=delta))
    x = np.linspace(-12.0, 12.0 + gap, 100_001)
    rates: list[FloatArray] = [np.clip(rate, 0.001, 0.999) for rate in (ndtr(x - gap), ndtr(-x))]
    return float(epsilon_star_from_rates(*rates, delta=delta).max())


def _classical(config: ValidityConfig) -> list[Case]:
    m = config.examples
    clopper = partial(audit_clopper_pearson, confidence=config.confidence)
    gaussian = partial(audit_gaussian_dp, delta=config.delta, confidence=config.confidence)
    places = (("threshold fixed in advance", 0.5), ("split", None))
    cases = [
        against("many runs", f"Clopper-Pearson, {name}", mechanism, partial(clopper, threshold=threshold), m)
        for mechanism in _pure()
        for name, threshold in places
    ]
    cases += [
        against("many runs", f"Gaussian DP, {name}", mechanism, partial(gaussian, threshold=threshold), m)
        for mechanism in (known.gaussian(0.0, config.delta), known.gaussian(1.0, config.delta))
        for name, threshold in places
    ]
    return cases + [_bayesian(config, epsilon) for epsilon in (0.0, 1.0)]


def _bayesian(config: ValidityConfig, epsilon: float) -> Case:
    mechanism = known.randomized_response(epsilon) if epsilon else known.no_leakage()

    def trial(rng: np.random.Generator) -> tuple[float, bool]:
        counts = ErrorCounts.from_scores(mechanism.draw(rng, config.examples), 0.5)
        # The quantile exceeds the truth exactly when the posterior puts too little mass below it.
        return float("nan"), posterior_cdf(epsilon, counts) < 1 - config.confidence

    name = "Bayesian quantile (credible, not confidence)"
    return Case("many runs", name, mechanism.name, epsilon, 0.0, trial, share=2.0, valid=False)
