"""Theorem 2 over resampled training sets: who sees which records, and that the comparison can
fail.
"""

from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_rel

from paperlib.reproduction.papers.epsilon_star import landscape, resampled_models
from paperlib.reproduction.papers.epsilon_star.landscape import (
    summary_of_theorem_2,
    theorem_2_resampled,
)
from paperlib.reproduction.papers.epsilon_star.resampled_models import (
    ResampledConfig,
    resampled_losses,
)

TINY = ResampledConfig(
    records=120, population=80, models=2, repetitions=2, epochs=(2, 3), private_epochs=1, mixing=1.0
)


def test_every_model_has_its_own_records_and_the_common_population_and_is_read_again(
    tmp_path, monkeypatch
):
    train = Mock(wraps=resampled_models.train_models)
    monkeypatch.setattr(resampled_models, "train_models", train)
    losses = resampled_losses(TINY, folder=tmp_path)
    trainings, data = zip(*(one.args for one in train.mock_calls), strict=True)
    assert len(data) == len({one.train_x.tobytes() for one in data}) == TINY.sets == 8
    assert len({one.test_x.tobytes() for one in data}) == 1
    seeds = [{one.seed for one in some} for some in trainings]
    assert sorted(seeds, key=min) == [{seed} for seed in range(8)]
    assert list(losses) == ["no DP, 2 epochs", "no DP, 3 epochs", "DP 10, each record"]
    for pairs in losses.values():
        assert [(len(train), len(population)) for train, population in pairs] == [(120, 80)] * 8
    other = theorem_2_resampled(replace(TINY, seed=1), folder=tmp_path)
    monkeypatch.setattr(resampled_models, "train_models", None)
    first = theorem_2_resampled(TINY, folder=tmp_path)
    assert np.isfinite(first[["left", "right", "one_model"]]).all(axis=None)
    assert (first["right"] >= first["one_model"] - 1e-12).all()
    assert not np.isclose(other["left"], first["left"]).any()


def made_up(monkeypatch, first, second):
    """Losses of models whose first half leaks by one shift and whose second half by another."""
    rng = np.random.default_rng(0)
    config = ResampledConfig(models=4, repetitions=6)
    shifts = ([first] * 4 + [second] * 4) * 6
    pairs = [(rng.normal(-shift, 1, 500), rng.normal(0, 1, 2_000)) for shift in shifts]
    monkeypatch.setattr(landscape, "resampled_losses", lambda *_, **__: {"made up": pairs})
    return summary_of_theorem_2(theorem_2_resampled(config)).iloc[0]


def test_each_side_knows_its_own_half_alone_and_the_interval_is_that_of_a_paired_t_test(
    monkeypatch,
):
    broken = made_up(monkeypatch, 1.5, 0.3)
    assert broken["right_below_left"] == 1
    assert broken["high"] < 0
    assert broken["left"] > broken["right"] + 0.5
    sound = made_up(monkeypatch, 0.3, 1.5)
    assert sound["right_below_left"] == 0
    assert sound["low"] > 0
    rng = np.random.default_rng(1)
    sides = pd.DataFrame(rng.normal(size=(9, 3)), columns=["left", "right", "one_model"])
    row = summary_of_theorem_2(sides.assign(strategy="one"), confidence=0.9).iloc[0]
    for name, ends in (("right", ("low", "high")), ("one_model", ("one_low", "one_high"))):
        expected = ttest_rel(sides[name], sides["left"]).confidence_interval(0.9)
        assert tuple(row[list(ends)]) == pytest.approx(tuple(expected))


@pytest.mark.parametrize("wrong", [{"records": 1}, {"models": 0}, {"repetitions": 1}, {"seed": -1}])
def test_options_out_of_range_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        ResampledConfig(**wrong)
