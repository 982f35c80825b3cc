"""Output-set experiments: exact epsilons, shapes against brute force, evidence and claims by
intervals.
"""

import itertools
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.special import expit, logit
from scipy.stats import binom, norm

from paperlib.bounds import audit_output_set
from paperlib.bounds.one_run.audit import one_run_epsilon
from paperlib.bounds.output_sets.choices import SelectionRule, selection_of
from paperlib.bounds.output_sets.densities import density_pair
from paperlib.core import MembershipScores
from paperlib.reproduction.papers.output_sets import claims, shapes
from paperlib.reproduction.papers.output_sets import gain as gain_study
from paperlib.reproduction.papers.output_sets.claims import (
    delta_evidence,
    gain_evidence,
    shapes_evidence,
)
from paperlib.reproduction.papers.output_sets.gain import RIVALS, GainConfig, gain
from paperlib.reproduction.papers.verdict import Estimate
from tests.refusals import refused
from tests.reproduction.validity.coverage import assert_rate_at_most

PAIRS = {pair.name: pair for pair in shapes.pairs()}


@pytest.mark.parametrize(
    ("mechanism", "scale"), [("laplace", 1.0), ("gaussian", 1.0), ("gaussian", 3.0)]
)
@pytest.mark.parametrize("delta", [1e-4, 1e-2])
def test_exact_epsilon_inverts_the_hockey_stick_divergence(mechanism, scale, delta):
    p, q = gain_study.mixtures(mechanism, scale)
    epsilon = gain_study.exact_epsilon(mechanism, scale, delta)

    def divergence(a, b):
        return sum(
            quad(lambda x: max(float(a.pdf(x) - math.exp(epsilon) * b.pdf(x)), 0.0), low, low + 1)[
                0
            ]
            for low in range(-25, 25)
        )

    assert max(divergence(p, q), divergence(q, p)) == pytest.approx(delta, rel=1e-3)


def test_laplace_epsilons_are_the_settled_ones_and_the_proposition_s_solve_its_equation():
    scales = [b / 2 for b in (0.25, 0.5, 1, 2, 4, 8)]
    assert [gain_study.exact_epsilon("laplace", s) for s in scales] == [8, 4, 2, 1, 0.5, 0.25]
    assert [gain_study.proposition_epsilon("laplace", s) for s in scales] == [
        24,
        12,
        6,
        3,
        1.5,
        0.75,
    ]
    assert gain_study.exact_epsilon("gaussian", 1.0) == math.inf
    scale, delta = 2.0, 1e-5
    ratio = 6 / (math.sqrt(5) / 2 * 4 / math.sqrt(5) * scale)
    e = gain_study.proposition_epsilon("gaussian", scale, delta)
    value = norm.cdf(ratio / 2 - e / ratio) - math.exp(e) * norm.cdf(-ratio / 2 - e / ratio)
    assert value == pytest.approx(delta, rel=1e-6)


def test_best_top_bottom_equals_a_search_with_distribution_functions():
    pair = PAIRS["Gaussian mixtures"]
    low, high, objective = shapes.best_top_bottom(pair, 400)
    x = np.linspace(-14, 14, 56_001)
    likelier = np.maximum(pair.p.pdf(x), pair.q.pdf(x)) * (x[1] - x[0])

    def value(a, b):
        mass = sum(norm.cdf(a, mean) + norm.sf(b, mean) for mean in (-2, 1, -1, 0)) / 2
        right = likelier[(x < a) | (x > b)].sum()
        y = right / mass - math.sqrt(2 * math.log(20) / (400 * mass))
        return math.log(y / (1 - y))

    assert value(low, high) == pytest.approx(objective, abs=2e-3)
    assert all(
        value(low + a, high + b) <= objective + 2e-3 for a in (-0.2, 0, 0.2) for b in (-0.2, 0, 0.2)
    )


@pytest.fixture(scope="module")
def table():
    return shapes.shapes(draws=2)


