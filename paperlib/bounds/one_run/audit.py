"""Auditing with one training run: from guesses about fair-coin membership to a lower bound on
epsilon.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Never

import numpy as np
from numpy.typing import ArrayLike

from paperlib.bounds.one_run.detection import DetectionLimit
from paperlib.bounds.one_run.fair_coins import (
    adjacency_of,
    fair_game,
    score_facts,
    score_warnings,
)
from paperlib.bounds.one_run.search import (
    Hypothesis,
    ThresholdBound,
    guesses_made,
    search_thresholds,
)
from paperlib.bounds.one_run.tails import P_VALUES, refuted_log_odds
from paperlib.core.checks import (
    FloatArray,
    IntArray,
    check_choice,
    check_confidence,
    check_counts,
    check_delta,
)
from paperlib.core.direction import check_scores, reversed_direction
from paperlib.core.options import DeltaTerm, Design, Guess, Search
from paperlib.core.results import AuditResult, json_ready, table
from paperlib.core.scores import MembershipScores
from paperlib.words import directions
from paperlib.words.claims import ceiling_note, lower_bound_claim
from paperlib.words.designs import CONDITIONS, coin_assumption
from paperlib.words.one_run import one_run_assumptions, one_run_headline

if TYPE_CHECKING:
    import pandas as pd


def one_run_p_value(
    correct: ArrayLike,
    guesses: ArrayLike,
    epsilon: ArrayLike,
    *,
    total: ArrayLike | None = None,
    delta: float = 0.0,
    delta_term: DeltaTerm = "published",
    sides: Literal[1, 2] = 2,
) -> Any:
    """P-value of ``correct`` right guesses under (epsilon, delta)-differential privacy; broadcasts.

    Guarantee:
        With each of ``total`` examples included by its own fair coin, an (epsilon, delta)-DP
        training lets this many guesses be right with at most this probability.

    Args:
        correct: Right guesses, whole numbers from 0 to ``guesses``.
        guesses: Guesses made, abstentions excluded.
        epsilon: Nats, at least 0.
        total: Audit examples, abstentions included; needed if ``delta > 0``.
        delta_term: "published" (Steinke et al., Theorem 5.2) or "sharp" (ours: the worst case over
            all mechanisms, for guess counts fixed in advance; never weaker below one half).
        sides: 1 if every guess is "member", or every guess "non-member": half of delta is then
            enough.

    Raises:
        ValueError: A count is out of range, or ``total`` is missing.

    Source:
        Steinke, Nasr and Jagielski (2023), Theorem 5.2 and Appendix D.

    >>> round(float(one_run_p_value(90, 100, 1.0)), 8)
    2.736e-05
    """
    v, r, m_delta = _checked(correct, guesses, total, delta, sides)
    check_choice("delta_term", delta_term, DeltaTerm)
    e = np.asarray(epsilon, float)
    if not np.isfinite(e).all() or (e < 0).any():
        raise ValueError(f"epsilon: expected finite numbers of at least 0, got {epsilon!r}")
    return P_VALUES[delta_term](v, r, e, m_delta)


def one_run_epsilon(
    correct: ArrayLike,
    guesses: ArrayLike,
    *,
    total: ArrayLike | None = None,
    delta: float = 0.0,
    confidence: float = 0.95,
    delta_term: DeltaTerm = "published",
    sides: Literal[1, 2] = 2,
) -> Any:
    """Smallest epsilon that one training run does not refute, nats, rounded down; broadcasts.

    It inverts `one_run_p_value`; closed form at delta = 0.

    Guarantee:
        With each of ``total`` examples included by its own fair coin, exceeds the epsilon of
        (epsilon, delta)-DP training with probability at most ``1 - confidence``, for guess
        counts fixed in advance. Add/remove adjacency.

    Args:
        correct: Right guesses, whole numbers from 0 to ``guesses``.
        guesses: Guesses made, abstentions excluded.
        total: Audit examples, abstentions included; needed if ``delta > 0``.
        delta: In [0, 1).
        confidence: In (0, 1).
        delta_term: "published" or "sharp", as for `one_run_p_value`.
        sides: 1 if every guess is "member", or every guess "non-member".

    Raises:
        ValueError: A count is out of range, or ``total`` is missing.

    Source:
        Steinke, Nasr and Jagielski (2023), Theorem 5.2 and Appendix D.

    >>> round(float(one_run_epsilon(90, 100)), 6)
    1.630823
    >>> round(float(one_run_epsilon(900, 1000, total=10_000, delta=1e-5)), 6)
    2.015194
    """
    v, r, m_delta = _checked(correct, guesses, total, delta, sides)
    check_choice("delta_term", delta_term, DeltaTerm)
    return refuted_log_odds(v, r, 1 - check_confidence(confidence), m_delta, P_VALUES[delta_term])[
        ()
    ]


def _checked(
    correct: ArrayLike, guesses: ArrayLike, total: ArrayLike | None, delta: float, sides: int
) -> tuple[IntArray, IntArray, FloatArray]:
    """Counts of guesses as arrays, and the number of examples times delta that the sides pay.

    Args:
        correct, guesses: Right guesses and all guesses, whole, of shapes that broadcast.
        total: Examples, abstentions included; None stands for ``guesses`` and needs delta 0.
        sides: 2 where members and non-members are guessed, 1 where only one of them is.

    Returns:
        Right guesses, guesses, and ``sides / 2 * delta * total``.

    Raises:
        ValueError: Counts that contradict each other, a delta outside [0, 1), or other sides.
    """
    v, r = check_counts("correct", correct), check_counts("guesses", guesses)
    delta = check_delta(delta)
    if (v > r).any():
        raise ValueError(
            f"correct: expected at most guesses, got correct={correct!r} and guesses={guesses!r}"
        )
    if total is None and delta > 0:
        raise ValueError(
            "total: with delta > 0 the number of audit examples, abstentions included, is needed"
        )
    m = r if total is None else check_counts("total", total)
    if (r > m).any():
        raise ValueError(
            f"guesses: expected at most total, got guesses={guesses!r} and total={total!r}"
        )
    if sides not in (1, 2):
        raise ValueError(f"sides: expected 1 or 2, got {sides!r}")
    return v, r, np.asarray(sides / 2 * delta * m, float)


@dataclass(frozen=True, kw_only=True, eq=False)
class OneRunResult(AuditResult):
    """Lower bound on epsilon from one training run, at the delta and confidence of the call.

    Attributes:
        epsilon: The bound, nats; ``correct`` of ``guesses`` are right where it is reached.
        total: Audit examples, abstentions included.
        ceiling: Largest epsilon that this audit could have shown, with every guess right, nats.
        high: "Member" was guessed at or above this score (oriented: higher means member), but not
            for examples that were only looked at.
        low: "Non-member" was guessed at or below this score, with the same exception.
        tests: Number of guess counts the error was divided by (1 for anytime and split).
        true_positive_rate: Share of the members guessed to be members.
        false_positive_rate: Share of the non-members guessed to be members.
    """

    epsilon: float
    delta: float
    confidence: float
    correct: int
    guesses: int
    total: int
    ceiling: float
    high: float
    low: float
    search: str
    tests: int
    auc: float
    true_positive_rate: float
    false_positive_rate: float
    curve_guesses: IntArray
    curve_correct: IntArray
    curve_threshold: FloatArray
    _best: ThresholdBound
    _limit: Callable[[], DetectionLimit] | None = None

    @cached_property
    def curve_bound(self) -> FloatArray:
        """Bound at each guess count of the curve, nats, shape (points,), corrected for the search;
        computed when asked for.
        """
        return self._best.bounds(self._best.shown())

    @cached_property
    def detection(self) -> DetectionLimit | None:
        """How few exposed records the audit would have shown, simulated when asked for; None if
        unknown.
        """
        return None if self._limit is None else self._limit()

    @property
    def remarks(self) -> tuple[str, ...]:
        # Where `detection` was asked for, it is kept among the attributes.
        detection = vars(self).get("detection")
        return self.notes if detection is None else (*self.notes, detection.sentence)

    def seen(self) -> str:
        return "" if self.detection is None else self.detection.sentence

    def to_dict(self) -> dict[str, Any]:
        later = {"curve_bound": self.curve_bound, "detection": self.detection}
        return {**super().to_dict(), **json_ready(later)}

    @property
    def headline(self) -> str:
        return one_run_headline(self)

    @property
    def curve(self) -> "pd.DataFrame":
        """DataFrame over guess counts: guesses, correct, threshold, bound (corrected for the
        search).

        At most 200 counts, evenly spaced on a log scale; the reported one is always among them.
        """
        columns = ("guesses", "correct", "threshold", "bound")
        return table({name: getattr(self, f"curve_{name}") for name in columns})


def audit_one_run(
    scores: MembershipScores,
    *others: Never,
    delta: float = 0.0,
    confidence: float = 0.95,
    guess: Guess = "adaptive",
    thresholds: Search | float | None = None,
    delta_term: DeltaTerm = "published",
    design: Design = "randomized",
    seed: int = 0,
) -> OneRunResult:
    """Lower-bound epsilon from the scores of one training run, corrected for every threshold
    tested.

    Guarantee:
        Exceeds the epsilon of (epsilon, delta)-DP training with probability at most
        ``1 - confidence``, search included. Add/remove adjacency; with "game" or "played"
        replacement of one example, since a hidden member was then trained on in the place of each
        non-member shown.

    Args:
        scores: Scores of members and non-members whose inclusion was decided by fair coins.
        delta: Delta of (epsilon, delta)-DP, in [0, 1). Above 0 the number of guesses beyond a given
            threshold, or one found on the other half, is random, and the bound pays for it. Ties
            make the counts of "dyadic", "bonferroni" and "grid" random too, and there it does not:
            a mechanism that chooses the ties can raise the error. The anytime search holds for any
            counts.
        guess: "adaptive": "member" from the top of the scores or "non-member" from the bottom,
            whichever was right more often so far; the other end is looked at now and then, which
            costs nothing, and no guess is made where neither beats chance (with another search than
            "anytime": as "both"). "both": the top k are guessed to be members and the bottom k
            non-members; "members": only the top k; "nonmembers": only the bottom k; "grid": pairs
            of top and bottom counts from a fixed dyadic grid, error divided by their number.
        thresholds: None or "anytime": one test over all guess counts (Ville's inequality);
            "dyadic": m, m/2, m/4, ... >= 8 guesses, Bonferroni; "bonferroni": every guess count,
            error/m each; "split": chosen on one half, tested on the other; a number: a threshold
            fixed in advance, on the oriented score (with "both", everyone below is guessed a
            non-member). With "grid", None or "bonferroni".
        delta_term: Price of delta as in `one_run_p_value`, where guess counts are fixed in advance;
            the other searches have their own.
        design: "randomized": fair coins decided membership before training, and counts that
            contradict this are refused; "game": draw a fair-coin subsample now; "played": fair
            coins decided after training who is shown.

    Raises:
        ValueError: Arrays in place of `MembershipScores`, or counts that fair coins would not give.

    Source:
        Steinke, Nasr and Jagielski (2023), Algorithm 1 and Theorem 5.2; anytime search ours.

    >>> rng = np.random.default_rng(0)
    >>> scores = MembershipScores(rng.normal(2, 1, 500), rng.normal(0, 1, 500))
    >>> print(audit_one_run(scores).headline)
    ε ≥ 3.180 (δ = 0, confidence 0.95; 160 of 161 guesses right, 1000 examples)
    """
    refusals = directions.refusals(reversed_direction(check_scores("scores", scores, *others)))
    delta, confidence = check_delta(delta), check_confidence(confidence)
    check_choice("guess", guess, Guess)
    check_choice("delta_term", delta_term, DeltaTerm)
    scores = fair_game(scores, design, seed=seed)
    hypothesis = Hypothesis(delta, 1 - confidence, delta_term)
    best = search_thresholds(scores, guess, thresholds, hypothesis, seed=seed)
    most = {"members": scores.member.size, "nonmembers": scores.nonmember.size}.get(
        guess, len(scores)
    )
    ceiling = best.ceiling(most)
    return OneRunResult(
        claim=lower_bound_claim(
            best.epsilon, delta, confidence, adjacency_of(design), ceiling=ceiling
        ),
        condition=CONDITIONS[design],
        assumptions=one_run_assumptions(
            coin_assumption(design), guesses_made(guess, thresholds), best.words
        ),
        refusals=refusals,
        warnings=score_warnings(scores, design),
        **score_facts(scores, design),
        notes=(ceiling_note(best.path.total, ceiling),),
        delta=delta,
        confidence=confidence,
        ceiling=ceiling,
        **search_fields(best, scores),
    )


def search_fields(best: ThresholdBound, scores: MembershipScores) -> dict[str, Any]:
    """The fields of a `OneRunResult`, by name, that tell where a search on these scores found its
    bound: epsilon (nats), counts, thresholds, rates and the curve.
    """
    path, reached = best.path, best.at  # stopping points, and the one with the bound
    on_curve = best.shown()  # positions of the points that are drawn
    false_members = path.as_member[reached] - path.true_members[reached]
    return {
        "epsilon": best.epsilon,
        "correct": int(path.correct[reached]),
        "guesses": int(path.guesses[reached]),
        "total": path.total,
        "high": float(path.high[reached]),
        "low": float(path.low[reached]),
        "search": best.words,
        "tests": best.tests,
        "auc": scores.auc(),
        "true_positive_rate": float(path.true_members[reached] / scores.member.size),
        "false_positive_rate": float(false_members / scores.nonmember.size),
        "curve_guesses": path.guesses[on_curve],
        "curve_correct": path.correct[on_curve],
        "curve_threshold": path.high[on_curve],
        "_best": best,
    }
