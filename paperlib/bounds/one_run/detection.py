"""What an audit could not have seen: the fewest exposed records with which it would have shown a
leak.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from paperlib.bounds.one_run.anytime import AnytimeCounts
from paperlib.bounds.one_run.fair_coins import fair_game
from paperlib.bounds.one_run.guesses import path_of
from paperlib.core import Design, FloatArray, Guess, MembershipScores, check_choice, check_in
from paperlib.core.checks import check_confidence, check_counts, check_delta, check_nonnegative

_BEYOND = 20  # records looked at beyond as many as are exposed, at each end


@dataclass(frozen=True, kw_only=True)
class DetectionLimit:
    """The fewest exposed records with which an audit shows a leak; the other fields are those of
    the call.

    Attributes:
        records: Their number; None if as many as there are would not be seen.
        of: Number of records that could be exposed, and ``exposed`` says which and what exposed
            means.
    """

    records: int | None
    of: int
    exposed: str
    epsilon: float
    power: float

    @property
    def sentence(self) -> str:
        """What the audit would have seen, and what that does not cover."""
        shown = "a leak" if self.epsilon == 0 else f"more than epsilon = {self.epsilon:g}"
        if self.records is None:
            return (
                f"Had all {self.of} {self.exposed}, this audit would still not have shown {shown}."
            )
        return (
            f"Had {self.records} of {self.of} {self.exposed} and nothing else leaked, this audit "
            f"would have shown {shown} in {100 * self.power:g} % of cases. What another attack "
            "exposes is not covered."
        )


def limit_of_detection(
    scores: MembershipScores,
    *,
    delta: float = 0.0,
    confidence: float = 0.95,
    guess: Guess = "adaptive",
    design: Design = "randomized",
    epsilon: float = 0.0,
    strength: float = math.inf,
    power: float = 0.8,
    simulations: int = 100,
    seed: int = 0,
) -> DetectionLimit:
    """How few exposed records the default search of `audit_one_run` would have shown, on these
    scores.

    Audits are simulated on the ranks of the scores: new fair coins are tossed, so that no record
    leaks, and then some records are exposed. Fewer than the number returned are shown less often
    than ``power``.

    Args:
        scores, delta, confidence, guess, design: As in `audit_one_run`; "grid" has no such limit.
        epsilon: What the bound must exceed to count as shown, nats.
        strength: Exposed records stand above all others (with "nonmembers": below), and each is a
            member (a non-member) with log-odds ``strength``, nats; at infinity all are.
        power: Share of the audits that must show it, in (0, 1).
        simulations: Audits simulated for each number of records tried.

    Raises:
        ValueError: A value out of range.

    >>> rng = np.random.default_rng(0)
    >>> scores = MembershipScores(rng.normal(size=500), rng.normal(size=500))
    >>> limit_of_detection(scores).records
    9
    """
    m_delta_of, error = check_delta(delta), 1 - check_confidence(confidence)
    check_choice("guess", guess, Guess)
    epsilon, power = check_nonnegative("epsilon", epsilon), check_in("(0, 1)", "power", power)
    strength = check_in("(0, inf]", "strength", strength)
    check_counts("simulations", simulations, minimum=1)
    if guess == "grid":
        raise ValueError(
            'guess: "grid" has no limit of detection; expected one of the anytime searches'
        )
    played = fair_game(scores, design, seed=seed).oriented()
    values, total = np.sort(played.pooled()[0])[::-1], len(played)
    sides, side, place = (1 if guess in ("members", "nonmembers") else 2), "members", "above"
    if guess == "nonmembers":  # the mirror image of an audit of members
        values, guess, side, place = -values[::-1], "members", "non-members", "below"
    right = 1 / (1 + math.exp(-strength))
    test = AnytimeCounts(error, total * m_delta_of, sides, total)
    # Without ties ranks alone count, and they are those of every audit of this size.
    untied = bool((np.diff(values) < 0).all())
    settings = guess, test, right, epsilon, seed
    simulated = _simulated_ranks(total, *settings) if untied else _simulated(values, *settings)
    most = total if right < 1 else (total + 1) // 2
    records = fewest_shown(simulated, most, power, simulations)
    of = {"members": played.member.size, "non-members": played.nonmember.size}[side]
    exposed = f"{side} been ranked {place} all other records"
    if strength < math.inf:
        of, exposed = total, f"records been ranked {place} all others, {right:.0%} of them {side}"
    if records is not None and records > of:
        records = None
    return DetectionLimit(records=records, of=of, exposed=exposed, epsilon=epsilon, power=power)


@lru_cache(maxsize=16)  # each holds its ranks
def _simulated_ranks(total: int, *settings: Any) -> Callable[[int, int], bool]:
    return lru_cache(maxsize=None)(_simulated(np.arange(total, 0, -1.0), *settings))


def _simulated(
    values: FloatArray, guess: Guess, test: AnytimeCounts, right: float, epsilon: float, seed: int
) -> Callable[[int, int], bool]:
    """Whether a simulated audit shows a number of exposed records, each a member with a chance
    ``right``.
    """
    m, ascending = values.size, values[::-1]

    def shown(exposed: int, at: int) -> bool:
        # Records with these scores and new coins, at the stopping points that the exposed ones bear
        # on.
        rng = np.random.default_rng([seed, at])
        labels = np.append(rng.random(exposed) < right, rng.random(m) < 0.5)
        reach = exposed + _BEYOND
        if m > 4 * reach:  # what lies far inside is guessed after them; tied scores stay together
            top = m - np.searchsorted(ascending, values[reach : reach + 1])
            bottom = m - np.searchsorted(ascending, values[m - reach : m - reach + 1], side="right")
            rest = np.append(values[: top[0]], values[max(top[0], bottom[0]) :])
        else:
            rest = np.delete(values, rng.choice(m, exposed, replace=False))
        spiked = np.append(values[0] + np.arange(exposed, 0, -1.0), rest)
        path = path_of(spiked, labels[: spiked.size], guess, total=m)
        return test.refutes(path.correct, path.guesses, epsilon)

    return shown


def fewest_shown(
    shown: Callable[[int, int], bool], most: int, power: float, simulations: int
) -> int | None:
    """The smallest number up to ``most`` that a share ``power`` of simulated audits shows, or
    None.
    """
    needed = math.ceil(power * simulations)

    def often(records: int) -> bool:
        hits = 0
        for at in range(simulations):
            hits += shown(records, at)
            if hits >= needed or hits + simulations - at - 1 < needed:
                break  # it is certain already
        return hits >= needed

    low, high = 0, min(8, most)  # sought by doubling and halving
    while not often(high):
        if high == most:
            return None
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if often(middle) else (middle, high)
    return high
