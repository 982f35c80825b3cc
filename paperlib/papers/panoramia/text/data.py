"""Text as chunks of tokens, and documents dealt to members, generator, public text and the rest."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paperlib.core import IntArray
from paperlib.data.text.sets import text_documents
from paperlib.models.language import train_tokenizer
from paperlib.papers.panoramia.text.config import TextConfig

_SHARED = ("generator", "members", "nonmembers", "others")  # roles that may share documents


@dataclass(frozen=True, eq=False)
class Chunks:
    """Chunks of one role, by document unless roles share documents."""

    tokens: IntArray  # shape (n, length)
    document: IntArray  # number of the document of each chunk, shape (n,)

    def __len__(self) -> int:
        return len(self.tokens)

    def passages(self, count: int) -> IntArray:
        """Runs of ``count`` chunks of one document, no chunk twice, shape (m, count * length)."""
        starts = [
            start
            for rows in np.split(np.arange(len(self)), np.flatnonzero(np.diff(self.document)) + 1)
            for start in rows[: len(rows) - count + 1 : count]
        ]
        index = np.asarray(starts, dtype=np.int64)[:, None] + np.arange(count)
        return self.tokens[index].reshape(len(starts), count * self.tokens.shape[1])


def small_tokenizer(text: str, vocabulary: int, seed: int, *, context: int) -> Any:
    """A tokenizer trained on the first tenth of the shuffled documents, which `deal` keeps for the public."""
    return train_tokenizer(_shuffled(text, seed)[: _reserved(text, seed)], vocabulary, context=context)


def _reserved(text: str, seed: int) -> int:
    return -(-len(_shuffled(text, seed)) // 10)


def deal(config: TextConfig, tokenizer: Any) -> dict[str, Chunks]:
    """Deal documents in random order to roles, as wholes or, with ``by_chunk``, some chunk by chunk (C.2)."""
    # The first tenth is for the public alone. A chunk that occurred before is left out, and so is what a
    # role does not need of its last document.
    text, length, sizes = config.text, config.tokens, config.sizes
    reserved = _reserved(text, config.seed)
    waiting = _chunked(_shuffled(text, config.seed), tokenizer, length, config.chunks_per_document)
    dealt: dict[str, Chunks] = {}
    for role, wanted in sizes.items():
        if config.by_chunk and role in _SHARED:
            if role not in dealt:
                dealt |= _shared(config, (one for one in waiting if one[0] >= reserved))
            continue
        rows: list[IntArray] = []
        numbers: list[int] = []
        for number, found in waiting if wanted else ():
            if role != "public" and number < reserved:
                continue
            rows += list(found[: wanted - len(rows)])
            numbers += [number] * (len(rows) - len(numbers))
            if len(rows) == wanted:
                break
        if len(rows) < wanted:
            there = sum(map(len, dealt.values())) + len(rows)
            raise ValueError(
                f"{role}: {wanted} chunks of {length} tokens asked for, {len(rows)} left; {text!r} gave "
                f"{there} of {sum(sizes.values())}; take shorter chunks, fewer of them, or more text"
            )
        dealt[role] = Chunks(np.array(rows, np.int64).reshape(-1, length), np.array(numbers, np.int64))
    return dealt


def _shared(config: TextConfig, waiting: Iterator[tuple[int, NDArray[Any]]]) -> dict[str, Chunks]:
    """Chunks of documents that have all of theirs, dealt at random to the roles that share them."""
    sizes, each = {role: config.sizes[role] for role in _SHARED}, config.chunks_per_document
    wanted = -(-sum(sizes.values()) // each)
    whole = (one for one in waiting if len(one[1]) == each)
    found = list(islice(whole, wanted))
    if len(found) < wanted:
        raise ValueError(
            f"by_chunk: expected {wanted} documents of {each} chunks of {config.tokens} tokens, got "
            f"{len(found)} in {config.text!r}; take shorter chunks, fewer of them, or more text"
        )
    tokens = np.concatenate([rows for _, rows in found])
    numbers = np.repeat([number for number, _ in found], each)
    order = np.random.default_rng([config.seed, 1]).permutation(len(tokens))
    parts = np.split(order, np.cumsum(list(sizes.values())))
    return {role: Chunks(tokens[part], numbers[part]) for role, part in zip(sizes, parts, strict=False)}


@lru_cache(maxsize=2)
def _shuffled(text: str, seed: int) -> Sequence[str]:
    """Documents in random order, with single blanks."""
    documents = [" ".join(document.split()) for document in text_documents(text)]
    order = np.random.default_rng(seed).permutation(len(documents))
    return tuple(documents[index] for index in order)


def _chunked(
    documents: Sequence[str], tokenizer: Any, length: int, per_document: int
) -> Iterator[tuple[int, NDArray[Any]]]:
    """Number and new chunks of each document that has any."""
    seen: set[bytes] = set()
    for start in range(0, len(documents), 1000):
        some = tokenizer(list(documents[start : start + 1000]), verbose=False)["input_ids"]
        for number, tokens in enumerate(some, start):
            count = min(len(tokens) // length, per_document)
            rows = np.array(tokens[: count * length], dtype=np.int64).reshape(count, length)
            fresh = [row for row in rows if row.tobytes() not in seen and not seen.add(row.tobytes())]
            if fresh:
                yield number, np.stack(fresh)
