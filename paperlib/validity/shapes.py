"""Shapes of leaks, and how near the default audit comes to the best rule that knew the shape."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from paperlib.core import FloatArray, Guess, IntArray
from paperlib.validity.mechanisms import of_bits
from paperlib.validity.one_run_cases import searched_epsilon

Leak = Callable[[np.random.Generator, IntArray], FloatArray]

FIXED: tuple[Guess, ...] = ("both", "members", "nonmembers")
"""Rules that fix the side beforehand."""

_RULES: tuple[Guess, ...] = ("adaptive", *FIXED)


@dataclass(frozen=True)
class ShapesConfig:
    """Settings of the comparison."""

    sizes: tuple[int, ...] = (1_000, 10_000)  # audit examples m
    deltas: tuple[float, ...] = (0.0, 1e-5)  # deltas tested, in [0, 1)
    draws: int = 20  # audits of each shape and size
    confidence: float = 0.95  # confidence level of every bound, in (0, 1)
    seed: int = 0  # seed of the scores, 0 or more


def _members_spread(mean: float, spread: float = 1.0) -> Leak:
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
    "members N(1, 1)": _members_spread(1),
    "members N(2, 1)": _members_spread(2),
    "10 % of members memorised": _known(0.1, 0.0),
    "3 % of members memorised": _known(0.03, 0.0),
    "members N(1, 2)": _members_spread(1, 2),
    "10 % of non-members sure": _known(0.0, 0.1),
    "members N(0.3, 0.6)": _members_spread(0.3, 0.6),
    "5 % sure on both sides": _known(0.05, 0.05),
}
"""Laws of the scores; non-members are N(0, 1) where nothing else is said."""


def shape_bounds(config: ShapesConfig) -> pd.DataFrame:
    """Mean bounds of the default audit and of the rules that fix the side, by shape, size and delta."""
    # The best of the fixed rules is chosen by its mean, so it is a ceiling that no auditor knows.
    rows: list[dict[str, object]] = []
    for shape, leak in SHAPES.items():
        for m in config.sizes:
            rng = np.random.default_rng([config.seed, m, *shape.encode()])
            audits = [of_bits(leak)(rng, m) for _ in range(config.draws)]
            for delta in config.deltas:
                options = {"delta": delta, "confidence": config.confidence}
                bounds = {
                    guess: np.array([searched_epsilon(one, guess=guess, **options) for one in audits])
                    for guess in _RULES
                }
                means = {guess: float(values.mean()) for guess, values in bounds.items()}
                best = max(FIXED, key=means.__getitem__)
                lost = bounds[best] - bounds["adaptive"]
                spread = float(lost.std(ddof=1) / np.sqrt(lost.size))
                about = {"shape": shape, "examples": m, "delta": delta}
                judged = {"best_fixed": best, "lost": float(lost.mean()), "lost_se": spread}
                rows.append(about | means | judged)
    return pd.DataFrame(rows)
