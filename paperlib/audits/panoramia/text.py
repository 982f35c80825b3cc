"""Your text: documents that a language model was trained on, a generator for them, and helpers."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike
from sklearn.feature_extraction.text import HashingVectorizer

from paperlib.audits.panoramia.audit import AuditData, AuditOptions, PanoramiaAudit, audit_model
from paperlib.audits.panoramia.pools import SYNTHETIC, Model, Trainer, check_model
from paperlib.core import FloatArray, IntArray, check_at_least, check_in, check_ties, one_of_each
from paperlib.generators.text import ChunkTraining, TextGenerator, copied_text, token_losses, train_on_chunks
from paperlib.models.language import (
    LanguageModelConfig,
    load_language_model,
    new_language_model,
    train_tokenizer,
)


@dataclass(frozen=True, kw_only=True)
class TextDefaults:
    """How text without a generator of its own is prepared.

    Attributes:
        base: Name or folder of a causal language model that generator and helpers start from, such as "gpt2";
            it must not have seen the members. Empty: a small GPT from scratch, a weak generator.
        tokens: Length of a chunk; shorter ends of documents are left out.
        chunks_per_document: Largest number of chunks taken from a document, 1 or more.
        share: Share of the documents that the generator is trained on, in (0, 1).
        epochs: Largest number of epochs of generator and helpers, 1 or more.
        top_k: Likeliest tokens that the generator draws from.
        vocabulary: Tokens of the small GPT.
        width: Width of the small GPT.
        seed: Seed of the order of documents, the models and the draws, 0 or more.
    """

    base: str = ""
    tokens: int = 32
    chunks_per_document: int = 50
    share: float = 0.4
    epochs: int = 6
    top_k: int = 200
    vocabulary: int = 1024
    width: int = 64
    seed: int = 0

    def __post_init__(self) -> None:
        check_in("(0, 1)", "share", self.share)
        check_at_least(1, tokens=self.tokens, chunks_per_document=self.chunks_per_document)
        check_at_least(1, epochs=self.epochs)


def audit_text(
    target: Callable[[list[str]], ArrayLike],
    documents: Sequence[str],
    *,
    generated: Sequence[str] | None = None,
    train_again: Callable[[list[str], int], Callable[[list[str]], ArrayLike]] | None = None,
    settings: TextDefaults | None = None,
    unit: Sequence[Any] | None = None,
    seed: int = 0,
    **options: Unpack[AuditOptions],
) -> PanoramiaAudit:
    """Measure with PANORAMIA how much a language model leaks about its training documents.

    Non-members are generated, as `bring_text` describes. Helpers learn real data, too, but no chunk that is
    judged. Only ``train_again`` lets the audit check that a model that never saw the members gets 0.

    Guarantee:
        That of `audit_panoramia`, for the first game. Attacks are trained and chosen on other chunks than
        those of the test.

    Args:
        target: Function from a list of texts to one loss per text, shape (n,), lower where the model knows
            the text.
        documents: Texts the target was trained on.
        generated: Texts of a generator that saw none of the audited documents, about as long as a chunk;
            None trains one.
        train_again: Function from a list of chunks and a seed to a function like ``target``: trains your
            model anew on these texts, in your way. It is called 12 times, for helpers and for a null target.
        settings: Chunks, generator and helpers; None takes the defaults. ``seed`` is used in place of theirs.
        unit: The record that each document belongs to, such as an author: one document of each is audited,
            drawn by the seed, and the claim is about the unit.
        seed: Seed of the splits, the generator, the helpers and the attacks, 0 or more.
        options: Options of `audit_model`: ``known_c``, ``search``, ``delta``, ``gamma``, ``confidence``,
            ``repetitions`` and ``restarts``.

    Raises:
        ValueError: Too little text, losses that cannot be audited, or a number out of range.

    Source:
        PANORAMIA, Algorithm 1 (arXiv:2402.09477).

    >>> rng = np.random.default_rng(0)
    >>> words = ["privacy", "of", "models", "is", "audited", "with", "generated", "text", "and", "coins"]
    >>> documents = [" ".join(rng.choice(words, 40)) + f" page {number}" for number in range(60)]
    >>> known = " ".join(documents)
    >>> def losses(texts):  # a model that memorised its training text
    ...     return [0.0 if text in known else 2.0 for text in texts]
    >>> small = TextDefaults(tokens=8, epochs=1, width=16, vocabulary=300)
    >>> audit = audit_text(losses, documents, settings=small, repetitions=1, restarts=1)
    >>> print(audit.headline)
    ε~ = ... (a measurement; c ≥ 2..., c + ε ≥ 2...; δ = 0, confidence 0.95); null not checked
    """
    defaults = replace(settings or TextDefaults(), seed=seed)
    brought = bring_text(documents, defaults, generated=generated, unit=unit)
    again = None if train_again is None else of_training(train_again)
    return audit_model(of_text(target), brought, train_again=again, seed=seed, **options)


def bring_text(
    documents: Sequence[str],
    defaults: TextDefaults | None = None,
    *,
    generated: Sequence[str] | None = None,
    unit: Sequence[Any] | None = None,
) -> AuditData:
    """Prepare documents the target was trained on.

    Some documents become D_G: the generator, helpers and, from scratch, the tokenizer learn from them.
    Chunks of the others are audited. Half of the generated chunks go to a helper that learns these alone.

    Args:
        documents, generated, unit: As for `audit_text`.
        defaults: Chunks, generator and helpers; None takes the defaults.

    Returns:
        `AuditData`; wrap the target by `of_text`.

    Raises:
        ValueError: Too little text.
    """
    way = defaults or TextDefaults()
    if unit is not None:
        documents = [documents[int(at)] for at in one_of_each(unit, len(documents), way.seed)]
    equal = check_ties("documents", np.array([hash(document) for document in documents]))
    order = np.random.default_rng(way.seed).permutation(len(documents))
    texts = [" ".join(documents[int(at)].split()) for at in order]
    cut = round(way.share * len(texts))
    base, tokenizer = _base(way, texts[:cut])
    known, audited = (_chunks(part, tokenizer, way) for part in (texts[:cut], texts[cut:]))
    for name, rows in (("generator's", known), ("audited", audited)):
        if len(rows) < 30:
            raise ValueError(
                f"documents: the {name} part has {len(rows)} chunks of {way.tokens} tokens, 30 are needed at "
                "least; bring more text or take shorter chunks"
            )
    made = _chunks(generated, tokenizer, way) if generated else _generate(base, known, 2 * len(audited), way)
    half = len(made) // 2
    learn = partial(_helper, base, way)
    return AuditData(
        members=_batch(tokenizer, audited),
        generated=_batch(tokenizer, made[:half]),
        known=_batch(tokenizer, known),
        helpers={SYNTHETIC: learn([], made[half:], way.seed)},
        train=learn,
        examples=_letters,
        unit="" if unit is None else "named by unit=",
        warnings=(*equal, *copied_text(made[:half], known, audited, length=way.tokens)),
    )


def of_text(target: Callable[[list[str]], ArrayLike]) -> Model:
    """A target that takes texts, as `AuditData.pools` calls it.

    >>> of_text(lambda texts: [len(text) for text in texts])(["ab", "c"], None)
    [2, 1]
    """

    def losses(texts: list[str], tokens: IntArray) -> ArrayLike:
        return target(texts)

    return losses


def of_training(train_again: Callable[[list[str], int], Callable[[list[str]], ArrayLike]]) -> Trainer:
    """A training that takes texts, as `audit_model` calls it."""

    def train(texts: list[str], tokens: IntArray, seed: int) -> Model:
        return of_text(check_model("train_again", train_again(texts, seed)))

    return train


def _base(way: TextDefaults, texts: Sequence[str]) -> tuple[Any, Any]:
    if way.base:
        return load_language_model(way.base, dtype="float32")
    context = 1 + 2 * way.tokens
    tokenizer = train_tokenizer(texts, way.vocabulary, context=context)
    shape = LanguageModelConfig(width=way.width, context=context, seed=way.seed)
    return new_language_model(shape, len(tokenizer)), tokenizer


def _chunks(texts: Sequence[str], tokenizer: Any, way: TextDefaults) -> IntArray:
    rows: list[list[int]] = []
    for tokens in tokenizer(list(texts), verbose=False)["input_ids"] if texts else ():
        starts = range(0, len(tokens) - way.tokens + 1, way.tokens)[: way.chunks_per_document]
        rows += [tokens[at : at + way.tokens] for at in starts]
    found = np.array(rows, dtype=np.int64).reshape(-1, way.tokens)
    return np.unique(found, axis=0) if len(found) else found


def _batch(tokenizer: Any, chunks: IntArray) -> tuple[list[str], IntArray]:
    return tokenizer.batch_decode(chunks), chunks


def _training(way: TextDefaults, seed: int) -> ChunkTraining:
    return ChunkTraining(epochs=way.epochs, patience=1, seed=seed)


def _generate(base: Any, known: IntArray, count: int, way: TextDefaults) -> IntArray:
    settings = TextGenerator(length=way.tokens, prompt=0, top_k=way.top_k, training=_training(way, way.seed))
    return settings.fit(known, base=base).sample(count, way.seed + 1)


def _helper(base: Any, way: TextDefaults, texts: list[str], tokens: IntArray, seed: int) -> Model:
    """A model of chunks, of which a tenth, drawn at random, tells when to stop."""
    chunks = tokens[np.random.default_rng(seed).permutation(len(tokens))]
    held = max(1, len(chunks) // 10)
    model = copy.deepcopy(base)
    train_on_chunks(model, chunks[:-held], training=_training(way, seed), validation=chunks[-held:])

    def losses(texts: list[str], tokens: IntArray) -> FloatArray:
        return token_losses(model, tokens).mean(axis=1)

    return losses


def _letters(texts: list[str], tokens: IntArray) -> FloatArray:
    """Counts of three letters in a row, in 64 bins."""
    vectorizer = HashingVectorizer(analyzer="char", ngram_range=(3, 3), n_features=64, alternate_sign=False)
    counts: Any = vectorizer.transform(texts)
    return np.asarray(counts.toarray(), dtype=np.float64)
