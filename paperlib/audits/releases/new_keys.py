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
    """Refuse (ValueError) a table of which no column is left to compare without its keys, since all
    others have one value, or since all its columns look like keys that were drawn anew.

    Amounts in whole numbers hardly repeat either, but they do not fill their range evenly, or are
    tied to the other columns of their rows: these are no keys.

    Args:
        release, pool: Tables with the same columns and types.
        keys: Columns that `new_keys` takes for keys; none where it found no other column beside
            them.
    """
    left = [name for name in release if name not in keys]
    # Where each column may be a key, `new_keys` names none: all are, unless one is tied to its
    # rows, but for those that do not fill their range evenly.
    if not keys and all(_may_be_new(release[name], pool[name]) for name in release):
        if _is_tied_to_rows(release, pool):
            return
        keys = left
        left = [name for name in release if not _are_even(release[name], pool[name])]
    is_compared = any(pd.concat([release[name], pool[name]]).nunique() > 1 for name in left)
    if is_compared or not keys:
        return
    raise ValueError(
        f"release: no column is left to compare: {_listed(keys)} hardly share a value with the "
        "records and repeat none, as keys that were drawn anew, so that copies would not be seen; "
        "bring the release with columns that describe its rows, or with its first keys"
    )


def _is_tied_to_rows(release: pd.DataFrame, pool: pd.DataFrame) -> bool:
    """Whether the values of some column follow the other columns of their rows, so that it is no
    column of keys: rows of one value are nearer to each other in all other columns, or rows that
    are nearest there have closer values, than chance explains.

    Args:
        release, pool: Tables with the same columns, in each of which hardly a value repeats. A
            single column, with no other to be tied to, is not tied.
    """
    if release.shape[1] < 2:
        return False
    for name in release:
        distances = _row_distances(release.drop(columns=name), pool.drop(columns=name))
        if _values_follow_other_columns(release[name], pool[name], distances):
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
        # The Kolmogorov-Smirnov test against numbers that are uniform in their own range.
        if kstest(numbers, "uniform", (low, high - low)).pvalue < _UNEVEN:
            return False
    return True


def _listed(names: list[Any]) -> str:
    """The first five of some names of columns, as a message lists them."""
    listed = ", ".join(repr(name) for name in names[:5])
    return f"{listed}, ..." if len(names) > 5 else listed


class _RowDistances(NamedTuple):
    """How far rows of the release are from those of the pool, in the columns other than the one
    that is asked about.
    """

    rows: IntArray  # numbers of some rows of the release, (n,)
    pool: IntArray  # numbers of all rows of the pool, in random order, (m,)
    values: NDArray[Any]  # of the former from the latter, (n, m)


def new_keys(release: pd.DataFrame, pool: pd.DataFrame) -> list[Any]:
    """The names of the columns of keys that were drawn anew: text, whole numbers or times that do
    not repeat on a side, and whose values do not belong to their rows.

    A value that the release shares with a record belongs to its row if both rows are more alike
    than others are; numbers and times, too, if rows that are alike otherwise lie close together in
    them. In a file of few rows, keys of two or three digits meet by chance.

    Args:
        release, pool: Tables with the same columns and types, rows numbered from 0.

    Returns:
        No name where all columns may be keys, so that no other would be left.
    """
    unique = [name for name in release if _may_be_new(release[name], pool[name])]
    others = [name for name in release if name not in unique]
    if not unique or not others:
        return []
    distances = _row_distances(release[others], pool[others])
    return [
        name
        for name in unique
        if not _values_follow_other_columns(release[name], pool[name], distances)
    ]


