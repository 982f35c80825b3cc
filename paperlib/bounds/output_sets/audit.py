"""The output set on which an auditor guesses: the best one from densities or scores, and its audit."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from paperlib.bounds.one_run.audit import ADJACENCY, lower_bound_claim, one_run_epsilon
from paperlib.bounds.one_run.fair_coins import play_game, require_fair_coins
from paperlib.bounds.output_sets.densities import estimate_ratio
from paperlib.bounds.output_sets.level_sets import Density, best_level, line_of
from paperlib.bounds.output_sets.selection import (
    CHOICES,
    GUESSES,
    METHODS,
    OutputSet,
    Selection,
    selection_of,
)
from paperlib.core import (
    AuditResult,
    FloatArray,
    MembershipScores,
    check_choice,
    check_confidence,
    check_counts,
    check_delta,
    check_nonnegative,
    check_vector,
    round_down,
)

Guess = Literal["both", "members"]

_CAUTION = 20.0
_SHARED = 0.5


def optimal_output_set(
    p: Density,
    q: Density,
    *,
    m: int,
    support: tuple[float, float],
    confidence: float = 0.95,
    guess: Guess = "both",
) -> OutputSet:
    """The set that maximises the auditing objective when both densities are known.

    Among all sets of one mass, the level set {|log p/q| >= tau} has the most right guesses, so
    the search is over tau alone. The best level solves
    ``expit(tau) = accuracy - half the sampling term`` and the cut points solve
    ``|log p/q| = tau``; both are found by root finding.

    Guarantee:
        No other set has a larger value of the objective (equation 4) than the returned one,
        up to the error of the quadrature (about 1e-8 for densities without a pole).

    Args:
        p: Density of the member scores; maps an array to an array of its shape.
        q: Density of the nonmember scores.
        m: Scores drawn from each density, at least 1.
        support: Ends of the line; either may be infinite. An interval which reaches a finite
            end goes on to infinity if a density is still positive beyond it.
        confidence: 1 - beta, in (0, 1).
        guess: "both", or "members": the auditor guesses "member" only, as PANORAMIA's tests must. The
            level sets are then {log p/q >= tau} with tau of 0 or more.

    Returns:
        The set, with its objective, level and cut points.

    Raises:
        ValueError: A density is negative, not finite or does not hold mass 1 on the support,
            or an argument is out of range.

    Source:
        "Identifying Optimal Output Sets for Differential Privacy Auditing", equation 4 (with
        ln(1/beta), as printed), Definition 4.2 and Theorem 4.3.

    >>> from scipy.stats import norm
    >>> found = optimal_output_set(norm(1, 1).pdf, norm(0, 1).pdf, m=100, support=(-12, 12))
    >>> len(found.intervals), bool(found.contains(0.5))
    (2, False)
    """
    m = int(check_counts("m", m, minimum=1))
    check_choice("guess", guess, GUESSES)
    penalty = 2 * math.log(1 / (1 - check_confidence(confidence))) / m
    line = line_of(p, q, support, members_only=guess == "members")
    tau = best_level(line, penalty)
    mass, right = line.measure(tau)
    return OutputSet(
        intervals=line.level_set(tau),
        member_intervals=line.member_set(),
        objective=objective_of(mass, right, m=m, confidence=confidence),
        tau=tau,
        confidence=confidence,
        accuracy=right / mass,
        mass=mass,
    )


def objective_of(mass: float, right: float, *, m: int, confidence: float = 0.95) -> float:
    """The auditing objective of a set, in nats; -inf when the sampling term is too large.

    Args:
        mass: p(O) + q(O), in (0, 2].
        right: Integral of max(p, q) over the set, in (0, mass].
        m: Scores drawn from each density.
        confidence: 1 - beta.

    Source:
        Equation 4, as printed, with ln(1/beta).

    >>> round(objective_of(2.0, 1.5, m=1000), 4)
    0.8249
    """
    y = right / mass - math.sqrt(2 * math.log(1 / (1 - confidence)) / (m * mass))
    return math.log(y / (1 - y)) if y > 0 else -math.inf


def fit_output_set(
    scores: MembershipScores,
    *,
    confidence: float = 0.95,
    delta: float = 0.0,
    total: int | None = None,
    floor: float | None = None,
    min_density: float | None = None,
    caution: float = _CAUTION,
    guess: Guess = "both",
) -> OutputSet:
    """Estimate the best output set from scores: a level set of two kernel density estimates.

    The level is the one with the best one-run bound on these same scores, each judged by
    estimates that leave it out. The bound of the set is kept in ``objective`` and is **not**
    valid, since it was searched for. Audit other scores with the set (`audit_output_set` does).

    Args:
        scores: Selection scores, at least two of each class. Their direction does not matter.
        confidence: Of the bound that is maximised, in (0, 1).
        delta: Approximate-DP slack of that bound, in [0, 1).
        total: Examples the set will be evaluated on; as many as ``scores`` when None.
        floor: Densities are held up at this share of the highest peak before their ratio is
            taken, so a thin tail of one sample cannot look certain; in (0, 1). When None, the
            lower of 0.01 and of the height of two samples' kernels. Free of the score's unit.
        min_density: The paper's rule instead: the ratio is used only where both densities
            exceed this value (0.01 in the paper), per unit of the score.
        caution: The highest of many bounds is partly luck, the more so for few guesses. Each
            is discounted by what asking for this many times less error would cost; 1 takes
            the highest bound, as the paper does.
        guess: "both", as the paper does, or "members": only guesses "member" are made and counted, and the
            level has the best bound of these alone. The set may hold no point: then no guess is made.

    Returns:
        The set. Intervals are in the unit of the scores.

    Raises:
        ValueError: An argument is out of range.

    Source:
        Algorithm 1 of the paper, with the scale-free floor.

    >>> rng = np.random.default_rng(0)
    >>> found = fit_output_set(MembershipScores(rng.normal(2, 1, 500), rng.normal(0, 1, 500)))
    >>> [bool(found.contains(x)) for x in (1.0, 3.0)]
    [False, True]
    """
    return choose_output_set(
        scores,
        "optimal",
        confidence=confidence,
        delta=delta,
        total=total,
        floor=floor,
        min_density=min_density,
        caution=caution,
        guess=guess,
    )


def choose_output_set(
    scores: MembershipScores,
    method: str,
    *,
    confidence: float = 0.95,
    delta: float = 0.0,
    total: int | None = None,
    floor: float | None = None,
    min_density: float | None = None,
    caution: float = _CAUTION,
    guess: Guess = "both",
) -> OutputSet:
    """Choose an output set from selection scores by any of the four methods.

    Args:
        scores: Selection scores, at least two of each class.
        method: "optimal", "whole", "top_bottom" or "dp_sniper"; see `audit_output_set`.
        confidence: See `fit_output_set`, as all the others.
        delta: Approximate-DP slack.
        total: Examples the set will be evaluated on.
        floor: Share of the peak.
        min_density: The paper's rule.
        caution: Discount for luck.
        guess: "both" or "members".

    Raises:
        ValueError: An argument is out of range.

    >>> choose_output_set(MembershipScores([1.0, 2.0], [0.0, 0.5]), "whole").intervals
    ((-inf, inf),)
    """
    check_choice("method", method, METHODS)
    check_choice("guess", guess, GUESSES)
    total = len(scores) if total is None else total
    chosen = _selection(scores, confidence, delta, total, floor, min_density, caution, guess)
    return CHOICES[method](chosen)


def _selection(
    scores: MembershipScores,
    confidence: float,
    delta: float,
    total: int,
    floor: float | None,
    min_density: float | None,
    caution: float,
    guess: Guess,
) -> Selection:
    _check_selection(scores, floor)
    if not 1 <= caution < math.inf:
        raise ValueError(f"caution: expected a finite number of at least 1, got {caution!r}")
    return selection_of(
        scores,
        floor=floor,
        min_density=None if min_density is None else check_nonnegative("min_density", min_density),
        total=int(check_counts("total", total, minimum=1)),
        delta=check_delta(delta),
        confidence=check_confidence(confidence),
        caution=caution,
        guess=guess,
    )


def _check_selection(scores: MembershipScores, floor: float | None) -> None:
    for name, values in (("member", scores.member), ("nonmember", scores.nonmember)):
        if values.size < 2:
            raise ValueError(f"selection scores: expected at least 2 {name} scores, got {values.size}")
    if floor is not None and not 0 < floor < 1:
        raise ValueError(f"floor: expected a number in (0, 1), got {floor!r}")


def ratio_scores(
    selection_scores: MembershipScores, scores: ArrayLike, *, floor: float | None = None
) -> FloatArray:
    """Estimated log p/q at scores: the order in which output sets of a falling level take them in.

    A search over recall on the ratio instead of the score guesses inside the sets {log p/q >= tau} of every
    tau, and pays for the search on the examples judged. No level has to be chosen on the selection scores, so
    that a smaller share of all examples will do for them.

    Guarantee:
        A bound that holds for any order of the guesses fixed without the membership of the judged examples
        (`audit_one_run`, `audit_panoramia`) holds for this order.

    Args:
        selection_scores: To estimate densities from, at least two of each class.
        scores: Of other examples, in the same direction and unit, shape (n,).
        floor: See `fit_output_set`.

    Returns:
        Nats, shape (n,); higher means member, whatever the direction of the scores.

    Raises:
        ValueError: An argument is out of range, NaN or infinite.

    >>> rng = np.random.default_rng(0)
    >>> selection = MembershipScores(rng.normal(0, 0.5, 400), rng.normal(rng.choice([-2, 2], 400), 0.5))
    >>> (ratio_scores(selection, [-2.0, 0.0, 2.0]) > 0).tolist()
    [False, True, False]
    """
    _check_selection(selection_scores, floor)
    estimate = estimate_ratio(*selection_scores.pooled(), floor=floor)
    return np.interp(check_vector("scores", scores), estimate.grid, estimate.ratio)


@dataclass(frozen=True, kw_only=True, eq=False)
class OutputSetResult(AuditResult):
    """A one-run audit in which one set of scores chose the guesses and another paid for them.

    Attributes:
        epsilon: Lower bound on epsilon, nats, rounded down.
        correct: Right guesses on the evaluation scores.
        guesses: Guesses made; the rest are abstentions.
        total: Evaluation examples.
        delta: Approximate-DP slack.
        confidence: Probability with which the bound is below the true epsilon.
        method: How the output set was chosen.
        guess: "both" or "members": which guesses were made.
        output_set: The set, chosen on the selection scores alone.
        selection_epsilon: The same bound on the selection scores. It was searched for, so it is
            optimistic and supports no claim.
    """

    epsilon: float
    correct: int
    guesses: int
    total: int
    delta: float
    confidence: float
    method: str
    guess: str
    output_set: OutputSet
    selection_epsilon: float

    @property
    def headline(self) -> str:
        """The bound with its evidence, rounded down."""
        return (
            f"ε ≥ {round_down(self.epsilon):.3f} (δ = {self.delta:g}, "
            f"confidence {self.confidence:g}, {self.method} output set, "
            f"{self.correct} of {self.guesses} guesses right, {self.total} examples)"
        )


def audit_output_set(
    selection_scores: MembershipScores,
    evaluation_scores: MembershipScores,
    *,
    method: str = "optimal",
    delta: float = 0.0,
    confidence: float = 0.95,
    design: str = "randomized",
    seed: int = 0,
    floor: float | None = None,
    min_density: float | None = None,
    caution: float = _CAUTION,
    guess: Guess = "both",
) -> OutputSetResult:
    """Choose where to guess on one set of scores, and bound epsilon with the guesses on another.

    Inside the set the guess is "member" where the estimated member density is at least the
    nonmember density; outside it the auditor abstains. Everything is chosen on the selection
    scores, so the bound pays for no search.

    Guarantee:
        If membership of the evaluation examples was decided by independent fair coins, the
        result exceeds the epsilon of an (epsilon, delta)-DP mechanism with probability at most
        1 - confidence.

    Args:
        selection_scores: Scores to choose with, at least two of each class.
        evaluation_scores: Scores of other examples (or other runs), in the same direction.
        method: "optimal" (level set of the estimated log-ratio), "whole" (guess everywhere),
            "top_bottom" (highest and lowest scores) or "dp_sniper" (threshold on a logistic
            posterior).
        delta: Approximate-DP slack, in [0, 1).
        confidence: In (0, 1).
        design: "randomized" if membership was decided by fair coins; "game" draws a fair-coin
            subsample of the evaluation scores first.
        seed: Seed of the game.
        floor: See `fit_output_set`.
        min_density: See `fit_output_set`.
        caution: See `fit_output_set`.
        guess: "both" or "members"; see `fit_output_set`.

    Returns:
        The bound with the set, the counts and the claim.

    Raises:
        ValueError: The evaluation counts cannot come from fair coins, the two sets share
            scores or differ in direction, or an argument is out of range.

    Source:
        Algorithm 1 and Section 5 of the paper; bound of Steinke, Nasr and Jagielski (2023),
        Proposition 5.1 and Theorem 5.2.

    >>> rng = np.random.default_rng(0)
    >>> draw = lambda: MembershipScores(rng.normal(2, 1, 1000), rng.normal(0, 1, 1000))
    >>> bool(audit_output_set(draw(), draw()).epsilon > 2)
    True
    """
    check_choice("method", method, METHODS)
    check_choice("design", design, ("randomized", "game"))
    delta, confidence = check_delta(delta), check_confidence(confidence)
    _refuse_overlap(selection_scores, evaluation_scores)
    if design == "game":
        evaluation_scores = play_game(evaluation_scores, seed=seed)
    require_fair_coins(evaluation_scores, what="an output-set audit")
    total = len(evaluation_scores)
    chosen = choose_output_set(
        selection_scores,
        method,
        confidence=confidence,
        delta=delta,
        total=total,
        floor=floor,
        min_density=min_density,
        caution=caution,
        guess=guess,
    )
    correct, guesses = count_guesses(chosen, evaluation_scores)
    epsilon = float(one_run_epsilon(correct, guesses, total=total, delta=delta, confidence=confidence))
    return OutputSetResult(
        epsilon=epsilon,
        correct=correct,
        guesses=guesses,
        total=total,
        delta=delta,
        confidence=confidence,
        method=method,
        guess=guess,
        output_set=chosen,
        selection_epsilon=max(chosen.objective, 0.0),
        claim=lower_bound_claim(epsilon, delta, confidence, ADJACENCY[design]),
        assumptions=_assumptions(design, delta, guess),
    )


def count_guesses(chosen: OutputSet, scores: MembershipScores) -> tuple[int, int]:
    """Right guesses and guesses made by an output set on scores.

    >>> chosen = OutputSet(intervals=((1.0, 9.0),), member_intervals=((1.0, 9.0),), objective=0.0,
    ...                    tau=0.0, confidence=0.95, accuracy=1.0, mass=1.0)
    >>> count_guesses(chosen, MembershipScores([2.0, 0.0], [3.0]))
    (1, 2)
    """
    member, nonmember = chosen.guess(scores.member), chosen.guess(scores.nonmember)
    correct = int((member == 1).sum() + (nonmember == -1).sum())
    return correct, int((member != 0).sum() + (nonmember != 0).sum())


def _assumptions(design: str, delta: float, guess: str) -> tuple[str, ...]:
    coins = (
        "every evaluation example was included by its own fair coin, tossed before training"
        if design == "randomized"
        else "members and non-members come from one distribution, so that the fair-coin subsample drawn here "
        "(seeded) stands for a training set drawn by fair coins"
    )
    sides = ('only "member" is guessed, and abstained elsewhere',)
    slack = (f"delta = {delta:g} is paid for every evaluation example, abstentions included",)
    return (
        coins,
        "a score depends on the example and the trained model, not on membership in any other way",
        "the output set was chosen on the selection scores alone; no evaluation example is among them",
        "the bound speaks of the training procedure with its randomness, not of this one model",
        *(sides if guess == "members" else ()),
        *(slack if delta > 0 else ()),
    )


def _refuse_overlap(selection: MembershipScores, evaluation: MembershipScores) -> None:
    if selection.higher_means_member != evaluation.higher_means_member:
        raise ValueError(
            "evaluation_scores: the score direction differs from that of selection_scores; "
            "build both with the same higher_means_member"
        )
    advice = "selecting and evaluating on the same scores breaks the bound; use scores.split()"
    if selection is evaluation:
        raise ValueError(f"evaluation_scores: the same object as selection_scores; {advice}")
    first, second = selection.pooled()[0], evaluation.pooled()[0]
    distinct = np.unique(second)
    # Scores on few values coincide by chance; only near-continuous ones tell that sets overlap.
    if distinct.size > max(0.9 * second.size, 20):
        shared = float(np.isin(distinct, first).mean())
        if shared > _SHARED:
            raise ValueError(f"evaluation_scores: {shared:.0%} of the values are selection scores; {advice}")
