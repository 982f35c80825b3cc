"""The paper's losses from logits: against the printed formulas, at extremes, and on bad input."""

import numpy as np
import pytest
import torch
from torch import nn

from paperlib.models import (
    MLP,
    binary_margin_loss,
    cross_entropy,
    margin_loss,
    multiclass_margin_loss,
)
from tests.refusals import refused


def test_losses_are_the_printed_formulas_also_where_probabilities_round_to_one():
    logits, labels = torch.linspace(-6, 6, 7).double(), np.array([0, 1, 0, 1, 0, 1, 1])
    f = torch.sigmoid(logits).numpy()
    printed = (1 - 2 * labels) * (np.log(f) - np.log(1 - f))
    assert np.allclose(binary_margin_loss(logits, labels), printed, rtol=1e-12)
    assert np.allclose(margin_loss(logits[:, None], labels), printed, rtol=1e-12)
    rng = np.random.default_rng(0)
    logits, labels = rng.normal(size=(3, 50, 4)), rng.integers(0, 4, 50)
    f = torch.softmax(torch.tensor(logits), -1).numpy()[:, np.arange(50), labels]
    printed = -(np.log(f) - np.log(1 - f))
    assert np.allclose(multiclass_margin_loss(logits, labels), printed, rtol=1e-10)
    assert np.allclose(cross_entropy(logits, labels), -np.log(f), rtol=1e-10)
    rng = np.random.default_rng(1)
    odds, labels = rng.normal(size=20), rng.integers(0, 2, 20)
    two = np.stack([np.zeros(20), odds], axis=1)
    assert np.allclose(multiclass_margin_loss(two, labels), binary_margin_loss(odds, labels))
    assert np.allclose(cross_entropy(two, labels), cross_entropy(odds[:, None], labels))
    # softmax(800) is 1.0 in floating point, and 1 - 1.0 has no logarithm; the logits still know.
    sure = multiclass_margin_loss(torch.tensor([[800.0, 0.0, 0.0]]), [0])
    assert sure.item() == pytest.approx(np.log(2) - 800)
    assert (
        binary_margin_loss([800.0], [0]).item()
        == cross_entropy([[800.0, 0.0]], [1]).item()
        == 800.0
    )


def test_leading_axes_are_kept():
    for loss, given, shape in (
        (margin_loss, (5, 3, 1), (5, 3)),
        (margin_loss, (5, 3, 4), (5, 3)),
        (cross_entropy, (2, 5, 3, 4), (2, 5, 3)),
        (binary_margin_loss, (5, 3), (5, 3)),
        (binary_margin_loss, (5, 1), (5, 1)),
        (margin_loss, (5, 1, 1), (5, 1)),
    ):
        assert loss(torch.zeros(given), [0, 1, 1][: shape[-1]]).shape == shape


@pytest.mark.parametrize("loss", [margin_loss, cross_entropy])
@pytest.mark.parametrize(
    ("logits", "labels", "message"),
    [
        (torch.zeros(3, 1), [0, 1], "labels: expected 3, one for each example, got 2"),
        (
            torch.zeros(3, 1),
            [0, 1, 2],
            "labels: expected whole numbers from 0 to 1, got 2 at index 2",
        ),
        (torch.zeros(3, 4), [0, 1, 4], "from 0 to 3, got 4 at index 2"),
        (torch.zeros(3, 4), [0, 1.5, -1], r"got 1.5 at index 1 \(2 of 3 are outside\)"),
        (torch.zeros(3, 4), [[0], [1], [2]], r"expected a 1-D array, got shape \(3, 1\)"),
    ],
)
def test_labels_that_do_not_fit_are_refused(loss, logits, labels, message):
    refused(message, loss, logits, labels)
    refused("2 classes or more", multiclass_margin_loss, [[1.0], [2.0]], [0, 0])


def test_mlp_is_initialised_like_linear_layers():
    """Uniform within 1/sqrt(inputs), weights and biases alike."""
    mlp = MLP((400, 100, 50, 1))
    drawn = mlp.module(mlp.initial(torch.Generator().manual_seed(0)))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        layers = nn.Linear(400, 100), nn.ReLU(), nn.Linear(100, 50), nn.ReLU(), nn.Linear(50, 1)
        reference = nn.Sequential(*layers)
    for ours, theirs in zip(
        drawn.state_dict().values(), reference.state_dict().values(), strict=True
    ):
        assert ours.shape == theirs.shape
        if ours.numel() >= 50:
            assert float(ours.abs().max() / theirs.abs().max()) == pytest.approx(1, rel=0.05)
            assert float(ours.std() / theirs.std()) == pytest.approx(1, rel=0.25)


def test_mlp_views_share_memory_and_round_trip():
    mlp = MLP((3, 4, 2))
    stacked = torch.arange(2.0 * mlp.size).view(2, -1)
    mlp.views(stacked)[0][0][1] += 1000
    assert (stacked[0] < 100).all()
    assert (stacked[1, :12] >= 1000).all()
    assert torch.equal(mlp.flat(mlp.module(stacked[1])), stacked[1])
    x = torch.randn(7, 3)
    by_hand = x
    for index, (weights, biases) in enumerate(mlp.views(stacked)):
        by_hand = by_hand @ weights[1] + biases[1]
        by_hand = by_hand.relu() if index == 0 else by_hand
    assert torch.allclose(mlp.module(stacked[1])(x), by_hand)

    for widths in ((), (3,), (3, 0, 1), (3, -1)):
        refused("widths: expected inputs, hidden", MLP, widths)


def test_cross_entropy_refuses_logits_without_an_axis_of_classes():
    for logits in ([1.0, 2.0], 1.0):
        refused(r"logits: expected shape \(..., n, classes\)", cross_entropy, logits, [1, 0])
