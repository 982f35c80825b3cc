"""Blind baselines: classifiers on character n-grams, which know nothing of any model."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB

_TRIGRAMS = 1 << 15  # columns that three letters in a row are hashed to
_LETTERS = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

Features = Any


def out_of_fold(
    baseline: str,
    texts: list[str],
    found: NDArray[np.bool_],
    fold: NDArray[np.int64],
    *,
    learned: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """Scores (N,) of ASCII texts by classifiers of other folds' ``learned`` texts; high is like ``found``."""
    features = shapes(texts) if baseline == "boosted trees" else ngrams(texts)
    scores, labels = np.empty(len(texts)), found.astype(np.int64)
    for at in np.unique(fold).tolist():
        held, train = fold == at, (fold != at) & learned
        scores[held] = _FITS[baseline](features[train], labels[train], features[held])
    return scores


def _naive_bayes(x: Features, labels: NDArray[np.int64], held: Features) -> NDArray[np.float64]:
    chances: Any = MultinomialNB().fit(x, labels).predict_log_proba(held)
    return chances[:, 1] - chances[:, 0]


def _logistic(x: Features, labels: NDArray[np.int64], held: Features) -> NDArray[np.float64]:
    model = LogisticRegression(solver="liblinear", C=0.1, class_weight="balanced", max_iter=200)
    return np.asarray(model.fit(x, labels).decision_function(held), dtype=float)


def _boosted_trees(x: Features, labels: NDArray[np.int64], held: Features) -> NDArray[np.float64]:
    model = HistGradientBoostingClassifier(max_iter=50, max_leaf_nodes=8, random_state=0)
    balance = np.where(labels == 1, (labels == 0).sum() / (labels == 1).sum(), 1.0)
    model.fit(x, labels, sample_weight=balance)
    return np.asarray(model.decision_function(held), dtype=float)


_FITS = {"naive Bayes": _naive_bayes, "boosted trees": _boosted_trees, "logistic regression": _logistic}
BASELINES = tuple(_FITS)


def ngrams(texts: list[str]) -> Features:
    """Counts of one, two and three characters in a row, sparse, shape (N, 128 + 128² + 2¹⁵)."""
    lengths = np.array([len(text) for text in texts])
    first = np.frombuffer("".join(texts).encode("ascii"), dtype=np.uint8).astype(np.int64)
    row = np.repeat(np.arange(len(texts)), lengths)
    second, third = np.roll(first, -1), np.roll(first, -2)
    two = 128 + 128 * first + second
    three = 128 + 128**2 + (first * 16_807 + second * 1_299_721 + third * 40_503) % _TRIGRAMS
    left = np.repeat(np.cumsum(lengths), lengths) - np.arange(len(first))  # letters from here to the end
    columns = [first, two[left > 1], three[left > 2]]
    rows = [row, row[left > 1], row[left > 2]]
    # The solvers take 32-bit places alone.
    at = (np.concatenate(rows).astype(np.int32), np.concatenate(columns).astype(np.int32))
    shape = (len(texts), 128 + 128**2 + _TRIGRAMS)
    return csr_array((np.ones(len(at[0])), at), shape=shape)


def shapes(texts: list[str]) -> NDArray[np.float32]:
    """Dense features for trees, (N, 83): counts of letters, letters at the ends, repeats, runs and length."""
    lengths = np.array([len(text) for text in texts])
    width = int(lengths.max(initial=16))
    table = letters(texts, width)
    counts = np.stack([(table == letter).sum(axis=1) for letter in _LETTERS], axis=1)
    tail = np.clip(lengths[:, None] + np.arange(-8, 0), 0, None)
    ends = [table[:, :8], np.take_along_axis(table, tail, axis=1)]
    inside = np.arange(1, width) < lengths[:, None]
    steps = np.diff(table.astype(np.int16), axis=1)
    runs = [_longest_runs((steps == step) & inside) for step in (0, 1, -1)]
    different = (counts > 0).sum(axis=1)
    doubled = ((steps == 0) & inside).sum(axis=1)
    columns = [counts, *ends, np.stack([*runs, different, doubled], axis=1)]
    return np.concatenate(columns, axis=1).astype(np.float32)


def letters(texts: list[str], width: int) -> NDArray[np.uint8]:
    """ASCII codes of each text, shape (N, width), 0 behind its end."""
    codes = "".join(text.ljust(width, "\0") for text in texts).encode("ascii")
    return np.frombuffer(codes, dtype=np.uint8).reshape(len(texts), width)


def _longest_runs(hits: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The longest run of True in each row."""
    longest = run = np.zeros(len(hits), dtype=np.int64)
    for column in hits.T:
        run = np.where(column, run + 1, 0)
        longest = np.maximum(longest, run)
    return longest
