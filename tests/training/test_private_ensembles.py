"""Stacked DP-SGD: norms, clipping, sampling, noise and microbatches against slower, independent
ways.
"""

from functools import partial

import numpy as np
import pytest
import torch
from opacus import GradSampleModule
from opacus.optimizers import DPOptimizer
from scipy.stats import chi2, kstest
from torch.func import functional_call, grad, vmap
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from paperlib.models import MLP
from paperlib.training import TrainingConfig, fit_dp, fit_ensemble
from paperlib.training.batches import NoiseStreams, generator, poisson_batches
from paperlib.training.fitting import training_loss
from paperlib.training.private import ghost

stacked = partial(fit_ensemble, device="cpu", progress=False)
formed = partial(fit_dp, device="cpu", progress=False)
SHAPES = pytest.mark.parametrize("widths", [(6, 8, 5, 1), (6, 8, 3), (4, 3)], ids=str)


def task(widths, n=60):
    rng = np.random.default_rng(sum(widths))
    labels = rng.integers(0, max(2, widths[-1]), n)
    return rng.normal(size=(n, widths[0])).astype(np.float32), labels


def config(**changes):
    values = {
        "epochs": 2,
        "batch_size": 8,
        "learning_rate": 0.05,
        "momentum": 0.9,
        "clip_norm": 0.3,
    }
    return TrainingConfig(**{**values, **changes})


def one_loss(module, parameters, record, label):
    logits = functional_call(module, parameters, (record[None],))
    if logits.shape[-1] == 1:
        return binary_cross_entropy_with_logits(logits[0, 0], label.to(logits.dtype))
    return cross_entropy(logits, label[None])


def explicit_gradients(module, x, y):
    """Flat gradient of every example, (n, size), in the order of ``module.parameters()``."""
    parameters = dict(module.named_parameters())
    found = vmap(grad(lambda p, a, b: one_loss(module, p, a, b)), in_dims=(None, 0, 0))(
        parameters, x, y
    )
    return torch.cat([tensor.flatten(1) for tensor in found.values()], dim=1).detach()


@SHAPES
@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("groups", [None, 1, 3, 6], ids=lambda groups: f"groups={groups}")
def test_ghost_norms_are_those_of_explicit_gradients(widths, groups, activation):
    """Six records in groups of 6, 2 and 1 take both the pairwise and the weight-shaped product."""
    mlp = MLP(widths, activation)
    models = torch.stack(
        [mlp.initial(torch.Generator().manual_seed(seed)) for seed in range(3)]
    ).double()
    x, y = (torch.tensor(values) for values in task(widths, n=18))
    x, y = x.double().unflatten(0, (3, 6)), y.unflatten(0, (3, 6))
    layers = mlp.views(models)
    inputs, logits = ghost.forward(layers, x, activation)
    deltas = ghost.derivatives(layers, inputs, ghost.loss_derivative(logits, y), activation)
    squares = ghost.square_norms(inputs, deltas, groups)
    for at in range(3):
        gradients = explicit_gradients(mlp.module(models[at].float()).double(), x[at], y[at])
        if groups is not None:
            gradients = gradients.unflatten(0, (groups, -1)).sum(1)
        assert torch.allclose(squares[at], gradients.square().sum(1), rtol=1e-6, atol=1e-12)


def test_clipping_keeps_small_gradients_and_bounds_large_ones():
    factors = ghost.clip_factors(torch.tensor([[0.0, 0.25, 4.0, 1e12]]), torch.tensor([[1.0]]))
    assert factors[0, :2].tolist() == [1.0, 1.0]
    norms = factors[0] * torch.tensor([0.0, 0.5, 2.0, 1e6])
    assert (norms <= 1.0).all()
    assert norms[2:].tolist() == pytest.approx([1.0, 1.0], abs=1e-5)


@SHAPES
def test_one_noiseless_step_is_that_of_opacus(widths):
    """The same batch, clipped so that some gradients are cut and some are not."""
    x, y = task(widths, n=12)
    given = config(widths=widths, epochs=1, batch_size=12, clip_norm=0.5, momentum=0.0)
    ours = stacked([given], x, y).parameters[0]
    mlp = MLP(widths)
    start = mlp.initial(generator(0, "initial"))
    module = GradSampleModule(mlp.module(start), loss_reduction="mean")
    silent = {"noise_multiplier": 0.0, "max_grad_norm": 0.5, "expected_batch_size": 12}
    optimizer = DPOptimizer(torch.optim.SGD(module.parameters(), lr=0.05), **silent)
    training_loss(module(torch.tensor(x).requires_grad_()), torch.tensor(y)).backward()
    optimizer.step()
    theirs = mlp.flat(module)
    assert (ours - theirs).abs().max() < 1e-6
    assert (start - theirs).abs().max() > 1e-3


