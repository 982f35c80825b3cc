"""Does a model still know what it was asked to forget? A lower bound on epsilon from one model.

Records come in pairs of like ones. Before training a fair coin of each pair decides which of the
two is trained on and later forgotten; the other one is never seen. A guess names the forgotten
record of a pair, by the sign of the difference of the two scores, and pairs with the largest
differences are guessed first. No coin is drawn by the audit: the only ones are those tossed before
training. Let training and forgetting be (epsilon,
delta)-indistinguishable under the exchange of a pair's two records. Given the pairs, the coins are
fair and independent, and the model depends on each coin as on one exchange, so that right guesses
are bounded as those of an audit from one run with a coin per pair (Steinke, Nasr and Jagielski,
2023, Theorem 5.2): conditional on the pairs, hence always. How alike a pair is moves the power, and
not the level.

Two directions are tested: forgotten records fit too well (still known), or too badly (forced
forgetting, which tells as well who was forgotten). Each is tested with half of the error, so that
the larger bound holds at the confidence of the call (Bonferroni).

An exchange is two steps, one record less and another one more: forgetting one record, against never
having had it, has at least half of the epsilon.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Never

import numpy as np

from paperlib.bounds.one_run.adaptive import Flags
from paperlib.bounds.one_run.audit import OneRunResult
from paperlib.bounds.one_run.detection import DetectionLimit, fewest_shown
from paperlib.bounds.one_run.fair_coins import adjacency_of
from paperlib.bounds.one_run.guesses import path_of
from paperlib.bounds.one_run.search import Hypothesis, ThresholdBound, every_count
from paperlib.core.checks import FloatArray, check_confidence, check_delta, check_in
from paperlib.core.direction import check_scores
from paperlib.core.facts import Forgotten, ScoreDirection
from paperlib.core.scores import MembershipScores
from paperlib.words import forgetting as words

_FEWEST = 8  # pairs; with fewer no bound above 0 is possible at confidence 0.95
_SIDES = 2  # either record of a pair may be guessed, so that delta counts in full
_POWER = 0.8  # share of the simulated audits that show the exposed pairs
_SIMULATIONS = 100  # audits simulated for each number of exposed pairs


@dataclass(frozen=True, kw_only=True, eq=False)
class ForgettingResult(OneRunResult):
    """Lower bound on epsilon under the exchange of a forgotten record for one never seen.

    Attributes:
        epsilon: The larger of the two directions, nats; the fields of the guesses are those of its
            test, and ``total`` is the number of pairs.
        state: What the bound shows: forgotten records are "known", or forgetting was "forced"; ""
            for a bound of 0.
        epsilon_known, epsilon_forced: The bounds of the two directions, nats; they hold together.
        utility: Utility of the model before and after forgetting, as given; None if it was not.
        high: Pairs whose scores differ by this or more are guessed.
        auc: Share of the pairs whose forgotten record looks more like a member; ties count a half.
        true_positive_rate, false_positive_rate: Shares of the pairs that are guessed right and
            wrong.
    """

    state: Forgotten
    epsilon_known: float
    epsilon_forced: float
    utility: tuple[float, float] | None
    _directions: tuple[OneRunResult, ...] = ()

    @property
    def headline(self) -> str:
        return words.headline(self)

    @property
    def directions(self) -> tuple[OneRunResult, ...]:
        """The results of both directions, "known" and "forced", each with half of the error."""
        return self._directions


def audit_forgetting(
    scores: MembershipScores,
    *others: Never,
    delta: float = 0.0,
    confidence: float = 0.95,
    utility: Sequence[float] | None = None,
) -> ForgettingResult:
    """Lower-bound the epsilon between forgotten records and records that were never seen.

    Guarantee:
        Exceeds the epsilon of training and forgetting together, under the exchange of a pair's two
        records, with probability at most ``1 - confidence``, both directions and the search
        included.

    Args:
        scores: Scores of the forgotten records as members, and of those never seen as non-members;
            record i of the one side and record i of the other are a pair, whose coin was tossed
            before training.
        delta: Delta of the indistinguishability that is tested, in [0, 1).
        confidence: Of both directions together, in (0, 1).
        utility: Utility of the model before and after forgetting, such as its accuracy on other
            records, in [0, 1]; it stands beside the bound and decides nothing.

    Raises:
        ValueError: Arrays in place of `MembershipScores`, sides of unequal size, or fewer than 8
            pairs.

    Source:
        Steinke, Nasr and Jagielski (2023), Theorem 5.2, for one coin per pair: this project.

    >>> rng = np.random.default_rng(0)
    >>> never_seen = rng.gamma(8, 1, 400)
    >>> losses = MembershipScores(never_seen / 4, never_seen, higher_means_member=False)
    >>> result = audit_forgetting(losses, utility=(0.9, 0.8))
    >>> result.state, result.correct, result.guesses, result.epsilon > 4
    ('known', 400, 400, True)
    """
    check_scores("scores", scores, *others)
    # Half of the error for each of two directions: the larger bound holds at the confidence.
    hypothesis = Hypothesis(check_delta(delta), (1 - check_confidence(confidence)) / 2)
    utility = _checked_utility(utility)
    leaning = _leaning(scores)
    lower_means = not scores.higher_means_member
    too_well = _direction(leaning, hypothesis, "lower" if lower_means else "higher")
    too_badly = _direction(-leaning, hypothesis, "higher" if lower_means else "lower")
    best = max(too_well, too_badly, key=lambda fields: fields["epsilon"])
    state: Forgotten = ""
    if best["epsilon"] > 0:
        state = "known" if best is too_well else "forced"
    changed: dict[str, Any] = {
        "confidence": confidence,
        "claim": words.claim(best["epsilon"], delta, confidence, best["ceiling"]),
        "auc": too_well["auc"],
        "notes": (
            words.directions_note(too_well["epsilon"], too_badly["epsilon"]),
            words.HALF,
            *best["notes"],
            words.NO_UTILITY if utility is None else words.utility_note(*utility),
        ),
    }
    return ForgettingResult(
        **{**best, **changed},
        state=state,
        epsilon_known=too_well["epsilon"],
        epsilon_forced=too_badly["epsilon"],
        utility=utility,
        _limit=partial(_limit_of_detection, leaning.size, hypothesis),
        _directions=(OneRunResult(**too_well), OneRunResult(**too_badly)),
    )


def _leaning(scores: MembershipScores) -> FloatArray:
    """By how much the forgotten record of each pair looks more like a member than the other one,
    in the unit of the scores, shape (pairs,).

    Raises:
        ValueError: Sides of unequal size, or fewer than 8 pairs.
    """
    oriented = scores.oriented()
    forgotten, unseen = oriented.member, oriented.nonmember
    if forgotten.size != unseen.size:
        raise ValueError(
            f"scores: {forgotten.size} forgotten records and {unseen.size} never seen; expected "
            "one of each in every pair, in the order of the pairs"
        )
    if forgotten.size < _FEWEST:
        raise ValueError(f"scores: {forgotten.size} pairs are too few, {_FEWEST} are needed")
    # Not inf - inf, where both records have a probability of 0 or of 1.
    leaning = np.zeros(forgotten.size)
    np.subtract(forgotten, unseen, out=leaning, where=forgotten != unseen)
    return leaning


def _checked_utility(utility: Sequence[float] | None) -> tuple[float, float] | None:
    """The utility before and after forgetting; a ValueError for anything but two shares."""
    if utility is None:
        return None
    if isinstance(utility, str) or len(utility) != 2:
        raise ValueError(f"utility: expected two numbers, before and after, got {utility!r}")
    before = check_in("[0, 1]", "utility before forgetting", utility[0])
    after = check_in("[0, 1]", "utility after forgetting", utility[1])
    return before, after


def searched(leaning: FloatArray, hypothesis: Hypothesis) -> ThresholdBound:
    """The best bound over all numbers of guesses, nats, the pairs that lean most first.

    A guess is right where ``leaning``, shape (pairs,), is above 0; a pair that leans to neither
    record is wrong in both directions. ``hypothesis`` has the delta and the error of the test.
    """
    order = np.argsort(-np.abs(leaning))
    right: Flags = leaning[order] > 0
    path = path_of(np.abs(leaning)[order], right, "members")
    return every_count(path, hypothesis, _SIDES)


def _direction(
    leaning: FloatArray, hypothesis: Hypothesis, direction: ScoreDirection
) -> dict[str, Any]:
    """The fields of the `OneRunResult` of one direction, where scores in this direction point to
    forgotten records.

    ``leaning``, shape (pairs,), is above 0 where the forgotten record of a pair looks more like a
    member than the other one in this direction.
    """
    best = searched(leaning, hypothesis)
    path, reached, on_curve = best.path, best.at, best.shown()
    correct, guesses, pairs = int(path.correct[reached]), int(path.guesses[reached]), path.total
    ceiling, confidence = best.ceiling(), 1 - hypothesis.error
    return {
        "epsilon": best.epsilon,
        "delta": hypothesis.delta,
        "confidence": confidence,
        "correct": correct,
        "guesses": guesses,
        "total": pairs,
        "ceiling": ceiling,
        "high": float(path.high[reached]),
        "low": float(path.low[reached]),
        "search": best.words,
        "tests": best.tests,
        "auc": float(np.count_nonzero(leaning > 0) + np.count_nonzero(leaning == 0) / 2) / pairs,
        "true_positive_rate": correct / pairs,
        "false_positive_rate": (guesses - correct) / pairs,
        "curve_guesses": path.guesses[on_curve],
        "curve_correct": path.correct[on_curve],
        "curve_threshold": path.high[on_curve],
        "adjacency": adjacency_of("played"),
        "design": "forget",
        "direction": direction,
        "claim": words.claim(best.epsilon, hypothesis.delta, confidence, ceiling),
        "condition": words.CONDITION,
        "assumptions": words.assumptions(best.words),
        "notes": (words.most_of_pairs(pairs, ceiling),),
        "_best": best,
    }


def _limit_of_detection(pairs: int, hypothesis: Hypothesis) -> DetectionLimit:
    """The fewest exposed pairs with which one direction shows a difference: they lean most, and
    their forgotten record is the one that they lean to. Coins of the other pairs are simulated.
    """

    def shows(exposed: int, number: int) -> bool:
        """Whether an audit with this number of exposed pairs shows a difference; ``number`` seeds
        its coins.
        """
        is_right = np.random.default_rng([pairs, number]).random(pairs) < 0.5
        is_right[:exposed] = True
        ranks = np.arange(pairs, 0, -1.0)
        return searched(np.where(is_right, ranks, -ranks), hypothesis).epsilon > 0

    records = fewest_shown(shows, pairs, _POWER, _SIMULATIONS)
    return DetectionLimit(
        records=records, of=pairs, exposed=words.EXPOSED, epsilon=0.0, power=_POWER
    )
