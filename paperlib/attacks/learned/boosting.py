"""Boosted trees on examples and losses together: the attack for tables, and the default for small data."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier

from paperlib.attacks.learned.views import AttackInputs
from paperlib.core import FloatArray


@dataclass(frozen=True, kw_only=True)
class BoostedTrees:
    """Histogram gradient boosting, stopped early on the validation part.

    Attributes:
        learning_rate: Above 0.
        rounds: Most boosting rounds.
        leaves: Most leaves of a tree.
        smallest_leaf: Examples a leaf must hold.
        penalty: On the size of leaf values.
        columns: Share of the columns that a split may choose from; below 1 the seed matters.

    Source:
        PANORAMIA, appendix C.3 (gradient boosting with a grid search).
    """

    learning_rate: float = 0.1
    rounds: int = 100
    leaves: int = 15
    smallest_leaf: int = 20
    penalty: float = 1.0
    columns: float = 0.7

    @property
    def name(self) -> str:
        """What it is called in tables."""
        return f"boosted trees ({self.leaves} leaves, rate {self.learning_rate:g})"

    def fit(
        self,
        train: AttackInputs,
        membership: NDArray[np.bool_],
        *,
        validation: AttackInputs,
        validation_membership: NDArray[np.bool_],
        seed: int,
    ) -> "FittedTrees":
        """Train on examples and losses as one table.

        >>> views = AttackInputs(np.zeros((80, 1)), np.arange(80.0)[:, None])
        >>> member = np.arange(80) < 40
        >>> trees = BoostedTrees(smallest_leaf=5).fit(
        ...     views, member, validation=views, validation_membership=member, seed=0)
        >>> bool(trees.scores(views)[:40].min() > trees.scores(views)[40:].max())
        True
        """
        stop: Any = True  # scikit-learn's own annotation has only the default, "auto"
        model = HistGradientBoostingClassifier(
            learning_rate=self.learning_rate,
            max_iter=self.rounds,
            max_leaf_nodes=self.leaves,
            min_samples_leaf=self.smallest_leaf,
            l2_regularization=self.penalty,
            max_features=self.columns,
            early_stopping=stop,
            n_iter_no_change=10,
            random_state=seed,
        )
        model.fit(train.flat(), membership, X_val=validation.flat(), y_val=validation_membership)
        return FittedTrees(model)


@dataclass(frozen=True, eq=False)
class FittedTrees:
    """Boosted trees after training."""

    model: Any

    def scores(self, views: AttackInputs) -> FloatArray:
        """Log odds of being a member."""
        return np.asarray(self.model.decision_function(views.flat()), dtype=np.float64)