def test_shapes_say_what_is_seen(table):
    assert list(table.intervals) == [4, 3, 3, 1, 3, 1]
    assert (table.objective >= table.top_bottom_objective - 1e-4).all()
    assert list(table.asymmetric) == [False, False, True, False, True, False]
    assert shapes.is_asymmetric(shapes.optimal_set(PAIRS["non-central chi-squared"], 1000))
    assert shapes.format_set(((-math.inf, -2.1358), (1.0, math.inf))) == "(−∞, −2.136) ∪ (1, ∞)"


def test_pairs_have_the_printed_parameters_and_membership_is_decided_by_fair_coins():
    drawn = [
        gain_study.draw_scores(np.random.default_rng(s), "laplace", 1.0, 400) for s in range(40)
    ]
    counts = [one.member.size for one in drawn]
    assert len(set(counts)) > 10
    assert np.mean(counts) == pytest.approx(200, abs=10)
    pair = PAIRS["Gaussian mixtures"]
    assert pair.figure == "figure01"
    expected = 0.5 * norm.pdf(0.3 + 2) + 0.5 * norm.pdf(0.3 - 1)
    assert pair.p.pdf(np.array([0.3]))[0] == pytest.approx(expected)
    draws = pair.p.draw(np.random.default_rng(0), 20_000)
    assert draws.size == 20_000
    assert draws.mean() == pytest.approx(-0.5, abs=0.1)


def best_of_every_level(scores):
    """Levels at the scores themselves, every one of them tried, and the best bound on these
    scores.
    """
    pair = density_pair(scores.member, scores.nonmember)
    parts = (scores.member, scores.nonmember)
    p, q = (
        [np.interp(part, pair.grid, one) for part in parts] for one in (pair.member, pair.nonmember)
    )
    sound = (pair.member > 0.01) & (pair.nonmember > 0.01)
    ratio = np.maximum(pair.member, 1e-9) / np.maximum(pair.nonmember, 1e-9)
    ratio = np.where(sound, np.abs(np.log(ratio)), 0)
    right = np.concatenate([p[0] >= q[0], p[1] < q[1]])
    levels = np.interp(np.concatenate(parts), pair.grid, ratio)
    chosen = levels >= levels[:, None]
    return one_run_epsilon((right & chosen).sum(axis=1), chosen.sum(axis=1)).max()


@pytest.mark.parametrize(("mechanism", "scale"), [("laplace", 0.25), ("gaussian", 0.5)])
def test_the_printed_set_is_algorithm_1(mechanism, scale):
    for seed in range(5):
        scores = gain_study.draw_scores(np.random.default_rng(seed), mechanism, scale, 600)
        chosen = selection_of(
            scores, SelectionRule(error_divisor=1.0), total=600, delta=0.0, confidence=0.95
        )
        chosen_set = gain_study.printed_set(chosen)
        assert chosen_set.objective == pytest.approx(best_of_every_level(scores), abs=0.05)
        densities = density_pair(scores.member, scores.nonmember)
        inside = chosen_set.contains(densities.grid)
        assert chosen_set.tau > 0
        assert np.minimum(densities.member, densities.nonmember)[inside].min() > 0.009
        inside = gain_study.printed_set(chosen, "both_small").contains(densities.grid)
        assert np.maximum(densities.member, densities.nonmember)[inside].min() > 0.009
        assert gain_study.printed_set(chosen, "no_threshold").contains(scores.member.max() + 1)


def test_gain_is_paired_and_repeatable():
    config = gain_study.GainConfig(scales={"laplace": (0.25,)}, sizes=(100,), trials=3)
    frame = gain_study.gain(config)
    pd.testing.assert_frame_equal(frame, gain_study.gain(config))
    both = [
        one.query("method == 'printed'")
        for one in (frame, gain_study.gain(replace(config, seed=1)))
    ]
    assert not set.intersection(
        *(set(one["selection_epsilon"]) for one in both)
    )  # nor share seeds a draw
    table = gain_study.paired_gain(frame, "printed").set_index("rival")
    first = frame.pivot(index="trial", columns="method", values="epsilon")
    difference = first.printed - first.whole
    assert table.gain["whole"] == pytest.approx(difference.mean())
    half = 4.302653 * difference.std(ddof=1) / math.sqrt(3)
    assert table.high["whole"] - table.gain["whole"] == pytest.approx(half)
    counts = gain_study.gain_by_rival(frame, "printed")
    assert list(counts.rival) == list(gain_study.RIVALS)
    assert (counts.settings == 1).all()
    means = gain_study.summary(frame).set_index("method")
    assert means.epsilon["whole"] == pytest.approx(first.whole.mean())
    assert means.epsilon_sd["whole"] == pytest.approx(first.whole.std(ddof=1))
    assert (means.trials == 3).all()


