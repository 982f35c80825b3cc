"""Sets of scores on which to guess, and the best one of two known densities: quadrature and root
finding.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from paperlib.core import FloatArray, IntArray, MembershipScores
from paperlib.core.checks import check_choice, check_confidence, check_counts
from paperlib.core.options import Sides

Density = Callable[[FloatArray], ArrayLike]
Mask = NDArray[np.bool_]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)  # of each cell of the quadrature
_FIRST_CELLS = 4096  # before any is halved
_CELL_MASS = 1 / 4096  # cells with more mass are halved
_ROUNDS = 12  # of halving such cells, at most
_HALVINGS = 24  # of the cell at a finite end
_PLATEAU = 1e-9  # a level this close below a flat stretch of the log-ratio takes all of it
_LEAST_DENSITY = 1e-280  # below, ratios of densities are rounding noise
_MASS_ALLOWED = (0.9, 1.001)  # of a density on the support
_REACH = 64  # node levels on each side of the best that bracket the stationary one


Intervals = tuple[tuple[float, float], ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class OutputSet:
    """A region of the real line on which to guess, and where to guess "member" inside it.

    Attributes:
        intervals: Disjoint intervals, rising; guess inside, abstain outside.
        member_intervals: Intervals in which a guess, if made, is "member"; elsewhere it is
            "nonmember".
        objective: Value that the choice of the set maximised, nats; -inf when the sampling error
            exceeds the accuracy.
        tau: Least |log p/q| in the set, nats; 0 where the set is not chosen by a level.
        accuracy: Share of right guesses among those made, under the densities or on the scores.
        mass: p(O) + q(O), under the densities or on the scores, in [0, 2].
    """

    intervals: Intervals
    member_intervals: Intervals
    objective: float
    tau: float
    confidence: float
    accuracy: float
    mass: float

    def contains(self, x: ArrayLike) -> NDArray[np.bool_]:
        """Whether each point lies in the set; same shape as ``x``."""
        return inside(self.intervals, x)

    def guess(self, x: ArrayLike) -> IntArray:
        """1 for member, -1 for nonmember, 0 for abstain; same shape as ``x``."""
        side = np.where(inside(self.member_intervals, x), 1, -1)
        return np.where(inside(self.intervals, x), side, 0).astype(np.int64)

    def __str__(self) -> str:
        intervals = [f"({low:.4g}, {high:.4g})" for low, high in self.intervals] or ["no guess"]
        return f"{' u '.join(intervals)}, tau = {self.tau:.4f}, objective = {self.objective:.4f}"


def intervals_of(
    cuts: FloatArray, within: NDArray[np.bool_], ends: tuple[float, float]
) -> Intervals:
    """The intervals [low, high) of a region of scores: disjoint, rising, in the unit of ``cuts``;
    none for an empty region.

    Args:
        cuts: Scores at which the region begins or ends, in turn, rising, shape (k,); k may be 0.
        within: Whether the scores before, between and after the cuts lie in it, shape (k + 1,).
            The first and the last are read.
        ends: What closes the region below the first cut and above the last one; may be infinite.

    Raises:
        ValueError: The cuts and the closed ends are odd in number, so that an interval has no end.
    """
    first = [ends[0]] if within[0] else []
    last = [ends[1]] if within[-1] else []
    flat = [*first, *(float(cut) for cut in cuts), *last]
    return tuple(zip(flat[::2], flat[1::2], strict=True))


def inside(intervals: Intervals, x: ArrayLike) -> NDArray[np.bool_]:
    """Whether each point, of any shape, is in one of the disjoint, rising intervals [low, high)."""
    cuts = np.array(intervals, dtype=np.float64).ravel()
    return np.searchsorted(cuts, np.asarray(x, dtype=np.float64), side="right") % 2 == 1


def overlap(first: Intervals, second: Intervals) -> Intervals:
    """Where points lie in both of two sets of disjoint, rising intervals."""
    pairs = ((max(a, c), min(b, d)) for a, b in first for c, d in second)
    return tuple(sorted(pair for pair in pairs if pair[0] < pair[1]))


def count_guesses(output_set: OutputSet, scores: MembershipScores) -> tuple[int, int]:
    """Numbers of right guesses and of guesses made by an output set on scores."""
    member, nonmember = output_set.guess(scores.member), output_set.guess(scores.nonmember)
    correct = int((member == 1).sum() + (nonmember == -1).sum())
    return correct, int((member != 0).sum() + (nonmember != 0).sum())


def optimal_output_set(
    p: Density,
    q: Density,
    *,
    m: int,
    support: tuple[float, float],
    confidence: float = 0.95,
    guess: Sides = "both",
) -> OutputSet:
    """The set that maximises the auditing objective when both densities are known.

    Among all sets of one mass, the level set {|log p/q| >= tau} has the most right guesses, so the
    search is over tau alone.

    Guarantee:
        No other set has a larger value of the objective (equation 4), up to the error of the
        quadrature (about 1e-8 for densities without a pole).

    Args:
        p: Density of the member scores, and ``q`` of the nonmember ones; maps an array to one of
            its shape.
        m: Scores drawn from each density, at least 1.
        confidence: Of the bound that the objective stands for, in (0, 1).
        support: Ends of the line; either may be infinite. An interval which reaches a finite
            end goes on to infinity if a density is still positive beyond it.
        guess: "both", or "members": only "member" is guessed, as PANORAMIA's tests must, on a
            level set {log p/q >= tau} with tau of 0 or more.

    Raises:
        ValueError: A density is negative, not finite or does not hold mass 1 on the support.

    Source:
        "Identifying Optimal Output Sets for Differential Privacy Auditing", equation 4 (with
        ln(1/beta), as printed), Definition 4.2 and Theorem 4.3.

    >>> from scipy.stats import norm
    >>> best = optimal_output_set(norm(1, 1).pdf, norm(0, 1).pdf, m=100, support=(-12, 12))
    >>> len(best.intervals), bool(best.contains(0.5))
    (2, False)
    """
    check_choice("guess", guess, Sides)
    return optimal_set_on(line_of(p, q, support, members_only=guess == "members"), m, confidence)


def optimal_set_on(line: "Line", m: int, confidence: float = 0.95) -> OutputSet:
    """The set of the largest auditing objective for two densities on cells that are laid already.

    Args:
        line: Both densities, and whether "member" alone is guessed.
        m: Scores drawn from each density, at least 1.
        confidence: In (0, 1).

    Raises:
        ValueError: ``m`` or ``confidence`` out of range.
    """
    m = int(check_counts("m", m, minimum=1))
    penalty = 2 * math.log(1 / (1 - check_confidence(confidence))) / m
    tau = best_level(line, penalty)
    mass, right = line.measure(tau)
    return OutputSet(
        intervals=line.level_set(tau),
        member_intervals=line.where(line.ratio >= 0, lambda x: line.ratio_at(x) >= 0),
        objective=objective_of(mass, right, m=m, confidence=confidence),
        tau=tau,
        confidence=confidence,
        accuracy=right / mass,
        mass=mass,
    )


def objective_of(mass: float, right: float, *, m: int, confidence: float = 0.95) -> float:
    """The auditing objective of a set (equation 4, as printed), nats; -inf where the sampling error
    exceeds the accuracy.

    Args:
        mass: Mass of p + q in the set, in (0, 2].
        right: Mass of max(p, q) in it.
        m: Scores drawn from each density.
        confidence: In (0, 1).
    """
    # y, the accuracy less its sampling error, is what the guesses show surely; then its log-odds.
    y = right / mass - math.sqrt(2 * math.log(1 / (1 - confidence)) / (m * mass))
    return math.log(y / (1 - y)) if y > 0 else -math.inf


@dataclass(frozen=True, kw_only=True, eq=False)
class Line:
    """Two densities on cells that are fine where the mass is."""

    p: Density  # first density
    q: Density  # second density
    ends: tuple[float, float]  # ends of an interval that reaches the first or last cell
    edges: FloatArray  # cell edges, shape (n + 1,), rising
    points: FloatArray  # Gauss-Legendre nodes of all cells, shape (8n,), rising
    ratio: FloatArray  # log p/q at the nodes, nats
    mass: FloatArray  # mass of p + q at each node (density times quadrature weight)
    right: FloatArray  # mass of max(p, q) at each node
    members_only: bool = False  # guess "member" alone: the level is log p/q, not its absolute value

    def ratio_at(self, x: FloatArray) -> FloatArray:
        """log p/q at any points, nats, same shape as ``x``."""
        return log_ratio(np.asarray(self.p(x), float), np.asarray(self.q(x), float))

    @property
    def levels(self) -> FloatArray:
        """|log p/q| at the nodes, or log p/q, nats, shape (nodes,)."""
        return self._level(self.ratio)

    def _level(self, ratio: FloatArray) -> FloatArray:
        return ratio if self.members_only else np.abs(ratio)

    def level_set(self, tau: float) -> Intervals:
        """{|log p/q| >= tau}, or {log p/q >= tau}; flat stretches within 1e-9 below tau belong to
        it.
        """
        least = tau - _PLATEAU
        return self.where(self.levels >= least, lambda x: self._level(self.ratio_at(x)) >= least)

    def where(self, inside: Mask, holds: Callable[[FloatArray], Mask]) -> Intervals:
        """Intervals in which a condition holds, given whether it does at each node, shape (nodes,);
        ``holds`` says it of any points.
        """
        change = np.flatnonzero(inside[1:] != inside[:-1])
        cuts = _bisect(holds, self.points[change], self.points[change + 1], inside[change])
        return intervals_of(cuts, inside, self.ends)

    def measure(self, tau: float) -> tuple[float, float]:
        """Mass of p + q and of max(p, q) on the set of the level ``tau``, nats."""
        cuts = np.array(self.level_set(tau), float).reshape(-1, 2)
        mass, right = self._cumulative(np.clip(cuts, self.edges[0], self.edges[-1]))
        return float((mass[:, 1] - mass[:, 0]).sum()), float((right[:, 1] - right[:, 0]).sum())

    def _cumulative(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mass of p + q and of max(p, q) below each point, both of the shape of ``x``: that of
        whole cells, and of the last one up to the point.
        """
        cell = np.clip(np.searchsorted(self.edges, x, side="right") - 1, 0, self.edges.size - 2)
        nodes, weights = _nodes(self.edges[cell].ravel(), x.ravel())
        p, q = np.asarray(self.p(nodes), float), np.asarray(self.q(nodes), float)
        partial_masses = (weights * (p + q)).sum(axis=1), (weights * np.maximum(p, q)).sum(axis=1)
        whole = (
            np.append(0.0, np.cumsum(v.reshape(-1, _NODES.size).sum(axis=1)))
            for v in (self.mass, self.right)
        )
        first, second = (
            total[cell] + partial_mass.reshape(x.shape)
            for total, partial_mass in zip(whole, partial_masses, strict=True)
        )
        return first, second


