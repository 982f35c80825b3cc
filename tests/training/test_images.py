"""Training classifiers of images."""

import copy
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from paperlib.io.budget import UNTIL_VARIABLE, BudgetSpent
from paperlib.models.images import build_image_model, image_logits
from paperlib.models.images.build import ImageArchitecture, as_input
from paperlib.training import TrainingConfig, fit_dp
from paperlib.training.fitting import CheckpointError, Saved, TrainingDiverged
from paperlib.training.images import ImageTraining, augmented, fit_images, images_per_second
from paperlib.training.language import check_layers
from tests.interrupts import stopping
from tests.refusals import refused

RNG = np.random.default_rng(0)
X = RNG.integers(0, 120, (60, 1, 4, 4)).astype(np.uint8)
Y = np.arange(60) % 2
X[Y == 1] += 120


def network(outputs=2, name="mlp", side=4, width=8, **options):
    shape = ImageArchitecture(
        name=name, channels=1, side=side, outputs=outputs, width=width, **options
    )
    return build_image_model(shape)


def flat(module):
    return nn.utils.parameters_to_vector(module.parameters())


def test_bright_images_and_attributes_are_learned_and_a_snapshot_is_a_shorter_run():
    config = ImageTraining(epochs=20, batch_size=10, learning_rate=2e-3)
    fitted = fit_images(network(), X, Y, config=config, progress=False)
    assert (image_logits(fitted.module, X).argmax(1).numpy() == Y).mean() > 0.95
    assert fitted.losses[-1] < fitted.losses[0]
    assert not fitted.module.training
    labels = np.stack([Y, 1 - Y, np.ones(60, dtype=int)], axis=1)
    fitted = fit_images(network(3), X, labels, config=config, progress=False)
    assert ((image_logits(fitted.module, X) > 0).numpy() == labels).mean() > 0.95
    long = fit_images(
        network(), X, Y, config=ImageTraining(epochs=4), snapshots=[2, 4], progress=False
    )
    short = fit_images(network(), X, Y, config=ImageTraining(epochs=2), progress=False)
    assert flat(long.snapshots[2]).equal(flat(short.module))
    assert not flat(long.snapshots[4]).equal(flat(short.module))
    assert long.snapshots[4] is long.module
    speeds = images_per_second(network(), X, Y, config=ImageTraining(epochs=1, batch_size=20))
    assert set(speeds) == {"here", "dataloader"}
    assert min(speeds.values()) > 0


NO_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
PLACES = ["cpu", pytest.param("cuda", marks=[pytest.mark.gpu, NO_GPU])]


@pytest.mark.parametrize(
    "options", [{}, {"schedule": "cosine", "optimizer": "sgd", "augment": True}]
)
@pytest.mark.parametrize("place", PLACES)
def test_a_training_goes_on_from_its_checkpoint_to_the_same_end(
    tmp_path, monkeypatch, options, place
):
    monkeypatch.setattr(Saved.__init__, "__kwdefaults__", {"seconds": 0.0})
    config = ImageTraining(epochs=4, batch_size=25, **options)
    train = partial(fit_images, config=config, snapshots=[1, 3], device=place, progress=False)
    whole = train(network(), X, Y)
    file = tmp_path / "run.checkpoint"
    with monkeypatch.context() as patch:
        stopping(patch, Saved, "keep", 4)
        with pytest.raises(KeyboardInterrupt):
            train(network(), X, Y, checkpoint=file)
    # What the checkpoint holds replaces the network given.
    ended = train(network(seed=9), X, Y, checkpoint=file)
    error = 0.0 if place == "cpu" else 1e-4
    assert ended.losses == pytest.approx(whole.losses, abs=error)
    for epoch, module in whole.snapshots.items():
        assert torch.allclose(flat(ended.snapshots[epoch]), flat(module), rtol=0, atol=error), epoch
    with pytest.raises(CheckpointError, match="belongs to another run"):
        train(network(), X, Y, config=ImageTraining(epochs=5), checkpoint=file)


def test_a_training_whose_time_is_over_is_kept_and_goes_on_by_one_epoch_at_least(
    tmp_path, monkeypatch
):
    config = ImageTraining(epochs=3, batch_size=25)
    train = partial(fit_images, config=config, snapshots=[1], device="cpu", progress=False)
    whole = train(network(), X, Y)
    monkeypatch.setenv(UNTIL_VARIABLE, "1")
    assert train(network(), X, Y).losses == whole.losses, "nothing would be kept of it"
    file = tmp_path / "run.checkpoint"
    for _ in range(config.epochs):
        with pytest.raises(BudgetSpent):
            train(network(), X, Y, checkpoint=file)
    ended = train(network(seed=9), X, Y, checkpoint=file)
    assert ended.losses == whole.losses
    for epoch, module in whole.snapshots.items():
        assert flat(ended.snapshots[epoch]).equal(flat(module)), epoch


@pytest.mark.parametrize(
    "options", [{"schedule": "cosine", "augment": True}, {"precision": "bfloat16"}]
)
def test_every_way_to_train_lowers_the_loss(options):
    model = network(name="cnn", width=4)
    config = ImageTraining(**{"epochs": 8, "batch_size": 10, "learning_rate": 1e-2} | options)
    fitted = fit_images(model, X, Y, config=config, progress=False)
    assert fitted.losses[-1] < 0.8 * fitted.losses[0]


