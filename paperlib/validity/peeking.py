"""The adaptive order of `audit_one_run` with one thing wrong: some guesses know the coin they are bet on."""

from dataclasses import dataclass, replace

import numpy as np

from paperlib.bounds.one_run.adaptive import Bettor, Flags, Proposal, ends_of, reveal
from paperlib.bounds.one_run.anytime import anytime_from_counts
from paperlib.core import MembershipScores


@dataclass(frozen=True, eq=False)
class PeekingBettor:
    """A bettor that looks one coin ahead: where it peeks, it guesses what the coin shows."""

    bettor: Bettor
    members: Flags  # True for members, shape (m,)
    peeks: Flags  # True where the coin is known before the bet, shape (m,)

    def next_size(self, revealed: Flags) -> int:
        """As of the bettor itself."""
        return self.bettor.next_size(revealed)

    def propose(self, count: int, revealed: Flags) -> Proposal:
        """As of the bettor itself, but right wherever it peeks."""
        offer = self.bettor.propose(count, revealed)
        known = self.peeks[offer.examples]
        return replace(offer, as_member=np.where(known, self.members[offer.examples], offer.as_member))


def peeking_epsilon(
    scores: MembershipScores, *, confidence: float, share: float, rng: np.random.Generator
) -> float:
    """The default bound of `audit_one_run` at delta 0 if a ``share`` of the guesses, 0 to 1, is known.

    At a share of 0 it is that bound.
    """
    values, labels = scores.oriented().pooled()
    members, peeks = labels == 1, rng.random(values.size) < share
    bets = reveal([PeekingBettor(end, members, peeks) for end in ends_of(values)], members)
    made, right = np.arange(1, bets.right.size + 1), np.cumsum(bets.right, dtype=np.int64)
    if not bets.stop.any():
        return 0.0
    return anytime_from_counts(right[bets.stop], made[bets.stop], level=1 - confidence).epsilon
