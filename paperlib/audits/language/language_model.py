"""Any causal language model and any corpus: which identifiers of the corpus does the model know?"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from paperlib.attacks.dataset_inference import DatasetInference, infer_dataset, ranks_and_positions
from paperlib.attacks.language import causal_neighbours, score_candidates
from paperlib.attacks.language.windows import text_tokens
from paperlib.audits.candidates import CandidateScores, attack_quality
from paperlib.audits.document import AuditDocument, answer_of
from paperlib.audits.language.blind import unknown
from paperlib.audits.language.corpus import (
    FoundIdentifier,
    corpus_identifiers,
    is_fair,
    open_corpus,
)
from paperlib.bounds import audit_ranks, exposure, rank_limit_of_detection
from paperlib.bounds.ranks.audit import RankAuditResult
from paperlib.core import MembershipScores, ScoreAudit, check_choice, round_down
from paperlib.core.direction import SAYS_NOTHING
from paperlib.core.facts import Refusal, RefusalCode, reasons
from paperlib.data.text.corpora import Document
from paperlib.data.text.pieces import ReadLog
from paperlib.generators.identifiers import Identifier, generate_identifiers
from paperlib.generators.identifiers.filter import filter_identifiers
from paperlib.report.audit.tables import TableSection


@dataclass(frozen=True, eq=False)
class LanguageModelAudit:
    """What a model gives away about the identifiers of a corpus."""

    found: tuple[FoundIdentifier, ...]
    scores: CandidateScores
    quality: pd.DataFrame  #: AUC and true-positive rate of each attack, with intervals
    inference: DatasetInference  #: was the set trained on?
    ranks: np.ndarray  #: of each identifier among its candidates by ``rank_attack``, 1 is best
    rank_audit: RankAuditResult  #: lower bound on epsilon from these ranks
    rank_attack: str

    @property
    def table(self) -> pd.DataFrame:
        """One row per identifier, the best known first, with its rank and its exposure in bits."""
        known = pd.DataFrame(list(self.found))[["kind", "value", "occurrences", "document"]]
        frame = known.assign(
            rank=self.ranks, exposure=exposure(self.ranks, self.scores.values.shape[1])
        )
        return frame.sort_values(["rank", "document"]).reset_index(drop=True)

    @property
    def ceiling(self) -> float:
        """The lower bound if every identifier stood first, nats: the most that so many could have
        shown.
        """
        return float(self.rank_audit.ceiling or 0.0)

    @property
    def pooled(self) -> MembershipScores:
        """Identifiers against all alternatives, by ``rank_attack``."""
        scores = self.scores.of(self.rank_attack)
        return MembershipScores(scores[:, 0], scores[:, 1:].ravel())

    @property
    def pooled_names(self) -> list[str]:
        """A name for each score of ``pooled``, the identifiers first."""
        values, others = [one.value for one in self.found], self.scores.values.shape[1] - 1
        return [*values, *(f"alternative of {value}" for value in values for _ in range(others))]

    @property
    def pooled_kinds(self) -> list[str]:
        """The kind of identifier of each score of ``pooled``."""
        kinds = [one.kind for one in self.found]
        return [*kinds, *np.repeat(kinds, self.scores.values.shape[1] - 1).tolist()]

    def document(
        self, *, subject: str = "", log: Sequence[str] = (), count: int = 20, **parts: Any
    ) -> AuditDocument:
        """The audit of ``subject`` as page and JSON, with what ``log`` left out and ``count``
        identifiers.
        """
        ranks = ScoreAudit(
            title=f"Ranks of identifiers by {self.rank_attack}",
            kind="lower bound",
            purpose=(
                "How often the model prefers an identifier to all alternatives from the same "
                "source."
            ),
            result=self.rank_audit,
        )
        whole = ScoreAudit(
            title="Dataset inference",
            kind="measurement",
            purpose="Was the model trained on this set? All scores together, by a rank test.",
            result=self.inference,
        )
        kinds, size = self.pooled_kinds, self.scores.values.shape[1]
        best_known = TableSection(
            title="Best-known identifiers",
            text=f"The place of each identifier among its {size} candidates by {self.rank_attack}, "
            f"and its exposure. One in {size} stands first where the model knows nothing: a single "
            "first place can be luck.",
            headings=("Identifier", "Kind", "Occurrences", "Rank", "Exposure (bits)"),
            rows=[
                (
                    str(row["value"]),
                    str(row["kind"]),
                    f"{row['occurrences']:,}",
                    f"{row['rank']} of {size}",
                    f"{row['exposure']:.2f}",
                )
                for row in self.table.head(count).to_dict("records")
            ],
        )
        attacks = TableSection(
            title="Scores",
            text=(
                "How well each score tells identifiers from alternatives: no bounds; 50 % is "
                "guessing."
            ),
            headings=("Score", "AUC [interval]", "TPR at 1 % FPR [at this threshold]"),
            rows=[
                (str(row["attack"]), _percent(row, "auc"), _percent(row, "tpr"))
                for row in self.quality.to_dict("records")
            ],
        )
        return AuditDocument(
            title="Privacy audit of a language model",
            scores=self.pooled,
            audits=(ranks, whole),
            answers=(answer_of(self.rank_audit, about=subject, warnings=log),),
            limits=((self.rank_audit.epsilon, self.ceiling),),
            design="candidates",
            ids=self.pooled_names,
            groups=kinds if len(set(kinds)) > 1 else None,
            sections=(best_known, attacks),
            more={
                "attacks": self.quality.to_dict("records"),
                "identifiers": self.table.to_dict("records"),
            },
            **parts,
        )


def _percent(row: Mapping[Any, Any], name: str) -> str:
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    return f"{100 * row[name]:.1f} % [{100 * low:.1f}, {100 * high:.1f}]"


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
        model, tokenizer: Causal language model.
        identifiers: Identifiers from `corpus_identifiers`, 10 or more.
        generated: Number of alternatives per identifier, 1 or more.
        attacks: Names of `score_texts`; those with a prefix or a reference need it in ``options``.
        rank_attack: The attack whose ranks are audited.
        confidence, delta: As for `audit_ranks`; the confidence is that of the intervals too.
        draws: Number of bootstrap draws, 1 or more.
        neighbours: Neighbours of each text for the neighbourhood attack; 0 leaves it out.
        options: Options of `score_texts`.

    Raises:
        ValueError: Too few or unfair identifiers, or what `audit_ranks` and `score_texts` refuse.

    Source:
        Natural identifiers, Sections 4 and 5.

    >>> from paperlib.audits.language.corpus import corpus_identifiers
    >>> from paperlib.models.language import LanguageModelConfig, new_language_model
    >>> from paperlib.models.language import train_tokenizer
    >>> values = generate_identifiers("83a5ef2c9d0b3e71f6a8c3d25b190e47", 12, 0)
    >>> texts = [f"The checksum of part {i} is {value}." for i, value in enumerate(values)]
    >>> tokenizer = train_tokenizer(texts, 300, context=64)
    >>> config = LanguageModelConfig(width=16, layers=1, seed=0)
    >>> untrained = new_language_model(config, len(tokenizer))
    >>> found = corpus_identifiers(texts)
    >>> audit = audit_language_model(untrained, tokenizer, found, generated=7, draws=10)
    >>> audit.rank_audit.epsilon
    0.0
    """
    if len(identifiers) < 10:
        raise ValueError(f"identifiers: expected 10 identifiers or more, got {len(identifiers)}")
    check_choice("rank_attack", rank_attack, tuple(attacks))
    if len({one.value.lower() for one in identifiers}) < len(identifiers):
        raise ValueError(
            "identifiers: expected each once, got one twice; audit those of all texts together"
        )
    unfair = [one.value for one in identifiers if not is_fair(one.value, one.before)]
    if unfair:
        raise ValueError(
            f"identifiers: {len(unfair)} of {len(identifiers)} stand behind a text that holds them "
            f"or a part of them, such as {unfair[0]!r}; leave them out, as corpus_identifiers does"
        )
    candidates = [
        [one.value, *generate_identifiers(one.value, generated, seed)] for one in identifiers
    ]
    before = [one.before for one in identifiers]
    if neighbours:
        texts = [text for some in candidates for text in some]
        contexts = [text for text in before for _ in range(1 + generated)]
        options["neighbours"] = causal_neighbours(
            model, tokenizer, texts, count=neighbours, contexts=contexts, batch_size=batch_size
        )
        attacks = [*attacks, "neighbourhood"]
    values, names = score_candidates(
        model,
        tokenizer,
        candidates,
        contexts=before,
        attacks=list(attacks),
        batch_size=batch_size,
        **options,
    )
    scores = CandidateScores(values, names, np.array([one.occurrences for one in identifiers]))
    rows = [
        {
            "attack": name,
            **attack_quality(scores.of(name), draws=draws, confidence=confidence, seed=seed),
        }
        for name in names
    ]
    ranks, _ = ranks_and_positions(scores.of(rank_attack), np.random.default_rng(seed))
    sizes = np.full(len(ranks), 1 + generated)
    rank_audit = audit_ranks(ranks, sizes, delta=delta, confidence=confidence)
    doubts = _learned_tokens(tokenizer, candidates, seed)
    doubts += unknown("model", model, -scores.of("loss")[:, 0] if "loss" in names else np.zeros(1))
    most = audit_ranks(np.ones_like(ranks), sizes, delta=delta, confidence=confidence).epsilon
    rank_audit = replace(rank_audit, ceiling=most)
    refusals = reasons(*rank_audit.refusals, _equal_scores(scores.of(rank_attack)))
    copies = max(identifier.occurrences for identifier in identifiers)
    if copies > 1:
        example = f" One example is one identifier, with all its {copies} copies where it has most."
        rank_audit = replace(rank_audit, claim=rank_audit.claim + example, copies=copies)
    doubts += rank_audit.warnings
    limit = rank_limit_of_detection(sizes, delta=delta, confidence=confidence, seed=seed)
    return LanguageModelAudit(
        found=tuple(identifiers),
        scores=scores,
        quality=pd.DataFrame(rows),
        inference=infer_dataset(values, seed=seed),
        ranks=ranks,
        rank_audit=replace(
            rank_audit,
            refusals=refusals,
            warnings=doubts,
            notes=(*rank_audit.notes, limit.sentence),
        ),
        rank_attack=rank_attack,
    )


