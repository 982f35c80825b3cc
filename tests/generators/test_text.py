"""A generator of text: training with early stopping, sampling, and the check for copies."""

import copy
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from paperlib.generators import text
from paperlib.generators.text import (
    ChunkTraining,
    CopiedText,
    TextGenerator,
    continue_prompts,
    copied_share,
    copied_text,
    token_losses,
    train_on_chunks,
)
from paperlib.models.language import LanguageModelConfig, new_language_model
from paperlib.training.fitting import CheckpointError, TrainingDiverged
from tests.interrupts import stopping
from tests.refusals import refused

WORDS = 24


def small_model(seed=0):
    return new_language_model(LanguageModelConfig(width=16, heads=2, context=32, seed=seed), WORDS)


def counting(rows, length, seed=0):
    """Each token is the one before plus 1, from a random start: text that a small model can
    learn.
    """
    starts = np.random.default_rng(seed).integers(1, WORDS - 1, (rows, 1))
    return 1 + (starts + np.arange(length)) % (WORDS - 1)


FAST = ChunkTraining(epochs=6, batch_size=16, learning_rate=1e-2)
GENERATOR = TextGenerator(
    length=4, prompt=4, top_k=0, held_share=0.25, training=replace(FAST, epochs=12)
)


@pytest.fixture(scope="module")
def fitted():
    return GENERATOR.fit(counting(200, 8), base=small_model())


def test_generated_chunks_go_on_where_prompts_end_and_repeat_with_the_seed(fitted):
    chunks = fitted.sample(96, seed=1)
    assert chunks.shape == (96, 4)
    follows = np.mean(np.diff(chunks, axis=1) % (WORDS - 1) == 1)
    assert follows > 0.8
    np.testing.assert_array_equal(chunks, fitted.sample(96, seed=1))
    assert (chunks != fitted.sample(96, seed=2)).any()
    assert len({tuple(row) for row in fitted.prompts[:, :1]}) > 4
    assert fitted.sample(0, seed=0).shape == (0, 4)


def test_kept_keys_and_values_give_the_tokens_of_a_full_pass_and_top_k_the_likeliest_alone(fitted):
    """Greedy through the cache equals greedy by a full forward pass at every step."""
    settings = TextGenerator(length=4, prompt=4, top_k=1)
    prompts = fitted.prompts[:5]
    drawn = continue_prompts(fitted.model, prompts, settings, torch.Generator().manual_seed(0))
    rows = np.concatenate([np.zeros((5, 1), int), prompts], axis=1)
    for step in range(4):
        with torch.inference_mode():
            best = fitted.model(input_ids=torch.as_tensor(rows)).logits[:, -1].argmax(1).numpy()
        np.testing.assert_array_equal(best, drawn[:, step])
        rows = np.concatenate([rows, best[:, None]], axis=1)
    model, prompts = small_model(), np.ones((400, 1), dtype=int)
    coins = torch.Generator().manual_seed(0)
    ways = (TextGenerator(length=1, prompt=1, top_k=top_k) for top_k in (3, 0))
    few, all_of_them = (continue_prompts(model, prompts, one, coins) for one in ways)
    with torch.inference_mode():
        likeliest = model(input_ids=torch.tensor([[0, 1]])).logits[0, -1].topk(3).indices.tolist()
    assert set(few.ravel().tolist()) == set(likeliest)
    assert len(set(all_of_them.ravel().tolist())) > 10


def test_token_losses_are_those_of_the_model_itself(monkeypatch):
    model, chunks = small_model(), counting(3, 5)
    with torch.inference_mode():
        rows = torch.as_tensor(np.concatenate([np.zeros((3, 1), int), chunks], axis=1))
        logs = model(input_ids=rows).logits.log_softmax(-1)
    wanted = [[-float(logs[i, j, chunks[i, j]]) for j in range(5)] for i in range(3)]
    found = token_losses(model, chunks, batch_size=2)
    np.testing.assert_allclose(found, wanted, rtol=1e-4)
    monkeypatch.setattr(text, "_LARGE_VOCABULARY", 1)  # the loss along the last axis
    np.testing.assert_allclose(token_losses(model, chunks), found, rtol=1e-5)


