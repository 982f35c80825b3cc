"""How much each sound bound, design and plan of an audit shows: mean bounds over seeded audits."""

from collections.abc import Callable, Sequence
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
    plan_audit,
    ranks_from_scores,
    score_margins,
)
from paperlib.bounds.one_run.guesses import guess_path
from paperlib.bounds.one_run.tails import epsilon_from_counts
from paperlib.core import FloatArray, Guess, IntArray, MembershipScores
from paperlib.validity.mechanisms import gaussian, of_bits
from paperlib.validity.one_run_cases import searched_epsilon


@dataclass(frozen=True)
class PowerConfig:
    """Settings of the comparison."""

    sizes: tuple[int, ...] = (300, 1_000, 3_000, 10_000)  # audit examples m
    deltas: tuple[float, ...] = (
        0.0,
        1e-6,
        1e-5,
        1e-4,
    )  # 0 compares pure bounds, where the truth is infinite
    draws: int = 10  # audits per size
    confidence: float = 0.95  # confidence level of every bound, in (0, 1)
    seed: int = 0  # seed of the scores, 0 or more


BOUNDS: dict[str, Callable[..., OneRunResult | FdpResult]] = {
    "anytime (default)": audit_one_run,
    "dyadic counts, sharp delta": partial(audit_one_run, thresholds="dyadic", delta_term="sharp"),
    "dyadic counts, published delta": partial(audit_one_run, thresholds="dyadic"),
    "every count, published delta": partial(audit_one_run, thresholds="bonferroni"),
    "split in halves": partial(audit_one_run, thresholds="split"),
    "(epsilon, delta) curve, dyadic": partial(audit_f_dp, family="approximate"),
    "Gaussian curve assumed, dyadic": partial(audit_f_dp, family="gaussian"),
}


_SHIFTED = gaussian(1.0, 1e-5).draw  # unit normals one standard deviation apart


def mean_bounds(config: PowerConfig) -> pd.DataFrame:
    """Mean bound of every search on the same Gaussian scores, a row for each bound, size and
    delta.
    """
    rows: list[dict[str, object]] = []
    for m in config.sizes:
        rng = np.random.default_rng([config.seed, m])
        audits = [_SHIFTED(rng, m) for _ in range(config.draws)]
        for delta in config.deltas:
            truth = gaussian(1.0, delta).epsilon if delta > 0 else np.inf
            options = {"delta": delta, "confidence": config.confidence}
            for name, bound in BOUNDS.items():
                if delta == 0 and "Gaussian" in name:
                    continue  # that curve has no finite epsilon at delta = 0
                bounds = [bound(scores, **options).epsilon for scores in audits]
                names = {"bound": name, "examples": m, "delta": delta, "truth": truth}
                rows.append(names | _summary(bounds))
    return pd.DataFrame(rows)


Leak = Callable[[np.random.Generator, IntArray], FloatArray]
Design = Callable[[np.random.Generator, MembershipScores, Leak], float]
ORACLE = "best fixed rule in hindsight"
SET_SIZE = 8  # candidates of a set in the design with ranks


def _normal(
    rng: np.random.Generator, bits: IntArray, *, mean: float, spread: float = 1.0
) -> FloatArray:
    noise = rng.normal(size=bits.shape)
    return np.where(bits == 1, mean + spread * noise, noise)


def _known(
    rng: np.random.Generator, bits: IntArray, *, members: float, others: float
) -> FloatArray:
    """Shares of the members that stand 5 higher, and of the others that stand 5 lower."""
    sure = rng.random(bits.shape) < np.where(bits == 1, members, others)
    return rng.normal(size=bits.shape) + 5.0 * sure * (2 * bits - 1)


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
    return lambda rng, scores, leak: audit_one_run(scores, **options).epsilon


def _panoramia(rng: np.random.Generator, scores: MembershipScores, leak: Leak) -> float:
    values, bits = scores.oriented().pooled()
    nothing = np.zeros(values.size)
    return audit_panoramia(nothing, values, bits, known_c=0.0, search="anytime").c_plus_epsilon_lb


def _ranks(rng: np.random.Generator, scores: MembershipScores, leak: Leak) -> float:
    """A set for each member: its own score first, then those of values that were not trained on."""
    bits = np.zeros((scores.member.size, SET_SIZE), dtype=np.int64)
    bits[:, 0] = 1
    values = leak(rng, bits)
    sets = values[:, 0], values[:, 1:]
    ranks, sizes = ranks_from_scores(*sets)
    return audit_ranks(ranks, sizes, margins=score_margins(*sets)).epsilon


