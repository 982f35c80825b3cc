"""Ghost clipping adds exactly the clipped gradients of the documents, for GPT-NeoX and for
GPT-2.
"""

import math

import numpy as np
import pytest
import torch
from opacus.optimizers import DPOptimizer
from torch import nn
from torch.utils.checkpoint import checkpoint
from transformers import GPT2Config, GPT2LMHeadModel

from paperlib.models.language import LanguageModelConfig, new_language_model
from paperlib.training import TrainingConfig
from paperlib.training.batches import PoissonBatches
from paperlib.training.language import (
    add_clipped_gradients,
    check_layers,
    clipping,
    document_losses,
    fit_language_model,
    fitting,
)
from tests.refusals import refused

VOCABULARY = 64
GONE = -100
CLIPPED = TrainingConfig(
    epochs=2,
    batch_size=3,
    optimizer="adam",
    learning_rate=0.01,
    clip_norm=0.5,
    noise_multiplier=0.7,
)


def gpt_neox():
    return new_language_model(
        LanguageModelConfig(width=16, heads=2, context=32), VOCABULARY
    ).train()


def gpt2(**options):
    """GPT-2: Conv1D layers, one row of positions for all documents, the output tied to the
    embedding.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        shape = {
            "vocab_size": VOCABULARY,
            "n_positions": 32,
            "n_embd": 16,
            "n_layer": 2,
            "n_head": 2,
        }
        calm = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
        ends = {"bos_token_id": 0, "eos_token_id": 0}
        return GPT2LMHeadModel(GPT2Config(**shape, **calm, **ends, **options)).train()


def documents(length=12):
    """Five documents, two of them shorter, one that repeats a token (all its rows of the embedding
    meet).
    """
    tokens = torch.randint(0, VOCABULARY, (5, length), generator=torch.Generator().manual_seed(1))
    tokens[0, : length // 2] = 7
    tokens[1, 2 * length // 3 :] = GONE
    tokens[2, 3:] = GONE
    return tokens


def texts():
    return [row[row != GONE].tolist() for row in documents()]


def weights(model):
    return nn.utils.parameters_to_vector(model.parameters()).detach()


def slow_gradients(model, tokens):
    """One backward per document, without padding: for each document its parameters' gradients."""
    parameters = list(model.parameters())
    found = []
    for row in tokens:
        loss = document_losses(model, row[row != GONE][None]).sum()
        found.append(torch.autograd.grad(loss, parameters))
    return found


def slow_sum(model, tokens, clip_norm=None):
    """Sum of gradients clipped one by one, and the clipping norm: the median norm if none is
    given.
    """
    found = slow_gradients(model, tokens)
    norms = torch.stack([torch.cat([one.flatten() for one in each]).norm() for each in found])
    clip_norm = clip_norm or float(norms.median())
    factors = (clip_norm / (norms + 1e-6)).clamp(max=1)
    assert 0 < (factors < 1).sum() < len(norms)  # some are clipped and some are not
    totals = [
        sum(f * one for f, one in zip(factors, each, strict=True))
        for each in zip(*found, strict=True)
    ]
    return totals, clip_norm


def ghost_sum(model, tokens, clip_norm, **options):
    model.zero_grad()
    losses = add_clipped_gradients(
        model, lambda: document_losses(model, tokens), len(tokens), clip_norm=clip_norm, **options
    )
    return [parameter.grad for parameter in model.parameters()], losses


def error(found, truth):
    """Largest relative error over parameters."""
    return max(float((a - b).norm() / b.norm()) for a, b in zip(found, truth, strict=True))


MODELS = {
    "gpt_neox": gpt_neox,
    "gpt2": gpt2,
    "gpt2_untied": lambda: gpt2(tie_word_embeddings=False),
}


@pytest.mark.parametrize(
    "length", [6, 24]
)  # 2 tokens^2 below and above the size of the layers' weights
@pytest.mark.parametrize("name", MODELS)
def test_the_sum_is_that_of_a_loop_over_documents(name, length):
    model, tokens = MODELS[name](), documents(length)
    truth, clip_norm = slow_sum(model, tokens)
    found, losses = ghost_sum(model, tokens, clip_norm, check=True)
    assert error(found, truth) < 1e-5
    torch.testing.assert_close(losses, document_losses(model, tokens).detach())


