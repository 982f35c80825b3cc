"""Trained targets: coins, DP-SGD's guarantee for both adjacencies, and bounds below it."""

import numpy as np
import pytest

from paperlib.bounds import gaussian_dp_epsilon
from paperlib.papers.comparison.audits import BOUNDS, compare_audits
from paperlib.papers.comparison.classifiers import DigitsConfig, classifiers, drawn_digits
from paperlib.papers.comparison.language_models import GptConfig, language_models
from paperlib.papers.comparison.targets import guarantees, with_budget
from paperlib.training import TrainingConfig

DIGITS = DigitsConfig(records=300, epochs=(2, 120), budgets=(1.0, 8.0), private_epochs=4)
GPTS = GptConfig(identifiers=60, others=5, alternatives=3, epochs=(1,), budgets=(1.0, 8.0), private_epochs=2)


@pytest.fixture(scope="module")
def trained():
    return classifiers(DIGITS) + language_models(GPTS)


@pytest.mark.parametrize("budget", [1.0, 8.0])
def test_guarantees_are_those_of_gaussian_noise(budget):
    """Against the closed form of steps without sampling: a replaced record moves the sum twice as far."""
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


def test_over_training_shows_and_guarantees_nothing(trained):
    plain = [target for target in trained if np.isinf(target.add_remove)]
    assert {target.family for target in plain} == {"classifier", "language model"}
    assert all(target.replacement == np.inf for target in plain)
    assert trained[1].scores.auc() > max(trained[0].scores.auc(), 0.55)
    least, most = ((target.sets.argmax(axis=1) == 0).mean() for target in trained[:2])
    assert most > least  # it puts the label it was trained with first


def test_coins_are_those_of_the_seed_and_sets_are_of_members_alone(trained):
    digits = drawn_digits(DIGITS)
    assert len({target.member.tobytes() for target in [*trained[:4], digits]}) == 1
    assert not np.array_equal(digits.member, drawn_digits(DigitsConfig(records=300, seed=1)).member)
    drawn = digits.member & digits.spoiled[: DIGITS.records]
    assert trained[0].sets.shape == (drawn.sum(), 10)
    assert trained[-1].sets.shape == (GPTS.member.sum(), 1 + GPTS.alternatives)


@pytest.mark.parametrize(
    ("config", "options", "name"),
    [
        (DigitsConfig, {"records": 50}, "records"),
        (DigitsConfig, {"noisy_labels": 0.0}, "noisy_labels"),
        (GptConfig, {"identifiers": 10}, "identifiers"),
    ],
)
def test_settings_out_of_range_are_refused(config, options, name):
    with pytest.raises(ValueError, match=name):
        config(**options)
