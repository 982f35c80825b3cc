"""Every bound of the library on mechanisms whose epsilon is known."""

from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtr

from paperlib.bounds import (
    ErrorCounts,
    audit_clopper_pearson,
    audit_gaussian_dp,
    audit_output_set,
    audit_panoramia,
    audit_ranks,
    epsilon_star,
    epsilon_star_from_rates,
    epsilon_star_normals,
    fit_output_set,
    one_run_epsilon,
)
from paperlib.bounds.many_runs.bayesian import posterior_cdf
from paperlib.bounds.output_sets.audit import OutputSetResult
from paperlib.bounds.output_sets.choices import METHODS, Method, SelectionRule
from paperlib.bounds.output_sets.level_sets import count_guesses
from paperlib.bounds.ranks.audit import RankAuditResult
from paperlib.bounds.ranks.p_values import rank_success_probability
from paperlib.core import MembershipScores
from paperlib.reproduction.validity import mechanisms as known
from paperlib.reproduction.validity.coverage import (
    DEFAULT_SHARE,
    TWIN,
    Case,
    ValidityConfig,
    against,
    case_of,
    simulate,
)
from paperlib.reproduction.validity.mechanisms import (
    Burst,
    Mechanism,
    binomial_law,
    burst_chance,
    first_refuting,
    with_bursts,
)
from paperlib.reproduction.validity.one_run_cases import (
    BLIND,
    PUBLISHED,
    one_run_cases,
    pure,
    table_case,
)


def coverage(config: ValidityConfig) -> pd.DataFrame:
    """Rates of wrong bounds, every bound of the library; columns as in `simulate`."""
    return simulate(our_cases(config), config)


def our_cases(config: ValidityConfig) -> list[Case]:
    """Every bound of the library, and the twins that must fail."""
    groups = (one_run_cases, _panoramia, _ranks, _output_sets, _epsilon_star, _classical)
    return [case for group in groups for case in group(config)]


def _panoramia(config: ValidityConfig) -> list[Case]:
    """PANORAMIA's two bounds, c of the generator and c + ε of the attack, wrong where either is."""
    ln_2 = float(np.log(2))

    def case(c: float, epsilon: float, search: str, share: float, gamma: float = 0.0) -> Case:
        """The case of one generator, ``c``-close but for a mass ``gamma``, and one target of
        ``epsilon``, nats; ``share`` is of the runs that it gets, in (0, 1].
        """
        options: dict[str, Any] = {
            "search": search,
            "gamma": gamma,
            "confidence": config.confidence,
        }
        m = config.examples
        if search == "union":  # which needs more to show much
            m *= 16

        def trial(rng: np.random.Generator) -> tuple[float, bool]:
            """The bound of one game, nats, and whether it or that of the generator is above the
            truth.
            """
            game = known.close_generator(rng, m, c, epsilon, gamma)
            result = audit_panoramia(*game, **options)
            is_wrong = result.c_lb > c or result.c_plus_epsilon_lb > c + epsilon
            return result.c_plus_epsilon_lb, is_wrong

        name = f"c and c + ε, {'default' if search == 'union' else search}"
        mechanism = f"{'ln 2' if c else '0'}-close generator, ε = {epsilon:g}"
        if gamma:
            name += ", γ relaxed"
            mechanism += f", γ = {gamma:.2g}"
        return Case("PANORAMIA", name, mechanism, c + epsilon, 0.0, trial, share)

    cases = [
        case(c, epsilon, search, share)
        for c, epsilon in ((0.0, 0.0), (ln_2, 1.0))
        for search, share in (("union", DEFAULT_SHARE), ("anytime", 1.0))
    ]
    return [*cases, case(ln_2, 1.0, "anytime", 1.0, gamma=config.delta), *_known_c(config)]


