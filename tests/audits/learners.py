"""A quick classifier, the broken twin of a learned order, and every game of a learned order on few coins."""

from functools import cache

import numpy as np

from paperlib.audits.features import LearnedOrder
from paperlib.bounds.one_run.adaptive import ends_of, reveal

EXAMPLES = 9
FEATURES = np.random.default_rng(8).normal(size=(EXAMPLES, 2))
VECTORS = ((np.arange(2**EXAMPLES)[:, None] >> np.arange(EXAMPLES)) & 1).astype(bool)


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


@cache
def all_games(order, only_members):
    """Every coin vector's game, and its number: the coins in the order in which they are revealed."""
    games = []
    for vector in VECTORS:
        ends = ends_of(FEATURES[:, 0])[: 1 if only_members else 2]
        learned = order(FEATURES, vector, Means(), np.random.default_rng(0), only_members=only_members)
        games.append(reveal([*ends, learned], vector, np.array([4]), leader=len(ends)))
    coins = np.array([vector[game.revealed] for vector, game in zip(VECTORS, games, strict=True)])
    return games, coins @ (1 << np.arange(EXAMPLES)[::-1])
