"""Audit DP-SGD of a small GPT after the fact, by identifiers put before dialogues (Figures 2 and 5)."""

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from paperlib.attacks.dataset_inference import ranks_and_positions
from paperlib.attacks.language import score_candidates
from paperlib.bounds import audit_ranks
from paperlib.core import FloatArray
from paperlib.data.dialogues import persona_chat
from paperlib.experiments.language_models import PlantedConfig, planted_model, source_words
from paperlib.generators.identifiers import KINDS, checked_kinds, generate_identifiers
from paperlib.io import code_tag, run_sweep, user_cache_folder
from paperlib.models.language import load_language_model
from paperlib.training import TrainingConfig, epsilon_of, noise_for, replacement_epsilon
from paperlib.training.language import fit_language_model

SCORES = ("loss", "min_k", "difference")
"""Scores of the audit: the paper's two, and the loss minus that of the model before fine-tuning, ours."""

_CODE = (
    "paperlib.attacks.language",
    "paperlib.generators.identifiers",
    "paperlib.models.language",
    "paperlib.training.language",
)


def public_corpus() -> PlantedConfig:
    """What the model is trained on, without DP, before it is fine-tuned: text and identifiers of others."""
    return PlantedConfig(
        repetitions=(1,),
        identifiers=300,
        held_out=2,
        kinds=("md5",),
        context_words=1,
        document_tokens=40,
        filler=1.0,
        width=64,
        epochs=3,
    )


@dataclass(frozen=True, kw_only=True)
class DpRun:
    """One fine-tuning with DP-SGD, and the scores of its canaries.

    Attributes:
        noise: Noise multiplier; 0 for epsilon infinity (gradients are still clipped).
        canaries: Documents that begin with an identifier, m.
        others: Documents that do not, the same in every run.
        generated: Alternatives per canary that are scored.
        kind: Of the identifiers.
        dialogues: "documentation" (sentences of the Python help dealt to two speakers) or "persona_chat".
        epochs: Expected passes over the documents.
        share: Expected share of the documents in a batch.
        document_tokens: Length of a document.
        learning_rate: Of Adam.
        clip_norm: Largest norm of a document's gradient.
        public: What the model was trained on before.
        model: Name or folder of a model to fine-tune instead, such as "EleutherAI/pythia-70m".
        seed: Of canaries, batches and noise.
    """

    noise: float
    canaries: int = 100
    others: int = 50
    generated: int = 63
    kind: str = "md5"
    dialogues: str = "documentation"
    epochs: int = 20
    share: float = 0.25
    document_tokens: int = 36
    learning_rate: float = 4e-3
    clip_norm: float = 1.0
    public: PlantedConfig = field(default_factory=public_corpus)
    model: str = ""
    seed: int = 0

    def __post_init__(self) -> None:
        checked_kinds([self.kind])
        if self.dialogues not in ("documentation", "persona_chat"):
            raise ValueError(f"dialogues: expected 'documentation' or 'persona_chat', got {self.dialogues!r}")
        if min(self.canaries, self.generated) < 1 or self.others < 0:
            raise ValueError("canaries, generated: expected 1 or more, and others 0 or more")

    @property
    def training(self) -> TrainingConfig:
        """As the trainer takes it."""
        documents = self.canaries + self.others
        return TrainingConfig(
            epochs=self.epochs,
            batch_size=max(1, round(self.share * documents)),
            optimizer="adam",
            learning_rate=self.learning_rate,
            clip_norm=self.clip_norm,
            noise_multiplier=self.noise,
            seed=self.seed,
        )

    @property
    def sampling(self) -> tuple[float, int]:
        """Sampling rate and number of steps."""
        documents = self.canaries + self.others
        return self.training.sampling_rate(documents), self.training.steps(documents)


def run_for(target_epsilon: float, delta: float, **options: Any) -> DpRun:
    """The run whose noise the Rényi accountant gives for a target, adding or removing one document.

    >>> run_for(math.inf, 1e-5).noise
    0.0
    """
    run = DpRun(noise=0.0, **options)
    if math.isinf(target_epsilon):
        return run
    rate, steps = run.sampling
    return replace(run, noise=noise_for(target_epsilon, rate, steps, delta))


def theoretical_epsilons(run: DpRun, delta: float) -> tuple[float, float]:
    """Epsilon of the run for adding or removing one document, and for replacing one by another.

    Replacing one document moves the sum of clipped gradients by up to twice the clipping norm. The audit's
    bound is for replacement, so it compares with the second number.

    >>> add, swap = theoretical_epsilons(run_for(5.0, 1e-5), 1e-5)
    >>> add < 5.0 < swap
    True
    """
    if run.noise == 0:
        return math.inf, math.inf
    rate, steps = run.sampling
    return epsilon_of(run.noise, rate, steps, delta, accountant="pld"), _replacement(run, delta)


@lru_cache(maxsize=256)
def _replacement(run: DpRun, delta: float) -> float:
    return replacement_epsilon(run.noise, *run.sampling, delta) if run.noise else math.inf


def canary_documents(run: DpRun) -> tuple[list[list[str]], list[str]]:
    """Candidates of each canary, the inserted one first, and the documents trained on.

    The first canaries of a run are those of every smaller run of the same seed.
    """
    example = KINDS[run.kind].example
    truths = generate_identifiers(example, run.canaries, run.seed)
    texts = _dialogues(run)
    documents = [f"{value} {text}" for value, text in zip(truths, texts[run.others :], strict=False)]
    candidates = [[value, *generate_identifiers(value, run.generated, run.seed + 1)] for value in truths]
    return candidates, documents + texts[: run.others]


