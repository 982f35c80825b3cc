"""The rectified flow, the filter of fakes, and the kernel distance."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

from paperlib.generators.image_quality import FakeFilter, kernel_distance
from paperlib.generators.images import FlowConfig
from paperlib.training.fitting import Saved
from tests.refusals import refused

RNG = np.random.default_rng(0)
STRIPES = np.zeros((2, 1, 4, 4), np.uint8)
STRIPES[0, :, ::2], STRIPES[1, :, :, ::2] = 255, 255
LABELS = np.repeat([0, 1], [15, 45])
X = STRIPES[LABELS]


@pytest.fixture(scope="module")
def flow():
    how = {"steps": 400, "batch_size": 64, "sampler_steps": 10, "learning_rate": 1e-2}
    config = FlowConfig(width=32, blocks=1, levels=2, **how)
    return config.fit(X, LABELS, classes=3, device="cpu", progress=False)


def test_a_flow_draws_the_images_of_each_class_by_its_seed_and_samplers_agree(flow):
    images, labels = flow.sample(300, seed=1)
    assert images.shape == (300, 1, 4, 4)
    assert (images == STRIPES[labels]).all(axis=(1, 2, 3)).mean() > 0.95
    assert set(labels) == {0, 1}
    assert 0.15 < (labels == 0).mean() < 0.35
    assert np.mean(flow.losses[-3:]) < flow.losses[0]
    (first, _), (again, _), (other, _) = (
        flow.sample(9, 1),
        flow.sample(9, 1, batch=4),
        flow.sample(9, 2),
    )
    assert (first == again).all()
    assert (first != other).any()
    before = torch.get_rng_state()
    flow.sample(3, 1)
    assert torch.equal(before, torch.get_rng_state())
    euler = replace(flow, config=replace(flow.config, sampler="euler", sampler_steps=60)).sample(
        50, 3
    )[0]
    assert (euler == flow.sample(50, 3)[0]).mean() > 0.95


def test_a_generator_goes_on_from_its_checkpoint_to_the_same_end(tmp_path, monkeypatch):
    config = FlowConfig(width=8, blocks=1, steps=30, batch_size=8, levels=2, sampler_steps=2)
    fit = partial(config.fit, X, LABELS, classes=2, device="cpu", progress=False)
    whole = fit()
    file, keep = tmp_path / "run.checkpoint", Saved.keep

    def stops(saved, state, *, now):
        keep(saved, state, now=True)
        if state()["done"] == 17:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Saved, "keep", stops)
        with pytest.raises(KeyboardInterrupt):
            fit(checkpoint=file)
    ended = fit(checkpoint=file)
    assert ended.losses == whole.losses
    assert (ended.sample(9, 1)[0] == whole.sample(9, 1)[0]).all()
    for one, other in zip(ended.network.parameters(), whole.network.parameters(), strict=True):
        assert one.equal(other)
    monkeypatch.setattr(
        "paperlib.generators.images._loss", None
    )  # a finished training is not repeated
    assert fit(checkpoint=file).losses == whole.losses


def test_the_unet_makes_images_of_the_right_form():
    config = FlowConfig(
        network="unet", width=8, blocks=3, steps=2, batch_size=4, sampler_steps=2, levels=5
    )
    x = RNG.integers(0, 256, (6, 3, 8, 8)).astype(np.uint8)
    images, labels = config.fit(
        x, np.arange(6) % 2, classes=2, device="cpu", progress=False
    ).sample(3, 0)
    assert images.shape == (3, 3, 8, 8)
    assert set(np.unique(images)) <= {0, 64, 128, 191, 255}
    assert labels.shape == (3,)


def test_bad_settings_and_images_are_named():
    refused("network", FlowConfig, network="gan")
    refused("sampler", FlowConfig, sampler="ddim")
    refused("steps: expected 1 or more", FlowConfig, steps=0)
    refused(r"levels: expected a number in \[2, 256\]", FlowConfig, levels=1)
    refused(r"average: expected a number in \[0, 1\)", FlowConfig, average=1.0)
    config = FlowConfig(network="unet", width=8, blocks=3, steps=1)
    with pytest.raises(ValueError, match="blocks: expected levels that halve a side of 6 evenly"):
        config.fit(
            np.zeros((2, 1, 6, 6), np.uint8), [0, 1], classes=2, device="cpu", progress=False
        )
    with pytest.raises(ValueError, match="labels: expected whole numbers from 0 to 1"):
        FlowConfig(steps=1).fit(X, LABELS + 1, classes=2, device="cpu", progress=False)


def test_the_filter_drops_what_is_plainly_generated():
    noise = RNG.integers(0, 256, (60, 1, 4, 4)).astype(np.uint8)
    fitted = FakeFilter(threshold=0.8, width=8, epochs=60).fit(X, noise, progress=False)
    assert fitted.keeps(RNG.integers(0, 256, (60, 1, 4, 4)).astype(np.uint8)).mean() < 0.1
    assert fitted.keeps(X).all()
    blind = FakeFilter(threshold=0.8, width=4, epochs=3).fit(X, X, progress=False)
    assert blind.keeps(X).all(), "what looks like the real ones stays"
    assert FakeFilter(threshold=1.0).fit(X, noise).keeps(noise).all()
    refused("threshold", FakeFilter, threshold=0.5)


def test_the_kernel_distance_has_no_bias_and_sees_a_shift():
    """Its broken twin, with the diagonal of the kernel left in, is biased."""

    def biased(x, y):
        kernels = [((a @ b.T / 4 + 1) ** 3).mean() for a, b in ((x, x), (y, y), (x, y))]
        return kernels[0] + kernels[1] - 2 * kernels[2]

    pairs = RNG.normal(size=(200, 2, 60, 4))
    values = np.array([(kernel_distance(x, y, subsets=1)[0], biased(x, y)) for x, y in pairs])
    away = np.abs(values.mean(axis=0)) / (values.std(axis=0) / np.sqrt(200))
    assert away[0] < 5 < away[1]
    shifted, spread = kernel_distance(
        RNG.normal(size=(300, 4)), RNG.normal(0.5, size=(300, 4)), subset=150
    )
    assert shifted > 5 * spread
    for option in ({"subset": 1}, {"subsets": 0}):  # a mean of nothing
        with pytest.raises(ValueError, match=next(iter(option))):
            kernel_distance(*pairs[0], **option)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("network", ["mlp", "unet"])
def test_a_gpu_draws_images(network):
    how = {"steps": 30, "batch_size": 16, "precision": "bfloat16"}
    config = FlowConfig(network=network, width=16, blocks=2, levels=2, **how)
    images, _ = config.fit(X, LABELS, classes=2, device="cuda", progress=False).sample(
        70, 1, batch=32
    )
    assert images.shape == (70, 1, 4, 4)
    assert set(np.unique(images)) <= {0, 255}
