"""Small GPTs fine-tuned with DP-SGD on dialogues that begin with identifiers, and scores of
these.
"""

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from paperlib.attacks.language import score_candidates
from paperlib.core import FloatArray
from paperlib.core.checks import check_at_least, check_choice
from paperlib.generators.identifiers import KINDS, generate_identifiers
from paperlib.generators.identifiers.kinds import checked_kinds
from paperlib.io import user_cache_folder
from paperlib.io.files import config_hash
from paperlib.models.language import load_language_model
from paperlib.reproduction.data.text.dialogues import persona_chat
from paperlib.reproduction.papers.kept import kept_runs
from paperlib.reproduction.papers.natural_identifiers.planted import (
    PlantedConfig,
    planted,
    planted_model,
    source_words,
)
from paperlib.reproduction.papers.settings import settings_beside
from paperlib.training import TrainingConfig, noise_for
from paperlib.training.language import fit_language_model

SCORES = ("loss", "min_k", "difference")
"""Scores of the audit: the paper's two, and the loss minus that of the model before fine-tuning,
ours.
"""

PUBLIC_OF = {
    name: PlantedConfig(**settings) for name, settings in settings_beside(__file__).items()
}
PUBLIC = PUBLIC_OF["documentation"]

_SOURCES: dict[str, Callable[[], Sequence[str]]]
_SOURCES = {"documentation": source_words, "persona_chat": persona_chat}
"""Words of the documentation, or whole dialogues."""
_WORDS = 40  # of the documentation that make a dialogue
_TURNS = "ABAB"  # its speakers


@dataclass(frozen=True, kw_only=True)
class DpRun:
    """One fine-tuning with DP-SGD, and the scores of its canaries."""

    noise: float  #: noise multiplier; 0 for epsilon infinity (gradients are still clipped)
    canaries: int = 100  #: number m of documents that begin with an identifier, 1 or more
    others: int = 50  #: number of documents that do not, the same in every run
    generated: int = 63  #: alternatives per canary that are scored, 1 or more
    kind: str = "md5"  #: kind of the identifiers
    #: "documentation" (text of the Python help divided between two speakers) or "persona_chat"
    dialogues: str = "documentation"
    epochs: int = 20  #: expected passes over the documents
    share: float = 0.25  #: expected share of the documents in a batch
    document_tokens: int = 36  #: length of a document
    learning_rate: float = 4e-3  #: learning rate of Adam
    clip_norm: float = 1.0  #: largest norm of a document's gradient
    #: corpus and settings of the training before the fine-tuning, such as one of ``PUBLIC_OF``
    public: PlantedConfig = PUBLIC
    model: str = (
        ""  #: name or folder of a model to fine-tune instead, such as "EleutherAI/pythia-70m"
    )
    seed: int = 0  #: seed of canaries, batches and noise, 0 or more

    def __post_init__(self) -> None:
        """Refuse (ValueError) unknown kinds and sources, and numbers out of range."""
        checked_kinds([self.kind])
        check_choice("dialogues", self.dialogues, tuple(_SOURCES))
        check_at_least(1, canaries=self.canaries, generated=self.generated)
        check_at_least(0, others=self.others)

    @property
    def training(self) -> TrainingConfig:
        """Settings of DP-SGD by Adam on all ``canaries + others`` documents.

        The expected batch is ``share`` of them, rounded, at least one document. Noise is in units
        of the clipping norm: its standard deviation in the sum of gradients is ``noise *
        clip_norm``.

        Raises:
            ValueError: Epochs, learning rate, norm, noise or seed out of range.
        """
        batch = max(1, round(self.share * (self.canaries + self.others)))
        shared = {
            name: getattr(self, name) for name in ("epochs", "learning_rate", "clip_norm", "seed")
        }
        return TrainingConfig(
            batch_size=batch, optimizer="adam", noise_multiplier=self.noise, **shared
        )

    @property
    def sampling(self) -> tuple[float, int]:
        """Chance of a document to be in a batch, and the number of steps."""
        documents = self.canaries + self.others
        return self.training.sampling_rate(documents), self.training.steps(documents)


def run_for(target_epsilon: float, delta: float, **options: Any) -> DpRun:
    """The run whose noise the Rényi accountant gives for a target.

    Args:
        target_epsilon: Of adding or removing one document, nats; infinite for no noise.
        delta: Of the accountant, in (0, 1).
        options: Fields of `DpRun` but the noise.

    Raises:
        ValueError: A field out of range.
    """
    run = DpRun(noise=0.0, **options)
    if math.isinf(target_epsilon):
        return run
    rate, steps = run.sampling
    return replace(run, noise=noise_for(target_epsilon, rate, steps, delta))


