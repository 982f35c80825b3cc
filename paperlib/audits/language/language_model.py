"""Any causal language model and any corpus: which identifiers of the corpus does the model know?"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeGuard

import numpy as np
import pandas as pd

from paperlib.attacks.dataset_inference import DatasetInference, infer_dataset, ranks_and_positions
from paperlib.attacks.language import score_candidates
from paperlib.attacks.language.completions import LearnedText
from paperlib.attacks.language.neighbours import causal_neighbours
from paperlib.attacks.language.windows import text_tokens
from paperlib.audits.candidates import CandidateScores, attack_quality
from paperlib.audits.document import AuditDocument, answer_of
from paperlib.audits.language.blind import unknown
from paperlib.audits.language.chat_templates import On, written_texts
from paperlib.audits.language.corpus import (
    FoundIdentifier,
    corpus_identifiers,
    is_fair,
    open_corpus,
)
from paperlib.bounds import audit_ranks, exposure
from paperlib.bounds.ranks.audit import RankAuditResult
from paperlib.bounds.ranks.detection import rank_limit_of_detection
from paperlib.core import MembershipScores, ScoreAudit
from paperlib.core.checks import check_choice
from paperlib.core.facts import Refusal, RefusalCode, reasons
from paperlib.data.text.corpora import Document
from paperlib.data.text.pieces import ReadLog
from paperlib.generators.identifiers import Identifier, generate_identifiers
from paperlib.generators.identifiers.filter import filter_identifiers
from paperlib.report.audit.tables import TableSection
from paperlib.words.audits import completions
from paperlib.words.audits import language_model as words

FEWEST_IDENTIFIERS = 10
"""Identifiers that an audit needs: fewer tell hardly anything."""


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
    token_epsilon: float = (
        0.0  #: what numbers of tokens alone show, nats: above 0 the tokenizer learned identifiers
    )

    @property
    def table(self) -> pd.DataFrame:
        """One row per identifier, the best known first, with its rank and its exposure in bits."""
        columns = ["kind", "value", "occurrences", "document"]
        frame = pd.DataFrame(list(self.found))[columns].assign(
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
        values = [identifier.value for identifier in self.found]
        alternatives = self.scores.values.shape[1] - 1
        names = [*values]
        for value in values:
            names += [f"alternative of {value}"] * alternatives
        return names

    @property
    def pooled_kinds(self) -> list[str]:
        """The kind of identifier of each score of ``pooled``."""
        kinds = [identifier.kind for identifier in self.found]
        alternatives = self.scores.values.shape[1] - 1
        return [*kinds, *np.repeat(kinds, alternatives).tolist()]

    def document(
        self, *, subject: str = "", log: Sequence[str] = (), count: int = 20, **fields: Any
    ) -> AuditDocument:
        """The audit of ``subject`` as page and JSON, with what ``log`` left out and ``count``
        identifiers; ``fields`` are further ones of `AuditDocument`.
        """
        ranks = ScoreAudit(
            title=words.ranks_title(self.rank_attack),
            kind="lower bound",
            purpose=words.RANKS_PURPOSE,
            result=self.rank_audit,
        )
        whole = ScoreAudit(
            title=words.INFERENCE_TITLE,
            kind="measurement",
            purpose=words.INFERENCE_PURPOSE,
            result=self.inference,
        )
        kinds = self.pooled_kinds
        return AuditDocument(
            title=words.TITLE,
            scores=self.pooled,
            audits=(ranks, whole),
            answers=(answer_of(self.rank_audit, about=subject, warnings=log),),
            limits=((self.rank_audit.epsilon, self.ceiling),),
            design="candidates",
            ids=self.pooled_names,
            groups=kinds if len(set(kinds)) > 1 else None,
            sections=(self._best_known(count), self._attacks()),
            more={
                "attacks": self.quality.to_dict("records"),
                "identifiers": self.table.to_dict("records"),
            },
            **fields,
        )

    def _best_known(self, count: int) -> TableSection:
        """The section of the page with the ``count`` identifiers that the model knows best."""
        size = self.scores.values.shape[1]
        rows: list[tuple[str, ...]] = []
        for row in self.table.head(count).to_dict("records"):
            rows.append(
                (
                    str(row["value"]),
                    str(row["kind"]),
                    f"{row['occurrences']:,}",
                    f"{row['rank']} of {size}",
                    f"{row['exposure']:.2f}",
                )
            )
        return TableSection(
            title=words.BEST_KNOWN_TITLE,
            text=words.best_known_text(size, self.rank_attack),
            headings=("Identifier", "Kind", "Occurrences", "Rank", "Exposure (bits)"),
            rows=rows,
        )

    def _attacks(self) -> TableSection:
        """The section of the page with the AUC and the true-positive rate of each score."""
        return TableSection(
            title=words.SCORES_TITLE,
            text=words.SCORES_TEXT,
            headings=("Score", "AUC [interval]", "TPR at 1 % FPR [at this threshold]"),
            rows=[
                (str(row["attack"]), _percent(row, "auc"), _percent(row, "tpr"))
                for row in self.quality.to_dict("records")
            ],
        )


def _percent(row: Mapping[Any, Any], name: str) -> str:
    """A share with its interval, in percent."""
    low = row[f"{name}_low"]
    high = row[f"{name}_high"]
    return f"{100 * row[name]:.1f} % [{100 * low:.1f}, {100 * high:.1f}]"


def audit_language_model(
    model: Any,
    tokenizer: Any,
    identifiers: Sequence[FoundIdentifier] | Sequence[str] | Sequence[Mapping[str, Any]],
    *,
    on: On = "all",
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
        identifiers: Identifiers from `corpus_identifiers`, 10 or more; or the documents that hold
            them, texts or chats as mappings (messages, conversations, or prompt and completion),
            of which `audited_identifiers` then takes those to audit.
        on: Of chats, what training took its loss from: "all", or "completions" of prompts and turns
            of the assistant alone, with the masks of TRL (`ChatTemplate.learned`).
        generated: Number of alternatives per identifier, 1 or more.
        attacks: Names of `score_texts`; those with a prefix or a reference need it in ``options``.
        rank_attack: The attack whose ranks are audited.
        confidence, delta: As for `audit_ranks`; the confidence is that of the intervals too.
        draws: Number of bootstrap draws, 1 or more.
        batch_size: Texts of a batch, 1 or more.
        neighbours: Neighbours of each text for the neighbourhood attack; 0 leaves it out.
        seed: Seed of the alternatives, of ties and of the bootstrap, 0 or more.
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
    check_choice("rank_attack", rank_attack, tuple(attacks))
    remarks: tuple[str, ...] = ()
    if not _are_found(identifiers):
        identifiers, remarks = _in_documents(tokenizer, identifiers, on, seed)
    elif on != "all":
        raise ValueError("on: says how documents are read; give them in place of identifiers")
    _check_identifiers(identifiers)
    candidates = [
        [identifier.value, *generate_identifiers(identifier.value, generated, seed)]
        for identifier in identifiers
    ]
    before = [identifier.before for identifier in identifiers]
    if neighbours:
        options["neighbours"] = _neighbours_of_candidates(
            model, tokenizer, candidates, before, count=neighbours, batch_size=batch_size
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
    occurrences = np.array([identifier.occurrences for identifier in identifiers])
    scores = CandidateScores(values, names, occurrences)
    quality = _quality(scores, names, draws=draws, confidence=confidence, seed=seed)
    ranks, _ = ranks_and_positions(scores.of(rank_attack), np.random.default_rng(seed))
    token_epsilon = _token_epsilon(tokenizer, candidates, seed)
    losses = -scores.of("loss")[:, 0] if "loss" in names else np.zeros(1)
    warnings = remarks + words.learned_tokens(token_epsilon) + unknown("model", model, losses)
    rank_audit = _audit_of_ranks(ranks, 1 + generated, delta, confidence, seed)
    return LanguageModelAudit(
        found=tuple(identifiers),
        scores=scores,
        quality=quality,
        inference=infer_dataset(values, seed=seed),
        ranks=ranks,
        rank_audit=replace(
            _about_copies(rank_audit, int(occurrences.max())),
            refusals=reasons(*rank_audit.refusals, _equal_scores(scores.of(rank_attack))),
            warnings=(*warnings, *rank_audit.warnings),
        ),
        rank_attack=rank_attack,
        token_epsilon=token_epsilon,
    )


def _are_found(identifiers: Sequence[Any]) -> TypeGuard[Sequence[FoundIdentifier]]:
    """Whether these are identifiers that were found, and no documents that may hold some."""
    return all(isinstance(identifier, FoundIdentifier) for identifier in identifiers)


def _in_documents(
    tokenizer: Any, documents: Sequence[Any], on: On, seed: int
) -> tuple[list[FoundIdentifier], tuple[str, ...]]:
    """The identifiers to audit in documents, chats among them, and remarks on what was left out; a
    ValueError where fewer than 10 are left, or a chat cannot be written.
    """
    log = ReadLog()
    texts = written_texts(tokenizer, documents, on, name="identifiers")
    found = audited_identifiers(texts, seed=seed, log=log)
    left_out = log.lines
    if len(found) < FEWEST_IDENTIFIERS:
        left = f"{len(found)} identifiers are left, {FEWEST_IDENTIFIERS} are needed"
        raise ValueError("; ".join([f"identifiers: {left}", *left_out]))
    if on == "completions" and any(text.by_turns for text in texts):
        left_out.append(completions.BY_TURNS)
    return found, tuple(left_out)


def _check_identifiers(identifiers: Sequence[FoundIdentifier]) -> None:
    """Refuse (ValueError) few identifiers, one that is there twice, and one that the text before it
    holds in part.
    """
    if len(identifiers) < FEWEST_IDENTIFIERS:
        raise ValueError(
            f"identifiers: expected {FEWEST_IDENTIFIERS} identifiers or more, got "
            f"{len(identifiers)}"
        )
    if len({identifier.value.lower() for identifier in identifiers}) < len(identifiers):
        raise ValueError(
            "identifiers: expected each once, got one twice; audit those of all texts together"
        )
    unfair = [
        identifier.value
        for identifier in identifiers
        if not is_fair(identifier.value, identifier.before)
    ]
    if unfair:
        raise ValueError(
            f"identifiers: {len(unfair)} of {len(identifiers)} stand behind a text that holds them "
            f"or a part of them, such as {unfair[0]!r}; leave them out, as corpus_identifiers does"
        )


def _neighbours_of_candidates(
    model: Any,
    tokenizer: Any,
    candidates: Sequence[Sequence[str]],
    before: Sequence[str],
    *,
    count: int,
    batch_size: int,
) -> list[list[str]]:
    """``count`` neighbours, texts like it, of each candidate: one list for each candidate, those of
    the first identifier first.

    ``before`` holds the text before each identifier, which stands before all of its candidates.
    """
    texts: list[str] = []
    contexts: list[str] = []
    for candidates_of_one, context in zip(candidates, before, strict=True):
        texts += candidates_of_one
        contexts += [context] * len(candidates_of_one)
    return causal_neighbours(
        model, tokenizer, texts, count=count, contexts=contexts, batch_size=batch_size
    )


def _quality(
    scores: CandidateScores, names: Sequence[str], *, draws: int, confidence: float, seed: int
) -> pd.DataFrame:
    """AUC and true-positive rate of each attack, with bootstrap intervals: one row per attack."""
    rows: list[dict[str, Any]] = []
    for name in names:
        measured = attack_quality(scores.of(name), draws=draws, confidence=confidence, seed=seed)
        rows.append({"attack": name, **measured})
    return pd.DataFrame(rows)


def _audit_of_ranks(
    ranks: np.ndarray, size: int, delta: float, confidence: float, seed: int
) -> RankAuditResult:
    """The bound from ranks, shape (identifiers,), 1 for the best of ``size`` candidates, with its
    ceiling, nats, and a note on its limit of detection.
    """
    sizes = np.full(len(ranks), size)
    result = audit_ranks(ranks, sizes, delta=delta, confidence=confidence)
    all_first = audit_ranks(np.ones_like(ranks), sizes, delta=delta, confidence=confidence)
    limit = rank_limit_of_detection(sizes, delta=delta, confidence=confidence, seed=seed)
    return replace(result, ceiling=all_first.epsilon, notes=(*result.notes, limit.sentence))


def _about_copies(result: RankAuditResult, copies: int) -> RankAuditResult:
    """The result, speaking of an identifier with all its copies, of which one has ``copies``."""
    if copies == 1:
        return result
    return replace(result, claim=result.claim + words.copies_claim(copies), copies=copies)


def _equal_scores(values: np.ndarray) -> Refusal | None:
    """A refusal where most identifiers have the score of all their alternatives; None elsewhere.

    ``values`` are scores, shape (identifiers, candidates).
    """
    equal = int((np.ptp(values, axis=1) == 0).sum())
    if 2 * equal <= len(values):
        return None
    sentence = words.equal_scores(equal, len(values))
    return Refusal(code=RefusalCode.EQUAL_SCORES, sentence=sentence)


def _token_epsilon(tokenizer: Any, candidates: Sequence[Sequence[str]], seed: int) -> float:
    """The bound that numbers of tokens alone show at confidence 0.99, nats: above 0 where
    identifiers have fewer than alternatives, as in a tokenizer's training.
    """
    unknown_token: Any = getattr(tokenizer, "unk_token_id", None)  # counts twice: it is no word
    texts: list[str] = []
    for candidates_of_one in candidates:
        texts += candidates_of_one
    tokens = text_tokens(tokenizer, texts)
    counts = np.array([len(row) + row.count(unknown_token) for row in tokens])
    counts = counts.reshape(len(candidates), -1)
    ranks, _ = ranks_and_positions(-counts, np.random.default_rng(seed))
    sizes = np.full(len(ranks), counts.shape[1])
    return audit_ranks(ranks, sizes, confidence=0.99).epsilon


def without_look_alikes(
    identifiers: Sequence[FoundIdentifier],
    *,
    generated: int = 127,
    seed: int = 0,
    log: ReadLog | None = None,
) -> list[FoundIdentifier]:
    """Identifiers that nobody tells from generated ones by their letters alone (Appendix A).

    Args:
        generated: Alternatives drawn for each identifier.
        seed: Seed of these draws, 0 or more.
        log: Takes each value that is left out, and each kind that could not be judged.

    Returns:
        Those of ``identifiers`` whose values pass, in their order.
    """
    # A counter or a version number may look like a hash; a model that never saw it could tell it
    # from a random one. A test of fixed places judges every kind; classifiers judge kinds with 20
    # identifiers or more, and drop values only where they see more extreme ones than among fresh
    # values.
    judged = [
        Identifier(identifier.kind, identifier.value, 0, len(identifier.value))
        for identifier in identifiers
    ]
    result = filter_identifiers(judged, count=generated, seed=seed, evidence=0.999)
    passing = {identifier.value for identifier in result.kept}
    kept = [identifier for identifier in identifiers if identifier.value in passing]
    left_out = [identifier for identifier in identifiers if identifier.value not in passing]
    if log is not None:
        for kind in result.unjudged:
            log.add(words.UNJUDGED_KIND, kind)
        for identifier in left_out:
            log.add(words.LOOK_ALIKE, identifier.value)
    return kept


def audited_identifiers(
    corpus: str | Iterable[str | Document] | list[LearnedText],
    *,
    kinds: Sequence[str] | None = None,
    blind_filter: bool = True,
    before: int = 200,
    limit: int | None = None,
    seed: int = 0,
    log: ReadLog | None = None,
) -> list[FoundIdentifier]:
    """Identifiers to audit of a corpus, or of documents.

    Of texts with what training took its loss from, such as completions, those that stand there.

    Args:
        corpus: Name of a known corpus, path of a file or a folder, or documents.
        kinds: Kinds of identifiers; None for all.
        blind_filter: Whether those that their letters tell from generated ones are left out.
        before: Characters to keep before each, 0 or more.
        limit: If there are more, a random sample of this size; None for all.
        seed: Seed of the sample and of the filter's draws, 0 or more.
        log: Counts what was left out, and why.

    Raises:
        ValueError: An empty name of a corpus, or an unknown kind; and as `open_corpus`.
    """
    if isinstance(corpus, str) and not corpus.strip():
        raise ValueError(
            "corpus: expected a file, a folder or the name of a known corpus, got nothing"
        )
    learned: list[LearnedText] = []
    if isinstance(corpus, list):
        learned = [text for text in corpus if isinstance(text, LearnedText)]
    stretches = _stretches(learned)
    documents: Iterable[Any] = corpus
    if isinstance(corpus, str):
        documents = open_corpus(corpus, log=log)
    elif stretches:
        documents = [stretch.text for stretch in stretches]
    identifiers = corpus_identifiers(
        documents, kinds=kinds or None, before=before, limit=limit, seed=seed, log=log
    )
    if stretches:
        identifiers = _behind_prompts(identifiers, stretches, before, log)
    return without_look_alikes(identifiers, seed=seed, log=log) if blind_filter else identifiers


class _Stretch(NamedTuple):
    """A stretch of a text that training took its loss from."""

    text: str
    before: str  #: all of the text that precedes it
    document: int  #: number of the text


def _stretches(texts: Sequence[LearnedText]) -> list[_Stretch]:
    """What training took its loss from in all texts, a stretch each, in their order."""
    stretches: list[_Stretch] = []
    for number, learned in enumerate(texts):
        for start, end in learned.stretches:
            stretches.append(_Stretch(learned.text[start:end], learned.text[:start], number))
    return stretches


def _behind_prompts(
    identifiers: Sequence[FoundIdentifier],
    stretches: Sequence[_Stretch],
    before: int,
    log: ReadLog | None,
) -> list[FoundIdentifier]:
    """Identifiers found in stretches, with up to ``before`` characters of the whole text before
    each, prompts too; without those that these tell in part, which ``log`` counts.

    ``identifier.document`` is the number of its stretch, and that of its text in what is returned.
    """
    kept: list[FoundIdentifier] = []
    for identifier in identifiers:
        stretch = stretches[identifier.document]
        behind = f"{stretch.before}{identifier.before}"
        context = behind[max(0, len(behind) - before) :]
        if is_fair(identifier.value, context):
            kept.append(replace(identifier, before=context, document=stretch.document))
        elif log is not None:
            log.add(completions.IN_PROMPT, identifier.value)
    return kept
