"""Classifiers of images by name."""

import sys
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from torch import nn
from torchvision.models import resnet18

from paperlib.models.images import build, build_image_model, image_logits, image_losses
from paperlib.models.images.build import (
    ARCHITECTURES,
    ImageArchitecture,
    as_input,
    image_features,
    parameters_of,
)
from paperlib.models.images.networks import PatchFeatures
from paperlib.models.images.resnet import resnet
from tests.refusals import refused


def architecture(name, **options):
    return ImageArchitecture(
        **{"name": name, "channels": 3, "side": 16, "outputs": 7, "width": 4} | options
    )


@pytest.mark.parametrize(
    "name", ["mlp", "cosine", "cosine-mlp", "cnn", "cnn4", "resnet18", "wrn-16-4"]
)
def test_logits_have_one_column_per_class(name):
    model = build_image_model(architecture(name))
    assert model(torch.zeros(2, 3, 16, 16)).shape == (2, 7)


def test_random_features_are_never_trained_and_are_those_of_a_gaussian_kernel():
    model = build_image_model(architecture("cosine", width=20_000, channels=1, side=5))
    assert {name for name, _ in model.named_parameters()} == {"2.weight", "2.bias"}
    x, y = torch.zeros(1, 25), torch.zeros(1, 25)
    y[0, :4] = 0.5  # at distance 1, where the kernel's length is 0.2 * 5
    features = model[1]
    assert (features(x) * features(y)).mean().item() == pytest.approx(np.exp(-0.5), abs=0.03)
    assert features(x).square().mean().item() == pytest.approx(1, abs=0.03)


PUBLISHED = {"resnet18": 11.17, "resnet50": 23.52, "resnet101": 42.51, "wrn-28-2": 1.47}
PUBLISHED |= {"wrn-28-10": 36.48, "wrn-16-4": 2.75}
LARGE = sorted({*ARCHITECTURES} - {"vit-small", "mlp", "cosine", "cosine-mlp", "cnn"})


@pytest.mark.parametrize("name", LARGE)
def test_large_models_have_the_published_size_and_with_group_norm_no_batch_norm(name):
    if name in PUBLISHED:
        millions = parameters_of(architecture(name, side=32, outputs=10)) / 1e6
        assert millions == pytest.approx(PUBLISHED[name], abs=0.005)
    with torch.device("meta"):
        model = ARCHITECTURES[name](architecture(name, group_norm=True))
        assert model(torch.zeros(2, 3, 16, 16)).shape == (2, 7)
    kinds = set(map(type, model.modules()))
    assert nn.GroupNorm in kinds
    assert nn.BatchNorm2d not in kinds


def test_our_resnet_is_torchvisions_and_a_seed_makes_the_parameters():
    before = torch.get_rng_state()
    models = [build_image_model(architecture("cnn", seed=seed)) for seed in (1, 1, 2)]
    assert torch.equal(before, torch.get_rng_state())
    first, again, other = (nn.utils.parameters_to_vector(model.parameters()) for model in models)
    assert first.equal(again)
    assert not first.equal(other)
    torch.manual_seed(0)
    theirs, ours = resnet18(num_classes=5).eval(), resnet("resnet18", 3, 96, 5).eval()
    ours.load_state_dict(theirs.state_dict())
    x = torch.randn(1, 3, 96, 96)
    with torch.inference_mode():
        assert torch.allclose(ours(x), theirs(x), atol=1e-5)


def test_pretrained_weights_are_taken_over_but_for_stem_and_head(monkeypatch):
    torch.manual_seed(1)
    given = resnet18().state_dict()
    monkeypatch.setattr(
        "torchvision.models._api.load_state_dict_from_url", lambda *_, **__: dict(given)
    )
    found = build_image_model(architecture("resnet18", pretrained=True)).state_dict()
    assert found["layer3.0.conv1.weight"].equal(given["layer3.0.conv1.weight"])
    assert found["fc.weight"].shape == (7, 512)
    assert found["conv1.weight"].shape == (64, 3, 3, 3)

    def unreachable(*_, **__):
        raise OSError("no network")

    monkeypatch.setattr("torchvision.models._api.load_state_dict_from_url", unreachable)
    with pytest.raises(RuntimeError, match="ImageNet weights of resnet18 cannot be downloaded"):
        build_image_model(architecture("resnet18", pretrained=True))