def log_ratio(p: FloatArray, q: FloatArray) -> FloatArray:
    """log p/q, nats, of densities of one shape, with 0 where both vanish and infinity where one
    does.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((p == 0) & (q == 0), 0.0, np.log(p) - np.log(q))


def line_of(
    p: Density, q: Density, support: tuple[float, float], *, members_only: bool = False
) -> Line:
    """Lay cells over the support, fine where p + q has its mass, and check both densities.

    Raises:
        ValueError: A support without length, or a density that has not mass 1 on it or is not
            finite.
    """
    low, high = (float(end) for end in support)
    if not low < high:
        raise ValueError(
            f"support: expected a lower end below the upper end, got ({low:g}, {high:g})"
        )
    edges = _refined(p, q, _first_edges(low, high).astype(np.float64))
    x, weights = _nodes(edges[:-1], edges[1:])
    values = [_evaluate(name, density, x) for name, density in (("p", p), ("q", q))]
    for name, value in zip("pq", values, strict=True):
        mass = float((weights * value).sum())
        if not _MASS_ALLOWED[0] <= mass <= _MASS_ALLOWED[1]:
            raise ValueError(
                f"{name}: expected a density with mass 1 on the support, found {mass:.4g}; "
                "give a support that holds its mass and is not very much wider"
            )
    # Cells at the ends in which the densities are too small to divide say nothing about the ratio.
    # Where such a cell is left out, or a density goes on beyond the support, an interval that
    # reaches this end goes on to infinity.
    solid = np.flatnonzero((values[0] + values[1]).min(axis=1) > _LEAST_DENSITY)
    keep = slice(int(solid[0]), int(solid[-1]) + 1)
    left, right = (value[keep] for value in values)
    return Line(
        p=p,
        q=q,
        ends=(
            low if keep.start == 0 and not _positive(p, q, low, -(high - low)) else -math.inf,
            high if keep.stop == len(x) and not _positive(p, q, high, high - low) else math.inf,
        ),
        edges=edges[keep.start : keep.stop + 1],
        points=x[keep].ravel(),
        ratio=log_ratio(left, right).ravel(),
        mass=(weights[keep] * (left + right)).ravel(),
        right=(weights[keep] * np.maximum(left, right)).ravel(),
        members_only=members_only,
    )


def _positive(p: Density, q: Density, end: float, outward: float) -> bool:
    """Whether one of two densities is positive just outside a finite end of the support.

    ``outward`` points away from the support and has its length, infinite for one that has no other
    end.
    """
    if not math.isfinite(end):
        return False
    width = abs(outward) if math.isfinite(outward) else max(abs(end), 1.0)
    beyond = np.array([end + math.copysign(1e-6 * width, outward)])
    with np.errstate(all="ignore"):
        return bool(np.any(np.asarray(p(beyond)) > 0) or np.any(np.asarray(q(beyond)) > 0))


def _evaluate(name: str, density: Density, x: FloatArray) -> FloatArray:
    """Values of a density at points, same shape; a ValueError unless each is finite and 0 or
    more.
    """
    values = np.asarray(density(x), dtype=np.float64)
    if values.shape != x.shape:
        raise ValueError(
            f"{name}: expected one density value per point, shape {x.shape}, got {values.shape}"
        )
    wrong = ~np.isfinite(values) | (values < 0)
    if wrong.any():
        where = f"got {values[wrong][0]:g} at x = {x[wrong][0]:g}"
        raise ValueError(f"{name}: expected finite densities of at least 0, {where}")
    return values


def _first_edges(low: float, high: float) -> FloatArray:
    """Edges of the first cells over the support, rising: even in a variable u in [0, 1] whose image
    crowds towards finite ends, where a density may grow without bound.
    """
    u: FloatArray = np.linspace(0.0, 1.0, _FIRST_CELLS + 1)
    if math.isfinite(low) and math.isfinite(high):
        # 3 u^2 - 2 u^3 rises from 0 to 1 and is flat at both ends, so that edges crowd there.
        u = np.unique(np.concatenate([_halved(u[1]), u, 1 - _halved(u[1])]))
        return low + (high - low) * u * u * (3 - 2 * u)
    if math.isinf(low) and math.isinf(high):
        # t in (-1, 1) is mapped to the line, with edges farther apart the farther out they lie.
        t = 2 * u[1:-1] - 1
        return t / (1 - t * t) ** 2
    # The distance from the one finite end: as u^2 near it, without limit as u nears 1.
    u = np.concatenate([[0.0], _halved(u[1]), u[1:-1]])
    outward = (u / (1 - u)) ** 2
    return low + outward if math.isfinite(low) else (high - outward)[::-1]


def _halved(width: float) -> FloatArray:
    """Edges inside the first cell (0, width): width / 2, width / 4 and so on, rising, so that
    quadrature fails at a pole of the density only where next to no mass is left.
    """
    return np.ldexp(np.full(_HALVINGS, width), np.arange(-_HALVINGS, 0))


def _refined(p: Density, q: Density, edges: FloatArray) -> FloatArray:
    """The edges, rising, of cells that are halved until each holds little mass of p + q, or twelve
    times.
    """
    for _ in range(_ROUNDS):
        x, weights = _nodes(edges[:-1], edges[1:])
        heavy = (weights * (_evaluate("p", p, x) + _evaluate("q", q, x))).sum(axis=1) > _CELL_MASS
        if not heavy.any():
            break
        edges = np.sort(np.concatenate([edges, (edges[:-1] + edges[1:])[heavy] / 2]))
    return edges


def _nodes(low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Gauss-Legendre nodes of the cells from ``low`` to ``high``, shape (cells,), and their
    weights; both (cells, 8).
    """
    half = (high - low)[:, None] / 2
    return (high + low)[:, None] / 2 + half * _NODES, half * _WEIGHTS


