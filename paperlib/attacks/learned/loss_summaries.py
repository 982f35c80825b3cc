"""The attack on losses of tokens alone: logistic regression on summaries of the loss sequences."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from paperlib.attacks.learned.interface import AttackInputs, FittedClassifier, Labelled
from paperlib.core import FloatArray

_QUARTERS = (0.0, 0.25, 0.5, 0.75, 1.0)


def summaries(sequences: FloatArray) -> FloatArray:
    """Mean, deviation and quartiles of each model's losses, and of the differences of each two
    models.

    Args:
        sequences: Losses of tokens, nats, shape (n, models, tokens).

    Returns:
        Seven statistics of each model, then of each two models, side by side: shape (n, columns).
    """
    models = sequences.shape[1]
    differences = [sequences[:, i] - sequences[:, j] for i in range(models) for j in range(i)]
    series = sequences
    if differences:
        series = np.concatenate([sequences, np.stack(differences, axis=1)], axis=1)
    statistics = [series.mean(axis=2), series.std(axis=2), *_quartiles(series)]
    return np.stack(statistics, axis=2).reshape(len(sequences), -1)


def _quartiles(series: FloatArray) -> list[FloatArray]:
    """Least value, quartiles and largest value along the last axis, each of shape (n, series):
    numpy's quantiles, much faster for short rows.
    """
    ordered = np.sort(series, axis=-1)
    quartiles: list[FloatArray] = []
    for quarter in _QUARTERS:
        position = quarter * (series.shape[-1] - 1)  # between two values of the row
        low = ordered[..., int(position)]
        high = ordered[..., math.ceil(position)]
        share = position % 1
        quartiles.append((1 - share) * low + share * high)
    return quartiles


@dataclass(frozen=True, kw_only=True)
class LossSummaries:
    """Logistic regression on summaries of the losses of chunks of ``tokens`` tokens, which are not
    read.
    """

    tokens: int
    strength: float = 0.003  # inverse of the penalty, as scikit-learn's C

    @property
    def name(self) -> str:
        """Name in tables."""
        return f"logistic regression on loss summaries (C {self.strength:g})"

    def fit(
        self, train: Labelled, validation: Labelled, *, seeds: Sequence[int]
    ) -> list[FittedClassifier]:
        """Train once: neither the validation part nor the seed changes anything."""
        return [_fitted(self, train)] * len(seeds)


@lru_cache(maxsize=2)  # other seeds give the same
def _fitted(settings: LossSummaries, train: Labelled) -> FittedClassifier:
    """Logistic regression on the standardised summaries of the training part, kept for a second
    call with it.
    """
    model = make_pipeline(StandardScaler(), LogisticRegression(C=settings.strength, max_iter=1000))
    table = partial(_table, tokens=settings.tokens)
    return FittedClassifier(model.fit(table(train.inputs), train.membership), table)


def _table(inputs: AttackInputs, tokens: int) -> FloatArray:
    """The summaries; a column of zeros without a model, when nothing is known."""
    _, table = sequences_and_summaries(inputs, tokens)
    return table if table.shape[1] else np.zeros((len(inputs), 1))


# Every setting and try reads the same training part and halves of the validation part.
@lru_cache(maxsize=3)
def sequences_and_summaries(inputs: AttackInputs, tokens: int) -> tuple[FloatArray, FloatArray]:
    """Losses by model and token, nats, (n, models, tokens), and their `summaries`.

    Raises:
        ValueError: Losses without 1 + ``tokens`` columns for each model.
    """
    columns = inputs.losses.shape[1]
    if columns % (1 + tokens):
        raise ValueError(
            f"losses: expected 1 + {tokens} columns for each model, the mean and each token, "
            f"got {columns}"
        )
    sequences = inputs.losses.reshape(len(inputs), -1, 1 + tokens)[:, :, 1:]
    return sequences, summaries(sequences)
