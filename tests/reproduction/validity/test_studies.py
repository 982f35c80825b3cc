"""The validity study itself, and bounds from tossed coins: do they tell sound from unsound?"""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom

from paperlib.bounds import audit_one_run
from paperlib.core import toss_coins
from paperlib.core.intervals import share_interval
from paperlib.reproduction.validity import common_rules as rules
from paperlib.reproduction.validity import mechanisms as known
from paperlib.reproduction.validity.common_rules import rule_cases
from paperlib.reproduction.validity.coverage import Case, ValidityConfig, seen_from, simulate
from paperlib.reproduction.validity.mechanisms import Burst
from paperlib.reproduction.validity.one_run_cases import peeking_epsilon, searched_epsilon
from tests.reproduction.validity.coverage import assert_rate_at_most


def toy(rate, **more):
    return Case(
        "toy", "bound", "mechanism", 1.0, 0.0, lambda rng: (1.0, rng.random() < rate), **more
    )


def test_simulation_tells_sound_from_unsound_boundary_cases_from_others_and_rows_alone():
    frame = simulate([toy(0.04), toy(0.3)], ValidityConfig(trials=400))
    assert list(frame["verdict"]) == ["consistent with it", "above the nominal level"]
    assert (frame["low"] <= frame["rate"]).all()
    assert (frame["rate"] <= frame["high"]).all()
    assert list(simulate([toy(0.5, share=0.1)], ValidityConfig(trials=50))["trials"]) == [5]
    config = ValidityConfig(trials=30, examples=60)
    cases = rule_cases(config)
    alone, all_rows = simulate([cases[3]], config), simulate(cases[:5], config)
    assert alone.iloc[0].equals(all_rows.iloc[3])
    draw = lambda rng: (float(rng.random()), False)  # noqa: E731
    cases = [Case("toy", "uniform", f"{epsilon:g}", epsilon, 0.0, draw) for epsilon in (1.0, 3.0)]
    frame = simulate(cases, ValidityConfig(trials=4_000))
    assert frame["slack"].tolist() == pytest.approx([0.05, 2.05], abs=0.02)
    assert frame["boundary"].tolist() == [True, False]


def test_sparing_response_answers_by_randomized_response_and_close_generators_are_exactly_c_close():
    values, bits = known.sparing_response(1.0, 0.5).draw(np.random.default_rng(0), 200_000).pooled()
    answered = np.abs(values) > 0.7
    assert answered.mean() == pytest.approx(0.5, abs=0.01)
    right = (values > 0) == bits
    assert right[answered].mean() == pytest.approx(expit(1.0), abs=0.01)
    assert right[~answered].mean() == pytest.approx(0.5, abs=0.01)
    for c in (
        0.0,
        np.log(2),
        2.0,
    ):  # the share of members at saturated density ratio is e^c/(1+e^c)
        ratio, _, flags = known.close_generator(np.random.default_rng(0), 400_000, c, 1.0)
        assert flags[ratio >= c - 1e-9].mean() == pytest.approx(expit(c), abs=0.005)
        assert ratio.max() <= c + 2e-6


def test_the_hull_is_the_least_concave_majorant():
    rng = np.random.default_rng(2)
    for _ in range(20):
        x, y = np.cumsum(rng.integers(0, 3, (2, 30)), axis=1).astype(float)
        corners = rules.upper_hull(x, y)
        assert (np.interp(x, x[corners], y[corners]) >= y - 1e-9).all()
        slopes = np.diff(y[corners]) / np.diff(x[corners])
        assert (np.diff(slopes) <= 1e-9).all()


@pytest.mark.parametrize("trials", [62, 75, 1_000, 2_000])
def test_rates_from_seen_from_on_are_flagged(trials):
    """Exact: the chance of a flag at that rate is nine in ten, a little below it less."""
    rate = seen_from(trials, 0.05, 0.999)
    counts = np.arange(trials + 1)
    flagged = np.array([share_interval(k, trials, confidence=0.999)[0] > 0.05 for k in counts])
    assert binom.pmf(counts, trials, rate)[flagged].sum() == pytest.approx(0.9, abs=1e-6)
    assert binom.pmf(counts, trials, 0.98 * rate)[flagged].sum() < 0.9


