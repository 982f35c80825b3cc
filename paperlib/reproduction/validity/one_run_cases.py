"""Every one-run bound on mechanisms whose epsilon is known, and the twins that must fail."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from inspect import signature
from typing import Any

import numpy as np

from paperlib.bounds import audit_f_dp, audit_one_run, one_run_epsilon
from paperlib.bounds.one_run.adaptive import Bettor, Flags, Proposal, ends_of, reveal
from paperlib.bounds.one_run.anytime import AnytimeCounts
from paperlib.bounds.one_run.combine import search_runs
from paperlib.bounds.one_run.f_dp import f_dp_parameter
from paperlib.bounds.one_run.search import Hypothesis, search_thresholds
from paperlib.core import FloatArray, MembershipScores
from paperlib.core.options import Guess, Search
from paperlib.reproduction.validity import mechanisms as known
from paperlib.reproduction.validity.coverage import (
    DEFAULT_SHARE,
    TWIN,
    Case,
    ValidityConfig,
    against,
    case_of,
)
from paperlib.reproduction.validity.mechanisms import (
    Burst,
    Mechanism,
    binomial_law,
    first_refuting,
    right_counts,
    strongest_burst,
    with_bursts,
)

BLIND = "blind to δ (twin)"
PUBLISHED = 0.3  # share of delta for the published term, which refutes nothing at all of it
CHEAP = 20.0  # share of trials where an audit is a look into a table
DEFAULT_GUESS: Guess = signature(audit_one_run).parameters["guess"].default


def pure() -> list[Mechanism]:
    """Mechanisms of pure differential privacy on which the best bounds are tight or nearly so."""
    return [known.no_leakage(), known.randomized_response(1.0), known.laplace(1.0)]


def searched_epsilon(
    scores: MembershipScores,
    *,
    delta: float = 0.0,
    confidence: float = 0.95,
    guess: Guess = DEFAULT_GUESS,
    thresholds: Search | float | None = None,
) -> float:
    """The bound of `audit_one_run` alone, nats, without the curve that takes most of its time; the
    options are those of that audit.
    """
    hypothesis = Hypothesis(delta, 1 - confidence)
    return search_thresholds(scores, guess, thresholds, hypothesis, seed=0).epsilon


def one_run_cases(config: ValidityConfig) -> list[Case]:
    """Every bound of one run, and the twins: searches at delta 0, then delta with its bursts, f-DP,
    and several runs.
    """
    peeking = [_peeking_case(config, mechanism) for mechanism in pure()[:2]]
    # The Gaussian's epsilon at delta sits in tails that no audit of this size sees.
    gaussian = _case(config, "default", known.gaussian(1.0, config.delta))
    delta = (*_bursts(config), *_fixed_counts(config))
    return [*_searches(config), *peeking, gaussian, *delta, *_f_dp(config), *_several_runs(config)]


def _case(
    config: ValidityConfig, name: str, mechanism: Mechanism, share: float = 1.0, **options: Any
) -> Case:
    """One run against a mechanism, at its delta; ``options`` are those of `searched_epsilon`."""
    audit = partial(
        searched_epsilon, delta=mechanism.delta, confidence=config.confidence, **options
    )
    return against("one run", name, mechanism, audit, config.examples, share=share)


def _searches(config: ValidityConfig) -> Iterator[Case]:
    """Every search at delta 0, on mechanisms on which it is nearly tight."""
    for mechanism in (*pure(), known.sparing_response(1.0, 0.5)):
        yield _case(config, "default", mechanism, DEFAULT_SHARE)
    for mechanism in pure()[:2]:
        for guess in ("both", "members", "nonmembers"):
            yield _case(config, f"anytime, {guess}", mechanism, guess=guess, thresholds="anytime")
    for mechanism in pure():
        for search in ("dyadic", "bonferroni", "split"):
            yield _case(config, f"{search}, both", mechanism, guess="both", thresholds=search)
        yield _case(
            config, "threshold fixed in advance, both", mechanism, guess="both", thresholds=0.5
        )
        yield _case(config, "bonferroni, grid", mechanism, guess="grid")


def _bursts(config: ValidityConfig) -> Iterator[Case]:
    """The default search at delta against the bursts that harm it most and those that harm its twin
    most, which is blind to delta: it computes a bound at delta 0.
    """
    m, family = config.examples, "delta in one run"
    blind = partial(searched_epsilon, confidence=config.confidence)
    aware = partial(blind, delta=config.delta)
    options = {"pilots": min(30, config.trials), "seed": config.seed}  # of the choice of bursts
    bursts = (strongest_burst(audit, config.m_delta, m, **options) for audit in (blind, aware))
    against_blind, against_aware = (burst.mechanism(m) for burst in bursts)
    yield against(family, "default", against_blind, aware, m)
    yield against(family, "default", against_aware, aware, m, share=DEFAULT_SHARE)
    # Many trials, since its rate is just above the nominal level.
    yield against(family, f"default, {BLIND}", against_blind, blind, m, share=4.0, valid=False)


def _count_case(
    family: str, bound: str, m: int, m_delta: float, bounds: FloatArray, **fields: Any
) -> Case:
    """A case whose bound is looked up by the number of right answers, at an epsilon of 1, under the
    burst that is worst for it: ``bounds`` has the bound at each number, nats, shape (guesses + 1,).
    """
    epsilon = 1.0
    guesses = bounds.size - 1
    # The worst burst has just as many right answers as make the bound wrong.
    right = max(1, first_refuting(bounds, epsilon))
    burst = Burst(epsilon, m_delta, guesses, right)
    law = with_bursts(right_counts(epsilon, guesses), right, burst.chance)
    mechanism = burst.mechanism(m).name
    return table_case(family, bound, mechanism, law, bounds, epsilon, m_delta / m, **fields)


def table_case(
    family: str,
    bound: str,
    mechanism: str,
    law: FloatArray,
    bounds: FloatArray,
    epsilon: float,
    delta: float,
    **fields: Any,
) -> Case:
    """A case whose bound is looked up by a count whose law is given.

    ``law`` holds weights of the counts, which are scaled to sum to 1, and ``bounds`` the bound at
    each count, nats; both of shape (counts,). ``fields`` are further ones of `Case`.
    """
    chances = law / law.sum()

    def look_up(rng: np.random.Generator) -> float:
        return bounds[rng.choice(law.size, p=chances)]

    options = {"share": CHEAP, **fields}
    return case_of(family, bound, mechanism, epsilon, look_up, delta, **options)


def _fixed_counts(config: ValidityConfig) -> Iterator[Case]:
    """The bounds with the sharp and with the published term of delta, and a twin that takes delta
    as 0 and is wrong: half of the examples are guessed, a number fixed in advance, by the mechanism
    on which each bound is wrong most often (`_count_case`).

    ``config.m_delta`` is delta times the number of examples; `PUBLISHED` is the share of it that
    the published term is tried at.
    """
    m = config.examples
    guesses = m // 2
    audit = partial(
        one_run_epsilon, np.arange(guesses + 1), guesses, total=m, confidence=config.confidence
    )
    case = partial(_count_case, "delta in one run")
    bounds = audit(delta=config.delta, delta_term="sharp")
    yield case("fixed count, sharp", m, config.m_delta, bounds)
    bounds = audit(delta=PUBLISHED * config.delta)
    yield case("fixed count, published", m, PUBLISHED * config.m_delta, bounds)
    yield case(f"fixed count, {BLIND}", m, config.m_delta, audit(), valid=False)


def _f_dp(config: ValidityConfig) -> Iterator[Case]:
    """Bounds of a trade-off curve, searched and with a count fixed in advance."""
    m, confidence = config.examples, config.confidence
    gaussian = known.gaussian(1.0, config.delta)
    # The adaptive order has a table of levels of its own (`claimed_levels`).
    audit = partial(audit_f_dp, delta=config.delta, confidence=confidence, guess="both")
    family = "f-DP in one run"
    yield against(family, "counts fixed in advance", gaussian, audit, m)
    yield against(
        family, "counts fixed in advance", known.no_leakage(), audit, m, share=DEFAULT_SHARE
    )
    audit = partial(f_dp_parameter, total=m, confidence=confidence)
    # Above the middle "member" is guessed, and "non-member" below: right where noise of scale 1 is
    # less than 1/2 in the wrong direction, with the largest chance that the curve allows.
    bounds = audit(np.arange(m + 1), np.full(m + 1, m), family="laplace")
    law = binomial_law(m, 1 - math.exp(-1 / 2) / 2)
    name = "laplace curve, threshold fixed in advance"
    yield table_case(family, name, known.laplace(1.0).name, law, bounds, 1.0, 0.0)
    guesses = m // 5
    audit = partial(
        audit, np.arange(guesses + 1), np.full(guesses + 1, guesses), family="approximate"
    )
    name = "approximate curve, fixed count"
    yield _count_case(family, name, m, config.m_delta, audit(delta=config.delta))
    name = f"approximate curve, {BLIND}"
    yield _count_case(family, name, m, config.m_delta, audit(delta=0.0), valid=False)


def _several_runs(config: ValidityConfig) -> Iterator[Case]:
    """Four runs of a quarter of the examples each, merged or one after another."""
    m, family, confidence = config.examples, "several runs", config.confidence

    def dealt(scores: MembershipScores) -> list[MembershipScores]:
        """The scores in four runs, a random half of a half each."""
        first, second = scores.split(0.5, seed=0)
        return [*first.split(0.5, seed=1), *second.split(0.5, seed=1)]

    def audit(scores: MembershipScores, planned: int | None = None, delta: float = 0.0) -> float:
        """The combined bound, nats, of scores dealt to four runs; with ``planned`` examples one
        after another.
        """
        return search_runs(dealt(scores), planned, Hypothesis(delta, 1 - confidence)).epsilon

    in_turn = partial(audit, planned=m)
    for mechanism in pure():
        yield against(family, "default", mechanism, audit, m)
        yield against(family, "run after run", mechanism, in_turn, m, share=0.5)
    burst = Burst(0.0, 2 * config.m_delta, m // 6, m // 6).mechanism(m)
    yield against(family, "default", burst, partial(audit, delta=burst.delta), m)
    yield against(family, "run after run", burst, partial(in_turn, delta=burst.delta), m, share=0.5)
    yield against(family, f"default, {BLIND}", burst, audit, m, **TWIN)
    answers = known.randomized_response(1.0)
    alone = partial(searched_epsilon, confidence=confidence, guess="both")

    def best_of_eight(rng: np.random.Generator) -> float:
        return max(alone(answers.draw(rng, m)) for _ in range(8))

    name = "best of eight runs, each at the whole error (twin)"
    yield case_of(family, name, answers.name, answers.epsilon, best_of_eight, **TWIN)


def _peeking_case(config: ValidityConfig, mechanism: Mechanism) -> Case:
    """The twin of the default order that knows half of the coins it bets on."""

    def peeked(rng: np.random.Generator) -> float:
        scores = mechanism.draw(rng, config.examples)
        return peeking_epsilon(scores, confidence=config.confidence, share=0.5, rng=rng)

    name = "default, 50% of the coins looked at first (twin)"
    return case_of("one run", name, mechanism.name, mechanism.epsilon, peeked, **TWIN)


@dataclass(frozen=True, eq=False)
class _PeekingBettor:
    """A bettor that looks one coin ahead: where it peeks, it guesses what the coin shows."""

    bettor: Bettor
    members: Flags  # True for members, shape (m,)
    peeks: Flags  # True where the coin is known before the bet, shape (m,)

    def next_size(self, revealed: Flags) -> int:
        """Unrevealed examples of the bettor's next tied block, 0 if none is left; ``revealed`` has
        a flag for each example, shape (m,).
        """
        return self.bettor.next_size(revealed)

    def propose(self, count: int, revealed: Flags) -> Proposal:
        """The bettor's next guesses, about at most ``count`` unrevealed examples, but right
        wherever it peeks.
        """
        offer = self.bettor.propose(count, revealed)
        is_known = self.peeks[offer.examples]
        answers = self.members[offer.examples]
        return replace(offer, as_member=np.where(is_known, answers, offer.as_member))


def peeking_epsilon(
    scores: MembershipScores, *, confidence: float, share: float, rng: np.random.Generator
) -> float:
    """The default bound of `audit_one_run` at delta 0, nats, if a ``share`` of the guesses, 0 to 1,
    is known: a broken audit, whose bound is too high.
    """
    values, labels = scores.oriented().pooled()
    members = labels == 1
    peeks = rng.random(values.size) < share
    bets = reveal([_PeekingBettor(end, members, peeks) for end in ends_of(values)], members)
    if not bets.stop.any():  # no guess after which the audit may look
        return 0.0
    guesses = np.arange(1, bets.right.size + 1)
    right = np.cumsum(bets.right, dtype=np.int64)
    counts = AnytimeCounts(1 - confidence, most=values.size)
    epsilon, *_ = counts.best(right[bets.stop], guesses[bets.stop])
    return epsilon