DESIGNS: dict[str, Design] = {
    "randomized, default": _one_run(),
    "randomized, both ends": _one_run(guess="both"),
    "randomized, members": _one_run(guess="members"),
    "game": _one_run(design="game"),
    "PANORAMIA, c = 0 known": _panoramia,
    "ranks of sets": _ranks,
    "output set": lambda rng, scores, leak: (
        audit_output_set(*scores.split(seed=int(rng.integers(2**31)))).epsilon
    ),
}


def design_bounds(config: PowerConfig) -> pd.DataFrame:
    """Mean bound of every design at delta 0, and of the best fixed rule in hindsight, by leak and
    size.
    """
    rows: list[dict[str, object]] = []
    for leak_name, leak in LEAKS.items():
        for m in config.sizes:
            rng = np.random.default_rng([config.seed, m, *leak_name.encode()])
            audits = [of_bits(leak)(rng, m) for _ in range(config.draws)]
            designs = {
                ORACLE: lambda rng, scores, leak: hindsight(scores, config.confidence),
                **DESIGNS,
            }
            for name, design in designs.items():
                about = {"leak": leak_name, "design": name, "examples": m}
                rows.append(about | _summary([design(rng, scores, leak) for scores in audits]))
    return pd.DataFrame(rows)


def _summary(bounds: list[float]) -> dict[str, object]:
    return {"mean": float(np.mean(bounds)), "lowest": min(bounds), "highest": max(bounds)}


FIXED: tuple[Guess, ...] = ("both", "members", "nonmembers")  # rules that fix the side beforehand


def hindsight(scores: MembershipScores, confidence: float) -> float:
    """Bound of the best number of guesses, chosen after looking and not corrected: a line to
    compare with.
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
    """Mean bounds of the default audit and of the rules that fix the side, by shape, size and
    delta.
    """
    # The best of the fixed rules is chosen by its mean, so it is a ceiling that no auditor knows.
    rows: list[dict[str, object]] = []
    for shape, leak in SHAPES.items():
        for m in config.sizes:
            rng = np.random.default_rng([config.seed, m, *shape.encode()])
            audits = [of_bits(leak)(rng, m) for _ in range(config.draws)]
            for delta in config.deltas:
                options = {"delta": delta, "confidence": config.confidence}
                bounds = {
                    guess: np.array(
                        [searched_epsilon(one, guess=guess, **options) for one in audits]
                    )
                    for guess in ("adaptive", *FIXED)
                }
                means = {guess: float(values.mean()) for guess, values in bounds.items()}
                best = max(FIXED, key=means.__getitem__)
                lost = bounds[best] - bounds["adaptive"]
                spread = float(lost.std(ddof=1) / np.sqrt(lost.size))
                about = {"shape": shape, "examples": m, "delta": delta}
                judged = {"best_fixed": best, "lost": float(lost.mean()), "lost_se": spread}
                rows.append(about | means | judged)
    return pd.DataFrame(rows)


Plan = Callable[[MembershipScores, int, int], tuple[float, float, float, float]]


def planned(
    pilot: MembershipScores, m: int, seed: int, *, simulations: int = 60
) -> tuple[float, float, float, float]:
    """Mean bound of m examples, its 10 % and 90 % points, and what 80 % of them reach, by
    `plan_audit`.
    """
    plan = plan_audit(m, attack=pilot, simulations=simulations, seed=seed)
    return plan.expected, plan.low, plan.high, plan.reached


def plan_misses(
    rule: Plan, pilot: int, m: int, pairs: int, *, seed: int = 0
) -> tuple[float, float, float]:
    """Mean of the planned less the real bound; shares of real bounds in the planned range, and that
    reach.
    """
    rng = np.random.default_rng([seed, pilot, m])
    misses, kept = np.zeros(pairs), np.zeros((pairs, 2), dtype=bool)
    for i in range(pairs):
        expected, low, high, reached = rule(_SHIFTED(rng, pilot), m, i)
        real = audit_one_run(_SHIFTED(rng, m)).epsilon
        misses[i], kept[i] = expected - real, (low <= real <= high, real >= reached)
    inside, reaching = kept.mean(axis=0)
    return float(misses.mean()), float(inside), float(reaching)


def plan_rows(
    pilots: Sequence[int], sizes: Sequence[int], pairs: int, *, seed: int = 0
) -> pd.DataFrame:
    """`plan_misses` of `planned`, a row for each size of a pilot and of an audit."""
    rows = [
        (pilot, m, *plan_misses(planned, pilot, m, pairs, seed=seed))
        for m in sizes
        for pilot in pilots
    ]
    return pd.DataFrame(rows, columns=["pilot", "examples", "miss", "inside", "reached"])
