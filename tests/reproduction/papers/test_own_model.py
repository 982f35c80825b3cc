"""The demonstration model leaks because it is trained long, not because the data give members
away.
"""

import numpy as np
import torch
from sklearn.datasets import load_digits

from paperlib.bounds import audit_one_run
from paperlib.reproduction.papers.own_model import OwnModelConfig, audited_digits, train_and_score
from tests.refusals import refused


def test_labels_are_spoiled_for_members_and_nonmembers_alike():
    """Rates differ by less than 5 standard errors of their difference (chance below 1e-6)."""
    pixels, labels, member = audited_digits(OwnModelConfig(examples=1797, noisy_labels=0.5))
    images, digit = load_digits(return_X_y=True)
    keys = [image.tobytes() for image in (images / 16).astype(np.float32)]
    truth = dict(zip(keys, digit, strict=True))
    wrong = np.array([truth[p.tobytes()] != y for p, y in zip(pixels, labels, strict=True)])
    rates = wrong[member].mean(), wrong[~member].mean()
    error = np.sqrt(0.25 * (1 / member.sum() + 1 / (~member).sum()))
    assert abs(rates[0] - rates[1]) < 5 * error
    assert abs(wrong.mean() - 0.45) < 5 * np.sqrt(0.25 / wrong.size)


def test_the_leak_appears_with_training_which_is_the_same_each_time_and_leaves_the_global_seed():
    scored = train_and_score(OwnModelConfig(epochs=150), checkpoints=(1,))
    assert sorted(scored) == [1, 150]
    assert scored[150].auc() - scored[1].auc() > 0.05
    assert audit_one_run(scored[1]).epsilon < audit_one_run(scored[150]).epsilon
    config = OwnModelConfig(examples=60, epochs=2)
    state = torch.get_rng_state()
    first, second = train_and_score(config)[2], train_and_score(config)[2]
    np.testing.assert_array_equal(first.member, second.member)
    assert torch.equal(torch.get_rng_state(), state)
    other = train_and_score(OwnModelConfig(examples=60, epochs=2, seed=1))[2]
    assert other.member.tolist() != first.member.tolist()


def test_settings_out_of_range_are_refused():
    for wrong in (
        {"examples": 10},
        {"examples": 1798},
        {"noisy_labels": 1.1},
        {"epochs": 0},
        {"width": 0},
    ):
        refused(f"{next(iter(wrong))}: expected", OwnModelConfig, **wrong)
