"""Shapes of leaks, and how near the default audit comes to the best rule that knew the shape."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from paperlib.core import FloatArray, Guess, IntArray, MembershipScores
from paperlib.validity.mechanisms import of_bits
from paperlib.validity.one_run_cases import searched_epsilon

Leak = Callable[[np.random.Generator, IntArray], FloatArray]

FIXED: tuple[Guess, ...] = ("both", "members", "nonmembers")
"""Rules that fix the side beforehand."""


@dataclass(frozen=True)
class ShapesConfig:
    """Settings of the comparison.

    Attributes:
        sizes: Audit examples m.
        deltas: Deltas tested, in [0, 1).
        draws: Audits of each shape and size.
        confidence: Confidence level of every bound, in (0, 1).
        seed: Seed of the scores, 0 or more.
    """

    sizes: tuple[int, ...] = (1_000, 10_000)
    deltas: tuple[float, ...] = (0.0, 1e-5)
    draws: int = 20
    confidence: float = 0.95
    seed: int = 0


def _shifted(by: float) -> Leak:
    return lambda rng, bits: rng.normal(size=bits.size) + by * bits


def _members_spread(mean: float, spread: float) -> Leak:
    def scores(rng: np.random.Generator, bits: IntArray) -> FloatArray:
        noise = rng.normal(size=bits.size)
        return np.where(bits == 1, mean + spread * noise, noise)

    return scores


def _known(members: float, others: float) -> Leak:
    """Shares of the members that stand 5 higher, and of the others that stand 5 lower."""

    def scores(rng: np.random.Generator, bits: IntArray) -> FloatArray:
        told = rng.random(bits.size) < np.where(bits == 1, members, others)
        return rng.normal(size=bits.size) + 5.0 * told * (2 * bits - 1)

    return scores


SHAPES: dict[str, Leak] = {
    "members N(1, 1)": _shifted(1),
    "members N(2, 1)": _shifted(2),
    "10 % of members memorised": _known(0.1, 0.0),
    "3 % of members memorised": _known(0.03, 0.0),
    "members N(1, 2)": _members_spread(1, 2),
    "10 % of non-members sure": _known(0.0, 0.1),
    "members N(0.3, 0.6)": _members_spread(0.3, 0.6),
    "5 % sure on both sides": _known(0.05, 0.05),
}
"""Laws of the scores; non-members are N(0, 1) where nothing else is said."""


def shape_bounds(config: ShapesConfig) -> pd.DataFrame:
    """Mean bounds of the default audit and of the rules that fix the side beforehand, on the same scores.

    The best of the fixed rules is chosen by its mean, so it is a ceiling that no auditor knows.

    Returns:
        One row per shape, size and delta: shape, examples, delta, one column for each rule, best_fixed, lost
        (nats) and lost_se (standard error of the mean difference over draws).

    >>> table = shape_bounds(ShapesConfig(sizes=(100,), deltas=(0.0,), draws=2))
    >>> list(table.columns)[3:]
    ['adaptive', 'both', 'members', 'nonmembers', 'best_fixed', 'lost', 'lost_se']
    """
    rows: list[dict[str, object]] = []
    for shape, leak in SHAPES.items():
        for m in config.sizes:
            rng = np.random.default_rng([config.seed, m, *shape.encode()])
            audits = [of_bits(leak)(rng, m) for _ in range(config.draws)]
            for delta in config.deltas:
                rows.append(
                    {"shape": shape, "examples": m, "delta": delta, **_compared(audits, delta, config)}
                )
    return pd.DataFrame(rows)


def _compared(audits: list[MembershipScores], delta: float, config: ShapesConfig) -> dict[str, float | str]:
    def bounds(guess: Guess) -> FloatArray:
        options = {"delta": delta, "confidence": config.confidence, "guess": guess}
        return np.array([searched_epsilon(scores, **options) for scores in audits])

    rules: tuple[Guess, ...] = ("adaptive", *FIXED)
    found = {guess: bounds(guess) for guess in rules}
    means = {guess: float(values.mean()) for guess, values in found.items()}
    best = max(FIXED, key=means.__getitem__)
    lost = found[best] - found["adaptive"]
    spread = float(lost.std(ddof=1) / np.sqrt(lost.size))
    return {**means, "best_fixed": best, "lost": float(lost.mean()), "lost_se": spread}