def test_augmenting_moves_images_and_adds_nothing():
    images = torch.full((200, 1, 16, 16), 9, dtype=torch.uint8)
    images[:, :, :, 8:] = 5
    moved = augmented(images, torch.Generator().manual_seed(0))
    assert moved.shape == images.shape
    assert moved.dtype == torch.uint8
    assert set(moved.unique().tolist()) == {0, 5, 9}
    centre = moved[:, 0, 8, [4, 11]]
    kinds = {tuple(pair.tolist()) for pair in centre}
    assert kinds == {(9, 5), (5, 9)}, "the middle of each half stays, flipped or not"
    flipped = (centre[:, 0] == 5).sum()
    assert 60 < flipped < 140


def test_bad_input_is_named():
    train = partial(fit_images, network(), X, config=ImageTraining(epochs=2), progress=False)
    refused("snapshots: expected epochs from 1 to 2", train, Y, snapshots=[3])
    refused("labels: expected shape", train, Y[:5])
    refused("epochs: expected 1 or more", ImageTraining, epochs=0)
    with pytest.raises(TrainingDiverged, match="lower learning_rate"):
        train(Y, config=ImageTraining(epochs=30, optimizer="sgd", learning_rate=1e30))


def test_group_norm_can_be_trained_privately_and_batch_norm_cannot():
    config = TrainingConfig(
        epochs=1, batch_size=4, learning_rate=0.1, clip_norm=1.0, noise_multiplier=1.0
    )
    x = as_input(RNG.integers(0, 256, (4, 1, 16, 16)).astype(np.uint8))
    train = partial(fit_dp, x=x, y=np.arange(4) % 2, config=config, progress=False, device="cpu")
    for name in ("cnn4", "wrn-16-4"):
        model = network(name=name, side=16, width=2, group_norm=True)
        before = flat(model).clone()
        assert not flat(train(model).module).equal(before)
    refused("layers that keep records apart", train, network(name="cnn4", side=16, width=2))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("compiled", [False, True])
def test_a_gpu_trains_in_bfloat16_with_channels_last(compiled):
    model = build_image_model(ImageArchitecture(name="wrn-16-4", channels=1, side=4, outputs=2))
    config = ImageTraining(epochs=8, batch_size=10, precision="bfloat16", compile=compiled)
    fitted = fit_images(model, X, Y, config=config, device="cuda", snapshots=[4], progress=False)
    assert next(fitted.module.parameters()).is_cuda
    assert fitted.losses[-1] < fitted.losses[0]
    assert image_logits(fitted.snapshots[4], X).device.type == "cpu"
    speeds = images_per_second(model.cpu(), X, Y, config=config)
    assert min(speeds.values()) > 0


@pytest.mark.parametrize("name", ["wrn-16-4", "cnn4"])
def test_ghost_clipping_of_convolutions_makes_the_steps_of_formed_gradients(name):
    x = as_input(RNG.integers(0, 256, (12, 1, 16, 16)).astype(np.uint8))
    config = TrainingConfig(
        epochs=2, batch_size=4, learning_rate=0.05, clip_norm=1.0, noise_multiplier=0.3
    )

    def end(clip_norm=1.0, **options):
        model = network(name=name, side=16, width=2, group_norm=True)
        clipped = replace(config, clip_norm=clip_norm)
        fitted = fit_dp(
            model, x, np.arange(12) % 2, config=clipped, device="cpu", progress=False, **options
        )
        return flat(fitted.module), fitted.losses

    (formed, losses), (ghost, again) = end(), end(ghost=True, at_once=3)
    start = flat(network(name=name, side=16, width=2, group_norm=True))
    assert (ghost - formed).norm() < 1e-4 * (formed - start).norm()
    assert again == pytest.approx(losses, rel=1e-4)
    other, _ = end(clip_norm=0.9, ghost=True)
    assert (other - formed).norm() > 1e-2 * (formed - start).norm()


def test_gradients_of_a_layer_that_ghost_clipping_does_not_know_are_formed():
    config = TrainingConfig(epochs=1, batch_size=4, learning_rate=0.1, clip_norm=1.0)
    grouped = nn.Conv2d(2, 2, 1, groups=2)
    model = nn.Sequential(nn.Conv2d(1, 2, 1), grouped, nn.Flatten(), nn.Linear(32, 2))
    refused("a Conv2d of groups", check_layers, model)
    formed, by_norms = (
        fit_dp(copy.deepcopy(model), as_input(X), Y, config=config, progress=False, ghost=ghost)
        for ghost in (False, True)
    )
    assert flat(by_norms.module).equal(flat(formed.module))


def test_gradients_in_parts_make_the_same_steps():
    def end(most, clip_norm=0.5):
        config = TrainingConfig(
            epochs=2, batch_size=20, learning_rate=0.1, clip_norm=clip_norm, noise_multiplier=0.3
        )
        return flat(
            fit_dp(network(), as_input(X), Y, config=config, progress=False, at_once=most).module
        )

    whole = end(None)
    assert torch.allclose(whole, end(7), atol=1e-6)
    assert whole.equal(end(1000))
    assert not torch.allclose(whole, end(7, clip_norm=0.4), atol=1e-6)
