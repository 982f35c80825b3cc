"""One-run audit on the output set that other scores chose."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from paperlib.bounds.one_run.fair_coins import (
    adjacency_of,
    fair_game,
    score_facts,
    score_warnings,
)
from paperlib.bounds.one_run.tails import random_count_p_value, refuted_log_odds
from paperlib.bounds.output_sets.choices import DEFAULT_RULE, Method, SelectionRule, fit_output_set
from paperlib.bounds.output_sets.level_sets import OutputSet, count_guesses
from paperlib.core.checks import check_choice, check_confidence, check_delta
from paperlib.core.direction import check_scores, reversed_direction
from paperlib.core.options import Design
from paperlib.core.results import AuditResult
from paperlib.core.scores import MembershipScores
from paperlib.words import directions
from paperlib.words.claims import ceiling_note, lower_bound_claim
from paperlib.words.designs import CONDITIONS, coin_assumption
from paperlib.words.one_run import (
    EVALUATION_EXAMPLES,
    OUTPUT_SET_AUDIT,
    output_set_assumptions,
    output_set_headline,
)

_SHARED = 0.5  # of the evaluation scores, above which they are taken for the selection scores


@dataclass(frozen=True, kw_only=True, eq=False)
class OutputSetResult(AuditResult):
    """A one-run audit in which one set of scores chose the guesses and another one is guessed on.

    Fields not listed are arguments of `audit_output_set` and its rule.

    Attributes:
        epsilon: Lower bound on epsilon, nats, rounded down, from the guesses on the evaluation
            scores.
        ceiling: Largest epsilon that this audit could have shown, with every guess right, nats.
        output_set: The set, chosen on the selection scores alone.
        selection_epsilon: The same bound on the selection scores. It was searched for, so it is
            optimistic and supports no claim.
    """

    epsilon: float
    correct: int
    guesses: int
    total: int
    ceiling: float
    delta: float
    confidence: float
    method: str
    guess: str
    output_set: OutputSet
    selection_epsilon: float

    @property
    def headline(self) -> str:
        """The bound with its evidence, rounded down."""
        return output_set_headline(self)


def audit_output_set(
    selection_scores: MembershipScores,
    evaluation_scores: MembershipScores,
    *,
    method: Method = "optimal",
    delta: float = 0.0,
    confidence: float = 0.95,
    design: Design = "randomized",
    seed: int = 0,
    rule: SelectionRule = DEFAULT_RULE,
) -> OutputSetResult:
    """Choose where to guess on one set of scores, and bound epsilon with the guesses on another.

    In the set "member" is guessed where the estimated member density is at least the other one. All
    is chosen on the selection scores, so the bound needs no correction for the search.

    Guarantee:
        If independent fair coins decided the membership of the evaluation examples, the result
        exceeds the epsilon of an (epsilon, delta)-DP mechanism with probability at most 1 -
        confidence.

    Args:
        selection_scores: Scores to choose with, at least two of each class.
        evaluation_scores: Scores of other examples (or other runs), in the same direction.
        method: "optimal" (level set of the estimated log-ratio), "whole" (guess everywhere),
            "top_bottom" (highest and lowest scores) or "dp_sniper" (threshold on a logistic
            posterior).
        delta: Of (epsilon, delta)-DP, in [0, 1).
        confidence: In (0, 1).
        design: How membership was decided, as in `audit_one_run`; "game" draws from the evaluation
            scores by ``seed``.
        rule: Settings of the choice.

    Raises:
        ValueError: The evaluation counts cannot come from fair coins, or the two sets share scores.

    Source:
        "Identifying Optimal Output Sets for Differential Privacy Auditing", Algorithm 1 and Section
        5; bound of Steinke, Nasr and Jagielski (2023), Proposition 5.1. At delta above 0 this
        project's, since the number of guesses is random.

    >>> rng = np.random.default_rng(0)
    >>> draw = lambda: MembershipScores(rng.normal(2, 1, 1000), rng.normal(0, 1, 1000))
    >>> bool(audit_output_set(draw(), draw()).epsilon > 2)
    True
    """
    check_choice("method", method, Method)
    delta, confidence = check_delta(delta), check_confidence(confidence)
    check_scores("selection_scores", selection_scores)
    check_scores("evaluation_scores", evaluation_scores)
    _refuse_overlap(selection_scores, evaluation_scores)
    both = selection_scores, evaluation_scores
    # A set can be learned from a reversed score, which still is a mistake.
    together = MembershipScores(
        *map(
            np.concatenate,
            zip(*((scores.member, scores.nonmember) for scores in both), strict=True),
        ),
        higher_means_member=evaluation_scores.higher_means_member,
    )
    evaluation_scores = fair_game(evaluation_scores, design, seed=seed, what=OUTPUT_SET_AUDIT)
    total = len(evaluation_scores)
    output_set = fit_output_set(
        selection_scores, method=method, confidence=confidence, delta=delta, total=total, rule=rule
    )
    correct, guesses = count_guesses(output_set, evaluation_scores)
    # Guesses of one side alone pay half of delta, as in `audit_one_run`.
    level, m_delta = 1 - confidence, total * delta * (0.5 if rule.guess == "members" else 1.0)
    p_value = partial(random_count_p_value, level=level)
    most = evaluation_scores.member.size if rule.guess == "members" else total
    epsilon, ceiling = (
        float(refuted_log_odds(right, made, level, m_delta, p_value))
        for right, made in ((correct, guesses), (most, most))
    )
    # A part that was drawn from scores with other counts may have equal ones by chance.
    even = evaluation_scores.member.size == evaluation_scores.nonmember.size
    return OutputSetResult(
        epsilon=epsilon,
        correct=correct,
        guesses=guesses,
        total=total,
        ceiling=ceiling,
        delta=delta,
        confidence=confidence,
        method=method,
        guess=rule.guess,
        output_set=output_set,
        selection_epsilon=max(output_set.objective, 0.0),
        claim=lower_bound_claim(epsilon, delta, confidence, adjacency_of(design), ceiling=ceiling),
        condition=CONDITIONS[design],
        notes=(ceiling_note(total, ceiling, EVALUATION_EXAMPLES),),
        assumptions=output_set_assumptions(
            coin_assumption(design, examples="evaluation"), delta, rule.guess
        ),
        refusals=directions.refusals(reversed_direction(together)),
        warnings=score_warnings(together if even else evaluation_scores, design),
        **score_facts(evaluation_scores, design),
    )


def _refuse_overlap(selection: MembershipScores, evaluation: MembershipScores) -> None:
    """Refuse (ValueError) scores to judge that are those by which the set was chosen, or of the
    other direction.
    """
    if selection.higher_means_member != evaluation.higher_means_member:
        raise ValueError(
            "evaluation_scores: the score direction differs from that of selection_scores; "
            "build both with the same higher_means_member"
        )
    advice = "selecting and evaluating on the same scores breaks the bound; use scores.split()"
    if selection is evaluation:
        raise ValueError(f"evaluation_scores: the same object as selection_scores; {advice}")
    first, distinct = selection.pooled()[0], np.unique(evaluation.pooled()[0])
    # Scores on few values coincide by chance: they tell that sets overlap only where more than 20
    # values are different, and nine of ten of all. Both limits are chosen.
    if distinct.size > max(0.9 * len(evaluation), 20):
        shared = float(np.isin(distinct, first).mean())
        if shared > _SHARED:
            raise ValueError(
                f"evaluation_scores: {shared:.0%} of the values are selection scores; {advice}"
            )
