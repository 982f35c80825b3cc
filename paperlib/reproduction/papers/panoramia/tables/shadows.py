"""The numbers of stronger attacks on rows: shadow models, and what they, losses and gradients
say.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit

from paperlib.attacks.gradients import gradient_norms
from paperlib.attacks.shadow import lira_offline, rmia
from paperlib.audits.panoramia.table_models import Learning, RowEncoder, train
from paperlib.core import FloatArray
from paperlib.models import cross_entropy
from paperlib.training.ensembles import MLPEnsemble

STRONGER: Mapping[str, str] = {
    "lira_offline": "LiRA (offline)",
    "lira_online": "LiRA (online)",
    "rmia": "RMIA",
    "gradient_norm": "gradient norm",
}
"""Stronger attacks, and what tables call them."""
OFFLINE = ("lira_offline", "rmia")
"""Those whose shadow models were trained without the audited rows."""
Model = tuple[MLPEnsemble, int]
"""Models trained together, and the number of one of them."""
MANY = 16  # shadow models from which each row has a variance of its own


@dataclass(frozen=True, eq=False)
class Shadows:
    """Models that learned no audited row."""

    encoder: RowEncoder  # of rows as features
    models: tuple[MLPEnsemble, ...]  # one ensemble for each shadow
    population: pd.DataFrame  # rows of the same kind, which RMIA compares with

    def confidences(self, rows: pd.DataFrame) -> FloatArray:
        """Log-odds that each shadow gives the label of each row, shape (K, n)."""
        return np.concatenate([log_odds(self.encoder, model, rows) for model in self.models])

    @cached_property
    def of_population(self) -> FloatArray:
        """The same of the population, shape (K, m)."""
        return self.confidences(self.population)


def log_odds(encoder: RowEncoder, models: MLPEnsemble, rows: pd.DataFrame) -> FloatArray:
    """Log-odds log(p / (1 - p)), nats, that each of K models gives the label of each row, shape (K,
    n).
    """
    return -models.margin_losses(*encoder(rows))


def numbers(
    names: Sequence[str],
    encoder: RowEncoder,
    model: Model,
    rows: pd.DataFrame,
    shadows: Shadows | None = None,
) -> FloatArray:
    """The loss of one model on rows, nats, then the numbers of stronger attacks; lower means member
    in all, so that scores of attacks, which are higher for members, are negated.

    Args:
        names: Keys of `STRONGER`, a column each. That of "lira_online" holds minus the log-odds,
            since its shadow models belong to one game.
        encoder: Of rows as features.
        model: The models that were trained together, and the number of the one that is asked.
        rows: The n rows.
        shadows: Shadow models, which the attacks of `OFFLINE` need.

    Returns:
        Shape (n, 1 + len(names)).

    Raises:
        ValueError: An attack of `OFFLINE` without ``shadows``.
    """
    models, index = model
    x, y = encoder(rows)
    columns = [cross_entropy(models.logits(x)[index], y).cpu().numpy()]
    confidence = log_odds(encoder, models, rows)[index]
    for name in names:
        if name == "gradient_norm":
            columns.append(gradient_norms(models.model(index), x, y))
        elif name == "lira_online":
            columns.append(-confidence)  # its shadow models belong to one game: `game_pools`
        elif shadows is None:
            raise ValueError(f"shadows: {name} needs shadow models")
        elif name == "lira_offline":
            of_shadows = shadows.confidences(rows)
            # Few shadows tell no variance of each row: all rows have one.
            few = len(of_shadows) < MANY
            columns.append(-lira_offline(confidence, of_shadows, fixed_variance=few))
        else:  # "rmia"
            columns.append(-_rmia(model, encoder, rows, shadows))
    return np.stack(columns, axis=1)


def _rmia(model: Model, encoder: RowEncoder, rows: pd.DataFrame, shadows: Shadows) -> FloatArray:
    """RMIA's score of each row, (n,), from the probabilities that models give the labels."""
    models, index = model
    return rmia(
        expit(log_odds(encoder, models, rows)[index]),
        expit(shadows.confidences(rows)),
        expit(log_odds(encoder, models, shadows.population)[index]),
        expit(shadows.of_population),
    )


def shadow_models(
    encoder: RowEncoder,
    rows: pd.DataFrame,
    subsets: Iterable[NDArray[Any]],
    learning: Learning,
    epochs: int,
    seed: int,
) -> tuple[MLPEnsemble, ...]:
    """A model trained as a target is on each of some subsets of rows.

    Args:
        encoder: Of rows as features.
        rows: The n rows.
        subsets: Of each model the rows that it learns: their numbers, shape (k,), or a mask, (n,).
        learning: Of a target.
        epochs: Passes over a subset.
        seed: Models have the seeds that follow it.
    """
    return tuple(
        train(encoder, rows.iloc[subset], [learning.plain(encoder, epochs, seed + number)])
        for number, subset in enumerate(subsets, 1)
    )
