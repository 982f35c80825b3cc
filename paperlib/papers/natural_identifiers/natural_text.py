"""Documents as they are, divided into those a model is trained on and those held out, subset by subset."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from paperlib.audits.corpus import FoundIdentifier, corpus_identifiers, open_corpus
from paperlib.core import check_at_least, check_choice
from paperlib.data.text.corpora import Document
from paperlib.generators.identifiers import checked_kinds, find_identifiers
from paperlib.papers.natural_identifiers.small_gpt import GptSettings

NEOX = "gpt_neox_20b"
"""The tokenizer of GPT-NeoX-20B and Pythia."""
DTYPES = ("float32", "bfloat16")


@dataclass(frozen=True, kw_only=True)
class NaturalConfig(GptSettings):
    """Settings of the corpus and of the model trained on it, beside those of `GptSettings`."""

    #: names or paths that `open_corpus` takes: "nid_corpus", or a file or folder of documents
    corpora: tuple[str, ...] = ("nid_corpus",)
    subsets: tuple[str, ...] = ()  #: parts of the corpora that are used; empty for all
    documents: int = 300  #: documents with identifiers that are trained on, 2 or more; as many are held out
    further: int = 0  #: documents without identifiers that are trained on as well, 0 or more
    longest: int = 600  #: characters of a document, 100 or more: the rest is cut off
    lead: int = 200  #: characters before the first identifier of a document that stay, less than ``longest``
    #: kinds of identifiers; a SHA-512 digest has 76 tokens, and costs as much as three of the others
    kinds: tuple[str, ...] = ("md5", "sha1", "sha256", "ethereum", "serial_version_uid")
    identifiers: int = 300  #: most identifiers scored of each side, 10 or more
    #: most identifiers scored of one document, 1 or more, so that no list of digests dominates the benchmark
    per_document: int = 2
    before: int = 150  #: characters before each identifier that the model sees
    prefixed: int = 120  #: identifiers of each side that are scored behind the prefix of ReCaLL as well
    window: int = 384  #: tokens of a training example; longer documents are cut
    tokenizer: str = NEOX  #: `NEOX`, or the path of a tokenizer.json
    vocabulary: int = 16_384  #: rows of the model's tables, at least the number of tokens that occur
    width: int = 224
    layers: int = 4
    epochs: int = 8
    batch_size: int = 8
    dtype: str = "float32"  #: of the products of matrices, in training and scoring: float32 or bfloat16

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
    """Documents with a known truth: those trained on, their identifiers, and those of held-out documents.

    Every subset has as many documents on one side as on the other. The prefix, for ReCaLL, is the beginning
    of a document of neither side.
    """

    trained: tuple[Document, ...]
    held_out: tuple[Document, ...]
    further: tuple[str, ...]
    members: tuple[FoundIdentifier, ...]
    non_members: tuple[FoundIdentifier, ...]
    prefix: str

    @property
    def texts(self) -> list[str]:
        """All that a model is trained on."""
        return [*(one.text for one in self.trained), *self.further]


def natural_split(config: NaturalConfig) -> NaturalSplit:
    """Assign documents that hold an identifier to the two sides at random, in pairs from one subset.

    Documents are cut before they are assigned. The subsets give a pair each in turn, as long as they have
    one. A value that stands anywhere in the text trained on is no non-member; its occurrences there, letter
    case aside, are counted.
    """
    rng = np.random.default_rng(config.seed)
    with_some, without = _pools(config)
    pairs = _in_turn(with_some, 2, rng)
    if len(pairs) <= config.documents:
        raise ValueError(
            f"documents: expected less than {max(0, len(pairs))}, the pairs of documents with identifiers in "
            f"{' and '.join(map(repr, config.corpora))}, got {config.documents}"
        )
    sides = ([pair[side] for pair in pairs[: config.documents]] for side in (0, 1))
    trained, held = (tuple(one) for one in sides)
    further = [one.text for (one,) in _in_turn(without, 1, rng)[: config.further]]
    if len(further) < config.further:
        raise ValueError(f"further: expected up to {len(further)} documents, got {config.further}")
    prefix = pairs[config.documents][0].text.encode()[: config.window // 2].decode("utf-8", "ignore")
    inside, outside = (_identifiers(part, config) for part in (trained, held))
    seen = "\n".join([*(one.text for one in trained), *further]).lower()
    known = seen + prefix.lower()
    fresh = [one for one in outside if one.value.lower() not in known]
    members, non_members = (_sampled(part, config, rng) for part in (inside, fresh))
    if min(len(members), len(non_members)) < 10:
        raise ValueError(
            f"documents: found {len(members)} identifiers of {', '.join(config.kinds)} in the documents "
            f"trained on and {len(non_members)} others in those held out, expected 10 or more of each"
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
    """The part of a document around its first identifier, or its beginning, and whether it holds one.

    No identifier of any kind is cut in two: a part of one could be taken for one of another kind.

    >>> cut("1234567 " * 30 + "2f6b8d1c90e4a7353b1e64d7f08a5c92", NaturalConfig(longest=100, lead=10))
    ('7 1234567 2f6b8d1c90e4a7353b1e64d7f08a5c92', True)
    """
    found = find_identifiers(text, kinds=config.kinds)
    start = max(0, found[0].start - config.lead) if found else 0
    end = start + config.longest
    for one in find_identifiers(text[max(0, start - 4_000) : end + 4_000]):
        first, last = (place + max(0, start - 4_000) for place in (one.start, one.end))
        start = last if first < start < last else start
        end = first if first < end < last else end
    return text[start:end], any(start <= one.start and one.end <= end for one in found)


def _in_turn(
    pools: Mapping[str, Sequence[Document]], size: int, rng: np.random.Generator
) -> list[tuple[Document, ...]]:
    """Groups of ``size`` documents of one subset, the subsets in turn, each in random order."""
    queues = []
    for name in sorted(pools):
        shuffled = [pools[name][at] for at in rng.permutation(len(pools[name]))]
        queues.append([tuple(shuffled[at : at + size]) for at in range(0, len(shuffled) - size + 1, size)])
    longest = max(map(len, queues), default=0)
    return [queue[at] for at in range(longest) for queue in queues if at < len(queue)]


def _identifiers(documents: Sequence[Document], config: NaturalConfig) -> list[FoundIdentifier]:
    return corpus_identifiers(documents, kinds=config.kinds, before=config.before)


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
