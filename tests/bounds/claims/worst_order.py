"""The worst mechanism within a curve, where order and sides may follow output and earlier coins.

By symmetry (coins renamed, or turned over) a mechanism is a law of a decision tree of guesses and
of the coins. Its excess at log-odds e is the mean of (u(b) - e^e u(b'))^+ over examples, where b'
is b with that example's coin turned over.
"""

import itertools

import numpy as np

from tests.bounds.worst_case import largest_gain


def trees(rest):
    """Decision trees (example, side, if wrong, if right) over the examples that are left."""
    if not rest:
        return [None]
    grown = []
    for example in rest:
        below = trees([other for other in rest if other != example])
        for side in (0, 1):
            grown += [(example, side, wrong, right) for wrong in below for right in below]
    return grown


def first_trees(m, *, adaptive):
    """Trees that begin with the guess "member" on example 0; a single fixed order if not
    adaptive.
    """
    if adaptive:
        below = trees(list(range(1, m)))
        return [(0, 1, wrong, right) for wrong in below for right in below]
    tree = None
    for example in reversed(range(m)):
        tree = (example, 1, tree, tree)
    return [tree]


def right_guesses(tree, coins):
    """Whether each guess of a tree is right, in its order."""
    right = []
    while tree is not None:
        example, side, if_wrong, if_right = tree
        right.append(coins[example] == side)
        tree = if_right if right[-1] else if_wrong
    return np.array(right)


def all_tosses(m: int) -> list[tuple[int, ...]]:
    """Every outcome of m coins."""
    return list(itertools.product((0, 1), repeat=m))


def largest_chance(m, log_odds, delta, refutes, *, adaptive=True):
    """Largest chance that a mechanism of m coins is refuted whose profile is delta at each log-odds
    e; ``refutes`` takes whether each guess is right.
    """
    forest, tosses = first_trees(m, adaptive=adaptive), all_tosses(m)
    position = {
        key: number for number, key in enumerate(itertools.product(range(len(forest)), tosses))
    }
    gain = [float(refutes(right_guesses(forest[tree], coins))) for tree, coins in position]
    excesses = []
    for (tree, coins), example in itertools.product(position, range(m)):
        turned = (*coins[:example], 1 - coins[example], *coins[example + 1 :])
        here, there = position[tree, coins], position[tree, turned]
        for number, (e, d) in enumerate(zip(log_odds, delta, strict=True)):
            scale = 1 / (m * d)
            excesses.append((number, (here, scale), (there, scale * np.exp(e))))
    return largest_gain(gain, excesses, 1.0)
