"""Whether audits show as many exposed records as their limit of detection says."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from paperlib.bounds import audit_ranks, limit_of_detection, one_run_epsilon
from paperlib.bounds.one_run.combine import limit_of_runs, search_runs
from paperlib.bounds.one_run.search import Hypothesis
from paperlib.bounds.ranks.detection import rank_limit_of_detection
from paperlib.core import MembershipScores
from paperlib.core.options import Guess
from paperlib.reproduction.validity.coverage import Case, ValidityConfig, simulate
from paperlib.reproduction.validity.mechanisms import fair_bits
from paperlib.reproduction.validity.one_run_cases import searched_epsilon

Audit = Callable[[np.random.Generator, int], float]
"""The bound of a fresh audit in which so many records are exposed."""

STATED = 0.8  # share of audits that should show a leak
_SIZE = 8  # candidates of a set
_RUNS = 4  # that the records of one audit are dealt to
_PRICE = 0.1  # share of delta for ranks


def detection_misses(config: ValidityConfig) -> pd.DataFrame:
    """Rates of audits that show no leak where the limit says that 80 % do; columns as in
    `simulate`.
    """
    # The cases have the confidence of ``config``; their rates are compared with 1 - 80 %.
    return simulate(detection_cases(config), replace(config, confidence=STATED))


def detection_cases(config: ValidityConfig) -> Iterator[Case]:
    """Fresh audits of as many exposed records as the limit says: of one run with two rules of
    guessing, of ranks, and of several runs; and of a limit that forgets the looks, the twin.
    """
    yield from _one_run_cases(config)
    yield from _rank_cases(config)
    yield from _runs_case(config)


def _simulations(config: ValidityConfig) -> int:
    """Audits that a limit simulates for each number of exposed records."""
    # An estimate from few audits is off by a few percent itself.
    return int(np.clip(config.trials, 20, 400))


def _options_of_limits(config: ValidityConfig) -> dict[str, Any]:
    """Options that the limits of one run and of ranks share."""
    return {
        "confidence": config.confidence,
        "simulations": _simulations(config),
        "seed": config.seed,
    }


def _one_run_cases(config: ValidityConfig) -> Iterator[Case]:
    """Audits of one run, by guesses at both ends and of members alone; and the twin, whose limit is
    that of a number of guesses fixed in advance, though the audit looks for the best one.
    """
    m, confidence = config.examples, config.confidence

    def one_run(guess: Guess) -> Audit:
        """The audit of one run by these guesses: a bound in nats from a generator and a number of
        exposed records.
        """

        def audit(rng: np.random.Generator, exposed: int) -> float:
            scores = _exposed(rng, m, exposed)
            return searched_epsilon(scores, confidence=confidence, guess=guess)

        return audit

    no_leak = _exposed(np.random.default_rng(config.seed), m, 0)
    guesses: tuple[Guess, ...] = ("adaptive", "members")
    for guess in guesses:
        limit = limit_of_detection(no_leak, guess=guess, **_options_of_limits(config))
        yield from _case(f"one run, {guess}", limit.records, one_run(guess))
    # The twin's limit: so many guesses, all right, of a number fixed in advance show a leak.
    counts = np.arange(1, m + 1)
    shows_leak = one_run_epsilon(counts, counts, confidence=confidence) > 0
    fewest = 1 + int(np.argmax(shows_leak))
    yield from _case(
        "one run, adaptive, looks forgotten (twin)", fewest, one_run("adaptive"), valid=False
    )


def _rank_cases(config: ValidityConfig) -> Iterator[Case]:
    """Audits of ranks: of every set, and at a delta of the sets with the largest margins."""
    m = config.examples

    def ranks(rng: np.random.Generator, exposed: int, delta: float | None = None) -> float:
        """The bound on ranks, nats, where so many sets are exposed; with a delta their margins are
        searched.
        """
        is_exposed = np.arange(m) < exposed
        ranks_of_records = np.where(is_exposed, 1, rng.integers(1, _SIZE + 1, m))
        margins = None if delta is None else rng.random(m) + is_exposed
        return audit_ranks(
            ranks_of_records,
            _SIZE,
            margins=margins,
            delta=delta or 0.0,
            confidence=config.confidence,
        ).epsilon

    sizes = [_SIZE] * m
    options = _options_of_limits(config)
    limit = rank_limit_of_detection(sizes, **options)
    yield from _case("ranks, every set", limit.records, ranks)
    delta = _PRICE * config.delta
    limit = rank_limit_of_detection(sizes, margins=np.zeros(m), delta=delta, **options)
    searched = partial(ranks, delta=delta)
    yield from _case("ranks, anytime over sets at δ", limit.records, searched)


def _runs_case(config: ValidityConfig) -> Iterator[Case]:
    """An audit of several runs together, to which the records of one are dealt."""
    hypothesis = Hypothesis(0.0, 1 - config.confidence)

    def runs(rng: np.random.Generator, exposed: int) -> list[MembershipScores]:
        """Scores of `_RUNS` runs of about equal size, with so many exposed records in all."""
        values, labels = _exposed(rng, config.examples, exposed).pooled()
        rows_of_runs = np.array_split(rng.permutation(config.examples), _RUNS)
        return [MembershipScores.from_labels(values[rows], labels[rows]) for rows in rows_of_runs]

    def bound_of_runs(rng: np.random.Generator, exposed: int) -> float:
        return search_runs(runs(rng, exposed), None, hypothesis).epsilon

    no_leak = runs(np.random.default_rng(config.seed), 0)
    limit = limit_of_runs(no_leak, None, hypothesis, "adaptive", simulations=_simulations(config))
    yield from _case("several runs, merged", limit.records, bound_of_runs)


def _case(name: str, records: int | None, audit: Audit, *, valid: bool = True) -> Iterator[Case]:
    """A case where an audit of so many exposed records that shows no leak is wrong; none where no
    number of records is enough (None).
    """

    def trial(rng: np.random.Generator) -> tuple[float, bool]:
        """The bound of one audit, nats, and whether it fails to show the leak."""
        bound = audit(rng, records or 0)
        return bound, bound <= 0

    if records is not None:
        mechanism = f"{records} exposed records"
        yield Case(
            family="limit of detection",
            bound=name,
            mechanism=mechanism,
            epsilon=float("nan"),  # no bound is compared with a true one
            delta=0.0,
            trial=trial,
            valid=valid,
        )


def _exposed(rng: np.random.Generator, m: int, count: int) -> MembershipScores:
    """Scores of ``m`` records that tell nothing, but of ``count`` members that stand above all
    others.
    """
    bits = fair_bits(rng, m)
    values = rng.normal(size=m)
    bits[:count] = 1
    values[:count] += 100  # far above any normal score
    return MembershipScores.from_labels(values, bits)