@SHAPES
@pytest.mark.parametrize(
    ("optimizer", "activation"), [("sgd", "relu"), ("adam", "relu"), ("sgd", "tanh")]
)
def test_noiseless_training_is_that_of_opacus(widths, optimizer, activation):
    """Whole epochs of Poisson batches of changing size, four models of different settings."""
    x, y = task(widths)
    momentum = 0.9 if optimizer == "sgd" else 0.0
    shared = {
        "widths": widths,
        "activation": activation,
        "optimizer": optimizer,
        "momentum": momentum,
    }
    settings = [(1, 0.1, 0.05), (3, 1.0, 0.02), (2, 100.0, 0.02), (3, 0.3, 0.05)]
    names = ("epochs", "clip_norm", "learning_rate")
    own = [dict(zip(names, values, strict=True)) for values in settings]
    configs = [config(seed=seed, **shared, **one) for seed, one in enumerate(own)]
    ensemble = stacked(configs, x, y, chunk=3)
    for ours, given in zip(ensemble.parameters, configs, strict=True):
        fitted = formed(widths, x, y, config=given)
        assert torch.allclose(ours, MLP(widths).flat(fitted.module), atol=5e-6), given


def test_noise_has_the_scale_of_opacus():
    """With a rate of 1 and no momentum a step is minus the noisy gradient: its spread is sigma C /
    B.

    Both spreads are compared to the exact one by the chi-square law, so that neither can be off by
    2 %.
    """
    widths, sigma, clip = (200, 150, 1), 3.0, 0.2
    x, y = task(widths, n=64)
    still = {"widths": widths, "epochs": 1, "batch_size": 64, "momentum": 0.0, "learning_rate": 1}
    noisy, silent = (
        config(clip_norm=clip, noise_multiplier=noise, **still) for noise in (sigma, 0.0)
    )
    mlp = MLP(widths)
    ours = stacked([noisy, silent], x, y).parameters
    theirs = [mlp.flat(formed(widths, x, y, config=c).module) for c in (noisy, silent)]
    for with_noise, without in (ours, theirs):
        noise = ((with_noise - without) * 64 / (sigma * clip)).double().numpy()
        low, high = chi2.ppf([5e-7, 1 - 5e-7], noise.size) / noise.size
        assert low < noise.var() < high
        assert not low < noise.var() * 1.1 < high  # the test sees a scale that is off by 5 %
        assert kstest(noise, "norm").pvalue > 1e-6


def test_momentum_comes_after_the_noise():
    """A second step keeps 0.9 of the first step's noise: the two steps' noises add to (1.9, 1)."""
    widths, n = (150, 100, 1), 4
    x, y = np.zeros((n, 150), np.float32), np.array([0, 1, 0, 1])
    given = config(
        widths=widths, batch_size=n, clip_norm=1e-4, noise_multiplier=1e4, learning_rate=1
    )
    end = stacked([given], x, y).parameters[0]
    moved = ((MLP(widths).initial(generator(0, "initial")) - end) * n).double()
    first, second = (_first_noise(epoch, MLP(widths).size) for epoch in (0, 1))
    assert torch.allclose(moved, (1.9 * first + second).double(), atol=1e-3)


def _first_noise(epoch, size):
    streams = NoiseStreams([0], size, torch.device("cpu"))
    streams.start(epoch, 1)
    return streams.next()[0].clone()


