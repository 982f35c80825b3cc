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
from paperlib.audits.panoramia.memorization import text_warnings
from paperlib.audits.panoramia.pools import SYNTHETIC, Model, check_model
from paperlib.core import FloatArray, IntArray
from paperlib.core.checks import check_at_least, check_in, find_ties, one_of_each
from paperlib.core.facts import NAMES_GIVEN
from paperlib.generators.text import (
    ChunkTraining,
    TextGenerator,
    copied_text,
    token_losses,
    train_on_chunks,
)
from paperlib.models.language import (
    LanguageModelConfig,
    load_language_model,
    new_language_model,
    train_tokenizer,
)
from paperlib.words.designs import tie_warnings


@dataclass(frozen=True, kw_only=True)
class TextDefaults:
    """How text without a generator of its own is prepared."""

    #: Name or folder of a causal language model that generator and helpers start from, such as
    #: "gpt2"; it must not have seen the members. Empty: a small GPT from scratch, a weak generator.
    base: str = ""
    tokens: int = 32  #: length of a chunk; shorter ends of documents are left out
    chunks_per_document: int = 50  #: at most
    share: float = 0.4  #: of the documents that the generator is trained on, in (0, 1)
    epochs: int = 6  #: of generator and helpers, at most
    top_k: int = 200  #: likeliest tokens that the generator draws from
    vocabulary: int = 1024  #: tokens of the small GPT
    width: int = 64  #: of the small GPT
    seed: int = 0  #: of the order of documents, the models and the draws

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

    Non-members are generated, as `bring_text` describes; the rest is as in `audit_table`.

    Guarantee:
        As for `audit_table`, for the first game.

    Args:
        target: Function from a list of texts to losses, shape (n,), lower where the model knows the
            text.
        documents: Texts the target was trained on.
        generated: Texts of a generator that saw none of the audited documents, about as long as a
            chunk; None trains one.
        train_again, seed, options: As for `audit_table`, with a list of chunks in the place of a
            table.
        settings: Chunks, generator and helpers; None takes the defaults. ``seed`` is used in place
            of theirs.
        unit: The record that each document belongs to, such as an author: one document of each is
            audited.
    """
    defaults = replace(settings or TextDefaults(), seed=seed)
    data = bring_text(documents, defaults, generated=generated, unit=unit)
    again = None if train_again is None else partial(_trained_again, train_again)
    return audit_model(of_text(target), data, train_again=again, seed=seed, **options)


def bring_text(
    documents: Sequence[str],
    defaults: TextDefaults | None = None,
    *,
    generated: Sequence[str] | None = None,
    unit: Sequence[Any] | None = None,
) -> AuditData:
    """Prepare documents the target was trained on; arguments as for `audit_text`.

    Some documents become D_G: the generator, helpers and, from scratch, the tokenizer learn from
    them. Chunks of the others are audited. Half of the generated chunks go to a helper that learns
    these alone. The target of `audit_model` takes texts and their tokens then.

    Raises:
        ValueError: Documents that are no texts, or fewer than 30 chunks to learn or to audit.
    """
    settings = defaults or TextDefaults()
    documents = list(documents)
    if not all(isinstance(document, str) for document in documents):
        raise ValueError(
            "documents: expected texts; write chats as texts first, with written_texts of "
            "paperlib.audits.language.chat_templates and the target's tokenizer"
        )
    if unit is not None:
        rows = one_of_each(unit, len(documents), settings.seed).tolist()
        documents = [documents[row] for row in rows]
    hashes = np.array([hash(document) for document in documents])
    warnings = tie_warnings(find_ties("documents", hashes))
    order = np.random.default_rng(settings.seed).permutation(len(documents))
    texts = [" ".join(documents[index].split()) for index in order.tolist()]
    cut = round(settings.share * len(texts))
    base, tokenizer = _base_model(settings, texts[:cut])
    learned = _chunks(texts[:cut], tokenizer, settings)
    audited = _chunks(texts[cut:], tokenizer, settings)
    for name, chunks in (("generator's", learned), ("audited", audited)):
        if len(chunks) < 30:
            raise ValueError(
                f"documents: the {name} part has {len(chunks)} chunks of {settings.tokens} tokens, "
                "30 are needed at least; bring more text or take shorter chunks"
            )
    if generated is not None and len(generated):
        drawn = _chunks(generated, tokenizer, settings)
    else:
        training = _training(settings, settings.seed)
        generator = TextGenerator(
            length=settings.tokens, prompt=0, top_k=settings.top_k, training=training
        )
        drawn = generator.fit(learned, base=base).sample(2 * len(audited), settings.seed + 1)
    half = len(drawn) // 2
    to_show, to_learn = drawn[:half], drawn[half:]
    compared = copied_text(to_show, learned, audited, length=settings.tokens)
    learn = partial(_helper, base, settings)
    return AuditData(
        members=_batch(tokenizer, audited),
        generated=_batch(tokenizer, to_show),
        known=_batch(tokenizer, learned),
        helpers={SYNTHETIC: learn([], to_learn, settings.seed)},
        train=learn,
        examples=_letters,
        unit="" if unit is None else NAMES_GIVEN,
        warnings=(*warnings, *text_warnings(compared)),
    )


def _base_model(settings: TextDefaults, texts: list[str]) -> tuple[Any, Any]:
    """The model that generator and helpers start from, with its tokenizer: the one of the settings,
    or a small one whose tokenizer learns from these texts.
    """
    if settings.base:
        return load_language_model(settings.base, dtype="float32")
    context = 1 + 2 * settings.tokens
    tokenizer = train_tokenizer(texts, settings.vocabulary, context=context)
    shape = LanguageModelConfig(width=settings.width, context=context, seed=settings.seed)
    return new_language_model(shape, len(tokenizer)), tokenizer


def of_text(target: Callable[[list[str]], ArrayLike]) -> Model:
    """A target that takes texts alone, as `audit_model` calls it."""
    return lambda texts, tokens: target(texts)


def _trained_again(
    train_again: Callable[..., Any], texts: list[str], tokens: IntArray, seed: int
) -> Model:
    """The user's model trained anew on texts, as a function of texts and tokens, which are left
    out; a ValueError where it is no function.
    """
    return of_text(check_model("train_again", train_again(texts, seed)))


def _chunks(texts: Sequence[str], tokenizer: Any, settings: TextDefaults) -> IntArray:
    """Different chunks of the texts, as numbers of tokens, shape (n, tokens), in random order;
    ends of texts that fill no chunk are left out.
    """
    length = settings.tokens
    rows: list[list[int]] = []
    for tokens in tokenizer(list(texts), verbose=False)["input_ids"] if texts else ():
        starts = range(0, len(tokens) - length + 1, length)[: settings.chunks_per_document]
        rows += [tokens[start : start + length] for start in starts]
    chunks = np.array(rows, dtype=np.int64).reshape(-1, length)
    if len(chunks):
        # In random order, as the first ones are learned and the last ones judged.
        chunks = np.random.default_rng(settings.seed).permutation(np.unique(chunks, axis=0))
    return chunks


def _batch(tokenizer: Any, chunks: IntArray) -> tuple[list[str], IntArray]:
    """Chunks, shape (n, tokens), as a batch: their texts, and the numbers of their tokens."""
    return tokenizer.batch_decode(chunks), chunks


def _training(settings: TextDefaults, seed: int) -> ChunkTraining:
    return ChunkTraining(epochs=settings.epochs, patience=1, seed=seed)


def _helper(
    base: Any, settings: TextDefaults, texts: list[str], tokens: IntArray, seed: int
) -> Model:
    """A model that starts from ``base`` and learns chunks, (n, length), of which a tenth, drawn at
    random, tells when to stop; as a function from texts and chunks to losses, nats per token, (n,).

    ``texts`` are not used: a batch of text holds both.
    """
    chunks = tokens[np.random.default_rng(seed).permutation(len(tokens))]
    last = max(1, len(chunks) // 10)
    model = copy.deepcopy(base)
    train_on_chunks(
        model, chunks[:-last], training=_training(settings, seed), validation=chunks[-last:]
    )
    return lambda texts, tokens: token_losses(model, tokens).mean(axis=1)


def _letters(texts: list[str], tokens: IntArray) -> FloatArray:
    """Counts of three letters in a row, hashed to 64 bins, of each text, shape (n, 64)."""
    vectorizer = HashingVectorizer(
        analyzer="char", ngram_range=(3, 3), n_features=64, alternate_sign=False
    )
    counts: Any = vectorizer.transform(texts)
    return np.asarray(counts.toarray(), dtype=np.float64)
