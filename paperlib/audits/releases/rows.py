"""Rows of a release, of members and of non-members: of one kind, alike, and none twice."""

import unicodedata
import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import binom, ks_2samp, mannwhitneyu

from paperlib.audits.releases.chance import equal_by_chance
from paperlib.audits.releases.distances import Flags, Space, image_space, table_space, text_space
from paperlib.audits.releases.new_keys import check_not_keys_alone, new_keys
from paperlib.audits.releases.spellings import (
    are_other_words,
    in_one_spelling,
    is_written_otherwise,
    letters_of,
)
from paperlib.audits.releases.values import read_values
from paperlib.core import FloatArray, MembershipScores, find_ties
from paperlib.core.column_names import INDEX
from paperlib.core.facts import Refusal
from paperlib.core.intervals import auc_interval
from paperlib.words.audits import releases as words
from paperlib.words.designs import tie_warnings

Rows = pd.DataFrame | Sequence[str] | NDArray[Any]

FEWEST = 20
_COPIES = 1e-6  # chance of refusing independent sides for the rows that they share
_SURE = 0.9998  # confidence that sides differ; half of the rest is the chance of refusing one draw
_WIDE = 100  # columns, above which trees are slow
_composed = partial(unicodedata.normalize, "NFC")  # an accent may stand as a character of its own
_KINDS = {
    "b": "true or false",
    "i": "numbers",
    "u": "numbers",
    "f": "numbers",
    "m": "times",
    "M": "times",
}


class Alike(NamedTuple):
    """Rows that can be compared: tables stay tables and images arrays; texts become lists."""

    release: Any
    pool: Any  #: the rows of all sides, one after the other, with the columns of the release
    warnings: tuple[str, ...]  #: why a leak may be missed
    notes: tuple[str, ...] = ()  #: how values were read
    refusals: tuple[Refusal, ...] = ()  #: columns in which copies cannot be seen
    #: columns in which copies may not be seen: no leak is no answer
    uncertain: tuple[Refusal, ...] = ()


def alike(release: Rows, sides: Sequence[Rows], *, kept: str | None = None) -> Alike:
    """The rows of a release and of all sides, read alike; keys that were drawn anew for the release
    are left out, but for the column ``kept``.

    Raises:
        ValueError: Rows of several kinds, fewer than 20, or of other columns or shapes.
    """
    names = ("release", "members", "nonmembers")
    by_name: dict[str, Any] = dict(zip(names, (release, *sides), strict=False))
    kind = _common_kind(by_name)
    if kind == "a table":
        return _alike_tables(by_name, kept)
    if kind == "texts":
        return _alike_texts(by_name)
    return _alike_images(by_name)


def _common_kind(by_name: Mapping[str, Any]) -> str:
    """The kind of all rows; a ValueError where kinds differ, or rows are too few."""
    kinds = {name: _kind(name, rows) for name, rows in by_name.items()}
    expected = kinds["release"]
    for name, rows in by_name.items():
        if kinds[name] != expected:
            raise ValueError(f"{name}: expected {expected} like the release, got {kinds[name]}")
        if len(rows) < FEWEST:
            raise ValueError(f"{name}: expected {FEWEST} rows or more, got {len(rows)}")
    return expected


def _alike_tables(by_name: Mapping[str, pd.DataFrame], kept: str | None) -> Alike:
    """The rows of tables, by name, whose columns are compared by what they mean: dates, times and
    numbers are read, words written in one spelling, and new keys left out, but for ``kept``.

    Raises:
        ValueError: Other columns than those of the release, or of other kinds, or no column that
            can be compared.
    """
    columns = by_name["release"].columns
    plain = {name: _plain_table(name, table, columns) for name, table in by_name.items()}
    tables, unclear = read_values(plain)
    for name, table in tables.items():
        check_kinds(name, table, tables["release"], "the release")
    release = tables.pop("release")
    pool = pd.concat(tables.values(), ignore_index=True)
    notes = _spell_alike(release, pool)
    keys = [name for name in new_keys(release, pool) if name != kept]
    check_not_keys_alone(release, pool, keys)
    notes += tuple(_note_of_key(name, release[name], pool[name]) for name in keys)
    # Warnings by the name of their column.
    uncertain = {reading.column: words.read_in_several_ways(*reading) for reading in unclear}
    uncertain |= _uncertain_keys(release[keys], pool[keys])
    release, pool = release.drop(columns=keys), pool.drop(columns=keys)
    others = _other_words(release, pool)
    strange = _strange_columns(release, pool)
    uncertain |= {name: warning for name, warning in strange.items() if name not in others}
    return Alike(
        release,
        pool,
        (*uncertain.values(), *_numbered(release)),
        notes,
        _refusal(others),
        _refusal(uncertain),
    )


