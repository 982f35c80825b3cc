"""Attacks for text: losses of every token by several models, alone or beside the tokens themselves."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from paperlib.attacks.learned.views import Views
from paperlib.core import FloatArray
from paperlib.models.language import load_language_model

_QUARTERS = (0.0, 0.25, 0.5, 0.75, 1.0)


def loss_sequences(views: Views, tokens: int) -> FloatArray:
    """Losses by model and token, shape (n, models, tokens).

    Args:
        views: Its losses hold, for each model, the mean loss of a chunk and then the loss of each token.
        tokens: Length of a chunk.

    Raises:
        ValueError: A number of columns that is no multiple of 1 + ``tokens``.

    >>> loss_sequences(Views([[5, 6]], [[2.0, 1.0, 3.0, 4.0, 4.0, 4.0]]), 2)[0].tolist()
    [[1.0, 3.0], [4.0, 4.0]]
    """
    columns = views.losses.shape[1]
    if columns % (1 + tokens):
        raise ValueError(
            f"losses: expected 1 + {tokens} columns for each model, the mean and each token, got {columns}"
        )
    return views.losses.reshape(len(views), -1, 1 + tokens)[:, :, 1:]


def summaries(sequences: FloatArray) -> FloatArray:
    """Mean, deviation and quartiles of each model's losses, and of the differences of each two models.

    Args:
        sequences: Shape (n, models, tokens).

    Returns:
        Shape (n, 7 * models * (models + 1) / 2).
    """
    count = sequences.shape[1]
    pairs = [sequences[:, i] - sequences[:, j] for i in range(count) for j in range(i)]
    parts = [_summary(values) for values in [*np.moveaxis(sequences, 1, 0), *pairs]]
    return np.concatenate([np.empty((len(sequences), 0)), *parts], axis=1)


def _summary(values: FloatArray) -> FloatArray:
    quartiles = np.quantile(values, _QUARTERS, axis=1)
    return np.column_stack([values.mean(axis=1), values.std(axis=1), *quartiles])


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

    def fit(
        self,
        train: Views,
        membership: NDArray[np.bool_],
        *,
        validation: Views,
        validation_membership: NDArray[np.bool_],
        seed: int,
    ) -> "FittedSummaries":
        """Train; neither the validation part nor the seed changes anything."""
        model = make_pipeline(StandardScaler(), LogisticRegression(C=self.strength, max_iter=1000))
        table = _table(train, self.tokens)
        return FittedSummaries(model.fit(table, membership), self.tokens)


def _table(views: Views, tokens: int) -> FloatArray:
    found = summaries(loss_sequences(views, tokens))
    return found if found.shape[1] else np.zeros((len(views), 1))  # without a model nothing is known


@dataclass(frozen=True, eq=False)
class FittedSummaries:
    """Logistic regression after training."""

    model: Any
    tokens: int

    def scores(self, views: Views) -> FloatArray:
        """Log odds of being a member."""
        return np.asarray(self.model.decision_function(_table(views, self.tokens)), dtype=np.float64)


@dataclass(frozen=True, kw_only=True)
class TextClassifier:
    """A network on tokens, a network on loss sequences, and a feed-forward layer on both.

    First the losses' network is trained alone, so that the tokens cannot drown it, then everything; the
    weights with the lowest validation loss of all are kept.

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

    @property
    def name(self) -> str:
        """What it is called in tables."""
        return f"text classifier ({self.pretrained or 'small'}) with loss sequence"

    def fit(
        self,
        train: Views,
        membership: NDArray[np.bool_],
        *,
        validation: Views,
        validation_membership: NDArray[np.bool_],
        seed: int,
    ) -> "FittedTextClassifier":
        """Train in two phases, each ended early by the validation part."""
        known = _sequences_and_table(train, self.tokens)
        scale = tuple((part.mean(axis=0), part.std(axis=0) + 1e-6) for part in known)
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        order = torch.Generator().manual_seed(seed)
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            torch.manual_seed(seed)  # initial weights, and what dropout leaves out
            network = _Network(self, known[0].shape[1], known[1].shape[1])
            fitted = FittedTextClassifier(self, network.to(device), scale)
            data = fitted.inputs(train), torch.as_tensor(membership, dtype=torch.float32, device=device)
            held = (
                fitted.inputs(validation),
                torch.as_tensor(validation_membership, dtype=torch.float32, device=device),
            )
            for alone in (True, False):
                _phase(self, network, data, held, alone=alone, order=order)
        network.eval()
        return fitted


Inputs = tuple[Tensor, Tensor, Tensor]


