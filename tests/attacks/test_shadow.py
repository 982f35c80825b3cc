"""LiRA, RMIA and gradient norms against slow loops, and against a world whose best attack is
known.
"""

import numpy as np
import pytest
import torch
from scipy.special import ndtr
from scipy.stats import mannwhitneyu, norm
from torch import nn

from paperlib.attacks.gradients import gradient_norms
from paperlib.attacks.shadow import lira_offline, lira_online, rmia
from tests.refusals import refused


def auc(member, other):
    return mannwhitneyu(member, other).statistic / (len(member) * len(other))


@pytest.fixture
def world():
    rng = np.random.default_rng(0)
    shadows = rng.normal(size=(12, 9))
    included = np.argsort(rng.random((12, 9)), axis=0) < 6
    return rng.normal(size=9), shadows + included, included


@pytest.mark.parametrize("fixed", [False, True])
def test_lira_compares_two_fitted_normals(world, fixed):
    target, shadows, included = world
    slow = {}
    for flag in (True, False):
        groups = [shadows[included[:, i] == flag, i] for i in range(9)]
        mean, sigma = np.array([(group.mean(), group.std(ddof=1)) for group in groups]).T
        slow[flag] = norm(mean, np.sqrt(np.mean(sigma**2)) if fixed else sigma)
    online = lira_online(target, shadows, included, fixed_variance=fixed)
    np.testing.assert_allclose(
        online, slow[True].logpdf(target) - slow[False].logpdf(target), rtol=1e-9
    )
    offline = lira_offline(target, shadows, included, fixed_variance=fixed)
    np.testing.assert_allclose(ndtr(offline), 1 - slow[False].sf(target), rtol=1e-9)


@pytest.mark.parametrize("online", [True, False])
def test_rmia_counts_the_points_it_beats(world, online):
    _, _, included = world
    rng = np.random.default_rng(1)
    x, z, x_models, z_models = (
        rng.random(9),
        rng.random(30),
        rng.random((12, 9)),
        rng.random((12, 30)),
    )
    slow = []
    for i in range(9):
        if online:
            parts = [x_models[included[:, i] == flag, i].mean() for flag in (True, False)]
            mean = (parts[0] + parts[1]) / 2
        else:
            mean = 0.5 * ((1 + 0.3) * x_models[:, i].mean() + (1 - 0.3))
        beaten = [(x[i] / mean) / (z[j] / z_models[:, j].mean()) >= 1.5 for j in range(30)]
        slow.append(np.mean(beaten))
    options = {"included": included if online else None, "gamma": 1.5, "offline_slope": 0.3}
    found = rmia(x, x_models, z, z_models, **options)
    np.testing.assert_allclose(found, slow)


def test_lira_reaches_the_optimum_of_a_gaussian_world_and_the_raw_confidence_does_not():
    """Confidence ~ N(difficulty + shift * member, 1): the best AUC is ndtr(shift / sqrt 2)."""
    rng = np.random.default_rng(2)
    n, models, shift, spread = 4000, 64, 1.5, 3.0
    difficulty = spread * rng.normal(size=n)
    included = rng.random((models, n)) < 0.5
    shadows = difficulty + shift * included + rng.normal(size=(models, n))
    member = np.arange(n) < n // 2
    target = difficulty + shift * member + rng.normal(size=n)
    best, plain = ndtr(shift / np.sqrt(2)), ndtr(shift / np.sqrt(2 * (1 + spread**2)))
    tolerance = (
        0.03  # three standard errors of an AUC of 2,000 against 2,000, and the fit of 64 models
    )
    for attack in (lira_online, lira_offline):
        scores = attack(target, shadows, included, fixed_variance=True)
        assert abs(auc(scores[member], scores[~member]) - best) < tolerance
    assert abs(auc(target[member], target[~member]) - plain) < tolerance
    assert best - plain > 5 * tolerance
    broken = lira_offline(target, rng.permuted(shadows, axis=1), included, fixed_variance=True)
    assert auc(broken[member], broken[~member]) < best - tolerance


@pytest.mark.parametrize("attack", [lira_online, lira_offline])
def test_infinite_confidences_stand_beyond_all_finite_ones(world, attack):
    target, shadows, included = world

    def scores_of(high, low):
        changed, models = target.copy(), shadows.copy()
        changed[0], changed[1], models[0, 2], models[1, 3] = high, low, high, low
        return attack(changed, models, included, fixed_variance=True)

    infinite = scores_of(np.inf, -np.inf)
    others = shadows.copy()
    others[0, 2] = others[1, 3] = target[2]
    finite = np.append(target[2:], others)
    expected = scores_of(finite.max(), finite.min())
    np.testing.assert_allclose(infinite, expected, rtol=1e-9)
    assert np.isfinite(infinite).all()
    alone = attack([np.inf, np.inf], [[np.inf] * 2, [-np.inf] * 2] * 2, [[1, 0], [0, 1]] * 2)
    assert np.isfinite(alone).all()
    assert alone[0] > alone[1]


def test_bad_input_is_refused(world):
    target, shadows, included = world
    x, half, module = np.full(9, 0.5), np.full((3, 9), 0.5), nn.Linear(2, 2)
    refused(r"shadows: expected shape \(K, 9\)", lira_offline, target, shadows[:, :5])
    refused(r"shadows: .* NaN", lira_offline, target, np.where(included, np.nan, shadows))
    refused("two shadow models or more that are 'in'", lira_online, target, shadows, 0 * included)
    refused("two shadow models or more that are 'out'", lira_offline, target, shadows[:1])
    refused("included: expected truth values", lira_online, target, shadows, included[:4])
    refused(r"target: expected probabilities in \[0, 1\]", rmia, 3 * x, half, x, half)
    refused(r"target: expected probabilities in \[0, 1\]", rmia, np.inf * x, half, x, half)
    refused("offline_slope", rmia, x, half, x, half, offline_slope=2)
    refused("gamma", rmia, x, half, x, half, gamma=0)
    refused("probability 0 at index 0", rmia, x, half, x, 0 * half)
    refused("with and without each example", rmia, x, half, x, half, included=0 * half)
    refused("with and without each example", rmia, x, half, x, half, included=0 * half + 1)
    refused("y: expected 3 labels", gradient_norms, module, np.zeros((3, 2)), [0, 1])
    refused("batch_size", gradient_norms, module, np.zeros((1, 2)), [0], batch_size=0)


@pytest.mark.parametrize("outputs", [1, 3])
def test_gradient_norms_are_those_of_one_example_at_a_time(outputs):
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, outputs))
    x, y = torch.randn(7, 4), torch.arange(7) % max(2, outputs)
    slow = []
    for example, label in zip(x, y, strict=True):
        module.zero_grad()
        logits = module(example[None])
        if outputs == 1:
            loss = nn.functional.binary_cross_entropy_with_logits(logits[:, 0], label[None].float())
        else:
            loss = nn.functional.cross_entropy(logits, label[None])
        loss.backward()
        slow.append(float(torch.cat([p.grad.flatten() for p in module.parameters()]).norm()))
    np.testing.assert_allclose(gradient_norms(module, x, y, batch_size=3), slow, rtol=1e-5)
    assert module.training
