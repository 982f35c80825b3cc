"""Predictable orders: which coin comes next, and whether it is bet on, depends on the coins
revealed so far.

Nothing in the supermartingale of `anytime` needs an order fixed by the scores (book: one-run audit,
orders that learn). Several bettors propose guesses, most confident first. At first a few coins of
each are looked at; from then on those whose recent guesses were right most often bet, and the
others are looked at now and then.
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
# Standard errors by which the best bettor must exceed one half before anyone bets.
ABOVE_CHANCE = 1.0
CLOSE = 0.7  # standard errors within which another bettor counts as equally good
LOOK_EVERY = 10  # coins bet on for each look at a bettor that does not bet
GROWTH = 50  # a decision holds for one more coin for each so many revealed


class Bettor(Protocol):
    """Proposes guesses about unrevealed examples, most confident first; tied examples come
    together.
    """

    def next_size(self, revealed: Flags) -> int:
        """Examples in the next tied block, 0 if none is left; ``revealed`` has shape (m,)."""
        ...

    def propose(self, count: int, revealed: Flags) -> "Proposal":
        """Whole tied blocks of at most ``count`` unrevealed examples together; they are revealed
        next. ``revealed`` has a flag for each of m examples, shape (m,).
        """
        ...


@dataclass(frozen=True, eq=False)
class Proposal:
    """Guesses of one bettor, most confident first; arrays of shape (n,)."""

    examples: IntArray  # positions
    as_member: Flags  # True where "member" is guessed
    block_end: IntArray | None = None
    """Number of them up to the end of the tied block of each; None: no ties."""


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
    """The two bettors of scores, shape (m,): "member" is guessed from their top, "non-member" from
    their bottom.
    """
    top = np.argsort(-scores)
    bottom = top[::-1]
    above = EndOfScores(top, scores[top], member=True)
    return above, EndOfScores(bottom, scores[bottom], member=False)


class EndOfScores:
    """Guesses one membership from one end of a score, most confident first."""

    def __init__(self, order: IntArray, values: FloatArray, *, member: bool) -> None:
        """Take the positions of the examples and their scores, both in the order of this end,
        shape (m,), and whether "member" is guessed.
        """
        self._order = order
        self._next = 0  # index in the order of the first example that is not known to be revealed
        self._as_member = np.full(order.size, member)
        ends = np.append(np.flatnonzero(values[1:] != values[:-1]), values.size - 1) + 1
        # End of the tied block of each position, and of the empty one after them; None if no value
        # is tied.
        self._end = None
        if ends.size < values.size:
            self._end = np.append(np.repeat(ends, np.diff(ends, prepend=0)), values.size)

    def next_size(self, revealed: Flags) -> int:
        """Unrevealed examples of the next tied block of this end, 0 where none is left.

        ``revealed`` says of each example, shape (m,), whether its membership was shown.
        """
        self._pass_over(revealed)
        if self._end is None:
            return int(self._next < self._order.size)
        block = self._order[self._next : self._end[self._next]]
        return int(np.count_nonzero(~revealed[block]))

    def _pass_over(self, revealed: Flags) -> None:
        """Move past the examples that are revealed already."""
        while self._next < self._order.size and revealed[self._order[self._next]]:
            self._next += 1

    def propose(self, count: int, revealed: Flags) -> Proposal:
        """Guesses about the next examples from this end: whole tied blocks of at most ``count``
        unrevealed examples together; a block that does not fit is offered the next time.

        ``revealed`` has a flag for each of m examples, shape (m,).
        """
        self._pass_over(revealed)
        start = self._next
        reach = min(start + count, self._order.size)
        if self._end is None:
            examples = self._order[start:reach]
            offered = ~revealed[examples]
            block_end = None
        else:
            reach = int(self._end[reach - 1])  # the end of the block that `count` may cut
            examples = self._order[start:reach]
            offered = ~revealed[examples]
            # Of each example, how many are offered up to the end of its block.
            block_end = np.cumsum(offered, dtype=np.int64)[self._end[start:reach] - start - 1]
            is_whole = block_end <= count
            reach = start + int(np.count_nonzero(is_whole))
            offered &= is_whole
            block_end = block_end[offered]
        self._next = reach
        examples = examples[offered]
        return Proposal(examples, self._as_member[: examples.size], block_end)


def first_credit(total: int) -> int:
    """Coins that each bettor looks at before anyone bets: 3 of 1,000 examples, 4 of 10,000."""
    # A look costs a sure bet where the leak is strong; too few of them take a useless end for a
    # good one.
    return int(math.log10(total) + 1e-9)


def reveal(
    bettors: Sequence[Bettor],
    members: Flags,
    first_looks: IntArray | None = None,
    *,
    leader: int | None = None,
    total: int | None = None,
) -> Bets:
    """Reveal every coin once, bet where recent guesses were right most often, and record the
    bets. No decision before a coin is revealed depends on it.

    Args:
        bettors: Between them they propose every example.
        members: The coins, shape (m,).
        first_looks: Positions of examples that are looked at before anything else.
        leader: Number of a bettor that bets alone wherever it would bet.
        total: Examples of the audit, of which these may be the ends; None: m.
    """
    game = _Game(bettors, members, first_looks, first_credit(total or members.size))
    betting: set[int] = set()
    while True:
        game.take_turn(betting)
        if game.seen == members.size:
            return game.bets()
        betting = favoured(game.right)
        if leader in betting:
            betting = {leader}
        game.add_credit(betting)


class _Game:
    """The coins of one audit, in the order in which they are revealed.

    Attributes:
        seen: Number of coins revealed so far.
        right: Of each bettor, how many of its first 0, 1, 2, ... guesses were right.
    """

    def __init__(
        self, bettors: Sequence[Bettor], members: Flags, first_looks: IntArray | None, credit: int
    ) -> None:
        """Take bettors, coins, shape (m,), and first looks as `reveal` does; ``credit`` is how many
        coins each bettor may look at before anyone bets.
        """
        m = members.size
        self._bettors = bettors
        self._members = members
        self._revealed = np.zeros(m, dtype=bool)
        # In the order of the coins: the example, its guess, the bettor (-1 for a look), the coins
        # seen before its turn, and the bettor's guesses of this turn up to the end of its tied
        # block.
        self._order, self._as_member, self._bettor, self._turn, self._block_end = np.zeros(
            (5, m), dtype=np.int64
        )
        self.seen = 0
        if first_looks is not None:
            self.seen = first_looks.size
            self._order[: self.seen] = first_looks
            self._bettor[: self.seen] = -1
            self._revealed[first_looks] = True
        self.right = [[0.0] for _ in bettors]
        self._credit: list[float] = [credit] * len(bettors)  # coins that each may take

    def take_turn(self, betting: set[int]) -> None:
        """Let each bettor take the coins that it may; those whose numbers are not in ``betting``
        look at theirs.
        """
        turn = self.seen
        for number, bettor in enumerate(self._bettors):
            count = math.floor(self._credit[number] + 1e-9)  # not short of one by rounding
            if count < 1 or self.seen == self._members.size:
                continue
            offer = bettor.propose(count, self._revealed)
            if offer.examples.size:
                self._record(offer, number, turn, number in betting)

    def _record(self, offer: Proposal, number: int, turn: int, is_bet: bool) -> None:
        """Reveal the coins of a proposal and keep them in their order.

        Args:
            offer: Guesses of one bettor.
            number: Of that bettor.
            turn: Coins that were seen before this turn, which names it.
            is_bet: Whether the guesses are bet on, or only looked at.
        """
        size = offer.examples.size
        taken = slice(self.seen, self.seen + size)
        self._order[taken] = offer.examples
        self._as_member[taken] = offer.as_member
        self._turn[taken] = turn
        self._bettor[taken] = number if is_bet else -1
        is_right = self._members[offer.examples] == offer.as_member
        if offer.block_end is None:
            self._block_end[taken] = np.arange(1, size + 1)
        else:
            self._block_end[taken] = offer.block_end
            is_right = _shares(is_right, offer.block_end)
        right = self.right[number]
        right += (right[-1] + is_right.cumsum(dtype=np.float64)).tolist()
        self._revealed[offer.examples] = True
        self._credit[number] -= size
        self.seen += size

    def add_credit(self, betting: set[int]) -> None:
        """Allow every bettor that bets as many more coins, and the others a tenth of them, for a
        look; so many that somebody can take the next tied block. Where none bets, all may look.
        """
        rates = [1 / LOOK_EVERY] * len(self._bettors)  # share of the coins that each gets
        for number in betting or range(len(rates)):
            rates[number] = 1.0
        # Coins that must be given out before each bettor can take its next block.
        needed = [
            (bettor.next_size(self._revealed) - credit) / rate
            for bettor, credit, rate in zip(self._bettors, self._credit, rates, strict=True)
        ]
        coins = max(1.0 + self.seen // GROWTH, min(needed))
        self._credit = [
            credit + coins * rate for credit, rate in zip(self._credit, rates, strict=True)
        ]

    def bets(self) -> Bets:
        """The bets in one order: by turn, then by the size of each bettor's guesses so far, tied
        blocks whole.
        """
        bets = np.flatnonzero(self._bettor >= 0)
        keys = self._bettor[bets], self._block_end[bets], self._turn[bets]
        bets = bets[np.lexsort(keys)]  # by the last key first
        # A tied block ends where bettor, turn or end of the block change; -1 ends the last one.
        blocks = np.stack([self._bettor, self._turn, self._block_end])[:, bets]
        stop = np.asarray(np.diff(blocks, append=-1).any(axis=0))
        examples = self._order[bets]
        as_member = self._as_member[bets] == 1
        right = self._members[examples] == as_member
        return Bets(examples, as_member, right, stop, self._bettor[bets], self._order)


def _shares(right: Flags, block_end: IntArray) -> NDArray[Any]:
    """How right each guess was, from 0 to 1, shape (n,): the guesses of a tied block all get the
    block's share of right ones, since they have no order.

    ``block_end`` is, for each guess, the number of guesses up to the end of its block, shape (n,).
    """
    cut = block_end[1:] != block_end[:-1]
    if cut.all():
        return right
    first = np.append(0, np.flatnonzero(cut) + 1)
    sizes = np.diff(np.append(first, right.size))
    return np.repeat(np.add.reduceat(right, first, dtype=np.int64) / sizes, sizes)


def favoured(right: Sequence[Sequence[float]]) -> set[int]:
    """Numbers of the bettors that bet next.

    The best one bets if it is right more often than by chance, and with it those that are hardly
    worse or have not guessed yet.

    Args:
        right: For each bettor, how many of its first 0, 1, 2, ... guesses were right; of a tied
            block, its share for each.
    """
    betting: set[int] = set()
    records: dict[int, tuple[float, float]] = {}  # recent share of right guesses, its variance
    for number, sums in enumerate(right):
        if len(sums) > 1:
            records[number] = _recent_share(sums)
        else:
            betting.add(number)
    best, spread = max(records.values(), default=(0.0, 0.0))
    if best - ABOVE_CHANCE * math.sqrt(spread) > 0.5:
        for number, (share, variance) in records.items():
            if share >= best - CLOSE * math.sqrt(spread + variance):
                betting.add(number)
    return betting


def _recent_share(sums: Sequence[float]) -> tuple[float, float]:
    """Share of right ones among the recent guesses, half a guess of each kind added, and its
    variance.

    ``sums`` says how many of the first 0, 1, 2, ... guesses were right; the last 60 are recent, or
    a quarter of them where that is more.
    """
    guesses = len(sums) - 1
    recent = min(guesses, max(WINDOW, guesses // 4))
    share = (sums[-1] - sums[-1 - recent] + 0.5) / (recent + 1)
    return share, share * (1 - share) / (recent + 1)
