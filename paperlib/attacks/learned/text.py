"""Attacks for text: losses of every token by several models, alone or beside the tokens themselves."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, embedding

from paperlib.attacks.learned.interface import AttackInputs, Labelled
from paperlib.core import FloatArray
from paperlib.models.language import load_language_model

_QUARTERS = (0.0, 0.25, 0.5, 0.75, 1.0)


def loss_sequences(inputs: AttackInputs, tokens: int) -> FloatArray:
    """Losses by model and token, shape (n, models, tokens).

    Args:
        inputs: Its losses hold, for each model, the mean loss of a chunk and then the loss of each token.
        tokens: Length of a chunk.

    Raises:
        ValueError: A number of columns that is no multiple of 1 + ``tokens``.

    >>> loss_sequences(AttackInputs([[5, 6]], [[2.0, 1.0, 3.0, 4.0, 4.0, 4.0]]), 2)[0].tolist()
    [[1.0, 3.0], [4.0, 4.0]]
    """
    columns = inputs.losses.shape[1]
    if columns % (1 + tokens):
        raise ValueError(
            f"losses: expected 1 + {tokens} columns for each model, the mean and each token, got {columns}"
        )
    return inputs.losses.reshape(len(inputs), -1, 1 + tokens)[:, :, 1:]


def summaries(sequences: FloatArray) -> FloatArray:
    """Mean, deviation and quartiles of each model's losses, and of the differences of each two models.

    Args:
        sequences: Shape (n, models, tokens).

    Returns:
        Shape (n, 7 * models * (models + 1) / 2).
    """
    count = sequences.shape[1]
    pairs = [sequences[:, i] - sequences[:, j] for i in range(count) for j in range(i)]
    series = np.concatenate([sequences, np.stack(pairs, axis=1)], axis=1) if pairs else sequences
    found = np.stack([series.mean(axis=2), series.std(axis=2), *_quartiles(series)], axis=2)
    return found.reshape(len(sequences), -1)


def _quartiles(series: FloatArray) -> list[FloatArray]:
    """As numpy's quantile along the last axis, in a small part of its time: rows are short."""
    ordered = np.sort(series, axis=-1)
    places = [quarter * (series.shape[-1] - 1) for quarter in _QUARTERS]
    return [
        (1 - place % 1) * ordered[..., int(place)] + place % 1 * ordered[..., math.ceil(place)]
        for place in places
    ]


@dataclass(frozen=True, kw_only=True)
class LossSummaries:
    """Logistic regression on summaries of the losses; the tokens themselves are not looked at.

    Attributes:
        tokens: Length of a chunk.
        strength: Inverse of the penalty, as scikit-learn's C.
    """

    tokens: int
    strength: float = 0.003

    @property
    def name(self) -> str:
        """What it is called in tables."""
        return f"logistic regression on loss summaries (C {self.strength:g})"

    def fit(self, train: Labelled, validation: Labelled, *, seeds: Sequence[int]) -> "list[FittedSummaries]":
        """Train once: neither the validation part nor the seed changes anything."""
        return [_fitted_summaries(self, train)] * len(seeds)


@lru_cache(maxsize=2)  # other seeds give the same
def _fitted_summaries(settings: LossSummaries, train: Labelled) -> "FittedSummaries":
    model = make_pipeline(StandardScaler(), LogisticRegression(C=settings.strength, max_iter=1000))
    table = _table(train.inputs, settings.tokens)
    return FittedSummaries(model.fit(table, train.membership), settings.tokens)


def _table(inputs: AttackInputs, tokens: int) -> FloatArray:
    found = _sequences_and_table(inputs, tokens)[1]
    return found if found.shape[1] else np.zeros((len(inputs), 1))  # without a model nothing is known


