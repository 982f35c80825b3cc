"""A quick classifier, and the broken twin of a learned order."""

import numpy as np

from paperlib.audits.features import LearnedOrder


class Means:
    """A quick classifier: which class mean is nearer."""

    def fit(self, X, y):
        self._means = [X[~y].mean(axis=0), X[y].mean(axis=0)]
        return self

    def predict_proba(self, X):
        far = [((X - mean) ** 2).sum(axis=1) for mean in self._means]
        chance = 1 / (1 + np.exp(np.clip(far[1] - far[0], -50, 50)))
        return np.column_stack([1 - chance, chance])


class Peeking(LearnedOrder):
    """Broken twin: learns from coins that are not revealed yet."""

    def _fit(self, revealed):
        super()._fit(np.ones_like(revealed))
        self._next_fit = np.inf
