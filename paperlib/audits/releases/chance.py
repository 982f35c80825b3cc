"""Whether chance explains that rows of a table are equal, as rows of few words and rounded numbers
are.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

_SELDOM = 1e-3  # chance of so many equal rows, below which some are copies


def equal_by_chance(rows: NDArray[Any]) -> bool:
    """Whether chance explains how many pairs of rows of a table, shape (n, d), are equal.

    It does where in each column twice as many pairs are equal, or more, as in all columns: values
    meet without their rows. It does as well where, of the pairs that are equal in a column, no more
    are equal in the others than independent columns make likely, by a binomial test. In a table of
    one column equal rows are no copies.
    """
    if rows.shape[1] == 1:
        return True
    groups = np.unique(rows, axis=0, return_inverse=True)[1].ravel()
    equal_rows = _pairs(groups)
    equal = np.array([_pairs(column) for column in rows.T])
    if (equal >= 2 * equal_rows).all():
        return True
    # Of each column the share of all pairs that are equal in it; of its others their product.
    shares = equal / (len(rows) * (len(rows) - 1) / 2)
    in_others = np.array([np.delete(shares, number).prod() for number in range(len(shares))])
    chances = np.asarray(binom.sf(equal_rows - 1, equal, in_others))
    return bool((chances >= _SELDOM).all())


def _pairs(values: NDArray[Any]) -> int:
    """How many pairs of rows have one value, each pair counted once; values of shape (n,)."""
    times = np.unique(values, return_counts=True)[1]
    return int((times * (times - 1)).sum()) // 2
