"""False-positive and false-negative counts of one test, for audits over many training runs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from paperlib.core import AuditResult, MembershipScores, check_confidence, check_counts, check_finite
from paperlib.core.direction import check_scores, reversed_warning
from paperlib.core.intervals import upper_rate
from paperlib.core.results import round_up

INDEPENDENT_RUNS = (
    "each score comes from its own training run, with the target record for members and without it for "
    "non-members; scores of many records under one model are not independent runs"
)


@dataclass(frozen=True)
class ErrorCounts:
    """How often one fixed test erred.

    Args:
        false_positives: Non-members called members, 0 to ``nonmembers``.
        nonmembers: Runs without the target record, at least 1.
        false_negatives: Members not called members, 0 to ``members``.
        members: Runs with the target record, at least 1.

    Raises:
        ValueError: Not whole numbers, or out of range.

    >>> ErrorCounts(5, 100, 20, 100).false_negative_rate
    0.2
    """

    false_positives: int
    nonmembers: int
    false_negatives: int
    members: int

    def __post_init__(self) -> None:
        for wrong, of in (("false_positives", "nonmembers"), ("false_negatives", "members")):
            count = int(check_counts(wrong, getattr(self, wrong)))
            total = int(check_counts(of, getattr(self, of), minimum=1))
            if count > total:
                raise ValueError(f"{wrong}: expected at most {of} = {total}, got {count}")
            object.__setattr__(self, wrong, count)
            object.__setattr__(self, of, total)

    @property
    def numbers(self) -> tuple[int, int, int, int]:
        """False positives, non-members, false negatives, members."""
        return self.false_positives, self.nonmembers, self.false_negatives, self.members

    @property
    def false_positive_rate(self) -> float:
        """Share of non-members called members."""
        return self.false_positives / self.nonmembers

    @property
    def false_negative_rate(self) -> float:
        """Share of members not called members."""
        return self.false_negatives / self.members

    @classmethod
    def from_scores(cls, scores: MembershipScores, threshold: float) -> "ErrorCounts":
        """Count the errors of "member if at least as member-like as ``threshold``".

        Args:
            scores: One score per run.
            threshold: Threshold in the scores' own unit; for losses "member" is at or below it.

        >>> ErrorCounts.from_scores(MembershipScores([2.0, 1.0], [0.0, 1.0]), 1.0)
        ErrorCounts(false_positives=1, nonmembers=2, false_negatives=0, members=2)
        """
        check_finite("threshold", np.array([threshold], dtype=float))
        oriented = scores.oriented()
        cut = threshold if scores.higher_means_member else -threshold
        return cls(
            int((oriented.nonmember >= cut).sum()),
            oriented.nonmember.size,
            int((oriented.member < cut).sum()),
            oriented.member.size,
        )


def upper_rates(
    false_positives: ArrayLike,
    nonmembers: ArrayLike,
    false_negatives: ArrayLike,
    members: ArrayLike,
    confidence: float,
) -> tuple[Any, Any]:
    """Upper bounds on both error rates, which hold together at ``confidence``; everything broadcasts."""
    level = (1 - check_confidence(confidence)) / 2
    return upper_rate(false_positives, nonmembers, level), upper_rate(false_negatives, members, level)


@dataclass(frozen=True, kw_only=True, eq=False)
class ManyRunsResult(AuditResult):
    """A number from the errors of one test over many training runs.

    Attributes:
        counts: Errors of the test.
        threshold: Threshold in the scores' own unit; None for counts.
        delta: Delta of (epsilon, delta)-DP, in [0, 1).
        confidence: Confidence level, or posterior probability, of the number, in (0, 1).
    """

    counts: ErrorCounts
    threshold: float | None
    delta: float
    confidence: float


@dataclass(frozen=True)
class FixedTest:
    """Error counts, with the threshold that gave them, how it was chosen, and doubts about the scores."""

    counts: ErrorCounts
    threshold: float | None
    chosen: str
    warnings: tuple[str, ...] = ()


def fixed_test(
    observed: MembershipScores | ErrorCounts,
    threshold: float | None,
    seed: int,
    power: Callable[[Any, Any, Any, Any], Any],
) -> FixedTest:
    """Settle the test before its errors are counted; without a threshold, by ``power`` on one half."""
    if isinstance(observed, ErrorCounts):
        if threshold is not None:
            raise ValueError(f"threshold: allowed with scores only, got {threshold!r} with counts")
        return FixedTest(observed, None, "the test was fixed before its errors were counted")
    doubt = reversed_warning(check_scores("observed", observed))
    warnings = (doubt,) if doubt else ()
    if threshold is not None:
        counts = ErrorCounts.from_scores(observed, threshold)
        chosen = "the threshold was fixed before looking at these scores"
        return FixedTest(counts, float(threshold), chosen, warnings)
    selection, evaluation = observed.split(seed=seed)
    best = _select(selection, power)
    return FixedTest(
        ErrorCounts.from_scores(evaluation, best),
        best,
        f"the threshold was chosen on a random half of the scores (seed {seed}), errors counted on the other",
        warnings,
    )


def could_refute(counts: ErrorCounts, ceiling: float) -> str:
    """The sentence after the claim of a bound of 0; ``ceiling`` is the bound without an error."""
    runs = f"{counts.members} runs with the target record and {counts.nonmembers} without it"
    if ceiling <= 0:
        return f" {runs} cannot refute any epsilon, even without an error: nothing is learned."
    most = f"{round_up(ceiling):.3f}"
    return f" This refutes no epsilon; {runs} could have refuted at most {most}, without an error."


def _select(scores: MembershipScores, power: Callable[[Any, Any, Any, Any], Any]) -> float:
    false_positive, true_positive, thresholds = (values[1:] for values in scores.roc())
    nonmembers, members = scores.nonmember.size, scores.member.size
    bounds = power(
        np.rint(false_positive * nonmembers), nonmembers, np.rint((1 - true_positive) * members), members
    )
    best = float(thresholds[int(np.argmax(bounds))])
    return best if scores.higher_means_member else -best
