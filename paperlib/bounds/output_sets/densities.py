"""Gaussian kernel density estimates of member and nonmember scores by FFT, and their log-ratio."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.fft import irfft, next_fast_len, rfft

from paperlib.bounds.output_sets.level_sets import Intervals, intervals_of
from paperlib.core import FloatArray
from paperlib.core.checks import check_vector

_STEP = 8.0  # grid points per bandwidth
_MARGIN = 6.0  # bandwidths kept free at each end of the grid
_MAX_GRID = 2**20  # points
_RELIABLE = 1e-9  # density, relative to the peak, below which the FFT's rounding shows
_PEAK_SHARE = 0.01  # of the highest peak: the floor of densities, or, where that is lower,
_FLOOR_SAMPLES = 2.0  # so many kernels' height; both chosen


@dataclass(frozen=True, eq=False)
class DensityPair:
    """Kernel density estimates of member and nonmember scores on one even grid."""

    grid: FloatArray  # points, shape (n,), evenly spaced, in the unit of the score
    member: FloatArray  # estimate for the members, per unit of the score
    nonmember: FloatArray  # estimate for the nonmembers
    heights: tuple[float, float]  # density that one member and one nonmember add at their own place


def rule_of_thumb(samples: FloatArray) -> float:
    """Silverman's bandwidth 1.06 min(std, IQR / 1.349) n^(-1/5); 0.0 for a constant sample.

    1.06 is best for a normal density, of which 1.349 standard deviations are the interquartile
    range (IQR).
    """
    spread = spread_of(samples)
    low, high = np.quantile(samples, [0.25, 0.75])
    if high > low:
        spread = min(spread, float(high - low) / 1.349)
    return 1.06 * spread * samples.size**-0.2


def spread_of(samples: FloatArray) -> float:
    """Standard deviation of samples, shape (k,), in their unit, without overflow for huge ones."""
    unit = float(np.abs(samples).max()) or 1.0
    return float(np.std(samples / unit)) * unit


def density_pair(
    member: ArrayLike, nonmember: ArrayLike, *, bandwidths: tuple[float, float] | None = None
) -> DensityPair:
    """Gaussian kernel density estimates of two samples on one grid, eight points or more per
    bandwidth.

    Args:
        member, nonmember: Samples, shapes (n,) and (m,).
        bandwidths: Of both, above 0, in the unit of the samples; None for the `rule_of_thumb`.

    Raises:
        ValueError: A sample that is no vector of finite numbers, or a bandwidth of 0 or less.
    """
    # Samples are shared out linearly to the two nearest points, then convolved with the kernel by
    # FFT; the variance which the sharing adds is taken off the kernel's. A very wide grid covers
    # the centre alone.
    samples = check_vector("member", member), check_vector("nonmember", nonmember)
    pooled = np.concatenate(samples)
    if bandwidths is None:
        # Constant samples are kept apart from each other without a kernel of width zero.
        # The least bandwidth is a small share of their distance, and more than rounding can hide.
        span = float(np.ptp(pooled))
        scale = max(float(np.abs(pooled).max()), 1e-300)
        least = max(1e-4 * span, 1e-9 * scale) if span > 0 else 1e-3 * max(scale, 1.0)
        bandwidths = max(rule_of_thumb(samples[0]), least), max(rule_of_thumb(samples[1]), least)
    if not all(np.isfinite(width) and width > 0 for width in bandwidths):
        raise ValueError(f"bandwidths: expected two positive numbers, got {bandwidths}")
    step = min(bandwidths) / _STEP
    low = float(pooled.min()) - _MARGIN * max(bandwidths)
    size = int(min((float(pooled.max()) + _MARGIN * max(bandwidths) - low) / step + 2, _MAX_GRID))
    if size == _MAX_GRID:
        low = max(low, float(np.median(pooled)) - size * step / 2)
    grid: FloatArray = low + step * np.arange(size, dtype=np.float64)
    member, nonmember = (
        _estimate(x, grid, width) for x, width in zip(samples, bandwidths, strict=True)
    )
    heights = [
        1 / (x.size * w * math.sqrt(2 * math.pi)) for x, w in zip(samples, bandwidths, strict=True)
    ]
    return DensityPair(grid, member, nonmember, (heights[0], heights[1]))


def _estimate(samples: FloatArray, grid: FloatArray, bandwidth: float) -> FloatArray:
    """Gaussian kernel density of samples, shape (k,), at the points of an even grid, shape (n,),
    per unit of the samples; ``bandwidth`` is in this unit. Samples beyond the grid are left out.
    """
    step = grid[1] - grid[0]
    position = (samples - grid[0]) / step
    position = position[(position >= 0) & (position < grid.size - 1)]
    # A sample between two points of the grid counts at both, by how near it is to each.
    cell = position.astype(np.int64)
    share = position - cell
    counts = np.bincount(cell, 1 - share, grid.size) + np.bincount(cell + 1, share, grid.size)
    size = next_fast_len(grid.size + int(2 * _MARGIN * bandwidth / step), real=True)
    frequency = 2 * np.pi * np.fft.rfftfreq(size)
    # Sharing out moves a sample by steps of mean square share (1 - share): 1/6 on average.
    variance = (bandwidth / step) ** 2 - 1 / 6
    kernel = np.exp(-0.5 * variance * frequency**2)
    smooth = np.asarray(irfft(rfft(counts, size) * kernel, size), dtype=np.float64)
    return np.maximum(smooth[: grid.size], 0.0) / (samples.size * step)


@dataclass(frozen=True, eq=False)
class RatioEstimate:
    """Estimated log p/q, with what it says of the samples it was estimated from."""

    grid: FloatArray  # points, shape (n,), rising
    ratio: FloatArray  # log p/q at the points, nats; linear between them, constant beyond them
    member_intervals: Intervals  # intervals in which p >= q
    levels: FloatArray  # each |log p/q| with its sample left out, at most the curve's, shape (k,)
    says_member: NDArray[
        np.bool_
    ]  # true where p >= q at a sample with that sample left out, shape (k,)


def estimate_ratio(
    x: FloatArray,
    is_member: NDArray[np.bool_],
    *,
    floor: float | None = None,
    min_density: float | None = None,
) -> RatioEstimate:
    """Estimate log p/q, p being the members' density, so that a thin tail of one sample cannot look
    certain.

    Args:
        x: Scores, shape (k,).
        is_member: Their membership, shape (k,).
        floor: Share of the highest peak, in (0, 1), to which lower densities are raised; None: the
            lower of 0.01 and two kernels' height.
        min_density: Density, per unit of the score, below which the ratio is not used (the paper's
            rule) in place of the floor; None for the floor.

    Raises:
        ValueError: Fewer than 2 scores of members, or of non-members.
    """
    # Where a density is below the floor, the ratio at the nearest point with both above is used if
    # it is the stronger. A sample's own kernel is left out of its own ratio: in a thin tail it is
    # most of the estimate.
    for name, count in (("member", is_member.sum()), ("nonmember", (~is_member).sum())):
        if count < 2:
            raise ValueError(f"selection scores: expected at least 2 {name} scores, got {count}")
    pair = density_pair(x[is_member], x[~is_member])
    peak = max(float(pair.member.max()), float(pair.nonmember.max()))
    if min_density is None:
        thin = min(_PEAK_SHARE * peak, _FLOOR_SAMPLES * max(pair.heights))
        least = max(thin if floor is None else floor * peak, _RELIABLE * peak)
        ratio = _carried(pair, least)
    else:
        least = max(min_density, _RELIABLE * peak)
        sound = np.minimum(pair.member, pair.nonmember) > least
        ratio = np.where(sound, _floored(pair.member, pair.nonmember, least), 0.0)
    member = np.interp(x, pair.grid, pair.member)
    nonmember = np.interp(x, pair.grid, pair.nonmember)
    member_without_own = _left_out(member, is_member, pair.heights[0])
    nonmember_without_own = _left_out(nonmember, ~is_member, pair.heights[1])
    levels = np.interp(x, pair.grid, ratio)
    # Where both estimates are rounding noise the nearest sound point decides.
    reliable = np.flatnonzero(np.maximum(pair.member, pair.nonmember) > _RELIABLE * peak)
    change = _floored(member_without_own, nonmember_without_own, least) - _floored(
        member, nonmember, least
    )
    return RatioEstimate(
        grid=pair.grid,
        ratio=ratio,
        member_intervals=at_least(
            pair.grid[reliable], pair.member[reliable] - pair.nonmember[reliable], 0.0
        ),
        levels=np.minimum(np.abs(levels), np.abs(levels + change)),
        says_member=member_without_own >= nonmember_without_own,
    )


def _floored(p: FloatArray, q: FloatArray, least: float) -> FloatArray:
    """log p/q of densities raised to at least ``least``, above 0."""
    return np.log(np.maximum(p, least)) - np.log(np.maximum(q, least))


def _left_out(density: FloatArray, is_own_class: NDArray[np.bool_], height: float) -> FloatArray:
    """Density at samples, shape (k,), without the kernel that each of its own class adds, of this
    ``height``; that of the other samples is kept.
    """
    count = int(is_own_class.sum())
    return np.where(is_own_class, np.maximum(density - height, 0.0) * count / (count - 1), density)


def _carried(pair: DensityPair, least: float) -> FloatArray:
    """Log p/q on the grid, nats, shape (points,), p being the members' density.

    Where a density is below ``least``, in its own unit, the ratio of the nearest point where both
    are above it, if that is the stronger and of the same sign.
    """
    ratio = _floored(pair.member, pair.nonmember, least)
    sound = np.flatnonzero(np.minimum(pair.member, pair.nonmember) >= least)
    if not sound.size:  # nowhere both: the first and the last ratio that is not 0 go on outwards
        nonzero = np.flatnonzero(ratio != 0)
        if nonzero.size:
            ratio[: nonzero[0]], ratio[nonzero[-1] :] = ratio[nonzero[0]], ratio[nonzero[-1]]
        return ratio
    points = np.arange(ratio.size)
    after = np.clip(np.searchsorted(sound, points), 0, sound.size - 1)
    before = np.maximum(after - 1, 0)
    nearest = np.where(points - sound[before] < sound[after] - points, sound[before], sound[after])
    carried = ratio[np.where(points > sound[-1], sound[-1], nearest)]
    stronger = (np.abs(carried) > np.abs(ratio)) & (carried * ratio >= 0)
    return np.where(stronger, carried, ratio)


def at_least(grid: FloatArray, values: FloatArray, level: float) -> Intervals:
    """Where a piecewise linear curve, flat beyond its ends, is at least ``level``: ``values`` at
    the points of a rising ``grid``, shape (n,) each.
    """
    above = values >= level
    change = np.flatnonzero(above[1:] != above[:-1])
    share = (level - values[change]) / (values[change + 1] - values[change])
    cuts = grid[change] + share * (grid[change + 1] - grid[change])
    return intervals_of(cuts, above, (-math.inf, math.inf))
