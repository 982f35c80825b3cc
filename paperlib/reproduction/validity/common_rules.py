"""Rules in common use for turning scores into an "epsilon", from their descriptions: to test, not
to use.
"""

from collections.abc import Callable

import numpy as np
import pandas as pd
from scipy.special import ndtri

from paperlib.bounds import audit_gaussian_dp
from paperlib.bounds.many_runs.clopper_pearson import clopper_pearson_epsilon, epsilon_from_rates
from paperlib.bounds.one_run.tails import epsilon_from_counts
from paperlib.core import FloatArray, MembershipScores
from paperlib.reproduction.validity import mechanisms as known
from paperlib.reproduction.validity.coverage import Case, ValidityConfig, against, simulate
from paperlib.reproduction.validity.mechanisms import Mechanism

Rule = Callable[[MembershipScores], float]
"""What a rule calls epsilon, nats, of some scores."""
LEVEL = 0.05  # one minus the confidence that the rules state


def _roc_counts(scores: MembershipScores) -> tuple[FloatArray, FloatArray, int, int]:
    """Counts of false and of true positives at each distinct threshold, from one guess on, shape
    (thresholds,) each; and the numbers of non-members and of members.
    """
    false_rate, true_rate, _ = scores.roc()
    n, members = scores.nonmember.size, scores.member.size
    return np.rint(false_rate[1:] * n), np.rint(true_rate[1:] * members), n, members


def fixed_count(scores: MembershipScores) -> float:
    """The control, which is right: the one-run bound, nats, where the top tenth is guessed to be
    members, a number fixed in advance.
    """
    values, labels = scores.oriented().pooled()
    guesses = values.size // 10
    right = labels[np.argsort(-values)[:guesses]].sum()
    return float(epsilon_from_counts(right, guesses, LEVEL))


def best_threshold(scores: MembershipScores) -> float:
    """One-run bound, nats, at the best threshold on positives, uncorrected for the search."""
    false_positive, true_positive, *_ = _roc_counts(scores)
    return float(epsilon_from_counts(true_positive, true_positive + false_positive, LEVEL).max())


def best_cut(scores: MembershipScores) -> float:
    """One-run bound, nats, at the best cut, everyone guessed (member above, non-member below),
    uncorrected for the search.
    """
    false_positive, true_positive, n, members = _roc_counts(scores)
    return float(epsilon_from_counts(true_positive + n - false_positive, n + members, LEVEL).max())


