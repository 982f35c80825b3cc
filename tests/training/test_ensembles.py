"""An ensemble trains the models that one-at-a-time training does."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

from paperlib.models import MLP
from paperlib.training import TrainingConfig, fit, fit_dp, fit_ensemble
from paperlib.training.batches import generator
from paperlib.training.ensembles import DivergenceWarning, MLPStack

stacked = partial(fit_ensemble, device="cpu", progress=False)
BINARY, MANY = (6, 8, 5, 1), (6, 8, 3)


def task(classes, n=53):
    rng = np.random.default_rng(classes)
    x = rng.normal(size=(n, 6)).astype(np.float32)
    return x, np.digitize(x[:, 0] + 0.3 * rng.normal(size=n), np.linspace(-1, 1, classes + 1)[1:-1])


def config(**changes):
    values = {
        "widths": BINARY,
        "epochs": 2,
        "batch_size": 8,
        "learning_rate": 0.05,
        "momentum": 0.9,
    }
    return TrainingConfig(**{**values, **changes})


@pytest.mark.parametrize(
    ("widths", "activation"), [(BINARY, "relu"), (MANY, "relu"), (BINARY, "tanh")]
)
@pytest.mark.parametrize("batch_size", [8, 53, 64], ids=["ragged", "whole", "larger"])
def test_ensemble_agrees_with_one_at_a_time(widths, activation, batch_size):
    """Different seeds, rates, epochs and optimizers in one call, in an order that needs sorting."""
    x, y = task(MLP(widths).classes)
    given = partial(config, widths=widths, activation=activation, batch_size=batch_size)
    adam = partial(given, optimizer="adam", momentum=0.0)
    configs = [
        given(seed=4, epochs=1),
        given(seed=1, epochs=4, learning_rate=0.2),
        given(seed=1, epochs=3, momentum=0.0),
        given(seed=2, epochs=0),
        adam(learning_rate=0.01),
        adam(learning_rate=0.02),
        adam(epochs=5),
    ]
    ensemble = stacked(configs, x, y, chunk=2)
    for index, given in enumerate(configs):
        fitted = fit(widths, x, y, config=given, device="cpu", progress=False)
        expected = MLP(widths).flat(fitted.module)
        assert torch.allclose(ensemble.parameters[index], expected, atol=2e-6), given
        assert torch.allclose(
            ensemble.model(index)(torch.tensor(x)), ensemble.logits(x)[index], atol=1e-6
        )


def test_the_agreement_is_not_a_matter_of_tolerance():
    """Another seed or activation, or one epoch more, is far outside what the test above allows."""
    x, y = task(2)
    first, other, longer = stacked([config(), config(seed=1), config(epochs=3)], x, y).parameters
    assert (first - other).abs().max() > 0.1
    assert (first - longer).abs().max() > 1e-3
    tanh = config(activation="tanh")
    assert (first - stacked([tanh], x, y).parameters[0]).abs().max() > 1e-3
    assert tanh.batch_key != config().batch_key


def test_configs_that_differ_in_their_epochs_alone_share_one_training(monkeypatch):
    """What is kept on the way is bit for bit the model of the shorter training, and costs no
    epoch.
    """
    x, y = task(3)
    configs = [
        config(widths=MANY, epochs=epochs, seed=seed) for epochs in (2, 0, 5, 2) for seed in (1, 2)
    ]
    trained = []
    start = MLPStack.start
    monkeypatch.setattr(
        MLPStack,
        "start",
        lambda self, epoch, count: [trained.append(count), start(self, epoch, count)],
    )
    ensemble = stacked(configs, x, y)
    assert sum(trained) == 10
    for epochs in (2, 5):
        alone = stacked([config(widths=MANY, epochs=epochs, seed=seed) for seed in (1, 2)], x, y)
        places = [at for at, given in enumerate(configs) if given.epochs == epochs]
        for at in places:
            assert ensemble.parameters[at].equal(alone.parameters[configs[at].seed - 1])
    assert ensemble.parameters[2].equal(MLP(MANY).initial(generator(1, "initial")))


def test_a_shorter_training_is_not_spoiled_by_what_happens_later():
    x, y = task(2)
    configs = [config(epochs=epochs, learning_rate=1e12) for epochs in (0, 1, 40)]
    with pytest.warns(DivergenceWarning, match="diverged"):
        ensemble = stacked(configs, x, y)
    finite = torch.isfinite(ensemble.parameters).all(1).tolist()
    assert finite[0]
    assert not finite[2]
    assert list(ensemble.diverged) == [at for at in range(3) if not finite[at]]


GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


def configs(**changes):
    return [config(widths=MANY, epochs=3, **changes, seed=seed) for seed in range(5)]


@pytest.mark.gpu
@GPU
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"optimizer": "adam", "momentum": 0.0},
        {"clip_norm": 0.3},
        {"clip_norm": 0.3, "microbatches": 4},
    ],
    ids=["sgd", "adam", "clipped", "microbatches"],
)
def test_gpu_and_cpu_train_the_same_models(changes):
    x, y = task(3)
    here, there = (stacked(configs(**changes), x, y, device=device) for device in ("cpu", "cuda"))
    assert torch.allclose(here.parameters, there.parameters.cpu(), atol=2e-4)


@pytest.mark.gpu
@GPU
def test_gpu_noise_has_the_right_scale_and_is_each_models_own():
    x, y = task(3, n=60)
    still = {"widths": MANY, "momentum": 0.0, "epochs": 1, "batch_size": 60, "learning_rate": 1.0}
    noisy = [config(clip_norm=1.0, noise_multiplier=2.0, seed=seed, **still) for seed in range(5)]
    silent = [replace(one, noise_multiplier=0.0) for one in noisy]
    together = stacked(noisy, x, y, device="cuda").parameters
    noise = (together - stacked(silent, x, y, device="cuda").parameters) * 60 / 2
    assert 0.8 < noise.std().item() < 1.2
    alone = torch.cat([stacked([one], x, y, device="cuda").parameters for one in noisy])
    assert torch.allclose(together, alone, atol=1e-4)


@pytest.mark.gpu
@GPU
def test_single_models_train_on_the_gpu():
    x, y = task(3)
    plain, private = configs()[0], configs(clip_norm=1.0, noise_multiplier=0.1)[0]
    single = partial(fit, MANY, x, y, config=plain, progress=False)
    expected = single(device="cpu").logits(x)
    for precision, limit in (("float32", 1e-3), ("bfloat16", 0.3)):
        got = single(device="cuda", precision=precision).logits(x)
        assert (got.cpu() - expected).abs().max() < limit
    fitted = fit_dp(MANY, x, y, config=private, device="cuda", progress=False)
    assert torch.isfinite(fitted.logits(x)).all()
