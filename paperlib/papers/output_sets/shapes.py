"""The shape of optimal output sets, beside the best top and bottom scores (Figures 1, 4 and 5)."""

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from paperlib.bounds import OutputSet
from paperlib.bounds.output_sets.choices import fit_output_set
from paperlib.bounds.output_sets.level_sets import Line, line_of, objective_of, optimal_set_on
from paperlib.core import FloatArray, MembershipScores
from paperlib.papers.output_sets.gain import Mixture
from paperlib.papers.settings import settings_beside
from paperlib.report import paper_table


@dataclass(frozen=True)
class Pair:
    """Distributions of member and nonmember scores of one panel of Figures 1, 4 and 5, and what is
    drawn.
    """

    figure: str
    name: str
    p: Mixture
    q: Mixture
    support: tuple[float, float]
    view: tuple[float, float]


@cache
def pairs() -> tuple[Pair, ...]:
    """The six pairs, with the parameters of the paper's captions."""
    groups = paper_table("output_sets_distributions").groupby(["figure", "panel"], sort=False)
    settings = settings_beside(__file__)
    panels: list[Pair] = []
    for ((figure, _), rows), (name, ranges) in zip(groups, settings.items(), strict=True):
        panels.append(Pair(str(figure), name, _mixture(rows, "p"), _mixture(rows, "q"), **ranges))
    return tuple(panels)


def _mixture(rows: pd.DataFrame, role: str) -> Mixture:
    families = {
        "laplace": stats.laplace,
        "gaussian": lambda mean, variance: stats.norm(mean, math.sqrt(variance)),
        "cauchy": stats.cauchy,
        "f": stats.f,
        "logistic": stats.logistic,
        "noncentral_chi_squared": stats.ncx2,
    }
    numbers = rows.loc[rows["role"] == role, ["family", "param1", "param2"]].itertuples(index=False)
    return Mixture(tuple(families[family](float(a), float(b)) for family, a, b in numbers))


def shapes(
    *, m: int = 100, confidence: float = 0.95, draws: int = 50, seed: int = 0
) -> pd.DataFrame:
    """The optimal set for m scores of each side, and the best top/bottom set, of each pair."""
    rows = list[dict[str, Any]]()
    for pair in pairs():
        best = optimal_set(pair, m, confidence)
        low, high, objective = best_top_bottom(pair, m, confidence)
        start, end = pair.support
        inner = [(a + b) / 2 for a, b in best.intervals if a > start and b < end]  # their middles
        missed = 0
        for trial in range(draws):
            rng = np.random.default_rng([seed, m, trial])
            members = int(rng.binomial(2 * m, 0.5))
            scores = MembershipScores(pair.p.draw(rng, members), pair.q.draw(rng, 2 * m - members))
            chosen = fit_output_set(scores, method="top_bottom", confidence=confidence)
            missed += not chosen.contains(inner).all()
        ends = ((-math.inf, low), (high, math.inf)) if low < high else ((-math.inf, math.inf),)
        rows.append(
            {
                "figure": pair.figure,
                "pair": pair.name,
                "m": m,
                "tau": best.tau,
                "objective": best.objective,
                "intervals": len(best.intervals),
                "optimal_set": format_set(best.intervals),
                "asymmetric": is_asymmetric(best),
                "top_bottom_objective": objective,
                "top_bottom_set": format_set(ends),
                "centre_missed": any(low <= x <= high for x in inner),
                "centre_missed_share": missed / draws if draws else math.nan,
            }
        )
    return pd.DataFrame(rows)


@cache
def _line(pair: Pair) -> Line:
    return line_of(pair.p.pdf, pair.q.pdf, pair.support)


@cache
def optimal_set(pair: Pair, m: int, confidence: float = 0.95) -> OutputSet:
    return optimal_set_on(_line(pair), m, confidence)


@cache
def best_top_bottom(pair: Pair, m: int, confidence: float = 0.95) -> tuple[float, float, float]:
    """Cut points of the best (-inf, low) u (high, inf), and its objective."""
    line = _line(pair)
    mass, right = (np.append(0.0, np.cumsum(values)) for values in (line.mass, line.right))
    # All pairs of 600 cut points, then all pairs of quadrature points around the best.
    coarse = np.unique(
        np.searchsorted(mass, np.linspace(0, mass[-1], 600)).clip(0, line.points.size)
    )
    i, j = _best_pair(coarse, coarse, mass, right, m, confidence)
    step = int(np.diff(coarse).max())
    near_low, near_high = (_near(index, step, line.points.size) for index in (i, j))
    i, j = _best_pair(near_low, near_high, mass, right, m, confidence)
    edges = np.concatenate([[-math.inf], (line.points[1:] + line.points[:-1]) / 2, [math.inf]])
    chosen = mass[i] + mass[-1] - mass[j], right[i] + right[-1] - right[j]
    objective = objective_of(float(chosen[0]), float(chosen[1]), m=m, confidence=confidence)
    return float(edges[i]), float(edges[j]), objective


def _near(index: int, step: int, last: int) -> np.ndarray:
    """Indices from 0 to ``last`` around one, ``step`` to each side; at most about 1,500 of them."""
    indices = np.arange(max(index - step, 0), min(index + step, last) + 1)
    return indices[:: max(1, indices.size // 1500)]


def _best_pair(
    low: np.ndarray,
    high: np.ndarray,
    mass: FloatArray,
    right: FloatArray,
    m: int,
    confidence: float,
) -> tuple[int, int]:
    total = mass[low][:, None] + mass[-1] - mass[high][None, :]
    hits = right[low][:, None] + right[-1] - right[high][None, :]
    usable = (low[:, None] <= high[None, :]) & (total > 1e-12)
    held = np.where(usable, total, 1.0)
    value = np.where(
        usable, hits / held - np.sqrt(2 * math.log(1 / (1 - confidence)) / (m * held)), -np.inf
    )
    i, j = np.unravel_index(int(np.argmax(value)), value.shape)
    return int(low[i]), int(high[j])


def is_asymmetric(chosen: OutputSet) -> bool:
    """Whether no reflection maps the set to itself (to a thousandth of its extent)."""
    cuts = np.array(chosen.intervals).ravel()
    finite = cuts[np.isfinite(cuts)]
    if np.isfinite(cuts[0]) != np.isfinite(cuts[-1]):
        return finite.size > 0 and len(chosen.intervals) > 1
    return bool(finite.size and np.ptp(finite + finite[::-1]) > 1e-3 * np.ptp(finite))


def format_set(intervals: tuple[tuple[float, float], ...]) -> str:
    """A union of intervals in words of mathematics."""

    def end(value: float) -> str:
        if math.isinf(value):
            return "∞" if value > 0 else "−∞"
        return f"{value:.4g}".replace("-", "−")

    return " ∪ ".join(f"({end(a)}, {end(b)})" for a, b in intervals if a < b)


@cache
def least_m_with_a_gap(name: str, most: int = 10**6) -> int:
    """Fewest scores at which the optimal set of a pair is not the whole support (``most`` if none
    is).
    """
    pair = next(pair for pair in pairs() if pair.name == name)
    low, high = 1, most
    while high - low > max(1, low // 100):
        middle = int(math.sqrt(low * high)) if high > 4 * low else (low + high) // 2
        if len(optimal_set(pair, middle).intervals) == 1:
            low = middle
        else:
            high = middle
    return high
