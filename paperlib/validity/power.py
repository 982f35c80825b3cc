"""How much each sound bound and each design of an audit shows: mean bounds over seeded audits."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from paperlib.bounds import (
    FdpResult,
    OneRunResult,
    audit_f_dp,
    audit_one_run,
    audit_output_set,
    audit_panoramia,
    audit_ranks,
    ranks_from_scores,
    score_margins,
)
from paperlib.bounds.one_run.guesses import guess_path
from paperlib.bounds.one_run.tails import epsilon_from_counts
from paperlib.core import FloatArray, Guess, IntArray, MembershipScores
from paperlib.validity.mechanisms import gaussian, of_bits


@dataclass(frozen=True)
class PowerConfig:
    """Settings of the comparison.

    Attributes:
        sizes: Audit examples m.
        deltas: Deltas tested; 0 compares pure bounds, where the truth is infinite.
        draws: Audits per size.
        mu: Distance between members and non-members in standard deviations.
        confidence: Confidence level of every bound, in (0, 1).
        seed: Seed of the scores, 0 or more.
    """

    sizes: tuple[int, ...] = (300, 1_000, 3_000, 10_000)
    deltas: tuple[float, ...] = (0.0, 1e-6, 1e-5, 1e-4)
    draws: int = 10
    mu: float = 1.0
    confidence: float = 0.95
    seed: int = 0


BOUNDS: dict[str, Callable[..., OneRunResult | FdpResult]] = {
    "anytime (default)": audit_one_run,
    "dyadic counts, sharp delta": partial(audit_one_run, thresholds="dyadic", delta_term="sharp"),
    "dyadic counts, published delta": partial(audit_one_run, thresholds="dyadic"),
    "every count, published delta": partial(audit_one_run, thresholds="bonferroni"),
    "split in halves": partial(audit_one_run, thresholds="split"),
    "(epsilon, delta) curve, dyadic": partial(audit_f_dp, family="approximate"),
    "Gaussian curve assumed, dyadic": partial(audit_f_dp, family="gaussian"),
}


def mean_bounds(config: PowerConfig) -> pd.DataFrame:
    """Mean bound of every search on the same Gaussian scores.

    Returns:
        One row per bound, size and delta: bound, examples, delta, truth, mean, lowest, highest.

    >>> table = mean_bounds(PowerConfig(sizes=(200,), deltas=(1e-4,), draws=2))
    >>> list(table.columns)
    ['bound', 'examples', 'delta', 'truth', 'mean', 'lowest', 'highest']
    """
    rows: list[dict[str, object]] = []
    for m in config.sizes:
        rng = np.random.default_rng([config.seed, m])
        draw = gaussian(config.mu, 1e-5).draw
        audits = [draw(rng, m) for _ in range(config.draws)]
        for delta in config.deltas:
            truth = gaussian(config.mu, delta).epsilon if delta > 0 else np.inf
            options = {"delta": delta, "confidence": config.confidence}
            for name, bound in BOUNDS.items():
                if delta == 0 and "Gaussian" in name:
                    continue  # that curve has no finite epsilon at delta = 0
                bounds = [bound(scores, **options).epsilon for scores in audits]
                rows.append(
                    {
                        "bound": name,
                        "examples": m,
                        "delta": delta,
                        "truth": truth,
                        "mean": float(np.mean(bounds)),
                        "lowest": min(bounds),
                        "highest": max(bounds),
                    }
                )
    return pd.DataFrame(rows)


Leak = Callable[[np.random.Generator, IntArray], FloatArray]
Design = Callable[[np.random.Generator, MembershipScores, Leak], float]
ORACLE = "best fixed rule in hindsight"
SET_SIZE = 8  # candidates of a set in the design with ranks


def everyone(rng: np.random.Generator, bits: IntArray) -> FloatArray:
    """Every member's score is higher by one standard deviation."""
    return bits + rng.normal(size=bits.shape)


def few(rng: np.random.Generator, bits: IntArray) -> FloatArray:
    """One member in ten is memorised: its score is higher by five standard deviations."""
    return 5.0 * bits * (rng.random(bits.shape) < 0.1) + rng.normal(size=bits.shape)


LEAKS: dict[str, Leak] = {"every member a little": everyone, "one member in ten": few}


def _one_run(**options: Any) -> Design:
    return lambda rng, scores, leak: audit_one_run(scores, **options).epsilon


def _panoramia(rng: np.random.Generator, scores: MembershipScores, leak: Leak) -> float:
    values, bits = scores.oriented().pooled()
    return audit_panoramia(
        np.zeros(values.size), values, bits, known_c=0.0, search="anytime"
    ).c_plus_epsilon_lb


def _ranks(rng: np.random.Generator, scores: MembershipScores, leak: Leak) -> float:
    """A set for each member: its own score first, then those of values that were not trained on."""
    bits = np.zeros((scores.member.size, SET_SIZE), dtype=np.int64)
    bits[:, 0] = 1
    values = leak(rng, bits)
    sets = values[:, 0], values[:, 1:]
    ranks, sizes = ranks_from_scores(*sets)
    return audit_ranks(ranks, sizes, margins=score_margins(*sets)).epsilon


def _output_set(rng: np.random.Generator, scores: MembershipScores, leak: Leak) -> float:
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
    """Mean bound of every design at delta 0, over sample sizes, and of the best fixed rule in hindsight.

    Returns:
        One row per leak, design and size: leak, design, examples, mean, lowest, highest.

    >>> list(design_bounds(PowerConfig(sizes=(100,), draws=2)).columns)
    ['leak', 'design', 'examples', 'mean', 'lowest', 'highest']
    """
    rows: list[dict[str, object]] = []
    for leak_name, leak in LEAKS.items():
        for m in config.sizes:
            rng = np.random.default_rng([config.seed, m, *leak_name.encode()])
            draw = of_bits(leak)
            audits = [draw(rng, m) for _ in range(config.draws)]
            found = {ORACLE: [hindsight(one, config.confidence) for one in audits]}
            for name, design in DESIGNS.items():
                found[name] = [design(rng, scores, leak) for scores in audits]
            rows += [_summary(leak_name, name, m, bounds) for name, bounds in found.items()]
    return pd.DataFrame(rows)


def _summary(leak: str, design: str, m: int, bounds: list[float]) -> dict[str, object]:
    spread = {"mean": float(np.mean(bounds)), "lowest": min(bounds), "highest": max(bounds)}
    return {"leak": leak, "design": design, "examples": m, **spread}


def hindsight(scores: MembershipScores, confidence: float) -> float:
    """Bound of the best number of guesses, chosen after looking and not corrected for the search.

    A line to compare with and no bound: no search over the guesses of one end or of both, in the order of the
    scores, can be above it.
    """
    sides: tuple[Guess, ...] = ("both", "members", "nonmembers")
    return max(_best_count(scores, guess, confidence) for guess in sides)


def _best_count(scores: MembershipScores, guess: Guess, confidence: float) -> float:
    path = guess_path(scores, guess)
    return float(epsilon_from_counts(path.correct, path.guesses, 1 - confidence).max())
