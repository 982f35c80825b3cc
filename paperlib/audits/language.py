"""Any causal language model and any corpus: which identifiers of the corpus does the model know?"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from paperlib.attacks.dataset_inference import SCHEDULES, DatasetInference, infer_dataset, ranks_and_positions
from paperlib.attacks.language import causal_neighbours, score_candidates
from paperlib.audits.candidates import CandidateScores, attack_quality
from paperlib.audits.corpus import FoundIdentifier, corpus_identifiers, open_corpus, skipped_table
from paperlib.bounds import audit_ranks, exposure
from paperlib.bounds.ranks.audit import RankAuditResult
from paperlib.core import FloatArray, check_choice
from paperlib.data.text.pieces import ReadLog
from paperlib.generators.identifiers import Identifier, generate_identifiers
from paperlib.generators.identifiers.filter import filter_identifiers
from paperlib.models.language import load_language_model


@dataclass(frozen=True, eq=False)
class LanguageModelAudit:
    """What a model gives away about the identifiers of a corpus.

    Attributes:
        found: The audited identifiers.
        scores: Scores of each identifier and its alternatives.
        quality: One row per attack: `attack_quality`.
        inference: Was the set trained on?
        ranks: Rank of each identifier among its candidates by ``rank_attack``, 1 is best.
        rank_audit: Lower bound on epsilon from these ranks, nats.
        rank_attack: The attack whose ranks are audited, fixed before looking.
    """

    found: tuple[FoundIdentifier, ...]
    scores: CandidateScores
    quality: pd.DataFrame
    inference: DatasetInference
    ranks: np.ndarray
    rank_audit: RankAuditResult
    rank_attack: str

    @property
    def table(self) -> pd.DataFrame:
        """One row per identifier, the best known first, with its rank and its exposure in bits."""
        known = pd.DataFrame(list(self.found))[["kind", "value", "occurrences", "document"]]
        frame = known.assign(rank=self.ranks, exposure=exposure(self.ranks, self.scores.values.shape[1]))
        return frame.sort_values(["rank", "document"]).reset_index(drop=True)


def audit_language_model(
    model: Any,
    tokenizer: Any,
    identifiers: Sequence[FoundIdentifier],
    *,
    generated: int = 127,
    attacks: Sequence[str] = ("loss", "min_k", "min_k_pp", "zlib", "hinge"),
    rank_attack: str = "min_k",
    confidence: float = 0.95,
    delta: float = 0.0,
    draws: int = 200,
    batch_size: int = 64,
    neighbours: int = 0,
    seed: int = 0,
    **options: Any,
) -> LanguageModelAudit:
    """Score identifiers and their alternatives, and draw every conclusion that the scores allow.

    Guarantee:
        That of `audit_ranks` for the lower bound on epsilon, if each identifier was drawn like its
        alternatives and ``rank_attack`` was chosen before any score was seen.

    Args:
        model: Causal language model.
        tokenizer: Tokenizer of the model.
        identifiers: Identifiers from `corpus_identifiers`, 10 or more.
        generated: Number of alternatives per identifier, 1 or more.
        attacks: Names of `score_texts`; those with a prefix or a reference need it in ``options``.
        rank_attack: Name of the attack whose ranks are audited, chosen before any score is seen.
        confidence: Confidence level of the lower bound and the intervals, in (0, 1).
        delta: Delta of the (epsilon, delta)-DP that the lower bound tests, in [0, 1).
        draws: Number of bootstrap draws, 1 or more.
        batch_size: Texts per batch.
        neighbours: Neighbours of each text by the model's own predictions, each scored too; with 1 or more
            the neighbourhood attack is added.
        seed: Seed of alternatives, ties, folds and draws, 0 or more.
        options: Options of `score_texts`.

    Raises:
        ValueError: Fewer than 10 identifiers, a rank_attack that is not scored, or what `score_texts`
            refuses.

    Source:
        Natural identifiers, Sections 4 and 5.

    >>> from paperlib.audits.corpus import corpus_identifiers
    >>> from paperlib.models.language import LanguageModelConfig, new_language_model, train_tokenizer
    >>> values = generate_identifiers("9e107d9d372bb6826bd81d3542a419d6", 12, 0)
    >>> texts = [f"The checksum of part {number} is {value}." for number, value in enumerate(values)]
    >>> tokenizer = train_tokenizer(texts, 300, context=64)
    >>> untrained = new_language_model(LanguageModelConfig(width=16, layers=1, seed=0), len(tokenizer))
    >>> audit = audit_language_model(untrained, tokenizer, corpus_identifiers(texts), generated=7, draws=10)
    >>> audit.rank_audit.epsilon
    0.0
    """
    if len(identifiers) < 10:
        raise ValueError(f"identifiers: expected 10 identifiers or more, got {len(identifiers)}")
    check_choice("rank_attack", rank_attack, tuple(attacks))
    candidates = [[one.value, *generate_identifiers(one.value, generated, seed)] for one in identifiers]
    if neighbours:
        options["neighbours"] = causal_neighbours(
            model,
            tokenizer,
            [text for some in candidates for text in some],
            count=neighbours,
            contexts=[one.before for one in identifiers for _ in range(1 + generated)],
            batch_size=batch_size,
        )
        attacks = [*attacks, "neighbourhood"]
    values, names = score_candidates(
        model,
        tokenizer,
        candidates,
        contexts=[one.before for one in identifiers],
        attacks=list(attacks),
        batch_size=batch_size,
        **options,
    )
    scores = CandidateScores(values, names, np.array([one.occurrences for one in identifiers]))
    rows = [
        {"attack": name, **attack_quality(scores.of(name), draws=draws, confidence=confidence, seed=seed)}
        for name in names
    ]
    ranks, _ = ranks_and_positions(scores.of(rank_attack), np.random.default_rng(seed))
    return LanguageModelAudit(
        found=tuple(identifiers),
        scores=scores,
        quality=pd.DataFrame(rows),
        inference=infer_dataset(values, seed=seed),
        ranks=ranks,
        rank_audit=audit_ranks(ranks, 1 + generated, delta=delta, confidence=confidence),
        rank_attack=rank_attack,
    )


def without_look_alikes(
    found: Sequence[FoundIdentifier], *, generated: int = 127, seed: int = 0
) -> list[FoundIdentifier]:
    """Identifiers that classifiers on their letters alone do not tell from generated ones (Appendix A).

    A counter or a version number may look like a hash; a model that never saw it could tell it from a random
    one. Kinds with fewer than 20 identifiers teach no classifier and stay as they are.

    Args:
        found: Identifiers from `corpus_identifiers`.
        generated: Alternatives per identifier.
        seed: Seed of alternatives and folds, 0 or more.

    Raises:
        ValueError: No kind has 20 identifiers.
    """
    judged = [Identifier(one.kind, one.value, 0, len(one.value)) for one in found]
    kept = {one.value for one in filter_identifiers(judged, count=generated, seed=seed).kept}
    return [one for one in found if one.value in kept]


@dataclass(frozen=True, eq=False)
class CorpusScores:
    """Scores of the identifiers of a corpus under one model.

    Attributes:
        model: Name or folder of the model.
        values: Shape (n, 1 + c, attacks), higher means member; the identifier comes first.
        attacks: Names of the attacks.
        subsets: Part of the corpus each identifier was found in, shape (n,).
        skipped: Parts of the corpus that were not read, or only in part: reason, number, example.
    """

    model: str
    values: FloatArray
    attacks: tuple[str, ...]
    subsets: np.ndarray
    skipped: pd.DataFrame = field(default_factory=lambda: skipped_table(ReadLog()))

    def by_subset(self) -> dict[str, FloatArray]:
        """Scores of each subset."""
        return {name: self.values[self.subsets == name] for name in sorted(set(self.subsets.tolist()))}

    def quality(self, *, draws: int = 200, seed: int = 0) -> pd.DataFrame:
        """The paper's benchmark: one row per subset and attack, with the columns of `attack_quality`."""
        rows = []
        for subset, values in self.by_subset().items():
            place = {"model": self.model, "subset": subset, "identifiers": len(values)}
            rows += [
                {**place, "attack": attack, **attack_quality(values[..., at], draws=draws, seed=seed)}
                for at, attack in enumerate(self.attacks)
            ]
        return pd.DataFrame(rows)

    def inference(self, *, set_size: int = 100, seed: int = 0) -> pd.DataFrame:
        """The paper's dataset inference: p-values of each subset with ``set_size`` identifiers or more."""
        rows = []
        for subset, values in self.by_subset().items():
            for schedule in SCHEDULES if len(values) >= set_size else ():
                found = infer_dataset(values[:set_size], schedule=schedule, seed=seed)
                rows.append(
                    {
                        "model": self.model,
                        "subset": subset,
                        "schedule": schedule,
                        "p_value": found.p_value,
                        "p_value_two_sided": found.p_value_two_sided,
                    }
                )
        return pd.DataFrame(rows)


