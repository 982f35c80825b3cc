"""`Dataset`: what every loader returns, how tables become features, and who of a set is trained
on.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Columns = Mapping[str, NDArray[np.generic]]


@dataclass(frozen=True, kw_only=True, eq=False)
class Dataset:
    """Examples to train on, others from the same population that never are, and where they come
    from.

    Features are float32 of shape (n, features), labels int64 of shape (n,) from 0. ``sha256s`` are
    checksums of the files (or arrays) that it was read from; ``features`` are the names of the
    columns, if they have some.

    Raises:
        ValueError: Arrays of another type or of shapes that do not fit.
    """

    train_x: NDArray[np.float32]
    train_y: NDArray[np.int64]
    test_x: NDArray[np.float32]
    test_y: NDArray[np.int64]
    name: str
    source: str
    licence: str
    sha256s: Mapping[str, str]
    description: str
    features: tuple[str, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        """Refuse (ValueError) features and labels of different lengths, and test rows of another
        width.
        """
        _check_side("train", self.train_x, self.train_y)
        _check_side("test", self.test_x, self.test_y)
        if self.train_x.shape[1] != self.test_x.shape[1]:
            raise ValueError(
                f"test_x: expected {self.train_x.shape[1]} features as in train_x, got "
                f"{self.test_x.shape[1]}"
            )

    def __repr__(self) -> str:
        return (
            f"Dataset({self.name!r}, {len(self.train_y)} training and {len(self.test_y)} other "
            f"rows, {self.train_x.shape[1]} features, {self.classes} classes)"
        )

    @property
    def classes(self) -> int:
        """Number of classes: one more than the largest label."""
        return int(max(self.train_y.max(), self.test_y.max())) + 1


def _check_side(side: str, x: NDArray[np.generic], y: NDArray[np.generic]) -> None:
    """Refuse features and labels of the "train" or "test" side that are not as `Dataset` says."""
    if x.dtype != np.float32 or x.ndim != 2 or not x.size:
        raise ValueError(f"{side}_x: expected float32 of shape (n, d), got {x.dtype} {x.shape}")
    if y.dtype != np.int64 or y.shape != (len(x),):
        raise ValueError(f"{side}_y: expected int64 of shape ({len(x)},), got {y.dtype} {y.shape}")
    if y.min() < 0:
        raise ValueError(f"{side}_y: expected labels from 0, got {y.min()}")


@dataclass(frozen=True)
class TableEncoder:
    """Numbers to mean 0 and deviation 1, words to one column per value seen while fitting."""

    # Column name to mean and deviation in the fitted part.
    numeric: Mapping[str, tuple[float, float]]
    # Column name to the values of the fitted part, sorted.
    words: Mapping[str, tuple[str, ...]]

    @classmethod
    def fit(
        cls, columns: Columns, *, numeric: Sequence[str], words: Sequence[str]
    ) -> "TableEncoder":
        """Learn means, deviations and values from the training part; a constant column becomes all
        zeros.

        ``columns`` are arrays of shape (n,) by name; ``numeric`` and ``words`` name those to use.

        Raises:
            KeyError: A name that is no column.
            ValueError: A column of ``numeric`` that holds text.

        >>> table = {"age": np.array([20.0, 40.0]), "job": np.array(["?", "cook"])}
        >>> encoder = TableEncoder.fit(table, numeric=["age"], words=["job"])
        >>> encoder.names
        ('age', 'job=?', 'job=cook')
        >>> encoder.transform({"age": np.array([30.0]), "job": np.array(["pilot"])})
        array([[0., 0., 0.]], dtype=float32)
        """
        scales: dict[str, tuple[float, float]] = {}
        for name in numeric:
            values = np.asarray(columns[name], dtype=float)
            scales[name] = (float(values.mean()), float(values.std()) or 1.0)
        values_seen = {name: tuple(sorted(set(map(str, columns[name])))) for name in words}
        return cls(scales, values_seen)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features, in their order."""
        words = [f"{name}={value}" for name, values in self.words.items() for value in values]
        return (*self.numeric, *words)

    def transform(self, columns: Columns) -> NDArray[np.float32]:
        """The features of any part, its columns of shape (n,) by name, as float32 of shape (n,
        features); a word not seen while fitting gives zeros.

        Raises:
            KeyError: A column that was fitted is missing.
            ValueError: A column of numbers that holds text.
        """
        features: list[NDArray[np.generic]] = []
        for name, (mean, deviation) in self.numeric.items():
            numbers = np.asarray(columns[name], dtype=float)
            features.append(((numbers - mean) / deviation)[:, None])
        for name, values in self.words.items():
            texts = np.asarray(columns[name], dtype=str)
            is_value = texts[:, None] == np.array(values)[None, :]  # (n, values)
            features.append(is_value)
        return np.concatenate(features, axis=1).astype(np.float32)


def membership_split(n: int, seed: int) -> NDArray[np.bool_]:
    """Toss one fair coin for each of ``n`` examples: True means it is trained on, shape (n,).

    Independent fair coins are what one-run audits assume; a fixed share of members is not.

    Raises:
        ValueError: ``n`` below 1.

    >>> bool(450 < membership_split(1000, seed=0).sum() < 550)
    True
    """
    if n < 1:
        raise ValueError(f"n: expected at least 1 example, got {n}")
    return np.random.default_rng(seed).integers(0, 2, n).astype(bool)
