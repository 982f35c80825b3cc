"""What could an audit show? Answered before anyone trains a model."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri

from paperlib.bounds.one_run.anytime import anytime_with_failures
from paperlib.bounds.one_run.audit import audit_one_run
from paperlib.core import Sides, check_choice
from paperlib.core.checks import FloatArray, IntArray, check_confidence, check_counts, check_delta
from paperlib.core.results import AuditResult, round_down, table
from paperlib.core.scores import MembershipScores

if TYPE_CHECKING:
    import pandas as pd

_LARGEST_AUC = 1 - 1e-12


@dataclass(frozen=True, kw_only=True, eq=False)
class AuditPlan(AuditResult):
    """What an audit of m examples could show, before training.

    Attributes:
        total: Audit examples m, each included by a fair coin.
        delta: Delta of the guarantee to be tested.
        confidence: Confidence of the planned bound.
        perfect: Epsilon that an attack with no wrong guess would show, nats: the ceiling.
        expected: Mean epsilon that the given attack would show over simulated audits (nan
            without an attack).
        low: Tenth percentile over the simulated audits.
        high: Ninetieth percentile.
        simulations: Number of simulated audits.
    """

    total: int
    delta: float
    confidence: float
    perfect: float
    expected: float
    low: float
    high: float
    simulations: int
    curve_guesses: IntArray
    curve_perfect: FloatArray

    @property
    def headline(self) -> str:
        ceiling = (
            f"{self.total} examples can show ε up to {round_down(self.perfect):.3f} "
            f"(δ = {self.delta:g}, confidence {self.confidence:g})"
        )
        if math.isnan(self.expected):
            return ceiling
        return (
            f"{ceiling}; this attack would show {self.expected:.3f} on average "
            f"(80 % of audits: {self.low:.3f} to {self.high:.3f})"
        )

    @property
    def curve(self) -> "pd.DataFrame":
        """DataFrame: guesses, and the epsilon shown if all of them are right."""
        return table({"guesses": self.curve_guesses, "perfect": self.curve_perfect})


def plan_audit(
    m: int,
    delta: float = 0.0,
    confidence: float = 0.95,
    *,
    attack: float | MembershipScores | None = None,
    guess: Sides = "both",
    simulations: int = 100,
    seed: int = 0,
) -> AuditPlan:
    """The epsilon that a perfect and a given attack could show on m examples, before training.

    Args:
        m: Planned number of audit examples.
        delta: Delta of (epsilon, delta)-DP, in [0, 1).
        confidence: Confidence level of the bound, in (0, 1).
        attack: None; the AUC expected of the attack, in [0.5, 1), modelled as two normals of
            equal variance; or scores of a pilot attack, which are resampled.
        guess: "both" or "members", as in `audit_one_run`.
        simulations: Audits simulated for the given attack.
        seed: Seed of the simulation, 0 or more.

    Returns:
        The ceiling and, with an attack, the mean and the 10 % and 90 % points of its bound.

    Raises:
        ValueError: A value is out of range.

    Source:
        The default search of `audit_one_run`, applied to perfect and to simulated guesses.

    >>> print(plan_audit(1000, 1e-5).headline)
    1000 examples can show ε up to 5.573 (δ = 1e-05, confidence 0.95)
    """
    total = int(check_counts("m", m, minimum=2))
    delta, confidence = check_delta(delta), check_confidence(confidence)
    guesses = np.unique(np.geomspace(1, total, 200).astype(np.int64))
    check_choice("guess", guess, Sides)
    perfect = _perfect(guesses, total * delta, 1 - confidence, sides=2 if guess == "both" else 1)
    draws = () if attack is None else _draws(attack, total, int(simulations), seed)
    audits = (audit_one_run(scores, delta=delta, confidence=confidence, guess=guess) for scores in draws)
    shown = np.array([audit.epsilon for audit in audits])
    low, high = (float(np.quantile(shown, q)) for q in (0.1, 0.9)) if shown.size else (math.nan, math.nan)
    return AuditPlan(
        epsilon=None,
        claim=(
            f"An audit of {total} examples at delta = {delta:g} cannot show more than epsilon = "
            f"{math.ceil(1000 * float(perfect.max())) / 1000:.3f} at confidence {confidence:g}, however good "
            "the attack (add/remove adjacency, default search). A plan, not a measurement."
        ),
        assumptions=(
            "each example will be included by its own fair coin before training",
            "the bound will be computed by the default anytime search",
            _attack_words(attack),
        ),
        total=total,
        delta=delta,
        confidence=confidence,
        perfect=float(perfect.max()),
        expected=float(shown.mean()) if shown.size else math.nan,
        low=low,
        high=high,
        simulations=shown.size,
        curve_guesses=guesses,
        curve_perfect=perfect,
    )


def _perfect(guesses: IntArray, m_delta: float, error: float, *, sides: int) -> FloatArray:
    """The bound at each guess count when every guess is right."""
    counts = (np.array([r]) for r in guesses)
    return np.array(
        [anytime_with_failures(r, r, error=error, m_delta=m_delta, sides=sides).epsilon for r in counts]
    )


def _draws(
    attack: float | MembershipScores, total: int, simulations: int, seed: int
) -> Iterator[MembershipScores]:
    rng = np.random.default_rng(seed)
    for _ in range(simulations):
        yield _draw(attack, total, rng)


def _draw(attack: float | MembershipScores, total: int, rng: np.random.Generator) -> MembershipScores:
    """One audit's scores: fair coins, then normals or resampled pilot scores."""
    coins = rng.integers(0, 2, total).astype(bool)
    coins[:2] = True, False
    members = int(coins.sum())
    if isinstance(attack, MembershipScores):
        pilot = attack.oriented()
        return MembershipScores(
            rng.choice(pilot.member, members), rng.choice(pilot.nonmember, total - members)
        )
    if not 0.5 <= attack <= _LARGEST_AUC:
        raise ValueError(f"attack: expected an AUC in [0.5, 1), got {attack!r}")
    shift = math.sqrt(2) * float(ndtri(attack))
    return MembershipScores(rng.normal(shift, 1, members), rng.normal(0, 1, total - members))


def _attack_words(attack: float | MembershipScores | None) -> str:
    if attack is None:
        return "no attack is assumed; the ceiling is that of guesses without an error"
    if isinstance(attack, MembershipScores):
        return "the planned attack scores like the pilot, whose scores are resampled with replacement"
    return f"the planned attack has AUC {attack:g}, with normal scores of equal variance"