def score_corpus(
    name: str,
    corpus: str,
    *,
    dtype: str = "auto",
    limit: int = 1_000,
    generated: int = 127,
    prefix: str = "",
    seed: int = 0,
) -> CorpusScores:
    """Score the identifiers of a corpus under any model: what the benchmark and dataset inference need.

    Args:
        name: Name of the model on the hub, or its folder.
        corpus: Corpus, as for `open_corpus`.
        dtype: Number format, as for `load_language_model`.
        limit: Largest number of identifiers scored, 1 or more.
        generated: Alternatives per identifier.
        prefix: Text for ReCaLL that was not trained on; empty leaves ReCaLL out.
        seed: Seed of the sample and the alternatives, 0 or more.

    Raises:
        ValueError: No such model, no corpus, or no identifier in it.
    """
    if not corpus:
        raise ValueError("corpus: expected a file, a folder or a known corpus, got an empty text")
    model, tokenizer = load_language_model(name, dtype=dtype)
    log = ReadLog()
    found = corpus_identifiers(open_corpus(corpus, log=log), limit=limit, seed=seed)
    values, attacks = score_candidates(
        model,
        tokenizer,
        [[one.value, *generate_identifiers(one.value, generated, seed)] for one in found],
        contexts=[one.before for one in found],
        prefix=prefix or None,
    )
    subsets = np.array([one.subset for one in found])
    return CorpusScores(name, values, attacks, subsets, skipped_table(log))
