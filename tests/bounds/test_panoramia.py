"""PANORAMIA's tests against brute force, check values, and inputs at the edge."""

import json
from functools import partial

import numpy as np
import pandas as pd
import pytest

from paperlib.bounds import audit_one_run, audit_panoramia
from paperlib.bounds.one_run.anytime import AnytimeCounts, log_mixture, sharp_share
from paperlib.bounds.one_run.fair_coins import game_size
from paperlib.bounds.one_run.tails import refuted_log_odds
from paperlib.bounds.panoramia import panoramia_ceiling
from paperlib.core import MembershipScores
from tests.refusals import refused

SERIES = pd.Series(range(4))


def example(m=300, seed=0, c=0.7, signal=1.0, ties=None):
    rng = np.random.default_rng(seed)
    flags = rng.integers(0, 2, m)
    baseline = rng.normal(size=m) + c * flags
    mia = baseline + signal * flags
    if ties:
        baseline, mia = np.round(baseline * ties), np.round(mia * ties)
    return baseline, mia, flags


def brute_union(scores, flags, level, m_delta=0.0):
    """Every distinct threshold by hand."""
    guessed = scores >= np.unique(scores)[:, None]
    bounds = refuted_log_odds(
        (guessed & (flags == 1)).sum(1), guessed.sum(1), level / flags.size, m_delta
    )
    return float(bounds.max())


def test_perfect_attack_reaches_the_ceiling_and_never_more():
    flags = np.arange(10_000) % 2
    result = audit_panoramia(np.zeros(10_000), flags, flags)
    assert result.ceiling == pytest.approx(5.958736, abs=1e-6)
    assert panoramia_ceiling(10_000, 5_000) == pytest.approx(result.ceiling)
    assert panoramia_ceiling(10, 0) == 0.0
    assert len(json.dumps(result.to_dict())) < 5_000
    assert result.c_plus_epsilon_lb == pytest.approx(result.ceiling, abs=1e-12)
    assert any("ceiling" in text for text in result.warnings)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("ties", [None, 4])
def test_union_search_is_the_exact_maximum(seed, ties):
    baseline, mia, flags = example(m=120 + 37 * seed, seed=seed, ties=ties)
    result = audit_panoramia(baseline, mia, flags)
    assert result.c_lb == pytest.approx(brute_union(baseline, flags, 0.025), abs=1e-6)
    assert result.c_plus_epsilon_lb == pytest.approx(brute_union(mia, flags, 0.025), abs=1e-6)
    assert result.epsilon_tilde == max(0.0, result.c_plus_epsilon_lb - result.c_lb)


@pytest.mark.parametrize(("gamma", "delta"), [(1e-6, 0.0), (0.0, 1e-6), (2e-6, 1e-6)])
def test_relaxation_against_the_printed_p_value(gamma, delta):
    m = 100
    baseline, mia, flags = example(m=m, seed=3, c=2.5, signal=1.5)
    result = audit_panoramia(baseline, mia, flags, gamma=gamma, delta=delta)
    assert result.c_lb == pytest.approx(brute_union(baseline, flags, 0.025, m * gamma), abs=1e-6)
    relaxed = brute_union(mia, flags, 0.025, m * (gamma + delta - gamma * delta))
    assert result.c_plus_epsilon_lb == pytest.approx(relaxed, abs=1e-6)
    assert result.c_plus_epsilon_lb > 0


@pytest.mark.parametrize("search", ["union", "anytime"])
def test_gamma_acts_on_both_tests_and_delta_leaves_the_baseline_alone(search):
    """The baseline never sees the model: Proposition 4's 2 m delta there is a slip."""
    audit = partial(audit_panoramia, *example(m=400, seed=1, c=2.0), search=search)
    free, gamma, delta = audit(), audit(gamma=1e-5), audit(delta=1e-5)
    assert gamma.c_lb < free.c_lb == delta.c_lb
    assert max(gamma.c_plus_epsilon_lb, delta.c_plus_epsilon_lb) < free.c_plus_epsilon_lb


