"""The counter against formulas and against torch's own."""

import pytest
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention
from torch.utils.flop_counter import FlopCounterMode

from paperlib.models.images import classifier_for
from paperlib.running.cost.counter import Counter


def test_a_matrix_product_and_its_gradients():
    x, weights = torch.ones(5, 7), torch.ones(7, 3, requires_grad=True)
    with Counter() as counter:
        (x @ weights).sum().backward()
    assert counter.flops == 2 * (2 * 5 * 7 * 3)  # forward, and the gradient of the weights
    assert counter.by_kind == {"convolution": 0, "attention": 0, "product": counter.flops}


def test_a_convolution_in_16_bits():
    layer = nn.Conv2d(3, 8, 3, padding=1, bias=False)
    with Counter() as counter, torch.autocast("cpu", torch.bfloat16), torch.no_grad():
        layer(torch.ones(2, 3, 10, 10))
    assert counter.flops == counter.low_precision == 2 * (2 * 8 * 10 * 10) * (3 * 3 * 3)
    assert counter.by_kind["convolution"] == counter.flops


def test_attention_on_a_processor():
    q = torch.ones(2, 4, 16, 8, requires_grad=True)
    with Counter() as counter:
        out = scaled_dot_product_attention(q, q, q)
    assert counter.flops == 2 * (2 * 2 * 4 * 16 * 16 * 8)  # scores, and the sum of values
    with Counter() as backward:
        out.sum().backward()
    assert backward.flops >= 2 * counter.flops


@pytest.mark.parametrize("inference", [False, True])
def test_a_network_counts_as_torch_counts_it(inference: bool):
    images = torch.zeros(3, 3, 16, 16)
    network = classifier_for(images, "wrn-16-4", 10, seed=0)

    def step() -> None:
        with torch.inference_mode(inference):
            loss = network(images).sum()
        if not inference:
            loss.backward()

    with Counter() as ours:
        step()
    with FlopCounterMode(display=False) as theirs:
        step()
    assert ours.flops == theirs.get_total_flops() > 0


def test_memory_is_counted_until_it_is_freed():
    x = torch.zeros(1000)
    with Counter() as counter:
        y = x + 1
        view = y[:10]
        assert counter.held == max(counter.course) == 4000
        del y
        assert counter.held == 4000
        del view
        z = x.double()
        assert counter.held == max(counter.course) == 8000
    assert counter.moved == 4000 + 4000 + 4000 + 8000
    assert counter.operations == 2
    del z
    assert counter.held == 0