def test_a_bound_of_the_table_is_that_of_the_audit():
    config = gain_study.GainConfig(scales={"gaussian": (0.5,)}, sizes=(200,), trials=1)
    frame = gain_study.gain(config).set_index("method")
    rng = np.random.default_rng([0, 1, 500_000, 200, 0])
    first, second = (gain_study.draw_scores(rng, "gaussian", 0.5, 400) for _ in range(2))
    audit = audit_output_set(first, second)
    assert frame.epsilon["cautious"] == audit.epsilon
    assert frame.selection_epsilon["cautious"] == audit.selection_epsilon
    plain = SelectionRule(error_divisor=1.0)
    top_bottom = audit_output_set(first, second, rule=plain, method="top_bottom")
    assert frame.epsilon["top_bottom"] == top_bottom.epsilon
    approximate = gain_study.over_delta(config, [1e-4]).set_index("method")
    assert set(approximate.index) == {"printed", "optimal", "top_bottom", "whole"}
    judged, row = (
        audit_output_set(first, second, rule=plain, delta=1e-4),
        approximate.loc["optimal"],
    )
    assert (row.correct, row.guesses) == (judged.correct, judged.guesses)
    assert (
        row.epsilon <= judged.epsilon
    )  # the term of delta is the published one, that of the audit is sharp
    assert (approximate.exact_epsilon == gain_study.exact_epsilon("gaussian", 0.5, 1e-4)).all()


def test_ratios_of_deviations_have_the_jackknife_interval():
    rng = np.random.default_rng(0)
    values = {"printed": rng.normal(0, 2, 400)} | dict.fromkeys(
        gain_study.RIVALS, rng.normal(0, 1, 400)
    )
    frame = pd.DataFrame(values | {"whole": 0.0}).melt(var_name="method", value_name="epsilon")
    frame = frame.assign(mechanism="laplace", scale=1.0, m=100, trial=frame.index % 400)
    pairs = gain_study.paired(frame, "printed")
    ends = {
        about["rival"]: gain_study.interval(gain_study.jackknifed(*both)) for about, *both in pairs
    }
    assert ends["top_bottom"]["low"] < math.log(2) < ends["top_bottom"]["high"]
    assert ends["top_bottom"]["high"] - ends["top_bottom"]["low"] < 0.4
    assert math.isnan(ends["whole"]["gain"])
    assert gain_study.interval(np.array([1.0]))["high"] == math.inf


def test_evidence_on_shapes_is_that_of_the_table(table):
    table = table.assign(centre_missed_share=0.75)
    judged = shapes_evidence(table, 4)
    first, fourth, fifth = (one.values for one in judged)
    assert (first["Laplace intervals"], first["Gaussian intervals"]) == (Estimate(4), Estimate(3))
    assert first["centre missed"]["Gaussian mixtures"] == [1, 1, 1, 0]
    assert fourth["several intervals"] == {"Cauchy": Estimate(3), "F": Estimate(1)}
    assert fourth["asymmetric"] == {"Cauchy": Estimate(1.0), "F": Estimate(0.0)}
    assert list(fifth["asymmetric"]) == ["logistic", "non-central chi-squared"]
    assert "covers the centre" in judged[0].note
    assert "a gap appears from about m = 306 on" in judged[1].note
    assert shapes_evidence(table, 0)[0].values["centre missed"]["Laplace mixtures"] == []
    other = shapes_evidence(table.assign(centre_missed=True, intervals=2), 4)
    assert "leaves the centre out" in other[0].note
    assert not other[1].note


