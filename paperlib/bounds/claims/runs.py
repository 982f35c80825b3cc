"""The test of a claimed trade-off curve from several training runs, each with coins of its own.

The coins of all runs are one sequence, and the theorem of one run holds for it (book, the claim of
an accountant): m is the number of examples of all runs together.
"""

from collections.abc import Sequence
from typing import Any

from paperlib.bounds.claims.audit import CurveResult, check_adjacency, outcome_of, right_guesses
from paperlib.bounds.claims.curves import ClaimedCurve
from paperlib.bounds.claims.ordered_claims import ClaimTest
from paperlib.bounds.one_run.combine import (
    check_apart,
    check_planned,
    doubtful_runs,
    game_of_run,
    rank_scores,
    reversed_runs,
)
from paperlib.bounds.one_run.fair_coins import adjacency_of, coin_warnings
from paperlib.core.checks import check_confidence
from paperlib.core.options import Design
from paperlib.core.scores import MembershipScores
from paperlib.words.audits import claimed_curves as words
from paperlib.words.one_run import runs_condition


def audit_curve_of_runs(
    runs: Sequence[MembershipScores],
    claimed: ClaimedCurve,
    *,
    planned: int | None = None,
    ids: Sequence[Sequence[Any]] | None = None,
    confidence: float = 0.95,
    design: Design = "randomized",
    seed: int = 0,
) -> CurveResult:
    """Test a claimed trade-off curve, as one hypothesis, on several training runs together.

    Guarantee:
        If training satisfies f-DP for the claimed curve f, it is refuted with probability at most
        ``1 - confidence``. With ``planned`` this holds for the tests after each run together: the
        reader may stop at any of them.

    Args:
        runs: Scores of each run; coins decided membership anew in each.
        claimed: The curve of one training.
        planned: Most examples of all runs that will ever be given, fixed before the first; None
            for one look at all runs.
        ids: Names of the records of each run, of which none may be in two; None for no names.
        confidence: In (0, 1).
        design: How membership was decided, as for `audit_one_run`.
        seed: Run i plays a game with seed + i; ties are ordered by these seeds, too.

    Raises:
        ValueError: No run, a record or scores in two runs, counts that fair coins would not give,
            more examples than planned, or a design that tests another adjacency than the curve
            has.

    Source:
        Ours (book, the claim of an accountant).

    >>> from paperlib.bounds.claims.curves import gaussian_profile
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> runs = [MembershipScores(rng.normal(1, 1, 99), rng.normal(0, 1, 101)) for _ in range(6)]
    >>> audit_curve_of_runs(runs, ClaimedCurve("gaussian(mu=0.3)", gaussian_profile(0.3))).refuted
    True
    """
    error = 1 - check_confidence(confidence)
    suspicions = check_apart(runs, ids, design)
    check_adjacency(claimed, design)
    games = [game_of_run(number, run, design, seed) for number, run in enumerate(runs)]
    scores = rank_scores(games)
    total = len(scores)
    if planned is None:
        test = ClaimTest(right_guesses(scores, seed), total, error)
    else:
        first, *later = [right_guesses(run, seed + number) for number, run in enumerate(games)]
        test = ClaimTest(first, check_planned(planned, total), error, tuple(later))
    sizes = [(run.member.size, run.nonmember.size) for run in games]
    members = sum(inside for inside, _ in sizes)
    return CurveResult(
        **outcome_of(test, claimed, design),
        condition=runs_condition(design),
        assumptions=words.runs_assumptions(design, planned),
        refusals=reversed_runs(runs),
        warnings=(
            *suspicions,
            *coin_warnings(members, total - members, design),
            *doubtful_runs(sizes, design),
        ),
        adjacency=adjacency_of(design),
        design=design,
        direction="higher",
        runs=len(games),
    )
