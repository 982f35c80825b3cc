"""One pass for five attacks against a pass for each, and a context computed once against once per text."""

import pytest

from paperlib.attacks.language import score_texts
from paperlib.generators.identifiers import generate_identifiers
from paperlib.models.language import LanguageModelConfig, new_language_model, train_tokenizer
from paperlib.papers.natural_identifiers.planted import PlantedConfig, planted

ATTACKS = ["loss", "min_k", "min_k_pp", "zlib", "hinge"]


@pytest.fixture(scope="module")
def task():
    """Model, tokenizer, texts and contexts: 4 identifiers of 32 candidates, each behind 40 words."""
    corpus = planted(PlantedConfig(identifiers=2, held_out=4, context_words=40))
    shape = LanguageModelConfig(width=128, layers=2, context=512)
    tokenizer = train_tokenizer(corpus.documents, 2_048, context=shape.context)
    held = [one for one in corpus.identifiers if one.repetitions == 0]
    texts = [text for one in held for text in (one.value, *generate_identifiers(one.value, 31, 0))]
    contexts = [one.before for one in held for _ in range(32)]
    return new_language_model(shape, len(tokenizer)), tokenizer, texts, contexts


def measured(benchmark, task, attacks, **options):
    """Score with one call per entry of ``attacks``; tokens per second go into the benchmark's extra info."""
    model, tokenizer, texts, contexts = task

    def run():
        return [
            score_texts(model, tokenizer, texts, attacks=some, contexts=contexts, batch_size=64, **options)
            for some in attacks
        ]

    found = benchmark(run)
    tokens = sum(
        len(ids) for ids in tokenizer([a + b for a, b in zip(contexts, texts, strict=True)])["input_ids"]
    )
    if benchmark.stats:
        benchmark.extra_info["tokens per second"] = round(tokens / benchmark.stats.stats.min)
    return sum(frame.shape[1] for frame in found)


def test_one_pass_for_all_attacks(benchmark, task):
    assert measured(benchmark, task, [ATTACKS], share_context=False) == 5


def test_a_pass_for_each_attack(benchmark, task):
    assert measured(benchmark, task, [[name] for name in ATTACKS], share_context=False) == 5


def test_one_pass_with_shared_contexts(benchmark, task):
    assert measured(benchmark, task, [ATTACKS]) == 5
