"""What an audit could not have seen: the fewest exposed records with which it would have shown a
leak.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from paperlib.bounds.one_run.adaptive import Flags
from paperlib.bounds.one_run.anytime import AnytimeCounts
from paperlib.bounds.one_run.fair_coins import fair_game
from paperlib.bounds.one_run.guesses import path_of
from paperlib.bounds.one_run.simulated_games import play_ends
from paperlib.core import FloatArray, MembershipScores
from paperlib.core.checks import (
    check_choice,
    check_confidence,
    check_counts,
    check_delta,
    check_in,
    check_nonnegative,
)
from paperlib.core.options import Design, Guess
from paperlib.words import detection as words

_BEYOND = 20  # records looked at beyond as many as are exposed, at each end
_AT_A_TIME = 2_000_000  # records of the audits that are simulated side by side


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
        return words.sentence(self)


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
        scores: Of members and non-members, of which the order and the ties count.
        delta, confidence: Of the audit: in [0, 1), and in (0, 1).
        guess: Which sides the audit guesses, as in `audit_one_run`; "grid" has no such limit.
        design: How membership was decided, as in `audit_one_run`; for "game" one is drawn first.
        epsilon: What the bound must exceed to count as shown, nats.
        strength: Exposed records stand above all others (with "nonmembers": below), and each is a
            member (a non-member) with log-odds ``strength``, nats; at infinity all are.
        power: Share of the audits that must show it, in (0, 1).
        simulations: Audits simulated for each number of records tried.
        seed: Of a game, and of the simulated audits.

    Raises:
        ValueError: A value out of range, the guess "grid", or counts that fair coins would not
            give.

    >>> rng = np.random.default_rng(0)
    >>> scores = MembershipScores(rng.normal(size=500), rng.normal(size=500))
    >>> limit_of_detection(scores).records
    9
    """
    delta = check_delta(delta)
    error = 1 - check_confidence(confidence)
    check_choice("guess", guess, Guess)
    epsilon = check_nonnegative("epsilon", epsilon)
    power = check_in("(0, 1)", "power", power)
    strength = check_in("(0, inf]", "strength", strength)
    check_counts("simulations", simulations, minimum=1)
    if guess == "grid":
        raise ValueError(
            'guess: "grid" has no limit of detection; expected one of the anytime searches'
        )
    played = fair_game(scores, design, seed=seed).oriented()
    values = np.sort(played.pooled()[0])[::-1]  # of members and non-members, the highest first
    total = len(played)
    sides = 1 if guess in ("members", "nonmembers") else 2
    is_above = guess != "nonmembers"
    if not is_above:  # the mirror image of an audit of members
        values, guess = -values[::-1], "members"
    right = 1 / (1 + math.exp(-strength))  # chance that an exposed record is what it looks like
    test = AnytimeCounts(error, total * delta, sides, total)
    # Without ties ranks alone count, and they are those of every audit of this size.
    is_untied = bool((values[1:] < values[:-1]).all())
    audits = _SimulatedAudits(
        np.arange(total, 0, -1.0) if is_untied else values, guess, test, right, epsilon, seed
    )
    most = total if right < 1 else (total + 1) // 2  # surely exposed records are on one side
    needed = math.ceil(power * simulations)
    records = fewest_with(lambda number: audits.shown(number, simulations) >= needed, most)
    number_of = (played.member if is_above else played.nonmember).size
    exposed = words.ranked(above=is_above)
    if strength < math.inf:
        number_of = total
        exposed = words.ranked_mostly(right, above=is_above)
    if records is not None and records > number_of:
        records = None
    return DetectionLimit(
        records=records, of=number_of, exposed=exposed, epsilon=epsilon, power=power
    )