def _refusal(columns: Mapping[str, str]) -> tuple[Refusal, ...]:
    """The refusal for columns that cannot be compared; none where there are none.

    ``columns`` are the warning of each by its name. The refusal names all columns, and gives the
    first one's warning as the reason.
    """
    if not columns:
        return ()
    return (words.not_comparable(list(columns), next(iter(columns.values()))),)


def _names_of_text(table: pd.DataFrame) -> list[Any]:
    """The columns that hold text."""
    return [name for name in table if _kind_of_column(table[name]) == "text"]


def _spell_alike(release: pd.DataFrame, pool: pd.DataFrame) -> tuple[str, ...]:
    """Write the words of both tables, column by column and in place, in the spelling in which they
    share most; the notes of the columns in which they share more than as they are.
    """
    notes: list[str] = []
    for name in _names_of_text(release):
        spelled = in_one_spelling(release[name], pool[name])
        if not spelled.gained:
            continue
        release[name] = spelled.released
        pool[name] = spelled.records
        notes.append(words.respelled(name, spelled.gained, len(release)))
    return tuple(notes)


def _note_of_key(name: object, released: "pd.Series[Any]", records: "pd.Series[Any]") -> str:
    """The note that a column of keys is left out, with the number of records that share one."""
    return words.left_out(name, int(released.dropna().isin(records.dropna()).sum()))


def _uncertain_keys(release: pd.DataFrame, pool: pd.DataFrame) -> dict[str, str]:
    """Warnings, by column, that a column of text which was left out as a key may be no key, since
    its released values are written in another form than the records'.

    ``release`` and ``pool`` hold the columns that were left out, and no others; those of numbers
    and times among them have no form, and get no warning.
    """
    warnings: dict[str, str] = {}
    for name in _names_of_text(release):
        released, records = release[name].dropna(), pool[name].dropna()
        if is_written_otherwise(released, records):
            warnings[str(name)] = words.key_is_unlike(name, released.iloc[0])
    return warnings


def _other_words(release: pd.DataFrame, pool: pd.DataFrame) -> dict[str, str]:
    """Warnings, by name, of columns in whose words copies would not show, since the release writes
    them otherwise than the records; columns whose words never repeat on a side are left out.
    """
    columns: dict[str, str] = {}
    for name in _names_of_text(release):
        released, records = release[name].dropna(), pool[name].dropna()
        never_repeats = released.is_unique and records.is_unique
        if released.empty or records.empty or never_repeats:
            continue
        if are_other_words(released, records):
            first = released.iloc[0], records.iloc[0]
            columns[str(name)] = words.written_otherwise(name, *first)
    return columns


def _alike_texts(by_name: Mapping[str, Sequence[str]]) -> Alike:
    """The rows of lists of texts, by name, whose spaces and accents are written in one way."""
    release, *sides = (
        [" ".join(_composed(text).split()) for text in texts] for texts in by_name.values()
    )
    pool = list(chain(*sides))
    tables = pd.DataFrame({"text": release}), pd.DataFrame({"text": pool})
    return _with_strange_values(release, pool, *tables)


