"""Comparisons: samples with their intervals against the range of a rule, and what would decide."""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri, stdtrit

from paperlib.core.intervals import share_interval
from paperlib.reproduction.papers.verdict.evidence import Term
from paperlib.reproduction.papers.verdict.samples import Estimate, Sample

MOST_REPETITIONS = 10_000
"""An undecided target that would need more of them needs other settings."""
_BOOTSTRAP_DRAWS = 10_000


class Joined(NamedTuple):
    """Samples of which one number is compared, the largest of their means."""

    samples: Sequence[Sequence[float]]


class Compared(NamedTuple):
    """The sample of one comparison."""

    term: Term
    label: str  # setting, level or panel; empty for the only one
    sample: Sample | Joined


@dataclass(frozen=True)
class Contrast:
    """One comparison with its interval."""

    term: Term
    label: str  # setting, level or panel; empty for the only one
    mean: float  # over the repetitions, or the estimate
    low: float
    high: float

    @property
    def inside(self) -> bool:
        """Whether the whole interval lies in the range of the rule, or the mean where the rule
        compares that.
        """
        if self.term.how == "mean on public models":
            return self.term.at_least <= self.mean <= self.term.at_most
        return self.margin >= 0

    @property
    def outside(self) -> bool:
        """Whether the whole interval lies outside the range of the rule."""
        return self.high < self.term.at_least or self.low > self.term.at_most

    @property
    def margin(self) -> float:
        """Distance between the interval and the nearer end of the range; negative unless inside."""
        return min(self.low - self.term.at_least, self.term.at_most - self.high)

    def __str__(self) -> str:
        where = f" ({self.label})" if self.label else ""
        return f"{self.term.name}{where} {self._value()}"

    def _value(self) -> str:
        """The mean with its interval, where it has one with two ends."""
        if math.isnan(self.mean):
            return "not measured"
        if 0 < self.high - self.low < math.inf:
            return f"{self.mean:.3g} [{self.low:.3g}, {self.high:.3g}]"
        return f"{self.mean:.3g}"


def contrast_of(compared: Compared, error: float) -> Contrast:
    """The comparison with its two-sided interval of confidence 1 - ``error``.

    The interval is normal for an estimate, exact (Clopper-Pearson) for counted shares, by the
    bootstrap for the largest of several means, and otherwise Student's. A single value has the
    whole line, and no value has NaN as its mean.
    """
    term, label, sample = compared
    if isinstance(sample, Joined):
        return _largest_mean(term, sample, error)
    if isinstance(sample, Estimate):
        half = float(ndtri(1 - error / 2)) * sample.error
        return Contrast(term, label, sample.value, sample.value - half, sample.value + half)
    values = np.asarray(sample, dtype=float)
    mean = float(values.mean()) if values.size else math.nan
    if term.measure == "share" and values.size and np.isin(values, (0.0, 1.0)).all():
        low, high = share_interval(int(values.sum()), values.size, confidence=1 - error)
        return Contrast(term, label, mean, low, high)
    if values.size < 2:
        return Contrast(term, label, mean, -math.inf, math.inf)
    quantile = stdtrit(values.size - 1, 1 - error / 2)
    half = float(quantile * values.std(ddof=1) / math.sqrt(values.size))
    return Contrast(term, label, mean, mean - half, mean + half)


def _largest_mean(term: Term, joined: Joined, error: float) -> Contrast:
    """The largest of the means, with an interval that holds for all of them at once.

    Bootstrap draws of the models within each sample give the largest deviation of any mean, which
    the largest mean cannot exceed. (Quantiles of the largest bootstrap mean itself do not hold:
    where all means are equal it always lies above their maximum.) A bootstrap of n values has
    n - 1 of n parts of their variance, and normal tails where Student's are due.
    """
    samples = [np.asarray(sample, dtype=float) for sample in joined.samples]
    if not all(sample.size for sample in samples) or not samples:
        return Contrast(term, "", math.nan, -math.inf, math.inf)
    largest = max(float(sample.mean()) for sample in samples)
    least = min(sample.size for sample in samples)
    if least < 2:
        return Contrast(term, "", largest, -math.inf, math.inf)
    rng = np.random.default_rng(0)
    deviations = np.zeros(_BOOTSTRAP_DRAWS)
    for sample in samples:
        drawn = rng.choice(sample, (_BOOTSTRAP_DRAWS, sample.size)).mean(axis=1)
        widened = np.abs(drawn - sample.mean()) * math.sqrt(sample.size / (sample.size - 1))
        deviations = np.maximum(deviations, widened)
    tails = float(stdtrit(least - 1, 1 - error / 2) / ndtri(1 - error / 2))
    half = float(np.quantile(deviations, 1 - error)) * tails
    return Contrast(term, "", largest, largest - half, largest + half)


def times_needed(
    claimed: Sequence[Compared], conditions: Sequence[Compared], error: float
) -> float:
    """How many times as many repetitions would decide, if mean and spread stayed the same: by
    contradicting one claim, or else by showing all, with all conditions met.

    Infinite where a mean fails a condition. Claims share the error, since any of them may
    contradict; every condition must hold, so each has all of it.
    """
    claims = [_times_for_one(case, error / len(claimed)) for case in claimed]
    needs = [_times_for_one(case, error) for case in conditions]
    if not all(inside for inside, _ in needs):
        return math.inf
    contradicting = [times for inside, times in claims if not inside]
    if contradicting:
        decisive = np.min(contradicting)
    else:
        decisive = np.max([times for _, times in claims] or [math.nan])
    return float(np.max([decisive, *(times for _, times in needs)]))  # nan if any is


def _times_for_one(compared: Compared, error: float) -> tuple[bool, float]:
    """Whether the mean lies in the range, and how many times the repetitions put the whole interval
    on the mean's side of the range's end: 1 where it is there, NaN where that is not known.
    """
    term, sample = compared.term, compared.sample
    contrast = contrast_of(compared, error)
    inside = term.at_least <= contrast.mean <= term.at_most
    if contrast.inside or contrast.outside:
        return inside, 1.0
    # Neither the error of an estimate nor that of a share follows from a spread.
    if isinstance(sample, (Estimate, Joined)) or len(sample) < 2 or set(sample) <= {0.0, 1.0}:
        return inside, math.nan
    distance = min(abs(contrast.mean - term.at_least), abs(contrast.mean - term.at_most))
    spread = float(np.std(sample, ddof=1))
    count = _repetitions_for(distance / spread if spread else math.inf, len(sample), error)
    return inside, count / len(sample)


def _repetitions_for(distance: float, least: int, error: float) -> float:
    """The least number of repetitions, from ``least`` on, whose interval is shorter to each side
    than ``distance`` (in standard deviations); infinite above `MOST_REPETITIONS`.
    """

    def suffices(count: int) -> bool:
        """Whether half the width of Student's interval of so many values is short enough."""
        return float(stdtrit(count - 1, 1 - error / 2)) <= distance * math.sqrt(count)

    counts = range(least, MOST_REPETITIONS + 1)
    index = bisect_left(counts, True, key=suffices)
    return counts[index] if index < len(counts) else math.inf
