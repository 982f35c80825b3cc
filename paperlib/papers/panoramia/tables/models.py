"""What the models of the tabular experiment are, and what they say of rows."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from paperlib.core import FloatArray
from paperlib.experiments.panoramia.tabular_data import RowEncoder
from paperlib.models import cross_entropy
from paperlib.training import Ensemble, TrainingConfig, fit_ensemble, noise_for


@dataclass(frozen=True, kw_only=True)
class Learning:
    """How one kind of model learns; all are MLPs.

    Attributes:
        hidden: Widths of the hidden layers.
        batch_size: Rows in a batch.
        learning_rate: Of Adam.
        dp_batch_size: Expected rows in a batch of DP-SGD; None takes all rows in every step.
        dp_learning_rate: Of Adam under DP-SGD.
        dp_epochs: Epochs of DP-SGD.
        clip_norm: Clipping norm of DP-SGD.
    """

    hidden: tuple[int, ...] = (128, 128)
    batch_size: int = 64
    learning_rate: float = 3e-3
    dp_batch_size: int | None = None
    dp_learning_rate: float = 1e-2
    dp_epochs: int = 40
    clip_norm: float = 1.0

    def plain(self, encoder: RowEncoder, epochs: int, seed: int) -> TrainingConfig:
        """A model without DP."""
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
        """A model trained by DP-SGD to ``epsilon`` at ``delta``."""
        batch = min(self.dp_batch_size or rows, rows)
        steps = self.dp_epochs * -(-rows // batch)
        return TrainingConfig(
            widths=(encoder.width, *self.hidden, len(encoder.classes)),
            epochs=self.dp_epochs,
            batch_size=batch,
            optimizer="adam",
            learning_rate=self.dp_learning_rate,
            seed=seed,
            clip_norm=self.clip_norm,
            noise_multiplier=noise_for(epsilon, batch / rows, steps, delta),
        )


def train(
    encoder: RowEncoder, rows: pd.DataFrame, configs: Sequence[TrainingConfig], *, progress: bool = False
) -> Ensemble:
    """Models of ``configs`` on the same rows, in one call."""
    x, y = encoder(rows)
    return fit_ensemble(configs, x, y, device="cpu", progress=progress)


def losses(encoder: RowEncoder, models: Ensemble, rows: pd.DataFrame) -> FloatArray:
    """Cross-entropy of each model on each row, shape (n, K)."""
    x, y = encoder(rows)
    return cross_entropy(models.logits(x), y).cpu().numpy().T
