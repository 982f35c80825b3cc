"""How an attack ranks members and non-members: assumed, or learned from a pilot smaller than the
audit.

An audit depends on the ranks of the scores alone. So the scores may be thought of as moved to a
scale on which non-members are normal, and the law of an attack is how members then lie:

- around a shift, as wide as the non-members or wider or narrower;
- perhaps, a share of them apart at the top, where memorised examples stand, at given odds against
  the non-members among them; and likewise a share of the non-members apart at the bottom.

The pilot's ranks tell how likely each such law is. Laws are drawn from their posterior by a random
walk, so that what the pilot leaves open, above all its few extremes, varies between the draws.
Blocks whose odds exceed twice the pilot's size are left out: the pilot would show nothing of them.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from paperlib.core import FloatArray, IntArray, MembershipScores

SMALLEST_PILOT = 20  # members, and non-members
_GRID = np.linspace(-8, 8, 129)  # standard deviations around each mean
_SHIFT_SD, _LOG_SPREAD_SD = 1.5, 0.5  # of the normal priors
_CHANCES = np.array(
    [0.2, 0.1, 0.1]
)  # that the spread is not 1, of a block at the top, of one at the bottom
_BURN_IN, _STEPS = 3_000, 18_000  # steps of the walk that are left out, and kept; chosen
_LEAST_BLOCK = 6  # over the pilot's size: 3 examples of a side in an even pilot; chosen
_LEAST_BLOCK_AT_MOST = 0.25  # the least share of a side that a block takes; chosen
_LARGEST_BLOCK = 0.5  # share of a side; chosen
_FIRST_WEIGHT = 20  # examples that the pilot counts as at the first step; chosen
_REDRAWN = 0.3  # share of steps that draw a part from the prior; chosen
_MOVE_SCALES = (-2.5, 0.3)  # log10 of the least and largest scale of a move; chosen
_SHIFT_SCALES = (-2.0, 0.0)  # the same for the shift, where another part is redrawn; chosen
_SINGLE_RANKS, _RANK_GROUPS = 20, 40  # of each end: ranks alone, and then in groups that grow


@dataclass(frozen=True)
class Block:
    """Examples that stand apart at one end, as shares of all members and of all non-members."""

    member: float = 0.0
    nonmember: float = 0.0


@dataclass(frozen=True, eq=False)
class Ties:
    """Stretches of ranks, as shares of all examples, on which the attack gives one score; shape
    (n,).
    """

    start: FloatArray
    end: FloatArray

    def joined(self, ranks: FloatArray) -> FloatArray:
        """The ranks, in [0, 1] and of any shape, those of one stretch replaced by its start."""
        if not self.start.size:
            return ranks
        stretch = np.maximum(np.searchsorted(self.start, ranks, side="right") - 1, 0)
        inside = (ranks >= self.start[stretch]) & (ranks < self.end[stretch])
        return np.where(inside, self.start[stretch], ranks)


NO_TIES = Ties(np.empty(0), np.empty(0))


@dataclass(frozen=True)
class AttackLaw:
    """How an attack ranks members among non-members, on a scale on which these are standard
    normal.
    """

    shift: float  # mean of the members outside the blocks
    spread: float = 1.0  # their standard deviation
    top: Block = Block()
    bottom: Block = Block()
    ties: Ties = field(default=NO_TIES)

    def draw(self, members: int, nonmembers: int, rng: np.random.Generator) -> MembershipScores:
        """Scores of one audit with so many members and non-members: the ranks, in [0, 1), as shares
        of all examples, equal where the attack gives one score.
        """
        member = self._draw(
            members, self.shift, self.spread, self.top.member, self.bottom.member, rng
        )
        other = self._draw(nonmembers, 0.0, 1.0, self.top.nonmember, self.bottom.nonmember, rng)
        total = members + nonmembers
        order = np.argsort(np.concatenate([member, other]))
        ranks = np.empty(total)
        ranks[order] = (np.arange(total) + 0.5) / total
        ranks = self.ties.joined(ranks)
        return MembershipScores(ranks[:members], ranks[members:])

    @staticmethod
    def _draw(
        count: int, mean: float, spread: float, top: float, bottom: float, rng: np.random.Generator
    ) -> FloatArray:
        """Values of one side, shape (count,): normal ones with this mean and standard deviation,
        and the shares ``top`` and ``bottom`` of them far above and far below all others.
        """
        values = rng.normal(mean, spread, count)
        chance = rng.random(count)
        # Beyond all normal values, in random order within its block.
        far = 1e3 + rng.random(count)
        return np.where(chance < top, far, np.where(chance >= 1 - bottom, -far, values))

    def members_below(self, ranks: FloatArray) -> FloatArray:
        """Share of the members below each rank, a share of all examples in [0, 1]; same shape."""
        # At points x of the scale: the shares of members and of others below, whose mean is the
        # rank of x among as many of both.
        x = np.sort(np.concatenate([_GRID, self.shift + self.spread * _GRID]))
        member = _with_blocks(
            ndtr((x - self.shift) / self.spread), self.top.member, self.bottom.member
        )
        other = _with_blocks(ndtr(x), self.top.nonmember, self.bottom.nonmember)
        return np.interp(ranks, (member + other) / 2, member)


def _with_blocks(cdf: FloatArray, top: float, bottom: float) -> FloatArray:
    """A distribution function at rising points, shape (n,), with the shares ``top`` and ``bottom``
    in blocks beyond them: shape (n + 4,), the first two and last two at the ends of the blocks.
    """
    whole = np.empty(cdf.size + 4)
    whole[:2], whole[2:-2], whole[-2:] = (
        (0.0, bottom),
        bottom + (1 - top - bottom) * cdf,
        (1 - top, 1.0),
    )
    return whole


@dataclass(frozen=True, eq=False)
class _RankedPilot:
    """Counts of the pilot in groups of neighbouring ranks, lowest first; tied scores are never
    parted.
    """

    member: IntArray
    nonmember: IntArray
    # edges of the groups, as shares of all if classes were of one size, shape (n + 1,)
    ranks: FloatArray
    ties: Ties

    @classmethod
    def of(cls, pilot: MembershipScores) -> "_RankedPilot":
        """The groups of a pilot's scores: single ranks at both ends, where an attack is surest, and
        larger groups toward the middle.
        """
        values, labels = pilot.oriented().pooled()
        order = np.argsort(values, kind="stable")
        values = values[order]
        # Members, and non-members, among the first so many: from none to all.
        hits = np.append(0, np.cumsum(labels[order]))
        misses = np.arange(values.size + 1) - hits
        ranks = (hits / hits[-1] + misses / misses[-1]) / 2
        # Where each block of equal scores ends and starts.
        ends = np.append(np.flatnonzero(values[1:] != values[:-1]), values.size - 1) + 1
        starts = np.append(0, ends[:-1])
        tied = ends - starts > 1
        # Ends of groups of ranks: single ones at both ends, larger groups toward the middle; each
        # is moved to the end of its block of equal scores.
        half = values.size // 2
        single = np.arange(1, min(_SINGLE_RANKS, half) + 1)
        grown = np.geomspace(1, half, _RANK_GROUPS)
        low = np.concatenate([single, grown.astype(np.int64)])
        edges = np.unique(np.concatenate([low, values.size - low, [values.size]]))
        cuts = np.append(0, np.unique(ends[np.searchsorted(ends, edges)]))
        ties = Ties(ranks[starts[tied]], ranks[ends[tied]])
        return cls(np.diff(hits[cuts]), np.diff(misses[cuts]), ranks[cuts], ties)

    def __len__(self) -> int:
        return int(self.member.sum() + self.nonmember.sum())

    def fit(self, state: "_State") -> float:
        """Log likelihood of a state of the walk: of the memberships given the ranks, nats, up to a
        constant; -inf where blocks leave no bulk.
        """
        law = state.law(NO_TIES)
        # Blocks that take more than 99 % of a class leave no normal bulk to fit.
        members_in_bulk = 1 - law.top.member - law.bottom.member
        nonmembers_in_bulk = 1 - law.top.nonmember - law.bottom.nonmember
        if min(members_in_bulk, nonmembers_in_bulk) < 0.01:
            return -math.inf
        # A rank is the mean of both classes' shares below it: hence non-members from members. An
        # example in a group is a member with chance member / (member + other), the numbers that the
        # law expects there.
        members_below = law.members_below(self.ranks)
        nonmembers_below = 2 * self.ranks - members_below
        member = self.member.sum() * np.maximum(np.diff(members_below), 1e-15)
        other = self.nonmember.sum() * np.maximum(np.diff(nonmembers_below), 1e-15)
        both = np.log(member + other)
        return float(
            (self.member * (np.log(member) - both) + self.nonmember * (np.log(other) - both)).sum()
        )


@dataclass(frozen=True, eq=False)
class _State:
    """One point of the random walk: six numbers, and which of spread, top and bottom are in use."""

    # shift, log spread; log share and log odds of the top block, and of the bottom block
    numbers: FloatArray
    used: NDArray[np.bool_]

    def law(self, ties: Ties) -> AttackLaw:
        """The law of ranks that the six numbers describe, with the ties of the pilot."""
        shift, spread = float(self.numbers[0]), math.exp(self.numbers[1]) if self.used[0] else 1.0
        top = self._block(2) if self.used[1] else Block()
        mirrored = self._block(4) if self.used[2] else Block()
        return AttackLaw(shift, spread, top, Block(mirrored.nonmember, mirrored.member), ties)

    def _block(self, first: int) -> Block:
        """The block that the parameters at ``first`` and behind it describe: logs of its share of
        one side, and of how many times smaller its share of the other is.
        """
        share = math.exp(self.numbers[first])
        return Block(share, share * math.exp(-self.numbers[first + 1]))


def _log_prior(numbers: FloatArray, ends: FloatArray) -> float:
    """Log prior density of the six numbers of a `_State`, up to a constant: normal in the first
    two, uniform in the others between the ``ends`` (lowest, highest), (2, 6); -inf outside.
    """
    if (numbers < ends[0]).any() or (numbers > ends[1]).any():
        return -math.inf
    return -0.5 * ((numbers[0] / _SHIFT_SD) ** 2 + (numbers[1] / _LOG_SPREAD_SD) ** 2)


def _of_prior(ends: FloatArray, rng: np.random.Generator) -> FloatArray:
    """The six numbers of a `_State`, drawn from the prior; ``ends`` as for `_log_prior`."""
    return np.append(
        rng.normal(0.0, [_SHIFT_SD, _LOG_SPREAD_SD]), rng.uniform(ends[0, 2:], ends[1, 2:])
    )


_PARTS = (
    slice(1, 2),
    slice(2, 4),
    slice(4, 6),
)  # numbers of the spread, of the top and of the bottom
_UNITS = np.array([1.0, 0.5, 1.0, 2.0, 1.0, 2.0])  # steps of the walk, times a random scale


def _walk(pilot: _RankedPilot, rng: np.random.Generator) -> Iterator[_State]:
    """The states of a Metropolis walk through the posterior, ``_STEPS`` of them after the burn-in.

    A step moves some numbers by a random scale; or it draws one part (spread, top or bottom) from
    the prior, and whether it is in use.
    """
    ends = _prior_ends(len(pilot))
    # The walk begins where members lie as non-members: shift and log spread 0, no part in use.
    start = _of_prior(ends, rng) * [0, 0, 1, 1, 1, 1]
    state = _State(start, np.zeros(3, dtype=bool))
    fit = pilot.fit(state)
    # At first the pilot counts like a small one, so that the walk sees every part before it
    # settles.
    first = min(1.0, _FIRST_WEIGHT / len(pilot))
    weights = np.append(np.geomspace(first, 1.0, _BURN_IN), np.ones(_STEPS))  # of its likelihood
    for step, weight in enumerate(weights):
        if rng.random() < _REDRAWN:
            proposed, log_ratio = _redrawn(state, ends, rng)
        else:
            proposed, log_ratio = _moved(state, ends, rng)
        proposed_fit = pilot.fit(proposed) if log_ratio > -math.inf else -math.inf
        if math.log(1 - rng.random()) < weight * (proposed_fit - fit) + log_ratio:
            state, fit = proposed, proposed_fit
        if step >= _BURN_IN:
            yield state


def _prior_ends(size: int) -> FloatArray:
    """Lowest and highest values that the prior allows to the numbers of a `_State`, (2, 6), from a
    pilot of ``size`` examples.
    """
    free = [-math.inf, math.inf]  # shift and log spread
    smallest = min(_LEAST_BLOCK_AT_MOST, _LEAST_BLOCK / size)
    shares = [math.log(smallest), math.log(_LARGEST_BLOCK)]
    odds = [0.0, math.log(2 * size)]  # of larger odds the pilot would show nothing
    return np.array([free, free, shares, odds, shares, odds]).T


def _moved(state: _State, ends: FloatArray, rng: np.random.Generator) -> tuple[_State, float]:
    """A state with about half of the numbers moved by one random scale, and the log ratio of its
    prior density to that of the present state; ``ends`` as for `_log_prior`.
    """
    scale = 10 ** rng.uniform(*_MOVE_SCALES)
    moves = rng.normal(size=6) * (rng.random(6) < 0.5) * scale * _UNITS
    numbers = state.numbers + moves
    return _State(numbers, state.used), _log_prior(numbers, ends) - _log_prior(state.numbers, ends)


def _redrawn(state: _State, ends: FloatArray, rng: np.random.Generator) -> tuple[_State, float]:
    """A state with one part drawn from the prior, and half of the time with another shift; and the
    log ratio of prior and proposal densities, to those of the present state, that a Metropolis step
    adds to the likelihood. ``ends`` as for `_log_prior`.
    """
    drawn_part = int(rng.integers(3))  # spread, top or bottom
    numbers, used = state.numbers.copy(), state.used.copy()
    numbers[_PARTS[drawn_part]] = _of_prior(ends, rng)[_PARTS[drawn_part]]
    used[drawn_part] = rng.random() < _CHANCES[drawn_part]
    numbers[0] += rng.normal() * 10 ** rng.uniform(*_SHIFT_SCALES) * (rng.random() < 0.5)
    # What is drawn from its own prior cancels out of the ratio; the prior of the shift is left.
    log_ratio = 0.5 * (state.numbers[0] ** 2 - numbers[0] ** 2) / _SHIFT_SD**2
    return _State(numbers, used), log_ratio


def laws_of_pilot(pilot: MembershipScores, draws: int, *, seed: int) -> list[AttackLaw]:
    """Laws that a pilot's scores leave open, ``draws`` of them, each as likely as the others.

    They are drawn from the posterior by a Metropolis walk of 18,000 steps after its burn-in, evenly
    along it; ``seed`` is that of the walk.

    Raises:
        ValueError: A pilot of fewer than 20 members or non-members.
    """
    fewest = min(pilot.member.size, pilot.nonmember.size)
    if fewest < SMALLEST_PILOT:
        raise ValueError(
            f"attack: a pilot of {pilot.member.size} members and {pilot.nonmember.size} "
            f"non-members supports no plan; at least {SMALLEST_PILOT} of each are needed, or give "
            "the AUC that you expect"
        )
    ranked = _RankedPilot.of(pilot)
    states: list[_State] = list(_walk(ranked, np.random.default_rng(seed)))
    kept = np.linspace(0, len(states) - 1, draws).round().astype(int)
    return [states[int(i)].law(ranked.ties) for i in kept]
