"""The anytime search at delta > 0: budgets, monotonicity, agreement with delta = 0."""

import numpy as np
import pytest

from paperlib.bounds import audit_one_run, one_run_epsilon
from paperlib.bounds.one_run.anytime import (
    anytime_curve_with_failures,
    anytime_from_counts,
    anytime_with_failures,
    mean_failures,
)
from paperlib.core import MembershipScores

HITS = (np.random.default_rng(0).random(2_000) < 0.9).astype(int)
K, R = np.cumsum(HITS), np.arange(1, HITS.size + 1)


def bound(delta, error=0.05, total=2_000):
    return anytime_with_failures(K, R, error=error, m_delta=total * delta).epsilon


def test_no_delta_is_the_plain_search():
    assert bound(0.0) == pytest.approx(anytime_from_counts(K, R, level=0.05).epsilon, abs=1e-8)


def test_delta_and_confidence_only_cost():
    by_delta = [bound(d) for d in (0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)]
    assert by_delta == sorted(by_delta, reverse=True)
    by_error = [bound(1e-4, error) for error in (0.01, 0.05, 0.2)]
    assert by_error == sorted(by_error)


@pytest.mark.parametrize("delta", [1e-6, 1e-4, 1e-2])
def test_curve_has_the_bound_as_its_maximum(delta):
    best = bound(delta)
    curve = anytime_curve_with_failures(K, R, error=0.05, m_delta=2_000 * delta, ceiling=best)
    assert curve.max() == pytest.approx(best, abs=1e-8)
    assert (curve >= 0).all()


def test_guessing_members_only_halves_the_failures():
    assert mean_failures(1.0, 1.0, sides=1) == mean_failures(1.0, 1.0) / 2


def test_default_search_beats_the_fixed_failure_budget_and_the_published_bonferroni():
    """Power at delta = 1e-5 on seeded scores, against the same search with 2 m delta failures."""
    rng = np.random.default_rng(120_250)
    labels = rng.integers(0, 2, 100_000)
    scores = MembershipScores.from_labels(rng.normal(size=100_000) + labels, labels)
    found = audit_one_run(scores, delta=1e-5, guess="members").epsilon
    assert found > 2.45
    for search in ("dyadic", "bonferroni"):
        other = audit_one_run(scores, delta=1e-5, guess="members", thresholds=search)
        assert other.epsilon < found


def test_sharp_term_is_stronger_and_at_most_the_pure_bound():
    for delta in (1e-6, 1e-5, 1e-4):
        counts = dict(correct=900, guesses=1000, total=10_000, delta=delta)
        published = one_run_epsilon(**counts)
        sharp = one_run_epsilon(**counts, delta_term="sharp")
        assert published < sharp < one_run_epsilon(900, 1000)
    with pytest.raises(ValueError, match="delta_term"):
        one_run_epsilon(900, 1000, total=1000, delta=1e-5, delta_term="exact")