def _equal_scores(values: np.ndarray) -> Refusal | None:
    """A refusal where most identifiers, one a row, have the score of all their alternatives."""
    equal = int((np.ptp(values, axis=1) == 0).sum())
    if 2 * equal <= len(values):
        return None
    sentence = (
        f"{equal} of {len(values)} identifiers have the score of all their alternatives, "
        f"{SAYS_NOTHING}"
    )
    return Refusal(code=RefusalCode.EQUAL_SCORES, sentence=sentence)


def _learned_tokens(
    tokenizer: Any, candidates: Sequence[Sequence[str]], seed: int
) -> tuple[str, ...]:
    """A warning where identifiers have fewer tokens than alternatives, as in a tokenizer's
    training.
    """
    strange: Any = getattr(tokenizer, "unk_token_id", None)  # what is no word of it counts twice
    flat = text_tokens(tokenizer, [text for some in candidates for text in some])
    counts = np.array([len(one) + one.count(strange) for one in flat]).reshape(len(candidates), -1)
    ranks, _ = ranks_and_positions(-counts, np.random.default_rng(seed))
    shown = audit_ranks(ranks, np.full(len(ranks), counts.shape[1]), confidence=0.99).epsilon
    said = (
        "the tokenizer has learned identifiers: numbers of tokens alone show ε ≥ "
        f"{round_down(shown):.3f}"
    )
    return (f"{said}, and the bound is about both",) if shown > 0 else ()


