"""Was membership decided by fair coins? If not: refuse, or play a privacy game on a subsample."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc

from paperlib.core import Design, IntArray, MembershipScores, check_choice

IMPLAUSIBLE = 1e-6
Toss = Callable[[np.random.Generator, int], NDArray[np.bool_]]


def fair_coin_p_value(members: int, nonmembers: int) -> float:
    """Two-sided probability of a split at least this uneven under fair coins.

    >>> fair_coin_p_value(500, 500)
    1.0
    """
    n, larger = members + nonmembers, max(members, nonmembers)
    return min(1.0, 2.0 * float(betainc(larger, n - larger + 1, 0.5)))


def fair_game(
    scores: MembershipScores, design: Design, *, seed: int, what: str = "this audit"
) -> MembershipScores:
    """Scores whose membership fair coins decided: those given, or for a "game" those that it shows.

    Counts that fair coins would hardly give are refused, else the class ratio leaks into the bound: 900
    members and 100 non-members with no signal at all look like an epsilon of 2.

    Raises:
        ValueError: An unknown design, or a two-sided p-value below 1e-6; the message says what to do.
    """
    check_choice("design", design, Design)
    if design == "game":
        scores = play_game(scores, seed=seed)
    members, nonmembers = scores.member.size, scores.nonmember.size
    if fair_coin_p_value(members, nonmembers) < IMPLAUSIBLE:
        raise ValueError(
            f"scores: {members} members and {nonmembers} non-members cannot come from fair coins "
            f"(p < {IMPLAUSIBLE:g}), which {what} assumes. If members and non-members come from one "
            'distribution, design="game" plays the privacy game on a fair-coin subsample of '
            f"{min(members, nonmembers)} examples"
        )
    return scores


def score_assumptions(design: str, *, examples: str = "audit") -> tuple[str, str]:
    """What an audit of scores takes for granted: the coins of its design, and what a score depends on."""
    coins = (
        f"every {examples} example was included in training by its own fair coin, tossed before training"
        if design == "randomized"
        else "members and non-members come from one distribution, so that the fair-coin subsample drawn here "
        "(seeded) stands for a training set drawn by fair coins"
    )
    return coins, "a score depends on the example and the trained model, not on membership in any other way"


def play_game(scores: MembershipScores, *, seed: int = 0) -> MembershipScores:
    """Pair members with non-members at random and show one of each pair by a fair coin.

    Args:
        scores: n_member and n_nonmember scores.
        seed: Seed of the pairing and of the coins, 0 or more.

    Returns:
        ``min(n_member, n_nonmember)`` scores whose membership is independent fair coins.

    Raises:
        ValueError: All coins fell on one side (only likely for a handful of pairs).

    Source:
        The privacy game of PANORAMIA, Definition 2.
    """
    sizes = scores.member.size, scores.nonmember.size
    member, nonmember = draw_game("scores", *sizes, seed=seed, toss=whole_number_coins)
    return MembershipScores(
        scores.member[member], scores.nonmember[nonmember], higher_means_member=scores.higher_means_member
    )


def draw_game(
    name: str, members: int, nonmembers: int, *, seed: int, toss: Toss
) -> tuple[IntArray, IntArray]:
    """Positions of the members and of the non-members that a privacy game shows.

    ``toss`` makes coins from a generator and a number of pairs; True shows the member. ``name`` is that of
    the data in the error message.

    Raises:
        ValueError: All coins fell on one side.
    """
    rng = np.random.default_rng(seed)
    pairs = min(members, nonmembers)
    member, nonmember = rng.permutation(members)[:pairs], rng.permutation(nonmembers)[:pairs]
    shown = toss(rng, pairs)
    if shown.all() or not shown.any():
        raise ValueError(f"{name}: {pairs} pairs are too few for a privacy game; all coins fell on one side")
    return member[shown], nonmember[~shown]


# Two ways to toss the same fair coins, kept apart so that seeded results stay what they were.
def whole_number_coins(rng: np.random.Generator, pairs: int) -> NDArray[np.bool_]:
    """Coins of a game on scores."""
    return rng.integers(0, 2, pairs).astype(bool)


def uniform_coins(rng: np.random.Generator, pairs: int) -> NDArray[np.bool_]:
    """Coins of a PANORAMIA game."""
    return rng.random(pairs) < 0.5
