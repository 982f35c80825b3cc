"""Language models are trained to equal weights again, interrupted or not."""

import numpy as np
import pytest
import torch

from paperlib.models.language import LanguageModelConfig, new_language_model, train_tokenizer
from paperlib.training import TrainingConfig, fitting
from paperlib.training.fitting import CheckpointError, TrainingDiverged
from paperlib.training.language import fit_language_model
from tests.interrupts import stopping
from tests.refusals import refused

DOCUMENTS = [
    [1, 5, 9, 13, 17, 21],
    [2, 6, 10, 14, 18, 22],
    [3, 7, 11, 15],
    [4, 8, 12, 16, 20, 24],
] * 3
SHAPE = LanguageModelConfig(width=16, heads=2, context=16)


def config(**options):
    usual = {"epochs": 3, "batch_size": 4, "optimizer": "adam", "learning_rate": 0.01}
    return TrainingConfig(**usual | options)


def weights(model):
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


@pytest.mark.parametrize("private", [{}, {"clip_norm": 1.0, "noise_multiplier": 0.5}])
def test_training_is_repeatable_and_leaves_the_global_state(private):
    state = torch.random.get_rng_state()
    models = [new_language_model(SHAPE, 32) for _ in range(2)]
    runs = [
        fit_language_model(m, DOCUMENTS, config=config(**private), progress=False) for m in models
    ]
    torch.testing.assert_close(weights(models[0]), weights(models[1]), rtol=0, atol=0)
    assert runs[0].losses == runs[1].losses
    assert not models[0].training
    assert torch.equal(state, torch.random.get_rng_state())


@pytest.mark.parametrize("private", [False, True])
def test_a_training_that_was_stopped_goes_on_to_the_same_weights(tmp_path, monkeypatch, private):
    options = config(epochs=5, **({"clip_norm": 1.0, "noise_multiplier": 1.0} if private else {}))
    path, whole = tmp_path / "run.pt", with_dropout()
    expected = fit_language_model(whole, DOCUMENTS, config=options, progress=False)
    saved = stopping(monkeypatch, fitting, "save_checkpoint", 4)
    resumable = {"config": options, "progress": False, "checkpoint": path, "between": 0.0}
    with pytest.raises(KeyboardInterrupt):
        fit_language_model(with_dropout(), DOCUMENTS, **resumable)
    again = with_dropout()
    found = fit_language_model(again, DOCUMENTS, **resumable)
    assert len(saved) == 3 + 1 + 2
    assert found.losses == expected.losses
    assert torch.equal(weights(again), weights(whole))
    with pytest.raises(CheckpointError, match="another run"):
        fit_language_model(with_dropout(), DOCUMENTS[:-1], **resumable)


def with_dropout():
    model = new_language_model(SHAPE, 32)
    for layer in model.modules():
        if isinstance(layer, torch.nn.Dropout):
            layer.p = 0.2
    return model


def test_the_loss_falls_and_a_batch_may_be_empty():
    model = new_language_model(SHAPE, 32)
    fitted = fit_language_model(model, DOCUMENTS, config=config(epochs=20), progress=False)
    assert fitted.losses[-1] < 0.5 * fitted.losses[0]
    few = config(epochs=2, batch_size=1, clip_norm=1.0, noise_multiplier=0.1)
    fitted = fit_language_model(
        new_language_model(SHAPE, 32), DOCUMENTS, config=few, progress=False
    )
    assert np.isfinite(fitted.losses).all()


def test_bad_input_and_divergence_are_named():
    for documents, options, error, message in (
        ([], {}, ValueError, "at least one"),
        ([[1, 2], [3]], {}, ValueError, "2 tokens or more, got 1 at index 1"),
        (DOCUMENTS, {"clip_norm": 1.0, "microbatches": 1}, ValueError, "microbatches None"),
        (
            DOCUMENTS,
            {"optimizer": "sgd", "learning_rate": 1e30},
            TrainingDiverged,
            "lower learning_rate",
        ),
    ):
        model, given = new_language_model(SHAPE, 32), config(**options)
        refused(
            message, fit_language_model, model, documents, config=given, progress=False, error=error
        )


def test_a_tokenizer_encodes_any_text_and_gives_it_back():
    tokenizer = train_tokenizer(["to be or not to be"], 260, context=16)
    text = "naïve 日本 \t deadbeef"
    assert tokenizer.decode(tokenizer(text)["input_ids"]) == text
    refused("257", train_tokenizer, ["a"], 256, context=16)
    refused("width", LanguageModelConfig, width=10, heads=4)
