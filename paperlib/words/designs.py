"""What an audit takes for granted of the coins that decided membership, and doubts about them."""

from typing import TYPE_CHECKING

from paperlib.core.checks import TiedRecords
from paperlib.core.options import Guess
from paperlib.core.results import round_down

if TYPE_CHECKING:
    from paperlib.bounds.one_run.fair_coins import GameSpread

CONDITIONS = {
    "randomized": "assumes that a fair coin tossed before training decided each record",
    "game": "coins tossed by this audit chose who is shown: it speaks of replacing one record",
    "played": "assumes that a fair coin tossed after training decided who is shown: it speaks of "
    "replacing one record",
}
"""What must stand beside every number, by how the audit was designed."""

THE_PROCEDURE = (
    "the bound speaks of the training procedure with its randomness, not of this one model"
)

GUESSED: dict[Guess, str] = {
    "adaptive": "which end of the scores is guessed next, and which coin is only looked at, "
    "depends on nothing but the scores and the coins revealed before it",
    "both": "the highest scores are guessed to be members and as many of the lowest non-members",
    "members": "only the highest scores are guessed to be members; the rest are abstentions",
    "nonmembers": "only the lowest scores are guessed to be non-members; the rest are abstentions",
    "grid": (
        "the highest scores are guessed to be members and the lowest non-members, in fixed numbers"
    ),
}
"""How the guesses of an audit were made."""

TOSS_NOW = 'design="game" (`--design game` in the shell) tosses coins now'


SCORE_DEPENDS = (
    "a score depends on the example and the trained model, not on membership in any other way"
)
"""What a score depends on."""


def coin_assumption(design: str, *, examples: str = "audit") -> str:
    """What an audit takes for granted of the coins of its design: "randomized", "game" or "played".

    ``examples`` says which of its examples have them, such as "evaluation".
    """
    return {
        "randomized": f"every {examples} example was included in training by its own fair coin, "
        "tossed before training",
        "game": "members and non-members come from one distribution, none the twin of another, so "
        "that the fair coins of the subsample drawn here (seeded) decide who is a member. Another "
        "seed gives another bound; picking the largest over seeds is a search that the confidence "
        "does not cover",
        "played": f"after training a fair coin decided for each {examples} example shown whether "
        "it is a member or a non-member from the same distribution",
    }[design]


def score_assumptions(design: str) -> tuple[str, str]:
    """What an audit of scores takes for granted: the coins of its design, and what a score depends
    on.
    """
    return coin_assumption(design), SCORE_DEPENDS


def uneven_counts(members: int, nonmembers: int, chance: float, bound: float) -> str:
    """The warning about counts that fair coins seldom give.

    Args:
        members, nonmembers: The counts.
        chance: Probability of counts at least this uneven under fair coins.
        bound: Epsilon that guessing the larger class every time would seem to show, nats.
    """
    return (
        f"{members} members and {nonmembers} non-members: fair coins give counts this uneven "
        f"with probability {chance:.2g}. If something else fixed them, a leak can be reported "
        "where there is none: guessing the larger class every time already looks like an "
        f"epsilon of {bound:.2f}; {TOSS_NOW}"
    )


def equal_counts(chance: float) -> str:
    """The warning about equal counts, which fair coins give with this probability."""
    return (
        "exactly as many members as non-members: fair coins give that with probability "
        f"{chance:.2g}. If the counts were fixed, this design does not hold, since it needs "
        f"coins tossed before training; {TOSS_NOW}"
    )


def near_rows(name: str) -> str:
    """The warning about rows that are near to each other in all features, and share their side."""
    return (
        f"{name}: rows that are near to each other are members, or not, together far more often "
        "than coins of their own make them: does each row have its own coin? If several rows "
        "share one, such as those of one customer, or crops of one image, say so: unit="
    )


def tie_warnings(ties: TiedRecords) -> tuple[str, ...]:
    """The warnings about equal records, and about neighbours in rank that share their side."""
    warnings: list[str] = []
    if ties.equal:
        share = f"{ties.equal:,} of {ties.rows:,}"
        warnings.append(f"{ties.name}: {share} are equal to another one; check for copies")
    if ties.neighbours_share_coins:
        warnings.append(
            f"{ties.name}: neighbours in rank are members, or not, together far more often than "
            "coins of their own make them: does each row have its own coin? If several rows "
            "share one, such as those of one customer, or epochs of one record, say so: unit=, "
            "or `paperlib audit --unit COLUMN`"
        )
    return tuple(warnings)


def other_games(spread: "GameSpread") -> str:
    """How the bounds of games vary that differ in their seed alone, without a full stop."""
    low = round_down(spread.lowest)
    mean = round_down(spread.mean)
    high = round_down(spread.highest)
    return (
        f"{spread.games} games with other seeds: lowest {low:.3f}, mean {mean:.3f}, "
        f"highest {high:.3f}; picking the largest is a search that the confidence does not cover"
    )


def threshold_search(guess: Guess, search: str) -> str:
    """How the guesses were made, and how their number was searched, in the words of ``search``."""
    return f"{GUESSED[guess]}; threshold search: {search}"
