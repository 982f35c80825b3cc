"""How much each sound bound, design and plan of an audit shows: mean bounds over seeded audits."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from paperlib.bounds import (
    audit_f_dp,
    audit_one_run,
    audit_output_set,
    audit_panoramia,
    audit_ranks,
    plan_audit,
    ranks_from_scores,
    score_margins,
)
from paperlib.bounds.claims.f_dp import FdpResult
from paperlib.bounds.one_run.audit import OneRunResult
from paperlib.bounds.one_run.guesses import guess_path
from paperlib.bounds.one_run.tails import epsilon_from_counts
from paperlib.core import FloatArray, IntArray, MembershipScores
from paperlib.core.options import Guess
from paperlib.reproduction.validity.mechanisms import gaussian, of_bits
from paperlib.reproduction.validity.one_run_cases import searched_epsilon


@dataclass(frozen=True)
class PowerConfig:
    """Settings of the comparison."""

    sizes: tuple[int, ...] = (300, 1_000, 3_000, 10_000)  # audit examples m
    # 0 compares pure bounds, where the truth is infinite
    deltas: tuple[float, ...] = (0.0, 1e-6, 1e-5, 1e-4)
    draws: int = 10  # audits per size
    confidence: float = 0.95  # confidence level of every bound, in (0, 1)
    seed: int = 0  # seed of the scores, 0 or more


BOUNDS: dict[str, Callable[..., OneRunResult | FdpResult]] = {
    "anytime (default)": audit_one_run,
    "dyadic counts, sharp delta": partial(audit_one_run, thresholds="dyadic", delta_term="sharp"),
    "dyadic counts, published delta": partial(audit_one_run, thresholds="dyadic"),
    "every count, published delta": partial(audit_one_run, thresholds="bonferroni"),
    "split in halves": partial(audit_one_run, thresholds="split"),
    "(epsilon, delta) curve, dyadic": partial(audit_f_dp, family="approximate", guess="both"),
    "Gaussian curve assumed, dyadic": partial(audit_f_dp, guess="both"),
    "Gaussian curve assumed, any order": audit_f_dp,
}


_SHIFTED = gaussian(1.0, 1e-5).draw  # unit normals one standard deviation apart


def mean_bounds(config: PowerConfig) -> pd.DataFrame:
    """Mean bound of every search on the same Gaussian scores.

    Returns:
        A row for each bound, size and delta: bound, examples, delta, truth (infinite at delta 0),
        and mean, lowest and highest of the bounds, nats.
    """
    rows: list[dict[str, object]] = []
    for m in config.sizes:
        rng = np.random.default_rng([config.seed, m])
        audits = [_SHIFTED(rng, m) for _ in range(config.draws)]
        for delta in config.deltas:
            truth = gaussian(1.0, delta).epsilon if delta > 0 else np.inf
            for name, summary in _summaries_of_bounds(audits, delta, config.confidence):
                labels = {"bound": name, "examples": m, "delta": delta, "truth": truth}
                rows.append(labels | summary)
    return pd.DataFrame(rows)


def _summaries_of_bounds(
    audits: Sequence[MembershipScores], delta: float, confidence: float
) -> Iterator[tuple[str, dict[str, object]]]:
    """Name of each search of ``BOUNDS``, and the `_summary` of its bounds over the audits; but for
    the Gaussian curve at delta 0.
    """
    for name, bound in BOUNDS.items():
        if delta == 0 and "Gaussian" in name:
            continue  # that curve has no finite epsilon at delta = 0
        bounds = [bound(scores, delta=delta, confidence=confidence).epsilon for scores in audits]
        yield name, _summary(bounds)


Leak = Callable[[np.random.Generator, IntArray], FloatArray]
"""From bits, 1 for a member, of any shape, to scores of that shape."""
Design = Callable[[np.random.Generator, MembershipScores, Leak], float]
"""The bound, nats, of an audit of scores, which may draw further ones from the leak."""
ORACLE = "best fixed rule in hindsight"
SET_SIZE = 8  # candidates of a set in the design with ranks


def _normal(
    rng: np.random.Generator, bits: IntArray, *, mean: float, spread: float = 1.0
) -> FloatArray:
    """Scores that are normal with this mean and deviation for members, standard for others."""
    noise = rng.normal(size=bits.shape)
    return np.where(bits == 1, mean + spread * noise, noise)


def _known(
    rng: np.random.Generator, bits: IntArray, *, members: float, others: float
) -> FloatArray:
    """Scores where a share ``members`` of the members stands 5 higher, and a share ``others`` of
    the others 5 lower.
    """
    is_known = rng.random(bits.shape) < np.where(bits == 1, members, others)
    direction = 2 * bits - 1
    return rng.normal(size=bits.shape) + 5.0 * is_known * direction


SHAPES: dict[str, Leak] = {  # non-members are N(0, 1) where nothing else is said
    "members N(1, 1)": partial(_normal, mean=1),
    "members N(2, 1)": partial(_normal, mean=2),
    "10 % of members memorised": partial(_known, members=0.1, others=0.0),
    "3 % of members memorised": partial(_known, members=0.03, others=0.0),
    "members N(1, 2)": partial(_normal, mean=1, spread=2),
    "10 % of non-members sure": partial(_known, members=0.0, others=0.1),
    "members N(0.3, 0.6)": partial(_normal, mean=0.3, spread=0.6),
    "5 % sure on both sides": partial(_known, members=0.05, others=0.05),
}

LEAKS: dict[str, Leak] = {
    "every member a little": SHAPES["members N(1, 1)"],
    "one member in ten": SHAPES["10 % of members memorised"],
}


def _one_run(**options: Any) -> Design:
    """The design of one run, with options of `audit_one_run`."""
    return lambda rng, scores, leak: audit_one_run(scores, **options).epsilon


def _panoramia(rng: np.random.Generator, scores: MembershipScores, leak: Leak) -> float:
    """PANORAMIA with a perfect generator, which is known to be one."""
    values, bits = scores.oriented().pooled()
    baseline = np.zeros(values.size)
    return audit_panoramia(baseline, values, bits, known_c=0.0, search="anytime").c_plus_epsilon_lb


def _ranks(rng: np.random.Generator, scores: MembershipScores, leak: Leak) -> float:
    """The bound of ranks, nats: a set for each member, its own score first, then those of values
    that were not trained on.
    """
    bits = np.zeros((scores.member.size, SET_SIZE), dtype=np.int64)
    bits[:, 0] = 1
    values = leak(rng, bits)
    members, others = values[:, 0], values[:, 1:]
    ranks, sizes = ranks_from_scores(members, others)
    return audit_ranks(ranks, sizes, margins=score_margins(members, others)).epsilon


def _output_set(rng: np.random.Generator, scores: MembershipScores, leak: Leak) -> float:
    """An output set that half of the scores choose and the other half tests."""
    chosen, tested = scores.split(seed=int(rng.integers(2**31)))
    return audit_output_set(chosen, tested).epsilon


DESIGNS: dict[str, Design] = {
    "randomized, default": _one_run(),
    "randomized, both ends": _one_run(guess="both"),
    "randomized, members": _one_run(guess="members"),
    "game": _one_run(design="game"),
    "PANORAMIA, c = 0 known": _panoramia,
    "ranks of sets": _ranks,
    "output set": _output_set,
}


def design_bounds(config: PowerConfig) -> pd.DataFrame:
    """Mean bound of every design at delta 0, and of the best fixed rule in hindsight.

    Returns:
        A row for each leak, size and design: leak, design, examples, and mean, lowest and highest
        of the bounds, nats.
    """

    def oracle(rng: np.random.Generator, scores: MembershipScores, leak: Leak) -> float:
        return hindsight(scores, config.confidence)

    designs = {ORACLE: oracle, **DESIGNS}
    rows: list[dict[str, object]] = []
    for (leak_name, leak), m in product(LEAKS.items(), config.sizes):
        rng = np.random.default_rng([config.seed, m, *leak_name.encode()])
        audits = [of_bits(leak)(rng, m) for _ in range(config.draws)]
        for name, design in designs.items():
            labels = {"leak": leak_name, "design": name, "examples": m}
            rows.append(labels | _summary([design(rng, scores, leak) for scores in audits]))
    return pd.DataFrame(rows)


def _summary(bounds: list[float]) -> dict[str, object]:
    """Mean and range of the bounds of several audits."""
    return {"mean": float(np.mean(bounds)), "lowest": min(bounds), "highest": max(bounds)}


FIXED: tuple[Guess, ...] = ("both", "members", "nonmembers")  # rules that fix the side beforehand


def hindsight(scores: MembershipScores, confidence: float) -> float:
    """Bound, nats, of the best number of guesses by any rule of ``FIXED``, chosen after looking and
    not corrected: no bound, but a line to compare with.
    """
    paths = [guess_path(scores, guess) for guess in FIXED]
    return max(
        float(epsilon_from_counts(path.correct, path.guesses, 1 - confidence).max())
        for path in paths
    )


@dataclass(frozen=True)
class ShapesConfig(PowerConfig):
    """Settings of the comparison over shapes."""

    sizes: tuple[int, ...] = (1_000, 10_000)
    deltas: tuple[float, ...] = (0.0, 1e-5)
    draws: int = 20


def shape_bounds(config: ShapesConfig) -> pd.DataFrame:
    """Mean bounds of the default audit and of the rules that fix the side.

    Returns:
        A row for each shape, size and delta: shape, examples, delta, the mean bound of adaptive,
        both, members and nonmembers, best_fixed (the name of the best of the last three), lost and
        lost_se, the mean of what the default loses against it and its standard error; all in nats.
    """
    rows: list[dict[str, object]] = []
    for (shape, leak), m in product(SHAPES.items(), config.sizes):
        rng = np.random.default_rng([config.seed, m, *shape.encode()])
        audits = [of_bits(leak)(rng, m) for _ in range(config.draws)]
        for delta in config.deltas:
            labels = {"shape": shape, "examples": m, "delta": delta}
            rows.append(labels | _compared_guesses(audits, delta, config.confidence))
    return pd.DataFrame(rows)


def _compared_guesses(
    audits: Sequence[MembershipScores], delta: float, confidence: float
) -> dict[str, object]:
    """Mean bound of each rule, and what the default loses against the best fixed one, nats, by the
    columns of `shape_bounds`.

    The best of the fixed rules is chosen by its mean, so it is a ceiling that no auditor knows.
    """

    def bounds_by(guess: Guess) -> FloatArray:
        options: dict[str, Any] = {"delta": delta, "confidence": confidence, "guess": guess}
        return np.array([searched_epsilon(scores, **options) for scores in audits])

    guesses: tuple[Guess, ...] = ("adaptive", *FIXED)
    bounds = {guess: bounds_by(guess) for guess in guesses}
    means: dict[str, object] = {guess: float(values.mean()) for guess, values in bounds.items()}
    best = max(FIXED, key=lambda guess: bounds[guess].mean())
    lost = bounds[best] - bounds["adaptive"]
    standard_error = float(lost.std(ddof=1) / np.sqrt(lost.size))
    return means | {"best_fixed": best, "lost": float(lost.mean()), "lost_se": standard_error}


class PlannedBound(NamedTuple):
    """What a plan says of the bounds of an audit, nats."""

    expected: float  # mean
    low: float  # 10 % point
    high: float  # 90 % point
    reached: float  # by 80 % of the bounds


Plan = Callable[[MembershipScores, int, int], tuple[float, float, float, float]]
"""From a pilot's scores, a number of examples and a seed to the fields of a `PlannedBound`."""


