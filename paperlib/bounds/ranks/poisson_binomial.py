"""Tail of a sum of independent coins with different biases, never reported too small.

A Fourier transform loses a tail of 1e-20 in round-off of size 1e-16. Here the coins are merged in a
binary tree by direct convolution: every term is nonnegative, so nothing cancels and the relative error
stays near machine precision. Ends of negligible mass are cut to keep arrays short, and the cut mass is
added back to every tail.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from paperlib.core import FloatArray

_BLOCK = 64  # coins merged without cutting, all blocks at once
_CUT = 1e-32  # mass that one cut may remove at either end: far below 1 - confidence of any float


@dataclass(frozen=True, eq=False)
class PoissonBinomial:
    """Distribution of the number of heads among independent coins."""

    start: int  # count of the first entry of ``mass``
    mass: FloatArray  # probability of ``start``, ``start + 1``, ..., shape (k,)
    missing: float  # probability cut away at both ends, an upper bound
    coins: int

    def upper_tail(self, counts: ArrayLike) -> FloatArray:
        """P[heads >= count], never understated, exact to a relative 1e-9 above 1e-22; any shape."""
        tails = np.append(np.cumsum(self.mass[::-1])[::-1], 0.0)
        # The tree depends on the probabilities, whose own round-off counts once per coin as well.
        tails = tails * (1.0 + 8.0 * (self.coins + 16) * np.finfo(float).eps) + self.missing
        wanted = np.asarray(counts, dtype=np.int64)
        places = np.clip(wanted - self.start, 0, self.mass.size)
        return np.where(wanted <= 0, 1.0, np.minimum(tails[places], 1.0))


def poisson_binomial(probabilities: ArrayLike) -> PoissonBinomial:
    """Distribution of the number of heads among independent coins, by direct convolution."""
    chances = np.sort(np.asarray(probabilities, dtype=np.float64).ravel())
    if not chances.size or not ((chances >= 0) & (chances <= 1)).all():
        raise ValueError(f"probabilities: expected values in [0, 1], got {chances.size} values {chances[:3]}")
    missing = 0.0
    parts: list[tuple[int, FloatArray]] = []
    for block in _blocks(chances):
        start, mass, cut = _trim(0, block)
        parts.append((start, mass))
        missing += cut
    while len(parts) > 1:
        merged: list[tuple[int, FloatArray]] = [parts[-1]] if len(parts) % 2 else []
        for (first, left), (second, right) in zip(parts[0:-1:2], parts[1::2], strict=False):
            start, mass, cut = _trim(first + second, np.convolve(left, right))
            merged.append((start, mass))
            missing += cut
        parts = merged
    start, mass = parts[0]
    return PoissonBinomial(start, mass, missing, chances.size)


def _blocks(chances: FloatArray) -> FloatArray:
    """Mass functions of consecutive blocks of coins, shape (blocks, coins per block + 1)."""
    size = min(_BLOCK, 1 << (chances.size - 1).bit_length())
    padded = np.zeros(-(-chances.size // size) * size)
    padded[: chances.size] = chances  # a coin that never shows heads changes nothing
    masses = np.stack([1.0 - padded, padded], axis=1)
    for _ in range(size.bit_length() - 1):
        left, right = masses[0::2], masses[1::2]
        width = left.shape[1]
        masses = np.zeros((left.shape[0], 2 * width - 1))
        for shift in range(width):
            masses[:, shift : shift + width] += left[:, shift, None] * right
    return masses


def _trim(start: int, mass: FloatArray) -> tuple[int, FloatArray, float]:
    """Cut both ends while the mass lost at each stays below the limit; returns what was lost."""
    from_left, from_right = np.cumsum(mass), np.cumsum(mass[::-1])
    low = int(np.searchsorted(from_left, _CUT, side="right"))
    high = int(np.searchsorted(from_right, _CUT, side="right"))
    kept: NDArray[np.float64] = mass[low : mass.size - high]
    lost = (from_left[low - 1] if low else 0.0) + (from_right[high - 1] if high else 0.0)
    return start + low, kept, float(lost) * (1.0 + 1e-9)
