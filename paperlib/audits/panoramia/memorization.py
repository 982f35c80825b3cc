"""Does a generator repeat itself, or what it was trained on?"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binomtest
from sklearn.neighbors import NearestNeighbors

from paperlib.core import FloatArray

_RARE = 1e-3
_NOTABLE = 0.01


@dataclass(frozen=True)
class Copies:
    """How near generated examples come to what the generator was trained on.

    Attributes:
        repeated: Share of the generated examples that equal an earlier one.
        copied: Share that equals an example of the generator's training data.
        copied_others: Share that equals a held-out real example, of as many: what chance alone gives.
        nearer: Share that lies nearer to the training data than to as many held-out real examples; one half
            if the generator learned the distribution and no single example.
        p_value: One-sided p-value of "nearer" being one half or less.
    """

    repeated: float
    copied: float
    copied_others: float
    nearer: float
    p_value: float

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader of a result must know; empty where all is well."""
        found: list[str] = []
        if self.repeated > _NOTABLE + self.copied_others:
            found.append(
                f"the generator repeats itself: {self.repeated:.1%} of its examples equal an earlier one; "
                "the audit takes them as independent draws"
            )
        if self.copied > _NOTABLE + self.copied_others or self.p_value < _RARE:
            found.append(
                f"the generator memorises: {self.copied:.1%} of its examples equal one of its training data "
                f"(held-out data: {self.copied_others:.1%}), and {self.nearer:.0%} lie nearer to its "
                "training data than to as many held-out examples; stop its training earlier or give it more "
                "data"
            )
        return tuple(found)


def copies(generated: ArrayLike, trained_on: ArrayLike, held_out: ArrayLike, *, seed: int = 0) -> Copies:
    """Compare generated examples with the generator's training data and with held-out real data.

    Distances are Euclidean on standardised features (or pixels), to the nearest of equally many examples of
    both kinds.

    Args:
        generated: Shape (n, ...).
        trained_on: Training data of the generator, shape (k, ...).
        held_out: Real examples it was not trained on, shape (l, ...).
        seed: Seed of the choice of examples where one kind has more, and of ties, 0 or more.

    Raises:
        ValueError: Shapes that do not fit, or nothing to compare.

    >>> rng = np.random.default_rng(0)
    >>> real = rng.normal(size=(200, 3))
    >>> copies(real[:50], real[:100], real[100:]).copied
    1.0
    """
    parts = [_rows(name, values) for name, values in
             (("generated", generated), ("trained_on", trained_on), ("held_out", held_out))]  # fmt: skip
    if len({part.shape[1] for part in parts}) > 1:
        raise ValueError(f"examples: expected equal shapes, got {[part.shape[1] for part in parts]} features")
    rng = np.random.default_rng(seed)
    made, *real = parts
    size = min(map(len, real))
    seen, others = (part[rng.permutation(len(part))[:size]] for part in real)
    scale = np.concatenate([seen, others]).std(axis=0)
    distances = [_nearest(made, part, np.where(scale > 0, scale, 1.0)) for part in (seen, others)]
    wins = (distances[0] < distances[1]) + (distances[0] == distances[1]) * rng.integers(0, 2, len(made))
    return Copies(
        repeated=1 - len(np.unique(made, axis=0)) / len(made),
        copied=float((distances[0] == 0).mean()),
        copied_others=float((distances[1] == 0).mean()),
        nearer=float(wins.mean()),
        p_value=float(binomtest(int(wins.sum()), len(made), 0.5, alternative="greater").pvalue),
    )


def near_duplicates(generated: ArrayLike, trained_on: ArrayLike, held_out: ArrayLike) -> tuple[float, float]:
    """Shares of generated and of held-out examples that nearly repeat one of the generator's training data.

    An example does if its Euclidean distance to the nearest training example is less than half of the median
    of this distance for held-out examples.

    Args:
        generated, trained_on, held_out: As for `copies`.

    >>> near_duplicates([[0.1], [3.0]], [[0.0], [9.0]], [[2.0], [7.0]])
    (0.5, 0.0)
    """
    made, seen, others = map(
        _rows, ("generated", "trained_on", "held_out"), (generated, trained_on, held_out)
    )
    far, usual = (_nearest(part, seen, np.ones(seen.shape[1])) for part in (made, others))
    return float((far < np.median(usual) / 2).mean()), float((usual < np.median(usual) / 2).mean())


def _rows(name: str, values: ArrayLike) -> FloatArray:
    table: NDArray[Any] = np.asarray(values, dtype=np.float64)
    if table.ndim < 2 or not len(table):
        raise ValueError(f"{name}: expected shape (n, ...) with n of 1 or more, got {table.shape}")
    return table.reshape(len(table), -1)


def _nearest(made: FloatArray, real: FloatArray, scale: FloatArray) -> FloatArray:
    found = NearestNeighbors(n_neighbors=1).fit(real / scale).kneighbors(made / scale)[0]
    return np.asarray(found[:, 0], dtype=np.float64)
