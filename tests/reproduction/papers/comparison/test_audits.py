"""Every lower bound of the comparison keeps its level; every row says what it supports, needs and
costs.
"""

import io
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from paperlib.bounds.many_runs.gaussian_dp import gaussian_dp_epsilon
from paperlib.reproduction.papers.comparison import audits
from paperlib.reproduction.papers.comparison.audits import BOUNDS, compare_audits
from paperlib.reproduction.papers.comparison.classifiers import (
    DigitsConfig,
    classifiers,
    drawn_digits,
)
from paperlib.reproduction.papers.comparison.language_models import GptConfig, language_models
from paperlib.reproduction.papers.comparison.targets import guarantees, with_budget
from paperlib.reproduction.papers.landing import guide_markdown
from paperlib.training import TrainingConfig
from tests.refusals import refused
from tests.reproduction.validity.coverage import assert_rate_at_most

TOC = (Path(__file__).parents[4] / "book" / "_toc.yml").read_text(encoding="utf-8")
SIZES = {"records": 150, "sets": 1500}


@pytest.fixture(scope="module")
def repeated():
    """Every audit of fresh draws of every known mechanism, over and over."""
    targets = [
        audits.known_mechanisms(audits.MechanismConfig(seed=seed, **SIZES)) for seed in range(10)
    ]
    draws = [audits.compare_audits(one, seed=seed) for seed, one in enumerate(targets)]
    return pd.concat(draws, ignore_index=True)


def wrong(rows, truth):
    return int((rows["epsilon"] > truth + 1e-9).sum()), len(rows)


def test_no_lower_bound_exceeds_the_known_epsilon_too_often_but_one_for_replacement_that_of_removal(
    repeated,
):
    """For every audit, and with no leak alone, where any positive bound is wrong."""
    bounds = repeated[repeated["kind"].isin(audits.BOUNDS)]
    assert bounds["audit"].nunique() == len(audits.AUDITS) - 2
    for _, rows in [*bounds.groupby("audit"), *bounds.groupby(["audit", "target"])]:
        assert_rate_at_most(0.05, *wrong(rows, rows["guarantee"]))
    # The twin that must be caught: the guarantee of the other adjacency, which all ten draws
    # exceed.
    ranks = repeated[(repeated["audit"] == "ranks") & repeated["target"].str.startswith("Laplace")]
    refused(
        "allows",
        assert_rate_at_most,
        0.05,
        *wrong(ranks, ranks["add_remove"]),
        error=AssertionError,
    )
    measured = repeated[repeated["kind"] == audits.MEASURED]
    with pytest.raises(AssertionError, match="allows"):
        assert_rate_at_most(0.05, *wrong(measured, measured["add_remove"]))


def test_most_audits_see_the_leak_and_every_row_says_what_it_supports_and_needs(repeated):
    """The bounds are not valid by showing nothing."""
    leak = repeated[repeated["kind"].isin(audits.BOUNDS) & (repeated["add_remove"] > 0)]
    assert (leak.groupby("audit")["epsilon"].mean() > 0.1).all()
    assert (repeated["seconds"] > 0).all()
    assert repeated[list(audits.ACCESS)].any(axis=1).all()
    lower = repeated["kind"].isin(audits.BOUNDS)
    assert (repeated["high"][lower] == np.inf).all()
    assert (repeated["low"][lower] == repeated["epsilon"][lower]).all()
    assert np.isfinite(repeated[["low", "high"]][~lower]).all(axis=None)
    assert (repeated["low"][~lower] <= repeated["epsilon"][~lower]).all()
    assert repeated["guarantee"][~lower].isna().all()
    words = {audits.ADD_REMOVE: "adding or removing", audits.REPLACEMENT: "replac"}
    for speaks_of, column in (
        (audits.ADD_REMOVE, "add_remove"),
        (audits.REPLACEMENT, "replacement"),
    ):
        rows = repeated[repeated["speaks_of"] == speaks_of]
        assert (rows["guarantee"] == rows[column]).all()
        assert rows["claim"][rows["audit"] != "many runs"].str.contains(words[speaks_of]).all()


def test_gaussian_noise_guarantees_for_replacement_what_two_changed_bits_need():
    target = audits.known_mechanisms(audits.MechanismConfig(mu=0.7, delta=1e-4))[2]
    assert target.add_remove == gaussian_dp_epsilon(0.7, 1e-4)
    assert target.replacement == pytest.approx(gaussian_dp_epsilon(np.hypot(0.7, 0.7), 1e-4))