@dataclass(frozen=True, eq=False)
class FittedSummaries:
    """Logistic regression after training."""

    model: Any
    tokens: int

    def scores(self, inputs: AttackInputs) -> FloatArray:
        """Log odds of being a member."""
        return np.asarray(self.model.decision_function(_table(inputs, self.tokens)), dtype=np.float64)


@dataclass(frozen=True, kw_only=True)
class TextClassifier:
    """A network on tokens, a network on loss sequences, and a feed-forward layer on both.

    First the losses' network is trained alone, so that the tokens cannot drown it, then everything; the
    weights with the lowest validation loss of all are kept. Small networks are trained for several seeds at
    once, each as if it were alone.

    Attributes:
        tokens: Length of a chunk.
        pretrained: Name or folder of a language model that reads the tokens, such as "gpt2"; empty takes a
            small convolution over embeddings that are learned.
        buckets: Of the small network: tokens are folded into this many.
        width: Of the small networks.
        epochs: Most passes of each phase.
        patience: Passes without a lower validation loss before a phase ends.
        batch_size: Chunks per step.
        learning_rate: Of AdamW.
        weight_decay: Of AdamW.
        dropout: Share of the feed-forward layer's values left out in training, in [0, 1).

    Source:
        PANORAMIA, appendix C.2: GPT-2 as sequence classifier, the loss sequence, a feed-forward layer, weight
        decay, and optimisation in two phases.
    """

    tokens: int
    pretrained: str = ""
    buckets: int = 1024
    width: int = 16
    epochs: int = 12
    patience: int = 2
    batch_size: int = 64
    learning_rate: float = 3e-3
    weight_decay: float = 0.1
    dropout: float = 0.1

    @property
    def name(self) -> str:
        """What it is called in tables."""
        return f"text classifier ({self.pretrained or 'small'}) with loss sequence"

    def fit(
        self, train: Labelled, validation: Labelled, *, seeds: Sequence[int]
    ) -> "list[FittedTextClassifier]":
        """Train in two phases, each ended early by the validation part; small networks share their steps."""
        groups = [[seed] for seed in seeds] if self.pretrained else [list(seeds)]
        return [fitted for group in groups for fitted in self._trained(train, validation, group)]

    def _trained(
        self, train: Labelled, validation: Labelled, seeds: list[int]
    ) -> "list[FittedTextClassifier]":
        known = _sequences_and_table(train.inputs, self.tokens)
        scale = tuple((part.mean(axis=0), part.std(axis=0) + 1e-6) for part in known)
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        network = _Networks(self, known[0].shape[1], known[1].shape[1], seeds).to(device)
        data, held = (
            _Part(
                _inputs(part.inputs, self.tokens, scale, device),
                torch.as_tensor(part.membership, dtype=torch.float32, device=device),
            )
            for part in (train, validation)
        )
        orders = [torch.Generator().manual_seed(seed) for seed in seeds]
        for alone in (True, False) if known[0].shape[1] else (False,):  # without losses, nothing to do alone
            _phase(self, network, data, held, alone=alone, orders=orders)
        network.eval()
        return [FittedTextClassifier(self, network, at, scale) for at in range(len(seeds))]


Inputs = tuple[Tensor, Tensor, Tensor]


@dataclass(frozen=True, eq=False)
class _Part:
    inputs: Inputs  # tokens (n, T), windows of loss sequences (n, T, 3 * models), summaries (n, columns)
    members: Tensor  # (n,), 0 or 1

    def batch(self, rows: Tensor) -> Inputs:
        tokens, windows, table = (part[rows] for part in self.inputs)
        return tokens, windows, table


