"""Neighbours are those of a slow reference, token by token, and differ where they should."""

from functools import partial

import numpy as np
import pytest
import torch
from scipy.stats import chisquare
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from transformers import GPT2LMHeadModel, PreTrainedTokenizerFast, RobertaForMaskedLM

from paperlib.attacks.language import neighbours, score_texts
from paperlib.attacks.language.neighbours import (
    causal_neighbours,
    masked_neighbours,
    random_neighbours,
)
from paperlib.models.language import train_tokenizer
from tests.attacks.tiny import placed, tiny
from tests.refusals import refused

CONTEXT = 48
TEXTS = ["b7a1f3c2", "the cat sat on the mat", "größe 5"]
CONTEXTS = ["the hash is ", "", "md5: "]


@pytest.fixture(scope="module")
def tokenizer():
    found = train_tokenizer([*TEXTS, *CONTEXTS], 270, context=CONTEXT)
    found.add_special_tokens({"mask_token": "<mask>"})
    return found


@pytest.fixture(scope="module")
def causal():
    """Its vocabulary is larger than the tokenizer's."""
    return tiny("gpt2", context=CONTEXT, vocabulary=300, layers=1, heads=2).eval()


@pytest.fixture(scope="module")
def masked():
    return tiny("roberta", context=CONTEXT + 2, vocabulary=300, layers=1, heads=2, seed=1).eval()


def slow_neighbours(predict, tokenizer, text, context, count):
    """Every place, every token of the vocabulary; ``predict`` gives the logits at one place."""
    ids, first = placed(tokenizer, text, context)
    found = []
    for place in range(first, len(ids)):
        p = predict(ids, place)[: len(tokenizer)].double().softmax(-1).numpy()
        for token in range(len(tokenizer)):
            if token != ids[place] and token not in tokenizer.all_special_ids:
                whole = tokenizer.decode([*ids[:place], token, *ids[place + 1 :]])
                found.append((p[token] / (1 - p[ids[place]]), whole))
    found.sort(key=lambda pair: -pair[0])
    best = dict.fromkeys(
        whole[len(context) :]
        for _, whole in found
        if whole.startswith(context) and whole != context + text and "\ufffd" not in whole
    )
    return list(best)[:count]


@pytest.mark.parametrize(
    ("contexts", "batch_size"), [(None, 1), (CONTEXTS, 5)], ids=["alone", "in context"]
)
@pytest.mark.parametrize("kind", ["causal", "masked"])
def test_neighbours_are_the_slow_reference(causal, masked, tokenizer, contexts, batch_size, kind):
    def predict(ids, place):
        hidden = [*ids[:place], tokenizer.mask_token_id, *ids[place + 1 :]]
        with torch.no_grad():
            if kind == "causal":
                return causal(torch.tensor([ids[:place]])).logits[0, -1]
            return masked(torch.tensor([hidden])).logits[0, place]

    find, model = (causal_neighbours, causal) if kind == "causal" else (masked_neighbours, masked)
    fast = find(model, tokenizer, TEXTS, count=12, contexts=contexts, batch_size=batch_size)
    for found, text, around in zip(fast, TEXTS, contexts or [""] * len(TEXTS), strict=True):
        assert found == slow_neighbours(predict, tokenizer, text, around, 12)


def test_long_texts_have_neighbours_and_neighbours_go_into_the_attack(causal, masked, tokenizer):
    text = "the cat sat on the mat 01 " * 10
    for make, model in ((causal_neighbours, causal), (masked_neighbours, masked)):
        found = make(model, tokenizer, [text], count=3)
        assert len(set(found[0])) == 3
        assert all(abs(len(new) - len(text)) < 20 and new != text for new in found[0])
    near = causal_neighbours(causal, tokenizer, TEXTS, count=4, contexts=CONTEXTS)
    scores = score_texts(causal, tokenizer, TEXTS, contexts=CONTEXTS, neighbours=near)
    # The best replacements by the model's own predictions are likelier than the texts of no
    # meaning.
    assert (scores["neighbourhood"] < 0).all()


def test_random_neighbours_differ_in_as_many_tokens_as_asked_drawn_as_in_the_corpus(tokenizer):
    draw = partial(random_neighbours, tokenizer, corpus=[f"{n:03x}" for n in range(0, 4096, 7)])
    (found,), (again,) = (draw(["b7a1f3c2"], count=40, replaced=2, seed=3) for _ in range(2))
    assert found == again
    assert len(set(found)) == 40
    (more,) = draw(["zzzzzzzz"], count=100, replaced=1)
    assert {sum(letter != "z" for letter in new) for new in more} == {1}  # its tokens are letters
    # The first token stays (nothing precedes it), the second is drawn.
    frequencies = np.zeros(300)
    frequencies[[10, 40, 77, 299]] = [0.1, 0.2, 0.3, 0.4]
    one, rng = neighbours.Window(0, (5, 40), 1, 0), np.random.default_rng(0)
    table = next(neighbours._draws(one, np.array([1]), frequencies, 20_000, 1, rng))
    assert (table[:, 0] == 5).all()
    values, counts = np.unique(table[:, 1], return_counts=True)
    assert values.tolist() == [10, 77, 299]
    assert chisquare(counts, 20_000 * np.array([0.1, 0.3, 0.4]) / 0.8).pvalue > 1e-6
    assert chisquare(counts, np.full(3, 20_000 / 3)).pvalue < 1e-6


def lower_casing():
    bare = Tokenizer(models.WordLevel({"the": 0, "cat": 1, "[UNK]": 2}, unk_token="[UNK]"))
    bare.normalizer, bare.pre_tokenizer = normalizers.Lowercase(), pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=bare, unk_token="[UNK]")


def test_bad_requests_are_named_and_a_model_that_returns_nan_is_refused(causal, tokenizer, masked):
    plain = train_tokenizer(TEXTS, 260, context=CONTEXT)
    refused("count: expected 1", causal_neighbours, causal, tokenizer, TEXTS, count=0)
    refused("put its texts in a list", causal_neighbours, causal, tokenizer, "text")
    refused("letter case and blanks", causal_neighbours, causal, lower_casing(), ["The cat"])
    refused("no mask token", masked_neighbours, causal, plain, TEXTS)
    refused("neighbours, expected 2000", causal_neighbours, causal, tokenizer, ["ab"], count=2_000)
    refused("corpus: expected two", random_neighbours, tokenizer, TEXTS, corpus=["aa"], count=2)
    refused("replaced: expected 1", random_neighbours, tokenizer, TEXTS, corpus=TEXTS, replaced=0)
    refused("expected 50", random_neighbours, tokenizer, ["b7"], corpus=["a1", "c2"], count=50)
    broken = GPT2LMHeadModel(causal.config)
    broken.transformer.wte.weight.data[:] = torch.nan
    refused("NaN", causal_neighbours, broken, tokenizer, TEXTS, count=2)
    hollow = RobertaForMaskedLM(masked.config)
    hollow.lm_head.bias.data[:] = torch.nan
    refused("NaN", masked_neighbours, hollow, tokenizer, TEXTS, count=2)
