"""Confidence intervals of what membership scores show: shares, the area under the ROC curve, error
rates.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import bdtr, bdtrc, betainccinv, ndtri, stdtrit

from paperlib.core.checks import FloatArray, IntArray, check_confidence, check_counts
from paperlib.core.results import json_ready
from paperlib.core.scores import MembershipScores, twice_below

FALSE_POSITIVE_RATES = (0.001, 0.01)
"""False-positive rates at which `score_measures` gives the true-positive rate."""

_FOR_THE_LAST = 0.8  # of the error, at most, to refuse a threshold that allows any share


def upper_rate(errors: ArrayLike, trials: ArrayLike, level: ArrayLike) -> Any:
    """Clopper-Pearson bound, rounded up, that a true rate exceeds with probability at most
    ``level``.

    Args:
        errors: Events counted, 0 to ``trials``.
        trials: Independent trials, 1 or more.
        level: In (0, 1).

    Returns:
        Rates in [0, 1], in the shape to which the arguments broadcast.
    """
    k, n = np.asarray(errors, float), np.asarray(trials, float)
    inside = np.asarray(
        betainccinv(k + 1.0, np.maximum(n - k, 1.0), np.asarray(level, float)), float
    )
    return np.where(k >= n, 1.0, np.minimum(1.0, inside * (1 + 1e-12)))[()]


def share_interval(count: int, total: int, *, confidence: float = 0.95) -> tuple[float, float]:
    """Clopper-Pearson interval of the share of ``count`` successes in ``total`` independent trials.

    Raises:
        ValueError: A count above ``total``, no trial, or a confidence outside (0, 1).

    >>> [round(end, 4) for end in share_interval(0, 100)]
    [0.0, 0.0362]
    """
    trials = int(check_counts("total", total, minimum=1))
    successes = int(check_counts("count", count))
    if successes > trials:
        raise ValueError(f"count: expected at most total = {trials}, got {successes}")
    level = (1 - check_confidence(confidence)) / 2
    missed, caught = upper_rate([trials - successes, successes], trials, level)
    return 1 - float(missed), float(caught)


def tpr_interval(
    scores: MembershipScores, rate: float, *, confidence: float = 0.95
) -> tuple[float, float]:
    """Interval of the true-positive rate at a false-positive rate, with the error of the threshold.

    The rate is the share of all members above the least threshold that at most ``rate`` of all
    non-members exceed. A share is held possible if some threshold agrees with the non-members and
    with the members above it: by the product of both p-values, as Fisher's, with the exact law of
    the one of the non-members.

    Guarantee:
        Each end fails with probability at most half of ``1 - confidence``, ties or not.

    Args:
        scores: Of independent members and non-members.
        rate: The false-positive rate, in (0, 1).
        confidence: In (0, 1).

    Returns:
        Both ends, in [0, 1].

    Raises:
        ValueError: A confidence outside (0, 1).
    """
    error = (1 - check_confidence(confidence)) / 2
    oriented = scores.oriented()
    member = np.sort(oriented.member)
    others = np.sort(oriented.nonmember)[::-1]
    above = np.arange(others.size + 1)  # non-members above the threshold
    edges = np.concatenate([[math.inf], others, [-math.inf]])
    beyond = member.size - np.searchsorted(member, edges, side="right")  # members above each edge
    # Where ``above`` non-members exceed it, no more members do than exceed the next non-member, and
    # where so many reach it, no fewer than exceed the last of these.
    exceeded = np.asarray(bdtrc(above - 1, others.size, rate), float)
    reached = np.asarray(bdtr(above, others.size, rate), float)[::-1]
    missed = member.size - beyond[:-1][::-1]
    high = _highest_share(exceeded, beyond[1:], member.size, error)
    return 1 - _highest_share(reached, missed, member.size, error), high


def _highest_share(chances: FloatArray, counts: IntArray, total: int, error: float) -> float:
    """Highest share of members on its side that any of the thresholds allows at this error.

    A threshold is possible where the p-value of its non-members is not too small, and then allows
    the share of members that its count does not refute at the error left. Thresholds of p-values
    below 1e-15 are taken as refuted.

    Args:
        chances: P-value of each threshold among non-members, falling, shape (n,).
        counts: Members on that side of each threshold, of ``total``, rising, shape (n,).
        error: Chance in (0, 1) that the true share is higher.

    Returns:
        A share in [0, 1].
    """
    # Of thresholds that are equally sure the last allows most; what is next to impossible is
    # refused.
    first = max(0, int(np.sum(chances >= 1 - 1e-12)) - 1)
    end = max(first + 1, int(np.sum(chances > 1e-15)))
    levels = _levels(np.append(1.0, chances[first + 1 : end]), error)
    possible = levels < 1
    shares = upper_rate(counts[first:end][possible], total, levels[possible])
    return float(np.max(shares))


def _levels(chances: FloatArray, error: float) -> FloatArray:
    """Errors of the members' share at each threshold, shape (n,), inverse to the p-values
    ``chances``, which fall, and at most 1; their mean is ``error`` where the p-values come with
    their own probabilities.
    """
    # The last threshold, which allows any share, is refused where most of the error pays for it.
    last = float(chances[-1])
    if last <= _FOR_THE_LAST * error:
        return np.append(_inverse_levels(chances[:-1], last, error - last), 1.0)
    return _inverse_levels(chances, 0.0, error)


def _inverse_levels(chances: FloatArray, beyond: float, error: float) -> FloatArray:
    """Levels min(1, least / p) of the p-values ``chances``, which fall, by the one ``least`` that
    makes their mean ``error``; p-values below all of these come with probability ``beyond``.
    """
    weights = chances - np.append(chances[1:], beyond)  # probability of each p-value

    def excess(least: float) -> float:
        """The mean of the levels for this least one, less the mean that they are to have."""
        return float(weights @ np.minimum(1.0, least / chances)) - error

    # A little less than the root: rounding must not raise the mean above the error.
    least = float(brentq(excess, error / 1_000, 10 * error)) * (1 - 1e-9)
    return np.minimum(1.0, least / chances)


def auc_interval(scores: MembershipScores, *, confidence: float = 0.95) -> tuple[float, float]:
    """Interval of the area under the ROC curve, of independent members and non-members, within
    [0, 1].

    The hull of three intervals, each of which is too short somewhere when it stands alone:
    DeLong's, near 0 and 1; Hanley and McNeil's, where the two sides spread very differently;
    Wilson's of as many trials as have DeLong's variance, where a few pairs are out of order.
    Where DeLong's has no width, an exact one stands in, of k disjoint pairs of a member and a
    non-member, k the smaller number of both.

    Raises:
        ValueError: A confidence outside (0, 1).

    Source:
        DeLong, DeLong and Clarke-Pearson (1988); in O(n log n) as Sun and Xu (2014);
        Hanley and McNeil (1982), inverted as in Newcombe (2006). The hull, and Wilson's with the
        degrees of freedom of Welch and Satterthwaite, are ours.

    >>> rng = np.random.default_rng(0)
    >>> low, high = auc_interval(MembershipScores(rng.normal(1, 1, 200), rng.normal(0, 1, 200)))
    >>> round(low, 3), round(high, 3)
    (0.74, 0.833)
    """
    level = (1 - check_confidence(confidence)) / 2
    oriented = scores.oriented()
    member = np.sort(oriented.member)
    nonmember = np.sort(oriented.nonmember)
    auc = scores.auc()
    pairs = min(member.size, nonmember.size)
    # Lower bound on the chance of what every one of these pairs showed.
    least = level ** (1 / pairs)
    if member[0] == member[-1] == nonmember[0] == nonmember[-1]:
        return least / 2, 1 - least / 2
    if pairs == 1 or auc in (0.0, 1.0):
        low = least if auc == 1.0 else 0.0
        high = 1 - least if auc == 0.0 else 1.0
        return low, high
    spread = _AreaSpread.of(member, nonmember)
    intervals = (
        spread.delong(auc, level),
        spread.wilson(auc, level),
        _hanley_mcneil(auc, member.size, nonmember.size, level),
    )
    return min(low for low, _ in intervals), max(high for _, high in intervals)


def auc_difference_interval(
    scores: MembershipScores, others: MembershipScores, *, confidence: float = 0.95
) -> tuple[float, float]:
    """Interval of the area under the ROC curve of an attack less that of another one on the same
    rows, such as one that did not see the model; within [-1, 1].

    The intervals of both areas are joined by the correlation that DeLong's covariance gives them.
    DeLong's interval of the difference itself is too short where an area is near 0 or 1, and has no
    width where both rank all pairs alike.

    Args:
        scores, others: Both attacks' scores of the same members and of the same non-members, each
            in one order; directions may differ.
        confidence: In (0, 1).

    Raises:
        ValueError: Numbers of members or of non-members that differ.

    Source:
        Zou and Donner (2008), Statistics in Medicine 27; the correlation of DeLong, DeLong and
        Clarke-Pearson (1988).

    >>> rng = np.random.default_rng(0)
    >>> member, other = rng.normal(1, 1, (2, 200)), rng.normal(0, 1, (2, 200))
    >>> attack = MembershipScores(member[0] + member[1], other[0] + other[1])
    >>> low, high = auc_difference_interval(attack, MembershipScores(member[0], other[0]))
    >>> round(low, 3), round(high, 3)
    (0.047, 0.126)
    """
    sizes = (scores.member.size, scores.nonmember.size)
    if (others.member.size, others.nonmember.size) != sizes:
        raise ValueError(
            f"others: expected the scores of the same rows, {sizes[0]:,} members and {sizes[1]:,} "
            f"non-members, got {others.member.size:,} and {others.nonmember.size:,}"
        )
    low, high = auc_interval(scores, confidence=confidence)
    other_low, other_high = auc_interval(others, confidence=confidence)
    area, other_area = scores.auc(), others.auc()
    correlation = _correlation_of_areas(scores, others)
    down = _joined(area - low, other_high - other_area, correlation)
    up = _joined(high - area, other_area - other_low, correlation)
    difference = area - other_area
    return difference - down, difference + up


def _joined(reach: float, other_reach: float, correlation: float) -> float:
    """How far the interval of a difference reaches to one side of it, from how far those of both
    terms do and the correlation of the terms (Zou and Donner).
    """
    square = reach**2 + other_reach**2 - 2 * correlation * reach * other_reach
    return math.sqrt(max(0.0, square))


def _correlation_of_areas(scores: MembershipScores, others: MembershipScores) -> float:
    """DeLong's correlation of two areas on the same rows; 0 where one has no variance."""
    covariance = np.zeros((2, 2))
    for shares in zip(_shares_won(scores), _shares_won(others), strict=True):
        if shares[0].size > 1:
            covariance += np.cov(shares) / shares[0].size
    spread = math.sqrt(covariance[0, 0] * covariance[1, 1])
    return float(np.clip(covariance[0, 1] / spread, -1, 1)) if spread > 0 else 0.0