def _phase(
    settings: TextClassifier,
    network: "_Networks",
    data: _Part,
    held: _Part,
    *,
    alone: bool,
    orders: list[torch.Generator],
) -> None:
    """Train until no validation loss falls any more, and end each network at its lowest, start included."""
    optimizer = torch.optim.AdamW(
        network.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay, fused=True
    )
    count, device = len(data.members), data.members.device
    best, kept = _losses(network, held, alone), network.copied()
    waited = torch.zeros(len(orders), dtype=torch.int64, device=device)
    for _ in range(settings.epochs):
        network.train()
        rows = torch.stack([torch.randperm(count, generator=order) for order in orders]).to(device)
        left_in = network.left_in(count, orders).to(device)
        for at in range(0, count, settings.batch_size):
            step = slice(at, at + settings.batch_size)
            optimizer.zero_grad()
            logits = network(*data.batch(rows[:, step]), alone=alone, left_in=left_in[:, step])
            loss = binary_cross_entropy_with_logits(logits, data.members[rows[:, step]], reduction="none")
            loss.mean(dim=1).sum().backward()  # networks share no weight, so each has its own gradient
            optimizer.step()
        found = _losses(network, held, alone)
        lower = (found < best) & (waited < settings.patience)
        best = torch.where(lower, found, best)
        network.copy_into(kept, lower)
        waited = torch.where(lower, 0, waited + 1)
        if (waited >= settings.patience).all():
            break
    network.load_state_dict(kept)


def _losses(network: "_Networks", held: _Part, alone: bool) -> Tensor:
    logits = _logits(network, held.inputs, alone=alone)
    members = held.members.expand_as(logits)
    return binary_cross_entropy_with_logits(logits, members, reduction="none").mean(dim=1)


def _logits(network: "_Networks", inputs: Inputs, *, alone: bool = False) -> Tensor:
    """Of every network for every example, shape (networks, n)."""
    network.eval()
    with torch.inference_mode():
        batches: Iterator[Any] = zip(*(part.split(512) for part in inputs), strict=True)
        found = [network(*(part[None] for part in batch), alone=alone) for batch in batches]
        return torch.cat(found, dim=1)


@lru_cache(maxsize=2)  # every setting and try reads the same training and validation part
def _sequences_and_table(inputs: AttackInputs, tokens: int) -> tuple[FloatArray, FloatArray]:
    sequences = loss_sequences(inputs, tokens)
    return sequences, summaries(sequences)


def _inputs(inputs: AttackInputs, tokens: int, scale: Sequence[Any], device: torch.device) -> Inputs:
    """Tokens, and windows of scaled sequences and scaled summaries, as tensors."""
    sequences, table = (
        torch.as_tensor((part - mean) / deviation, dtype=torch.float32, device=device)
        for part, (mean, deviation) in zip(_sequences_and_table(inputs, tokens), scale, strict=True)
    )
    read = torch.as_tensor(inputs.examples.astype(np.int64), device=device)
    return read, _windows(sequences.transpose(1, 2)), table


def _windows(sequences: Tensor) -> Tensor:
    """Each place with its neighbours, zeros past the ends: (..., T, channels) to (..., T, 3 * channels)."""
    padded = torch.nn.functional.pad(sequences, (0, 0, 1, 1))
    return torch.cat([padded[..., :-2, :], sequences, padded[..., 2:, :]], dim=-1)