def test_noise_of_a_model_does_not_depend_on_its_neighbours():
    widths = (6, 8, 1)
    x, y = task(widths)
    configs = [config(widths=widths, seed=seed, noise_multiplier=1.0) for seed in range(5)]
    together = stacked(configs, x, y).parameters
    alone = torch.cat([stacked([c], x, y).parameters for c in configs])
    assert torch.allclose(together, alone, atol=1e-5)
    assert (together[0] - together[1]).abs().max() > 0.1
    again = stacked(configs, x, y, threads=2, chunk=2).parameters
    assert torch.allclose(together, again, atol=1e-5)


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("widths", [(6, 8, 5, 1), (6, 8, 3)], ids=["binary", "many"])
def test_microbatches_clip_the_average_of_each_group(groups, widths):
    """Rebuilt step by step from explicit gradients: deal, average, clip, average, move."""
    x, y = task(widths)
    given = config(widths=widths, microbatches=groups, epochs=1, momentum=0.0, clip_norm=0.2)
    ours = stacked([given, config(widths=widths, microbatches=groups, seed=9)], x, y)
    mlp = MLP(widths)
    module = mlp.module(mlp.initial(generator(0, "initial")))
    drawn = poisson_batches(0, 0, 60, rate=8 / 60, steps=8, shuffle=True)
    for step in range(8):
        total = torch.zeros(mlp.size)
        for group in range(groups):
            records = torch.from_numpy(drawn.batch(step)[group::groups])
            if len(records):
                mean = explicit_gradients(
                    module, torch.tensor(x)[records], torch.tensor(y)[records]
                ).mean(0)
                total = total + mean * min(1.0, 0.2 / (float(mean.norm()) + 1e-6))
        with torch.no_grad():
            sizes = [parameter.numel() for parameter in module.parameters()]
            for parameter, part in zip(module.parameters(), total.split(sizes), strict=True):
                parameter -= 0.05 * part.view_as(parameter) / groups
    assert torch.allclose(ours.parameters[0], mlp.flat(module), atol=2e-6)


def test_as_many_microbatches_as_records_clip_each_record_and_an_empty_batch_adds_noise_alone():
    x, y = task((6, 8, 1))
    each, many = (config(widths=(6, 8, 1), microbatches=count) for count in (None, 8))
    first, second = stacked([each, many], x, y).parameters
    assert torch.allclose(first, second, atol=1e-6)
    assert many.record_level is False  # without noise
    assert config(microbatches=8, noise_multiplier=1.0).record_level
    assert not config(microbatches=7, noise_multiplier=1.0).record_level
    # One record drawn at 1 in 60: a third of the steps are empty, and training goes on.
    given = config(
        widths=(6, 8, 1), batch_size=1, epochs=1, noise_multiplier=0.1, microbatches=None
    )
    for trained in (
        stacked([given], x, y).logits(x)[0],
        formed((6, 8, 1), x, y, config=given).logits(x),
    ):
        assert torch.isfinite(trained).all()


@pytest.mark.parametrize("shuffle", [False, True])
def test_poisson_batches_are_independent_fair_draws(shuffle):
    """Sizes are binomial, each record comes equally often, and no batch holds a record twice."""
    examples, rate, steps = 50, 0.1, 20_000
    batches = poisson_batches(0, 0, examples, rate=rate, steps=steps, shuffle=shuffle)
    taken = np.zeros((steps, examples), dtype=int)
    np.add.at(taken, (np.repeat(np.arange(steps), np.diff(batches.starts)), batches.records), 1)
    assert taken.max() == 1
    limit = chi2.isf(1e-6, examples)
    spread = steps * rate * (1 - rate)
    assert ((taken.sum(0) - steps * rate) ** 2).sum() / spread < limit
    sizes = taken.sum(1)
    assert abs(sizes.var() / (examples * rate * (1 - rate)) - 1) < 5 * np.sqrt(2 / steps)
    together = (taken[:, 0] & taken[:, 1]).sum()
    assert abs(together - steps * rate**2) < 5 * np.sqrt(steps) * rate
    follows = (taken[:-1, 0] & taken[1:, 0]).sum()
    assert abs(follows - steps * rate**2) < 5 * np.sqrt(steps) * rate


def test_no_drawn_record_is_left_out_however_long_the_batch():
    """Batches far above the expected size, and empty ones, are padded and stepped exactly."""
    batches = poisson_batches(3, 1, 7, rate=0.2, steps=400)
    longest = np.diff(batches.starts).max()
    assert longest >= 4  # 1.4 expected
    table = batches.padded(longest)
    with pytest.raises(ValueError, match="cannot assign"):
        batches.padded(longest - 1)
    assert np.diff(batches.starts).min() == 0
    for step in range(400):
        assert table[step][table[step] >= 0].tolist() == batches.batch(step).tolist()
    everything = poisson_batches(0, 0, 5, rate=1.0, steps=3)
    assert everything.padded(5).tolist() == [[0, 1, 2, 3, 4]] * 3
