"""The shape of optimal output sets, beside the best top and bottom scores (Figures 1, 4 and 5)."""

import math
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from paperlib.bounds import OutputSet
from paperlib.bounds.output_sets.choices import fit_output_set
from paperlib.bounds.output_sets.level_sets import Line, line_of, objective_of, optimal_set_on
from paperlib.core import FloatArray, MembershipScores
from paperlib.reproduction.exhibits import paper_table
from paperlib.reproduction.papers.output_sets.gain import Mixture
from paperlib.reproduction.papers.settings import settings_beside


@dataclass(frozen=True)
class Pair:
    """Distributions of member and nonmember scores of one panel of Figures 1, 4 and 5, and what is
    drawn.
    """

    figure: str  # such as "figure04"
    name: str
    p: Mixture  # of members' scores
    q: Mixture  # of nonmembers' scores
    support: tuple[float, float]  # ends of the scores that can occur
    view: tuple[float, float]  # ends of the scores that are drawn


class TopBottom(NamedTuple):
    """The scores below ``low`` and above ``high``, and the `objective_of` this set, nats."""

    low: float
    high: float
    objective: float


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
    """The mixture of the families in the rows of a role, "p" or "q", each with two parameters."""
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
    """The optimal set for m scores of each side, and the best top/bottom set, of each pair.

    Args:
        m: Scores of each side.
        confidence: Of the objective, in (0, 1).
        draws: Samples of 2 m scores on which a top/bottom set is searched.
        seed: Of these samples.

    Returns:
        A row for each pair: both sets in words and their objectives (nats); the optimal set's level
            tau, number of intervals and asymmetry; and whether the best top/bottom set, and which
            share of those searched on samples, leaves out the middle of one of its intervals.
    """
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
            output_set = fit_output_set(scores, method="top_bottom", confidence=confidence)
            missed += not output_set.contains(inner).all()  # 1 where a middle is left out
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
    """The two densities of a pair on cells that are fine where their mass is."""
    return line_of(pair.p.pdf, pair.q.pdf, pair.support)


@cache
def optimal_set(pair: Pair, m: int, confidence: float = 0.95) -> OutputSet:
    """The best output set of a pair of densities for an audit of ``m`` examples."""
    return optimal_set_on(_line(pair), m, confidence)


@cache
def best_top_bottom(pair: Pair, m: int, confidence: float = 0.95) -> TopBottom:
    """The set (-inf, low) u (high, inf) that is best for ``m`` scores of each side: the one of
    largest `objective_of` at this confidence.

    Both cuts lie between neighbouring quadrature points. They are searched among 600 quantiles of
    the mass first, and then around the best two.
    """
    line = _line(pair)
    last = line.points.size
    # Cut c lies before point c: what is below it, of p + q and of max(p, q).
    mass_below = np.append(0.0, np.cumsum(line.mass))
    right_below = np.append(0.0, np.cumsum(line.right))

    quantiles = np.linspace(0, mass_below[-1], 600)
    coarse = np.unique(np.searchsorted(mass_below, quantiles).clip(0, last))
    low, high = _best_pair(coarse, coarse, mass_below, right_below, m, confidence)

    widest_gap = int(np.diff(coarse).max())
    near_low = _near(low, widest_gap, last)
    near_high = _near(high, widest_gap, last)
    low, high = _best_pair(near_low, near_high, mass_below, right_below, m, confidence)

    mass = mass_below[low] + mass_below[-1] - mass_below[high]
    right = right_below[low] + right_below[-1] - right_below[high]
    objective = objective_of(float(mass), float(right), m=m, confidence=confidence)
    middles = (line.points[1:] + line.points[:-1]) / 2
    place_of_cut = np.concatenate([[-math.inf], middles, [math.inf]])
    return TopBottom(float(place_of_cut[low]), float(place_of_cut[high]), objective)


def _near(index: int, step: int, last: int) -> np.ndarray:
    """Indices from 0 to ``last`` around ``index``, ``step`` to each side, thinned evenly to less
    than 3,000.
    """
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
    """The best two cuts, one of ``low`` and one of ``high`` at or above it: those whose set, below
    the first and above the second, has the largest accuracy less its sampling error, as
    `objective_of` has both.

    Args:
        low, high: Numbers of cuts to choose from, shape (k,) and (l,).
        mass, right: Masses of p + q and of max(p, q) below each cut, shape (cuts,).
        m: Scores of each side.
        confidence: Of the sampling error, in (0, 1).
    """
    # A row for each low cut, a column for each high one: p + q in their set, and right guesses.
    total = mass[low][:, None] + mass[-1] - mass[high][None, :]
    hits = right[low][:, None] + right[-1] - right[high][None, :]
    usable = (low[:, None] <= high[None, :]) & (total > 1e-12)
    mass_of_set = np.where(usable, total, 1.0)  # 1 where nothing may be divided by the total
    # The sampling error of `objective_of`: sqrt(2 ln(1 / beta) / (m mass)), beta 1 - confidence.
    penalty = np.sqrt(2 * math.log(1 / (1 - confidence)) / (m * mass_of_set))
    value = np.where(usable, hits / mass_of_set - penalty, -np.inf)
    i, j = np.unravel_index(int(np.argmax(value)), value.shape)
    return int(low[i]), int(high[j])


def is_asymmetric(output_set: OutputSet) -> bool:
    """Whether no reflection maps the set to itself, to a thousandth of its extent; a half-line or
    the whole line by itself counts as symmetric.
    """
    cuts = np.array(output_set.intervals).ravel()  # ends of the intervals, rising
    finite = cuts[np.isfinite(cuts)]
    if np.isfinite(cuts[0]) != np.isfinite(cuts[-1]):  # it reaches infinity on one side alone
        return finite.size > 0 and len(output_set.intervals) > 1
    # Under a reflection the first cut goes to the last, and so on: all their sums are equal.
    return bool(finite.size and np.ptp(finite + finite[::-1]) > 1e-3 * np.ptp(finite))


def format_set(intervals: tuple[tuple[float, float], ...]) -> str:
    """A union of open intervals, such as "(−∞, 0.5) ∪ (2, ∞)"; empty ones are left out."""

    def end(value: float) -> str:
        """An end of an interval in four digits, or infinity."""
        if math.isinf(value):
            return "∞" if value > 0 else "−∞"
        return f"{value:.4g}".replace("-", "−")

    return " ∪ ".join(f"({end(a)}, {end(b)})" for a, b in intervals if a < b)


@cache
def least_m_with_a_gap(name: str, most: int = 10**6) -> int:
    """Fewest scores of each side at which the optimal set of a pair has a gap, found to a
    hundredth; ``most`` where there is none below.
    """
    pair = next(pair for pair in pairs() if pair.name == name)
    low, high = 1, most
    # Bisection: at ``low`` the set is one interval, at ``high`` it has a gap.
    while high - low > max(1, low // 100):
        middle = int(math.sqrt(low * high)) if high > 4 * low else (low + high) // 2
        if len(optimal_set(pair, middle).intervals) == 1:
            low = middle
        else:
            high = middle
    return high
