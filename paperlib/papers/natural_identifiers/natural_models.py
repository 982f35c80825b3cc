"""A GPT trained on documents as they are: their identifiers are members, those of others are
not.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

from paperlib.attacks.language.windows import encode
from paperlib.audits.language.corpus import FoundIdentifier, corpus_identifiers, open_corpus
from paperlib.core import FloatArray, check_at_least, check_choice
from paperlib.data.files import DataUnavailableError, data_file
from paperlib.data.text.corpora import Document
from paperlib.generators.identifiers import checked_kinds, find_identifiers, generate_identifiers
from paperlib.io import config_hash
from paperlib.models.devices import default_device
from paperlib.models.language import new_language_model, wrap_tokenizer
from paperlib.papers.kept import cached_arrays, resumed_arrays
from paperlib.papers.natural_identifiers.planted import PAPER_ATTACKS, TOKENS, cached_scores
from paperlib.papers.natural_identifiers.small_gpt import GptSettings
from paperlib.report import progress
from paperlib.training.language import fit_language_model

NEOX = "gpt_neox_20b"
"""The tokenizer of GPT-NeoX-20B and Pythia."""
DTYPES = ("float32", "bfloat16")
_SCORES = (*PAPER_ATTACKS, TOKENS)
PREFIXED = ("recall", "recall_hinge")
"""Attacks that read every string twice."""
_TOGETHER = 100  # identifiers that are scored and stored together
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
        return [*(one.text for one in self.trained), *self.further]


def natural_split(config: NaturalConfig) -> NaturalSplit:
    """Assign documents that hold an identifier to the two sides at random, in pairs from one
    subset.
    """
    rng = np.random.default_rng(config.seed)
    with_some, without = _pools(config)
    if len(pairs := _in_turn(with_some, 2, rng)) <= config.documents:
        raise ValueError(
            f"documents: expected less than {max(0, len(pairs))}, the pairs of documents with "
            f"identifiers in {' and '.join(map(repr, config.corpora))}, got {config.documents}"
        )
    trained, held = (tuple(pair[side] for pair in pairs[: config.documents]) for side in (0, 1))
    further = [one.text for (one,) in _in_turn(without, 1, rng)[: config.further]]
    if len(further) < config.further:
        raise ValueError(f"further: expected up to {len(further)} documents, got {config.further}")
    prefix = (
        pairs[config.documents][0].text.encode()[: config.window // 2].decode("utf-8", "ignore")
    )
    found = partial(corpus_identifiers, kinds=config.kinds, before=config.before)
    inside, outside = found(trained), found(held)
    seen = "\n".join([*(one.text for one in trained), *further]).lower()
    known = seen + prefix.lower()
    # A value that stands anywhere in the text trained on is no non-member.
    fresh = [one for one in outside if one.value.lower() not in known]
    members, non_members = (_sampled(part, config, rng) for part in (inside, fresh))
    if min(len(members), len(non_members)) < 10:
        raise ValueError(
            f"documents: found {len(members)} identifiers of {', '.join(config.kinds)} in the "
            f"documents trained on and {len(non_members)} others in those held out, expected 10 or "
            "more of each"
        )
    counted = (replace(one, occurrences=seen.count(one.value.lower())) for one in members)
    unseen = (replace(one, occurrences=0) for one in non_members)
    return NaturalSplit(trained, held, tuple(further), tuple(counted), tuple(unseen), prefix)


def _pools(config: NaturalConfig) -> tuple[dict[str, list[Document]], dict[str, list[Document]]]:
    """Documents by subset, cut: those with identifiers, and those without."""
    with_some: dict[str, list[Document]] = {}
    without: dict[str, list[Document]] = {}
    for corpus in config.corpora:
        for one in open_corpus(corpus):
            if not config.subsets or one.subset in config.subsets:
                text, holds = cut(one.text, config)
                pool = with_some if holds else without
                pool.setdefault(one.subset, []).append(Document(text, one.subset))
    return with_some, without


def cut(text: str, config: NaturalConfig) -> tuple[str, bool]:
    """The part of a document around its first identifier, or its beginning, and whether it holds
    one.
    """
    inside = find_identifiers(text, kinds=config.kinds)
    start = max(0, inside[0].start - config.lead) if inside else 0
    end = start + config.longest
    # No identifier of any kind is cut in two: a part of one could be taken for one of another kind.
    for one in find_identifiers(text[max(0, start - 4_000) : end + 4_000]):
        first, last = (place + max(0, start - 4_000) for place in (one.start, one.end))
        start = last if first < start < last else start
        end = first if first < end < last else end
    return text[start:end], any(start <= one.start and one.end <= end for one in inside)


def _in_turn(
    pools: Mapping[str, Sequence[Document]], size: int, rng: np.random.Generator
) -> list[tuple[Document, ...]]:
    """Groups of ``size`` documents of one subset, the subsets in turn, each in random order."""
    queues = []
    for name in sorted(pools):
        shuffled = [pools[name][at] for at in rng.permutation(len(pools[name]))]
        queues.append(
            [tuple(shuffled[at : at + size]) for at in range(0, len(shuffled) - size + 1, size)]
        )
    longest = max(map(len, queues), default=0)
    return [queue[at] for at in range(longest) for queue in queues if at < len(queue)]


def _sampled(
    every: Sequence[FoundIdentifier], config: NaturalConfig, rng: np.random.Generator
) -> list[FoundIdentifier]:
    left, chosen = dict[int, int](), list[FoundIdentifier]()
    for one in (every[at] for at in rng.permutation(len(every))):
        left[one.document] = left.get(one.document, config.per_document) - 1
        if left[one.document] >= 0:
            chosen.append(one)
    return chosen[: config.identifiers]


def natural_tokenizer(name: str) -> Any:
    """The tokenizer of GPT-NeoX-20B from the data folder, else from the hub; or one of a file."""
    if name != NEOX:
        with open(name, encoding="utf-8") as file:
            return wrap_tokenizer(file.read(), context=10**9)
    try:
        path = data_file(name, _FILE, None, f"huggingface.co/{_HUB}, tokenizer.json")
    except DataUnavailableError as error:
        try:
            return transformers.AutoTokenizer.from_pretrained(_HUB)
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
        self._place = {token: place for place, token in enumerate(used.tolist())}
        self.model_max_length = context

    def __call__(self, texts: Sequence[str], **options: Any) -> dict[str, Any]:
        """As the tokenizer; KeyError for a text with a token that is not used."""
        encoded, place = self._tokenizer(list(texts), **options), self._place
        return {
            **encoded,
            "input_ids": [[place[token] for token in row] for row in encoded["input_ids"]],
        }


def used_tokens(config: NaturalConfig, split: NaturalSplit, *, generated: int) -> np.ndarray:
    """Tokens of the documents of both sides and of all candidates behind their contexts, in
    order.
    """

    def compute() -> Mapping[str, Any]:
        tokenizer = natural_tokenizer(config.tokenizer)
        texts = [*split.texts, *(one.text for one in split.held_out), split.prefix]
        used = {token for row in tokenizer(texts)["input_ids"] for token in row}
        for one in (*split.members, *split.non_members):
            candidates = [one.value, *generate_identifiers(one.value, generated, config.seed)]
            windows = encode(tokenizer, candidates, [one.before] * len(candidates))
            used |= {token for window in windows for token in window.tokens}
        return {"tokens": np.array(sorted(used))}

    about = {"tokenizer": config.tokenizer, "seed": config.seed, "generated": generated}
    stage = {"stage": "natural tokens", **about, "split": _hash(split)}
    if len(used := cached_arrays(stage, compute, code=__name__)["tokens"]) > config.vocabulary:
        raise ValueError(
            f"vocabulary: expected {len(used)} or more, the tokens that occur, got "
            f"{config.vocabulary}"
        )
    return used


def natural_model(config: NaturalConfig, split: NaturalSplit, used: np.ndarray) -> tuple[Any, Any]:
    """The model trained on one side, on a GPU if there is one, and its tokenizer."""
    shape = config.shape(context=2 * config.window)
    tokenizer = NarrowTokenizer(natural_tokenizer(config.tokenizer), used, context=shape.context)
    model: Any = new_language_model(shape, config.vocabulary)
    stage = {
        "stage": "natural model",
        "config": config,
        "split": _hash(split),
        "used": _hash(used.tolist()),
    }

    def train(checkpoint: Path) -> Mapping[str, Any]:
        rows = tokenizer(split.texts, verbose=False)["input_ids"]
        examples = [
            row[at : at + config.window] for row in rows for at in range(0, len(row), config.window)
        ]
        whole = [one for one in examples if len(one) > 1]
        kept: dict[str, Any] = {"checkpoint": checkpoint, "between": _BETWEEN}
        with _precision(config):
            fit_language_model(model.to(default_device()), whole, config=config.training(), **kept)
        return {name: tensor.cpu().numpy() for name, tensor in model.state_dict().items()}

    weights = resumed_arrays(stage, train, code=__name__)
    model.load_state_dict(
        {name: torch.from_numpy(values.copy()) for name, values in weights.items()}
    )
    return model.to(default_device()), tokenizer


def natural_values(config: NaturalConfig, split: NaturalSplit, *, generated: int) -> FloatArray:
    """Train on one side, score both, members first: shape (n, 1 + generated, scores), higher:
    member.
    """
    used = used_tokens(config, split, generated=generated)
    load = cache(lambda: natural_model(config, split, used))
    stage = {"stage": "natural scores", "config": config, "split": _hash(split)}
    plain = [name for name in _SCORES if name not in PREFIXED]
    how: dict[str, Any] = {"generated": generated, "seed": config.seed, "prefix": split.prefix}

    def scores(chosen: Sequence[FoundIdentifier], prefixed: bool) -> FloatArray:
        """NaN for attacks behind a prefix where the part has none."""
        part, attacks = (
            {**stage, "part": [one.value for one in chosen]},
            _SCORES if prefixed else plain,
        )
        values = cached_scores(part, load, chosen, attacks=attacks, code=__name__, **how)
        every = np.full((*values.shape[:2], len(_SCORES)), np.nan)
        every[..., [at for at, name in enumerate(_SCORES) if prefixed or name in plain]] = values
        return every

    parts = [
        (some[at : at + _TOGETHER], behind_prefix)
        for side in (split.members, split.non_members)
        for some, behind_prefix in (
            (side[: config.prefixed], True),
            (side[config.prefixed :], False),
        )
        for at in range(0, len(some), _TOGETHER)
    ]
    with _precision(config):
        return np.concatenate([scores(*part) for part in progress(parts, label="identifiers")])


def _precision(config: NaturalConfig) -> AbstractContextManager[Any]:
    """Matrices are multiplied in the format of the configuration; weights stay float32."""
    # Without the cache of autocast: it would keep rounded weights over the steps of a training.
    device, rounded = default_device().type, config.dtype == "bfloat16"
    return torch.autocast(device, torch.bfloat16, enabled=rounded, cache_enabled=False)


def _hash(value: Any) -> str:
    return config_hash({"value": value})
