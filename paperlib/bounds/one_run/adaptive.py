"""Predictable orders: which coin comes next, and whether it is bet on, depends on the coins revealed so far.

Nothing in the supermartingale of `anytime` needs an order fixed by the scores (book: one-run audit, orders
that learn). Several bettors propose guesses, most confident first. At first a few coins of each are looked
at; from then on those whose recent guesses were right most often bet, and the others are looked at now and
then.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from paperlib.core import FloatArray, IntArray

Flags = NDArray[np.bool_]

WINDOW = 60  # recent guesses that judge a bettor; a quarter of its guesses where that is more
ABOVE_CHANCE = 1.0  # standard errors by which the best bettor must exceed one half before anyone bets
CLOSE = 0.7  # standard errors within which another bettor counts as equally good
LOOK_EVERY = 10  # coins bet on for each look at a bettor that does not bet
GROWTH = 50  # a decision holds for one more coin for each so many revealed


class Bettor(Protocol):
    """Proposes guesses about unrevealed examples, most confident first; tied examples come together."""

    def next_size(self, revealed: Flags) -> int:
        """Examples in the next tied block, 0 if none is left; ``revealed`` has shape (m,)."""
        ...

    def propose(self, count: int, revealed: Flags) -> "Proposal":
        """Whole tied blocks of at most ``count`` unrevealed examples together; they are revealed next."""
        ...


@dataclass(frozen=True, eq=False)
class Proposal:
    """Guesses of one bettor, most confident first; arrays of shape (n,)."""

    examples: IntArray  # positions
    as_member: Flags  # True where "member" is guessed
    block_end: IntArray  # number of proposed examples up to the end of the tied block of each


@dataclass(frozen=True, eq=False)
class Bets:
    """The guesses that were bet on, in order; arrays of shape (n,)."""

    examples: IntArray  # positions
    as_member: Flags  # True where "member" was guessed
    right: Flags  # True where the guess was right
    stop: Flags  # True where the test may stop: no tied block is cut
    bettor: IntArray  # number of the bettor that proposed the guess
    revealed: IntArray  # positions of all examples, in the order of their coins, shape (m,)


def ends_of(scores: FloatArray) -> tuple["EndOfScores", "EndOfScores"]:
    """The two bettors of a score: "member" is guessed from its top, "non-member" from its bottom."""
    order = np.argsort(-scores)
    top, bottom = order, order[::-1]
    return EndOfScores(top, scores[top], member=True), EndOfScores(bottom, scores[bottom], member=False)


class EndOfScores:
    """Guesses one membership from one end of a score: positions and values, most confident first."""

    def __init__(self, order: IntArray, values: FloatArray, *, member: bool) -> None:
        self._order, self._at = order, 0
        self._as_member, self._count = np.full(order.size, member), np.arange(1, order.size + 1)
        ends = np.append(np.flatnonzero(values[1:] != values[:-1]), values.size - 1)
        self._block = np.repeat(np.arange(ends.size), np.diff(ends, prepend=-1))
        self._end = ends + 1
        self._tied = ends.size < values.size

    def next_size(self, revealed: Flags) -> int:
        self._skip(revealed)
        if not self._tied or self._at == self._order.size:
            return int(self._at < self._order.size)
        block = self._order[self._at : self._end[self._block[self._at]]]
        return int(block.size - revealed[block].sum())

    def propose(self, count: int, revealed: Flags) -> Proposal:
        self._skip(revealed)
        start, reach = self._at, min(self._at + count, self._order.size)
        if self._tied and reach > start:
            reach = int(self._end[self._block[reach - 1]])
        examples = self._order[start:reach]
        hidden = ~revealed[examples]
        examples = examples[hidden]
        last = self._count[: examples.size]
        if self._tied:
            block = self._block[start:reach][hidden]
            last = np.searchsorted(block, block, side="right")
            kept = last <= count
            examples, last = examples[kept], last[kept]
        else:
            self._at = reach
        return Proposal(examples, self._as_member[: examples.size], last)

    def _skip(self, revealed: Flags) -> None:
        """Move to the first example that is not revealed yet."""
        step = 64
        while self._at < self._order.size and revealed[self._order[self._at]]:
            hidden = np.flatnonzero(~revealed[self._order[self._at : self._at + step]])
            if hidden.size:
                self._at += int(hidden[0])
                return
            self._at, step = min(self._at + step, self._order.size), 2 * step


class _Record:
    """What is known of one bettor: its guesses so far, right or wrong, and the coins it may take."""

    def __init__(self, total: int) -> None:
        # Coins looked at before anyone bets, 3 of 1,000 examples, 4 of 10,000. A look costs a sure bet where
        # the leak is strong; too few of them take a useless end for a good one.
        self.credit = float(int(math.log10(total) + 1e-9))
        self.guesses = 0
        self._right = [0.0]  # right among the first 0, 1, 2, ... guesses

    def add(self, right: Flags, block_end: IntArray) -> None:
        """Guesses of a tied block count as equally right, since they have no order."""
        shares: NDArray[Any] = right
        cut = block_end[1:] != block_end[:-1]
        if not cut.all():
            first = np.append(0, np.flatnonzero(cut) + 1)
            sizes = np.diff(np.append(first, right.size))
            shares = np.repeat(np.add.reduceat(right, first, dtype=np.int64) / sizes, sizes)
        self._right += (self._right[-1] + shares.cumsum(dtype=np.float64)).tolist()
        self.guesses += right.size
        self.credit -= right.size

    def accuracy(self) -> tuple[float, float]:
        """Share of right guesses among the recent ones, half a guess of each kind added, and its variance."""
        recent = min(self.guesses, max(WINDOW, self.guesses // 4))
        right = self._right[-1] - self._right[-1 - recent]
        share = (right + 0.5) / (recent + 1)
        return share, share * (1 - share) / (recent + 1)


def reveal(
    bettors: Sequence[Bettor],
    members: Flags,
    first_looks: IntArray | None = None,
    *,
    leader: int | None = None,
    total: int | None = None,
) -> Bets:
    """Reveal every coin once, bet where recent guesses were right most often, and record the bets."""
    # No decision before a coin is revealed depends on it. ``first_looks`` are looked at before anything else;
    # a ``leader`` bets alone wherever it would bet. Between them the bettors propose every example; these may
    # be the ends of an audit of ``total`` examples.
    return _Game(bettors, members, leader, total or members.size).play(first_looks)


class _Game:
    def __init__(self, bettors: Sequence[Bettor], members: Flags, leader: int | None, total: int) -> None:
        self._bettors, self._members, self._leader = bettors, members, leader
        self._records = [_Record(total) for _ in bettors]
        self._revealed = np.zeros(members.size, dtype=bool)
        self._bets: list[tuple[Proposal, int, int]] = []  # with the bettor, and the coins seen before
        self._seen = 0
        self._order: list[IntArray] = []

    def play(self, first_looks: IntArray | None) -> Bets:
        if first_looks is not None:
            self._reveal(first_looks)
        self._turn(frozenset())
        while self._seen < self._members.size:
            betting = favoured([record.accuracy() if record.guesses else None for record in self._records])
            if self._leader in betting:
                betting = frozenset({self._leader})
            self._give_credit(betting)
            self._turn(betting)
        # One order: by turn, then by the size of each bettor's guesses so far, tied blocks whole.
        none = np.zeros(0, dtype=np.int64)
        bets = [(Proposal(none, none == 0, none), 0, 0), *self._bets]
        whose = np.repeat([bet[1:] for bet in bets], [bet[0].examples.size for bet in bets], axis=0).T
        names = ("block_end", "examples", "as_member")
        offered = [np.concatenate([getattr(bet[0], name) for bet in bets]) for name in names]
        rows = np.vstack([whose, *offered])
        rows = rows[:, np.lexsort((rows[0], rows[2], rows[1]))]
        bettor, _, _, examples, as_member = rows
        stop = np.asarray(np.diff(rows[:3], append=-1).any(axis=0))
        right = self._members[examples] == as_member
        return Bets(examples, as_member == 1, right, stop, bettor, np.concatenate(self._order))

    def _reveal(self, examples: IntArray) -> None:
        self._revealed[examples] = True
        self._seen += examples.size
        self._order.append(examples)

    def _give_credit(self, betting: frozenset[int]) -> None:
        """As many coins for every bettor that bets, a share of it for a look; nobody may be all too poor."""
        share = [1.0 if i in betting or not betting else 1 / LOOK_EVERY for i in range(len(self._records))]
        needed = [
            (bettor.next_size(self._revealed) - record.credit) / rate
            for bettor, record, rate in zip(self._bettors, self._records, share, strict=True)
        ]
        steps = max(1.0 + self._seen // GROWTH, min(needed))
        for record, rate in zip(self._records, share, strict=True):
            record.credit += steps * rate

    def _turn(self, betting: frozenset[int]) -> None:
        """Every bettor takes what its credit allows; those that bet, bet on it."""
        turn = self._seen
        for i, (bettor, record) in enumerate(zip(self._bettors, self._records, strict=True)):
            count = math.floor(record.credit + 1e-9)
            if count < 1 or not (offer := bettor.propose(count, self._revealed)).examples.size:
                continue
            self._reveal(offer.examples)
            record.add(self._members[offer.examples] == offer.as_member, offer.block_end)
            if i in betting:
                self._bets.append((offer, i, turn))


def favoured(accuracies: Sequence[tuple[float, float] | None]) -> frozenset[int]:
    """Positions of the bettors that bet next, from (share right, variance), None before a first guess."""
    # The best one bets if it is right more often than by chance, and with it those that are hardly worse.
    unseen = {i for i, one in enumerate(accuracies) if one is None}
    seen = {i: one for i, one in enumerate(accuracies) if one is not None}
    if not seen:
        return frozenset(unseen)
    best, spread = max(seen.values())
    if best - ABOVE_CHANCE * math.sqrt(spread) <= 0.5:
        return frozenset(unseen)
    close = {i for i, (share, var) in seen.items() if share >= best - CLOSE * math.sqrt(spread + var)}
    return frozenset(unseen | close)
