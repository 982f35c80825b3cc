"""Was membership decided by fair coins? If not: refuse, or play a privacy game on a subsample."""

import numpy as np
from scipy.special import betainc

from paperlib.core import MembershipScores

IMPLAUSIBLE = 1e-6


def fair_coin_p_value(members: int, nonmembers: int) -> float:
    """Two-sided probability of a split at least this uneven under fair coins.

    >>> fair_coin_p_value(500, 500)
    1.0
    """
    n, larger = members + nonmembers, max(members, nonmembers)
    return min(1.0, 2.0 * float(betainc(larger, n - larger + 1, 0.5)))


def require_fair_coins(scores: MembershipScores, *, what: str = "this audit") -> None:
    """Refuse counts of members and non-members that fair coins would hardly give.

    Without this check the class ratio leaks into the bound: 900 members and 100 non-members
    with no signal at all look like an epsilon of 2.

    Raises:
        ValueError: Two-sided binomial p-value below 1e-6; the message says what to do.
    """
    members, nonmembers = scores.member.size, scores.nonmember.size
    if fair_coin_p_value(members, nonmembers) >= IMPLAUSIBLE:
        return
    raise ValueError(
        f"scores: {members} members and {nonmembers} non-members cannot come from fair coins "
        f"(p < {IMPLAUSIBLE:g}), which {what} assumes. If members and non-members come from one "
        'distribution, design="game" plays the privacy game on a fair-coin subsample of '
        f"{min(members, nonmembers)} examples"
    )


def play_game(scores: MembershipScores, *, seed: int = 0) -> MembershipScores:
    """Pair members with non-members at random and show one of each pair by a fair coin.

    Args:
        scores: n_member and n_nonmember scores.
        seed: Seed of the pairing and of the coins.

    Returns:
        ``min(n_member, n_nonmember)`` scores whose membership is independent fair coins.

    Raises:
        ValueError: All coins fell on one side (only likely for a handful of pairs).

    Source:
        The privacy game of PANORAMIA, Definition 2.
    """
    rng = np.random.default_rng(seed)
    pairs = min(scores.member.size, scores.nonmember.size)
    member = rng.permutation(scores.member)[:pairs]
    nonmember = rng.permutation(scores.nonmember)[:pairs]
    shown = rng.integers(0, 2, pairs).astype(bool)
    if shown.all() or not shown.any():
        raise ValueError(f"scores: {pairs} pairs are too few for a privacy game; all coins fell on one side")
    return MembershipScores(member[shown], nonmember[~shown], higher_means_member=scores.higher_means_member)