def planned(pilot: MembershipScores, m: int, seed: int, *, simulations: int = 60) -> PlannedBound:
    """What `plan_audit` says of an audit of m examples, from the scores of a pilot."""
    plan = plan_audit(m, attack=pilot, simulations=simulations, seed=seed)
    return PlannedBound(plan.expected, plan.low, plan.high, plan.reached)


def plan_misses(
    rule: Plan, pilot: int, m: int, pairs: int, *, seed: int = 0
) -> tuple[float, float, float]:
    """How far plans miss real bounds, over ``pairs`` of a pilot and an audit on Gaussian scores.

    Args:
        rule: The plan.
        pilot, m: Examples of each pilot, and of each audit.

    Returns:
        Mean of the planned less the real bound, nats; share of the real bounds within the planned
        range; share of them at or above what the plan says is reached.
    """
    rng = np.random.default_rng([seed, pilot, m])
    misses = np.zeros(pairs)
    inside = np.zeros(pairs, dtype=bool)
    reaching = np.zeros(pairs, dtype=bool)
    for pair in range(pairs):
        expected, low, high, reached = rule(_SHIFTED(rng, pilot), m, pair)
        real = audit_one_run(_SHIFTED(rng, m)).epsilon
        misses[pair] = expected - real
        inside[pair] = low <= real <= high
        reaching[pair] = real >= reached
    return float(misses.mean()), float(inside.mean()), float(reaching.mean())


def plan_rows(
    pilots: Sequence[int], sizes: Sequence[int], pairs: int, *, seed: int = 0
) -> pd.DataFrame:
    """How far the plans of `planned` miss, as `plan_misses`: a row for each size of a pilot and of
    an audit, pilot, examples, miss (nats), inside and reached (shares).
    """
    rows = [
        (pilot, m, *plan_misses(planned, pilot, m, pairs, seed=seed))
        for m in sizes
        for pilot in pilots
    ]
    return pd.DataFrame(rows, columns=["pilot", "examples", "miss", "inside", "reached"])
