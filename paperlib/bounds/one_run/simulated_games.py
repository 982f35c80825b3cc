"""Many games of the two ends of a score, side by side: what `reveal` does one game after the other.

For simulated audits alone, of which the limit of detection needs hundreds. A game is a row of an
array, and a turn of all games is a few operations on columns.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from paperlib.bounds.one_run.adaptive import (
    ABOVE_CHANCE,
    CLOSE,
    GROWTH,
    LOOK_EVERY,
    WINDOW,
    Flags,
    first_credit,
)
from paperlib.core import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class StoppingPoints:
    """Where the tests of all games may stop, game by game; arrays of shape (n,)."""

    game: IntArray  # number of the game
    correct: IntArray  # right guesses up to here
    guesses: IntArray  # guesses up to here


class _End:
    """One end of the scores of all games, from which one membership is guessed.

    A position is a number of examples from this end. An edge is a position at which no block of
    tied scores is cut.

    Attributes:
        right: Whether a guess about each example is right, shape (games, n), this end first.
        row: Numbers of the games, 0, 1, 2, ..., to index by.
        position: Examples of each game that this end has revealed, shape (games,).
        edge_before, edge_after: For each position, the last edge at or before it and the first at
            or after it, shape (games, n + 1).
    """

    def __init__(self, values: FloatArray, right: Flags) -> None:
        """Take the scores, this end first, and whether guesses are right, both (games, n)."""
        games, n = right.shape
        self.right = right
        self.row: IntArray = np.arange(games, dtype=np.int64)
        self.position = np.zeros(games, dtype=np.int64)
        self._positions: IntArray = np.arange(n + 1, dtype=np.int64)
        right_before = np.zeros((games, n + 1))  # right guesses among the first 0, 1, 2, ...
        np.cumsum(right, axis=1, out=right_before[:, 1:])
        changes = values[:, 1:] != values[:, :-1]
        if changes.all():  # no scores are tied: each position is an edge
            self.edge_before = self.edge_after = np.broadcast_to(self._positions, (games, n + 1))
            self._right_before = right_before
            return
        is_edge = np.ones((games, n + 1), dtype=bool)
        is_edge[:, 1:-1] = changes
        self.edge_before = np.maximum.accumulate(np.where(is_edge, self._positions, 0), axis=1)
        edge_after: IntArray = np.where(is_edge, self._positions, n)
        self.edge_after = np.minimum.accumulate(edge_after[:, ::-1], axis=1)[:, ::-1]
        self._right_before = self._shared_counts(right_before)

    def _shared_counts(self, counts: FloatArray) -> FloatArray:
        """Right guesses before each position, those of a tied block shared equally among it."""
        before = np.take_along_axis(counts, self.edge_before, axis=1)
        after = np.take_along_axis(counts, self.edge_after, axis=1)
        width = np.maximum(self.edge_after - self.edge_before, 1)
        share = (self._positions - self.edge_before) / width
        return before + (after - before) * share

    def next_size(self, limit: IntArray) -> IntArray:
        """Examples in the next tied block of each game, 0 where the position is at the limit, shape
        (games,) as ``limit``.
        """
        is_left = self.position < limit
        following = np.where(is_left, self.position + 1, self.position)
        return np.where(is_left, self.edge_after[self.row, following] - self.position, 0)

    def take(self, count: IntArray, limit: IntArray) -> IntArray:
        """Pass over whole tied blocks of at most ``count`` examples together, up to the limit; the
        number of these examples in each game. All have shape (games,).
        """
        reach = np.minimum(self.position + count, limit)
        taken = np.maximum(self.edge_before[self.row, reach] - self.position, 0)
        self.position = self.position + taken
        return taken

    def recent_share(self) -> tuple[FloatArray, FloatArray]:
        """Share of right ones among the recent guesses of each game, with half a guess of each kind
        added, and its variance, both of shape (games,); the last 60 guesses are recent, or a
        quarter of them where that is more.
        """
        recent = np.minimum(self.position, np.maximum(WINDOW, self.position // 4))
        right = self._right_before[self.row, self.position]
        right = right - self._right_before[self.row, self.position - recent]
        share = (right + 0.5) / (recent + 1)
        return share, share * (1 - share) / (recent + 1)


def play_ends(values: FloatArray, members: Flags, total: int) -> StoppingPoints:
    """The stopping points of the adaptive guesses of many games, as `reveal` plays one.

    In each turn both ends reveal the coins that they have credit for, and bet on them where they
    were favoured; then an end that bets gets more credit, and the other a tenth of it, for looks.

    Args:
        values: Scores of each game, highest first, shape (games, n).
        members: The coins, shape (games, n).
        total: Examples of the audit, of which these may be the ends.
    """
    games, n = members.shape
    ends = (_End(values, members), _End(values[:, ::-1], ~members[:, ::-1]))
    credit = np.full((2, games), float(first_credit(total)))  # coins that each end may reveal
    betting = np.zeros((2, games), dtype=bool)  # at first both ends only look
    bets: list[IntArray] = []  # rows: turn, side, game, first position, number of examples
    turn = 0
    while True:
        for side, end in enumerate(ends):
            limit = n - ends[1 - side].position
            count = np.floor(credit[side] + 1e-9).astype(np.int64)
            start = end.position
            taken = end.take(np.maximum(count, 0), limit)
            credit[side] -= taken
            # The games in which this end bets; in the others it only looks.
            game = np.flatnonzero(betting[side] & (taken > 0))
            turn_and_side = np.full((2, game.size), [[turn], [side]])
            bets.append(np.vstack([turn_and_side, game, start[game], taken[game]]))
        revealed = ends[0].position + ends[1].position
        if (revealed == n).all():
            break
        betting = _favoured(ends)
        rates = np.where(betting | ~betting.any(axis=0), 1.0, 1 / LOOK_EVERY)
        # Coins that must be given out before some end can take its next tied block.
        sizes = np.array([ends[side].next_size(n - ends[1 - side].position) for side in (0, 1)])
        needed = ((sizes - credit) / rates).min(axis=0)
        credit += np.maximum(1.0 + revealed // GROWTH, needed) * rates
        turn += 1
    return _stopping_points(ends, np.hstack(bets))


def _favoured(ends: tuple[_End, _End]) -> NDArray[np.bool_]:
    """Which ends bet next in each game, shape (2, games): the one that was right most often of
    late, if more often than by chance, and with it the other where it is hardly worse or has not
    guessed yet.
    """
    recent: FloatArray = np.array([end.recent_share() for end in ends])
    share, variance = recent[:, 0], recent[:, 1]
    has_guessed = np.array([end.position > 0 for end in ends])
    # The best share; of equal ones that of the larger variance, as `max` of pairs.
    order = np.lexsort((variance, np.where(has_guessed, share, -1.0)), axis=0)[-1]
    games: IntArray = np.arange(order.size, dtype=np.int64)
    best, spread = share[order, games], variance[order, games]
    is_above = has_guessed.any(axis=0) & (best - ABOVE_CHANCE * np.sqrt(spread) > 0.5)
    is_close = share >= best - CLOSE * np.sqrt(spread + variance)
    return ~has_guessed | (is_above & is_close)


def _stopping_points(ends: tuple[_End, _End], bets: IntArray) -> StoppingPoints:
    """The stopping points of bets, game by game.

    Args:
        ends: Whether guesses are right, and the edges of tied blocks.
        bets: Turn, side, game, first position and number of examples of each, shape (5, bets).
    """
    # One entry for each example that is bet on, in place of one for each bet.
    sizes = bets[4]
    turn, side, game, start = np.repeat(bets[:4], sizes, axis=1)
    within: IntArray = np.arange(turn.size, dtype=np.int64)
    within -= np.repeat(np.cumsum(sizes) - sizes, sizes)  # number of each within its bet
    position = start + within
    is_right = np.where(side == 0, ends[0].right[game, position], ends[1].right[game, position])
    edge = np.where(
        side == 0, ends[0].edge_after[game, position + 1], ends[1].edge_after[game, position + 1]
    )
    block_end = edge - start
    # One order of the bets of a game, as of `reveal`: by turn, by the size of each end's guesses.
    order = np.lexsort((side, block_end, turn, game))
    game = game[order]
    index: IntArray = np.arange(game.size, dtype=np.int64)
    # Of each bet, the index of the first one of its game.
    first: IntArray = np.maximum.accumulate(np.where(np.diff(game, prepend=-1) != 0, index, 0))
    right_before: IntArray = np.append(0, np.cumsum(is_right[order]))
    correct = right_before[1:] - right_before[first]
    guesses = index + 1 - first
    # A tied block ends where any of these change; -1 ends the last one.
    blocks = np.stack([game, turn[order], block_end[order], side[order]])
    stop = np.diff(blocks, append=-1).any(axis=0)
    return StoppingPoints(game[stop], correct[stop], guesses[stop])