def test_the_guide_has_every_audit_with_a_page_of_the_book_and_survives_its_csv():
    rows = audits.compare_audits(
        audits.known_mechanisms(audits.MechanismConfig(records=200, sets=60))
    )
    fitted = rows[rows["audit"] == "Epsilon*"].assign(
        audit="PANORAMIA", generator=True, nonmembers=False
    )
    rows = pd.concat([rows, fitted])
    guide, kinds = audits.decision_guide(rows), rows.groupby("audit")["kind"].first()
    assert list(guide) == ["you_have", "use", "page", "you_get", "access", "seconds"]
    assert guide["use"].tolist() == [one.name for one in audits.AUDITS]
    assert (guide[["you_have", "you_get", "access"]].map(len) > 0).all(axis=None)
    assert set(guide.loc[guide["you_have"].duplicated(keep=False), "use"]) == {"game", "Epsilon*"}
    assert [page for page in guide["page"] if f"file: {page}\n" not in TOC] == []
    no_bound = guide["you_get"].str.contains("no bound")
    assert no_bound.tolist() == [kinds[name] == audits.MEASURED for name in guide["use"]]
    lines = guide_markdown(pd.read_csv(io.StringIO(guide.to_csv(index=False)))).splitlines()
    assert len(lines) == 2 + len(audits.AUDITS)
    assert any("{doc}`Epsilon* </papers/epsilon_star>`" in line for line in lines)
    assert {line.count("|") for line in lines} == {5}


DIGITS = DigitsConfig(records=300, epochs=(2, 120), budgets=(1.0, 8.0), private_epochs=4)
GPTS = GptConfig(
    identifiers=60, others=5, alternatives=3, epochs=(1,), budgets=(1.0, 8.0), private_epochs=2
)


@pytest.fixture(scope="module")
def trained():
    return classifiers(DIGITS) + language_models(GPTS)


@pytest.mark.parametrize("budget", [1.0, 8.0])
def test_guarantees_are_those_of_gaussian_noise(budget):
    """Against the closed form of steps without sampling: a replaced record moves the sum twice as
    far.
    """
    config = TrainingConfig(epochs=9, batch_size=1, learning_rate=0.1, clip_norm=1.0)
    training = with_budget(config, 200, budget, 1e-5)
    mu = np.sqrt(9) / training.noise_multiplier
    single, double = guarantees(training, 200, 1e-5)
    assert single == pytest.approx(gaussian_dp_epsilon(mu, 1e-5), rel=1e-3)
    assert double == pytest.approx(gaussian_dp_epsilon(2 * mu, 1e-5), rel=2e-3)
    assert single == pytest.approx(budget, rel=2e-3)
    assert single <= budget
    assert double > 2 * single


def test_every_lower_bound_on_dp_sgd_is_below_the_guarantee_of_its_adjacency(trained):
    private = [target for target in trained if np.isfinite(target.add_remove)]
    assert len(private) == 4
    rows = compare_audits(private)
    bounds = rows[rows["kind"].isin(BOUNDS)]
    assert np.isfinite(bounds["guarantee"]).all()
    assert (bounds["delta"] == DIGITS.delta).all()
    assert (bounds["epsilon"] <= bounds["guarantee"]).all()


def test_over_training_shows_coins_are_those_of_the_seed_and_sets_of_members_alone(trained):
    plain = [target for target in trained if np.isinf(target.add_remove)]
    assert {target.family for target in plain} == {"classifier", "language model"}
    assert all(target.replacement == np.inf for target in plain)
    assert trained[1].scores.auc() > max(trained[0].scores.auc(), 0.55)
    least, most = ((target.sets.argmax(axis=1) == 0).mean() for target in trained[:2])
    assert most > least  # it puts the label it was trained with first
    digits = drawn_digits(DIGITS)
    assert len({target.member.tobytes() for target in [*trained[:4], digits]}) == 1
    assert not np.array_equal(digits.member, drawn_digits(DigitsConfig(records=300, seed=1)).member)
    drawn = digits.member & digits.spoiled[: DIGITS.records]
    assert trained[0].sets.shape == (drawn.sum(), 10)
    assert trained[-1].sets.shape == (GPTS.member.sum(), 1 + GPTS.alternatives)


def test_settings_and_options_out_of_range_are_refused():
    compare = partial(audits.compare_audits, [])
    for call, name, value in (
        (DigitsConfig, "records", 50),
        (DigitsConfig, "noisy_labels", 0.0),
        (GptConfig, "identifiers", 10),
        (compare, "delta", 0.0),
        (compare, "delta", 0.5),
        (compare, "confidence", 1.0),
    ):
        refused(name, call, **{name: value})
