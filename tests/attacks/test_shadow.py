"""LiRA, RMIA and gradient norms against slow loops, and against a world whose best attack is known."""

import numpy as np
import pytest
import torch
from scipy.special import ndtr
from scipy.stats import norm, rankdata
from torch import nn

from paperlib.attacks.gradients import gradient_norms
from paperlib.attacks.shadow import lira_offline, lira_offline_p_values, lira_online, rmia


def auc(member, other):
    ranks = rankdata(np.concatenate([member, other]))
    count = len(member)
    return (ranks[:count].sum() - count * (count + 1) / 2) / (count * len(other))


@pytest.fixture
def world():
    rng = np.random.default_rng(0)
    shadows = rng.normal(size=(12, 9))
    included = np.argsort(rng.random((12, 9)), axis=0) < 6
    return rng.normal(size=9), shadows + included, included


def test_lira_online_is_the_ratio_of_two_fitted_normals(world):
    target, shadows, included = world
    slow = [
        norm.logpdf(target[i], shadows[included[:, i], i].mean(), shadows[included[:, i], i].std(ddof=1))
        - norm.logpdf(target[i], shadows[~included[:, i], i].mean(), shadows[~included[:, i], i].std(ddof=1))
        for i in range(9)
    ]
    np.testing.assert_allclose(lira_online(target, shadows, included), slow, rtol=1e-9)


def test_fixed_variance_is_pooled_over_examples(world):
    target, shadows, included = world
    deviations = {True: [], False: []}
    for i in range(9):
        for flag in (True, False):
            values = shadows[included[:, i] == flag, i]
            deviations[flag].append(((values - values.mean()) ** 2).sum() / (len(values) - 1))
    sigma = {flag: np.sqrt(np.mean(found)) for flag, found in deviations.items()}
    slow = [
        norm.logpdf(target[i], shadows[included[:, i], i].mean(), sigma[True])
        - norm.logpdf(target[i], shadows[~included[:, i], i].mean(), sigma[False])
        for i in range(9)
    ]
    np.testing.assert_allclose(lira_online(target, shadows, included, fixed_variance=True), slow, rtol=1e-9)


def test_lira_offline_is_the_papers_one_sided_score(world):
    target, shadows, included = world
    slow = [
        1 - norm.sf(target[i], shadows[~included[:, i], i].mean(), shadows[~included[:, i], i].std(ddof=1))
        for i in range(9)
    ]
    scores = lira_offline(target, shadows, included)
    np.testing.assert_allclose(ndtr(scores), slow, rtol=1e-9)
    np.testing.assert_allclose(np.exp(lira_offline_p_values(scores)), 1 - np.array(slow), rtol=1e-7)


@pytest.mark.parametrize("online", [True, False])
def test_rmia_counts_the_points_it_beats(world, online):
    _, _, included = world
    rng = np.random.default_rng(1)
    x, z, x_models, z_models = rng.random(9), rng.random(30), rng.random((12, 9)), rng.random((12, 30))
    slow = []
    for i in range(9):
        if online:
            parts = [x_models[included[:, i] == flag, i].mean() for flag in (True, False)]
            mean = (parts[0] + parts[1]) / 2
        else:
            mean = 0.5 * ((1 + 0.3) * x_models[:, i].mean() + (1 - 0.3))
        beaten = [(x[i] / mean) / (z[j] / z_models[:, j].mean()) >= 1.5 for j in range(30)]
        slow.append(np.mean(beaten))
    found = rmia(
        x, x_models, z, z_models, included=included if online else None, gamma=1.5, offline_slope=0.3
    )
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
    tolerance = 0.03  # three standard errors of an AUC of 2,000 against 2,000, and the fit of 64 models
    for scores in (
        lira_online(target, shadows, included, fixed_variance=True),
        lira_offline(target, shadows, included, fixed_variance=True),
    ):
        assert abs(auc(scores[member], scores[~member]) - best) < tolerance
    assert abs(auc(target[member], target[~member]) - plain) < tolerance
    assert best - plain > 5 * tolerance
    broken = lira_offline(target, rng.permuted(shadows, axis=1), included, fixed_variance=True)
    assert auc(broken[member], broken[~member]) < best - tolerance


def test_shadow_scores_refuse_bad_input(world):
    target, shadows, included = world
    with pytest.raises(ValueError, match=r"shadows: expected shape \(K, 9\)"):
        lira_offline(target, shadows[:, :5])
    with pytest.raises(ValueError, match=r"shadows: .* NaN"):
        lira_offline(target, np.where(included, np.nan, shadows))
    with pytest.raises(ValueError, match="two shadow models or more that are 'in'"):
        lira_online(target, shadows, np.zeros_like(included))
    with pytest.raises(ValueError, match="two shadow models or more that are 'out'"):
        lira_offline(target, shadows[:1])
    with pytest.raises(ValueError, match="included: expected truth values"):
        lira_online(target, shadows, included[:4])
    half = np.full((3, 9), 0.5)
    with pytest.raises(ValueError, match=r"target: expected probabilities in \[0, 1\]"):
        rmia(np.full(9, 1.5), half, np.full(9, 0.5), half)
    with pytest.raises(ValueError, match="offline_slope"):
        rmia(np.full(9, 0.5), half, np.full(9, 0.5), half, offline_slope=2)
    with pytest.raises(ValueError, match="gamma"):
        rmia(np.full(9, 0.5), half, np.full(9, 0.5), half, gamma=0)
    with pytest.raises(ValueError, match="probability 0 at index 0"):
        rmia(np.full(9, 0.5), half, np.full(9, 0.5), 0 * half)
    with pytest.raises(ValueError, match="with and without each example"):
        rmia(np.full(9, 0.5), half, np.full(9, 0.5), half, included=np.ones((3, 9)))


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


def test_gradient_norms_refuse_bad_input():
    module = nn.Linear(2, 2)
    with pytest.raises(ValueError, match="y: expected 3 labels"):
        gradient_norms(module, np.zeros((3, 2)), [0, 1])
    with pytest.raises(ValueError, match="batch_size"):
        gradient_norms(module, np.zeros((1, 2)), [0], batch_size=0)
