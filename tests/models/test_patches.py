"""Features from whitened random patches."""

import pytest
import torch

from paperlib.models.images.patches import PatchFeatures


def test_patch_features_normalise_each_patch_as_an_unfolded_computation_does():
    torch.manual_seed(0)
    images = torch.rand(50, 3, 9, 9) * 2 - 1
    features = PatchFeatures(images, filters=5, seed=0, side=4)
    patches = torch.nn.functional.unfold(images, 4).transpose(1, 2)  # (n, places, 48)
    spread = (patches.var(-1, keepdim=True) + (20 / 255) ** 2).sqrt()
    normal = (patches - patches.mean(-1, keepdim=True)) / spread
    answer = normal @ features.filters.flatten(1).T - features.offsets.flatten()
    both = torch.cat([answer, -answer], dim=-1).sub(0.25).relu().transpose(1, 2).unflatten(2, (6, 6))
    pooled = torch.nn.functional.adaptive_avg_pool2d(both, 2).flatten(1)
    torch.testing.assert_close(
        features(images), (pooled - features.means) / features.scales, atol=2e-4, rtol=0
    )


def test_patch_features_are_whitened_standardised_and_fixed_by_their_seed():
    torch.manual_seed(1)
    images = torch.rand(300, 1, 12, 12).cumsum(-1)  # neighbouring pixels are alike
    first, again, other = (PatchFeatures(images, filters=8, seed=seed, side=4) for seed in (0, 0, 1))
    found = first(images)
    torch.testing.assert_close(found, again(images))
    assert (found - other(images)).abs().mean() > 0.1
    assert found.mean(0).abs().max() < 1e-3
    assert found.std(0).mean().item() == pytest.approx(1.0, abs=0.05)
    assert not list(first.parameters())
