"""Small GPTs with a known truth: identifiers planted 1, 2, 4, ... times in real text, and others
held out.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from paperlib.attacks.language import score_candidates
from paperlib.attacks.language.windows import encode, flattened
from paperlib.audits.candidates import CandidateScores
from paperlib.audits.language.corpus import FoundIdentifier, open_corpus
from paperlib.core import FloatArray
from paperlib.core.checks import check_at_least
from paperlib.generators.identifiers import KINDS, generate_identifiers
from paperlib.generators.identifiers.kinds import checked_kinds
from paperlib.io.files import config_hash
from paperlib.models.devices import default_device
from paperlib.models.language import new_language_model, train_tokenizer, wrap_tokenizer
from paperlib.reproduction.papers.kept import cached_arrays
from paperlib.reproduction.papers.natural_identifiers.labels import TOKENS
from paperlib.reproduction.papers.natural_identifiers.small_gpt import GptSettings
from paperlib.training.language import fit_language_model

PAPER_ATTACKS = ("loss", "min_k", "min_k_pp", "recall", "recall_hinge", "hinge")
"""The attacks of the paper's Tables 1 and 3 to 9."""

_LETTERS = 4_000_000
_TOGETHER = 1_000  # words in one text for the tokenizer


@dataclass(frozen=True, kw_only=True)
class PlantedConfig(GptSettings):
    """A corpus with planted identifiers, and the model trained on it; also the settings of
    `GptSettings`.
    """

    #: occurrences of each identifier in the corpus, one number per trained group, 1 or more
    repetitions: tuple[int, ...] = (1, 2, 4, 8, 16)
    identifiers: int = 40  #: identifiers per trained group, 2 or more
    held_out: int = 100  #: identifiers that occur nowhere, 2 or more
    kinds: tuple[str, ...] = (
        "md5",
        "sha1",
    )  #: kinds of identifiers, in turn; names of `find_identifiers`
    context_words: int = 8  #: words before each identifier
    document_tokens: int = 56  #: length of a document in tokens
    filler: float = 0.25  #: documents without identifiers, as a multiple of those with one
    #: source of the text: "documentation" (Python's help topics), a known corpus such as
    #: "pile_test_subsets", or a file or folder of documents
    text: str = "documentation"

    def __post_init__(self) -> None:
        """Refuse (ValueError) unknown kinds, and numbers out of range."""
        checked_kinds(self.kinds)
        if not self.repetitions or min(self.repetitions) < 1:
            raise ValueError(f"repetitions: expected numbers of 1 or more, got {self.repetitions}")
        check_at_least(2, identifiers=self.identifiers, held_out=self.held_out)


@dataclass(frozen=True)
class PlantedIdentifier:
    """One identifier, the text before it, and its document, which the corpus has ``repetitions``
    times.
    """

    value: str
    before: str
    document: str
    repetitions: int


@dataclass(frozen=True, eq=False)
class Planted:
    """A corpus with a known truth; held-out identifiers have 0 repetitions."""

    identifiers: tuple[PlantedIdentifier, ...]
    documents: tuple[str, ...]
    prefix: str  # for ReCaLL: a text with an identifier that occurs nowhere

    @property
    def checksum(self) -> str:
        """Changes with any letter of the corpus."""
        return config_hash({"corpus": self})


@lru_cache(maxsize=2)
def source_words(text: str = "documentation") -> tuple[str, ...]:
    """Words to cut documents from: of Python's help topics, or the first four million letters of a
    corpus.

    Raises:
        ValueError: A corpus of fewer than 1,000 words.
    """
    if text == "documentation":
        from pydoc_data.topics import topics  # half a megabyte of text

        return tuple(" ".join(topics[name] for name in sorted(topics)).split())
    words: list[str] = []
    letters = 0
    for document in open_corpus(text):
        words += document.text.split()
        letters += len(document.text)
        if letters > _LETTERS:
            break
    if len(words) < 1_000:
        raise ValueError(
            f"text: expected a corpus of 1,000 words or more, got {len(words)} in {text!r}"
        )
    return tuple(words)


def planted(config: PlantedConfig) -> Planted:
    """Cut real text into documents and plant identifiers, each in a document of its own."""
    rng = np.random.default_rng(config.seed)
    words = source_words(config.text)
    seen = len(words) * 9 // 10  # the text around held-out identifiers is not trained on
    repetitions = np.repeat(config.repetitions, config.identifiers).tolist()
    trained = [
        _plant(config, number, times, words[:seen], rng) for number, times in enumerate(repetitions)
    ]
    # The first one is the text of the prefix, and no non-member.
    of_prefix, *held_out = [
        _plant(config, number, 0, words[seen:], rng) for number in range(config.held_out + 1)
    ]
    documents: list[str] = []
    for identifier in trained:
        documents += [identifier.document] * identifier.repetitions
    for _ in range(round(config.filler * len(documents))):
        documents.append(" ".join(_cut(words[:seen], config.document_tokens, rng)))
    prefix = f"{of_prefix.before}{of_prefix.value}. "
    return Planted((*trained, *held_out), tuple(documents), prefix)


def _plant(
    config: PlantedConfig,
    number: int,
    repetitions: int,
    words: Sequence[str],
    rng: np.random.Generator,
) -> PlantedIdentifier:
    """The identifier of this number, kinds in turn, with words drawn before and behind it."""
    kind = config.kinds[number % len(config.kinds)]
    (value,) = generate_identifiers(KINDS[kind].example, 1, int(rng.integers(2**32)))
    around = _cut(words, config.context_words + config.document_tokens, rng)
    before = " ".join(around[: config.context_words]) + " "
    after = " ".join(around[config.context_words :])
    return PlantedIdentifier(value, before, f"{before}{value} {after}", repetitions)


