"""Keys that were drawn anew for a release, such as numbers of patients: they hide copies."""

from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import binom

from paperlib.audits.releases.distances import table_space

_HARDLY = 0.01  # share of values that keys have in common by chance
_ATTACKED = 500  # rows of the release whose nearest rows are looked at
_CLOSE = 0.05  # share of all pairs that lie so close, or closer
_INFORMED = 0.01  # chance of taking a key for a number that belongs to its row


def new_keys(release: pd.DataFrame, pool: pd.DataFrame) -> list[Any]:
    """The columns of keys that were drawn anew: text, whole numbers or times that do not repeat on
    a side, of which the release shares hardly one with the records; for numbers and times only
    where rows that are alike otherwise do not lie close together in them.

    None where no other column would be left. Both tables have the same columns and types.
    """
    fresh = [name for name in release if _is_fresh(release[name], pool[name])]
    others = [name for name in release if name not in fresh]
    if not others:
        return []
    words = [name for name in fresh if release[name].dtype.kind not in "iufM"]
    numbers = [name for name in fresh if name not in words]
    if not numbers:
        return words
    nearest, rows = _nearest(release[others], pool[others])
    return words + [
        name for name in numbers if not _is_informed(release[name][rows], pool[name][nearest])
    ]


def _is_fresh(released: "pd.Series[Any]", records: "pd.Series[Any]") -> bool:
    """Whether the values of a column do not repeat on a side, of text hardly, and hardly one is on
    both.
    """
    released, records = released.dropna(), records.dropna()
    kind = released.dtype.kind
    if released.empty or records.empty or kind in "bmc":
        return False
    if kind == "f" and (released % 1).any():
        return False
    repeats = max(float(released.duplicated().mean()), float(records.duplicated().mean()))
    most = 0 if kind in "iufM" else _HARDLY  # few amounts are equal, too, but they are no keys
    return repeats <= most and float(released.isin(records).mean()) <= _HARDLY


def _nearest(release: pd.DataFrame, pool: pd.DataFrame) -> tuple[Any, Any]:
    """For some rows of the release the index of the nearest row of the pool, and their own."""
    # Of equally near rows the first is taken: their order must not tell who is a member.
    shuffled = pool.sample(frac=1, random_state=0)
    space = table_space(release, shuffled)
    rows = np.arange(0, len(release), max(1, len(release) // _ATTACKED))
    nearest = space.between(space.release[rows], space.pool).argmin(axis=1)
    return shuffled.index[nearest], rows


def _is_informed(released: "pd.Series[Any]", nearest: "pd.Series[Any]") -> bool:
    """Whether values lie closer to those of the rows that are nearest otherwise than to others."""
    # Ranks on each side: in another unit, a number still belongs to its row.
    rank = released.rank(pct=True).to_numpy()
    other = nearest.rank(pct=True).to_numpy()
    apart = np.abs(rank - other)
    limit = np.nanquantile(np.abs(rank[:, None] - other), _CLOSE)
    close = int((apart <= limit).sum())
    return float(binom.sf(close - 1, len(apart), _CLOSE)) < _INFORMED
