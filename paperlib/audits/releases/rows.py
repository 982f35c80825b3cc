"""Rows of a release, of members and of non-members: of one kind, alike, and none twice."""

import re
import unicodedata
import warnings
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import binom, ks_2samp, mannwhitneyu

from paperlib.audits.releases.distances import Flags, Space, image_space, table_space, text_space
from paperlib.core import FloatArray, MembershipScores, check_ties
from paperlib.core.intervals import auc_interval
from paperlib.core.reading.columns import INDEX

Rows = pd.DataFrame | Sequence[str] | NDArray[Any]

FEWEST = 20
_COPIES = 1e-6  # chance of refusing independent sides for the rows that they share
_SURE = 0.9998  # confidence that sides differ; half of the rest is the chance of refusing one draw
_WIDE = 100  # columns, above which trees are slow
_UNLIKE = "unlike those of the records; if they are in another unit or spelling, a leak is missed"
_SPELLED = (
    "in the records but for upper case, accents or spaces ({:,} of {:,}); spell both alike "
    "to see a leak"
)
_composed = partial(unicodedata.normalize, "NFC")  # an accent may stand as a character of its own
_KINDS = {
    "b": "true or false",
    "i": "numbers",
    "u": "numbers",
    "f": "numbers",
    "m": "times",
    "M": "times",
}


def alike(release: Rows, sides: Sequence[Rows]) -> tuple[Any, Any, tuple[str, ...]]:
    """The release, all rows of the sides, with its columns, and doubts about them; else a
    ValueError.
    """
    given: dict[str, Any] = dict(
        zip(("release", "members", "nonmembers"), (release, *sides), strict=False)
    )
    kinds = {name: _kind(name, rows) for name, rows in given.items()}
    for name, rows in given.items():
        if kinds[name] != kinds["release"]:
            raise ValueError(
                f"{name}: expected {kinds['release']} like the release, got {kinds[name]}"
            )
        if len(rows) < FEWEST:
            raise ValueError(f"{name}: expected {FEWEST} rows or more, got {len(rows)}")
    if isinstance(release, pd.DataFrame):
        tables: list[pd.DataFrame] = [_like(release, name, table) for name, table in given.items()]
        pool = pd.concat(tables[1:], ignore_index=True)
        return tables[0], pool, tuple(_strange_columns(tables[0], pool))
    if kinds["release"] == "texts":
        texts = [" ".join(_composed(text).split()) for rows in given.values() for text in rows]
        parts = texts[: len(release)], texts[len(release) :]
        return *parts, tuple(_strange_columns(*(pd.DataFrame({"text": part}) for part in parts)))
    for name, rows in given.items():
        if np.ma.is_masked(rows) or not np.isfinite(np.sum(rows)):
            raise ValueError(
                f"{name}: some values are masked, NaN or infinite; leave such images out"
            )
        shapes = np.shape(release)[1:], np.shape(rows)[1:]
        if shapes[0] != shapes[1]:
            raise ValueError(
                f"{name}: expected images of shape {shapes[0]} as released, got {shapes[1]}"
            )
    images = np.asarray(release), np.concatenate([np.asarray(side) for side in sides])
    means = (
        pd.DataFrame({"mean of an image": part.reshape(len(part), -1).mean(axis=1)})
        for part in images
    )
    return *images, tuple(_strange_columns(*means))


def _kind(name: str, rows: Any) -> str:
    if isinstance(rows, pd.DataFrame):
        return "a table"
    if isinstance(rows, np.ndarray) and rows.dtype.kind in "biuf" and rows.ndim in (3, 4):
        return "images"
    if not isinstance(rows, str) and all(isinstance(one, str) for one in rows):
        return "texts"
    raise ValueError(
        f"{name}: expected a DataFrame, a list of texts, or images (n, height, width[, channels])"
    )


def _like(release: pd.DataFrame, name: str, table: Any) -> pd.DataFrame:
    """The table with the columns of the release in their order, of the same kinds."""
    if sorted(map(str, table)) != sorted(map(str, release)) or release.columns.empty:
        raise ValueError(
            f"{name}: expected the columns {list(release)} of the release, got {list(table)}"
        )
    kinds = check_kinds(name, table, release, "the release")
    table = table[list(release)].reset_index(drop=True)
    for column in (one for one in release if kinds[str(one)] == "text"):
        if not all(isinstance(cell, str) for cell in table[column].dropna().tolist()):
            raise ValueError(f"{name}: column {column!r} holds values of several kinds; store one")
        table[column] = table[column].astype(object).map(_composed, "ignore")
    return table


