"""An ensemble trains the models that one-at-a-time training does."""

import numpy as np
import pytest
import torch

from paperlib.models import MLP
from paperlib.training import TrainingConfig, fit, fit_ensemble

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
