"""Small networks on tables: how rows become features, how models learn, and their losses."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from paperlib.core import FloatArray, IntArray
from paperlib.data.dataset import TableEncoder
from paperlib.generators.tabular import checked_columns, is_name_like
from paperlib.models import cross_entropy
from paperlib.training import TrainingConfig, fit_ensemble, noise_for
from paperlib.training.ensembles import MLPEnsemble


@dataclass(frozen=True, eq=False)
class RowEncoder:
    """Rows as what an MLP takes: scaled numbers and one-hot words, without names of rows; class
    numbers.
    """

    # Fitted on D_G alone: a target that never saw the members knows nothing of them through the
    # scaling either.
    features: TableEncoder
    label: str
    classes: tuple[str, ...]

    @classmethod
    def fit(cls, rows: pd.DataFrame, label: str, classes: tuple[str, ...]) -> "RowEncoder":
        """Learn means, deviations and words from ``rows``, a table whose column ``label`` holds
        some of ``classes``; a ValueError for fewer than two rows, or missing values.
        """
        columns = {
            name: values
            for name, values in checked_columns("rows", rows).items()
            if name != str(label)
        }
        numeric = [name for name, values in columns.items() if values.dtype.kind in "biuf"]
        words = [
            name
            for name, values in columns.items()
            if name not in numeric and not is_name_like(values)
        ]
        return cls(TableEncoder.fit(columns, numeric=numeric, words=words), label, classes)

    @property
    def width(self) -> int:
        """Number of features."""
        return len(self.features.names)

    def __call__(self, rows: pd.DataFrame) -> tuple[NDArray[np.float32], IntArray]:
        """Features (n, width), float32, and class numbers (n,); another label raises a
        ValueError.
        """
        number_of = {name: number for number, name in enumerate(self.classes)}
        labels = rows[self.label].astype(str)
        unknown = sorted(set(labels) - set(number_of))
        if unknown:
            raise ValueError(
                f"rows: expected labels of {', '.join(self.classes)}, got {', '.join(unknown)}"
            )
        x = self.features.transform(checked_columns("rows", rows))
        return x, np.array([number_of[value] for value in labels], dtype=np.int64)


@dataclass(frozen=True, kw_only=True)
class Learning:
    """How one kind of model learns; all are MLPs, trained by Adam."""

    hidden: tuple[int, ...] = (128, 128)
    batch_size: int = 64
    learning_rate: float = 3e-3
    # Expected rows in a batch of DP-SGD; None takes all rows in every step.
    dp_batch_size: int | None = None
    dp_learning_rate: float = 1e-2
    dp_epochs: int = 40
    clip_norm: float = 1.0

    def plain(self, encoder: RowEncoder, epochs: int, seed: int) -> TrainingConfig:
        """How a model without DP is trained, on what ``encoder`` makes of rows."""
        return TrainingConfig(
            widths=(encoder.width, *self.hidden, len(encoder.classes)),
            epochs=epochs,
            batch_size=self.batch_size,
            optimizer="adam",
            learning_rate=self.learning_rate,
            seed=seed,
        )

    def private(
        self, encoder: RowEncoder, rows: int, epsilon: float, delta: float, seed: int
    ) -> TrainingConfig:
        """How a model on ``rows`` rows is trained by DP-SGD to ``epsilon``, nats, at ``delta``, on
        what ``encoder`` makes of them; the noise is what the accountant asks for.
        """
        batch = min(self.dp_batch_size or rows, rows)
        steps = self.dp_epochs * -(-rows // batch)  # an epoch rounded up to whole batches
        return replace(
            self.plain(encoder, self.dp_epochs, seed),
            batch_size=batch,
            learning_rate=self.dp_learning_rate,
            clip_norm=self.clip_norm,
            noise_multiplier=noise_for(epsilon, batch / rows, steps, delta),
        )


def train(
    encoder: RowEncoder,
    rows: pd.DataFrame,
    configs: Sequence[TrainingConfig],
    *,
    progress: bool = False,
) -> MLPEnsemble:
    """Train a model for each of ``configs`` on the same rows, in one call; a ValueError for a label
    that the encoder does not know. ``progress`` shows a bar.
    """
    x, y = encoder(rows)
    return fit_ensemble(configs, x, y, device="cpu", progress=progress)


def table_losses(encoder: RowEncoder, models: MLPEnsemble, rows: pd.DataFrame) -> FloatArray:
    """Cross-entropy of each model on each row, nats, shape (n, K) for K models."""
    x, y = encoder(rows)
    return cross_entropy(models.logits(x), y).cpu().numpy().T