def test_vit_cuts_small_images_into_64_patches_or_sees_them_as_those_it_knows(monkeypatch):
    create, pretrained = Mock(), Mock()
    monkeypatch.setitem(sys.modules, "timm", SimpleNamespace(create_model=create))
    monkeypatch.setattr(build, "pretrained_classifier", pretrained)
    build_image_model(architecture("vit-small", side=32))
    shape = {"img_size": 32, "patch_size": 4, "in_chans": 3, "num_classes": 7}
    create.assert_called_once_with("vit_small_patch16_224", **shape)
    build_image_model(architecture("vit-small", side=32, pretrained=True))
    pretrained.assert_called_once_with("vit_small_patch16_224", 7, seed=0)
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(ModuleNotFoundError, match="install the extra 'images'"):
        build_image_model(architecture("vit-small"))


def test_bad_settings_are_named():
    for options, words in (
        ({"name": "vgg"}, "name"),
        ({"name": "cnn", "channels": 2}, "channels: expected 1 or 3"),
        ({"name": "cnn", "width": 0}, "width: expected 1 or more"),
        ({"name": "cnn", "pretrained": True}, "pretrained: expected one of"),
        ({"name": "cnn4", "side": 8}, "side: expected 16 or more for cnn4, got 8"),
    ):
        with pytest.raises(ValueError, match=words):
            build_image_model(architecture(**options))


def test_features_give_the_logits_through_the_last_layer():
    model = build_image_model(architecture("cnn")).train()
    x = np.random.default_rng(0).integers(0, 256, (5, 3, 16, 16)).astype(np.uint8)
    last = [layer for layer in model.modules() if isinstance(layer, nn.Linear)][-1]
    features = image_features(model, x, batch=2)
    assert torch.allclose(last(features), image_logits(model, x), atol=1e-5)
    assert model.training
    assert not last._forward_hooks


def test_losses_of_classes_and_attributes_and_only_pixels_are_taken():
    logits = torch.tensor([[2.0, 0.0, -1.0], [0.0, 0.0, 0.0]])
    expected = nn.functional.cross_entropy(logits, torch.tensor([0, 2]), reduction="none")
    assert torch.allclose(image_losses(logits, torch.tensor([0, 2])).float(), expected)
    attributes = torch.tensor([[1, 0, 0], [1, 1, 1]])
    means = image_losses(logits, attributes)
    assert means[1].item() == pytest.approx(np.log(2))
    assert means[0].item() == pytest.approx(
        np.mean([np.log1p(np.exp(-2)), np.log(2), np.log1p(np.exp(-1))])
    )
    refused("labels: expected shape", image_losses, logits, attributes[:, :2])
    assert as_input(np.uint8([[[[0, 255]]]])).flatten().tolist() == [-1, 1]
    refused("images: expected uint8", as_input, np.zeros((1, 1, 2, 2)))


def test_patch_features_are_an_unfolded_computation_s_whitened_and_fixed_by_their_seed():
    torch.manual_seed(0)
    images = torch.rand(50, 3, 9, 9) * 2 - 1
    features = PatchFeatures(images, filters=5, seed=0, side=4)
    patches = torch.nn.functional.unfold(images, 4).transpose(1, 2)  # (n, places, 48)
    spread = (patches.var(-1, keepdim=True) + (20 / 255) ** 2).sqrt()
    normal = (patches - patches.mean(-1, keepdim=True)) / spread
    answer = normal @ features.filters.flatten(1).T - features.offsets.flatten()
    both = (
        torch.cat([answer, -answer], dim=-1).sub(0.25).relu().transpose(1, 2).unflatten(2, (6, 6))
    )
    pooled = torch.nn.functional.adaptive_avg_pool2d(both, 2).flatten(1)
    white = (pooled - features.means) / features.scales
    torch.testing.assert_close(features(images), white, atol=2e-4, rtol=0)
    torch.manual_seed(1)
    images = torch.rand(300, 1, 12, 12).cumsum(-1)  # neighbouring pixels are alike
    first, again, other = (
        PatchFeatures(images, filters=8, seed=seed, side=4) for seed in (0, 0, 1)
    )
    found = first(images)
    torch.testing.assert_close(found, again(images))
    assert (found - other(images)).abs().mean() > 0.1
    assert found.mean(0).abs().max() < 1e-3
    assert found.std(0).mean().item() == pytest.approx(1.0, abs=0.05)
    assert not list(first.parameters())