def _shares_won(scores: MembershipScores) -> tuple[FloatArray, FloatArray]:
    """Of each member the share of non-members below it, shape (members,), and of each non-member
    that of members above it, shape (non-members,), in their order; a tie counts a half.
    """
    oriented = scores.oriented()
    below = twice_below(oriented.member, np.sort(oriented.nonmember))
    above = twice_below(-oriented.nonmember, np.sort(-oriented.member))
    return below / (2.0 * oriented.nonmember.size), above / (2.0 * oriented.member.size)


@dataclass(frozen=True)
class _AreaSpread:
    """DeLong's variance of an area, and the degrees of freedom that it is estimated with."""

    variance: float
    freedom: float

    @classmethod
    def of(cls, member: FloatArray, nonmember: FloatArray) -> "_AreaSpread":
        """That of sorted scores, shape (n,) and (m,), two or more of each side, not all of one
        value.
        """
        won = twice_below(member, nonmember) / (2.0 * nonmember.size)
        lost = twice_below(nonmember, member) / (2.0 * member.size)
        of_members = float(won.var(ddof=1)) / member.size
        of_others = float(lost.var(ddof=1)) / nonmember.size
        variance = of_members + of_others
        squares = of_members**2 / (member.size - 1) + of_others**2 / (nonmember.size - 1)
        return cls(variance, variance**2 / squares)

    def delong(self, auc: float, level: float) -> tuple[float, float]:
        """The normal interval around ``auc``, within [0, 1]."""
        reach = -float(ndtri(level)) * math.sqrt(self.variance)
        return max(0.0, auc - reach), min(1.0, auc + reach)

    def wilson(self, auc: float, level: float) -> tuple[float, float]:
        """Wilson's interval of a share ``auc``, in (0, 1), of as many trials as vary like this."""
        square = float(stdtrit(self.freedom, level)) ** 2
        weight = square * self.variance / (auc * (1 - auc))  # of one half
        centre = (auc + weight / 2) / (1 + weight)
        reach = math.sqrt(square * self.variance + weight**2 / 4) / (1 + weight)
        return max(0.0, centre - reach), min(1.0, centre + reach)


