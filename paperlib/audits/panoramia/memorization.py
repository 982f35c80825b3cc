"""Does a generator repeat itself, or what it was trained on?"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binomtest
from sklearn.neighbors import NearestNeighbors

from paperlib.core import FloatArray
from paperlib.words.audits import panoramia_data as words

if TYPE_CHECKING:
    from paperlib.generators.text import CopiedText

_RARE = 1e-3  # p-value below which nearness to the training data is no chance
_NOTABLE = 0.01  # share of copies, above that of chance, from which readers are warned


@dataclass(frozen=True)
class Copies:
    """How near generated examples come to what the generator was trained on, as shares of them."""

    repeated: float  # equal an earlier one
    copied: float  # equal an example of the generator's training data
    copied_others: float  # equal a held-out real example, of as many: what chance alone gives
    # Nearer to training data than to as many held-out examples; 1/2 if none was learned.
    nearer: float
    p_value: float  # one-sided, of "nearer" being one half or less

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader of a result must know; empty where all is well."""
        warnings: list[str] = []
        if self.repeated > _NOTABLE + self.copied_others:
            warnings.append(words.repeats_itself(self))
        if self.copied > _NOTABLE + self.copied_others or self.p_value < _RARE:
            warnings.append(words.memorises(self))
        return tuple(warnings)


def copies(
    generated: ArrayLike, trained_on: ArrayLike, held_out: ArrayLike, *, seed: int = 0
) -> Copies:
    """Compare generated examples with the generator's training data and with held-out real data, by
    Euclidean distances of features over their standard deviations.

    Args:
        generated, trained_on, held_out: Examples, each of shape (n, ...), n its own. Of both kinds
            of real data as many are compared as the smaller one has.
        seed: Of that choice, and of coins where both are equally near.

    Raises:
        ValueError: Examples of different shapes, or none.
    """
    drawn = _rows("generated", generated)
    seen = _rows("trained_on", trained_on)
    others = _rows("held_out", held_out)
    features = [rows.shape[1] for rows in (drawn, seen, others)]
    if len(set(features)) > 1:
        raise ValueError(f"examples: expected equal shapes, got {features} features")
    rng = np.random.default_rng(seed)
    size = min(len(seen), len(others))
    seen = seen[rng.permutation(len(seen))[:size]]
    others = others[rng.permutation(len(others))[:size]]
    deviation = np.concatenate([seen, others]).std(axis=0)
    scale = np.where(deviation > 0, deviation, 1.0)
    to_seen = _nearest(drawn, seen, scale)
    to_others = _nearest(drawn, others, scale)
    coins = rng.integers(0, 2, len(drawn))  # which of two equal distances is the shorter one
    wins = (to_seen < to_others) + (to_seen == to_others) * coins
    return Copies(
        repeated=1 - len(np.unique(drawn, axis=0)) / len(drawn),
        copied=float((to_seen == 0).mean()),
        copied_others=float((to_others == 0).mean()),
        nearer=float(wins.mean()),
        p_value=float(binomtest(int(wins.sum()), len(drawn), 0.5, alternative="greater").pvalue),
    )


def near_duplicates(
    generated: ArrayLike, trained_on: ArrayLike, held_out: ArrayLike
) -> tuple[float, float]:
    """Shares of generated and of held-out examples, each in [0, 1], that nearly repeat one of the
    training data; each of shape (n, ...), n its own.
    """
    # Nearly: within half of the median distance of held-out examples to their nearest one.
    drawn = _rows("generated", generated)
    seen = _rows("trained_on", trained_on)
    others = _rows("held_out", held_out)
    plain = np.ones(seen.shape[1])
    distances = _nearest(drawn, seen, plain)
    usual = _nearest(others, seen, plain)
    near = np.median(usual) / 2
    return float((distances < near).mean()), float((usual < near).mean())


def _rows(name: str, values: ArrayLike) -> FloatArray:
    """Examples of any shape as rows of numbers, shape (n, d); a ValueError, which begins with
    ``name``, where there is none.
    """
    table: NDArray[Any] = np.asarray(values, dtype=np.float64)
    if table.ndim < 2 or not len(table):
        raise ValueError(f"{name}: expected shape (n, ...) with n of 1 or more, got {table.shape}")
    return table.reshape(len(table), -1)


def _nearest(drawn: FloatArray, real: FloatArray, scale: FloatArray) -> FloatArray:
    """The Euclidean distance of each drawn row, (n, d), to the nearest real one, (k, d), features
    divided by ``scale``, (d,); shape (n,).
    """
    distances = NearestNeighbors(n_neighbors=1).fit(real / scale).kneighbors(drawn / scale)[0]
    return np.asarray(distances[:, 0], dtype=np.float64)


def copied_members(generated: Sequence[Any], members: Sequence[Any]) -> tuple[str, ...]:
    """A warning where far more of the generated rows equal a member than members equal one another;
    none elsewhere. Rows are such as can be compared and hashed, such as bytes.
    """
    times = Counter(members)
    copied = sum(row in times for row in generated) / len(generated)
    repeated = sum(times[row] > 1 for row in members) / len(members)
    if copied <= _NOTABLE + 2 * repeated:
        return ()
    return (words.generated_members(copied),)


def text_warnings(compared: "CopiedText") -> tuple[str, ...]:
    """A warning where generated chunks repeat training text more than other real text does."""
    return (words.copies_text(compared),) if compared.is_notable else ()
