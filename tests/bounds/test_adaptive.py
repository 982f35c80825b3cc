"""Adaptive ends: predictable, valid on every mechanism, nearly as strong as the best end known
beforehand.
"""

from functools import cache

import numpy as np
import pytest

from paperlib.bounds import audit_one_run
from paperlib.bounds.one_run.adaptive import Bets, Proposal, ends_of, reveal
from paperlib.bounds.one_run.anytime import log_mixture, log_threshold, sharp_share
from paperlib.core import MembershipScores

EXAMPLES = 11  # all membership vectors of so many coins
LEVEL = 1 / 3


class Peeking:
    """Broken twin: the first guess of each proposal is the coin itself."""

    def __init__(self, end, members):
        self._end, self._members = end, members

    def next_size(self, revealed):
        return self._end.next_size(revealed)

    def propose(self, count, revealed):
        offer = self._end.propose(count, revealed)
        guess = offer.as_member.copy()
        guess[:1] = self._members[offer.examples[:1]]
        return Proposal(offer.examples, guess, offer.block_end)


def honest(members) -> Bets:
    return reveal(ends_of(-np.arange(members.size)), members)


def peeking(members) -> Bets:
    return reveal([Peeking(end, members) for end in ends_of(-np.arange(members.size))], members)


@cache
def all_games(play):
    """Bets for every membership vector; a game's code is the sequence of its coins as they were
    revealed.
    """
    vectors = (np.arange(2**EXAMPLES)[:, None] >> np.arange(EXAMPLES)) & 1
    games = [play(vector.astype(bool)) for vector in vectors]
    sequences = np.array(
        [one[game.revealed] for one, game in zip(vectors, games, strict=True)], dtype=int
    )
    return games, sequences @ (1 << np.arange(EXAMPLES)[::-1])


def largest_error(play, epsilon):
    """Chance of refuting ``epsilon`` under the worst epsilon-DP mechanism: it decides how each coin
    shows.
    """
    games, codes = all_games(play)
    q = 1 / (1 + np.exp(-epsilon))
    refuted = np.zeros(2**EXAMPLES)
    for game, code in zip(games, codes, strict=True):
        right, stop = np.cumsum(game.right), game.stop
        made = np.arange(1, right.size + 1)
        mixture = log_mixture(right[stop], made[stop], epsilon, sharp_share(EXAMPLES))
        refuted[code] = mixture.max(initial=-np.inf) >= log_threshold(LEVEL)
    while refuted.size > 1:
        zero, one = refuted[0::2], refuted[1::2]
        refuted = np.maximum(q * one + (1 - q) * zero, q * zero + (1 - q) * one)
    return float(refuted[0])


def test_what_is_revealed_next_depends_on_revealed_coins_only():
    games, codes = all_games(honest)
    assert np.unique(codes).size == 2**EXAMPLES
    assert all(sorted(game.revealed) == list(range(EXAMPLES)) for game in games[::97])
    orders = np.array([game.revealed for game in games])[np.argsort(codes)]
    for known in range(EXAMPLES):
        same = orders[:, known].reshape(2**known, -1)
        assert (same == same[:, :1]).all()


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0])
def test_valid_for_every_mechanism_and_the_peeking_twin_is_not(epsilon):
    assert 0 < largest_error(honest, epsilon) <= LEVEL
    assert largest_error(peeking, epsilon) > LEVEL


def memorised(rng, m, share):
    labels = rng.random(m) < 0.5
    known = labels & (rng.random(m) < share)
    return MembershipScores.from_labels(rng.normal(size=m) + 5 * known, labels)


def test_useless_examples_are_passed_over_one_bit_is_bet_on_and_mirrored_scores_give_the_same():
    rng = np.random.default_rng(5)
    scores = memorised(rng, 2000, 0.1)
    sides = (np.append(side, rng.normal(50, 1, 20)) for side in (scores.member, scores.nonmember))
    outliers = MembershipScores(*sides)
    fixed = [
        audit_one_run(outliers, guess=guess).epsilon for guess in ("both", "members", "nonmembers")
    ]
    assert audit_one_run(outliers).epsilon > max(fixed) + 0.3
    scores = memorised(np.random.default_rng(1), 2000, 0.1)
    mirrored = MembershipScores(-scores.nonmember, -scores.member)
    assert audit_one_run(mirrored).epsilon == pytest.approx(audit_one_run(scores).epsilon, abs=0.2)
    answers = MembershipScores([1] * 450 + [0] * 50, [0] * 430 + [1] * 70)
    assert audit_one_run(answers).epsilon >= audit_one_run(answers, guess="both").epsilon
    scores = memorised(np.random.default_rng(4), 500, 0.5)
    default, both = (
        audit_one_run(scores, thresholds="dyadic", guess=one) for one in ("adaptive", "both")
    )
    assert default.to_dict() == both.to_dict()


def test_order_of_tied_examples_does_not_matter():
    rng = np.random.default_rng(2)
    labels = rng.random(600) < 0.5
    scores = np.round(rng.normal(size=600) + labels, 1)
    first = audit_one_run(MembershipScores.from_labels(scores, labels))
    shuffle = rng.permutation(600)
    again = audit_one_run(MembershipScores.from_labels(scores[shuffle], labels[shuffle]))
    assert (first.epsilon, first.guesses, first.correct) == (
        again.epsilon,
        again.guesses,
        again.correct,
    )


@pytest.mark.parametrize("first", [True, False])
def test_a_large_tied_block_has_no_order(first):
    """What is decided after a block of 500 equal scores does not depend on how they are listed."""
    rng = np.random.default_rng(3)
    labels = rng.random(3000) < 0.5
    values = np.sort(rng.normal(size=3000))[::-1].copy()
    values[:500] = values[0]
    members_first = np.concatenate(
        [np.argsort(labels[:500] != first, kind="stable"), np.arange(500, 3000)]
    )
    orders = np.arange(3000), members_first
    bets = [reveal(ends_of(values), labels[order]) for order in orders]
    shown = [np.cumsum(one.right)[one.stop] for one in bets]
    np.testing.assert_array_equal(*shown)