def _phase(
    settings: TextClassifier,
    network: "_Network",
    data: tuple[Inputs, Tensor],
    held: tuple[Inputs, Tensor],
    *,
    alone: bool,
    order: torch.Generator,
) -> None:
    """Train until the validation loss stops falling, and end at its lowest, the start included."""
    optimizer = torch.optim.AdamW(
        network.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay
    )
    best, kept, waited = _loss(network, held, alone), _copied(network), 0
    for _ in range(settings.epochs):
        network.train()
        for rows in torch.randperm(len(data[1]), generator=order).split(settings.batch_size):
            rows = rows.to(data[1].device)
            optimizer.zero_grad()
            logits = network(*(part[rows] for part in data[0]), alone=alone)
            binary_cross_entropy_with_logits(logits, data[1][rows]).backward()
            optimizer.step()
        found = _loss(network, held, alone)
        if found < best:
            best, kept, waited = found, _copied(network), 0
        elif (waited := waited + 1) >= settings.patience:
            break
    network.load_state_dict(kept)


def _loss(network: "_Network", held: tuple[Inputs, Tensor], alone: bool) -> float:
    return float(binary_cross_entropy_with_logits(_logits(network, held[0], alone=alone), held[1]))


def _logits(network: "_Network", inputs: Inputs, *, alone: bool = False) -> Tensor:
    network.eval()
    with torch.inference_mode():
        batches: Iterator[Any] = zip(*(part.split(512) for part in inputs), strict=True)
        return torch.cat([network(*batch, alone=alone) for batch in batches])


def _copied(network: nn.Module) -> dict[str, Tensor]:
    return {name: values.clone() for name, values in network.state_dict().items()}


def _sequences_and_table(views: Views, tokens: int) -> tuple[FloatArray, FloatArray]:
    sequences = loss_sequences(views, tokens)
    return sequences, summaries(sequences)


class _Network(nn.Module):
    """Tokens, loss sequences and their summaries to one logit."""

    def __init__(self, settings: TextClassifier, models: int, columns: int) -> None:
        super().__init__()
        width = settings.width
        self.buckets = 0 if settings.pretrained else settings.buckets
        if settings.pretrained:
            self.reader: Any = load_language_model(settings.pretrained, dtype="float32")[0].base_model
            read = int(self.reader.config.hidden_size)
        else:
            self.reader = nn.Sequential(
                nn.Embedding(settings.buckets, width),
                _Turned(),
                nn.Conv1d(width, width, 3, padding=1),
                nn.ReLU(),
            )
            read = width
        self.sequence = nn.Conv1d(models, width, 3, padding=1) if models else None
        self.table = nn.Linear(columns, width) if columns else None
        seen = read + width * (2 * bool(models) + bool(columns))
        self.read, self.forward_layer = (
            read,
            nn.Sequential(nn.Linear(seen, width), nn.ReLU(), nn.Dropout(0.1), nn.Linear(width, 1)),
        )

    def forward(self, tokens: Tensor, sequences: Tensor, table: Tensor, *, alone: bool) -> Tensor:
        parts = [
            tokens.new_zeros((len(tokens), self.read), dtype=torch.float32) if alone else self._text(tokens)
        ]
        if self.sequence is not None:
            found = self.sequence(sequences).relu()
            parts += [found.mean(2), found.amax(2)]
        if self.table is not None:
            parts.append(self.table(table))
        return self.forward_layer(torch.cat(parts, dim=1))[:, 0]

    def _text(self, tokens: Tensor) -> Tensor:
        if self.buckets:
            return self.reader(tokens % self.buckets).mean(2)
        return self.reader(input_ids=tokens).last_hidden_state[:, -1]


class _Turned(nn.Module):
    """(n, tokens, width) to (n, width, tokens), as convolutions take it."""

    def forward(self, x: Tensor) -> Tensor:
        return x.transpose(1, 2)


@dataclass(frozen=True, eq=False)
class FittedTextClassifier:
    """The network after training, with the means and deviations that its inputs are scaled by."""

    settings: TextClassifier
    network: Any = field(repr=False)
    scale: tuple[tuple[FloatArray, FloatArray], ...] = field(repr=False)

    def inputs(self, views: Views) -> Inputs:
        """Tokens, and scaled sequences and summaries, as tensors on the network's device."""
        device = next(self.network.parameters()).device
        parts = _sequences_and_table(views, self.settings.tokens)
        scaled = [
            torch.as_tensor((part - mean) / deviation, dtype=torch.float32, device=device)
            for part, (mean, deviation) in zip(parts, self.scale, strict=True)
        ]
        tokens = torch.as_tensor(views.examples.astype(np.int64), device=device)
        return tokens, scaled[0], scaled[1]

    def scores(self, views: Views) -> FloatArray:
        """Log odds of being a member."""
        return _logits(self.network, self.inputs(views)).double().cpu().numpy()
