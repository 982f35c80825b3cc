"""A small GPT trained on documents as they are: their identifiers are members, those of others are not."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from paperlib.audits.corpus import FoundIdentifier, corpus_identifiers, open_corpus
from paperlib.core import FloatArray, check_at_least
from paperlib.data.text.corpora import Document
from paperlib.generators.identifiers import checked_kinds, find_identifiers
from paperlib.io import config_hash
from paperlib.papers.natural_identifiers.planted import PAPER_ATTACKS, TOKENS, kept_scores
from paperlib.papers.natural_identifiers.small_gpt import GptSettings, Tokens, train_gpt


@dataclass(frozen=True, kw_only=True)
class NaturalConfig(GptSettings):
    """Settings of the corpus and of the model trained on it, beside those of `GptSettings`."""

    #: name or path that `open_corpus` takes: "nid_corpus", or a file or folder of documents
    corpus: str = "nid_corpus"
    subsets: tuple[str, ...] = ()  #: parts of the corpus that are used; empty for all
    #: documents trained on, 2 or more; as many others are held out, and up to as many train the tokenizer
    documents: int = 300
    longest: int = 6_000  #: most characters of a document; longer ones are left out
    kinds: tuple[str, ...] = ("md5", "sha1", "sha256", "sha512", "ethereum")  #: kinds of identifiers
    identifiers: int = 300  #: most identifiers scored of each side, 10 or more
    #: most identifiers scored of one document, 1 or more, so that no list of digests dominates the benchmark
    per_document: int = 2
    before: int = 150  #: characters before each identifier that the model sees
    window: int = 256  #: tokens of a training example; longer documents are cut
    epochs: int = 8

    def __post_init__(self) -> None:
        checked_kinds(self.kinds)
        check_at_least(2, documents=self.documents)
        check_at_least(10, identifiers=self.identifiers)
        check_at_least(1, per_document=self.per_document)


@dataclass(frozen=True, eq=False)
class NaturalSplit:
    """Documents with a known truth: those trained on, their identifiers, and those of held-out documents.

    The prefix, for ReCaLL, is the beginning of another held-out document. The tokenizer learns from texts
    that hold no identifier of either side.
    """

    trained: tuple[Document, ...]
    members: tuple[FoundIdentifier, ...]
    non_members: tuple[FoundIdentifier, ...]
    prefix: str
    tokenizer_texts: tuple[str, ...]


def natural_split(config: NaturalConfig) -> NaturalSplit:
    """Assign the documents that hold an identifier to the two sides at random.

    A value on both sides is no non-member; it stays a member, since the model has seen it.

    Raises:
        ValueError: Fewer than twice ``documents`` documents, fewer than 10 identifiers on a side, or no
            document left for the tokenizer.
    """
    every = [one for one in open_corpus(config.corpus) if _usable(one, config)]
    rng = np.random.default_rng(config.seed)
    shuffled = rng.permutation(len(every))
    order = shuffled[: 2 * config.documents + 1]
    if len(order) <= 2 * config.documents:
        raise ValueError(
            f"documents: expected less than half of the {len(every)} documents of {config.corpus!r} with up "
            f"to {config.longest} characters, got {config.documents}"
        )
    trained, held = ([every[at] for at in part] for part in np.split(order[:-1], 2))
    inside, outside = (
        corpus_identifiers(part, kinds=config.kinds, before=config.before) for part in (trained, held)
    )
    seen = {one.value.lower() for one in inside}
    fresh = [one for one in outside if one.value.lower() not in seen]
    sides = [_sampled(part, config, rng) for part in (inside, fresh)]
    if min(map(len, sides)) < 10:
        raise ValueError(
            f"documents: found {len(sides[0])} identifiers of {', '.join(config.kinds)} in the documents "
            f"trained on and {len(sides[1])} others in those held out, expected 10 or more of each"
        )
    prefix = every[order[-1]].text.encode()[: config.window // 2].decode("utf-8", "ignore")  # tokens <= bytes
    known = seen | {one.value.lower() for one in fresh}
    others = [every[at].text for at in shuffled[len(order) :][: config.documents]]
    neither = tuple(text for text in others if not known & _values(text, config))
    if not neither:
        raise ValueError(
            "documents: found no other document, without identifiers of these, for the tokenizer"
        )
    return NaturalSplit(tuple(trained), tuple(sides[0]), tuple(sides[1]), prefix, neither)


def _values(text: str, config: NaturalConfig) -> set[str]:
    return {one.value.lower() for one in find_identifiers(text, kinds=config.kinds)}


def _usable(one: Document, config: NaturalConfig) -> bool:
    return len(one.text) <= config.longest and (not config.subsets or one.subset in config.subsets)


def _sampled(
    found: Sequence[FoundIdentifier], config: NaturalConfig, rng: np.random.Generator
) -> list[FoundIdentifier]:
    left, chosen = dict[int, int](), list[FoundIdentifier]()
    for at in rng.permutation(len(found)):
        one = found[at]
        left[one.document] = left.get(one.document, config.per_document) - 1
        if left[one.document] >= 0:
            chosen.append(one)
    return chosen[: config.identifiers]


def _trained(config: NaturalConfig, split: NaturalSplit) -> tuple[Any, Any]:
    def windows(tokens: Tokens) -> list[Tokens]:
        starts = range(0, max(1, len(tokens) - 1), config.window)
        return [tokens[start : start + config.window] for start in starts]

    texts = [one.text for one in split.trained]
    shape = config.shape(context=config.window)
    return train_gpt(texts, config, shape, windows, tokenizer_texts=split.tokenizer_texts)


def natural_values(config: NaturalConfig, split: NaturalSplit, *, generated: int) -> FloatArray:
    """Train on one side, score both, members first: shape (n, 1 + generated, attacks), higher: member.

    The attacks are the paper's, and the number of tokens last.
    """
    return kept_scores(
        {"stage": "natural scores", "config": config, "split": config_hash({"split": split})},
        lambda: _trained(config, split),
        [*split.members, *split.non_members],
        generated=generated,
        seed=config.seed,
        attacks=(*PAPER_ATTACKS, TOKENS),
        prefix=split.prefix,
        code=__name__,
    )