def test_without_the_cross_term_of_the_tied_weight_the_sum_is_wrong(monkeypatch):
    """The broken twin: norms of the two uses of one weight added up as if they were two weights."""
    model, tokens = gpt2(), documents()
    truth, clip_norm = slow_sum(model, tokens)
    right = clipping._square_norms
    apart = lambda uses: sum(right([use]) for use in uses)  # noqa: E731
    monkeypatch.setattr(clipping, "_square_norms", apart)
    found, _ = ghost_sum(
        model, tokens, clip_norm, check=True
    )  # the sum of unclipped gradients is right
    assert error(found, truth) > 1e-3


def test_positions_of_all_documents_in_one_row_would_be_wrong(monkeypatch):
    """The broken twin: the sum over documents taken for the gradient of each."""
    model, tokens = gpt2(), documents()
    truth, clip_norm = slow_sum(model, tokens)
    model.transformer.wpe.register_forward_hook(lambda _, given, output: output)
    found, _ = ghost_sum(model, tokens, clip_norm)
    assert error(found, truth) < 1e-5

    def summed(gradients, use, delta, add=clipping._add_use):
        if use.layer is model.transformer.wpe:
            delta = delta.sum(0, keepdim=True).expand_as(delta) / len(delta)
        add(gradients, use, delta)

    monkeypatch.setattr(clipping, "_add_use", summed)
    found, _ = ghost_sum(model, tokens, clip_norm, check=True)
    assert error(found, truth) > 1e-3


def test_padding_frozen_and_twice_called_layers():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(8, 4, padding_idx=0)
            self.layer = nn.Linear(4, 4)
            self.frozen = nn.Linear(4, 4).requires_grad_(False)
            self.norm = nn.LayerNorm(4)

        def forward(self, tokens):
            hidden = self.norm(self.layer(torch.tanh(self.layer(self.embedding(tokens)))))
            return self.frozen(hidden).square().mean((1, 2))

    torch.manual_seed(0)
    model = Twice()
    tokens = torch.tensor([[1, 2, 0, 0], [3, 3, 3, 4]])
    parameters = [p for p in model.parameters() if p.requires_grad]
    truth = [torch.autograd.grad(model(row[None]).sum(), parameters) for row in tokens]
    norms = [math.sqrt(sum(float(one.square().sum()) for one in each)) for each in truth]
    clip_norm = 0.8 * min(norms)
    clipped = [[clip_norm / n * one for one in each] for n, each in zip(norms, truth, strict=True)]
    wanted = [sum(both) for both in zip(*clipped, strict=True)]
    add_clipped_gradients(model, lambda: model(tokens), 2, clip_norm=clip_norm, check=True)
    assert error([p.grad for p in parameters], wanted) < 1e-4  # 1e-6 is added to each norm
    assert model.frozen.weight.grad is None


