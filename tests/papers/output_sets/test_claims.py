"""Proposition 4.1 keeps its error exactly, searched or not, a narrower one does not; claims by intervals."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit
from scipy.stats import binom

from paperlib.bounds.one_run.audit import one_run_epsilon
from paperlib.core import MembershipScores
from paperlib.papers.output_sets import claims
from paperlib.papers.output_sets.gain import RIVALS, GainConfig, gain
from tests.refusals import refused
from tests.validity.coverage import assert_rate_at_most


def test_one_set_misleads_the_proposition_with_the_fourth_power_of_half_of_beta():
    assert claims.proposition_41(450, 500) == pytest.approx(
        logit(0.9 - np.sqrt(2 * np.log(40) / 500))
    )  # equation 3
    assert claims.proposition_41(0, 0) == 0
    for guesses, epsilon in itertools.product([1, 7, 60, 400, 5_000], [0.0, 0.5, 2.0, 5.0]):
        right = np.arange(guesses + 1)
        above = claims.proposition_41(right, np.full(guesses + 1, guesses)) > epsilon + 1e-12
        assert binom.pmf(right, guesses, expit(epsilon))[above].sum() <= 0.025**4 * (1 + 1e-9)


def every_pair(member, value):
    """The best value over all tops and bottoms of membership flags in falling order, slowly."""
    n = member.size
    pairs = [(top, low) for top in range(n + 1) for low in range(n + 1 - top) if top + low]
    return max(value(member[:top].sum() + (~member[n - low :]).sum(), top + low) for top, low in pairs)


def test_the_search_is_that_of_every_pair_and_its_error_pays_for_those_of_504_scores():
    rng = np.random.default_rng(1)
    member = rng.random(40) < np.linspace(1.0, 0.0, 40)
    scores = MembershipScores.from_labels(-np.arange(40.0), member)
    slow = every_pair(member, lambda right, guesses: float(claims.proposition_41(right, guesses)))
    assert claims.search_whole(scores) == pytest.approx(slow)
    assert 505 * 506 // 2 <= claims.most_sets() < 506 * 507 // 2
    assert claims.most_sets() * 0.025**4 <= 0.05 * (1 + 1e-9)
    rng = np.random.default_rng(0)
    refused("505", claims.search_whole, MembershipScores(rng.normal(size=250), rng.normal(size=255)))
    refused("ties", claims.search_whole, MembershipScores([1.0, 2.0], [1.0, 0.0]))


def test_a_search_without_a_half_keeps_its_error_and_a_test_of_one_set_does_not():
    """Without signal every bound above 0 is an error; the exact test of one set, searched, is broken."""
    rng = np.random.default_rng(2)
    flags = rng.random((200, 60)) < 0.5
    bounds = [claims.search_whole(MembershipScores.from_labels(-np.arange(60.0), row)) for row in flags]
    assert_rate_at_most(0.05, int((np.array(bounds) > 0).sum()), len(flags))
    guesses = np.add.outer(np.arange(61), np.arange(61)).clip(1)

    def narrow(row):
        right = np.add.outer(np.append(0, np.cumsum(row)), np.append(0, np.cumsum(~row[::-1])))
        return np.where(guesses <= 60, one_run_epsilon(np.minimum(right, guesses), guesses), 0.0).max()

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
    np.testing.assert_allclose(means[[*claims.AUDITS]], rows.groupby("scale")[[*claims.AUDITS]].mean())
    np.testing.assert_allclose(means["cost"], means["exact_test"] - means["proposition"])
    assert (means["cost_low"] <= means["cost"]).all()


def frames(laplace, gaussian, spread):
    """Bounds of 30 trials: methods at given means with given deviations, printed first."""
    noise = np.random.default_rng(3).normal(size=(2, 30, 4)) * spread
    both = [
        pd.DataFrame(means + some, columns=["printed", *RIVALS]).melt(var_name="method", value_name="epsilon")
        for means, some in zip((laplace, gaussian), noise, strict=True)
    ]
    frame = pd.concat(both, keys=["laplace", "gaussian"], names=["mechanism", None]).reset_index("mechanism")
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
