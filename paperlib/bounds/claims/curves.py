"""A claimed trade-off curve, as its privacy profile: delta at every epsilon."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr

from paperlib.core import FloatArray

Profile = Callable[[FloatArray], FloatArray]
"""From epsilons of 0 or more, nats, to the delta of each, same shape.

It bounds both directions of a pair of neighbouring training sets. Any upper bound on delta keeps
the test of the curve valid.
"""


@dataclass(frozen=True, eq=False)
class ClaimedCurve:
    """The trade-off curve that somebody claims for a training."""

    name: str  # as the user wrote it
    profile: Profile
    with_noise: Callable[[float], Profile] | None = None
    """The profile at so many times the claimed noise; None for a curve without a noise."""
    is_add_remove: bool = False
    """Whether it is known to be one of adding or removing a record; else it is taken for one of
    the adjacency that the audit tests."""


def gaussian_profile(mu: float) -> Profile:
    """The profile of mu-Gaussian DP, mu above 0.

    Source:
        Dong, Roth and Su (2019), Corollary 2.13.
    """

    def delta(epsilon: FloatArray) -> FloatArray:
        first = log_ndtr(-epsilon / mu + mu / 2)
        second = epsilon + log_ndtr(-epsilon / mu - mu / 2)
        return np.asarray(-np.exp(first) * np.expm1(np.minimum(second - first, 0.0)))

    return delta


def profile_of_points(epsilon: ArrayLike, delta: ArrayLike) -> Profile:
    """The profile that several (epsilon, delta) pairs imply where all of them hold.

    Args:
        epsilon: Nats, 0 or more, shape (n,), in any order.
        delta: In [0, 1], same shape.

    Raises:
        ValueError: Arrays of other shapes, or numbers out of range.
    """
    e, d = np.asarray(epsilon, float), np.asarray(delta, float)
    if e.ndim != 1 or e.shape != d.shape or not e.size:
        raise ValueError(
            f"epsilon, delta: expected two columns of one length, got {e.shape} and {d.shape}"
        )
    if not (np.isfinite(e).all() and (e >= 0).all()):
        raise ValueError("epsilon: expected finite numbers of 0 or more")
    if not ((d >= 0).all() and (d <= 1).all()):
        raise ValueError("delta: expected numbers from 0 to 1")
    # A pair holds in both directions, so that at -e the delta is at most 1 - e^-e (1 - delta).
    log_odds = np.concatenate([-e, e])
    bounds = np.concatenate([1 - np.exp(-e) * (1 - d), d])
    order = np.lexsort((bounds, log_odds))
    # The delta of a pair of laws falls in epsilon and is convex in e^epsilon, at which 0 has delta
    # 1: between two pairs it is at most what a straight line says.
    odds = np.append(0.0, np.exp(log_odds[order]))
    heights = np.append(1.0, np.minimum.accumulate(bounds[order]))

    def profile(epsilon: FloatArray) -> FloatArray:
        return np.asarray(np.interp(np.exp(epsilon), odds, heights))

    return profile