def _alike_images(by_name: Mapping[str, NDArray[Any]]) -> Alike:
    """The rows of images, by name, with a warning where their means are unlike.

    Raises:
        ValueError: Images of several shapes, or values that are masked or not finite.
    """
    expected = np.shape(by_name["release"])[1:]
    for name, rows in by_name.items():
        if np.ma.is_masked(rows) or not np.isfinite(np.sum(rows)):
            raise ValueError(
                f"{name}: some values are masked, NaN or infinite; leave such images out"
            )
        shape = np.shape(rows)[1:]
        if shape != expected:
            raise ValueError(
                f"{name}: expected images of shape {expected} as released, got {shape}"
            )
    release, *sides = map(np.asarray, by_name.values())
    pool = np.concatenate(sides)
    means = _mean_table(release), _mean_table(pool)
    return _with_strange_values(release, pool, *means)


def _with_strange_values(
    release: Any, pool: Any, of_release: pd.DataFrame, of_pool: pd.DataFrame
) -> Alike:
    """Rows that are no tables, with the warnings of the tables ``of_release`` and ``of_pool``, one
    row for each of theirs, whose columns stand for them.
    """
    strange = _strange_columns(of_release, of_pool)
    return Alike(release, pool, tuple(strange.values()), uncertain=_refusal(strange))


def _mean_table(images: NDArray[Any]) -> pd.DataFrame:
    """The mean value of each image, as a table of one column."""
    return pd.DataFrame({"mean of an image": images.reshape(len(images), -1).mean(axis=1)})


def _kind(name: str, rows: Any) -> str:
    """What the rows are, in the words of error messages; a ValueError where it is none of these."""
    if isinstance(rows, pd.DataFrame):
        return "a table"
    if isinstance(rows, np.ndarray) and rows.dtype.kind in "biuf" and rows.ndim in (3, 4):
        return "images"
    if not isinstance(rows, str) and all(isinstance(row, str) for row in rows):
        return "texts"
    raise ValueError(
        f"{name}: expected a DataFrame, a list of texts, or images (n, height, width[, channels])"
    )


def _plain_table(name: str, table: pd.DataFrame, columns: "pd.Index[Any]") -> pd.DataFrame:
    """A table with these columns, in their order; a ValueError where it has others, or cells of
    several kinds.
    """
    if sorted(map(str, table)) != sorted(map(str, columns)) or columns.empty:
        raise ValueError(
            f"{name}: expected the columns {list(columns)} of the release, got {list(table)}"
        )
    table = table[list(columns)].reset_index(drop=True)
    for column in _names_of_text(table):
        if not all(isinstance(cell, str) for cell in table[column].dropna().tolist()):
            raise ValueError(f"{name}: column {column!r} holds values of several kinds; store one")
        table[column] = table[column].astype(object).map(_composed, "ignore")
    return table


def check_kinds(name: str, table: pd.DataFrame, other: pd.DataFrame, called: str) -> dict[str, str]:
    """What each column of a table holds, such as "numbers", by its name.

    Args:
        name: Of the table, as the message begins.
        other: Table whose columns are asked.
        called: The other table in the message.

    Raises:
        ValueError: A column of the other table holds something else there.
    """
    kinds: dict[str, str] = {}
    for column in other:
        first = _kind_of_column(other[column])
        second = _kind_of_column(table[column])
        if first != second:
            raise ValueError(f"{name}: column {column!r} holds {second}, and {first} in {called}")
        kinds[str(column)] = first
    return kinds


def _kind_of_column(column: "pd.Series[Any]") -> str:
    """What a column holds, such as numbers or times with a time zone."""
    kind = _KINDS.get(column.dtype.kind, "text")
    return f"{kind} with a time zone" if hasattr(column.dtype, "tz") else kind


def _numbered(release: pd.DataFrame) -> list[str]:
    """Warnings of columns whose names say that they number the rows."""
    names = [name for name in release if INDEX.fullmatch(str(name).strip())]
    return list(map(words.numbers_rows, names))


