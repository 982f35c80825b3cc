"""Simulated audits of a planned size, and the size that an epsilon needs."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial

import numpy as np
from scipy.special import ndtri

from paperlib.bounds.one_run.anytime import anytime_with_failures
from paperlib.bounds.one_run.ceiling import most_guesses, perfect_curve
from paperlib.bounds.one_run.pilot import AttackLaw, laws_of_pilot
from paperlib.bounds.one_run.search import Hypothesis, search_thresholds
from paperlib.core import FloatArray, Guess, IntArray, MembershipScores, check_in

MOST_EXAMPLES = 10_000_000
LARGEST_SIMULATED = 100_000  # examples; what larger audits show more is told by the counts expected
_LARGEST_AUC = 1 - 1e-12
_LAWS = 200  # drawn for a pilot
_EXAMPLES_SIMULATED, _FEWEST, _MOST = 1_000_000, 10, 100  # over all audits of a plan; audits


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

    def ceiling(self, total: int) -> float:
        """The bound that a perfect attack shows on ``total`` examples, nats."""
        most = np.array([most_guesses(total, self.guess)])
        return float(perfect_curve(most, total, self.delta, self.confidence, self.guess)[0])

    def audits(self, total: int) -> list[SimulatedAudit]:
        """Simulated audits of ``total`` examples; none without an attack.

        Above 100,000 examples, audits of 100,000 are simulated, and what the counts expected show more
        is added.
        """
        if self.attack is None:
            return []
        simulated = [self._audit(scores) for scores in self._draws(min(total, LARGEST_SIMULATED))]
        if total <= LARGEST_SIMULATED:
            return simulated
        more = self._from_counts(total) - self._from_counts(LARGEST_SIMULATED)
        return [replace(audit, epsilon=audit.epsilon + more) for audit in simulated]

    def _audit(self, scores: MembershipScores) -> SimulatedAudit:
        """The bound of `audit_one_run`, without the curve that it draws."""
        best = search_thresholds(
            scores, self.guess, None, Hypothesis(self.delta, 1 - self.confidence), seed=0
        )
        guesses, correct = int(best.path.guesses[best.at]), int(best.path.correct[best.at])
        return SimulatedAudit(best.epsilon, guesses / len(scores), (guesses - correct) / len(scores))

    def _draws(self, total: int) -> Iterator[MembershipScores]:
        count = self.simulations or max(_FEWEST, min(_MOST, _EXAMPLES_SIMULATED // total))
        rng = np.random.default_rng(self.seed)
        for i in range(count):
            if isinstance(self.attack, MembershipScores) and lends_scores(self.attack, total):
                yield _lent(self.attack.oriented(), total, rng)
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
        """The smallest audit that shows ``target`` on average: exact without an attack, else to two digits.

        Raises:
            ValueError: No audit of up to 10 million examples does.
        """
        least = _first(lambda m: m > 1 and self.ceiling(m) >= target, 2, MOST_EXAMPLES + 1)
        if least is None or self.attack is None:
            return _found(least, target)
        return _found(self._first_size([m for m in _round_sizes() if m >= least], target), target)

    def _first_size(self, sizes: list[int], target: float) -> int | None:
        @cache
        def counted(i: int) -> float:
            return self._from_counts(sizes[i])

        @cache
        def shown(i: int) -> float:
            return float(np.mean([audit.epsilon for audit in self.audits(sizes[i])]))

        at = _first(partial(_reaches, counted, target), 0, len(sizes)) or 0
        for _ in range(2):  # what is simulated lies above or below what the counts say, by much the same
            aim = target - shown(at) + counted(at)
            at = _first(partial(_reaches, counted, aim), at, len(sizes)) or at
        found = _first(partial(_reaches, shown, target), at, len(sizes))
        return None if found is None else sizes[found]

    def _from_counts(self, total: int) -> float:
        """The bound if right guesses came in the numbers expected of them, on average over some laws."""
        counts = np.unique(np.geomspace(1, total // 2, 300).astype(np.int64))
        return float(np.mean([self._of_law(law, counts, total) for law in self.laws[:: _LAWS // 20]]))

    def _of_law(self, law: AttackLaw, counts: IntArray, total: int) -> float:
        shares = counts / total
        top = (1 - law.members_below(1 - shares)) * total / 2
        bottom = counts - law.members_below(shares) * total / 2
        paths = {"members": (top, counts), "nonmembers": (bottom, counts), "both": (top + bottom, 2 * counts)}
        chosen = [self.guess] if self.guess in paths else list(paths)
        return max(self._bound(*paths[side], total) for side in chosen)

    def _bound(self, correct: FloatArray, guesses: IntArray, total: int) -> float:
        right, error = np.floor(correct).astype(np.int64), 1 - self.confidence
        return anytime_with_failures(right, guesses, error=error, m_delta=total * self.delta).epsilon


def lends_scores(pilot: MembershipScores, total: int) -> bool:
    """Whether a pilot is large enough to draw whole audits of ``total`` examples from it, none repeated."""
    return min(pilot.member.size, pilot.nonmember.size) >= 2 * total


def _lent(pilot: MembershipScores, total: int, rng: np.random.Generator) -> MembershipScores:
    members = int(np.clip(rng.binomial(total, 0.5), 1, total - 1))
    return MembershipScores(
        rng.choice(pilot.member, members, replace=False),
        rng.choice(pilot.nonmember, total - members, replace=False),
    )


def _round_sizes() -> list[int]:
    """Sizes of two digits: 2, 3, ..., 99, 100, 110, ..., 990, 1000, 1100, ... up to 10 million."""
    tens = [digits * 10**power for power in range(6) for digits in range(10, 100)]
    return [*range(2, 10), *tens, MOST_EXAMPLES]


def _first(enough: Callable[[int], bool], start: int, end: int) -> int | None:
    """The smallest whole number below ``end`` that is enough, sought in growing steps from ``start``."""
    step = 1
    if enough(start):
        low, high = start - 1, start
        while low >= 0 and enough(low):
            low, high, step = max(low - 2 * step, -1), low, 2 * step
    else:
        low, high = start, start + 1
        while high < end and not enough(high):
            low, high, step = high, high + 2 * step, 2 * step
        if high >= end:
            high = end - 1
            if low == high or not enough(high):
                return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _reaches(bound: Callable[[int], float], aim: float, at: int) -> bool:
    return bound(at) >= aim


def _found(total: int | None, target: float) -> int:
    if total is None:
        raise ValueError(
            f"epsilon: no audit of up to {MOST_EXAMPLES} examples shows {target:g} on average; ask for less, "
            "or plan a better attack, a smaller delta or a lower confidence"
        )
    return total
