"""Turning a table of numbers and words into features, with nothing learned from the test part."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Columns = Mapping[str, NDArray[np.generic]]


@dataclass(frozen=True)
class TableEncoder:
    """Numbers to mean 0 and deviation 1, words to one column per value seen while fitting."""

    numeric: Mapping[str, tuple[float, float]]  # column name to mean and deviation in the fitted part
    words: Mapping[str, tuple[str, ...]]  # column name to the values of the fitted part, sorted

    @classmethod
    def fit(cls, columns: Columns, *, numeric: Sequence[str], words: Sequence[str]) -> "TableEncoder":
        """Learn means, deviations and values from the training part; a constant column becomes all zeros.

        >>> table = {"age": np.array([20.0, 40.0]), "job": np.array(["?", "cook"])}
        >>> encoder = TableEncoder.fit(table, numeric=["age"], words=["job"])
        >>> encoder.names
        ('age', 'job=?', 'job=cook')
        >>> encoder.transform({"age": np.array([30.0]), "job": np.array(["pilot"])})
        array([[0., 0., 0.]], dtype=float32)
        """
        scales: dict[str, tuple[float, float]] = {}
        for name in numeric:
            numbers = np.asarray(columns[name], dtype=float)
            deviation = float(numbers.std())
            scales[name] = float(numbers.mean()), deviation if deviation > 0 else 1.0
        return cls(
            numeric=scales,
            words={name: tuple(sorted({str(value) for value in columns[name]})) for name in words},
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features, in their order."""
        words = [f"{name}={value}" for name, values in self.words.items() for value in values]
        return (*self.numeric, *words)

    def transform(self, columns: Columns) -> NDArray[np.float32]:
        """The features of any part, shape (n, features); a word not seen while fitting gives zeros."""
        parts = [
            ((np.asarray(columns[name], dtype=float) - mean) / deviation)[:, None]
            for name, (mean, deviation) in self.numeric.items()
        ]
        for name, values in self.words.items():
            parts.append(np.asarray(columns[name], dtype=str)[:, None] == np.array(values)[None, :])
        return np.concatenate(parts, axis=1).astype(np.float32)
