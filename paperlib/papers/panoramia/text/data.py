"""What PANORAMIA on text is run with, and documents as chunks of tokens, dealt to roles."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paperlib.core import IntArray, check_in
from paperlib.data.text.sets import text_documents
from paperlib.generators.text import ChunkTraining
from paperlib.models.language import train_tokenizer
from paperlib.training import TrainingConfig, noise_for

_SHARED = ("generator", "members", "nonmembers", "others")  # roles that may share documents


@dataclass(frozen=True, kw_only=True)
class TextConfig:
    """Text, target models, generator and helpers; the page on text says what each parameter is."""

    text: str = "documentation"
    base: str = ""
    tokens: int = 16
    chunks_per_document: int = 50
    by_chunk: bool = False
    public: int = 6000
    generator: int = 3500
    members: int = 1500
    nonmembers: int = 1500
    others: int = 1500
    generated: int = 1500
    for_helper: int = 2000
    vocabulary: int = 1024  # tokens of the small base model
    width: int = 64
    layers: int = 1
    base_epochs: int = 4
    epochs: tuple[int, ...] = (3, 6, 12)
    null_epochs: tuple[int, ...] = (3, 12)
    total_epochs: int = 0
    dp_epsilons: tuple[float, ...] = (3.0,)
    dp_delta: float = 1e-5  # of DP-SGD, in (0, 1)
    dp_epochs: int = 3
    dp_batch: int = 256
    dp_learning_rate: float = 1e-3
    prompt: int = 16
    top_k: int = 200
    generator_epochs: int = 6
    helper_epochs: int = 4
    helper_patience: int = 1
    withheld: float = 0.0
    batch_size: int = 32
    learning_rate: float = 3e-3
    precision: str = "float32"
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("epochs", "null_epochs"):
            given = tuple(sorted(getattr(self, name)))
            object.__setattr__(self, name, given)
            if not given or given[0] < 1:
                raise ValueError(f"{name}: expected at least one number of 1 or more, got {given}")
        if self.prompt % self.tokens:
            raise ValueError(
                f"prompt: expected a multiple of tokens ({self.tokens}), got {self.prompt}"
            )
        if self.by_chunk and self.prompt not in (0, self.tokens):
            raise ValueError(
                f"prompt: expected {self.tokens} or 0 with by_chunk, got {self.prompt}"
            )
        if self.total_epochs and self.total_epochs < max(self.epochs + self.null_epochs):
            most = max(self.epochs + self.null_epochs)
            raise ValueError(
                f"total_epochs: expected {most} or more, or 0, got {self.total_epochs}"
            )
        check_in("[0, 1)", "withheld", self.withheld)
        if not self.base and not self.public:
            raise ValueError(
                "base: expected a pretrained model, or public chunks to train a small one on"
            )
        for epsilon in self.dp_epsilons:
            check_in("(0, inf)", "dp_epsilons", epsilon)

    @property
    def sizes(self) -> dict[str, int]:
        """Chunks of each role in the order they are dealt; none to the public if the base is
        pretrained.
        """
        names = ("public", "generator", "members", "nonmembers", "others")
        dealt = {name: getattr(self, name) for name in names if name != "public" or not self.base}
        return dealt | {"helper": 0 if self.withheld else self.for_helper}

    @property
    def withheld_members(self) -> int:
        """Members that the helper on real chunks is trained on."""
        return round(self.withheld * self.members)

    def training(
        self, epochs: int, salt: int, *, patience: int = 0, last: int = 0
    ) -> ChunkTraining:
        """How a model is trained without DP."""
        shared = {
            name: getattr(self, name) for name in ("batch_size", "learning_rate", "precision")
        }
        seed = self.seed + 1000 * salt
        return ChunkTraining(epochs=epochs, last=last, patience=patience, seed=seed, **shared)

    def private_training(self, epsilon: float) -> TrainingConfig:
        """DP-SGD on D_G and members, with the noise that the Renyi accountant asks for."""
        rows = self.generator + self.members
        plan = TrainingConfig(
            epochs=self.dp_epochs,
            batch_size=self.dp_batch,
            optimizer="adam",
            learning_rate=self.dp_learning_rate,
            clip_norm=1.0,
            seed=self.seed,
        )
        noise = noise_for(epsilon, plan.sampling_rate(rows), plan.steps(rows), self.dp_delta)
        return replace(plan, noise_multiplier=noise)


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
    """A tokenizer trained on the first tenth of the shuffled documents, which `deal` keeps for the
    public.
    """
    return train_tokenizer(
        _shuffled(text, seed)[: _reserved(text, seed)], vocabulary, context=context
    )


def _reserved(text: str, seed: int) -> int:
    return -(-len(_shuffled(text, seed)) // 10)


def deal(config: TextConfig, tokenizer: Any) -> dict[str, Chunks]:
    """Deal documents in random order to roles, as wholes or, with ``by_chunk``, some chunk by chunk
    (C.2).
    """
    # The first tenth is for the public alone. A chunk that occurred before is left out, and so is
    # what a role does not need of its last document.
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
                f"{role}: {wanted} chunks of {length} tokens asked for, {len(rows)} left; {text!r} "
                f"gave {there} of {sum(sizes.values())}; take shorter chunks, fewer of them, or "
                "more text"
            )
        dealt[role] = Chunks(
            np.array(rows, np.int64).reshape(-1, length), np.array(numbers, np.int64)
        )
    return dealt


def _shared(config: TextConfig, waiting: Iterator[tuple[int, NDArray[Any]]]) -> dict[str, Chunks]:
    """Chunks of documents that have all of theirs, dealt at random to the roles that share them."""
    sizes, each = {role: config.sizes[role] for role in _SHARED}, config.chunks_per_document
    wanted = -(-sum(sizes.values()) // each)
    found = list(islice((one for one in waiting if len(one[1]) == each), wanted))
    if len(found) < wanted:
        raise ValueError(
            f"by_chunk: expected {wanted} documents of {each} chunks of {config.tokens} tokens, "
            f"got {len(found)} in {config.text!r}; take shorter chunks, fewer of them, or more text"
        )
    tokens = np.concatenate([rows for _, rows in found])
    numbers = np.repeat([number for number, _ in found], each)
    order = np.random.default_rng([config.seed, 1]).permutation(len(tokens))
    parts = np.split(order, np.cumsum(list(sizes.values())))
    return {
        role: Chunks(tokens[part], numbers[part]) for role, part in zip(sizes, parts, strict=False)
    }


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
            fresh = [
                row for row in rows if row.tobytes() not in seen and not seen.add(row.tobytes())
            ]
            if fresh:
                yield number, np.stack(fresh)