@pytest.mark.parametrize("ties", [None, 3])
def test_anytime_search_stops_at_whole_tied_blocks(ties):
    """Inside a tied block the order with members last can only weaken the test."""
    baseline, mia, flags = example(m=500, seed=2, ties=ties)
    result = audit_panoramia(baseline, mia, flags, search="anytime")
    order = np.lexsort((flags, -mia))
    expected, _ = AnytimeCounts(0.025, most=500).best(np.cumsum(flags[order]), np.arange(1, 501))
    assert result.c_plus_epsilon_lb == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("search", ["union", "anytime"])
@pytest.mark.parametrize("gamma", [0.0, 1e-7])
def test_curve_holds_the_reported_bounds(search, gamma):
    result = audit_panoramia(*example(m=3_000, seed=4), search=search, gamma=gamma)
    curve = result.curve
    assert list(curve.columns) == [
        "test",
        "recall",
        "guesses",
        "true_positives",
        "precision",
        "bound",
    ]
    best = curve.groupby("test").bound.max()
    assert best["baseline"] == pytest.approx(result.c_lb, abs=1e-7)
    assert best["mia"] == pytest.approx(result.c_plus_epsilon_lb, abs=1e-7)
    assert not curve.isna().any().any()


def test_anytime_relaxation_against_its_definition():
    """At each epsilon: failures of mean m g / (2 (1 + e^x)), Markov, and the shifted mixture."""
    flags = np.tile([1, 1, 1, 0], 60)
    flags = np.append(flags, np.zeros(120, dtype=int))
    scores = -np.arange(flags.size, dtype=float)
    result = audit_panoramia(scores, scores, flags, search="anytime", gamma=1e-4)
    x, m, error = result.c_lb, flags.size, 0.025
    step = 0.25 * np.floor(x / 0.25)  # failures are budgeted on steps of a quarter
    mean = m * 1e-4 / 2 / (1 + np.exp(step))
    assert mean <= 0.7 * error  # so f = 0 and the level is what remains
    right, guesses = np.cumsum(flags), np.arange(1, m + 1)
    best = np.exp(log_mixture(right[100:260], guesses[100:260], x, sharp_share(m)).max())
    assert best == pytest.approx(1 / (error - mean), rel=1e-5)


def test_scores_count_only_by_their_order_and_rows_by_their_pairing():
    baseline, mia, flags = example(seed=7)
    result = audit_panoramia(baseline, mia, flags)
    shuffled = np.random.default_rng(1).permutation(flags.size)
    same = audit_panoramia(
        np.exp(baseline[shuffled]), 5 * mia[shuffled] - 3, flags[shuffled].astype(bool)
    )
    assert (same.c_lb, same.c_plus_epsilon_lb) == (result.c_lb, result.c_plus_epsilon_lb)


@pytest.mark.parametrize("search", ["union", "anytime"])
def test_null_and_hopeless_attacks_give_zero_and_two_examples_are_enough_to_run(search):
    flags = np.arange(200) % 2
    for scores in (np.zeros(200), 1.0 - flags):
        result = audit_panoramia(scores, scores, flags, search=search)
        assert (result.c_lb, result.c_plus_epsilon_lb, result.epsilon_tilde) == (0.0, 0.0, 0.0)
    result = audit_panoramia([0.0, 1.0], [0.0, 1.0], [0, 1], search=search)
    assert result.epsilon_tilde == 0.0
    assert any("cannot refute" in text for text in result.warnings)


