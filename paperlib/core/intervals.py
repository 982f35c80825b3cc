"""Confidence intervals of what membership scores show: shares, the area under the ROC curve, error rates."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainccinv, ndtri

from paperlib.core.checks import FloatArray, check_confidence, check_counts
from paperlib.core.results import json_ready
from paperlib.core.scores import MembershipScores

FALSE_POSITIVE_RATES = (0.001, 0.01)
"""False-positive rates at which `score_measures` gives the true-positive rate."""


def upper_rate(errors: ArrayLike, trials: ArrayLike, level: ArrayLike) -> Any:
    """One-sided Clopper-Pearson upper bound on the error rate of a number of trials; everything broadcasts.

    Guarantee:
        The true rate exceeds the result, which is rounded up, with probability at most ``level``.

    >>> round(float(upper_rate(0, 100, 0.05)), 6)
    0.029513
    """
    k, n = np.asarray(errors, float), np.asarray(trials, float)
    inside = np.asarray(betainccinv(k + 1.0, np.maximum(n - k, 1.0), np.asarray(level, float)), float)
    return np.where(k >= n, 1.0, np.minimum(1.0, inside * (1 + 1e-12)))[()]


def share_interval(count: int, total: int, *, confidence: float = 0.95) -> tuple[float, float]:
    """Clopper-Pearson interval of a share, exact for independent trials.

    Args:
        count: Successes, 0 to ``total``.
        total: Trials, at least 1.
        confidence: Confidence level of the interval, in (0, 1).

    Returns:
        Lower and upper end, in [0, 1].

    Raises:
        ValueError: A number out of range.

    >>> [round(end, 4) for end in share_interval(0, 100)]
    [0.0, 0.0362]
    """
    trials = int(check_counts("total", total, minimum=1))
    successes = int(check_counts("count", count))
    if successes > trials:
        raise ValueError(f"count: expected at most total = {trials}, got {successes}")
    level = (1 - check_confidence(confidence)) / 2
    return (
        1 - float(upper_rate(trials - successes, trials, level)),
        float(upper_rate(successes, trials, level)),
    )


def auc_interval(scores: MembershipScores, *, confidence: float = 0.95) -> tuple[float, float]:
    """DeLong's interval of the area under the ROC curve, clipped to [0, 1].

    It is a large-sample interval; members and non-members are taken as independent draws. Where it has no
    width, an exact one stands in: k disjoint pairs of a member and a non-member, k the smaller number of
    both, are independent, and all of them were right (area 1), wrong (area 0) or tied (all scores equal).
    With one member or one non-member only, that pair is all there is.

    Args:
        scores: Scores of members and non-members.
        confidence: Confidence level of the interval, in (0, 1).

    Returns:
        Lower and upper end, in [0, 1].

    Raises:
        ValueError: A confidence outside (0, 1).

    Source:
        DeLong, DeLong and Clarke-Pearson (1988); in O(n log n) as Sun and Xu (2014).

    >>> rng = np.random.default_rng(0)
    >>> low, high = auc_interval(MembershipScores(rng.normal(1, 1, 200), rng.normal(0, 1, 200)))
    >>> round(low, 3), round(high, 3)
    (0.744, 0.833)
    """
    level, oriented = (1 - check_confidence(confidence)) / 2, scores.oriented()
    member, nonmember = np.sort(oriented.member), np.sort(oriented.nonmember)
    beaten = _share_below(member, nonmember)
    auc = float(beaten.mean())
    all_tied = member[0] == member[-1] == nonmember[0] == nonmember[-1]
    if min(member.size, nonmember.size) == 1 or auc in (0.0, 1.0) or all_tied:
        return _interval_of_pairs(auc, min(member.size, nonmember.size), level, all_tied=bool(all_tied))
    variance = beaten.var(ddof=1) / member.size + _share_below(nonmember, member).var(ddof=1) / nonmember.size
    reach = -float(ndtri(level)) * math.sqrt(float(variance))
    return max(0.0, auc - reach), min(1.0, auc + reach)


def _share_below(values: FloatArray, others: FloatArray) -> FloatArray:
    """Share of ``others``, sorted, below each of ``values``, ties counting one half; same shape as values."""
    below = np.searchsorted(others, values, side="left")
    return (below + np.searchsorted(others, values, side="right")) / (2.0 * others.size)


def _interval_of_pairs(auc: float, pairs: int, level: float, *, all_tied: bool) -> tuple[float, float]:
    """The interval where all of ``pairs`` independent pairs came out alike; no limits for one mixed pair."""
    least = level ** (1 / pairs)  # lower bound on the chance of what every pair showed
    if all_tied:
        return least / 2, 1 - least / 2
    return (least if auc == 1.0 else 0.0), (1 - least if auc == 0.0 else 1.0)


@dataclass(frozen=True, kw_only=True)
class RateAtFpr:
    """The true-positive rate at one false-positive rate.

    Attributes:
        false_positive_rate: Largest share of non-members called members, in [0, 1].
        true_positive_rate: Share of members called members, in [0, 1]; None where it cannot be measured.
        interval: Its Clopper-Pearson interval with the threshold held fixed, or None.
        note: Reason why there is no rate; empty otherwise.
    """

    false_positive_rate: float
    true_positive_rate: float | None
    interval: tuple[float, float] | None
    note: str = ""

    def __str__(self) -> str:
        name = f"TPR at {100 * self.false_positive_rate:g} % FPR"
        if self.true_positive_rate is None or self.interval is None:
            return f"{name}: {self.note}"
        low, high = self.interval
        return f"{name}: {self.true_positive_rate:.4f} [{low:.4f}, {high:.4f}]"


@dataclass(frozen=True, kw_only=True)
class ScoreMeasures:
    """The area under the ROC curve and true-positive rates of one set of scores, with intervals.

    They describe the attack on these examples; none of them is a bound on epsilon.

    Attributes:
        auc: Area under the ROC curve, in [0, 1].
        auc_interval: DeLong's interval of it.
        confidence: Confidence level of every interval, each alone.
        rates: True-positive rates at false-positive rates 0.1 % and 1 %.
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
    """Area under the ROC curve, and true-positive rates at 0.1 % and 1 % false positives, with intervals.

    A rate needs one non-member that may exceed the threshold: 1,000 non-members for 0.1 %, 100 for 1 %.

    Args:
        scores: Scores of members and non-members.
        confidence: Confidence level of each interval, in (0, 1).

    Raises:
        ValueError: A confidence outside (0, 1).

    >>> rng = np.random.default_rng(0)
    >>> print(score_measures(MembershipScores(rng.normal(2, 1, 500), rng.normal(0, 1, 500))))
    AUC 0.9317 [0.9162, 0.9471]; TPR at 0.1 % FPR: needs 1,000 non-members, there are 500;
    TPR at 1 % FPR: 0.3960 [0.3529, 0.4404]
    """
    return ScoreMeasures(
        auc=scores.auc(),
        auc_interval=auc_interval(scores, confidence=confidence),
        confidence=check_confidence(confidence),
        rates=tuple(_rate_at(scores, rate, confidence) for rate in FALSE_POSITIVE_RATES),
    )


def _rate_at(scores: MembershipScores, rate: float, confidence: float) -> RateAtFpr:
    needed, present = math.ceil(1 / rate), scores.nonmember.size
    if present < needed:
        note = f"needs {needed:,} non-members, there are {present:,}"
        return RateAtFpr(false_positive_rate=rate, true_positive_rate=None, interval=None, note=note)
    share, members = scores.tpr_at_fpr(rate), scores.member.size
    interval = share_interval(round(share * members), members, confidence=confidence)
    return RateAtFpr(false_positive_rate=rate, true_positive_rate=share, interval=interval)