@pytest.mark.parametrize(
    "options",
    [{}, {"guess": "members", "thresholds": "anytime"}, {"guess": "both", "thresholds": "dyadic"}],
)
def test_the_bound_alone_is_that_of_the_audit(options):
    for delta in (0.0, 1e-3):
        for mechanism in (known.randomized_response(2.0), known.laplace(1.0)):
            scores, given = (
                mechanism.draw(np.random.default_rng(5), 200),
                {"delta": delta, **options},
            )
            expected = audit_one_run(scores, confidence=0.9, **given).epsilon
            assert searched_epsilon(scores, confidence=0.9, **given) == expected


def test_membership_is_decided_by_fair_coins_and_implausible_ones_are_tossed_again():
    """Thirty heads in thirty tosses are refused by every audit."""
    for mechanism in (known.no_leakage(), known.laplace(1.0), Burst(1.0, 2.0, 9, 8).mechanism(50)):
        scores = mechanism.draw(np.random.default_rng(1), 10_000)
        assert abs(scores.member.size - 5_000) < 250
    tosses = iter([np.ones(30, dtype=int), np.arange(30) % 2])
    rng = SimpleNamespace(integers=lambda low, high, m: next(tosses))
    assert known.fair_bits(rng, 30).sum() == 15


def test_without_a_peek_it_is_the_default_bound_and_all_guesses_known_are_all_right():
    rng = np.random.default_rng(0)
    for mechanism in (known.no_leakage(), known.randomized_response(1.0), known.laplace(2.0)):
        for _ in range(3):
            scores = mechanism.draw(rng, 300)
            bound = peeking_epsilon(scores, confidence=0.95, share=0.0, rng=rng)
            assert bound == pytest.approx(audit_one_run(scores).epsilon, abs=1e-8)
            assert peeking_epsilon(scores, confidence=0.95, share=1.0, rng=rng) > 3


EPSILON, TRIALS, RECORDS = 1.0, 150, 120


def failures(fraction, choose):
    """Number of trials whose bound is above epsilon; ``choose`` says which scores are dropped
    before.
    """
    count = 0
    for seed in range(TRIALS):
        coins, rng = (
            toss_coins(RECORDS, seed=seed, fraction=fraction),
            np.random.default_rng([seed, 1]),
        )
        kept = rng.random(coins.included.size) <= expit(EPSILON)  # the chance that epsilon allows
        shown = np.where(kept, coins.included, ~coins.included)
        scores = shown + 0.1 * rng.random(shown.size)
        keep = choose(coins.included, scores)
        order = rng.permutation(np.flatnonzero(keep))
        ids = np.array(coins.ids)[order]
        if not keep.all():
            with pytest.raises(
                ValueError, match="an audit that chooses among its coins is not valid"
            ):
                coins.join(ids, scores[order])
            coins = type(coins)(
                **{**vars(coins), "ids": tuple(ids), "included": coins.included[order]}
            )
        joined = coins.scores(dict(zip(ids, scores[order], strict=True)), kind="scores")
        count += audit_one_run(joined, seed=seed).epsilon > EPSILON
    return count


@pytest.mark.parametrize("fraction", [1.0, 0.5])
def test_the_bound_from_tossed_coins_fails_no_more_often_than_it_says(fraction):
    assert_rate_at_most(0.05, failures(fraction, lambda included, scores: scores > -1), TRIALS)


def test_the_choice_of_coins_that_a_join_refuses_would_break_the_bound():
    def flattering(included, scores):  # half of what the scores show wrongly is left out
        wrong = np.flatnonzero((scores > 0.5) != included)
        return ~np.isin(np.arange(included.size), wrong[::2])

    with pytest.raises(AssertionError, match=r"a rate of 0\.05 allows"):
        assert_rate_at_most(0.05, failures(1.0, flattering), TRIALS)