def _may_be_new(released: "pd.Series[Any]", records: "pd.Series[Any]") -> bool:
    """Whether a column may hold keys that were drawn anew: no value repeats on a side, and hardly
    one is on both, or no more than running numbers of so narrow a range have in common by chance.
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
    # Of a range of so many numbers the release holds this share, by which each record meets one.
    size_of_range = int(numbers.max()) - int(numbers.min()) + 1
    by_chance = min(1.0, len(released) / size_of_range)
    return float(binom.sf(shared - 1, len(records), by_chance)) >= _INFORMED


def _running_numbers(values: "pd.Series[Any]") -> "pd.Series[Any] | None":
    """The number in each key of a column, int64, shape (n,); None where keys are not numbered.

    Whole numbers are their own; a text such as P-017 has 17, if all texts of the column begin alike
    and end in one to nine digits. Times and all other texts are not numbered.

    Args:
        values: Shape (n,), none missing; floats are whole numbers.
    """
    if values.dtype.kind in "iuf":
        return values.astype("int64")
    if values.dtype.kind == "M":
        return None
    pattern = r"^(?P<beginning>\D*)(?P<number>\d{1,9})$"
    keys = values.astype(str).str.extract(pattern)  # a text of another form gives missing cells
    if keys.isna().to_numpy().any() or keys["beginning"].nunique() > 1:
        return None
    return keys["number"].astype("int64")


def _never_repeats(released: "pd.Series[Any]", records: "pd.Series[Any]") -> bool:
    """Whether the values of a column do not repeat on a side: whole numbers and times never, texts
    up to a hundredth of them. False of other types, of fractions, and of a side without values.
    """
    released, records = released.dropna(), records.dropna()
    kind = released.dtype.kind
    if released.empty or records.empty or kind in "bmc":
        return False
    if kind == "f" and (released % 1).any():
        return False
    repeats = max(float(released.duplicated().mean()), float(records.duplicated().mean()))
    most = 0 if kind in "iufM" else _HARDLY  # few amounts are equal, too, but they are no keys
    return repeats <= most


def _values_follow_other_columns(
    released: "pd.Series[Any]", records: "pd.Series[Any]", distances: _RowDistances
) -> bool:
    """Whether the values of a column that never repeats follow the other columns of their rows: a
    released row and the record of the same value are nearer than others are, or, of numbers and
    times, a released row's value is close to that of its nearest record.

    Args:
        released, records: The column in the release and in the pool.
        distances: Between rows of both, in the other columns.
    """
    if _shared_values_are_alike(released, records, distances):
        return True
    if released.dtype.kind not in "iufM":
        return False
    nearest = distances.pool[distances.values.argmin(axis=1)]
    return _are_closer_than_chance(released.iloc[distances.rows], records.iloc[nearest])


def _row_distances(release: pd.DataFrame, pool: pd.DataFrame) -> _RowDistances:
    """The distances of rows spread over the release, fewer than 1,000, to all rows of the pool, in
    all columns of these tables, which are the same.
    """
    # Of equally near rows the first is taken: their order must not tell who is a member.
    shuffled = pool.sample(frac=1, random_state=0)
    space = table_space(release, shuffled)
    rows = np.arange(0, len(release), max(1, len(release) // _ATTACKED))
    values = space.between(space.release[rows], space.pool)
    return _RowDistances(rows=rows, pool=shuffled.index.to_numpy(), values=values)


def _shared_values_are_alike(
    released: "pd.Series[Any]", records: "pd.Series[Any]", distances: _RowDistances
) -> bool:
    """Whether a released row and a record with the same value are nearer to each other than two
    rows are by chance, on average or in too many cases.
    """
    positions = _same_value(released.iloc[distances.rows], records.iloc[distances.pool])
    rows = np.flatnonzero(positions >= 0)  # of the distances: those whose value a record has
    if not rows.size:
        return False
    nearer = _nearer(distances.values[rows], positions[rows])
    # Of unrelated rows the share of nearer records is uniform on [0, 1], whose variance is 1 / 12:
    # that of the mean of n shares is 1 / (12 n).
    by_mean = float(norm.cdf((nearer.mean() - 0.5) * np.sqrt(12 * rows.size)))
    close = int((nearer <= _CLOSE).sum())
    by_count = float(binom.sf(close - 1, rows.size, _CLOSE))
    return min(by_mean, by_count) < _INFORMED / 2  # two tests share the chance of an error


def _same_value(released: "pd.Series[Any]", records: "pd.Series[Any]") -> IntArray:
    """For each of n released values the position of the first record that has it, shape (n,); -1
    where no record has it, or it is missing.
    """
    values = records.to_numpy()
    first = pd.Series(np.arange(len(values)), index=values)
    first = first[first.index.notna() & ~first.index.duplicated()]
    return released.map(first).fillna(-1).to_numpy(dtype=np.int64)


def _nearer(distances: NDArray[Any], positions: IntArray) -> FloatArray:
    """For each of n rows the share of records that are nearer to it than the record at its
    position, shape (n,); equally near ones count half. ``distances`` have shape (n, records).
    """
    to_its_record = distances[np.arange(len(positions)), positions][:, None]
    return (distances < to_its_record).mean(axis=1) + (distances == to_its_record).mean(axis=1) / 2


def _are_closer_than_chance(released: "pd.Series[Any]", nearest: "pd.Series[Any]") -> bool:
    """Whether too many released values, shape (n,), lie closer to that of their row's ``nearest``
    record in the other columns, shape (n,), than they lie to those of other rows.
    """
    # Ranks on each side: in another unit, a number still belongs to its row.
    rank = released.rank(pct=True).to_numpy()
    other = nearest.rank(pct=True).to_numpy()
    apart = np.abs(rank - other)
    limit = np.nanquantile(np.abs(rank[:, None] - other), _CLOSE)  # over all pairs of rows
    close = int((apart <= limit).sum())
    return float(binom.sf(close - 1, len(apart), _CLOSE)) < _INFORMED
