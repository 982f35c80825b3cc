"""The worst mechanism by linear programming."""

import numpy as np
from scipy.optimize import linprog


def largest_gain(gain, excesses, delta, laws=None):
    """Largest gain of distributions whose excesses of likelihoods sum, in each group, to delta at
    most.

    An excess (group, (i, a), (j, b)) is what a p[i] exceeds b p[j] by. Each of the ``laws`` sums to
    1.
    """
    n, u = len(gain), np.arange(len(excesses))
    groups, high, low = zip(*excesses, strict=True)
    (i, a), (j, b) = zip(*high, strict=True), zip(*low, strict=True)
    names = list(dict.fromkeys(groups))
    privacy = np.zeros((u.size + len(names), n + u.size))
    np.add.at(privacy, (u, i), a)
    np.add.at(privacy, (u, j), np.negative(b))
    privacy[u, n + u] = -1
    privacy[[u.size + names.index(group) for group in groups], n + u] = 1
    limits = np.repeat([0.0, delta], [u.size, len(names)])
    laws = np.ones((1, n)) if laws is None else laws
    laws = np.hstack([laws, np.zeros((len(laws), u.size))])
    cost = np.append(np.negative(gain), np.zeros(u.size))
    solved = linprog(
        cost, A_ub=privacy, b_ub=limits, A_eq=laws, b_eq=np.ones(len(laws)), method="highs"
    )
    assert solved.success
    return -solved.fun
