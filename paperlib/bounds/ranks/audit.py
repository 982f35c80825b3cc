"""Audits from ranks: how often the true value is among the best of its candidates."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from paperlib.bounds.one_run.anytime import failure_budget
from paperlib.bounds.one_run.tails import last_refuted
from paperlib.bounds.ranks.candidates import check_ranks
from paperlib.bounds.ranks.p_values import (
    CandidateSets,
    candidate_sets,
    check_delta_term,
    mean_failures_of_sets,
    p_value,
    rank_epsilon,
)
from paperlib.core.checks import FloatArray, IntArray, check_confidence, check_delta, check_vector
from paperlib.core.direction import REFUSED_LEVEL, REVERSED_LEVEL
from paperlib.core.facts import Refusal, reasons
from paperlib.core.options import DeltaTerm, RankBound
from paperlib.core.results import AuditResult
from paperlib.words import ranks as words

_LARGEST = 200.0  # nats; above it every success probability is 1 in floating point
_STEP = 0.25  # nats; width of a range of epsilon that one budget of failures serves
_TOLERANCE = 1e-9  # nats
_GRID = 65  # epsilons at which a search is begun where the p-value may fall and rise


@dataclass(frozen=True, kw_only=True, eq=False)
class RankAuditResult(AuditResult):
    """A lower bound on epsilon from ranks; fields not listed are arguments of `audit_ranks`.

    Attributes:
        epsilon: Lower bound, nats, under replacement of one value.
        search: "none" if every set counts, "anytime" if guesses are ordered by margin.
        guesses: Sets guessed where the evidence was strongest, of which ``correct`` are hits; all
            without a search.
        hit_rate: Hits among all sets, as a share.
        top: Smallest and largest number of places that count as a hit; likewise ``set_size``.
    """

    epsilon: float
    delta: float
    confidence: float
    bound: RankBound
    delta_term: DeltaTerm
    search: str
    sets: int
    guesses: int
    correct: int
    hit_rate: float
    top: tuple[int, int]
    set_size: tuple[int, int]
    total: int
    ceiling: float | None = None

    @property
    def headline(self) -> str:
        return words.headline(self)


def audit_ranks(
    ranks: ArrayLike,
    set_sizes: ArrayLike,
    *,
    top: ArrayLike = 1,
    delta: float = 0.0,
    confidence: float = 0.95,
    bound: RankBound = "tight",
    delta_term: DeltaTerm = "published",
    margins: ArrayLike | None = None,
) -> RankAuditResult:
    """Lower bound on epsilon from the ranks of the true values in their candidate sets.

    Guarantee:
        If training is (epsilon, delta)-DP under replacement of one value and each true value was
        drawn uniformly from its set, the result exceeds epsilon with probability at most 1 -
        confidence.

    Args:
        ranks: Place of the true value by the attack's score, 1 is best, shape (m,).
        set_sizes: Candidates per set with the true one, scalar or shape (m,), at least 2.
        top: Places that count as a hit, scalar or shape (m,), at most the set size; fixed in
            advance.
        delta: Of (epsilon, delta)-DP, in [0, 1).
        confidence: In (0, 1).
        bound: "tight" (ours) or "paper" (Theorem 1); they agree at top = 1.
        delta_term: "published", or "sharp" (ours; tight bound, no margins), which does not grow
            with the set size: the exact worst case for sets of one size and top, a martingale bound
            for mixed ones.
        margins: Confidence of the attack in each set, shape (m,), from scores alone
            (`score_margins`). Given, the sets are guessed from the surest on and every stopping
            point is searched. Sets of equal margins are guessed together, so that the order of the
            rows tells nothing.

    Raises:
        ValueError: Ranks outside their set, mismatched lengths, top above a set size, unknown
            options, or a "sharp" delta term with margins or the paper's bound.

    Source:
        Natural identifiers, Theorems 1 and 2 (dual solution of the proof); tight bound, sharp delta
        term and abstention are this project's.

    >>> audit_ranks([1] * 400 + [2] * 100, 64).headline
    'ε ≥ 5.341 (replacement, δ = 0, confidence 0.95, 400 of 500 hits)'
    """
    true_ranks, sizes = check_ranks(ranks, set_sizes)
    sets = candidate_sets(sizes, top, bound)
    check_delta_term(sets, delta_term)
    delta, confidence = check_delta(delta), check_confidence(confidence)
    hits = (true_ranks <= sets.tops[sets.kind]).astype(np.int64)
    surest = None
    knows_hits = False
    if margins is not None:
        surest = _checked_margins(margins, hits, delta_term)
        knows_hits = _part_hits_from_misses(surest, hits)

    def bound_of(hits: IntArray) -> tuple[float, int, int]:
        """The bound of these hits, with the guesses and the right ones where it is reached."""
        if surest is not None:
            return _search(hits, surest, sets, delta, confidence)
        correct = int(hits.sum())
        return _fixed(correct, sets, delta, confidence, delta_term), sets.count, correct

    epsilon, guesses, correct = bound_of(hits)
    ceiling = epsilon if epsilon > 0 else bound_of(np.ones_like(hits))[0]
    search = "none" if surest is None else "anytime"
    mixed_at_delta = delta > 0 and delta_term == "published" and sets.sizes.size > 1
    warnings = _warnings(sets, delta, confidence, delta_term, search)
    if knows_hits:
        warnings.append(words.MARGINS_KNOW_THE_HITS)
    return RankAuditResult(
        epsilon=epsilon,
        delta=delta,
        confidence=confidence,
        bound=sets.bound,
        delta_term=delta_term,
        search=search,
        sets=sets.count,
        guesses=guesses,
        correct=correct,
        hit_rate=float(hits.mean()),
        top=(int(sets.tops.min()), int(sets.tops.max())),
        set_size=(int(sets.sizes.min()), int(sets.sizes.max())),
        claim=words.claim(epsilon, delta, confidence, ceiling),
        condition=words.CONDITION,
        assumptions=words.assumptions(by_margin=surest is not None, mixed_at_delta=mixed_at_delta),
        adjacency="replace",
        unit="identifier",
        total=sets.count,
        design="candidates",
        refusals=reasons(_reversed(true_ranks, sizes)),
        warnings=tuple(warnings),
    )


def _checked_margins(margins: ArrayLike, hits: IntArray, delta_term: DeltaTerm) -> FloatArray:
    """The margins, shape (m,), if they can be those of the scores alone.

    Raises:
        ValueError: With the sharp delta term, of another length, or below 0 just where no hit is.
    """
    surest = check_vector("margins", margins)
    if delta_term == "sharp":
        raise ValueError(
            "delta_term: 'sharp' is for audits without abstention, got margins; use 'published'"
        )
    if surest.size != hits.size:
        raise ValueError(f"margins: expected {hits.size} values like ranks, got {surest.size}")
    if _part_hits_from_misses(surest, hits) and ((surest < 0) == (hits == 0)).all():
        raise ValueError(
            "margins: below 0 exactly where there is no hit, so they know it; use score_margins"
        )
    return surest


def _part_hits_from_misses(margins: FloatArray, hits: IntArray) -> bool:
    """Whether the margin of every hit is above that of every miss, among 20 sets or more."""
    if hits.size < 20 or hits.sum() in (0, hits.size):
        return False
    return bool(margins[hits == 1].min() > margins[hits == 0].max())


def _fixed(
    correct: int, sets: CandidateSets, delta: float, confidence: float, delta_term: DeltaTerm
) -> float:
    """The bound in nats where every set counts: the largest epsilon that ``correct`` hits
    refute.
    """
    level = 1.0 - confidence
    if sets.sizes.size == 1 and delta == 0:
        size, top = int(sets.sizes[0]), int(sets.tops[0])
        return float(
            rank_epsilon(
                correct, sets.count, size, top=top, confidence=confidence, bound=sets.bound
            )
        )

    def judged(epsilon: float) -> float:
        """The P-value at this epsilon, nats."""
        return p_value(correct, sets, epsilon, delta, delta_term)

    start = 0.0
    if sets.sizes.size > 1 and delta > 0 and delta_term == "sharp":
        pure = _largest_refuted(lambda e: p_value(correct, sets, e, 0.0, delta_term), level)
        # The martingale cost is worst at small epsilon, where coins vary little: there it may
        # refute nothing, though it refutes a larger epsilon and with it all smaller ones. The start
        # is the largest of a grid up to what is refuted at delta = 0.
        grid = np.linspace(pure, 0.0, _GRID).tolist()
        start = next((e for e in grid if judged(e) <= level), 0.0)
    return _largest_refuted(judged, level, start)


def _search(
    hits: IntArray, margins: FloatArray, sets: CandidateSets, delta: float, confidence: float
) -> tuple[float, int, int]:
    """The bound, nats, the guesses where it is reached and the hits among them, guessing from the
    surest set on.

    Args:
        hits: 1 where the true value is among the guessed ones, else 0, shape (m,).
        margins: Confidence of the attack in each set, shape (m,).
    """
    # Epsilon rises in steps. On each of them failures, hits that delta pays for, are budgeted at
    # its lower end, where they are most, so that the test there has one level and one number of
    # hits given up. A step that is refuted as a whole, up to its end, leads to the next; the first
    # epsilon that is not refuted ends the search.
    search, error, bound = _MarginSearch(hits, margins, sets), 1.0 - confidence, 0.0
    step = _STEP if delta > 0 else _LARGEST
    while bound < _LARGEST:
        start, end = bound, bound + step
        level, failures = failure_budget(mean_failures_of_sets(sets, delta, start), error)
        if not search.refutes(start, level, failures):
            break
        bound = end
        if not search.refutes(end, level, failures):
            refutes = partial(search.refutes, level=level, failures=failures)
            bound = float(last_refuted(refutes, start, end, _TOLERANCE))
            break
    return bound, *search.best


class _MarginSearch:
    """Asks whether any stopping point refutes an epsilon, the sets being guessed from the surest
    on.
    """

    # One mixture supermartingale covers every stopping point. An alternative raises the log-odds of
    # every set by one offset: a hit and a miss differ by it whatever the size, so giving up f hits
    # costs f offsets.
    def __init__(self, hits: IntArray, margins: FloatArray, sets: CandidateSets) -> None:
        """Take whether each set is a hit, 1 or 0, and its margin, both of shape (m,)."""
        order = np.argsort(-margins, kind="stable")
        hits_so_far = np.cumsum(hits[order], dtype=np.int64)
        last_rows = _last_rows_of_ties(margins[order])
        last_rows = last_rows[_can_be_best(last_rows, hits_so_far[last_rows])]
        guesses_by_kind = [
            np.cumsum(sets.kind[order] == kind)[last_rows] for kind in range(sets.sizes.size)
        ]
        self._sets = sets
        self._stops = last_rows + 1  # guesses up to each stop
        self._hits = hits_so_far[last_rows]
        self._seen = np.stack(guesses_by_kind, axis=1).astype(float)  # guesses, (stops, kinds)
        # The alternatives, nats. One nearer than 3 / sqrt(m) gathers no evidence from m sets.
        self._offsets = np.geomspace(min(1.0, 3.0 / np.sqrt(hits.size)), 12.0, 24)
        self._at = last_rows.size - 1  # number of the stop where the last epsilon was refuted

    @property
    def best(self) -> tuple[int, int]:
        """Guesses, and hits among them, where the last epsilon was refuted; all of them if none
        was.
        """
        if not self._stops.size:
            return self._sets.count, 0
        return int(self._stops[self._at]), int(self._hits[self._at])

    def refutes(self, epsilon: float, level: float, failures: int) -> bool:
        """Whether a stop refutes ``epsilon``, nats, at error ``level``, ``failures`` hits given up
        at each.
        """
        if not self._stops.size:
            return False
        # Log of (1 - p') / (1 - p), p' being the chance under an alternative; a hit has an offset
        # more.
        miss = -np.log1p(self._sets.chances(epsilon)[:, None] * np.expm1(self._offsets))
        # The stop that refuted the last epsilon is cheap to ask; only then all of them.
        for tried in (np.array([self._at]), np.arange(self._stops.size)):
            paths = self._seen[tried] @ miss + (self._hits[tried, None] - failures) * self._offsets
            evidence = np.logaddexp.reduce(paths, axis=1) - np.log(self._offsets.size)
            if evidence.max() >= -np.log(level):
                self._at = int(tried[np.argmax(evidence)])
                return True
        return False


def _last_rows_of_ties(ordered_margins: FloatArray) -> IntArray:
    """The last row of each block of equal margins, which are sorted; the only rows to stop after.

    Within a block the order of the rows decides, and it may know the ranks.
    """
    changes = np.flatnonzero(np.diff(ordered_margins))
    return np.append(changes, ordered_margins.size - 1)


def _can_be_best(last_rows: IntArray, hits: IntArray) -> NDArray[np.bool_]:
    """Which stops can show the most: the evidence rises with each hit and falls with each miss.

    ``hits`` are counted up to each stop. A stop after a block without hits shows less than the one
    before it, and a stop before a block of hits alone less than the one after it.
    """
    new_hits = np.diff(hits, prepend=0)
    new_rows = np.diff(last_rows, prepend=-1)
    only_hits = new_hits == new_rows
    return (new_hits > 0) & ~np.append(only_hits[1:], False)


def _largest_refuted(p_value: Callable[[float], float], level: float, start: float = 0.0) -> float:
    """Largest epsilon, nats, whose p-value is at most ``level``, from below; 0 if ``start`` is not
    refuted.
    """
    from scipy.optimize import brentq  # here, since it is slow to load

    if p_value(start) > level:
        return 0.0
    low, high = start, start + 1.0
    while p_value(high) <= level:
        low, high = high, 2.0 * high
        if high > _LARGEST:
            return low
    target = np.log(level)
    root = brentq(
        lambda e: np.log(max(p_value(e), 1e-300)) - target, low, high, xtol=_TOLERANCE / 4
    )
    # The root may lie on the wrong side by rounding: back from it until the p-value is refuted.
    step = _TOLERANCE / 2
    refuted = max(low, float(root) - step)
    while refuted > low and p_value(refuted) > level:
        step *= 2.0
        refuted = max(low, float(root) - step)
    return refuted


def _reversed(true_ranks: IntArray, sizes: IntArray) -> Refusal | None:
    """A refusal where the places are significantly worse than uniform ones, or a doubt, at the
    levels of a direction.
    """
    mean = float(((true_ranks - 0.5) / sizes).mean())
    spread = float(np.sqrt((1 - 1.0 / sizes**2).sum() / 12)) / true_ranks.size
    chance = float(ndtr((0.5 - mean) / spread))
    if chance > REVERSED_LEVEL:
        return None
    return words.reversed_places(mean, is_refused=chance <= REFUSED_LEVEL)


def _warnings(
    sets: CandidateSets, delta: float, confidence: float, delta_term: str, search: str
) -> list[str]:
    """Doubts about an audit that can show little or nothing, whatever the ranks: where all
    candidates are guessed, and where delta alone costs the whole error.
    """
    warnings: list[str] = []
    if (sets.tops == sets.sizes).all():
        warnings.append(words.EVERY_CANDIDATE_HITS)
    cost = delta * sets.total_size / sets.count
    error = 1.0 - confidence
    if search == "none" and delta_term == "published" and cost > error:
        warnings.append(words.delta_shows_nothing(cost, error))
    return warnings
