"""Boosted trees on examples and losses together: the attack for tables, and the default for small data."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from sklearn.ensemble import HistGradientBoostingClassifier

from paperlib.attacks.learned.interface import AttackInputs, FittedClassifier, Labelled


@dataclass(frozen=True, kw_only=True)
class BoostedTrees:
    """Histogram gradient boosting, stopped early on the validation part.

    Attributes:
        rounds: Largest number of boosting rounds.
        smallest_leaf: Smallest number of examples in a leaf.
        penalty: L2 penalty on leaf values.
        columns: Share of the columns that a split may choose from; below 1 the seed matters.

    Source:
        PANORAMIA, appendix C.3 (gradient boosting with a grid search).

    >>> import numpy as np
    >>> inputs = AttackInputs(np.zeros((80, 1)), np.arange(80.0)[:, None])
    >>> part = Labelled(inputs, np.arange(80) < 40)
    >>> [trees] = BoostedTrees(smallest_leaf=5).fit(part, part, seeds=[0])
    >>> bool(trees.scores(inputs)[:40].min() > trees.scores(inputs)[40:].max())
    True
    """

    learning_rate: float = 0.1
    rounds: int = 100
    leaves: int = 15
    smallest_leaf: int = 20
    penalty: float = 1.0
    columns: float = 0.7

    @property
    def name(self) -> str:
        """Name in tables."""
        return f"boosted trees ({self.leaves} leaves, rate {self.learning_rate:g})"

    def fit(self, train: Labelled, validation: Labelled, *, seeds: Sequence[int]) -> list[FittedClassifier]:
        """Train on examples and losses as one table, once per seed."""
        stop: Any = True  # scikit-learn's own annotation has only the default, "auto"
        untrained: Any = partial(
            HistGradientBoostingClassifier,
            learning_rate=self.learning_rate,
            max_iter=self.rounds,
            max_leaf_nodes=self.leaves,
            min_samples_leaf=self.smallest_leaf,
            l2_regularization=self.penalty,
            max_features=self.columns,
            early_stopping=stop,
            n_iter_no_change=10,
        )
        data = (train.inputs.flat(), train.membership)
        held = {"X_val": validation.inputs.flat(), "y_val": validation.membership}
        models = [untrained(random_state=seed).fit(*data, **held) for seed in seeds]
        return [FittedClassifier(model, AttackInputs.flat) for model in models]