def _dialogues(run: DpRun) -> list[str]:
    """Texts of the other documents, then of the canaries."""
    count = run.canaries + run.others
    if run.dialogues == "persona_chat":
        found = persona_chat()
        order = np.random.default_rng(run.seed).permutation(len(found))
        return [found[index] for index in order[:count]]
    words = source_words()
    starts = np.random.default_rng(run.seed).integers(0, len(words) - 40, count)
    return [_two_speakers(words[start : start + 40]) for start in starts]


def _two_speakers(words: Sequence[str]) -> str:
    turns = [words[start : start + 10] for start in range(0, len(words), 10)]
    return "\n".join(f"{'AB'[turn % 2]}: {' '.join(some)}" for turn, some in enumerate(turns))


def train_and_score(runs: Sequence[DpRun]) -> list[Mapping[str, Any]]:
    """Fine-tune with DP-SGD and score every candidate of every canary, alone, before and after.

    Returns:
        For each run its scores by ``SCORES``, each (m, 1 + c), and the training losses.
    """
    return [_train_and_score(run) for run in runs]


def _train_and_score(run: DpRun) -> Mapping[str, Any]:
    model, tokenizer = _start(run.model, run.public)
    candidates, documents = canary_documents(run)
    before = np.stack([_loss_at_start(run.model, run.public, tuple(one)) for one in candidates])
    tokens = [one[: run.document_tokens] for one in tokenizer(documents, verbose=False)["input_ids"]]
    fitted = fit_language_model(copy.deepcopy(model), tokens, config=run.training, progress=False)
    after, _ = score_candidates(
        fitted.model, tokenizer, candidates, attacks=["loss", "min_k"], batch_size=256
    )
    return {
        "loss": after[..., 0],
        "min_k": after[..., 1],
        "difference": after[..., 0] - before,
        "losses": np.array(fitted.losses),
    }


@lru_cache(maxsize=1)
def _start(name: str, public: PlantedConfig) -> tuple[Any, Any]:
    """Model before fine-tuning, and its tokenizer."""
    return load_language_model(name, dtype="float32") if name else planted_model(public)


@lru_cache(maxsize=4096)
def _loss_at_start(name: str, public: PlantedConfig, candidates: tuple[str, ...]) -> FloatArray:
    """Scores of one canary's candidates before fine-tuning, the same in every run that has this canary."""
    scores, _ = score_candidates(*_start(name, public), [candidates], attacks=["loss"], batch_size=256)
    return scores[0, :, 0]


def trained_runs(runs: Sequence[DpRun], *, workers: int = 0) -> dict[DpRun, dict[str, FloatArray]]:
    """Scores of all runs, each computed once and kept in the user's cache.

    Args:
        runs: All different.
        workers: Local processes; 0 computes here.
    """
    return dict(
        run_sweep(
            train_and_score,
            list(dict.fromkeys(runs)),
            folder=user_cache_folder() / "sweeps" / "language_dp_audit",
            workers=workers,
            version=code_tag(*_CODE, __name__),
        )
    )


def audit_scores(
    scores: FloatArray,
    *,
    cardinality: int,
    top: int = 1,
    delta: float,
    confidence: float = 0.95,
    seed: int = 0,
) -> dict[str, float]:
    """Hits and bounds of one run: the paper's Theorem 2, and ours (tight bound, sharp delta term).

    Args:
        scores: Shape (m, 1 + c), the inserted identifier first.
        cardinality: Candidates used per canary, itself included.
        top: Places that count as a hit.
        delta: Of the mechanism.
        confidence: Of each bound by itself.
        seed: Of ties.

    Returns:
        hit_rate, paper and tight (nats).

    >>> found = audit_scores(np.array([[2.0, 1.0, 0.0]] * 40), cardinality=2, delta=1e-5)
    >>> found["hit_rate"], round(found["tight"], 2)
    (1.0, 2.55)
    """
    if not 2 <= cardinality <= scores.shape[1]:
        raise ValueError(f"cardinality: expected 2 to {scores.shape[1]}, got {cardinality}")
    ranks, _ = ranks_and_positions(scores[:, :cardinality], np.random.default_rng(seed))
    options: dict[str, Any] = {"top": top, "delta": delta, "confidence": confidence}
    tight = audit_ranks(ranks, cardinality, delta_term="sharp", **options)
    paper = audit_ranks(ranks, cardinality, bound="paper", **options)
    return {"hit_rate": tight.hit_rate, "paper": paper.epsilon, "tight": tight.epsilon}


def audit_table(
    found: Mapping[DpRun, Mapping[str, FloatArray]],
    targets: Mapping[DpRun, float],
    *,
    cardinalities: Sequence[int],
    tops: Sequence[int] = (1,),
    delta: float,
    confidence: float = 0.95,
) -> pd.DataFrame:
    """Every audit of every run.

    Args:
        found: From `trained_runs`.
        targets: The epsilon each run was asked for.
        cardinalities: Candidate set sizes.
        tops: Numbers of places that count as a hit; those not below the cardinality are left out.
        delta: Of the mechanism.
        confidence: Of each bound by itself.

    Returns:
        One row per run, score, cardinality and top, with target, canaries, replacement_epsilon (theory), the
        columns of `audit_scores` and below_theory.
    """
    rows = []
    for run, target in targets.items():
        theory = _replacement(run, delta)
        for score in SCORES:
            for c in cardinalities:
                for top in (t for t in tops if t < c):
                    audited = audit_scores(
                        found[run][score], cardinality=c, top=top, delta=delta, confidence=confidence
                    )
                    rows.append(
                        {
                            "target": target,
                            "canaries": run.canaries,
                            "score": score,
                            "cardinality": c,
                            "top": top,
                            "replacement_epsilon": theory,
                            **audited,
                            "below_theory": max(audited["paper"], audited["tight"]) <= theory,
                        }
                    )
    return pd.DataFrame(rows)