def _cut(words: Sequence[str], count: int, rng: np.random.Generator) -> Sequence[str]:
    start = int(rng.integers(0, len(words) - count))
    return words[start : start + count]


def planted_model(config: PlantedConfig) -> tuple[Any, Any]:
    """The model trained on ``planted(config)``, on a GPU if there is one, and its tokenizer."""
    corpus = planted(config)
    stage = {"stage": "planted model", "config": config, "corpus": corpus.checksum}
    arrays = cached_arrays(stage, lambda: _train(config, corpus), code=__name__)
    tokenizer = wrap_tokenizer(str(arrays.pop("tokenizer")), context=config.shape().context)
    model: Any = new_language_model(config.shape(), len(tokenizer))
    model.load_state_dict(
        {name: torch.from_numpy(values.copy()) for name, values in arrays.items()}
    )
    return model.to(default_device()), tokenizer


def _train(config: PlantedConfig, corpus: Planted) -> Mapping[str, Any]:
    """Weights by name of a model trained on the planted documents, and "tokenizer", its tokenizer
    as JSON.
    """
    # The tokenizer learns from other texts, in which nothing is planted: one that has merged the
    # letters of a member into longer tokens would tell members by their number of tokens, whatever
    # the model knows.
    words = source_words(config.text)
    shape = config.shape()
    starts = range(0, len(words), _TOGETHER)
    texts = [" ".join(words[start : start + _TOGETHER]) for start in starts]
    tokenizer = train_tokenizer(texts, config.vocabulary, context=shape.context)
    model: Any = new_language_model(shape, len(tokenizer))
    tokens = tokenizer(list(corpus.documents), verbose=False)["input_ids"]
    examples = [text[: config.document_tokens] for text in tokens]
    fit_language_model(model.to(default_device()), examples, config=config.training())
    weights = {name: tensor.cpu().numpy() for name, tensor in model.state_dict().items()}
    return {**weights, "tokenizer": tokenizer.backend_tokenizer.to_str()}


def planted_scores(
    config: PlantedConfig, *, generated: int = 127, attacks: Sequence[str] = PAPER_ATTACKS
) -> CandidateScores:
    """Scores of every identifier in context and of its alternatives.

    Args:
        config: Corpus and model.
        generated: Alternatives of each identifier.
        attacks: Names of attacks of `score_candidates`; `TOKENS`, the number of tokens, may be the
            last.

    Returns:
        Values of shape (n, 1 + generated, attacks), the identifier first, higher for members;
            groups are numbers of occurrences, 0 for held-out identifiers.
    """
    corpus = planted(config)
    values = cached_scores(
        {"stage": "planted scores", "config": config, "corpus": corpus.checksum},
        lambda: planted_model(config),
        corpus.identifiers,
        generated=generated,
        seed=config.seed,
        attacks=attacks,
        prefix=corpus.prefix,
        code=__name__,
    )
    groups = np.array([identifier.repetitions for identifier in corpus.identifiers])
    return CandidateScores(values, tuple(attacks), groups)


def cached_scores(
    stage: Mapping[str, Any],
    model_of: Callable[[], tuple[Any, Any]],
    identifiers: Sequence[PlantedIdentifier | FoundIdentifier],
    *,
    generated: int,
    seed: int,
    attacks: Sequence[str],
    prefix: str,
    code: str,
) -> FloatArray:
    """Scores of identifiers and their alternatives, the identifier first, higher for members, shape
    (n, 1 + generated, attacks); kept in the user's cache.

    Args:
        stage: What the scores depend on beside the arguments below.
        model_of: Loads model and tokenizer; called only where scores are not in the cache.
        identifiers: Each with the text before it.
        generated: Alternatives of each identifier.
        seed: Of the alternatives.
        attacks: Names of attacks; `TOKENS` may be the last.
        prefix: Text that ReCaLL puts in front.
        code: Name of the module whose code the scores depend on.
    """

    def compute() -> Mapping[str, Any]:
        """Score every identifier and its alternatives by all attacks, shape (n, 1 + c, attacks)."""
        model, tokenizer = model_of()
        candidates = [
            [identifier.value, *generate_identifiers(identifier.value, generated, seed)]
            for identifier in identifiers
        ]
        contexts = [identifier.before for identifier in identifiers]
        asked = [name for name in attacks if name != TOKENS]  # the others ask the model
        reads_prefix = any(name.startswith("recall") for name in asked)
        values, _ = score_candidates(
            model,
            tokenizer,
            candidates,
            contexts=contexts,
            attacks=asked,
            batch_size=128,
            prefix=prefix if reads_prefix else None,
        )
        if TOKENS in attacks:
            values = np.dstack([values, token_counts(tokenizer, candidates, contexts)])
        return {"values": values}

    options = {"generated": generated, "attacks": list(attacks)}
    return cached_arrays({**stage, **options}, compute, code=code)["values"]


def token_counts(
    tokenizer: Any, candidates: Sequence[Sequence[str]], contexts: Sequence[str]
) -> FloatArray:
    """Number of tokens of each candidate behind its context, shape (n, 1 + c).

    ``candidates`` has 1 + c texts for each of n contexts.
    """
    texts, around, sizes = flattened("candidates", candidates, contexts)
    windows = encode(tokenizer, texts, around)
    counts = [len(window.tokens) - window.first for window in windows]
    return np.array(counts, dtype=np.float64).reshape(len(sizes), -1)
