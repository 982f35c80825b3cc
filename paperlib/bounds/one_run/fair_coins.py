"""Was membership decided by fair coins? If not: refuse, or play a privacy game on a subsample.

A whole game (book: one-run audit) tosses one fair coin for each of m places: heads shows the next
member, tails the next non-member, both in random order. The two sides of a coin differ by one
trained record, the one shown or a hidden one in its place, so that each coin is hidden as replacing
one record is. The coins may ask for more than the n members or others there are. Imagine that game
too, with further others, and further real examples shown as members, a random n of which are
trained on: one coin changes one trained record or none, so a bound from these imagined games holds.
Drawing the coins again in their place multiplies its error by less than 1 + 6e-7. Where each
non-member is the twin of a member, two shown twins tell on each other: toss one coin for each pair,
show one of it, and name the design "played".
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, lgamma, log, sqrt
from typing import Any

import numpy as np
from scipy.special import betainc

from paperlib.bounds.one_run.tails import epsilon_from_counts
from paperlib.core import IntArray, MembershipScores
from paperlib.core.checks import check_at_least, check_choice
from paperlib.core.facts import Adjacency
from paperlib.core.options import Design
from paperlib.core.results import AuditResult
from paperlib.words import designs

IMPLAUSIBLE = 1e-6  # chance of counts, under fair coins, below which they are refused
DOUBTFUL = 0.01  # chance of counts below which they are warned of
_SELDOM = 0.1  # chance of equal counts, under fair coins, below which they are remarked upon


def fair_coin_p_value(members: int, nonmembers: int) -> float:
    """Two-sided probability, under fair coins, of a split at least as uneven as that into
    ``members`` and ``nonmembers``, numbers of examples.

    >>> fair_coin_p_value(500, 500)
    1.0
    """
    n, larger = members + nonmembers, max(members, nonmembers)
    # The incomplete beta function is the chance of ``larger`` heads or more of n coins.
    return min(1.0, 2.0 * float(betainc(larger, n - larger + 1, 0.5)))


def coin_warnings(members: int, nonmembers: int, design: Design) -> tuple[str, ...]:
    """Warnings that fair coins seldom give these numbers of members and non-members, too uneven or
    equal; none about coins that the audit drew itself (design "game").
    """
    if design == "game":
        return ()
    total, larger = members + nonmembers, max(members, nonmembers)
    chance = fair_coin_p_value(members, nonmembers)
    if chance < DOUBTFUL:
        bound = float(epsilon_from_counts(larger, total, 0.05))
        return (designs.uneven_counts(members, nonmembers, chance, bound),)
    # Chance of equal counts: total over total / 2, divided by 2^total.
    equal = exp(lgamma(total + 1) - 2 * lgamma(total / 2 + 1) - total * log(2))
    if design == "randomized" and members == nonmembers and equal < _SELDOM:
        return (designs.equal_counts(equal),)
    return ()


def score_warnings(scores: MembershipScores, design: Design) -> tuple[str, ...]:
    """Doubts about the coins that decided who is a member of these scores."""
    return coin_warnings(scores.member.size, scores.nonmember.size, design)


def adjacency_of(design: Design) -> Adjacency:
    """What two neighbouring training sets differ in: with coins tossed before training a record is
    there or not; where it was decided later who is shown, another record was trained on instead.
    """
    return "add/remove" if design == "randomized" else "replace"


def score_facts(scores: MembershipScores, design: Design) -> dict[str, Any]:
    """The facts of an `AuditResult` that scores and the design of their audit settle."""
    return {
        "adjacency": adjacency_of(design),
        "design": design,
        "direction": "higher" if scores.higher_means_member else "lower",
    }


def fair_game(
    scores: MembershipScores, design: Design, *, seed: int, what: str = "this audit"
) -> MembershipScores:
    """Scores whose membership fair coins decided: those given, if plausible, or those that a game
    shows.

    ``what`` is what an error says assumes fair coins.

    Raises:
        ValueError: An unknown design, counts that fair coins do not give, or too few examples for a
            game.
    """
    # 900 members and 100 non-members with no signal at all would look like an epsilon of 2.
    check_choice("design", design, Design)
    if design == "game":
        return play_game(scores, seed=seed)
    members, nonmembers = scores.member.size, scores.nonmember.size
    if fair_coin_p_value(members, nonmembers) < IMPLAUSIBLE:
        raise ValueError(
            f"scores: {members} members and {nonmembers} non-members cannot come from fair coins "
            f"(p < {IMPLAUSIBLE:g}), which {what} assumes. If members and non-members come from "
            'one distribution, design="game" (`--design game` in the shell) plays the privacy game '
            f"on a fair-coin subsample of {game_size(min(members, nonmembers))} examples"
        )
    return scores


def play_game(scores: MembershipScores, *, seed: int = 0) -> MembershipScores:
    """Show members and non-members by fair coins: a whole game, as the module describes.

    Returns:
        Scores whose membership is independent fair coins; of 5,000 of each side, 9,500.

    Source:
        The privacy game of PANORAMIA, Definition 2, without its pairs: this project.
    """
    member, nonmember = draw_game("scores", scores.member.size, scores.nonmember.size, seed=seed)
    return MembershipScores(
        scores.member[member],
        scores.nonmember[nonmember],
        higher_means_member=scores.higher_means_member,
    )


def game_size(side: int) -> int:
    """Examples that a game shows, of ``side`` members and as many others, both 1 or more."""
    # Five standard deviations of the coins are kept in reserve, or as many examples as there are on
    # a side.
    return max(side, int(2 * side - 5 * sqrt(2 * side)))


def draw_game(name: str, members: int, nonmembers: int, *, seed: int) -> tuple[IntArray, IntArray]:
    """Positions of the members and of the non-members that a privacy game shows, each in random
    order: shapes (k,) and (total - k,), k by fair coins.

    ``name`` begins an error.

    Raises:
        ValueError: So few examples that all coins fell on one side.
    """
    rng = np.random.default_rng(seed)
    side = min(members, nonmembers)
    total = game_size(side)
    shown_members = int(rng.binomial(total, 0.5))
    # Coins that ask for more than there are, in less than one of a million games, are tossed again;
    # the docstring of the module says what that costs.
    while max(shown_members, total - shown_members) > side:
        shown_members = int(rng.binomial(total, 0.5))
    if shown_members in (0, total):
        raise ValueError(
            f"{name}: {total} examples are too few for a privacy game; all coins fell on one side: "
            "bring more of the smaller side, or choose another seed"
        )
    return rng.permutation(members)[:shown_members], rng.permutation(nonmembers)[
        : total - shown_members
    ]


@dataclass(frozen=True)
class GameSpread:
    """Bounds of games that differ in their seed alone, nats."""

    lowest: float
    mean: float
    highest: float
    games: int

    def __str__(self) -> str:
        return designs.other_games(self)


def game_spread(audit: Callable[..., AuditResult], *, games: int = 10, seed: int = 0) -> GameSpread:
    """Bounds of the games that follow the one reported, which is that of ``seed``.

    Args:
        audit: Audit that takes ``design`` and ``seed``, its scores given already:
            ``partial(audit_one_run, scores, delta=1e-5)``.
        games: Number of games, 1 or more; their seeds are seed + 1, seed + 2, ... .

    Raises:
        ValueError: ``games`` below 1, or an audit whose result has no epsilon.

    >>> import numpy as np
    >>> from functools import partial
    >>> from paperlib import MembershipScores, audit_one_run
    >>> rng = np.random.default_rng(0)
    >>> scores = MembershipScores(rng.normal(1, 1, 300), rng.normal(0, 1, 500))
    >>> spread = game_spread(partial(audit_one_run, scores), games=3)
    >>> 0 < spread.lowest < spread.mean < spread.highest
    True
    """
    check_at_least(1, games=games)
    bounds: list[float] = []
    for game_seed in range(seed + 1, seed + games + 1):
        epsilon = audit(design="game", seed=game_seed).epsilon
        if epsilon is None:
            raise ValueError(
                "audit: its result has no epsilon to compare; give known_c to audit_panoramia"
            )
        bounds.append(epsilon)
    return GameSpread(min(bounds), sum(bounds) / games, max(bounds), games)