def without_look_alikes(
    identifiers: Sequence[FoundIdentifier],
    *,
    generated: int = 127,
    seed: int = 0,
    log: ReadLog | None = None,
) -> list[FoundIdentifier]:
    """Identifiers that nobody tells from generated ones by their letters alone (Appendix A)."""
    # A counter or a version number may look like a hash; a model that never saw it could tell it
    # from a random one. A test of fixed places judges every kind; classifiers judge kinds with 20
    # identifiers or more, and drop values only where they see more extreme ones than among fresh
    # values.
    judged = [Identifier(one.kind, one.value, 0, len(one.value)) for one in identifiers]
    result = filter_identifiers(judged, count=generated, seed=seed, evidence=0.999)
    passing = {one.value for one in result.kept}
    if log is not None:
        for kind in result.unjudged:
            log.add(
                "kind with too few identifiers for classifiers, judged by fixed places alone", kind
            )
        for one in judged:
            if one.value not in passing:
                log.add("look-alike: its letters alone tell it from random values", one.value)
    return [one for one in identifiers if one.value in passing]


def audited_identifiers(
    corpus: str | Iterable[str | Document],
    *,
    kinds: Sequence[str] | None = None,
    blind_filter: bool = True,
    before: int = 200,
    limit: int | None = None,
    seed: int = 0,
    log: ReadLog | None = None,
) -> list[FoundIdentifier]:
    """Identifiers to audit of a corpus, or of documents; ``log`` counts what was left out, and
    why.
    """
    if isinstance(corpus, str) and not corpus.strip():
        raise ValueError(
            "corpus: expected a file, a folder or the name of a known corpus, got nothing"
        )
    documents = open_corpus(corpus, log=log) if isinstance(corpus, str) else corpus
    identifiers = corpus_identifiers(
        documents, kinds=kinds or None, before=before, limit=limit, seed=seed, log=log
    )
    return without_look_alikes(identifiers, seed=seed, log=log) if blind_filter else identifiers