def test_known_c_gives_a_lower_bound_with_the_whole_error_and_the_anytime_search():
    baseline, mia, flags = example(m=1_000, c=0.0, signal=1.0)
    baseline = np.zeros(mia.size)  # which does not refute the c that is told
    result = audit_panoramia(baseline, mia, flags, known_c=0.0)
    assert result.epsilon == result.c_plus_epsilon_lb > 0.3
    assert "Lower bound on the mechanism" in result.claim
    assert audit_panoramia(baseline, mia, flags, known_c=0.25).epsilon == pytest.approx(
        result.epsilon - 0.25
    )
    assert audit_panoramia(baseline, mia, flags, known_c=50.0).epsilon == 0.0
    # The bound of a one-run audit that guesses members.
    for seed in range(8):
        rng = np.random.default_rng(seed)
        flags = rng.integers(0, 2, 1_000)
        scores = rng.normal(size=1_000) + flags
        known = audit_panoramia(np.zeros(1_000), scores, flags, known_c=0.0)
        one_run = audit_one_run(
            MembershipScores.from_labels(scores, flags), guess="members", design="played"
        )
        assert known.epsilon == pytest.approx(one_run.epsilon, abs=1e-9)


def test_a_known_c_that_the_baseline_refutes_gives_no_bound_and_an_easy_generator_is_a_warning():
    result = audit_panoramia(*example(m=1_000, c=2.0), known_c=0.0)
    assert any("refuted by the baseline" in text for text in result.warnings)
    assert result.epsilon is None
    assert "a measurement" in result.headline
    assert result.claim.startswith("Measurement of the trained model, not a lower bound")
    assert any("half" in text for text in audit_panoramia(*example(m=1_000, c=5.0)).warnings)
    assert not audit_panoramia(*example(m=1_000, c=0.2)).warnings


def test_one_class_dominating_is_refused_or_subsampled():
    flags = np.repeat([1, 0], [900, 100])
    scores = np.random.default_rng(0).normal(size=1_000)
    refused(
        r"900 members and 100 generated.*fair coin.*game", audit_panoramia, scores, scores, flags
    )
    result = audit_panoramia(scores, scores, flags, design="game", seed=3)
    assert result.members + result.nonmembers == game_size(100)
    assert any("seed 3" in text for text in result.assumptions)
    assert result.c_plus_epsilon_lb == 0.0


def test_bad_inputs_name_the_argument():
    for change, message in (
        ({"baseline_scores": [0.0, np.nan, 1.0, 2.0]}, "baseline_scores: 1 of 4 values are NaN"),
        ({"mia_scores": [0.0, np.inf, 1.0, 2.0]}, "mia_scores: 1 of 4 values are infinite"),
        ({"mia_scores": [1.0, 2.0]}, "mia_scores: expected 4 values"),
        (
            {"mia_scores": SERIES[::-1], "membership": SERIES % 2},
            "mia_scores: the rows stand in another order",
        ),
        ({"membership": [1, 0]}, "membership: expected 4 values"),
        ({"membership": [0, 0, 0, 0]}, "both classes are needed, got 4 generated examples only"),
        ({"membership": [1, 1, 1, 1]}, "both classes are needed, got 4 members only"),
        ({"membership": [0, 1, 2, 1]}, "membership: expected only 0 and 1"),
        ({"baseline_scores": []}, "baseline_scores: expected at least 1"),
        ({"baseline_scores": ["a", "b", "c", "d"]}, "baseline_scores: expected real numbers"),
        ({"confidence": 1.0}, "confidence"),
        ({"delta": 1.0}, "delta"),
        ({"gamma": 1.0}, "gamma"),
        ({"known_c": -1.0}, "known_c"),
        ({"search": "best"}, "search: expected one of 'union', 'anytime'"),
        ({"design": "paired"}, "design"),
    ):
        given = {name: [0.0, 1.0, 2.0, 3.0] for name in ("baseline_scores", "mia_scores")}
        refused(message, audit_panoramia, **{**given, "membership": [0, 1, 0, 1], **change})
    refused("m", panoramia_ceiling, 0, 0)
    refused("at most m = 10", panoramia_ceiling, 10, 11)
    refused("whole", panoramia_ceiling, 10, 2.5)
    refused("confidence", panoramia_ceiling, 10, 5, 1.5)
