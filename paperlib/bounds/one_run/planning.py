"""What could an audit show, and how many examples does it need? Answered before anyone trains a
model.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from paperlib.bounds.one_run.forecast import (
    LARGEST_SIMULATED,
    MOST_EXAMPLES,
    SMALLEST_POWER,
    Forecast,
    SimulatedAudit,
    lends_scores,
)
from paperlib.core.checks import (
    FloatArray,
    IntArray,
    check_choice,
    check_confidence,
    check_counts,
    check_delta,
    check_in,
)
from paperlib.core.direction import reversed_direction
from paperlib.core.facts import Refusal
from paperlib.core.options import Guess
from paperlib.core.results import AuditResult, table
from paperlib.core.scores import MembershipScores
from paperlib.words import directions
from paperlib.words import plans as words

if TYPE_CHECKING:
    import pandas as pd

# Pilot examples where guesses are made; with fewer the fitted tail carries the number.
_SUPPORT = 30


@dataclass(frozen=True, kw_only=True, eq=False)
class AuditPlan(AuditResult):
    """What an audit of m examples could show, in nats, at the delta and confidence of the call.

    Attributes:
        total: Audit examples m, each included by a fair coin.
        target: Epsilon for which m was sought (nan where m was given).
        perfect: Epsilon that an audit with no wrong guess would show: the ceiling.
        attack: Words for the attack planned, "this attack" or "a perfect attack".
        power: Chance with which an audit by this attack shows `reached` or more.
        expected: Mean epsilon that this attack would show over simulated audits, 80 % of which lie
            between `low` and `high`.
    """

    total: int
    target: float = math.nan
    delta: float
    confidence: float
    perfect: float
    attack: str
    power: float
    reached: float
    expected: float
    low: float
    high: float
    simulations: int
    curve_guesses: IntArray
    curve_perfect: FloatArray
    guesses: int | None = None
    correct: int | None = None
    ceiling: float | None = None

    @property
    def headline(self) -> str:
        return words.headline(self)

    @property
    def curve(self) -> "pd.DataFrame":
        """DataFrame: guesses, and the epsilon shown if all of them are right."""
        return table({"guesses": self.curve_guesses, "perfect": self.curve_perfect})


def plan_audit(
    m: int | None = None,
    delta: float = 0.0,
    confidence: float = 0.95,
    *,
    epsilon: float | None = None,
    power: float = 0.8,
    attack: float | MembershipScores | None = None,
    guess: Guess = "adaptive",
    simulations: int | None = None,
    seed: int = 0,
) -> AuditPlan:
    """The epsilon that a perfect and a given attack could show on m examples, or the m that an
    epsilon needs.

    Args:
        m: Planned number of audit examples, 2 to 10 million; or give ``epsilon``.
        delta: Of (epsilon, delta)-DP, in [0, 1).
        confidence: Of the audit, in (0, 1).
        epsilon: Epsilon to be shown, nats, above 0: the smallest m is sought, to 2 %, with which a
            share ``power`` of audits shows it.
        power: Chance that an audit shows what is planned, in [0.5, 0.99].
        attack: None for a perfect attack; the AUC expected of the attack, in [0.5, 1), modelled as
            two normals of equal variance; or scores of a pilot attack. A pilot of ten times m
            examples and more lends its scores; for a smaller one every simulated audit has its own
            of the laws of ranks that the pilot leaves open.
        guess: Which sides the audit guesses, as in `audit_one_run`.
        simulations: Audits simulated, at least 1; by default 100, above m = 10,000 fewer, at least
            10; five times as many where m is sought.
        seed: Of the simulated audits, and of the laws of a pilot.

    Raises:
        ValueError: Neither or both of ``m`` and ``epsilon``, a value out of range, a pilot of fewer
            than 20 members or non-members, or an epsilon that no m up to 10 million shows with this
            chance. A `PilotCannotTellError` where too few of the attacks that the pilot leaves open
            show it at any m, and too many to rule it out.

    >>> round(plan_audit(1000, 1e-5).perfect, 1)
    5.6
    >>> plan = plan_audit(epsilon=1.0, attack=0.9, simulations=100)
    >>> 50 < plan.total < 90 and plan.reached >= 1.0
    True
    """
    check_choice("guess", guess, Guess)
    share = check_in(f"[{SMALLEST_POWER:g}, 0.99]", "power", power)
    forecast = Forecast(
        check_delta(delta), check_confidence(confidence), guess, attack, share, simulations, seed
    )
    if (m is None) == (epsilon is None):
        raise ValueError(
            "m, epsilon: give one of the two, the examples at hand or the epsilon to be shown"
        )
    if simulations is not None:
        check_counts("simulations", simulations, minimum=1)
    if epsilon is not None:
        target = check_in("(0, inf)", "epsilon", epsilon)
        total, audits = forecast.audits_for(target)
    else:
        target, total = math.nan, int(check_counts("m", 0 if m is None else m, minimum=2))
        if total > MOST_EXAMPLES:
            raise ValueError(f"m: expected at most {MOST_EXAMPLES}, got {m!r}")
        audits = forecast.audits(total)
    guesses = np.unique(np.geomspace(1, forecast.most_guesses(total), 200).astype(np.int64))
    perfect = forecast.perfect(guesses, total)
    epsilons = np.array([audit.epsilon for audit in audits])
    low, high = (float(np.quantile(epsilons, q)) for q in (0.1, 0.9))
    return AuditPlan(
        epsilon=None,
        claim=words.claim(
            total, float(perfect.max()), forecast.delta, forecast.confidence, forecast.guess
        ),
        assumptions=_assumptions(forecast, total),
        refusals=_refusals(forecast.attack),
        adjacency="add/remove",
        design="randomized",
        warnings=_warnings(forecast.attack, audits),
        total=total,
        target=target,
        delta=forecast.delta,
        confidence=forecast.confidence,
        perfect=float(perfect.max()),
        attack=words.attack_name(is_perfect=attack is None),
        power=share,
        reached=forecast.reached(epsilons),
        expected=float(epsilons.mean()),
        low=low,
        high=high,
        simulations=len(audits),
        curve_guesses=guesses,
        curve_perfect=perfect,
    )


def _assumptions(forecast: Forecast, total: int) -> tuple[str, ...]:
    """Sentences of what a plan of ``total`` examples takes for granted of the attack and of the
    simulated audits.
    """
    attack = forecast.attack
    if attack is None:
        scores_like = words.PERFECT
    elif not isinstance(attack, MembershipScores):
        scores_like = words.of_auc(attack)
    elif lends_scores(attack, min(total, LARGEST_SIMULATED)):
        scores_like = words.lent_scores(len(attack))
    else:
        scores_like = words.ranks_like_pilot(len(attack))
    largest_simulated = LARGEST_SIMULATED if total > LARGEST_SIMULATED else None
    return words.assumptions(scores_like, forecast.guess, largest_simulated)


def _refusals(attack: float | MembershipScores | None) -> tuple[Refusal, ...]:
    """A reversed direction of the pilot, where there is one."""
    if not isinstance(attack, MembershipScores):
        return ()
    return directions.refusals(reversed_direction(attack))


def _warnings(
    attack: float | MembershipScores | None, audits: list[SimulatedAudit]
) -> tuple[str, ...]:
    """A warning where the pilot saw too little of the guesses that give the simulated audits'
    bounds: fewer than 30 of its examples are guessed there, or none wrong. None without a pilot.
    """
    above_zero = [audit for audit in audits if audit.epsilon > 0]
    if not isinstance(attack, MembershipScores) or not above_zero or reversed_direction(attack):
        return ()
    guessed = float(np.median([audit.share for audit in above_zero]))
    wrong = float(np.median([audit.wrong for audit in above_zero]))
    if guessed * len(attack) >= _SUPPORT and wrong * len(attack) >= 1:
        return ()
    # Examples that a pilot needs for both; None: with no wrong guess no number is enough.
    enough = max(_SUPPORT / guessed, 1 / wrong) if wrong > 0 else None
    return (words.thin_pilot(guessed, wrong, len(attack), enough),)