def check_kinds(name: str, table: pd.DataFrame, other: pd.DataFrame, called: str) -> dict[str, str]:
    """What each column holds; a ValueError where one of the same name in ``other`` holds something
    else.
    """
    kinds: dict[str, str] = {}
    for column in other:
        types = [part[column].dtype for part in (other, table)]
        first, second = (
            _KINDS.get(one.kind, "text") + " with a time zone" * hasattr(one, "tz") for one in types
        )
        if first != second:
            raise ValueError(f"{name}: column {column!r} holds {second}, and {first} in {called}")
        kinds[str(column)] = first
    return kinds


def _strange_columns(release: pd.DataFrame, pool: pd.DataFrame) -> Iterator[str]:
    """Doubts about columns of which most released values are unlike those of the records."""
    for name in release:
        if INDEX.fullmatch(str(name).strip()):
            yield (
                f"column {name!r} seems to number the rows, which makes near rows far; leave it out"
            )
        given, known = release[name].dropna(), pool[name].dropna()
        if given.empty or known.empty:
            continue
        unlike, distance, why = given, 0.0, _UNLIKE
        if release[name].dtype.kind in _KINDS:
            here, there = np.split(pd.concat([given, known]).rank().to_numpy(), [len(given)])
            distance = float(ks_2samp(here, there, method="asymp").statistic)
        elif len(unlike := given[~given.isin(known)]):
            near = unlike.map(_folded).isin(set(map(_folded, known.unique())))
            if near.sum() > len(given) - len(unlike):  # more than are known as they stand
                unlike, distance, why = unlike[near], 1.0, _SPELLED.format(near.sum(), len(given))
            elif known.duplicated().mean() > 0.5:  # no names, no free text
                distance = len(unlike) / len(given)
        if distance > 0.5:
            yield f"column {name!r}: released values, such as {str(unlike.iloc[0])[:40]}, are {why}"


def _folded(text: str) -> str:
    return re.sub(r"[\s\u0300-\u036f]+", "", unicodedata.normalize("NFKD", text.casefold()))


def space_of(release: Any, pool: Any) -> Space:
    """Rows as numbers, with their distances."""
    if isinstance(release, pd.DataFrame):
        return table_space(release, pool)
    return text_space(release, pool) if isinstance(release, list) else image_space(release, pool)


def taken(rows: Any, places: NDArray[np.int64]) -> Any:
    """The rows at some places, in their order."""
    if isinstance(rows, pd.DataFrame):
        return rows.iloc[places].reset_index(drop=True)
    return [rows[at] for at in places.tolist()] if isinstance(rows, list) else rows[places]


def check_copies(space: Space, member: Flags) -> tuple[str, ...]:
    """Refuse (ValueError) a release that is one of the sides, and rows that stand on both or twice
    on one.
    """
    # Of two equal independent rows both are on one side about as often as not: repeated ones are
    # not.
    released, keys = np.sort(space.keys[0]), space.keys[1]
    for name, side in (("members", member), ("nonmembers", ~member)):
        if np.array_equal(released, np.sort(keys[side])):
            raise ValueError(f"release: it holds just the {name}; give the rows that were released")
    _, place, times = np.unique(keys, return_inverse=True, return_counts=True)
    inside = np.bincount(place, weights=member)  # members among the equal rows
    pairs, across = int((times == 2).sum()), int(((times == 2) & (inside == 1)).sum())
    share = 2 * member.mean() * (1 - member.mean()) * member.size / (member.size - 1)
    if binom.sf(across - 1, pairs, min(1.0, share)) < _COPIES:
        raise ValueError(
            f"nonmembers: {across:,} of their rows stand among the members too, and "
            f"{pairs - across:,} pairs of equal rows on one side: they are members; leave them out "
            "of one side"
        )
    return check_ties("rows", keys[member], keys[~member], ways="keep one row of each")


def check_one_draw(rows: Any, member: Flags, seed: int, own: FloatArray | None = None) -> None:
    """Refuse (ValueError) sides that a classifier tells apart by their rows, given in random order.

    Or that ``own`` does: the distance of each row to the nearest other one, as of images in another
    format.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MaxAbsScaler

    chance = 1.0 if own is None else float(mannwhitneyu(own[member], own[~member]).pvalue)
    if chance < 1 - _SURE:
        raise ValueError(
            "nonmembers: their rows alone tell them from members by distances to others (p = "
            f"{chance:.1g}), as after another file format or rounding; bring two random parts of "
            "one set, stored alike"
        )
    model: Any = make_pipeline(MaxAbsScaler(), LogisticRegression())
    if not isinstance(rows, np.ndarray):
        rows = (rows > 0).astype(
            np.float64
        )  # weights of words know which texts were copied into the release
    elif rows.shape[1] <= _WIDE:
        model = HistGradientBoostingClassifier(max_iter=50, random_state=seed)
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message=".*converge.*"
        )  # an unfinished fit is judged as it is
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
