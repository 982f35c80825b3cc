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
ABOVE_CHANCE = (
    1.0  # standard errors by which the best bettor must exceed one half before anyone bets
)
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
        next.
        """
        ...


@dataclass(frozen=True, eq=False)
class Proposal:
    """Guesses of one bettor, most confident first; arrays of shape (n,)."""

    examples: IntArray  # positions
    as_member: Flags  # True where "member" is guessed
    block_end: IntArray | None = (
        None  # number of them up to the end of the tied block of each; None: no ties
    )


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
    """The two bettors of a score: "member" is guessed from its top, "non-member" from its
    bottom.
    """
    order = np.argsort(-scores)
    top, bottom = order, order[::-1]
    return EndOfScores(top, scores[top], member=True), EndOfScores(
        bottom, scores[bottom], member=False
    )


class EndOfScores:
    """Guesses one membership from one end of a score: positions and values, most confident
    first.
    """

    def __init__(self, order: IntArray, values: FloatArray, *, member: bool) -> None:
        self._order, self._at, self._as_member = order, 0, np.full(order.size, member)
        ends = np.append(np.flatnonzero(values[1:] != values[:-1]), values.size - 1) + 1
        # End of the tied block of each position, and of the empty one after them; None if no value
        # is tied.
        self._end = None
        if ends.size < values.size:
            self._end = np.append(np.repeat(ends, np.diff(ends, prepend=0)), values.size)

    def next_size(self, revealed: Flags) -> int:
        while self._at < self._order.size and revealed[self._order[self._at]]:
            self._at += 1
        if self._end is None:
            return int(self._at < self._order.size)
        return int(np.count_nonzero(~revealed[self._order[self._at : self._end[self._at]]]))

    def propose(self, count: int, revealed: Flags) -> Proposal:
        self.next_size(revealed)  # moves past what is revealed
        start, reach = self._at, min(self._at + count, self._order.size)
        if self._end is not None:
            reach = int(self._end[reach - 1])
        examples = self._order[start:reach]
        offered = ~revealed[examples]
        last = None
        if self._end is not None:
            last = np.cumsum(offered, dtype=np.int64)[self._end[start:reach] - start - 1]
            whole = last <= count
            reach = start + int(np.count_nonzero(whole))
            offered &= whole
            last = last[offered]
        self._at, examples = reach, examples[offered]
        return Proposal(examples, self._as_member[: examples.size], last)


def reveal(
    bettors: Sequence[Bettor],
    members: Flags,
    first_looks: IntArray | None = None,
    *,
    leader: int | None = None,
    total: int | None = None,
) -> Bets:
    """Reveal every coin once, bet where recent guesses were right most often, and record the
    bets.
    """
    # No decision before a coin is revealed depends on it. ``first_looks`` are looked at before
    # anything else; a ``leader`` bets alone wherever it would bet. Between them the bettors propose
    # every example; these may be the ends of an audit of ``total`` examples.
    m, seen = members.size, 0
    revealed = np.zeros(m, dtype=bool)
    # In the order of the coins: the example, its guess, the bettor (-1 for a look), the coins seen
    # before its turn, and the bettor's guesses of this turn up to the end of its tied block.
    order, as_member, whose, turns, block_end = np.zeros((5, m), dtype=np.int64)
    if first_looks is not None:
        seen = first_looks.size
        order[:seen], whose[:seen], revealed[first_looks] = first_looks, -1, True
    right = [[0.0] for _ in bettors]  # of each bettor: right among its first 0, 1, 2, ... guesses
    # Coins that each may take; before anyone bets, 3 of 1,000 examples are looked at, 4 of 10,000.
    # A look costs a sure bet where the leak is strong; too few of them take a useless end for a
    # good one.
    credit: list[float] = [int(math.log10(total or m) + 1e-9)] * len(bettors)
    betting = set[int]()
    while True:
        turn = seen
        for i, bettor in enumerate(bettors):
            count = math.floor(credit[i] + 1e-9)
            if count < 1 or seen == m:
                continue
            offer = bettor.propose(count, revealed)
            size, shares = offer.examples.size, members[offer.examples] == offer.as_member
            if not size:
                continue
            taken = slice(seen, seen + size)
            order[taken], as_member[taken], turns[taken] = offer.examples, offer.as_member, turn
            whose[taken] = i if i in betting else -1
            if offer.block_end is None:
                block_end[taken] = np.arange(1, size + 1)
            else:
                block_end[taken], shares = offer.block_end, _shares(shares, offer.block_end)
            right[i] += (right[i][-1] + shares.cumsum(dtype=np.float64)).tolist()
            revealed[offer.examples] = True
            credit[i] -= size
            seen += size
        if seen == m:
            break
        betting = favoured(right)
        if leader in betting:
            betting = {leader}
        # As many coins for every bettor that bets, a share of it for a look; nobody may be all too
        # poor.
        rates = [
            1.0 if i in betting or not betting else 1 / LOOK_EVERY for i in range(len(bettors))
        ]
        needed = [
            (bettor.next_size(revealed) - left) / rate
            for bettor, left, rate in zip(bettors, credit, rates, strict=True)
        ]
        steps = max(1.0 + seen // GROWTH, min(needed))
        credit = [left + steps * rate for left, rate in zip(credit, rates, strict=True)]
    # One order of the bets: by turn, then by the size of each bettor's guesses so far, tied blocks
    # whole.
    bets = np.flatnonzero(whose >= 0)
    bets = bets[np.lexsort((whose[bets], block_end[bets], turns[bets]))]
    stop = np.asarray(np.diff(np.stack([whose, turns, block_end])[:, bets], append=-1).any(axis=0))
    examples, guesses = order[bets], as_member[bets] == 1
    return Bets(examples, guesses, members[examples] == guesses, stop, whose[bets], order)


def _shares(right: Flags, block_end: IntArray) -> NDArray[Any]:
    """How right each guess was: those of a tied block equally, since they have no order."""
    cut = block_end[1:] != block_end[:-1]
    if cut.all():
        return right
    first = np.append(0, np.flatnonzero(cut) + 1)
    sizes = np.diff(np.append(first, right.size))
    return np.repeat(np.add.reduceat(right, first, dtype=np.int64) / sizes, sizes)


def favoured(right: Sequence[Sequence[float]]) -> set[int]:
    """Positions of the bettors that bet next, from the right ones among the first 0, 1, 2, ... of
    each.
    """
    # The best one bets if it is right more often than by chance, and with it those that are hardly
    # worse or have not guessed yet.
    betting, seen = set[int](), dict[int, tuple[float, float]]()
    for i, sums in enumerate(right):
        if guesses := len(sums) - 1:
            # Share of right guesses among the recent ones, half a guess of each kind added, and its
            # variance.
            recent = min(guesses, max(WINDOW, guesses // 4))
            share = (sums[-1] - sums[-1 - recent] + 0.5) / (recent + 1)
            seen[i] = share, share * (1 - share) / (recent + 1)
        else:
            betting.add(i)
    best, spread = max(seen.values(), default=(0.0, 0.0))
    if best - ABOVE_CHANCE * math.sqrt(spread) > 0.5:
        betting |= {
            i for i, (share, var) in seen.items() if share >= best - CLOSE * math.sqrt(spread + var)
        }
    return betting
