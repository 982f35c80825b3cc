"""The test of a claimed trade-off curve from one training run, in the order of the adaptive
search.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from paperlib.bounds.claims.bets import highest_stake, limits_of
from paperlib.bounds.claims.curves import ClaimedCurve, Profile, gaussian_profile
from paperlib.bounds.one_run.adaptive import ends_of, reveal
from paperlib.bounds.one_run.fair_coins import (
    adjacency_of,
    fair_game,
    score_facts,
    score_warnings,
)
from paperlib.core.checks import FloatArray, check_confidence
from paperlib.core.direction import check_scores, reversed_direction
from paperlib.core.options import Design
from paperlib.core.results import AuditResult
from paperlib.core.scores import MembershipScores
from paperlib.words import directions
from paperlib.words.audits import claimed_curves as words
from paperlib.words.designs import CONDITIONS

# Claims that are tested one after the other, the most private first, until one holds. Each grid is
# fixed, so that the last refuted claim has the confidence of a single test.
_MU = np.arange(1, 301) / 50
_NOISE = 1.1 ** np.arange(14.0, -15.0, -1.0)
_AT_ONCE = 8  # curves of a grid in one pass over the guesses


@dataclass(frozen=True, kw_only=True, eq=False)
class CurveResult(AuditResult):
    """The test of a claimed trade-off curve; fields not listed as in `AuditResult`.

    Attributes:
        epsilon: None: the curve has a delta at every epsilon.
        claimed: The claim, as the user wrote it.
        p_value: Probability, at most, of so strong an attack if the claim were true, in (0, 1].
        refuted: Whether the p-value is at most ``1 - confidence``.
        mu: Lower bound on mu of mu-Gaussian DP, 0 or more: the training is not mu-GDP for any
            smaller mu. It holds at the confidence by itself.
        noise_share: Every noise of at least so many times the claimed one is refuted, together at
            the confidence; None where none is, or the claim has no noise.
    """

    claimed: str
    p_value: float
    refuted: bool
    mu: float
    noise_share: float | None

    @property
    def headline(self) -> str:
        return words.headline(self)


def audit_curve(
    scores: MembershipScores,
    claimed: ClaimedCurve,
    *,
    confidence: float = 0.95,
    design: Design = "randomized",
    seed: int = 0,
) -> CurveResult:
    """Test a claimed trade-off curve, as one hypothesis, on the scores of one training run.

    The order of the guesses is that of `audit_one_run` with guess "adaptive". Ties are broken at
    random.

    Guarantee:
        If training satisfies f-DP for the claimed curve f, it is refuted with probability at most
        ``1 - confidence``, whatever the mechanism; so do ``mu`` and ``noise_share`` by themselves.

    Args:
        scores: Scores of members and non-members whose inclusion was decided by fair coins.
        claimed: The curve.
        confidence: In (0, 1).
        design, seed: As for `audit_one_run`.

    Raises:
        ValueError: Counts that fair coins would not give, or a design that tests another adjacency
            than the curve has.

    Source:
        Ours (book, one-run audit: a whole trade-off curve).

    >>> rng = np.random.default_rng(0)
    >>> scores = MembershipScores(rng.normal(1, 1, 500), rng.normal(0, 1, 500))
    >>> half = ClaimedCurve("gaussian(mu=0.4)", gaussian_profile(0.4))
    >>> audit_curve(scores, half).refuted
    True
    """
    refusals = directions.refusals(reversed_direction(check_scores("scores", scores)))
    error = 1 - check_confidence(confidence)
    adjacency = adjacency_of(design)
    if claimed.is_add_remove and adjacency != "add/remove":
        raise ValueError(words.other_adjacency(claimed.name, design))
    scores = fair_game(scores, design, seed=seed)
    right = _guesses(scores, seed)
    total = len(scores)

    def refuted(profiles: list[Profile]) -> NDArray[np.bool_]:
        return np.asarray(highest_stake(right, limits_of(profiles, total, error)) >= 1)

    stake = float(highest_stake(right, limits_of([claimed.profile], total, error))[0])
    p_value = min(1.0, error / stake)
    noise_share = None
    if claimed.with_noise is not None:
        noise_share = _last_refuted(_NOISE, claimed.with_noise, refuted)
    mu = _last_refuted(_MU, gaussian_profile, refuted) or 0.0
    return CurveResult(
        epsilon=None,
        delta=0.0,
        confidence=confidence,
        total=total,
        guesses=right.size,
        correct=int(np.count_nonzero(right)),
        ceiling=None,
        claim=words.claim(claimed.name, p_value, confidence, adjacency, refuted=stake >= 1),
        condition=CONDITIONS[design],
        assumptions=words.assumptions(design),
        refusals=refusals,
        warnings=score_warnings(scores, design),
        notes=words.notes(mu, noise_share, confidence),
        **score_facts(scores, design),
        claimed=claimed.name,
        p_value=p_value,
        refuted=stake >= 1,
        mu=mu,
        noise_share=noise_share,
    )


def _guesses(scores: MembershipScores, seed: int) -> NDArray[np.bool_]:
    """Whether each guess of the adaptive order is right, shape (guesses,)."""
    values, labels = scores.oriented().pooled()
    # Coins for ties, from another stream of the seed than a game.
    coins = np.random.default_rng([seed, 1]).random(values.size)
    ranks = np.argsort(np.lexsort((coins, values))).astype(np.float64)
    return reveal(ends_of(ranks), labels).right


def _last_refuted(
    grid: FloatArray,
    profile_at: Callable[[float], Profile],
    refuted: Callable[[list[Profile]], NDArray[np.bool_]],
) -> float | None:
    """The last value of the grid, the most private first, up to which all claims are refuted; None
    where the first one is not.
    """
    last = None
    for values in _pieces(grid):
        are_refuted = refuted([profile_at(value) for value in values])
        if not are_refuted.all():
            first_kept = int(np.argmin(are_refuted))
            return values[first_kept - 1] if first_kept else last
        last = values[-1]
    return last


def _pieces(grid: FloatArray) -> Iterator[list[float]]:
    """The values of a grid in their order, a few at once."""
    for start in range(0, grid.size, _AT_ONCE):
        yield [float(value) for value in grid[start : start + _AT_ONCE]]