def test_training_ends_early_and_keeps_the_best_epoch_and_those_asked_for():
    """Validation text of another kind gets worse from some epoch on."""
    rng = np.random.default_rng(0)
    train, other = counting(40, 6), rng.integers(1, WORDS, (40, 6))
    model = small_model()
    settings = replace(FAST, epochs=30, batch_size=8, patience=2)
    trained = train_on_chunks(model, train, training=settings, validation=other)
    assert len(trained.validation) == trained.best + 2 < 30
    assert token_losses(model, other).mean() == pytest.approx(min(trained.validation), rel=1e-5)
    assert trained.train[-1] < trained.train[0]
    without_validation = replace(FAST, epochs=4, patience=1)
    trained = train_on_chunks(small_model(), train, training=without_validation)
    assert len(trained.train) == trained.best == 4
    model, chunks = small_model(), counting(40, 6)
    trained = train_on_chunks(model, chunks, training=FAST, validation=chunks, keep=(1, 6))
    assert sorted(trained.kept) == [1, 6]
    model.load_state_dict(dict(trained.kept[1]))
    assert token_losses(model, chunks).mean() == pytest.approx(trained.validation[0], rel=1e-5)
    settings = (FAST, replace(FAST, last=2), replace(FAST, epochs=2))
    losses = [
        train_on_chunks(small_model(), counting(40, 6), training=one).train for one in settings
    ]
    assert losses[1] == losses[0][:2] != losses[2]


def test_copies_are_counted_and_chance_is_not_a_copy():
    real = counting(20, 8)
    assert copied_share(real, real, length=8) == 1.0
    assert copied_share(real[:, :3], real, length=3) == 1.0
    shuffled = np.random.default_rng(0).permutation(real.ravel()).reshape(20, 8)
    assert copied_share(shuffled, real, length=6) == 0.0
    assert copied_text(real, real, shuffled, length=8) == CopiedText(6, 1.0, 0.0)
    assert copied_text(real, real, shuffled, length=8).is_notable
    assert not copied_text(real, real, real, length=8).is_notable


def test_bad_input_is_named():
    refused("length", TextGenerator, length=0)
    refused("top_k", TextGenerator, top_k=-1)
    refused("temperature", TextGenerator, temperature=0.0)
    refused("held_share", TextGenerator, held_share=1.0)
    refused("learning_rate", ChunkTraining, learning_rate=math.nan)
    refused("batch_size", ChunkTraining, batch_size=0)
    refused("passages", TextGenerator(length=4, prompt=4).fit, counting(9, 7), base=small_model())
    refused("too few", TextGenerator(length=4, prompt=4).fit, counting(1, 8), base=small_model())
    refused("tokens from 0 to", token_losses, small_model(), [[WORDS]])
    refused("whole numbers", token_losses, small_model(), [[0.5]])
    refused("length", copied_share, [[1, 2]], [[1, 2]], length=3)
    refused("precision", ChunkTraining, precision="float8")
    refused("last", ChunkTraining, epochs=2, last=3)
    settings = ChunkTraining(epochs=8, learning_rate=1e30, batch_size=2)
    with pytest.raises(TrainingDiverged, match="learning_rate"):
        train_on_chunks(small_model(), counting(8, 4), training=settings)


def test_a_run_that_was_stopped_goes_on_to_the_same_weights(tmp_path, monkeypatch):
    chunks, path = counting(40, 6), tmp_path / "run.pt"
    options = {"training": FAST, "validation": counting(8, 6, seed=1), "keep": (2, 6)}

    def dropping():
        model = small_model()
        for layer in model.modules():
            if isinstance(layer, torch.nn.Dropout):
                layer.p = 0.3
        return model

    whole = dropping()
    expected = train_on_chunks(whole, chunks, **options)
    epochs = stopping(monkeypatch, text, "token_losses", 4)
    with pytest.raises(KeyboardInterrupt):
        train_on_chunks(dropping(), chunks, **options, checkpoint=path, between=0.0)
    again = dropping()
    found = train_on_chunks(again, chunks, **options, checkpoint=path)
    assert len(epochs) == 4 + 3
    assert (found.train, found.validation) == (expected.train, expected.validation)
    for one, other in zip(again.parameters(), whole.parameters(), strict=True):
        assert torch.equal(one, other)
    assert all(
        torch.equal(values, expected.kept[2][name]) for name, values in found.kept[2].items()
    )
    with pytest.raises(CheckpointError, match="another run"):
        train_on_chunks(dropping(), chunks[:30], **options, checkpoint=path)


def test_bfloat16_trains_nearly_as_float32_and_leaves_the_weights_in_float32():
    losses = {}
    for precision in ("float32", "bfloat16"):
        model, settings = small_model(), replace(FAST, precision=precision)
        losses[precision] = train_on_chunks(model, counting(80, 6), training=settings).train
        assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    assert losses["bfloat16"] != losses["float32"]
    np.testing.assert_allclose(losses["bfloat16"], losses["float32"], rtol=0.1)


def test_chunks_as_long_as_a_prompt_teach_and_prompt_and_the_base_is_not_touched():
    base = small_model()
    before = copy.deepcopy(base.state_dict())
    found = replace(GENERATOR, training=FAST).fit(counting(40, 4), base=base)
    np.testing.assert_array_equal(found.prompts, counting(40, 4)[30:])
    assert found.sample(8, seed=0).shape == (8, 4)
    assert all(torch.equal(values, before[name]) for name, values in base.state_dict().items())
