"""Small GPTs fine-tuned on documents that begin with random identifiers: over-trained, and with
DP-SGD.
"""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, compress
from typing import Any

import numpy as np

from paperlib.attacks.language import score_texts
from paperlib.core import FloatArray
from paperlib.core.checks import check_at_least
from paperlib.report import used_data
from paperlib.reproduction.papers.comparison.targets import AuditTarget, TrainedConfig
from paperlib.reproduction.papers.kept import cached_arrays
from paperlib.reproduction.papers.natural_identifiers.dp_models import (
    PUBLIC,
    DpRun,
    canary_documents,
)
from paperlib.reproduction.papers.natural_identifiers.planted import planted_model, source_words
from paperlib.training import TrainingConfig
from paperlib.training.language import fit_language_model

_COINS = 4  # stream of a seed; those of the classifiers and of the audits of both are others


@dataclass(frozen=True, kw_only=True)
class GptConfig(TrainedConfig):
    """Documents and fine-tuning of the language models."""

    #: documents with an identifier, each trained on or not by its own coin, 60 or more
    identifiers: int = 240
    others: int = 50  #: documents without one, always trained on, 0 or more
    alternatives: int = 15  #: of each identifier, 1 or more
    epochs: tuple[int, ...] = (4, 8, 16)

    def __post_init__(self) -> None:
        check_at_least(60, identifiers=self.identifiers)
        check_at_least(1, private_epochs=self.private_epochs)

    @property
    def run(self) -> DpRun:
        """Numbers and seed of the documents, as `canary_documents` takes them: a run of the study
        of DP-SGD after the fact, of which nothing is trained here.
        """
        return DpRun(
            noise=0.0,
            canaries=self.identifiers,
            others=self.others,
            generated=self.alternatives,
            seed=self.seed,
        )

    @property
    def member(self) -> np.ndarray:
        """Coins of the documents with an identifier, shape (identifiers,)."""
        rng = np.random.default_rng([self.seed, _COINS])
        return rng.integers(0, 2, self.identifiers).astype(bool)


def language_models(config: GptConfig) -> list[AuditTarget]:
    """All language models with their scores, from the cache if the same code trained them
    before.
    """
    examples = int(config.member.sum()) + config.others
    plain = TrainingConfig(
        epochs=1, batch_size=16, optimizer="adam", learning_rate=3e-3, seed=config.seed
    )
    trainings = config.trainings(plain, config.run.training, examples)
    words = used_data("Python help topics", " ".join(source_words()).encode())
    stage = {"stage": "compared language models", "config": config, "words": words}
    arrays = cached_arrays(stage, lambda: _train(config, list(trainings.values())), code=__name__)
    return config.targets(
        "language model", trainings, arrays, member=config.member, examples=examples
    )


def _train(config: GptConfig, trainings: Sequence[TrainingConfig]) -> Mapping[str, Any]:
    """Fine-tune a model by each of ``trainings``, and ask it about the identifiers.

    Returns:
        For each model "signals", shape (identifiers, 3): what the mean log-probability of an
            identifier gained by fine-tuning, and both `_signals` after it; and "sets", the gains of
            the candidates of each member, (members, candidates), the inserted one first; nats.
    """
    start, tokenizer = planted_model(PUBLIC)
    candidates, documents = canary_documents(config.run)
    identifiers = [candidate_texts[0] for candidate_texts in candidates]
    candidates_of_members = list(compress(candidates, config.member))
    asked = [*identifiers, *chain.from_iterable(candidates_of_members)]
    before = _signals(start, tokenizer, asked)
    always = [True] * config.others
    texts = list(compress(documents, [*config.member, *always]))
    length = config.run.document_tokens
    tokens = [ids[:length] for ids in tokenizer(texts, verbose=False)["input_ids"]]
    signals: list[FloatArray] = []
    sets: list[FloatArray] = []
    for training in trainings:
        fitted = fit_language_model(copy.deepcopy(start), tokens, config=training, progress=False)
        after = _signals(fitted.model, tokenizer, asked)
        learned = after[:, 0] - before[:, 0]
        of_identifiers, of_candidates = np.split(learned, [len(identifiers)])
        signals.append(np.column_stack([of_identifiers, after[: len(identifiers)]]))
        sets.append(of_candidates.reshape(len(candidates_of_members), -1))
    return {"signals": signals, "sets": sets}


def _signals(model: Any, tokenizer: Any, texts: Sequence[str]) -> FloatArray:
    """Mean log-probability of the tokens of each text, and that of its unlikeliest ones, nats,
    shape (n, 2).
    """
    scores = score_texts(model, tokenizer, texts, attacks=["loss", "min_k"], batch_size=256)
    return scores.to_numpy(dtype=np.float64)
