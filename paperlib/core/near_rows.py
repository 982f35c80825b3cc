"""Rows that are near to each other in the space of several features: do they share their coins?"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from paperlib.core.records import neighbours_share_coins

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Flags = NDArray[np.bool_]

_NEAR = (1, 4)  # numbers of nearest neighbours whose sides are compared with that of a row
_RING = (17, 64)  # neighbours from which the chance of a row is mended, the nearest left out
_RIDGE = 1.0  # holds slopes back where the ring has hardly more rows than features
_LEVEL = 5.0  # standard deviations from which neighbours share their side too often
_SHARE = 0.15  # and the correlation of their sides: less is left by a chance that was fitted badly
_DRAWS = 40  # times that the coins are tossed again
_SUREST = 0.001  # least chance of either side, so that no tossed coin is a constant
_LEAST_SCALE = 1.0  # of an agreement: below it the chances are so sure that nothing is compared
_FEWEST_ROWS = 100
_MOST_ROWS = 4_000  # rows around one row at random, for time and memory
_MOST_FEATURES = 10  # directions in which the rows vary most
_JITTER = 1e-6  # of a standard deviation, which puts equal rows apart


def near_rows_share_coins(rows: FloatArray, member: Flags, chances: FloatArray) -> bool:
    """Whether neighbours among the features stand on one side far more often than a chance of
    membership explains that changes smoothly.

    The chance of a row is the one that was fitted to all rows, mended by a local regression on
    neighbours at some distance; the nearest ones are left out, so that rows that share a coin do
    not explain each other. What is left of the sides of nearest neighbours is compared with coins
    that are tossed again by these chances. Of one feature the neighbours in rank are asked.

    Args:
        rows: Features, shape (n, d), finite.
        member: Whether each row is a member, shape (n,).
        chances: Of membership, by a smooth model of the features, shape (n,).

    Returns:
        False, too, for fewer than 100 rows, which tell nothing.
    """
    if len(rows) < _FEWEST_ROWS:
        return False
    if rows.shape[1] == 1:
        return neighbours_share_coins(rows[:, 0], member)
    rng = np.random.default_rng(0)
    order = rng.permutation(len(rows))
    space = _space(rows[order], rng)
    nearby = _around_one(space)
    order = order[nearby]
    return _sides_agree(space[nearby], member[order], chances[order], rng)


def principal_axes(rows: FloatArray) -> FloatArray:
    """Places of rows along the directions in which standardised features vary most, ten at most,
    shape (n, k).
    """
    standardised = _standardised(rows)
    directions: FloatArray = np.linalg.svd(standardised, full_matrices=False)[2]
    return np.asarray(standardised @ directions[:_MOST_FEATURES].T, dtype=np.float64)


def _standardised(rows: FloatArray) -> FloatArray:
    """Features with mean 0 and standard deviation 1; 0 for those of one value."""
    spread = rows.std(axis=0)
    return (rows - rows.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def _space(rows: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Where the rows stand to each other, equal ones a little apart."""
    space = principal_axes(rows)  # turned alone where there are no more than ten features
    return space + _JITTER * rng.normal(size=space.shape)


def _around_one(space: FloatArray) -> IntArray:
    """The rows around the first one, which stands there at random: all of them unless there are
    many.
    """
    distances = ((space - space[0]) ** 2).sum(axis=1)
    return np.argsort(distances, kind="stable")[:_MOST_ROWS]