def _bisect(
    holds: Callable[[FloatArray], Mask], low: FloatArray, high: FloatArray, at_low: Mask
) -> FloatArray:
    """Where a condition changes between each ``low`` and ``high``, to rounding error, shape (n,);
    ``at_low``: whether it holds at ``low``.
    """
    while low.size:
        middle = (low + high) / 2
        if ((middle <= low) | (middle >= high) | (high - low < 1e-15 * np.abs(middle))).all():
            break
        same = holds(middle) == at_low
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    return (low + high) / 2


def best_level(line: Line, penalty: float) -> float:
    """The level tau of 0 or more whose set maximises ``accuracy - sqrt(penalty / mass)``.

    Args:
        line: The two densities on their cells. The set of a level has the mass of p + q where
            |log p/q| reaches it, and as accuracy its share of right guesses.
        penalty: 2 ln(1 / beta) / m, the weight of the sampling error of m examples.

    Returns:
        The level, nats.
    """
    # The best of all node levels first; then the level at which more mass neither gains nor loses:
    # with right = accuracy * mass, the derivative by mass is 0 where
    # ``expit(tau) = accuracy - sqrt(penalty / mass) / 2``, expit(tau) being the share of right
    # guesses in what is added at the level tau.
    from scipy.optimize import brentq  # here, since it is slow to load

    level = line.levels
    order = np.argsort(-level, kind="stable")[: np.count_nonzero(level >= 0)]
    mass, right = np.cumsum(line.mass[order]), np.cumsum(line.right[order])
    value = np.full(mass.shape, -np.inf)
    value[mass > 0] = right[mass > 0] / mass[mass > 0] - np.sqrt(penalty / mass[mass > 0])
    best, ordered = int(np.argmax(value)), level[order]

    def value_at(tau: float) -> float:
        """What is maximised, of the set of a level."""
        mass, right = line.measure(tau)
        return right / mass - math.sqrt(penalty / mass)

    def gain_of_less(tau: float) -> float:
        """Above 0 where the set gains by a higher level, by leaving out what lies at tau."""
        mass, right = line.measure(tau)
        return right / mass - 0.5 * math.sqrt(penalty / mass) - 1 / (1 + math.exp(-tau))

    # The optimum lies between the levels of the nodes `_REACH` places before and behind the best.
    at_whole = best + _REACH >= ordered.size  # the bracket reaches down to guessing everywhere
    if at_whole and gain_of_less(0.0) <= 0:
        return 0.0
    # Where the ratio is flat or jumps, the levels beside the best one are tried as well.
    above = ordered[ordered > ordered[best] + _PLATEAU][-1:]
    low = 0.0 if at_whole else float(ordered[best + _REACH])
    high = max([float(ordered[max(best - _REACH, 0)]), *above.tolist()])
    candidates = [float(ordered[best]), *above.tolist()]
    if math.isfinite(high) and low < high and gain_of_less(low) * gain_of_less(high) <= 0:
        candidates.append(float(brentq(gain_of_less, low, high, xtol=1e-13)))
    return max(reversed(candidates), key=value_at)
