"""What the models of the tabular experiment are, and what they say of rows."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from paperlib.attacks.gradients import gradient_norms
from paperlib.attacks.shadow import lira_offline, rmia
from paperlib.core import FloatArray
from paperlib.experiments.panoramia.tabular_data import RowEncoder
from paperlib.models import cross_entropy
from paperlib.training import Ensemble, TrainingConfig, fit_ensemble, noise_for

STRONG = ("loss", "LiRA (offline)", "RMIA", "gradient norm")
"""The columns of each model where shadow models were asked for; lower means member in all of them."""


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


@dataclass(frozen=True, eq=False)
class Shadows:
    """Models trained as a target is, on halves of rows that hold no member.

    Attributes:
        encoder: How rows become features.
        models: One ensemble for each shadow.
        population: Rows of the same kind, which RMIA compares with.
    """

    encoder: RowEncoder
    models: tuple[Ensemble, ...]
    population: pd.DataFrame

    @classmethod
    def train(
        cls,
        encoder: RowEncoder,
        rows: pd.DataFrame,
        population: pd.DataFrame,
        learning: Learning,
        *,
        count: int,
        epochs: int,
        size: int,
        seed: int,
    ) -> "Shadows":
        """``count`` models, each on its own random ``size`` of ``rows``."""
        rng = np.random.default_rng(seed)
        models = []
        for at in range(count):
            chosen = rng.permutation(len(rows))[: min(size, len(rows))]
            config = learning.plain(encoder, epochs, seed + 1 + at)
            models.append(train(encoder, rows.iloc[chosen], [config]))
        return cls(encoder, tuple(models), population)

    def columns(self, models: Ensemble, index: int, rows: pd.DataFrame) -> FloatArray:
        """What `STRONG` names, for model ``index``, shape (n, 4); lower means member."""
        x, y = self.encoder(rows)
        z, labels = self.encoder(self.population)
        margins = -models.margin_losses(x, y)[index]
        shadow = -np.concatenate([one.margin_losses(x, y) for one in self.models])
        z_margins = -models.margin_losses(z, labels)[index]
        z_shadow = -np.concatenate([one.margin_losses(z, labels) for one in self.models])
        probabilities = [1 / (1 + np.exp(-values)) for values in (margins, shadow, z_margins, z_shadow)]
        columns = [
            cross_entropy(models.logits(x)[index], y).cpu().numpy(),
            -lira_offline(margins, shadow, fixed_variance=len(self.models) < 16),
            -rmia(*probabilities),
            gradient_norms(models.model(index), x, y),
        ]
        return np.stack(columns, axis=1)
