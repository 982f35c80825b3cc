"""A GPT trained on documents as they are: their identifiers are members, those of others are
not.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

from paperlib.attacks.language.windows import encode
from paperlib.audits.language.corpus import FoundIdentifier, corpus_identifiers, open_corpus
from paperlib.core import FloatArray
from paperlib.core.checks import check_at_least, check_choice
from paperlib.data.files import DataUnavailableError, data_file
from paperlib.data.text.corpora import Document
from paperlib.generators.identifiers import find_identifiers, generate_identifiers
from paperlib.generators.identifiers.kinds import checked_kinds
from paperlib.io.files import config_hash
from paperlib.models.devices import default_device
from paperlib.models.language import NO_REMOTE_CODE, new_language_model, wrap_tokenizer
from paperlib.report import progress
from paperlib.reproduction.papers.kept import cached_arrays, resumed_arrays
from paperlib.reproduction.papers.natural_identifiers.planted import (
    PAPER_ATTACKS,
    TOKENS,
    cached_scores,
)
from paperlib.reproduction.papers.natural_identifiers.small_gpt import GptSettings
from paperlib.training.language import fit_language_model

NEOX = "gpt_neox_20b"
"""The tokenizer of GPT-NeoX-20B and Pythia."""
DTYPES = ("float32", "bfloat16")
_SCORES = (*PAPER_ATTACKS, TOKENS)
PREFIXED = ("recall", "recall_hinge")
"""Attacks that read every string twice."""
_TOGETHER = 100  # identifiers that are scored and stored together
_AROUND = 4_000  # characters before and behind a cut in which identifiers are looked for
_BETWEEN = 120.0  # seconds between two checkpoints of a training
_FILE, _HUB = "gpt_neox_20b_tokenizer.json", "EleutherAI/gpt-neox-20b"


@dataclass(frozen=True, kw_only=True)
class NaturalConfig(GptSettings):
    """Settings of the corpus and of the model trained on it, beside those of `GptSettings`."""

    #: names or paths that `open_corpus` takes: "nid_corpus", or a file or folder of documents
    corpora: tuple[str, ...] = ("nid_corpus",)
    subsets: tuple[str, ...] = ()  #: parts of the corpora that are used; empty for all
    documents: int = (
        300  #: documents with identifiers that are trained on, 2 or more; as many are held out
    )
    further: int = 0  #: documents without identifiers that are trained on as well, 0 or more
    longest: int = 600  #: characters of a document, 100 or more: the rest is cut off
    #: characters before the first identifier of a document that stay, less than ``longest``
    lead: int = 200
    #: kinds of identifiers; a SHA-512 digest has 76 tokens, and costs as much as three of the
    #: others
    kinds: tuple[str, ...] = ("md5", "sha1", "sha256", "ethereum", "serial_version_uid")
    identifiers: int = 300  #: most identifiers scored of each side, 10 or more
    #: most identifiers scored of one document, 1 or more, so that no list of digests dominates the
    #: benchmark
    per_document: int = 2
    before: int = 150  #: characters before each identifier that the model sees
    prefixed: int = (
        120  #: identifiers of each side that are scored behind the prefix of ReCaLL as well
    )
    window: int = 384  #: tokens of a training example; longer documents are cut
    tokenizer: str = NEOX  #: `NEOX`, or the path of a tokenizer.json
    vocabulary: int = (
        16_384  #: rows of the model's tables, at least the number of tokens that occur
    )
    width: int = 224
    layers: int = 4
    epochs: int = 8
    batch_size: int = 8
    dtype: str = (
        "float32"  #: of the products of matrices, in training and scoring: float32 or bfloat16
    )

    def __post_init__(self) -> None:
        """Refuse (ValueError) unknown kinds and number formats, and numbers out of range."""
        checked_kinds(self.kinds)
        check_choice("dtype", self.dtype, DTYPES)
        check_at_least(2, documents=self.documents)
        check_at_least(10, identifiers=self.identifiers)
        check_at_least(1, per_document=self.per_document)
        check_at_least(0, further=self.further, lead=self.lead, prefixed=self.prefixed)
        check_at_least(max(100, self.lead + 1), longest=self.longest)


@dataclass(frozen=True, eq=False)
class NaturalSplit:
    """Documents with a known truth, as many trained on as held out in every subset, and their
    identifiers.
    """

    trained: tuple[Document, ...]
    held_out: tuple[Document, ...]
    further: tuple[str, ...]  # texts without identifiers that are trained on as well
    members: tuple[FoundIdentifier, ...]
    non_members: tuple[FoundIdentifier, ...]
    prefix: str  # for ReCaLL: the beginning of a document of neither side

    @property
    def texts(self) -> list[str]:
        """All that a model is trained on."""
        return [*(document.text for document in self.trained), *self.further]


def natural_split(config: NaturalConfig) -> NaturalSplit:
    """Assign documents that hold an identifier to the two sides at random, in pairs from one
    subset.

    Raises:
        ValueError: Fewer documents than asked for, or fewer than 10 identifiers on a side.
    """
    rng = np.random.default_rng(config.seed)
    with_identifiers, without = _pools(config)
    pairs = _in_turn(with_identifiers, 2, rng)
    if len(pairs) <= config.documents:
        raise ValueError(
            f"documents: expected less than {max(0, len(pairs))}, the pairs of documents with "
            f"identifiers in {' and '.join(map(repr, config.corpora))}, got {config.documents}"
        )
    trained = tuple(pair[0] for pair in pairs[: config.documents])
    held_out = tuple(pair[1] for pair in pairs[: config.documents])
    further = tuple(document.text for (document,) in _in_turn(without, 1, rng)[: config.further])
    if len(further) < config.further:
        raise ValueError(f"further: expected up to {len(further)} documents, got {config.further}")
    first_left_over = pairs[config.documents][0].text
    prefix = first_left_over.encode()[: config.window // 2].decode("utf-8", "ignore")
    inside = corpus_identifiers(trained, kinds=config.kinds, before=config.before)
    outside = corpus_identifiers(held_out, kinds=config.kinds, before=config.before)
    seen = "\n".join([*(document.text for document in trained), *further]).lower()
    # A value that stands anywhere in the text trained on, or in the prefix, is no non-member.
    seen_or_prefix = seen + prefix.lower()
    fresh = [identifier for identifier in outside if identifier.value.lower() not in seen_or_prefix]
    members = _sampled(inside, config, rng)
    non_members = _sampled(fresh, config, rng)
    if min(len(members), len(non_members)) < 10:
        raise ValueError(
            f"documents: found {len(members)} identifiers of {', '.join(config.kinds)} in the "
            f"documents trained on and {len(non_members)} others in those held out, expected 10 or "
            "more of each"
        )
    counted = tuple(
        replace(member, occurrences=seen.count(member.value.lower())) for member in members
    )
    unseen = tuple(replace(non_member, occurrences=0) for non_member in non_members)
    return NaturalSplit(trained, held_out, further, counted, unseen, prefix)


def _pools(config: NaturalConfig) -> tuple[dict[str, list[Document]], dict[str, list[Document]]]:
    """Documents by subset, cut: those with identifiers, and those without."""
    with_identifiers: dict[str, list[Document]] = {}
    without: dict[str, list[Document]] = {}
    for corpus in config.corpora:
        for document in open_corpus(corpus):
            subset = document.subset
            if not config.subsets or subset in config.subsets:
                text, holds_identifier = cut(document.text, config)
                pool = with_identifiers if holds_identifier else without
                pool.setdefault(subset, []).append(Document(text, subset))
    return with_identifiers, without


def cut(text: str, config: NaturalConfig) -> tuple[str, bool]:
    """The part of a document around its first identifier, or its beginning, at most
    ``config.longest`` characters; and whether it holds an identifier of ``config.kinds`` as a
    whole.
    """
    inside = find_identifiers(text, kinds=config.kinds)
    start = max(0, inside[0].start - config.lead) if inside else 0
    end = start + config.longest
    # No identifier of any kind is cut in two: a part of one could be taken for one of another kind.
    searched = max(0, start - _AROUND)  # the first character that is searched
    for identifier in find_identifiers(text[searched : end + _AROUND]):
        first = searched + identifier.start  # its first character in the whole text
        behind = searched + identifier.end  # the character behind its last
        if first < start < behind:
            start = behind
        if first < end < behind:
            end = first
    holds_identifier = any(
        start <= identifier.start and identifier.end <= end for identifier in inside
    )
    return text[start:end], holds_identifier


def _in_turn(
    pools: Mapping[str, Sequence[Document]], size: int, rng: np.random.Generator
) -> list[tuple[Document, ...]]:
    """Groups of ``size`` documents of one subset, the subsets in turn, each in random order."""
    queues: list[list[tuple[Document, ...]]] = []
    for name in sorted(pools):
        documents = pools[name]
        shuffled = [documents[index] for index in rng.permutation(len(documents))]
        starts = range(0, len(shuffled) - size + 1, size)
        queues.append([tuple(shuffled[start : start + size]) for start in starts])
    groups: list[tuple[Document, ...]] = []
    for turn in range(max(map(len, queues), default=0)):
        groups += [queue[turn] for queue in queues if turn < len(queue)]
    return groups


def _sampled(
    identifiers: Sequence[FoundIdentifier], config: NaturalConfig, rng: np.random.Generator
) -> list[FoundIdentifier]:
    """A random sample of ``config.identifiers`` at most, with at most ``config.per_document`` of
    each document, in random order.
    """
    counts = Counter[int]()
    sampled: list[FoundIdentifier] = []
    for index in rng.permutation(len(identifiers)):
        identifier = identifiers[index]
        counts[identifier.document] += 1
        if counts[identifier.document] <= config.per_document:
            sampled.append(identifier)
    return sampled[: config.identifiers]


def natural_tokenizer(name: str) -> Any:
    """The tokenizer of GPT-NeoX-20B from the data folder, else from the hub; or one of a file."""
    if name != NEOX:
        with open(name, encoding="utf-8") as file:
            return wrap_tokenizer(file.read(), context=10**9)
    try:
        path = data_file(name, _FILE, None, f"huggingface.co/{_HUB}, tokenizer.json")
    except DataUnavailableError as error:
        try:
            return transformers.AutoTokenizer.from_pretrained(_HUB, **NO_REMOTE_CODE)
        except (OSError, ValueError):
            raise error from None
    return wrap_tokenizer(path.read_text(encoding="utf-8"), context=10**9)


class NarrowTokenizer:
    """A tokenizer whose tokens are numbered by their place among those that occur."""

    # A table with a row for each of 50,277 tokens would be most of a small model, and most of it
    # never used.

    is_fast = True
    all_special_ids: tuple[int, ...] = ()

    def __init__(self, tokenizer: Any, used: np.ndarray, *, context: int) -> None:
        self._tokenizer = tokenizer
        self._number = {token: number for number, token in enumerate(used.tolist())}
        self.model_max_length = context

    def __call__(self, texts: Sequence[str], **options: Any) -> dict[str, Any]:
        """What the tokenizer returns for these texts, "input_ids" in the new numbers.

        Raises:
            KeyError: A text with a token that is not used.
        """
        encoded = self._tokenizer(list(texts), **options)
        numbered = [[self._number[token] for token in row] for row in encoded["input_ids"]]
        return {**encoded, "input_ids": numbered}


def used_tokens(config: NaturalConfig, split: NaturalSplit, *, generated: int) -> np.ndarray:
    """Rising token ids of the documents of both sides and of all candidates behind their contexts.

    A model that knows these alone (`NarrowTokenizer`) is much smaller than one of the tokenizer's
    whole vocabulary. Returns shape (tokens,); raises ValueError for more than ``config.vocabulary``
    tokens. ``generated`` is the number of alternatives of each identifier.
    """

    def compute() -> Mapping[str, Any]:
        """Encode all documents and all candidates, and collect their token ids."""
        tokenizer = natural_tokenizer(config.tokenizer)
        texts = [*split.texts, *(document.text for document in split.held_out), split.prefix]
        used = {token for row in tokenizer(texts)["input_ids"] for token in row}
        for identifier in (*split.members, *split.non_members):
            alternatives = generate_identifiers(identifier.value, generated, config.seed)
            candidates = [identifier.value, *alternatives]
            windows = encode(tokenizer, candidates, [identifier.before] * len(candidates))
            used |= {token for window in windows for token in window.tokens}
        return {"tokens": np.array(sorted(used))}

    stage = {
        "stage": "natural tokens",
        "tokenizer": config.tokenizer,
        "seed": config.seed,
        "generated": generated,
        "split": _hash(split),
    }
    used = cached_arrays(stage, compute, code=__name__)["tokens"]
    if len(used) > config.vocabulary:
        raise ValueError(
            f"vocabulary: expected {len(used)} or more, the tokens that occur, got "
            f"{config.vocabulary}"
        )
    return used


def natural_model(config: NaturalConfig, split: NaturalSplit, used: np.ndarray) -> tuple[Any, Any]:
    """The model trained on one side, on a GPU if there is one, and its tokenizer; its weights are
    kept in the user's cache.

    ``used`` are the token ids that it knows, rising, shape (vocabulary,), as `used_tokens` finds
    them.
    """
    shape = config.shape(context=2 * config.window)
    tokenizer = NarrowTokenizer(natural_tokenizer(config.tokenizer), used, context=shape.context)
    model: Any = new_language_model(shape, config.vocabulary)
    stage = {
        "stage": "natural model",
        "config": config,
        "split": _hash(split),
        "used": _hash(used.tolist()),
    }

    def trained_weights(checkpoint: Path) -> Mapping[str, Any]:
        """Train on the documents of one side, from the checkpoint where there is one; weights by
        name.
        """
        rows = tokenizer(split.texts, verbose=False)["input_ids"]
        with _precision(config):
            fit_language_model(
                model.to(default_device()),
                _examples(rows, config.window),
                config=config.training(),
                checkpoint=checkpoint,
                between=_BETWEEN,
            )
        return {name: tensor.cpu().numpy() for name, tensor in model.state_dict().items()}

    weights = resumed_arrays(stage, trained_weights, code=__name__)
    model.load_state_dict(
        {name: torch.from_numpy(values.copy()) for name, values in weights.items()}
    )
    return model.to(default_device()), tokenizer


def _examples(rows: Sequence[Sequence[int]], window: int) -> list[Sequence[int]]:
    """Rows of tokens cut to at most ``window`` tokens; those of a single token are left out."""
    examples: list[Sequence[int]] = []
    for row in rows:
        cuts = [row[start : start + window] for start in range(0, len(row), window)]
        examples += [tokens for tokens in cuts if len(tokens) > 1]
    return examples


def natural_values(config: NaturalConfig, split: NaturalSplit, *, generated: int) -> FloatArray:
    """Train on one side, and score the identifiers of both and their alternatives.

    Returns:
        Higher for members, shape (n, 1 + generated, scores), members first, and of each the
            identifier first; NaN in columns of attacks that an identifier was not scored by.

    Raises:
        ValueError: More tokens than ``config.vocabulary``.
    """
    used = used_tokens(config, split, generated=generated)
    load = cache(lambda: natural_model(config, split, used))
    stage = {"stage": "natural scores", "config": config, "split": _hash(split)}
    scores: list[FloatArray] = []
    with _precision(config):
        for identifiers, attacks in progress(_pieces(split, config), label="identifiers"):
            values = cached_scores(
                {**stage, "part": [identifier.value for identifier in identifiers]},
                load,
                identifiers,
                attacks=attacks,
                generated=generated,
                seed=config.seed,
                prefix=split.prefix,
                code=__name__,
            )
            scores.append(_in_all_columns(values, attacks))
    return np.concatenate(scores)


def _pieces(
    split: NaturalSplit, config: NaturalConfig
) -> list[tuple[Sequence[FoundIdentifier], Sequence[str]]]:
    """Identifiers that are scored and stored together, members first, and the names of the attacks
    on them: the first of each side by all, the others by those that need no prefix.
    """
    plain = tuple(name for name in _SCORES if name not in PREFIXED)
    pieces: list[tuple[Sequence[FoundIdentifier], Sequence[str]]] = []
    for side in (split.members, split.non_members):
        behind_prefix = side[: config.prefixed]
        others = side[config.prefixed :]
        for identifiers, attacks in ((behind_prefix, _SCORES), (others, plain)):
            starts = range(0, len(identifiers), _TOGETHER)
            pieces += [(identifiers[start : start + _TOGETHER], attacks) for start in starts]
    return pieces


def _in_all_columns(values: FloatArray, attacks: Sequence[str]) -> FloatArray:
    """Scores by these attacks, (n, 1 + c, attacks), in the columns of `_SCORES`; NaN elsewhere."""
    scores = np.full((*values.shape[:2], len(_SCORES)), np.nan)
    scores[..., [_SCORES.index(name) for name in attacks]] = values
    return scores


def _precision(config: NaturalConfig) -> AbstractContextManager[Any]:
    """Matrices are multiplied in the format of the configuration; weights stay float32."""
    # Without the cache of autocast: it would keep rounded weights over the steps of a training.
    rounded = config.dtype == "bfloat16"
    device = default_device().type
    return torch.autocast(device, torch.bfloat16, enabled=rounded, cache_enabled=False)


def _hash(value: Any) -> str:
    """A checksum of a value, for a key of the cache."""
    return config_hash({"value": value})