def _strange_columns(release: pd.DataFrame, pool: pd.DataFrame) -> dict[str, str]:
    """Warnings, by name, of columns of which most released values are unlike those of the records;
    columns without values on a side have none.
    """
    warnings: dict[str, str] = {}
    for name in release:
        released = release[name].dropna()
        records = pool[name].dropna()
        if released.empty or records.empty:
            continue
        if released.dtype.kind in _KINDS:
            strange = _strange_number(name, released, records)
        else:
            strange = _strange_text(name, released, records)
        if strange:
            warnings[str(name)] = strange
    return warnings


def _strange_number(name: object, released: "pd.Series[Any]", records: "pd.Series[Any]") -> str:
    """The warning of a column where most values lie apart from the records'; "" elsewhere.

    Most are half of them: the distance of Kolmogorov and Smirnov is above 0.5.
    """
    ranks = pd.concat([released, records]).rank().to_numpy()
    released_ranks, record_ranks = np.split(ranks, [len(released)])
    distance = float(ks_2samp(released_ranks, record_ranks, method="asymp").statistic)
    return words.unlike(name, released.iloc[0]) if distance > 0.5 else ""


def _strange_text(name: object, released: "pd.Series[Any]", records: "pd.Series[Any]") -> str:
    """The warning of a column where more texts stand in the records in another spelling than as
    they are, or where most are none of the records' few words; "" elsewhere. No value is missing.
    """
    unlike = released[~released.isin(records)]
    if unlike.empty:
        return ""
    same_letters = unlike.map(letters_of).isin(set(map(letters_of, records.unique())))
    equal = int(same_letters.sum())
    if equal > len(released) - len(unlike):  # more than stand so in the records
        example = unlike[same_letters].iloc[0]
        return words.spelled_otherwise(name, example, equal, len(released))
    are_words = records.duplicated().mean() > 0.5  # no names, no free text
    if are_words and len(unlike) / len(released) > 0.5:
        return words.unlike(name, unlike.iloc[0])
    return ""


def space_of(release: Any, pool: Any) -> Space:
    """Rows of both as numbers, with their distances.

    Args:
        release, pool: Two tables with the same columns, lists of texts, or arrays of images, as
            `alike` gives them.

    Raises:
        ValueError: Texts without words.
    """
    if isinstance(release, pd.DataFrame):
        return table_space(release, pool)
    if isinstance(release, list):
        return text_space(release, pool)
    return image_space(release, pool)


def taken(rows: Any, indices: NDArray[np.int64]) -> Any:
    """The rows of a table, a list or an array at these positions from 0, shape (k,), in their
    order.
    """
    if isinstance(rows, pd.DataFrame):
        return rows.iloc[indices].reset_index(drop=True)
    if isinstance(rows, list):
        return [rows[index] for index in indices.tolist()]
    return rows[indices]


def check_copies(
    space: Space, member: Flags, units: Sequence[object] | None = None
) -> tuple[str, ...]:
    """Refuse (ValueError) a release that is one of the sides, and equal rows of which one is a
    member and one is not more often than coins for each row explain; warn of other equal rows.

    Args:
        space: The rows of the release and of the pool.
        member: Whether each row of the pool is a member, shape (n,).
        units: The unit of each row of the pool, whose rows may be equal; None where each row is a
            record.

    Returns:
        Warnings of rows that are equal, but not by chance; none with units.
    """
    keys = space.keys[1]
    _check_no_side(space.keys[0], keys, member)
    if units is not None:  # one of the equal rows of each unit
        rows = pd.DataFrame({"unit": units, "key": keys})
        is_first = ~rows.duplicated().to_numpy()
        keys, member = keys[is_first], member[is_first]
    _check_pairs(keys, member)
    if units is not None:
        return ()
    if space.is_table and equal_by_chance(space.pool):
        # Rows of few words and rounded numbers are equal by chance; texts and images hardly are.
        return ()
    return tie_warnings(find_ties("rows", keys[member], keys[~member], ways="keep one row of each"))