def test_bounds_over_delta_are_paired_by_trial():
    rows = [
        (1e-6, 0, 2.0),
        (1e-6, 1, 1.8),
        (1e-4, 0, 1.5),
        (1e-4, 1, 1.9),
        (0.0, 0, 3.0),
        (0.0, 1, 3.0),
    ]
    one = pd.DataFrame(rows, columns=["delta", "trial", "epsilon"]).assign(mechanism="gaussian")
    one["exact_epsilon"] = np.where(one["delta"] > 0, 2.5, math.inf)
    frame = pd.concat([one.assign(method=method) for method in ("printed", "optimal", "whole")])
    values = delta_evidence(frame).values
    assert len(values["no step rises"]) == 4
    steps = values["no step rises"]["gaussian, Algorithm 1 as printed, delta 1e-06 to 0.0001"]
    assert steps == pytest.approx([0.5, -0.1])
    falls = values["falls with delta"]["gaussian, Algorithm 1 as printed"]
    assert falls == pytest.approx([1.5, 1.1])  # from the smallest delta, 0, to the largest
    assert values["below theory"]["gaussian, whole line, delta 0.0001"] == pytest.approx([1.0, 0.6])
    assert len(values["below theory"]) == 4  # the exact value at delta 0 is infinite


def test_each_reading_of_the_printed_algorithm_is_judged_against_each_rival():
    bounds = {
        "printed": 2.0,
        "both_small": 3.0,
        "no_threshold": 0.0,
        "optimal": 9.0,
        "cautious": 9.0,
    } | dict(zip(gain_study.RIVALS, (1.5, 1.0, 0.5), strict=True))
    frame = pd.DataFrame(
        {"mechanism": "laplace", "scale": 1.0, "m": m, "trial": trial, "method": method}
        | {"epsilon": value + (method == "printed") * (trial + 10 * (m == 100) + 5 * (m == 200))}
        for m in (100, 200, 400)
        for trial in (0, 1)
        for method, value in bounds.items()
    )
    judged = gain_evidence(frame[frame.m == 100], frame)
    assert (
        [one.reading for one in judged]
        == [*judged[0].rule.readings]
        == [*gain_study.READINGS.values()]
    )
    assert judged[1].values["optimal highest"]["laplace, scale 1, m = 200, whole line"] == [
        2.5,
        2.5,
    ]
    values = judged[0].values
    assert len(values["optimal highest"]) == 3 * len(gain_study.RIVALS)
    assert values["optimal highest"]["laplace, scale 1, m = 200, whole line"] == [6.5, 7.5]
    assert values["gain largest at small m"] == {"laplace": [10.0, 10.0]}
    assert gain_evidence(frame, frame[frame.m == 100])[0].values["gain largest at small m"] == {
        "laplace": []
    }


def test_one_set_misleads_the_proposition_with_the_fourth_power_of_half_of_beta():
    equation_3 = logit(0.9 - np.sqrt(2 * np.log(40) / 500))
    assert claims.proposition_41(450, 500) == pytest.approx(equation_3)
    assert claims.proposition_41(0, 0) == 0
    for guesses, epsilon in itertools.product([1, 7, 60, 400, 5_000], [0.0, 0.5, 2.0, 5.0]):
        right = np.arange(guesses + 1)
        above = claims.proposition_41(right, np.full(guesses + 1, guesses)) > epsilon + 1e-12
        assert binom.pmf(right, guesses, expit(epsilon))[above].sum() <= 0.025**4 * (1 + 1e-9)


