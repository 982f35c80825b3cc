"""An ensemble trains the models that one-at-a-time training does."""

import numpy as np
import pytest
import torch
from torch import nn

from paperlib.models import MLP
from paperlib.training import DivergenceWarning, TrainingConfig, fit, fit_ensemble, fit_module_ensemble

BINARY, MANY = (6, 8, 5, 1), (6, 8, 3)


def task(classes, n=53):
    rng = np.random.default_rng(classes)
    x = rng.normal(size=(n, 6)).astype(np.float32)
    return x, np.digitize(x[:, 0] + 0.3 * rng.normal(size=n), np.linspace(-1, 1, classes + 1)[1:-1])


def config(**changes):
    values = {"widths": BINARY, "epochs": 2, "batch_size": 8, "learning_rate": 0.05, "momentum": 0.9}
    return TrainingConfig(**{**values, **changes})


def one_at_a_time(given, x, y):
    fitted = fit(given.widths, x, y, config=given, device="cpu", progress=False)
    return MLP(given.widths).flat(fitted.module)


@pytest.mark.parametrize("widths", [BINARY, MANY], ids=["binary", "many-class"])
@pytest.mark.parametrize("batch_size", [8, 53, 64], ids=["ragged", "whole", "larger"])
def test_ensemble_agrees_with_one_at_a_time(widths, batch_size):
    """Different seeds, rates, epochs and optimizers in one call, in an order that needs sorting."""
    x, y = task(MLP(widths).classes)
    configs = [
        config(widths=widths, batch_size=batch_size, seed=4, epochs=1),
        config(widths=widths, batch_size=batch_size, seed=1, epochs=4, learning_rate=0.2),
        config(widths=widths, batch_size=batch_size, seed=1, epochs=3, momentum=0.0),
        config(widths=widths, batch_size=batch_size, seed=2, epochs=0),
        config(widths=widths, batch_size=batch_size, optimizer="adam", momentum=0.0, learning_rate=0.01),
        config(widths=widths, batch_size=batch_size, optimizer="adam", momentum=0.0, learning_rate=0.02),
        config(widths=widths, batch_size=batch_size, optimizer="adam", momentum=0.0, epochs=5),
    ]
    ensemble = fit_ensemble(configs, x, y, device="cpu", chunk=2, progress=False)
    for index, given in enumerate(configs):
        expected = one_at_a_time(given, x, y)
        assert torch.allclose(ensemble.parameters[index], expected, atol=2e-6), given
        assert torch.allclose(ensemble.model(index)(torch.tensor(x)), ensemble.logits(x)[index], atol=1e-6)


def test_the_agreement_is_not_a_matter_of_tolerance():
    """Another seed, or one epoch more, is far outside what the test above allows."""
    x, y = task(2)
    first, other, longer = fit_ensemble(
        [config(), config(seed=1), config(epochs=3)], x, y, device="cpu", progress=False
    ).parameters
    assert (first - other).abs().max() > 0.1
    assert (first - longer).abs().max() > 1e-3


def network(seed):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Sequential(
            nn.Unflatten(1, (1, 6)),
            nn.Conv1d(1, 4, 3),
            nn.GroupNorm(2, 4),
            nn.Tanh(),
            nn.Flatten(),
            nn.Linear(16, 3),
        )


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_other_architectures_agree_with_one_at_a_time(optimizer):
    x, y = task(3)
    momentum = 0.9 if optimizer == "sgd" else 0.0
    configs = [
        config(
            widths=(), optimizer=optimizer, momentum=momentum, seed=seed, epochs=epochs, learning_rate=rate
        )
        for seed, epochs, rate in [(0, 1, 0.05), (1, 3, 0.01), (2, 2, 0.02)]
    ]
    modules = [network(seed) for seed in range(3)]
    before = [tensor.clone() for module in modules for tensor in module.state_dict().values()]
    ensemble = fit_module_ensemble(modules, configs, x, y, device="cpu", chunk=2, progress=False)
    after = [tensor for module in modules for tensor in module.state_dict().values()]
    assert all(torch.equal(*pair) for pair in zip(before, after, strict=True))
    for index, given in enumerate(configs):
        alone = fit(network(index), x, y, config=given, device="cpu", progress=False)
        assert torch.allclose(ensemble.logits(x)[index], alone.logits(x), atol=2e-5)
        assert torch.allclose(ensemble.model(index)(torch.tensor(x)), alone.logits(x), atol=2e-5)
    assert ensemble.margin_losses(x, y).shape == (3, len(y))
    assert ensemble.state()["tensors"]["5.bias"].shape == (3, 3)


def test_dropout_is_seeded_in_stacks_too():
    x, y = task(3)
    modules = [nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.5), nn.Linear(8, 3)) for _ in range(2)]
    configs = [config(widths=(), epochs=1)] * 2
    first, second = (
        fit_module_ensemble(modules, configs, x, y, device="cpu", progress=False).logits(x) for _ in range(2)
    )
    assert torch.equal(first, second)


def test_a_diverged_module_is_flagged_and_the_others_kept():
    x, y = task(3)
    configs = [config(widths=(), learning_rate=rate, epochs=8) for rate in (0.1, 1e38)]
    with pytest.warns(DivergenceWarning, match="1 of 2 models diverged: 1"):
        ensemble = fit_module_ensemble(
            [nn.Linear(6, 3) for _ in range(2)], configs, x, y, device="cpu", progress=False
        )
    assert torch.isfinite(ensemble.logits(x)[0]).all()


@pytest.mark.parametrize(
    ("modules", "changes", "message"),
    [
        ([], {}, "modules: expected one for each of 1 configs"),
        ([nn.Linear(6, 3)] * 2, {}, "modules: expected one for each of 1 configs, and at least one, got 2"),
        ([nn.Linear(6, 3)], {"clip_norm": 1.0}, "configs: expected clip_norm None"),
        ([nn.Sequential(nn.BatchNorm1d(6), nn.Linear(6, 3))], {}, "expected no batch norm"),
    ],
)
def test_modules_that_cannot_be_stacked_are_refused(modules, changes, message):
    x, y = task(3)
    with pytest.raises(ValueError, match=message):
        fit_module_ensemble(modules, [config(widths=(), **changes)], x, y, device="cpu", progress=False)


def test_modules_of_two_architectures_are_refused():
    x, y = task(3)
    with pytest.raises(ValueError, match="got other parameters at index 1"):
        fit_module_ensemble([nn.Linear(6, 3), nn.Linear(6, 4)], [config(widths=())] * 2, x, y, progress=False)