@dataclass(frozen=True, eq=False)
class _SimulatedAudits:
    """Audits of records with these scores and new coins, of which some records are exposed."""

    values: FloatArray  # highest first, shape (m,)
    guess: Guess
    test: AnytimeCounts
    right: float  # chance that an exposed record is a member
    epsilon: float  # what the bound must exceed to show a leak, nats
    seed: int

    def shown(self, exposed: int, simulations: int) -> int:
        """How many of ``simulations`` audits show a leak, with ``exposed`` records exposed in
        each.
        """
        audits = [self._drawn(exposed, number) for number in range(simulations)]
        if self.guess != "adaptive":
            return sum(self._refutes(values, members) for values, members in audits)
        # Side by side, as many at a time as fit well into memory.
        size = max(1, _AT_A_TIME // audits[0][0].size)
        starts = range(0, simulations, size)
        return sum(self._shown_together(audits[start : start + size]) for start in starts)

    def _drawn(self, exposed: int, number: int) -> tuple[FloatArray, Flags]:
        """The scores of audit ``number``, highest first, and whether each is a member, both of
        shape (n,): of a small audit all m of them, of a large one those at both ends, whose
        stopping points the exposed records bear on.
        """
        rng = np.random.default_rng([self.seed, number])
        m = self.values.size
        # More coins than are needed: always as many are drawn, and those beyond n are left out.
        members = np.append(rng.random(exposed) < self.right, rng.random(m) < 0.5)
        reach = exposed + _BEYOND
        if m > 4 * reach:  # what lies far inside is guessed after them; tied scores stay together
            top = int(np.count_nonzero(self.values >= self.values[reach]))
            bottom = int(np.count_nonzero(self.values > self.values[m - reach]))
            rest = np.append(self.values[:top], self.values[max(top, bottom) :])
        else:
            rest = np.delete(self.values, rng.choice(m, exposed, replace=False))
        # The exposed records stand above all others, each at a score of its own.
        exposed_first = np.append(self.values[0] + np.arange(exposed, 0, -1.0), rest)
        return exposed_first, members[: exposed_first.size]

    def _refutes(self, values: FloatArray, members: Flags) -> bool:
        """Whether one audit with a fixed order shows a leak."""
        path = path_of(values, members, self.guess, total=self.values.size)
        return self.test.refutes(path.correct, path.guesses, self.epsilon)

    def _shown_together(self, audits: list[tuple[FloatArray, Flags]]) -> int:
        """How many of these audits show a leak, by the adaptive order, played side by side;
        ``audits`` are the scores and coins of `_drawn`, all of one size.
        """
        values: list[FloatArray] = []
        members: list[Flags] = []
        for scores, coins in audits:
            values.append(scores)
            members.append(coins)
        points = play_ends(np.stack(values), np.stack(members), self.values.size)
        correct, guesses = points.correct, points.guesses
        shows = self.test.refuting(correct, guesses, points.game, len(audits), self.epsilon)
        return int(np.count_nonzero(shows))


def fewest_with(often: Callable[[int], bool], most: int) -> int | None:
    """The smallest number from 1 up to ``most`` for which ``often`` holds, or None: by doubling and
    halving, as what holds for a number holds for larger ones.
    """
    low, high = 0, min(8, most)
    while not often(high):
        if high == most:
            return None
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        if often(middle):
            high = middle
        else:
            low = middle
    return high


def fewest_shown(
    shows: Callable[[int, int], bool], most: int, power: float, simulations: int
) -> int | None:
    """The smallest number of exposed records that a share ``power`` of simulated audits shows, or
    None where ``most`` of them are too few.

    Args:
        shows: Takes a number of records and the number of an audit, from 0, and returns whether
            this audit shows them.
        most: Largest number of records that is tried, 1 or more.
        power: In (0, 1).
        simulations: Audits simulated for each number of records.
    """

    def shown(records: int, audits: range) -> int:
        """How many of the audits of these numbers show so many records."""
        return sum(shows(records, audit) for audit in audits)

    return fewest_shown_together(shown, most, power, simulations, 1)


def fewest_shown_together(
    shown: Callable[[int, range], int], most: int, power: float, simulations: int, at_a_time: int
) -> int | None:
    """The smallest number of exposed records that a share ``power`` of simulated audits shows,
    where several audits are simulated side by side.

    Args:
        shown: Takes a number of records and a range of numbers of audits, and returns how many of
            these audits show that number.
        most: Largest number of records that is tried, 1 or more.
        power: Share of the simulated audits that must show it, in (0, 1).
        simulations: Audits simulated for each number of records.
        at_a_time: The most audits that ``shown`` is asked for at once.

    Returns:
        The smallest number of records, or None where ``most`` are too few.
    """
    needed = math.ceil(power * simulations)

    def often(records: int) -> bool:
        """Whether at least the share ``power`` of simulated audits of so many records shows
        them.
        """
        hits = 0
        for start in range(0, simulations, at_a_time):
            audits = range(start, min(start + at_a_time, simulations))
            hits += shown(records, audits)
            if hits >= needed or hits + simulations - audits.stop < needed:
                break  # it is certain already
        return hits >= needed

    return fewest_with(often, most)