def _check_no_side(released: NDArray[Any], keys: NDArray[Any], member: Flags) -> None:
    """Refuse (ValueError) a release whose rows are just those of one side, in any order.

    Args:
        released: A hash of each row of the release, shape (k,).
        keys: The same of each row of the pool, shape (n,).
        member: Whether each row of the pool is a member, shape (n,).
    """
    in_release = np.sort(released)
    for name, side in (("members", member), ("nonmembers", ~member)):
        on_side = np.sort(keys[side])
        # Sides of a few different rows, such as those of one column, are equal by chance.
        has_many_rows = np.unique(on_side).size > on_side.size / 2
        if has_many_rows and np.array_equal(in_release, on_side):
            raise ValueError(
                f"release: it holds just the {name}; give the rows that were released, and if "
                "these are they, each of them is given away"
            )


def _check_pairs(keys: NDArray[Any], member: Flags) -> None:
    """Refuse (ValueError) pairs of equal rows of which one is a member and one is not more often
    than coins for each row explain, by a binomial test at the level `_COPIES`.

    Args:
        keys: A hash of each row, shape (n,).
        member: Whether each row is a member, shape (n,).
    """
    _, group, times = np.unique(keys, return_inverse=True, return_counts=True)
    members = np.bincount(group, weights=member)  # among the equal rows of each group
    # Equal rows with a coin each stand on one side about as often as on both. The same records
    # given as members and as non-members stand on both.
    # Of two rows drawn without replacement one is a member with chance 2 m (n - m) / (n (n - 1)),
    # of n rows and m members. Groups of three and more equal rows are left out.
    pairs = int((times == 2).sum())
    across = int(((times == 2) & (members == 1)).sum())
    share = 2 * member.mean() * (1 - member.mean()) * member.size / (member.size - 1)
    if binom.sf(across - 1, pairs, min(1.0, share)) < _COPIES:
        raise ValueError(
            f"nonmembers: {across:,} of their rows stand among the members too, and "
            f"{pairs - across:,} pairs of equal rows on one side: they are members; leave them out "
            "of one side"
        )


def check_one_draw(
    rows: Any, member: Flags, seed: int, isolation: FloatArray | None = None
) -> None:
    """Refuse (ValueError) sides that can be told apart without the release: by a classifier, fitted
    to every second row and tried on the others, or by how isolated their rows are.

    Sides that are two random parts of one set are refused with a chance of about 0.0003.

    Args:
        rows: Numbers, shape (n, d), perhaps sparse, in random order.
        member: Whether each row is a member, shape (n,).
        seed: Of the classifier.
        isolation: Distance of each row to the nearest other one, shape (n,), which tells images in
            another format; None leaves that out.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MaxAbsScaler

    chance = 1.0
    if isolation is not None:
        chance = float(mannwhitneyu(isolation[member], isolation[~member]).pvalue)
    if chance < 1 - _SURE:
        raise ValueError(
            "nonmembers: their rows alone tell them from members by distances to others (p = "
            f"{chance:.1g}), as after another file format or rounding; bring two random parts of "
            "one set, stored alike"
        )
    # Trees for the few columns of a table; a linear model for pixels and words.
    model: Any = make_pipeline(MaxAbsScaler(), LogisticRegression())
    if not isinstance(rows, np.ndarray):
        # Weights of words know which texts were copied into the release.
        rows = (rows > 0).astype(np.float64)
    elif rows.shape[1] <= _WIDE:
        model = HistGradientBoostingClassifier(max_iter=50, random_state=seed)
    with warnings.catch_warnings():
        # An unfinished fit is judged as it is.
        warnings.filterwarnings("ignore", message=".*converge.*")
        model.fit(rows[::2], member[::2])
    values = model.predict_proba(rows[1::2])[:, 1]
    scores = MembershipScores(values[member[1::2]], values[~member[1::2]])
    low, high = auc_interval(scores, confidence=_SURE)
    if low > 0.5:
        raise ValueError(
            f"nonmembers: their rows alone tell them from members (AUC {scores.auc():.3f} "
            f"[{low:.3f}, {high:.3f}]), so that a bound would show this difference; bring two "
            "random parts of one set"
        )
