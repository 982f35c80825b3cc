"""Keys that were drawn anew for a release, such as numbers of patients: they hide copies."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import binom, kstest, norm

from paperlib.audits.releases.distances import table_space
from paperlib.core import FloatArray, IntArray

_HARDLY = 0.01  # share of values that keys have in common by chance
_ATTACKED = 500  # rows of the release whose nearest rows are looked at
_CLOSE = 0.05  # share of all pairs that lie so close, or closer
_INFORMED = 0.01  # chance of taking a key for a value that belongs to its row
_UNEVEN = 1e-4  # chance of taking keys, which fill their range evenly, for amounts


def check_not_keys_alone(release: pd.DataFrame, pool: pd.DataFrame, keys: list[Any]) -> None:
    """Refuse (ValueError) a table of which nothing is left to compare but for ``keys``, which
    `new_keys` names, or which holds nothing but keys that were drawn anew.

    Amounts in whole numbers, which hardly repeat either, do not fill their range evenly, or are
    tied to the other columns of their rows.
    """
    left = [name for name in release if name not in keys]
    if not keys and all(_may_be_new(release[name], pool[name]) for name in release):
        if _are_tied(release, pool):
            return
        keys = left
        left = [name for name in release if not _are_even(release[name], pool[name])]
    if any(pd.concat([release[name], pool[name]]).nunique() > 1 for name in left) or not keys:
        return
    raise ValueError(
        f"release: no column is left to compare: {_listed(keys)} hardly share a value with the "
        "records and repeat none, as keys that were drawn anew, so that copies would not be seen; "
        "bring the release with columns that describe its rows, or with its first keys"
    )


def _are_tied(release: pd.DataFrame, pool: pd.DataFrame) -> bool:
    """Whether the values of one of several columns that never repeat belong to their rows."""
    if release.shape[1] < 2:
        return False
    for name in release:
        against = _against(release.drop(columns=name), pool.drop(columns=name))
        if _is_of_its_row(release[name], pool[name], against):
            return True
    return False


def _are_even(released: "pd.Series[Any]", records: "pd.Series[Any]") -> bool:
    """Whether values fill their range evenly in both tables, as running or drawn numbers do, or are
    text, of which all words are as far from each other.
    """
    if released.dtype.kind not in "iufM":
        return True
    for values in (released, records):
        numbers = values.dropna().astype("int64").to_numpy().astype(np.float64)
        low, high = float(numbers.min()), float(numbers.max())
        if kstest(numbers, "uniform", (low, high - low)).pvalue < _UNEVEN:
            return False
    return True


def _listed(names: list[Any]) -> str:
    """Some names of columns, as a message lists them."""
    listed = ", ".join(repr(name) for name in names[:5])
    return f"{listed}, ..." if len(names) > 5 else listed


class _Others(NamedTuple):
    """Rows of the release against those of the pool, in all columns but those that may be keys."""

    rows: IntArray  # of the release, by their places, (n,)
    pool: IntArray  # the rows of the pool in a random order, by their places, (m,)
    distances: NDArray[Any]  # (n, m)


def new_keys(release: pd.DataFrame, pool: pd.DataFrame) -> list[Any]:
    """The columns of keys that were drawn anew: text, whole numbers or times that do not repeat on
    a side, and whose values do not belong to their rows.

    A value that the release shares with a record belongs to its row if both rows are more alike
    than others are; numbers and times, too, if rows that are alike otherwise lie close together in
    them. In a file of few rows, keys of two or three digits meet by chance. None where no other
    column would be left. Both tables have the same columns and types, and rows from 0.
    """
    unique = [name for name in release if _may_be_new(release[name], pool[name])]
    others = [name for name in release if name not in unique]
    if not unique or not others:
        return []
    against = _against(release[others], pool[others])
    return [name for name in unique if not _is_of_its_row(release[name], pool[name], against)]


def _may_be_new(released: "pd.Series[Any]", records: "pd.Series[Any]") -> bool:
    """Whether a column never repeats, and hardly a value is on both sides, or no more than numbers
    of so narrow a range have in common by chance.
    """
    if not _never_repeats(released, records):
        return False
    released, records = released.dropna(), records.dropna()
    shared = int(records.isin(released).sum())
    if shared <= _HARDLY * len(records):
        return True
    numbers = _running_numbers(pd.concat([released, records]))
    if numbers is None:
        return False
    by_chance = min(1.0, len(released) / (int(numbers.max()) - int(numbers.min()) + 1))
    return float(binom.sf(shared - 1, len(records), by_chance)) >= _INFORMED


def _running_numbers(values: "pd.Series[Any]") -> "pd.Series[Any] | None":
    """The whole numbers that a column of keys counts by, int64, shape (n,).

    Those of a column of numbers, or of text if all its values have one beginning and then up to
    nine digits, as P-017 and P-018. None for any other text, and for times. No value is missing.
    """
    if values.dtype.kind in "iuf":
        return values.astype("int64")
    if values.dtype.kind == "M":
        return None
    split = values.astype(str).str.extract(r"^(\D*)(\d{1,9})$")
    if split.isna().to_numpy().any() or split[0].nunique() > 1:
        return None
    return split[1].astype("int64")


def _never_repeats(released: "pd.Series[Any]", records: "pd.Series[Any]") -> bool:
    """Whether the values of a column do not repeat on a side, of text hardly."""
    released, records = released.dropna(), records.dropna()
    kind = released.dtype.kind
    if released.empty or records.empty or kind in "bmc":
        return False
    if kind == "f" and (released % 1).any():
        return False
    repeats = max(float(released.duplicated().mean()), float(records.duplicated().mean()))
    most = 0 if kind in "iufM" else _HARDLY  # few amounts are equal, too, but they are no keys
    return repeats <= most


def _is_of_its_row(released: "pd.Series[Any]", records: "pd.Series[Any]", against: _Others) -> bool:
    """Whether the values of a column that never repeats belong to their rows."""
    if _shared_values_are_alike(released, records, against):
        return True
    if released.dtype.kind not in "iufM":
        return False
    nearest = against.pool[against.distances.argmin(axis=1)]
    return _is_informed(released.iloc[against.rows], records.iloc[nearest])


def _against(release: pd.DataFrame, pool: pd.DataFrame) -> _Others:
    """The distances of some rows of the release to those of the pool, in these columns."""
    # Of equally near rows the first is taken: their order must not tell who is a member.
    shuffled = pool.sample(frac=1, random_state=0)
    space = table_space(release, shuffled)
    rows = np.arange(0, len(release), max(1, len(release) // _ATTACKED))
    distances = space.between(space.release[rows], space.pool)
    return _Others(rows, shuffled.index.to_numpy(), distances)


def _shared_values_are_alike(
    released: "pd.Series[Any]", records: "pd.Series[Any]", against: _Others
) -> bool:
    """Whether a released row and a record with the same value are nearer to each other than two
    rows are by chance, on average or in too many cases.
    """
    places = _same_value(released.iloc[against.rows], records.iloc[against.pool])
    rows = np.flatnonzero(places >= 0)
    if not rows.size:
        return False
    nearer = _nearer(against.distances[rows], places[rows])
    # Of unrelated rows the share of nearer records is uniform: its mean varies by 1 / 12 n.
    by_mean = float(norm.cdf((nearer.mean() - 0.5) * np.sqrt(12 * rows.size)))
    close = int((nearer <= _CLOSE).sum())
    return min(by_mean, float(binom.sf(close - 1, rows.size, _CLOSE))) < _INFORMED / 2


def _same_value(released: "pd.Series[Any]", records: "pd.Series[Any]") -> IntArray:
    """For each released value the place of the first record that has it; -1 for none."""
    values = records.to_numpy()
    first = pd.Series(np.arange(len(values)), index=values)
    first = first[first.index.notna() & ~first.index.duplicated()]
    return released.map(first).fillna(-1).to_numpy(dtype=np.int64)


def _nearer(distances: NDArray[Any], places: IntArray) -> FloatArray:
    """The share of records that are nearer to each row than the record of its place, equally near
    ones counted by half.
    """
    to_its_record = distances[np.arange(len(places)), places][:, None]
    return (distances < to_its_record).mean(axis=1) + (distances == to_its_record).mean(axis=1) / 2


def _is_informed(released: "pd.Series[Any]", nearest: "pd.Series[Any]") -> bool:
    """Whether values lie closer to those of the rows that are nearest otherwise than to others."""
    # Ranks on each side: in another unit, a number still belongs to its row.
    rank = released.rank(pct=True).to_numpy()
    other = nearest.rank(pct=True).to_numpy()
    apart = np.abs(rank - other)
    limit = np.nanquantile(np.abs(rank[:, None] - other), _CLOSE)
    close = int((apart <= limit).sum())
    return float(binom.sf(close - 1, len(apart), _CLOSE)) < _INFORMED