def _hanley_mcneil(auc: float, members: int, others: int, level: float) -> tuple[float, float]:
    """Lowest and highest area from which ``auc`` is not significantly far, each at error ``level``,
    by Hanley and McNeil's variance.
    """
    return (
        1 - _highest_area(1 - auc, members, others, level),
        _highest_area(auc, members, others, level),
    )


def _highest_area(auc: float, members: int, others: int, level: float) -> float:
    """Highest area from which ``auc`` is not significantly low, by Hanley and McNeil's larger
    variance.
    """

    def excess(area: float) -> float:
        """How far above ``auc`` an area A is, less what is allowed at the level: 0 at the end."""
        # Their variance is (A (1 - A) + (m - 1) (Q1 - A^2) + (n - 1) (Q2 - A^2)) / (m n), with
        # Q1 = A / (2 - A) and Q2 = 2 A^2 / (1 + A); it is largest where the larger of the two
        # differences goes with the larger class.
        first = area / (2 - area) - area**2
        second = 2 * area**2 / (1 + area) - area**2
        few, many = sorted((members, others))
        spread = (
            area * (1 - area) + (many - 1) * max(first, second) + (few - 1) * min(first, second)
        )
        return area - auc + float(ndtri(level)) * math.sqrt(max(0.0, spread) / (members * others))

    return float(brentq(excess, auc, 1.0))


