"""What PANORAMIA on text is run with, and documents as chunks of tokens, dealt to roles."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paperlib.core import IntArray
from paperlib.core.checks import check_in
from paperlib.generators.text import ChunkTraining
from paperlib.models.language import train_tokenizer
from paperlib.reproduction.data.text.sets import text_documents
from paperlib.training import TrainingConfig, noise_for

_SHARED = ("generator", "members", "nonmembers", "others")  # roles that may share documents
_Documents = Iterator[tuple[int, NDArray[Any]]]  # number and chunks (k, length) of each document


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
        """Sort the epochs, and refuse (ValueError) settings out of range or that contradict each
        other.
        """
        for name in ("epochs", "null_epochs"):
            object.__setattr__(self, name, tuple(sorted(getattr(self, name))))
            self._check_epochs(name)
        self._check_prompt()
        most = max(self.epochs + self.null_epochs)
        if self.total_epochs and self.total_epochs < most:
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

    def _check_epochs(self, name: str) -> None:
        """Refuse (ValueError) no number of epochs, or one below 1, in the field ``name``."""
        epochs = getattr(self, name)  # sorted
        if not epochs or epochs[0] < 1:
            raise ValueError(f"{name}: expected at least one number of 1 or more, got {epochs}")

    def _check_prompt(self) -> None:
        """Refuse (ValueError) a prompt, in tokens, that is no whole number of chunks, and with
        ``by_chunk`` one of more than one chunk.
        """
        if self.prompt % self.tokens:
            raise ValueError(
                f"prompt: expected a multiple of tokens ({self.tokens}), got {self.prompt}"
            )
        # Dealt by chunk, the chunks around one have other roles: a prompt can be no longer run of
        # text than a single chunk of the generator's.
        if self.by_chunk and self.prompt not in (0, self.tokens):
            raise ValueError(
                f"prompt: expected {self.tokens} or 0 with by_chunk, got {self.prompt}"
            )

    @property
    def sizes(self) -> dict[str, int]:
        """Chunks of each role in the order they are dealt; none to the public if the base is
        pretrained.
        """
        roles = ("public", "generator", "members", "nonmembers", "others")
        sizes = {role: getattr(self, role) for role in roles}
        if self.base:
            del sizes["public"]
        # Helpers on withheld members need no chunks of their own.
        sizes["helper"] = 0 if self.withheld else self.for_helper
        return sizes

    @property
    def withheld_members(self) -> int:
        """Members that the helper on real chunks is trained on."""
        return round(self.withheld * self.members)

    def training(
        self, epochs: int, salt: int, *, patience: int = 0, last: int = 0
    ) -> ChunkTraining:
        """How a model is trained without DP.

        Args:
            epochs: Passes that the schedule of the learning rate is made for.
            salt: Sets its seed apart from other models'.
            patience: Passes without a lower validation loss after which it stops; 0 never stops.
            last: Pass after which it stops although the schedule goes on; 0 trains to the end.
        """
        shared = {
            name: getattr(self, name) for name in ("batch_size", "learning_rate", "precision")
        }
        seed = self.seed + 1000 * salt
        return ChunkTraining(epochs=epochs, last=last, patience=patience, seed=seed, **shared)

    def private_training(self, epsilon: float) -> TrainingConfig:
        """DP-SGD on the generator's training chunks and the members to ``epsilon``, nats, with the
        noise that the Renyi accountant asks for.
        """
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
        """Runs of ``count`` chunks of one document, no chunk twice, shape (m, count * length); a
        document's last chunks that are too few for a run are left out.
        """
        first_of_next = np.flatnonzero(np.diff(self.document)) + 1
        starts: list[int] = []
        for rows in np.split(np.arange(len(self)), first_of_next):
            starts += rows[: len(rows) - count + 1 : count].tolist()
        index = np.asarray(starts, dtype=np.int64)[:, None] + np.arange(count)
        return self.tokens[index].reshape(len(starts), count * self.tokens.shape[1])


def small_tokenizer(text: str, vocabulary: int, seed: int, *, context: int) -> Any:
    """A tokenizer trained on the first tenth of the shuffled documents, which `deal` keeps for the
    public.

    Args:
        text: Name of the text.
        vocabulary: Number of tokens.
        seed: Of the order of documents.
        context: Tokens that the model takes at once.
    """
    documents = _shuffled(text, seed)
    return train_tokenizer(documents[: _public_count(documents)], vocabulary, context=context)


def _public_count(documents: Sequence[str]) -> int:
    """How many of the first documents are for the public alone: a tenth, rounded up."""
    return -(-len(documents) // 10)


def deal(config: TextConfig, tokenizer: Any) -> dict[str, Chunks]:
    """Deal documents in random order to roles, as wholes or, with ``by_chunk``, some chunk by chunk
    (C.2).

    A chunk that occurred before is left out, and so is what a role does not need of its last
    document.

    Returns:
        Chunks by role; their numbers are ``config.sizes``.

    Raises:
        ValueError: The text has too few chunks.
    """
    documents = _shuffled(config.text, config.seed)
    waiting = _chunked(documents, tokenizer, config.tokens, config.chunks_per_document)
    public_count = _public_count(documents)
    # Both read from one stream: what is passed over or taken is gone for all later roles.
    private = ((number, rows) for number, rows in waiting if number >= public_count)
    dealt: dict[str, Chunks] = {}
    for role, size in config.sizes.items():
        if role in dealt:  # with those that share its documents
            continue
        if config.by_chunk and role in _SHARED:
            dealt |= _shared_by_roles(config, private)
            continue
        chunks = _first_chunks(waiting if role == "public" else private, size, config.tokens)
        if len(chunks) < size:
            received = sum(map(len, dealt.values())) + len(chunks)
            raise ValueError(
                f"{role}: {size} chunks of {config.tokens} tokens asked for, {len(chunks)} left; "
                f"{config.text!r} gave {received} of {sum(config.sizes.values())}; take shorter "
                "chunks, fewer of them, or more text"
            )
        dealt[role] = chunks
    return dealt


def _first_chunks(waiting: _Documents, size: int, length: int) -> Chunks:
    """Whole documents until ``size`` chunks are there, without what the last has beyond them; less
    where the documents end before.
    """
    tokens: list[IntArray] = []
    numbers: list[int] = []
    while len(tokens) < size:
        document = next(waiting, None)
        if document is None:  # the text ends
            break
        number, rows = document
        taken = rows[: size - len(tokens)]
        tokens += list(taken)
        numbers += [number] * len(taken)
    return Chunks(np.array(tokens, np.int64).reshape(-1, length), np.array(numbers, np.int64))


def _shared_by_roles(config: TextConfig, waiting: _Documents) -> dict[str, Chunks]:
    """Chunks of documents that have all of theirs, dealt at random to the roles that share them.

    Raises ValueError where the text has too few such documents.
    """
    sizes = [config.sizes[role] for role in _SHARED]
    per_document = config.chunks_per_document
    count = -(-sum(sizes) // per_document)
    complete = ((number, rows) for number, rows in waiting if len(rows) == per_document)
    documents = list(islice(complete, count))
    if len(documents) < count:
        raise ValueError(
            f"by_chunk: expected {count} documents of {per_document} chunks of {config.tokens} "
            f"tokens, got {len(documents)} in {config.text!r}; take shorter chunks, fewer of them, "
            "or more text"
        )
    tokens = np.concatenate([rows for _, rows in documents])
    numbers = np.repeat([number for number, _ in documents], per_document)
    # 1: another stream of the seed than the one that shuffles documents.
    order = np.random.default_rng([config.seed, 1]).permutation(len(tokens))
    rows_of_roles = np.split(order, np.cumsum(sizes))[:-1]  # the last are left over
    return {
        role: Chunks(tokens[rows], numbers[rows])
        for role, rows in zip(_SHARED, rows_of_roles, strict=True)
    }


@lru_cache(maxsize=2)
def _shuffled(text: str, seed: int) -> Sequence[str]:
    """Documents in random order, with single blanks."""
    documents = [" ".join(document.split()) for document in text_documents(text)]
    order = np.random.default_rng(seed).permutation(len(documents))
    return tuple(documents[index] for index in order)


def _chunked(
    documents: Sequence[str], tokenizer: Any, length: int, per_document: int
) -> _Documents:
    """Number and chunks (k, length) of each document that has any which did not occur before.

    Args:
        length: Tokens of a chunk; what is left at a document's end is dropped.
        per_document: Most chunks that are cut from one document.
    """
    seen: set[bytes] = set()
    for start in range(0, len(documents), 1000):
        tokenized = tokenizer(list(documents[start : start + 1000]), verbose=False)["input_ids"]
        for number, tokens in enumerate(tokenized, start):
            count = min(len(tokens) // length, per_document)
            rows = np.array(tokens[: count * length], dtype=np.int64).reshape(count, length)
            fresh = _new_rows(rows, seen)
            if fresh:
                yield number, np.stack(fresh)


def _new_rows(rows: IntArray, seen: set[bytes]) -> list[IntArray]:
    """The rows that are not among those seen, each once; from then on they are."""
    fresh = []
    for row in rows:
        content = row.tobytes()
        if content not in seen:
            seen.add(content)
            fresh.append(row)
    return fresh