def _known_c(config: ValidityConfig) -> Iterator[Case]:
    """A perfect generator, and a model that shows who is a member in bursts."""
    m = config.examples
    mechanism = Burst(0.0, 2 * config.m_delta, m // 6, m // 6).mechanism(m)

    def audit(scores: MembershipScores, delta: float) -> float:
        """The bound on epsilon, nats, of scores where c is known to be 0."""
        values, bits = scores.oriented().pooled()
        options: dict[str, Any] = {
            "known_c": 0.0,
            "search": "anytime",
            "confidence": config.confidence,
        }
        baseline = np.zeros(m)  # of a perfect generator nothing can be told
        return audit_panoramia(baseline, values, bits, delta=delta, **options).c_plus_epsilon_lb

    aware = partial(audit, delta=mechanism.delta)
    blind = partial(audit, delta=0.0)
    yield against("PANORAMIA", "known c, anytime", mechanism, aware, m)
    yield against("PANORAMIA", f"known c, anytime, {BLIND}", mechanism, blind, m, **TWIN)


def _ranks(config: ValidityConfig) -> list[Case]:
    """The bound on ranks of sets: every set at once, and searched over sets."""

    def case(
        size: int, top: int, epsilon: float, share: float, informed: float = 1.0, **options: Any
    ) -> Case:
        """Sets of ``size``, of which ``top`` ranks count; where only a share of them is
        ``informed``, their margins are searched.
        """
        searched = informed < 1

        def audit(rng: np.random.Generator) -> RankAuditResult:
            """The bound on ranks of sets drawn anew from a mechanism of this epsilon."""
            ranks, margins = known.ranked_sets(rng, config.examples, size, top, epsilon, informed)
            arguments = {**options, "top": top, "confidence": config.confidence}
            if searched:
                arguments["margins"] = margins
            return audit_ranks(ranks, size, **arguments)

        words = list(map(str, options.values()))
        if searched:
            words.append("anytime over sets")
        name = ", ".join([f"top {top} of {size}", *(words or ["default"])])
        mechanism = f"{'subset selection' if top > 1 else 'k-valued response'}, ε = {epsilon:g}"
        return case_of("ranks", name, mechanism, epsilon, audit, share=share)

    return [
        case(8, 1, 0.0, DEFAULT_SHARE),
        case(8, 1, 1.0, DEFAULT_SHARE),
        case(64, 8, 1.0, DEFAULT_SHARE),
        case(64, 8, 1.0, 1.0, bound="paper"),
        case(8, 1, 1.0, 1.0, informed=0.5),
        *_rank_bursts(config),
        *_searched_bursts(config),
    ]


def _rank_bursts(config: ValidityConfig) -> Iterator[Case]:
    """k-valued response with bursts of hits, at the worst burst for each delta term and for the
    twin.
    """
    m, size, epsilon = config.examples, 8, 1.0
    law = binomial_law(m, float(rank_success_probability(size, epsilon)))
    # Ranks of m sets for each number of hits: the first rank or, missed, the last.
    ranks_by_hits = [np.where(np.arange(m) < hits, 1, size) for hits in range(m + 1)]
    for name, m_delta, delta_term in (
        ("sharp", config.m_delta, "sharp"),
        ("published", PUBLISHED * config.m_delta, "published"),
        (BLIND, config.m_delta, None),
    ):
        delta = m_delta / m
        options: dict[str, Any] = {"confidence": config.confidence}
        if delta_term is not None:
            options |= {"delta": delta, "delta_term": delta_term}
        bounds = np.array([audit_ranks(ranks, size, **options).epsilon for ranks in ranks_by_hits])
        # The worst burst has just as many hits as make the bound wrong.
        hits = max(1, first_refuting(bounds, epsilon))
        law_of_hits = with_bursts(law, hits, burst_chance(law, hits, m_delta))
        mechanism = f"bursts of {hits} in {m} sets, else ε = {epsilon:g}"
        title = f"top 1 of {size}, {name}"
        valid = delta_term is not None
        yield table_case(
            "ranks", title, mechanism, law_of_hits, bounds, epsilon, delta, valid=valid
        )


def _searched_bursts(config: ValidityConfig) -> Iterator[Case]:
    """A few random sets are told in bursts and have the largest margins; the others show
    nothing.
    """
    m, m_delta = config.examples, config.m_delta
    size = 8  # candidates of a set
    sets = 6  # that a burst tells
    chance = burst_chance(binomial_law(sets, 1 / size), sets, m_delta)
    mechanism = f"bursts of {sets} in {sets} sets, else ε = 0"

    def audit(rng: np.random.Generator, delta: float) -> RankAuditResult:
        """The bound of a draw in which the sets with the largest margins are told, or not, all
        together.
        """
        revealed = (np.arange(m) < sets) & (rng.random() < chance)
        ranks = np.where(revealed, 1, rng.integers(1, size + 1, m))
        options: dict[str, Any] = {"delta": delta, "confidence": config.confidence}
        return audit_ranks(ranks, size, margins=np.arange(m, 0, -1.0), **options)

    for name, delta in (("at δ", m_delta / m), (BLIND, 0.0)):
        name = f"top 1 of {size}, anytime over sets{' ' if delta else ', '}{name}"
        aimed = partial(audit, delta=delta)
        yield case_of("ranks", name, mechanism, 0.0, aimed, m_delta / m, valid=delta > 0)


def _output_sets(config: ValidityConfig) -> list[Case]:
    """Output sets chosen on one draw of a mechanism and tested on another, by every method; and a
    twin that must fail, as it counts its guesses on the scores that its set was chosen on.
    """
    m, family = config.examples, "output sets"

    def case(mechanism: Mechanism, method: Method, share: float) -> Case:
        """The case of an output set chosen by a method on one draw of the mechanism and tested on
        another.
        """

        def audit(rng: np.random.Generator) -> OutputSetResult:
            """The bound of a set chosen on one draw and tested on another."""
            chosen, tested = (mechanism.draw(rng, m) for _ in range(2))
            return audit_output_set(chosen, tested, method=method, confidence=config.confidence)

        name = "default" if method == "optimal" else f"{method} set"
        return case_of(family, name, mechanism.name, mechanism.epsilon, audit, share=share)

    def twin(scores: MembershipScores) -> float:
        """The bound in nats of a set tested on the scores that it was chosen on, which is too
        high.
        """
        rule = SelectionRule(error_divisor=1.0)
        output_set = fit_output_set(
            scores, total=len(scores), confidence=config.confidence, rule=rule
        )
        return float(
            one_run_epsilon(*count_guesses(output_set, scores), confidence=config.confidence)
        )

    answered = known.sparing_response(1.0, 0.5)
    others: list[Method] = [method for method in METHODS if method != "optimal"]
    return [
        *(case(mechanism, "optimal", DEFAULT_SHARE) for mechanism in (*pure(), answered)),
        *(case(mechanism, method, 1.0) for mechanism in pure()[:2] for method in others),
        against(family, "chosen on the tested scores (twin)", known.no_leakage(), twin, m, **TWIN),
    ]


def _epsilon_star(config: ValidityConfig) -> list[Case]:
    """Epsilon* of normal losses, whose truth is known: an interval is wrong where it misses the
    truth on either side. The delta-method interval runs as well, but no level is claimed for it.
    """

    def case(gap: float, method: str, interval: str, share: float, valid: bool = True) -> Case:
        """The case of a ``gap`` between members and others, in standard deviations, and a method
        with its interval; ``share`` is of the trials that it gets.
        """
        options: dict[str, Any] = {"method": method, "interval_method": interval}
        if method == "parametric":
            options["transform"] = "none"
            truth = float(epsilon_star_normals(0, 1, gap, 1, delta=config.delta))
        else:
            thresholds = np.linspace(-12.0, 12.0 + gap, 100_001)  # beyond which no rate changes
            rates = [ndtr(thresholds - gap), ndtr(-thresholds)]
            rates = np.clip(rates, 0.001, 0.999)  # as the estimate does
            truth = float(epsilon_star_from_rates(*rates, delta=config.delta).max())

        def trial(rng: np.random.Generator) -> tuple[float, bool]:
            """The lower end of one interval, nats, and whether the interval misses the truth."""
            m = config.examples
            losses = rng.normal(size=m), gap + rng.normal(size=m)  # of members, of others
            star = epsilon_star(
                *losses, delta=config.delta, confidence=config.confidence, **options
            )
            low, high = star.interval or (0.0, 0.0)
            return low, not low - 1e-9 <= truth <= high + 1e-9

        name = f"{method}, {interval} interval (two-sided)"
        mechanism = f"normal losses {gap:g} apart"
        return Case("Epsilon*", name, mechanism, truth, config.delta, trial, share, valid)

    return [
        *(case(gap, "empirical", "band", DEFAULT_SHARE) for gap in (0.0, 1.0)),
        case(0.0, "parametric", "region", 1.0),
        case(1.0, "parametric", "region", DEFAULT_SHARE),
        case(0.5, "parametric", "delta", 1.0, valid=False),
    ]


def _classical(config: ValidityConfig) -> list[Case]:
    """Bounds of one threshold, said beforehand or found on a half of the scores; and the Bayesian
    quantile.
    """
    clopper = partial(audit_clopper_pearson, confidence=config.confidence)
    gaussian = partial(audit_gaussian_dp, delta=config.delta, confidence=config.confidence)
    noisy = [known.gaussian(mu, config.delta) for mu in (0.0, 1.0)]
    audits = [("Clopper-Pearson", clopper, mechanism) for mechanism in pure()]
    audits += [("Gaussian DP", gaussian, mechanism) for mechanism in noisy]
    thresholds = {"threshold fixed in advance": 0.5, "split": None}
    cases: list[Case] = []
    for bound, audit, mechanism in audits:
        for name, threshold in thresholds.items():
            at_threshold = partial(audit, threshold=threshold)
            title = f"{bound}, {name}"
            cases.append(against("many runs", title, mechanism, at_threshold, config.examples))
    return cases + [_bayesian(config, epsilon) for epsilon in (0.0, 1.0)]


def _bayesian(config: ValidityConfig, epsilon: float) -> Case:
    """How often the posterior's quantile exceeds the truth, ``epsilon``; its value is not
    computed.
    """
    mechanism = known.randomized_response(epsilon) if epsilon else known.no_leakage()
    below = cache(partial(posterior_cdf, epsilon))

    def trial(rng: np.random.Generator) -> tuple[float, bool]:
        """The quantile of one audit, nats, and whether it is above the truth."""
        counts = ErrorCounts.from_scores(mechanism.draw(rng, config.examples), 0.5)
        # The quantile exceeds the truth exactly when the posterior puts too little mass below it.
        return float("nan"), below(counts) < 1 - config.confidence

    name = "Bayesian quantile (credible, not confidence)"
    return Case("many runs", name, mechanism.name, epsilon, 0.0, trial, valid=False)