class _OwnWeight(nn.Module):
    """Uses its head's weight past the head."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, 4)
        self.head = nn.Linear(4, VOCABULARY)

    def losses(self, tokens):
        hidden = self.embedding(tokens)
        return (self.head(hidden) + hidden @ self.head.weight.T).square().mean((1, 2))


def test_a_weight_used_past_its_layer_and_layers_that_mix_documents_or_are_unknown_are_refused():
    model, tokens = _OwnWeight(), documents().clamp(min=0)
    check_layers(model)
    with pytest.raises(
        ValueError, match=r"head\.weight takes part in the loss other than through its layer"
    ):
        add_clipped_gradients(
            model, lambda: model.losses(tokens), len(tokens), clip_norm=1.0, check=True
        )
    layer, given = nn.Linear(4, 4), torch.ones(2, 3, 4, requires_grad=True)
    losses = lambda: checkpoint(layer, given, use_reentrant=True).sum((1, 2))  # noqa: E731
    refused("gradient checkpointing", add_clipped_gradients, layer, losses, 2, clip_norm=1.0)
    model = nn.Sequential(nn.Flatten(0, 1), layer)
    with pytest.raises(ValueError, match="keep documents apart, first axis 2"):
        add_clipped_gradients(model, lambda: model(torch.ones(2, 3, 4)).sum(1), 2, clip_norm=1.0)
    refused("none that require", check_layers, nn.Linear(2, 2).requires_grad_(False))
    for layer, message in (
        (nn.Conv1d(2, 2, 1), "1 is a Conv1d"),
        (nn.Embedding(3, 2, max_norm=1.0), "max_norm"),
        (nn.LayerNorm((3, 2)), "several axes"),
        (nn.BatchNorm1d(2, affine=False), "mixes documents"),
    ):
        refused(message, check_layers, nn.Sequential(nn.Linear(2, 2), layer))
        model = gpt2()
        model.transformer.ln_f = layer
        with pytest.raises(ValueError, match=r"transformer\.ln_f is a"):
            fit_language_model(model, [[1, 2, 3]] * 3, config=CLIPPED, progress=False)


def test_one_step_of_dp_sgd_adds_noise_of_the_stated_size():
    model = gpt_neox()
    start = weights(model)
    options = TrainingConfig(
        epochs=1, batch_size=2, learning_rate=1.0, clip_norm=1e-6, noise_multiplier=1e6
    )
    fit_language_model(model, documents()[3:].tolist(), config=options, progress=False)
    moved = weights(model) - start  # noise of deviation 1 on the sum, halved by the mean
    assert float(moved.std()) == pytest.approx(0.5, rel=5 / math.sqrt(2 * len(moved)))


@pytest.mark.parametrize("name", MODELS)
def test_noise_is_that_of_opacus_with_gradients_formed(name, monkeypatch):
    """The same weights as from a loop over documents and Opacus's optimizer for formed
    gradients.
    """
    fast, slow = MODELS[name](), MODELS[name]()
    fitted = fit_language_model(fast, texts() * 2, config=CLIPPED, progress=False)
    monkeypatch.setattr("opacus.optimizers.DPOptimizerFastGradientClipping", DPOptimizer)
    monkeypatch.setattr(fitting, "_add_batch", _formed)
    again = fit_language_model(slow, texts() * 2, config=CLIPPED, progress=False)
    torch.testing.assert_close(weights(fast), weights(slow), rtol=1e-4, atol=1e-5)
    assert fitted.losses == pytest.approx(again.losses, rel=1e-5)


def _formed(model, batch, *, clip_norm, check):
    parameters = list(model.parameters())
    found = slow_gradients(model, batch)
    for number, parameter in enumerate(parameters):
        empty = torch.zeros(0, *parameter.shape)
        parameter.grad_sample = torch.stack([each[number] for each in found]) if found else empty
    return sum(
        float(document_losses(model, row[row != GONE][None]).detach().sum()) for row in batch
    )


def test_a_step_without_documents_is_noise_alone(monkeypatch):
    seen = []
    monkeypatch.setattr(
        fitting, "_add_batch", lambda model, batch, **_: seen.append(len(batch)) or 0.0
    )
    rare = TrainingConfig(
        epochs=1, batch_size=1, learning_rate=1.0, clip_norm=0.25, noise_multiplier=2.0
    )
    model = gpt_neox()
    start = weights(model)
    empty = PoissonBatches(np.empty(0, np.int64), np.zeros(2, np.int64))
    monkeypatch.setattr("paperlib.training.fitting.poisson_batches", lambda *_, **__: empty)
    fit_language_model(model, [[1, 2, 3]], config=rare, progress=False)
    moved = weights(model) - start
    assert seen == [0]
    assert float(moved.std()) == pytest.approx(0.5, rel=5 / math.sqrt(2 * len(moved)))


def test_a_large_batch_is_taken_in_parts(monkeypatch):
    models = [gpt2(), gpt2()]
    everyone = TrainingConfig(epochs=1, batch_size=5, learning_rate=0.1, clip_norm=0.5)
    fit_language_model(models[0], texts(), config=everyone, progress=False)
    monkeypatch.setattr(fitting, "_TOKENS_AT_ONCE", 25)
    fit_language_model(models[1], texts(), config=everyone, progress=False)
    torch.testing.assert_close(*map(weights, models), rtol=1e-5, atol=1e-6)