def test_the_search_is_that_of_every_pair_and_its_error_pays_for_those_of_504_scores():
    rng = np.random.default_rng(1)
    member = rng.random(40) < np.linspace(1.0, 0.0, 40)
    scores = MembershipScores.from_labels(-np.arange(40.0), member)
    pairs = [(top, low) for top in range(41) for low in range(41 - top) if top + low]
    right = [member[:top].sum() + (~member[40 - low :]).sum() for top, low in pairs]
    slow = claims.proposition_41(np.array(right), np.array(pairs).sum(axis=1)).max()
    assert claims.search_whole(scores) == pytest.approx(slow)
    assert 505 * 506 // 2 <= claims.most_sets() < 506 * 507 // 2
    assert claims.most_sets() * 0.025**4 <= 0.05 * (1 + 1e-9)
    rng = np.random.default_rng(0)
    refused(
        "505", claims.search_whole, MembershipScores(rng.normal(size=250), rng.normal(size=255))
    )
    refused("ties", claims.search_whole, MembershipScores([1.0, 2.0], [1.0, 0.0]))


def test_a_search_without_a_half_keeps_its_error_and_a_test_of_one_set_does_not():
    """Without signal every bound above 0 is an error; the exact test of one set, searched, is
    broken.
    """
    rng = np.random.default_rng(2)
    flags = rng.random((200, 60)) < 0.5
    bounds = [
        claims.search_whole(MembershipScores.from_labels(-np.arange(60.0), row)) for row in flags
    ]
    assert_rate_at_most(0.05, int((np.array(bounds) > 0).sum()), len(flags))
    guesses = np.add.outer(np.arange(61), np.arange(61)).clip(1)

    def narrow(row):
        right = np.add.outer(np.append(0, np.cumsum(row)), np.append(0, np.cumsum(~row[::-1])))
        return np.where(
            guesses <= 60, one_run_epsilon(np.minimum(right, guesses), guesses), 0.0
        ).max()

    broken = sum(narrow(row) > 0 for row in flags[:60])
    refused("allows", assert_rate_at_most, 0.05, broken, 60, error=AssertionError)


def test_audits_share_the_scores_of_the_gain():
    config = GainConfig(scales={"laplace": (0.25,), "gaussian": (0.5,)}, sizes=(100,), trials=3)
    rows = claims.proposition_rows(config)
    printed = gain(config).query("method == 'printed'")["epsilon"]
    np.testing.assert_allclose(rows["exact_test"], printed)
    assert (rows["proposition"] <= rows["exact_test"]).all()
    means = claims.proposition_means(rows)
    assert means["scale"].tolist() == [0.25, 0.5]
    np.testing.assert_allclose(
        means[[*claims.AUDITS]], rows.groupby("scale")[[*claims.AUDITS]].mean()
    )
    np.testing.assert_allclose(means["cost"], means["exact_test"] - means["proposition"])
    assert (means["cost_low"] <= means["cost"]).all()


def frames(laplace, gaussian, spread):
    """Bounds of 30 trials: methods at given means with given deviations, printed first."""
    noise = np.random.default_rng(3).normal(size=(2, 30, 4)) * spread
    both = [
        pd.DataFrame(means + some, columns=["printed", *RIVALS]).melt(
            var_name="method", value_name="epsilon"
        )
        for means, some in zip((laplace, gaussian), noise, strict=True)
    ]
    frame = pd.concat(both, keys=["laplace", "gaussian"], names=["mechanism", None]).reset_index(
        "mechanism"
    )
    return frame.assign(scale=1.0, m=100, trial=frame.index % 30)


def test_claims_of_section_52_hold_fail_or_stay_open():
    equal, ahead = (1.0,) * 4, (1.2, 1.0, 1.0, 1.0)
    for outcome, frame in {
        "holds": frames(equal, ahead, (0.01, 0.1, 0.1, 0.1)),
        "fails": frames((0.5, 1.0, 1.0, 1.0), (0.8, 1.0, 1.0, 1.0), (0.1, 0.01, 0.01, 0.01)),
        "undecided": frames((0.9, 1.0, 1.0, 1.0), equal, (0.1, 0.1, 0.1, 0.1)),
    }.items():
        table = claims.section_52(frame, frame, 1.0)
        assert table["outcome"].tolist() == [outcome] * 3
        assert table["comparisons"].tolist() == [4, 3, 6]
