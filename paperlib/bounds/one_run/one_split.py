"""Are several runs one split of the records? Their numbers of members then lie close together."""

from collections.abc import Sequence
from itertools import combinations
from math import comb, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, chdtr

Flags = NDArray[np.bool_]

_STRETCH = 40  # neighbours in rank that are compared between runs
_CHANGES = 12  # of side in a stretch, at least: where members stand apart, all stretches are alike
_FEWEST_STRETCHES = 20
_OF_PAIRS = 0.2  # share of the error that is spent on the closest two runs


def near_counts_p_value(sizes: Sequence[tuple[int, int]]) -> float:
    """Bound on the chance that fair coins of their own bring the counts of runs so close together.

    What is compared is how far each number of members is from half of the run's examples: models
    of one split share it, but for rows that were lost. All runs together are asked, and the closest
    two of them, which have a fifth of the chance.

    Args:
        sizes: Numbers of members and non-members of each run.

    Returns:
        In (0, 1]; 1 for fewer than two runs.

    >>> near_counts_p_value([(205, 195), (205, 194), (204, 195)]) < 0.05
    True
    >>> near_counts_p_value([(205, 195), (190, 210), (199, 201)]) > 0.05
    True
    """
    if len(sizes) < 2:
        return 1.0
    pairs = [_pair_p_value(first, second) for first, second in combinations(sizes, 2)]
    closest = min(1.0, comb(len(sizes), 2) * min(pairs))
    if len(sizes) == 2:
        return closest
    return min(1.0, closest / _OF_PAIRS, _p_value_of_all(sizes) / (1.0 - _OF_PAIRS))


def _pair_p_value(first: tuple[int, int], second: tuple[int, int]) -> float:
    """Chance that two runs, each its numbers of members and non-members, are as close as these, or
    closer.

    Members of the one and non-members of the other are together binomial of all examples, and half
    of these where the runs are as far from even as each other.
    """
    total = sum(first) + sum(second)
    distance = abs(first[0] + second[1] - total / 2)
    lowest, highest = total / 2 - distance, total / 2 + distance
    below = bdtr(lowest - 1, total, 0.5) if lowest >= 1 else 0.0
    return float(bdtr(highest, total, 0.5) - below)


def _p_value_of_all(sizes: Sequence[tuple[int, int]]) -> float:
    """Bound on the chance that all runs are as close together as these, by a chi-squared law of
    their squared distances from the mean; ``sizes`` as for `near_counts_p_value`.

    Those of the smallest run alone would be closer than those of all (Anderson's inequality). Half
    of the diagonal of a cell is added to the radius, since counts are whole numbers.
    """
    # Members beyond half of the examples, in each run.
    uneven = np.array([(members - nonmembers) / 2 for members, nonmembers in sizes])
    radius = sqrt(float(((uneven - uneven.mean()) ** 2).sum())) + sqrt(len(sizes)) / 2
    variance = min(sum(run) for run in sizes) / 4
    return float(chdtr(len(sizes) - 1, radius**2 / variance))


def share_stretches(first: Flags, second: Flags) -> bool:
    """Whether two runs are likely one run, from one of which rows were lost: their examples
    change sides in the same way over most stretches of neighbours in rank.

    These are 20 stretches or more, and at least half of those of the run with fewer. Ranks are
    the same in whatever unit scores are.

    Args:
        first, second: Of each run, in the order of its scores, whether the side (member or not)
            changes from one example to the next, shape (m - 1,); their lengths may differ.
    """
    stretches = [_stretches(changes) for changes in (first, second)]
    fewest = min(map(len, stretches))
    common = len(stretches[0] & stretches[1])
    return common >= max(_FEWEST_STRETCHES, fewest / 2)


def _stretches(changes: Flags) -> set[int]:
    """The different stretches of 40 neighbouring flags, without those of few changes: each as the
    whole number of 40 bits of which bit i is its flag i.
    """
    if changes.size < _STRETCH:
        return set()
    windows = np.lib.stride_tricks.sliding_window_view(changes, _STRETCH)
    lively = windows[windows.sum(axis=1) >= _CHANGES]
    bit_values = 1 << np.arange(_STRETCH, dtype=np.int64)
    return set((lively @ bit_values).tolist())