def _sides_agree(
    space: FloatArray, member: Flags, chances: FloatArray, rng: np.random.Generator
) -> bool:
    """Whether nearest neighbours stand on one side more often than their chances explain.

    A parametric bootstrap: a chance is fitted to each row, 40 sets of sides are tossed by these
    chances, and the agreement of the observed sides is held against that of the tossed ones
    (`_is_excess`), for one nearest neighbour and for four.

    Args:
        space: Places of the rows, shape (n, features).
        member: Whether each row is a member, shape (n,).
        chances: Of membership, by a smooth model of the features, shape (n,).
        rng: For the sides that are tossed again.
    """
    first, last = _RING
    neighbours = _neighbours(space, min(last, len(space) // 2))
    ring = neighbours[:, first - 1 :]
    weights = _local_weights(space, ring)

    def residuals(sides: FloatArray) -> FloatArray:
        """Sides, shape (n, draws), less the chance that is fitted to them: the given one, and what
        a local regression on the ring finds missing from it.
        """
        misfit = sides - chances[:, None]
        return misfit - np.einsum("nk,nkt->nt", weights, misfit[ring])

    observed = member[:, None].astype(np.float64)  # sides as one draw, 1 for a member
    observed_residuals = residuals(observed)
    fitted = np.clip(observed - observed_residuals, _SUREST, 1.0 - _SUREST)
    tossed = (rng.random((len(space), _DRAWS)) < fitted).astype(np.float64)
    tossed_residuals = residuals(tossed)  # their chances are fitted anew, as the observed ones were
    deviations = np.sqrt(fitted * (1.0 - fitted))[:, 0]  # of the coin of each row
    for count in _NEAR:
        near = neighbours[:, :count]
        if _is_excess(
            agreement=float(_agreement(observed_residuals, near)[0]),
            tossed=_agreement(tossed_residuals, near),
            scale=float((deviations[:, None] * deviations[near]).sum()),
        ):
            return True
    return False


def _is_excess(agreement: float, tossed: FloatArray, scale: float) -> bool:
    """Whether an agreement of sides exceeds the mean of those of tossed coins by more than five
    standard deviations, and by more than a correlation of 0.15.

    Args:
        agreement: Of the observed sides: the sum of `_agreement`.
        tossed: Agreements of the sides that were tossed again, shape (draws,).
        scale: What the agreement would be if neighbours shared every coin (a correlation of 1).
    """
    excess = agreement - float(tossed.mean())
    is_beyond_coins = excess > _LEVEL * float(tossed.std())
    is_large = scale >= _LEAST_SCALE and excess > _SHARE * scale
    return is_beyond_coins and is_large


def _neighbours(space: FloatArray, count: int) -> IntArray:
    """The nearest other rows of each row, the nearest first, shape (n, count)."""
    from scipy.spatial import cKDTree  # here, since it is slow to load

    tree: Any = cKDTree(space)
    return np.asarray(tree.query(space, count + 1)[1], dtype=np.int64)[:, 1:]


def _agreement(residuals: FloatArray, near: IntArray) -> FloatArray:
    """How far rows and their neighbours stand on the same side of their chances, shape (draws,):
    the sum of the products of each row's residual with those of its near rows.

    ``residuals`` are sides less chances, shape (n, draws); ``near`` the row numbers of the
    neighbours of each row, shape (n, count).
    """
    total = np.zeros(residuals.shape[1])
    for neighbour in near.T:
        total += (residuals * residuals[neighbour]).sum(axis=0)
    return total


def _local_weights(space: FloatArray, ring: IntArray) -> FloatArray:
    """Weights by which a local linear regression predicts each row from its ring, shape (n, k).

    The prediction for the row itself is the intercept of a ridge regression on coordinates relative
    to the row: a weighted sum of what the rows of the ring show.

    Args:
        space: Coordinates of the rows, shape (n, features).
        ring: Row numbers of the ring of each row, shape (n, k).
    """
    relative = space[ring] - space[:, None]  # (n, k, features), 0 at the row itself
    # One scale for each ring, so that the penalty is as strong in dense regions as elsewhere.
    relative /= np.sqrt((relative**2).mean(axis=(1, 2), keepdims=True))
    count, features = ring.shape[1], space.shape[1]
    design = np.concatenate([np.ones((*ring.shape, 1)), relative], axis=2)
    penalty = np.diag([0.0, *[_RIDGE * count / features] * features])
    gram = np.einsum("nki,nkj->nij", design, design) + penalty
    intercept = np.zeros((len(space), features + 1, 1))
    intercept[:, 0] = 1.0
    # The coefficients are gram^-1 design' y, and the weights of y the first row of gram^-1 design'.
    solve: Any = np.linalg.solve  # of stacks of matrices
    first_row_of_inverse = np.asarray(solve(gram, intercept)[:, :, 0])
    return np.einsum("nki,ni->nk", design, first_row_of_inverse)
