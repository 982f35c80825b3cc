"""What perfect and simulated attacks show in audits of a planned size, and the size that an epsilon
needs.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial

import numpy as np
from scipy.special import bdtrik, ndtri

from paperlib.bounds.one_run.anytime import AnytimeCounts
from paperlib.bounds.one_run.fair_coins import IMPLAUSIBLE
from paperlib.bounds.one_run.guesses import dyadic_counts
from paperlib.bounds.one_run.pilot import AttackLaw, laws_of_pilot
from paperlib.bounds.one_run.search import Hypothesis, search_thresholds
from paperlib.bounds.one_run.tails import refuted_log_odds
from paperlib.core import FloatArray, IntArray, MembershipScores
from paperlib.core.checks import check_confidence, check_counts, check_delta, check_in
from paperlib.core.options import Guess

MOST_EXAMPLES = 10_000_000
SMALLEST_POWER = 0.5
LARGEST_SIMULATED = 100_000  # examples; what larger audits show more is told by the counts expected
_LARGEST_AUC = 1 - 1e-12
_FAR_APART = 100.0  # standard deviations between members and non-members of a perfect attack
_LAWS = 500  # drawn for a pilot
_EXAMPLES_SIMULATED, _FEWEST, _MOST = 1_000_000, 10, 100  # over all audits of a plan; audits
_IN_SEARCH = 5  # times as many audits where a size is sought
_BATCH = 25  # audits between two answers
_NEAR = 1.5  # factor between sizes that tell of each other
_STEP = 4.0  # times its size by which an audit may be larger than those before it, and ever less
_LUCKS, _GOLDEN = 12, (math.sqrt(5) - 1) / 2
_LUCK = 0.5  # deviations by which a search is luckier than what is expected, about
_LAWS_COUNTED = 100  # for the share that reaches an epsilon
_DIGITS = (*range(100, 200, 2), *range(200, 500, 5), *range(500, 1000, 10))
_SIZES = (
    *range(2, 100),
    *(digits * 10**power for power in range(5) for digits in _DIGITS),
    MOST_EXAMPLES,
)
_ONE_SIDED = ("members", "nonmembers")


def perfect_epsilon(m: int, delta: float = 0.0, confidence: float = 0.95) -> float:
    """The epsilon, nats, that the default audit of m examples shows if every one of m guesses is
    right.

    Guarantee:
        No audit of m examples by the default search shows more, however good the attack.

    Args:
        m: Audit examples, 1 or more.
        delta: Of (epsilon, delta)-DP, in [0, 1).
        confidence: In (0, 1).

    Raises:
        ValueError: A number out of range.

    >>> round(perfect_epsilon(1000, 1e-5), 2)
    5.63
    """
    total = int(check_counts("m", m, minimum=1))
    m_delta, error = total * check_delta(delta), 1 - check_confidence(confidence)
    count = np.array([total])
    return AnytimeCounts(error, m_delta, most=total).best(correct=count, guesses=count)[0]


class PilotCannotTellError(ValueError):
    """Too few of the attacks that a pilot leaves open show an epsilon at any size of the audit, and
    too many to rule it out.

    Attributes:
        share: Share of the attacks left open under which the largest audits show the epsilon, in
            (0, 1).
        power: Chance that was asked for.
        examples: Members and non-members of the pilot.
    """

    def __init__(self, target: float, share: float, power: float, examples: tuple[int, int]):
        """Word the error; ``target`` is the epsilon that was asked for, nats."""
        self.share = share
        self.power = power
        self.examples = examples
        members, nonmembers = examples
        advice = "give a larger pilot, or ask for less"
        if share >= SMALLEST_POWER:
            advice += ", or for a smaller power"
        super().__init__(
            f"attack: a pilot of {members} members and {nonmembers} non-members cannot tell "
            f"whether {target:g} is shown with chance {power:g}: of the attacks that it leaves "
            f"open, {share:.0%} show it in audits of up to {MOST_EXAMPLES} examples; {advice}"
        )


@dataclass(frozen=True)
class SimulatedAudit:
    """What a simulated audit showed."""

    epsilon: float  # nats
    share: float  # of the examples, guessed where the bound is reached
    wrong: float  # of the examples, guessed wrong there
    size: int  # examples simulated


@dataclass(frozen=True)
class Forecast:
    """What an attack shows in audits of any size, and the size with which it shows an epsilon."""

    delta: float
    confidence: float
    guess: Guess
    attack: float | MembershipScores | None  # None is perfect
    power: float  # share of the audits that show what is asked for
    simulations: int | None  # audits, or by default as many as are quick
    seed: int

    def most_guesses(self, total: int) -> int:
        """Largest number of guesses that can all be right: on one side, those of coins not
        refused.
        """
        if self.guess not in _ONE_SIDED:
            return total
        return min(total, int(np.ceil(bdtrik(1 - IMPLAUSIBLE / 2, total, 0.5))))

    def perfect(self, guesses: IntArray, total: int) -> FloatArray:
        """The bound at each guess count if all of them are right, nats.

        Args:
            guesses: Guess counts, shape (n,).
            total: Audit examples.

        Returns:
            Bounds, shape (n,).
        """
        m_delta, error = total * self.delta, 1 - self.confidence
        if self.guess == "grid":  # the error is divided by the number of pairs that fit
            sizes = np.append(dyadic_counts(total, smallest=4), 0)
            pairs = sizes[:, None] + sizes[None, :]
            tests = int(((pairs > 0) & (pairs <= total)).sum())
            return refuted_log_odds(guesses, guesses, error / tests, m_delta)
        sides = 1 if self.guess in _ONE_SIDED else 2
        test = AnytimeCounts(error, m_delta, sides, total)
        return np.array([test.best(r, r)[0] for r in guesses[:, None]])

    def reached(self, epsilons: Iterable[float]) -> float:
        """What a share ``power`` of the audits shows at least, nats."""
        return float(np.quantile(list(epsilons), 1 - self.power))

    def audits(self, total: int) -> list[SimulatedAudit]:
        """Simulated audits; above 100,000 examples, of 100,000, moved to their size."""
        simulated = self._simulated(
            total, range(self._count(total)), np.random.default_rng(self.seed)
        )
        return [self._moved(audit, total) for audit in simulated]

    def audits_for(self, target: float) -> tuple[int, list[SimulatedAudit]]:
        """The smallest size, to 2 %, at which a share ``power`` shows ``target``, nats, and audits
        of that size.

        Raises:
            ValueError: A target that the attack does not show at any size; a
                `PilotCannotTellError` where the pilot is too small to say.
        """
        # By how much audits show more than `bound_by_counts` changes little with the size. So all
        # that were simulated near the size that is sought help to find it, and each batch is
        # simulated at the last answer. `position` is that of this answer among `_SIZES`.
        self._check_reachable(target)
        rng = np.random.default_rng(self.seed)
        last = len(_SIZES) - 1
        simulated: list[SimulatedAudit] = []
        first = self._first(target)
        position = last if first is None else first
        while True:
            total = _SIZES[position]
            near = self._near(simulated, total)
            enough = self._count(total, _IN_SEARCH)
            if len(near) >= enough and self._reached_by(near) >= target:
                return total, near
            batch = range(len(simulated), len(simulated) + min(enough, _BATCH))
            simulated += self._simulated(total, batch, rng)
            missing = target - self._reached_by(self._near(simulated, total))
            first = self._first(self.bound_by_counts(total) + missing)
            if first is None and position == last:
                raise self._not_shown(target)
            # The next size is at most so many times larger or smaller; steps that shrink settle.
            step = 1 + _STEP * _BATCH / len(simulated)
            low, high = np.searchsorted(_SIZES, [total / step, total * step])
            position = int(np.clip(last if first is None else first, low, high))

    def _check_reachable(self, target: float) -> None:
        """Refuse (ValueError) an epsilon that not even a perfect attack shows, or that too few of
        the attacks that a pilot leaves open show; nothing is simulated.
        """
        most = np.array([self.most_guesses(MOST_EXAMPLES)])
        if replace(self, delta=0.0).perfect(most, MOST_EXAMPLES)[0] < target:
            raise self._unreachable(target)
        if isinstance(self.attack, MembershipScores) and self.share_of_laws(target) < self.power:
            raise self._not_shown(target)

    def _not_shown(self, target: float) -> ValueError:
        """The error that no size shows ``target``, nats: a `PilotCannotTellError`, or a ValueError
        where the attack is too weak.
        """
        if not isinstance(self.attack, MembershipScores):
            return self._unreachable(target)
        share = self.share_of_laws(target)
        if share <= 1 - self.power:  # as sure as was asked for
            return self._unreachable(target, share)
        sizes = self.attack.member.size, self.attack.nonmember.size
        return PilotCannotTellError(target, share, self.power, sizes)

    def share_of_laws(self, target: float) -> float:
        """Share of the attack's laws, each as likely as the others, under which audits of the
        largest size show ``target``, by the counts expected and some luck.
        """
        counts = _counts_up_to(MOST_EXAMPLES)
        laws = self.laws[:: max(1, len(self.laws) // _LAWS_COUNTED)]
        reached = [
            self._of_law(law, _LUCK, counts=counts, total=MOST_EXAMPLES) >= target for law in laws
        ]
        return float(np.mean(reached))

    def _unreachable(self, target: float, share: float | None = None) -> ValueError:
        """The error that no size is enough; ``share`` is of the pilot's attacks that would show it,
        in [0, 1].
        """
        pilot = ""
        if share is not None:
            pilot = f" (of the attacks that the pilot leaves open, {share:.0%} show it)"
        return ValueError(
            f"epsilon: no audit of up to {MOST_EXAMPLES} examples shows {target:g} with chance "
            f"{self.power:g}{pilot}; ask for less, or plan a better attack, a smaller delta or a "
            "lower confidence"
        )

    def _near(self, simulated: list[SimulatedAudit], total: int) -> list[SimulatedAudit]:
        """Audits of about this size, moved to it."""
        size = min(total, LARGEST_SIMULATED)
        near = (audit for audit in simulated if size <= _NEAR * audit.size <= _NEAR**2 * size)
        return [self._moved(audit, total) for audit in near]

    def _reached_by(self, audits: list[SimulatedAudit]) -> float:
        return self.reached(audit.epsilon for audit in audits)

    def _first(self, aim: float) -> int | None:
        """Position of the smallest size of which the counts say ``aim``; None where no size is
        enough.
        """
        position = bisect_left(_SIZES, aim, key=self.bound_by_counts)
        return position if position < len(_SIZES) else None

    def _count(self, total: int, times: int = 1) -> int:
        """How many audits of this size are simulated: fewer of large ones, which take longer."""
        return self.simulations or times * max(_FEWEST, min(_MOST, _EXAMPLES_SIMULATED // total))

    def _simulated(
        self, total: int, numbers: range, rng: np.random.Generator
    ) -> Iterator[SimulatedAudit]:
        """Simulated audits of ``total`` examples, or of the largest size that is simulated.

        ``numbers`` are those of the audits, each of which settles a law of the attack and a number
        of members; ``rng`` draws the scores.
        """
        hypothesis, size = (
            Hypothesis(self.delta, 1 - self.confidence),
            min(total, LARGEST_SIMULATED),
        )
        for number in numbers:
            # The bound of `audit_one_run`, without the curve that it draws.
            best = search_thresholds(
                self._draw(size, number, rng), self.guess, None, hypothesis, seed=0
            )
            guesses, correct = int(best.path.guesses[best.at]), int(best.path.correct[best.at])
            yield SimulatedAudit(best.epsilon, guesses / size, (guesses - correct) / size, size)

    def _draw(self, size: int, number: int, rng: np.random.Generator) -> MembershipScores:
        """Scores of ``size`` examples whose memberships are fair coins, for the simulated audit
        ``number``: from the pilot without repeats where it is large enough, else by a law of the
        attack.
        """
        # Numbers of members come evenly from their distribution, as do laws: multiples of sqrt(2),
        # modulo 1, fill [0, 1) evenly, and each is taken for a quantile.
        quantile = (number + 0.5) * math.sqrt(2) % 1
        members = int(np.clip(np.ceil(bdtrik(quantile, size, 0.5)), 1, size - 1))
        if not isinstance(self.attack, MembershipScores) or not lends_scores(self.attack, size):
            return _spread(self.laws, number).draw(members, size - members, rng)
        pilot = self.attack.oriented()
        return MembershipScores(
            rng.choice(pilot.member, members, replace=False),
            rng.choice(pilot.nonmember, size - members, replace=False),
        )

    def _moved(self, audit: SimulatedAudit, total: int) -> SimulatedAudit:
        """The audit as one of ``total`` examples would be by the counts; a bound of 0 stays 0."""
        if audit.size == total or audit.epsilon == 0:
            return audit
        gain = self.bound_by_counts(total) - self.bound_by_counts(audit.size)
        return replace(audit, epsilon=max(audit.epsilon + gain, 0.0))

    @cached_property
    def laws(self) -> list[AttackLaw]:
        """Laws of the attack's ranks, each as likely as the others; a ValueError for an AUC outside
        [0.5, 1) or too small a pilot.
        """
        if isinstance(self.attack, MembershipScores):
            return laws_of_pilot(self.attack, _LAWS, seed=self.seed)
        if self.attack is None:
            return [AttackLaw(_FAR_APART)]
        auc = check_in("[0.5, 1)", "attack", self.attack)
        return [AttackLaw(math.sqrt(2) * float(ndtri(min(auc, _LARGEST_AUC))))]

    @cached_property
    def bound_by_counts(self) -> Callable[[int], float]:
        """About what a share ``power`` of audits of a size shows, nats, by the counts expected and
        some luck: a function of the number of examples.
        """
        return cache(self._bound_by_counts)

    def _bound_by_counts(self, total: int) -> float:
        """About what a share ``power`` of audits of ``total`` examples shows, nats: the bounds if
        right guesses came in the numbers that a law of the attack expects, with the same luck at
        every count. Twelve lucks stand for the audits.
        """
        counts = _counts_up_to(total)
        # A search picks lucky counts; so simulated bounds are, about, those of this luck (in
        # deviations).
        lucks = (_LUCK + 0.6 * ndtri((np.arange(_LUCKS) + 0.5) / _LUCKS)).tolist()
        laws = (_spread(self.laws, number) for number in range(_LUCKS))
        return self.reached(map(partial(self._of_law, counts=counts, total=total), laws, lucks))

    def _of_law(self, law: AttackLaw, luck: float, counts: IntArray, total: int) -> float:
        """The largest bound over the counts, nats, for one law of the attack and a luck in
        deviations.

        ``counts`` are numbers of guesses, rising, shape (n,), of ``total`` examples.
        """
        shares = counts / total
        # Half of the examples are members: right guesses expected at the top and at the bottom.
        top = (1 - law.members_below(1 - shares)) * total / 2
        bottom = counts - law.members_below(shares) * total / 2
        paths = {  # of each side: right guesses expected, and guesses
            "members": (top, counts),
            "nonmembers": (bottom, counts),
            "both": (top + bottom, 2 * counts),
        }
        test = AnytimeCounts(1 - self.confidence, total * self.delta, most=total)
        return max(
            test.best(_lucky(right, guesses, luck), guesses)[0]
            for side, (right, guesses) in paths.items()
            if side == self.guess or self.guess not in paths
        )


def _counts_up_to(total: int) -> IntArray:
    """Guess counts of one side at which a law is looked at, for audits of ``total`` examples."""
    return np.unique(np.geomspace(1, total // 2, 300).astype(np.int64))


def _lucky(expected: FloatArray, guesses: IntArray, luck: float) -> IntArray:
    """Right guesses that are ``luck`` standard deviations more than expected."""
    spread = np.sqrt(np.maximum(expected * (guesses - expected) / guesses, 0.0))
    return np.floor(np.clip(expected + luck * spread, 0, guesses) + 1e-9).astype(np.int64)


def _spread(laws: list[AttackLaw], number: int) -> AttackLaw:
    """The law of an audit: those of neighbouring numbers come from all over the walk."""
    return laws[int(number * _GOLDEN % 1 * len(laws))]


def lends_scores(pilot: MembershipScores, total: int) -> bool:
    """Whether whole audits of ``total`` examples may be drawn from a pilot, none repeated."""
    # Ten times the examples: what is drawn from fewer varies too little, and its power is
    # overstated.
    return min(pilot.member.size, pilot.nonmember.size) >= 5 * total
