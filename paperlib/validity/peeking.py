"""An adaptive order in small, and its twin that looks at coins before it bets on them.

Examples lie in the order of their scores. Each step guesses the next one from the top to be a member or the
next one from the bottom to be a non-member. Which end is next may depend on the coins revealed so far, never
on the coin that is bet on.
"""

import numpy as np

from paperlib.bounds.one_run.anytime import anytime_epsilon
from paperlib.core import IntArray, MembershipScores


def two_ends(labels: IntArray, ahead: IntArray) -> IntArray:
    """Guesses from both ends, the end with the better record next; 1 where right, in the order of the bets.

    Args:
        labels: Membership, 1 or 0, highest score first, shape (m,).
        ahead: 1 for a step that looks at the two coins it may bet on: it takes a right one, and bets on
            neither if both would lose. Shape (m,); all 0 is sound.

    >>> two_ends(np.array([1, 0, 1, 0]), np.zeros(4, dtype=int))
    array([1, 0, 1, 0])
    >>> two_ends(np.array([1, 0, 1, 0]), np.ones(4, dtype=int))
    array([1, 1, 1])
    """
    top, bottom = 0, labels.size - 1
    wins, tries = [1, 1], [2, 2]
    right: list[int] = []
    for peeks in ahead:
        win = (int(labels[top] == 1), int(labels[bottom] == 0))
        end = int(wins[1] * tries[0] > wins[0] * tries[1])  # 0 is the top
        if peeks and win[0] != win[1]:
            end = win[1]
        if win[end] or not peeks:
            right.append(win[end])
        wins[end] += win[end]
        tries[end] += 1
        top, bottom = top + (end == 0), bottom - (end == 1)
    return np.array(right, dtype=np.int64)


def two_ends_epsilon(
    scores: MembershipScores, *, confidence: float, peeks: float, rng: np.random.Generator
) -> float:
    """Bound of `two_ends` by the anytime test; a share ``peeks`` of the steps, 0 to 1, looks ahead."""
    values, labels = scores.oriented().pooled()
    ahead = (rng.random(values.size) < peeks).astype(np.int64)
    right = two_ends(labels[np.argsort(-values)].astype(np.int64), ahead)
    return anytime_epsilon(right, level=1 - confidence).epsilon