class _Networks(nn.Module):
    """Networks of one shape, one per seed: tokens, loss sequences and their summaries to one logit each.

    Every weight has the networks along its first axis, but for a pretrained reader, which only a single
    network can have.
    """

    def __init__(self, settings: TextClassifier, models: int, columns: int, seeds: list[int]) -> None:
        super().__init__()
        width = settings.width
        self.settings = settings
        shapes: dict[str, tuple[int, int]] = {"last": (width, 1)}
        read, self.reader = width, None
        if settings.pretrained:
            self.reader: Any = load_language_model(settings.pretrained, dtype="float32")[0].base_model
            read = int(self.reader.config.hidden_size)
        else:
            shapes["text"] = (3 * width, width)
        if models:
            shapes["sequence"] = (3 * models, width)
        if columns:
            shapes["table"] = (columns, width)
        self.read = read
        shapes["joint"] = (read + width * (2 * bool(models) + bool(columns)), width)
        drawn = [_drawn(settings, shapes, torch.Generator().manual_seed(seed)) for seed in seeds]
        self.weights = nn.ParameterDict(
            {name: nn.Parameter(torch.stack([one[name] for one in drawn])) for name in drawn[0]}
        )

    def forward(
        self, tokens: Tensor, windows: Tensor, table: Tensor, *, alone: bool, left_in: Tensor | None = None
    ) -> Tensor:
        """Logits (networks, n) of inputs (networks or 1, n, ...)."""
        batch = (len(self.weights["last"]), tokens.shape[1])
        parts = [windows.new_zeros((*batch, self.read)) if alone else self._text(tokens)]
        if "sequence" in self.weights:
            found = self._linear("sequence", windows.flatten(1, 2)).relu().unflatten(1, (batch[1], -1))
            parts += [found.mean(2), found.amax(2)]
        if "table" in self.weights:
            parts.append(self._linear("table", table))
        joint = self._linear("joint", torch.cat(parts, dim=2)).relu()
        return self._linear("last", joint if left_in is None else joint * left_in)[:, :, 0]

    def left_in(self, count: int, orders: list[torch.Generator]) -> Tensor:
        """What dropout multiplies by in one pass, (networks, count, width)."""
        settings = self.settings
        drawn = torch.stack([torch.rand(count, settings.width, generator=order) for order in orders])
        return (drawn >= settings.dropout) / (1 - settings.dropout)

    def copied(self) -> dict[str, Tensor]:
        return {name: values.clone() for name, values in self.state_dict().items()}

    def copy_into(self, kept: dict[str, Tensor], chosen: Tensor) -> None:
        """Overwrite what is kept of the networks chosen."""
        for name, values in self.state_dict().items():
            if name.startswith("weights."):
                kept[name][chosen] = values[chosen]
            elif chosen.any():
                kept[name].copy_(values)

    def _text(self, tokens: Tensor) -> Tensor:
        if self.reader is not None:
            return self.reader(input_ids=tokens[0]).last_hidden_state[None, :, -1]
        embeddings = self.weights["embedding"]
        networks, buckets, width = embeddings.shape
        first = buckets * torch.arange(networks, device=tokens.device)[:, None, None]
        read = embedding(tokens % buckets + first, embeddings.view(-1, width))
        found = self._linear("text", _windows(read).flatten(1, 2)).relu()
        return found.unflatten(1, (tokens.shape[1], -1)).mean(2)

    def _linear(self, name: str, x: Tensor) -> Tensor:
        weights = self.weights[name]
        return torch.baddbmm(self.weights[f"{name} bias"], x.expand(len(weights), -1, -1), weights)


def _drawn(
    settings: TextClassifier, shapes: dict[str, tuple[int, int]], order: torch.Generator
) -> dict[str, Tensor]:
    """Weights of one network, as torch's own layers begin."""
    drawn: dict[str, Tensor] = {}
    for name, (inputs, outputs) in shapes.items():
        for key, shape in ((name, (inputs, outputs)), (f"{name} bias", (1, outputs))):
            drawn[key] = (2 * torch.rand(shape, generator=order) - 1) / inputs**0.5
    if not settings.pretrained:
        drawn["embedding"] = torch.randn(settings.buckets, settings.width, generator=order)
    return drawn


@dataclass(frozen=True, eq=False)
class FittedTextClassifier:
    """One of the networks after training, with the means and deviations that its inputs are scaled by."""

    settings: TextClassifier
    network: Any = field(repr=False)
    at: int
    scale: tuple[tuple[FloatArray, FloatArray], ...] = field(repr=False)

    def scores(self, inputs: AttackInputs) -> FloatArray:
        """Log odds of being a member."""
        device = next(self.network.parameters()).device
        tensors = _inputs(inputs, self.settings.tokens, self.scale, device)
        return _logits(self.network, tensors)[self.at].double().cpu().numpy()