def canary_documents(run: DpRun) -> tuple[list[list[str]], list[str]]:
    """The 1 + c candidates of each canary, the inserted one first, and the documents trained on:
    those with canaries, then the others.
    """
    # The first canaries of a run are those of every smaller run of the same seed.
    truths = generate_identifiers(KINDS[run.kind].example, run.canaries, run.seed)
    texts = _dialogues(run)
    documents = [
        f"{value} {text}" for value, text in zip(truths, texts[run.others :], strict=False)
    ]
    candidates = [
        [value, *generate_identifiers(value, run.generated, run.seed + 1)] for value in truths
    ]
    return candidates, documents + texts[: run.others]


def _dialogues(run: DpRun) -> list[str]:
    """Texts of the other documents, then of the canaries."""
    count = run.canaries + run.others
    texts = _SOURCES[run.dialogues]()
    if run.dialogues == "persona_chat":
        order = np.random.default_rng(run.seed).permutation(len(texts))
        return [texts[int(index)] for index in order[:count]]
    starts = np.random.default_rng(run.seed).integers(0, len(texts) - _WORDS, count)
    return [_dialogue(texts[start : start + _WORDS]) for start in starts]


def _dialogue(words: Sequence[str]) -> str:
    """Words as four turns of two speakers, each as long as the others."""
    turns: list[str] = []
    each = _WORDS // len(_TURNS)
    for number, speaker in enumerate(_TURNS):
        turns.append(f"{speaker}: {' '.join(words[number * each : (number + 1) * each])}")
    return "\n".join(turns)


def fine_tuned_scores(runs: Sequence[DpRun]) -> list[Mapping[str, Any]]:
    """Fine-tune the model of each run, and score every canary's candidates.

    Returns:
        For each run the `SCORES` by name, higher for members, nats, shape (m, 1 + c), the inserted
            candidate first; and "losses", those of the training by epoch, shape (epochs,).
    """
    results: list[Mapping[str, Any]] = []
    for run in runs:
        model, tokenizer = _start(run.model, run.public)
        candidates, documents = canary_documents(run)
        before = np.stack(
            [_loss_at_start(run.model, run.public, tuple(of_canary)) for of_canary in candidates]
        )
        rows = tokenizer(documents, verbose=False)["input_ids"]
        tokens = [row[: run.document_tokens] for row in rows]
        fitted = fit_language_model(
            copy.deepcopy(model), tokens, config=run.training, progress=False
        )
        after, _ = score_candidates(
            fitted.model, tokenizer, candidates, attacks=["loss", "min_k"], batch_size=256
        )
        scores = {
            "loss": after[..., 0],
            "min_k": after[..., 1],
            "difference": after[..., 0] - before,
        }
        results.append(scores | {"losses": np.array(fitted.losses)})
    return results


@lru_cache(maxsize=1)
def _start(name: str, public: PlantedConfig) -> tuple[Any, Any]:
    """Model before fine-tuning, and its tokenizer."""
    return load_language_model(name, dtype="float32") if name else planted_model(public)


@lru_cache(maxsize=4096)
def _loss_at_start(name: str, public: PlantedConfig, candidates: tuple[str, ...]) -> FloatArray:
    """Scores of one canary's candidates before fine-tuning, the same in every run that has this
    canary: mean log-probabilities of tokens, nats, higher means likelier, shape (candidates,).

    ``name`` is that of a model, or its folder; "" for the one trained on ``public``. Every call for
    one canary returns the same array, which is not to be changed.
    """
    scores, _ = score_candidates(
        *_start(name, public), [candidates], attacks=["loss"], batch_size=256
    )
    return scores[0, :, 0]


def trained_runs(runs: Sequence[DpRun], *, workers: int = 0) -> dict[DpRun, dict[str, FloatArray]]:
    """Scores of all runs by name, as `fine_tuned_scores` gives them, each computed once and kept in
    the user's cache; in so many ``workers`` processes, 0 for this one.
    """
    dialogues = {run.dialogues for run in runs}
    publics = {run.public for run in runs if not run.model}
    texts = {config_hash({"dialogues": _SOURCES[name]()}) for name in dialogues}
    texts |= {planted(public).checksum for public in publics}
    return kept_runs(
        fine_tuned_scores,
        list(dict.fromkeys(runs)),
        folder=user_cache_folder() / "sweeps" / "language_dp_audit",
        data=sorted(texts),
        workers=workers,
    )
