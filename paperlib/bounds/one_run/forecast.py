"""What perfect and simulated attacks show in audits of a planned size, and the size that an epsilon needs."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np
from scipy.special import bdtrik, ndtri

from paperlib.bounds.one_run.anytime import anytime_with_failures
from paperlib.bounds.one_run.fair_coins import IMPLAUSIBLE
from paperlib.bounds.one_run.guesses import dyadic_counts
from paperlib.bounds.one_run.pilot import AttackLaw, laws_of_pilot
from paperlib.bounds.one_run.search import Hypothesis, search_thresholds
from paperlib.bounds.one_run.tails import refuted_log_odds
from paperlib.core import FloatArray, Guess, IntArray, MembershipScores, check_in
from paperlib.core.checks import check_confidence, check_counts, check_delta

MOST_EXAMPLES = 10_000_000
LARGEST_SIMULATED = 100_000  # examples; what larger audits show more is told by the counts expected
_LARGEST_AUC = 1 - 1e-12
_LAWS = 200  # drawn for a pilot
_EXAMPLES_SIMULATED, _FEWEST, _MOST = 1_000_000, 10, 100  # over all audits of a plan; audits
_ONE_SIDED = ("members", "nonmembers")


def perfect_epsilon(m: int, delta: float = 0.0, confidence: float = 0.95) -> float:
    """The epsilon, nats, that the default audit of m examples shows if every one of m guesses is right.

    Arguments and errors are those of `plan_audit`.

    Guarantee:
        No audit of m examples by the default search shows more, however good the attack.

    >>> round(perfect_epsilon(1000, 1e-5), 2)
    5.63
    """
    total = int(check_counts("m", m, minimum=1))
    m_delta, error = total * check_delta(delta), 1 - check_confidence(confidence)
    return anytime_with_failures(*2 * [np.array([total])], error=error, m_delta=m_delta, most=total).epsilon


@dataclass(frozen=True)
class SimulatedAudit:
    """What a simulated audit showed."""

    epsilon: float  # nats
    share: float  # of the examples, guessed where the bound is reached
    wrong: float  # of the examples, guessed wrong there


@dataclass(frozen=True)
class Forecast:
    """What an attack shows in audits of any size; each size is simulated from the same seed."""

    delta: float
    confidence: float
    guess: Guess
    attack: float | MembershipScores | None
    simulations: int | None  # audits of each size, or by default as many as are quick
    seed: int

    def most_guesses(self, total: int) -> int:
        """Largest number of guesses that can all be right: on one side, those of coins not refused."""
        if self.guess not in _ONE_SIDED:
            return total
        return min(total, int(np.ceil(bdtrik(1 - IMPLAUSIBLE / 2, total, 0.5))))

    def perfect(self, guesses: IntArray, total: int) -> FloatArray:
        """The bound at each guess count if all of them are right, nats, same shape as ``guesses``."""
        m_delta, error = total * self.delta, 1 - self.confidence
        if self.guess == "grid":
            sizes = np.append(dyadic_counts(total, smallest=4), 0)
            pairs = sizes[:, None] + sizes[None, :]
            tests = int(((pairs > 0) & (pairs <= total)).sum())
            return refuted_log_odds(guesses, guesses, error / tests, m_delta)
        sides = 1 if self.guess in _ONE_SIDED else 2
        alone = (
            anytime_with_failures(r, r, error=error, m_delta=m_delta, sides=sides, most=total)
            for r in guesses[:, None]
        )
        return np.array([bound.epsilon for bound in alone])

    def audits(self, total: int) -> list[SimulatedAudit]:
        """Simulated audits; above 100,000 examples, of 100,000, and what the counts expected show more."""
        if self.attack is None:
            return []
        hypothesis, simulated = Hypothesis(self.delta, 1 - self.confidence), list[SimulatedAudit]()
        for scores in self._draws(min(total, LARGEST_SIMULATED)):
            # The bound of `audit_one_run`, without the curve that it draws.
            best = search_thresholds(scores, self.guess, None, hypothesis, seed=0)
            guesses, correct = int(best.path.guesses[best.at]), int(best.path.correct[best.at])
            wrong = (guesses - correct) / len(scores)
            simulated.append(SimulatedAudit(best.epsilon, guesses / len(scores), wrong))
        if total <= LARGEST_SIMULATED:
            return simulated
        more = self._from_counts(total) - self._from_counts(LARGEST_SIMULATED)
        return [replace(audit, epsilon=audit.epsilon + more) for audit in simulated]

    def _draws(self, total: int) -> Iterator[MembershipScores]:
        count = self.simulations or max(_FEWEST, min(_MOST, _EXAMPLES_SIMULATED // total))
        rng = np.random.default_rng(self.seed)
        for i in range(count):
            if isinstance(self.attack, MembershipScores) and lends_scores(self.attack, total):
                pilot, members = self.attack.oriented(), int(np.clip(rng.binomial(total, 0.5), 1, total - 1))
                yield MembershipScores(
                    rng.choice(pilot.member, members, replace=False),
                    rng.choice(pilot.nonmember, total - members, replace=False),
                )
            else:
                yield self.laws[i * len(self.laws) // count].draw(total, rng)

    @cached_property
    def laws(self) -> list[AttackLaw]:
        """Laws of the attack's ranks, each as likely as the others."""
        if isinstance(self.attack, MembershipScores):
            return laws_of_pilot(self.attack, _LAWS, seed=self.seed)
        auc = check_in("[0.5, 1)", "attack", self.attack)
        return [AttackLaw(math.sqrt(2) * float(ndtri(min(auc, _LARGEST_AUC))))]

    def examples_for(self, target: float) -> int:
        """The smallest audit that shows ``target`` on average; with an attack, to two digits."""

        def ceiling(total: int) -> float:
            return float(self.perfect(np.array([self.most_guesses(total)]), total)[0])

        least = _first(ceiling, target, 2, MOST_EXAMPLES + 1)
        total = least if least is None or self.attack is None else self._first_size(least, target)
        if total is None:
            raise ValueError(
                f"epsilon: no audit of up to {MOST_EXAMPLES} examples shows {target:g} on average; ask for "
                "less, or plan a better attack, a smaller delta or a lower confidence"
            )
        return total

    def _first_size(self, least: int, target: float) -> int | None:
        tens = [digits * 10**power for power in range(6) for digits in range(10, 100)]
        sizes = [m for m in (*range(2, 10), *tens, MOST_EXAMPLES) if m >= least]

        @cache
        def counted(i: int) -> float:
            return self._from_counts(sizes[i])

        @cache
        def shown(i: int) -> float:
            return float(np.mean([audit.epsilon for audit in self.audits(sizes[i])]))

        at = _first(counted, target, 0, len(sizes)) or 0
        for _ in range(2):  # what is simulated lies above or below what the counts say, by much the same
            at = _first(counted, target - shown(at) + counted(at), at, len(sizes)) or at
        first = _first(shown, target, at, len(sizes))
        return None if first is None else sizes[first]

    def _from_counts(self, total: int) -> float:
        """The bound if right guesses came in the numbers expected of them, on average over some laws."""
        counts = np.unique(np.geomspace(1, total // 2, 300).astype(np.int64))
        return float(np.mean([self._of_law(law, counts, total) for law in self.laws[:: _LAWS // 20]]))

    def _of_law(self, law: AttackLaw, counts: IntArray, total: int) -> float:
        shares = counts / total
        top = (1 - law.members_below(1 - shares)) * total / 2
        bottom = counts - law.members_below(shares) * total / 2
        paths = {"members": (top, counts), "nonmembers": (bottom, counts), "both": (top + bottom, 2 * counts)}
        error, m_delta = 1 - self.confidence, total * self.delta
        return max(
            anytime_with_failures(
                np.floor(right).astype(np.int64), guesses, error=error, m_delta=m_delta, most=total
            ).epsilon
            for side, (right, guesses) in paths.items()
            if side == self.guess or self.guess not in paths
        )


def lends_scores(pilot: MembershipScores, total: int) -> bool:
    """Whether a pilot is large enough to draw whole audits of ``total`` examples from it, none repeated."""
    return min(pilot.member.size, pilot.nonmember.size) >= 2 * total


def _first(bound: Callable[[int], float], aim: float, start: int, end: int) -> int | None:
    """The smallest whole number below ``end`` whose bound reaches the aim, sought from ``start`` on."""
    step = 1
    if bound(start) >= aim:
        low, high = start - 1, start
        while low >= 0 and bound(low) >= aim:
            low, high, step = max(low - 2 * step, -1), low, 2 * step
    else:
        low, high = start, start + 1
        while high < end and bound(high) < aim:
            low, high, step = high, high + 2 * step, 2 * step
        if high >= end:
            high = end - 1
            if low == high or bound(high) < aim:
                return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if bound(middle) >= aim else (middle, high)
    return high