def best_pair(scores: MembershipScores, *, steps: int = 50) -> float:
    """One-run bound, nats, at the best pair (k+, k-) of numbers of guesses on both tails, of a grid
    of ``steps`` + 1 numbers each, uncorrected for the search.
    """
    values, labels = scores.oriented().pooled()
    ordered = labels[np.argsort(-values)]  # the likeliest member first
    counts = np.linspace(0, values.size // 2, steps + 1).astype(int)
    # Right guesses among the first, or the last, so many.
    right_at_top = np.append(0, np.cumsum(ordered))[counts]
    right_at_bottom = np.append(0, np.cumsum(~ordered[::-1]))[counts]
    right = right_at_top[:, None] + right_at_bottom
    guesses = counts[:, None] + counts
    return float(epsilon_from_counts(right, guesses, LEVEL).max())


def hull_corrected(scores: MembershipScores) -> float:
    """One-run bound, nats, at the best point of the ROC hull, the error divided by the number of
    hull points, which the scores choose.
    """
    false_positive, true_positive, *_ = _roc_counts(scores)
    corners = upper_hull(false_positive, true_positive)
    right = true_positive[corners]
    guesses = right + false_positive[corners]
    return float(epsilon_from_counts(right, guesses, LEVEL / len(corners)).max())


def upper_hull(x: FloatArray, y: FloatArray) -> list[int]:
    """Corners of the upper hull of an ROC curve, as indices; x and y, shape (n,), do not fall."""

    def is_above(middle: int, first: int, last: int) -> bool:
        """Whether a point is above the line through two others."""
        run, rise = x[last] - x[first], y[last] - y[first]
        return (x[middle] - x[first]) * rise - (y[middle] - y[first]) * run < 0

    # From left to right: a corner that the new point puts below the hull goes again.
    hull: list[int] = []
    for point in range(x.size):
        while len(hull) > 1 and not is_above(hull[-1], hull[-2], point):
            hull.pop()
        if hull and x[hull[-1]] == x[point]:  # straight below the new point
            hull.pop()
        hull.append(point)
    return hull


def best_clopper_pearson(scores: MembershipScores) -> float:
    """Clopper-Pearson bound, nats, at the best threshold, either direction, uncorrected for the
    search.
    """
    false_positive, true_positive, n, members = _roc_counts(scores)
    above = clopper_pearson_epsilon(false_positive, n, members - true_positive, members)
    below = clopper_pearson_epsilon(n - false_positive, n, true_positive, members)
    return float(max(above.max(), below.max()))


def best_ratio(scores: MembershipScores) -> float:
    """Largest lower end, at least 0, of approximate intervals (Bailey 1987) for the log of TPR /
    FPR and of TNR / FNR, nats, over thresholds and directions, uncorrected for the search.
    """
    false_positive, true_positive, n, members = _roc_counts(scores)
    false_negative = members - true_positive
    true_negative = n - false_positive
    # Successes of two samples, each with the size of its sample.
    pairs = [
        (true_positive, members, false_positive, n),
        (true_negative, n, false_negative, members),
        # The same with members below the threshold.
        (false_positive, n, true_positive, members),
        (false_negative, members, true_negative, n),
    ]
    lower_ends = [float(_bailey_log_lower(*pair).max(initial=-np.inf)) for pair in pairs]
    return max(0.0, *lower_ends)


def _bailey_log_lower(x: FloatArray, m: int, y: FloatArray, n: int) -> FloatArray:
    """Log of the one-sided lower end for (x/m) / (y/n), at the counts where both are positive: of
    as many of the counts, shape (k,) each, and possibly none.

    Args:
        x, y: Successes of two independent samples at each count.
        m, n: Their sizes.

    Source:
        Bailey (1987), Confidence limits to the risk ratio: the cube root of the ratio is taken to
        be normal. Where the root that he takes does not exist, no end is stated (-inf).
    """
    is_positive = (x > 0) & (y > 0)
    x, y = x[is_positive], y[is_positive]
    # Shares of failures, and the normal quantile of the level.
    p = 1 - x / m
    q = 1 - y / n
    z = float(-ndtri(LEVEL))
    spread = z / 3 * np.sqrt(np.maximum(p / x + q / y - z**2 * p * q / (9 * x * y), 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        root = (1 - spread) / (1 - z**2 * q / (9 * y))
        log_lower = np.log(x / m) - np.log(y / n) + 3 * np.log(np.maximum(root, 0.0))
    return np.nan_to_num(log_lower, nan=-np.inf, posinf=-np.inf, neginf=-np.inf)


def point_estimate(scores: MembershipScores) -> float:
    """The larger of log(TPR/FPR) and log(TNR/FNR), nats, at least 0, at the best threshold with 10
    errors of both kinds or more: a point estimate, wrongly taken for a bound.
    """
    false_positive, true_positive, n, members = _roc_counts(scores)
    has_errors = (false_positive >= 10) & (members - true_positive >= 10)
    false_positive_rate = false_positive[has_errors] / n
    false_negative_rate = 1 - true_positive[has_errors] / members
    return float(epsilon_from_rates(false_positive_rate, false_negative_rate).max(initial=0.0))


def fixed_point_estimate(scores: MembershipScores) -> float:
    """The larger of log(TPR/FPR) and log(TNR/FNR), nats, at least 0, at the threshold 0.5, fixed in
    advance: a point estimate, wrongly taken for a bound.
    """
    false_positive_rate = (scores.nonmember >= 0.5).mean()
    false_negative_rate = (scores.member < 0.5).mean()
    return float(epsilon_from_rates(false_positive_rate, false_negative_rate))


def absolute_mu(scores: MembershipScores) -> float:
    """Lower end for mu of mu-GDP, its sign dropped: leakage where there is none."""
    result = audit_gaussian_dp(scores, threshold=0.5, delta=1e-5)
    return abs(float(-ndtri(result.false_positive_upper) - ndtri(result.false_negative_upper)))


def false_positives(config: ValidityConfig) -> pd.DataFrame:
    """Rates of wrong bounds, the rules in common use; columns as in `simulate`."""
    return simulate(rule_cases(config), config)


def rule_cases(config: ValidityConfig) -> list[Case]:
    """Rules in common use, and a control that needs no correction because it searches nothing."""
    # A search goes wrong more often the more there is to search: four times as many examples as
    # elsewhere.
    m = 4 * config.examples
    nothing = known.no_leakage()
    uneven = known.unbalanced(9 * m // 10, m // 10)
    answered = known.randomized_response(1.0)
    pure = (nothing, known.laplace(1.0))
    named: list[tuple[str, Rule, tuple[Mechanism, ...]]] = [
        ("control: number of guesses fixed in advance", fixed_count, pure),
        ("best threshold, uncorrected", best_threshold, pure),
        ("best cut with everyone guessed, uncorrected", best_cut, pure),
        ("best pair of tails, uncorrected", best_pair, pure),
        ("best Clopper-Pearson threshold, uncorrected", best_clopper_pearson, pure),
        ("best approximate ratio interval, uncorrected", best_ratio, pure),
        ("point estimate at the best threshold", point_estimate, pure),
        ("corrected by the size of the ROC hull", hull_corrected, (nothing,)),
        (
            "point estimate at a threshold fixed in advance",
            fixed_point_estimate,
            (nothing, answered),
        ),
        ("Gaussian DP with the sign of μ dropped", absolute_mu, (nothing,)),
        ("unbalanced classes unchecked, number of guesses fixed", fixed_count, (uneven,)),
        ("unbalanced classes unchecked, ROC hull", hull_corrected, (uneven,)),
    ]
    cases: list[Case] = []
    for name, rule, mechanisms in named:
        # A rate of 6 % shows only in many trials.
        share = 10.0 if name.startswith("corrected") else 1.0
        options = {"share": share, "valid": name.startswith("control")}
        for mechanism in mechanisms:
            cases.append(against("rules in common use", name, mechanism, rule, m, **options))
    return cases
