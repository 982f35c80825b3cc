"""PANORAMIA with learned orders: both tests learn from the audit's own coins where real examples are."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from paperlib.audits.features import (
    Classifier,
    Flags,
    LearnedOrder,
    checked_features,
    checked_membership,
    default_model,
    learned_bets,
    learned_path,
)
from paperlib.bounds.one_run.adaptive import ends_of
from paperlib.bounds.one_run.search import Hypothesis, RecallTest, every_count, recall_test
from paperlib.bounds.panoramia import PanoramiaResult, panoramia_result
from paperlib.bounds.panoramia_terms import Terms
from paperlib.core import Design, FloatArray

LOOKED_AT = 0.1  # share of the coins before the first fit: a bound rests on the few surest guesses


def audit_panoramia_features(
    baseline_features: ArrayLike,
    attack_features: ArrayLike,
    membership: ArrayLike,
    *,
    confidence: float = 0.95,
    gamma: float = 0.0,
    delta: float = 0.0,
    known_c: float | None = None,
    design: Design = "randomized",
    seed: int = 0,
    model: Classifier | None = None,
) -> PanoramiaResult:
    """Measure leakage with generated non-members, learning from the audit's own coins.

    Baseline and attack learn while they are judged, as in `audit_features`; one coin in ten is looked at.

    Guarantee:
        That of `audit_panoramia`, search and learning included, whatever the features and the model: only
        with ``known_c`` there is a lower bound on epsilon.

    Args:
        baseline_features: What anyone sees of each example, finite, shape (m, d) or (m,): its columns, the
            outputs of models that never saw the members. The first is best higher for real examples.
        attack_features: What the target says of each example, shape (m, k) or (m,), the first best higher for
            members (negate a loss). The attack sees the baseline's features too.
        membership: 1 for a real member, 0 for a generated example, shape (m,).
        confidence, gamma, delta, known_c, design: As for `audit_panoramia`.
        seed, model: As for `audit_features`; each test fits the model.

    Source:
        PANORAMIA, Propositions 1 to 4; the learned orders are this project's, as in `audit_features`.

    >>> rng = np.random.default_rng(0)
    >>> member, difficulty = rng.random(2000) < 0.5, 2 * rng.normal(size=2000)
    >>> loss = rng.normal(size=2000) + difficulty - 1.5 * member
    >>> result = audit_panoramia_features(difficulty, -loss, member)
    >>> result.c_lb < 0.1, result.c_plus_epsilon_lb > 1.5
    (True, True)
    """
    terms = Terms(confidence, gamma, delta, known_c, design, seed)
    baseline = checked_features("baseline_features", baseline_features)
    target = checked_features("attack_features", attack_features)
    if len(target) != len(baseline):
        raise ValueError(
            f"attack_features: expected {len(baseline)} rows like baseline_features, got {len(target)}"
        )
    members = checked_membership(baseline, membership)
    shown = terms.shown(members)
    members = members[shown]
    seen = baseline[shown], np.column_stack([target, baseline])[shown]
    learner = default_model() if model is None else model
    gamma, with_delta = terms.relaxations
    tests = (
        learned_test("baseline", seen[0], members, Hypothesis(gamma, terms.level), learner, [seed, 1]),
        learned_test("mia", seen[1], members, Hypothesis(with_delta, terms.level), learner, [seed, 2]),
    )
    return panoramia_result(tests, members, terms, learned=True)


def learned_test(
    name: Literal["baseline", "mia"],
    rows: FloatArray,
    members: Flags,
    hypothesis: Hypothesis,
    model: Classifier,
    seed: Sequence[int],
) -> RecallTest:
    """One of the two tests: the guesses "member" in a learned order, beside the top of the first column."""
    # If, given the coins revealed before, each positive guess is right with probability at most e^x / (1 +
    # e^x), up to failures of mean m delta / (2 (1 + e^x)) with the hypothesis's delta, the bound exceeds x
    # with probability at most the hypothesis's error.
    rng = np.random.default_rng(seed)
    order = rng.permutation(members.size)  # a model may look at neighbouring rows
    rows, members = rows[order], members[order]
    learned = LearnedOrder(rows, members, model, rng, only_members=True)
    bets = learned_bets(ends_of(rows[:, 0])[:1], learned, members, rng, LOOKED_AT)
    return recall_test(
        name, every_count(learned_path(bets, rows[:, 0]), hypothesis, 1), int(members.sum()), "anytime"
    )