@dataclass(frozen=True, kw_only=True)
class RateAtFpr:
    """The true-positive rate at one false-positive rate.

    The interval has the error of the threshold. Without a rate, ``note`` says why it cannot be
    measured.
    """

    false_positive_rate: float
    true_positive_rate: float | None
    interval: tuple[float, float] | None
    note: str = ""

    @property
    def name(self) -> str:
        """The measure in words, such as "TPR at 1 % FPR"."""
        return f"TPR at {100 * self.false_positive_rate:g} % FPR"

    def __str__(self) -> str:
        if self.true_positive_rate is None or self.interval is None:
            return f"{self.name}: {self.note}"
        low, high = self.interval
        return f"{self.name}: {self.true_positive_rate:.4f} [{low:.4f}, {high:.4f}]"


@dataclass(frozen=True, kw_only=True)
class ScoreMeasures:
    """Measures of the attack on these examples, with intervals; none of them is a bound on epsilon.

    ``confidence`` is that of every interval, each alone.
    """

    auc: float
    auc_interval: tuple[float, float]
    confidence: float
    rates: tuple[RateAtFpr, ...]

    def __str__(self) -> str:
        low, high = self.auc_interval
        return "; ".join([f"AUC {self.auc:.4f} [{low:.4f}, {high:.4f}]", *map(str, self.rates)])

    def to_dict(self) -> dict[str, Any]:
        """Every field as JSON-ready values."""
        return json_ready(self)


def score_measures(scores: MembershipScores, *, confidence: float = 0.95) -> ScoreMeasures:
    """Area under the ROC curve, and true-positive rates at 0.1 % and 1 % false positives, with
    intervals.

    A rate needs one non-member that may exceed the threshold: 1,000 non-members for 0.1 %, 100 for
    1 %.

    Raises:
        ValueError: A confidence outside (0, 1).

    >>> rng = np.random.default_rng(0)
    >>> print(score_measures(MembershipScores(rng.normal(2, 1, 500), rng.normal(0, 1, 500))))
    AUC 0.9317 [0.9132, 0.9471]; TPR at 0.1 % FPR: needs 1,000 non-members, there are 500;
    TPR at 1 % FPR: 0.3960 [0.2753, 0.5508]
    """
    area = auc_interval(scores, confidence=confidence)
    rates = [_rate_at(scores, rate, confidence) for rate in FALSE_POSITIVE_RATES]
    return ScoreMeasures(
        auc=scores.auc(),
        auc_interval=area,
        confidence=check_confidence(confidence),
        rates=tuple(rates),
    )


def _rate_at(scores: MembershipScores, rate: float, confidence: float) -> RateAtFpr:
    """The true-positive rate at a false-positive ``rate``, in (0, 1), with its interval; or a note
    why so few non-members do not measure it.
    """
    needed = math.ceil(1 / rate)
    present = scores.nonmember.size
    if present < needed:
        return RateAtFpr(
            false_positive_rate=rate,
            true_positive_rate=None,
            interval=None,
            note=f"needs {needed:,} non-members, there are {present:,}",
        )
    return RateAtFpr(
        false_positive_rate=rate,
        true_positive_rate=scores.tpr_at_fpr(rate),
        interval=tpr_interval(scores, rate, confidence=confidence),
    )
