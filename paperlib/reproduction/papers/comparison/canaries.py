"""What each kind of canary shows of a small GPT that is fine-tuned with them."""

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch

from paperlib.attacks.language import score_texts
from paperlib.bounds import audit_one_run
from paperlib.core import MembershipScores, toss_coins
from paperlib.core.checks import check_at_least
from paperlib.generators.canaries import TEXT_KINDS, make_canaries, planted_order
from paperlib.models.language import LanguageModelConfig, new_language_model, train_tokenizer
from paperlib.reproduction.papers.natural_identifiers.planted import source_words
from paperlib.training import TrainingConfig
from paperlib.training.language import fit_language_model

RECORDS = "records of the data"
AS_TOKENS = "new-vocabulary, as tokens"
_LONGEST = 64  # tokens of a text
_VOCABULARY = 1024  # tokens of the tokenizer that the public documents train
_CONTEXT = 128  # tokens that the model takes
_SHORTEST_PIECE, _LONGEST_PIECE = 15, 34  # words of a document


@dataclass(frozen=True, kw_only=True)
class CanaryConfig:
    """Texts and trainings of the comparison."""

    count: int = 200  #: canaries, of which a fair coin plants each, 20 or more
    texts: int = 300  #: documents that are always trained on
    public: int = 600  #: documents of the training before
    repetitions: tuple[int, ...] = (1, 4)
    epochs: int = 3  #: passes of the fine-tuning
    width: int = 64  #: width of the model
    seed: int = 0

    def __post_init__(self) -> None:
        check_at_least(20, count=self.count, texts=self.texts, public=self.public)

    def training(self, epochs: int, rate: float) -> TrainingConfig:
        """So many passes by Adam at this learning rate."""
        return TrainingConfig(
            epochs=epochs, batch_size=16, optimizer="adam", learning_rate=rate, seed=self.seed
        )


def canary_power(config: CanaryConfig) -> pd.DataFrame:
    """Bound and AUC of every kind of canary at each number of repetitions, and of coins for
    records.

    A score is the mean log-probability of a text after fine-tuning less that before. In `AS_TOKENS`
    the tokenizer has each made-up word of the canaries, planted or not, as one token.

    Returns:
        A row for each kind and number of repetitions: auc, and the bound epsilon with its ceiling,
            nats.
    """
    # The second number is the stream of a seed, so that no two sets are drawn alike.
    public = _documents(config.public, (config.seed, 0))
    corpus = _documents(config.texts, (config.seed, 1))
    held_out = _documents(config.count, (config.seed, 2))
    tokenizer = train_tokenizer(public, _VOCABULARY, context=_CONTEXT)
    shape = LanguageModelConfig(width=config.width, layers=1, context=_CONTEXT, seed=config.seed)
    network = new_language_model(shape, _VOCABULARY)
    start = _fitted(network, tokenizer, public, config.training(epochs=8, rate=3e-3))
    canaries_of: dict[str, list[str]] = {}
    for kind in TEXT_KINDS:
        model = (start, tokenizer) if kind == "high-temperature" else None
        canaries_of[kind] = make_canaries(
            corpus, config.count, kind=kind, seed=config.seed, model=model
        )
    canaries_of[RECORDS] = held_out
    canaries_of[AS_TOKENS] = canaries_of["new-vocabulary"]
    rows: list[dict[str, object]] = []
    for kind, canaries in canaries_of.items():
        model = copy.deepcopy(start)
        words = copy.deepcopy(tokenizer)
        if kind == AS_TOKENS:
            _add_words(model, words, [text.split()[0] for text in canaries], config.seed)
        rows += [
            {"kind": kind, "repetitions": repetitions, **numbers}
            for repetitions, numbers in _by_repetitions(config, model, words, corpus, canaries)
        ]
    return pd.DataFrame(rows)


def _by_repetitions(
    config: CanaryConfig, model: Any, tokenizer: Any, corpus: list[str], canaries: list[str]
) -> Iterator[tuple[int, dict[str, float]]]:
    """Fine-tune the model on the corpus and on the canaries that coins plant, each several times;
    for each number of ``config.repetitions`` the numbers of a row of `canary_power`.
    """
    coins = toss_coins(config.count, seed=config.seed).included
    documents = [*corpus, *canaries]
    before = _log_probabilities(model, tokenizer, canaries)
    for repetitions in config.repetitions:
        # Numbers among the documents, in which canaries follow the corpus.
        planted = np.repeat(config.texts + np.flatnonzero(coins), repetitions)
        order = planted_order(np.arange(config.texts), planted, seed=config.seed)
        texts = [documents[index] for index in order.tolist()]
        training = config.training(config.epochs, rate=1e-3)
        after = _fitted(copy.deepcopy(model), tokenizer, texts, training)
        learned = _log_probabilities(after, tokenizer, canaries) - before
        scores = MembershipScores.from_labels(learned, coins, higher_means_member=True)
        bound = audit_one_run(scores)
        yield (
            repetitions,
            {
                "auc": scores.auc(),
                "epsilon": bound.epsilon,
                "ceiling": bound.ceiling,
            },
        )


def _documents(count: int, seed: tuple[int, ...]) -> list[str]:
    """Pieces of 15 to 34 words of the Python documentation, at random places."""
    words = source_words()
    rng = np.random.default_rng(seed)
    starts = rng.integers(0, len(words) - _LONGEST_PIECE, count)
    lengths = rng.integers(_SHORTEST_PIECE, _LONGEST_PIECE + 1, count)
    return [
        " ".join(words[start : start + length])
        for start, length in zip(starts, lengths, strict=True)
    ]


def _add_words(model: Any, tokenizer: Any, words: list[str], seed: int) -> None:
    """Give both a token for each word; the new embeddings are drawn with the seed."""
    from tokenizers import AddedToken

    tokenizer.add_tokens([AddedToken(word, single_word=True, lstrip=True) for word in words])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model.resize_token_embeddings(len(tokenizer), mean_resizing=False)


def _fitted(model: Any, tokenizer: Any, texts: list[str], training: TrainingConfig) -> Any:
    """The model after training on these texts, each cut after ``_LONGEST`` tokens."""
    tokenized = tokenizer(texts, verbose=False)["input_ids"]
    documents = [tokens[:_LONGEST] for tokens in tokenized]
    return fit_language_model(model, documents, config=training, progress=False).model


def _log_probabilities(model: Any, tokenizer: Any, texts: list[str]) -> np.ndarray:
    """Mean log-probability of each text's tokens, shape (n,)."""
    scores = score_texts(model, tokenizer, texts, attacks=["loss"], batch_size=64)
    return scores["loss"].to_numpy(float)
