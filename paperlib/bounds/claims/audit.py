"""The test of a claimed trade-off curve from one training run or several, in the order of the
adaptive search.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paperlib.bounds.claims.curves import ClaimedCurve, gaussian_profile
from paperlib.bounds.claims.detection import ClaimLimit, limit_of_claim
from paperlib.bounds.claims.ordered_claims import ClaimTest
from paperlib.bounds.one_run.adaptive import ends_of, reveal
from paperlib.bounds.one_run.fair_coins import (
    adjacency_of,
    fair_game,
    score_facts,
    score_warnings,
)
from paperlib.core.checks import check_confidence
from paperlib.core.direction import check_scores, reversed_direction
from paperlib.core.options import Design
from paperlib.core.results import AuditResult, json_ready
from paperlib.core.scores import MembershipScores
from paperlib.words import directions
from paperlib.words.audits import claimed_curves as words
from paperlib.words.designs import CONDITIONS

# Least private claims of the cells, the most private cell first (`ordered_claims`).
MU_GRID = 0.02 * 1.1 ** np.arange(60.0)  # up to 5.5
_NOISE = 1.1 ** np.arange(14.0, -15.0, -1.0)  # of the claimed noise: from 3.8 times to .26 times
_SIMULATED = 200_000  # examples up to which the limit of detection takes seconds


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
        runs: Number of training runs.
    """

    claimed: str
    p_value: float
    refuted: bool
    mu: float
    noise_share: float | None
    runs: int = 1
    _limit: Callable[[], ClaimLimit] | None = None

    @property
    def headline(self) -> str:
        return words.headline(self)

    @cached_property
    def detection(self) -> ClaimLimit | None:
        """How much less noise than claimed the audit would have shown, simulated when asked for;
        None without a noise, and of more than 200,000 examples.
        """
        return None if self._limit is None else self._limit()

    @property
    def remarks(self) -> tuple[str, ...]:
        # Where `detection` was asked for, it is kept among the attributes.
        detection = vars(self).get("detection")
        return self.notes if detection is None else (*self.notes, detection.sentence)

    def seen(self) -> str:
        return "" if self.detection is None else self.detection.sentence

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "detection": json_ready(self.detection)}


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
        design: "randomized": fair coins decided membership before training; "game": draw a
            fair-coin subsample now; "played": fair coins decided after training who is shown.
        seed: Of the game, and of the order of ties.

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
    check_adjacency(claimed, design)
    scores = fair_game(scores, design, seed=seed)
    test = ClaimTest(right_guesses(scores, seed), len(scores), error)
    return CurveResult(
        **outcome_of(test, claimed, design),
        condition=CONDITIONS[design],
        assumptions=words.assumptions(design),
        refusals=refusals,
        warnings=score_warnings(scores, design),
        **score_facts(scores, design),
    )


def check_adjacency(claimed: ClaimedCurve, design: Design) -> None:
    """Refuse (ValueError) a curve of another adjacency than the design tests."""
    if claimed.is_add_remove and adjacency_of(design) != "add/remove":
        raise ValueError(words.other_adjacency(claimed.name, design))


def outcome_of(test: ClaimTest, claimed: ClaimedCurve, design: Design) -> dict[str, Any]:
    """The fields of a `CurveResult` that the guesses settle, by name.

    They are what is refuted and how far, the counts of the guesses, the sentences about both, and
    the limit of detection, which is computed when asked for; None of a claim without noise and of
    an audit of more than 200,000 examples.
    """
    p_value, confidence = test.p_value(claimed.profile), 1 - test.error
    refuted = p_value <= test.error
    mu = test.last_refuted(MU_GRID, gaussian_profile) or 0.0  # None where no mu is refuted
    runs = (test.right, *(test.later or ()))  # whether each guess is right, by run
    noise_share, limit = None, None
    if claimed.with_noise is not None:
        noise_share = test.last_refuted(_NOISE, claimed.with_noise)
        if test.total <= _SIMULATED:
            limit = partial(limit_of_claim, claimed.with_noise, test.total, confidence=confidence)
    return {
        "epsilon": None,
        "delta": 0.0,
        "confidence": confidence,
        "total": test.total,
        "guesses": sum(right.size for right in runs),
        "correct": sum(int(np.count_nonzero(right)) for right in runs),
        "ceiling": None,
        "claim": words.claim(
            claimed.name, p_value, confidence, adjacency_of(design), refuted=refuted
        ),
        "notes": words.notes(mu, noise_share, confidence),
        "claimed": claimed.name,
        "p_value": p_value,
        "refuted": refuted,
        "mu": mu,
        "noise_share": noise_share,
        "_limit": limit,
    }


def right_guesses(scores: MembershipScores, seed: int) -> NDArray[np.bool_]:
    """Whether each guess of the adaptive order is right, shape (guesses,), in that order; ``seed``
    orders tied scores.
    """
    values, labels = scores.oriented().pooled()
    # Coins for ties, from another stream of the seed than a game.
    coins = np.random.default_rng([seed, 1]).random(values.size)
    ranks = np.argsort(np.lexsort((coins, values))).astype(np.float64)
    return reveal(ends_of(ranks), labels).right
