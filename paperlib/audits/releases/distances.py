"""How near a row lies to a release and to the other rows of its pool: tables, texts and images."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from paperlib.core import FloatArray, IntArray

Flags = NDArray[np.bool_]

NEIGHBOURS = 5  # the farthest of them is the radius within which rows of the release are counted
_LONG_WORDS = 10  # letters of a word on average, above which they are none
_SIDE = 16  # blocks of a side that images are averaged to, or up to twice as many
_FLOOR = 0.001  # of the usual distance, added to each before its logarithm


@dataclass(frozen=True, eq=False)
class Space:
    """Rows of a release and of a pool as numbers, and the distances of some rows to others."""

    release: Any
    pool: Any
    #: distances between rows and others, shape (rows, others); for tables also takes the numbers
    #: of the columns that count
    between: Callable[..., NDArray[Any]]
    keys: tuple[NDArray[Any], NDArray[Any]]  #: a hash of each row of the release, and of the pool
    #: columns of a table that are ranked, which come first; the others are categories
    numbers: int = 0
    is_table: bool = False  #: rows hold the codes of their columns, else texts or pixels
    block: int = 1 << 22  #: distances at a time; those of tables stay in the processor's cache

    @property
    def equal(self) -> Flags:
        """Whether the release holds the very row, for each row of the pool, shape (pool,)."""
        return np.isin(self.keys[1], self.keys[0])

    def with_rows(self, rows: IntArray) -> "Space":
        """The space with some rows of its pool alone, by their numbers, shape (k,)."""
        pool = self.pool[rows]
        if isinstance(pool, np.ndarray):
            pool = np.asfortranarray(pool)
        return replace(self, pool=pool, keys=(self.keys[0], self.keys[1][rows]))


def table_space(release: pd.DataFrame, pool: pd.DataFrame) -> Space:
    """The rows of two tables with the same columns: distances are the sum over columns of the
    difference in rank, in [0, 1], of numbers and dates, and of 1 for other cells that differ.

    Ranks and codes of the pool are those among its own rows: if the release moved them, rows that
    were copied into it would lie farther from all others of the pool, without any attack.
    """
    size = len(release)
    both = pd.concat([release, pool], ignore_index=True)
    numbers = [name for name in both if both[name].dtype.kind in "iufmM"]
    words = [name for name in both if name not in numbers]
    columns = [_by_rank(both[name], size) for name in numbers]
    columns += [_by_word(both[name], size) for name in words]
    coded = np.column_stack(columns)
    rows = np.asfortranarray(coded, dtype=np.float32)  # exact for codes below 16 million

    def between(
        left: Any, right: Any, columns: Sequence[int] = range(rows.shape[1])
    ) -> NDArray[Any]:
        """Distances of every row on the left, (n, columns), to every row on the right, (k,
        columns), shape (n, k): differences of ranks, and 1 for each pair of different words.
        """
        total = np.zeros((len(left), len(right)), dtype=np.float32)
        term = np.empty_like(total)
        for column in columns:
            values, others = left[:, column, None], right[:, column]
            if column < len(numbers):
                np.subtract(values, others, out=term)
                total += np.abs(term, out=term)
            else:
                total += values != others
        return total

    # By values: two that differ may have ranks that rounding makes one.
    values = pd.DataFrame({name: pd.factorize(both[name])[0] for name in both})
    keys = pd.util.hash_pandas_object(values, index=False).to_numpy()
    return Space(
        release=np.asfortranarray(rows[:size]),
        pool=np.asfortranarray(rows[size:]),
        between=between,
        keys=(keys[:size], keys[size:]),
        numbers=len(numbers),
        is_table=True,
        block=1 << 18,
    )


def _by_rank(cells: "pd.Series[Any]", size: int) -> FloatArray:
    """The place of each number or time among those of the pool, in [0, 1], and -1 for a missing
    one, which is as far from all others as two can be, or farther; shape (n,).

    The first ``size`` rows are those of the release. One between two values of the pool has a place
    between theirs; one outside their range has 0 or 1 if it is as far off as the last two of the
    pool are apart, or farther.
    """
    values = _as_floats(cells)
    in_pool = values[size:]
    knots, counts = np.unique(in_pool[~np.isnan(in_pool)], return_counts=True)
    if not knots.size:
        return np.where(np.isnan(values), -1.0, 0.5)
    middle = (np.cumsum(counts) - counts / 2) / counts.sum()  # rank of each value, as a share
    # One knot more at each end, as far off as the last two values are apart, has place 0 or 1.
    steps = np.diff(knots) if knots.size > 1 else np.array([abs(knots[0]) or 1.0])
    knots = np.concatenate([[knots[0] - steps[0]], knots, [knots[-1] + steps[-1]]])
    places = np.interp(values, knots, np.concatenate([[0.0], middle, [1.0]]))
    return np.where(np.isnan(values), -1.0, places)


def _as_floats(cells: "pd.Series[Any]") -> FloatArray:
    """Numbers or times as finite floats whose differences are finite too; NaN for missing ones."""
    if cells.dtype.kind in "mM":
        numbers = cells.astype("int64").astype(float).to_numpy()
        values = np.where(cells.isna(), np.nan, numbers)
    else:
        values = cells.to_numpy(dtype=np.float64, na_value=np.nan)
    most = np.finfo(np.float64).max / 4
    return np.clip(values / 4, -most, most)


def _by_word(cells: "pd.Series[Any]", size: int) -> FloatArray:
    """A code for each word, -1 for a missing one, shape (n,): those of the pool in their order,
    behind them those that the release alone has, which are its first ``size`` rows.
    """
    # In the order of the release, trees would see which rows were copied into it.
    cells = cells.astype(object)
    in_pool = pd.factorize(cells[size:], sort=True)[1]
    released = pd.factorize(cells[:size])[1]
    words = in_pool.append(released).unique()
    codes: NDArray[Any] = words.get_indexer(pd.Index(cells))
    return codes.astype(np.float64)


def text_space(release: Sequence[str], pool: Sequence[str]) -> Space:
    """The texts of both: distances are one minus the cosine of their words and pairs of words, rare
    ones with more weight (TF-IDF); rows are sparse, shapes (n, words) and (m, words).

    Of texts that put no spaces between their words, up to three letters in a row take the place of
    words.

    Raises:
        ValueError: Texts without words.
    """
    from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

    words: Any = CountVectorizer(token_pattern=r"\w+|[^\w\s]", ngram_range=(1, 2))
    pool_words = re.findall(r"\w+", " ".join(pool))
    if len("".join(pool_words)) > _LONG_WORDS * len(pool_words):
        words = CountVectorizer(analyzer="char", ngram_range=(1, 3))
    try:
        counts = words.fit_transform([*release, *pool])
    except ValueError:
        raise ValueError("texts: they hold no words") from None
    # A word is rare in the pool: with the release, the words of copied texts would be less so.
    weights: Any = TfidfTransformer(sublinear_tf=True).fit(counts[len(release) :])
    rows = weights.transform(counts)

    def between(left: Any, right: Any) -> NDArray[Any]:
        """One minus the cosine of every row on the left, (n, words), with every row on the right,
        (k, words), shape (n, k).
        """
        return np.maximum(1 - (left @ right.T).toarray(), 0)

    keys = (
        np.array([hash(text) for text in release]),
        np.array([hash(text) for text in pool]),
    )
    return Space(rows[: len(release)], rows[len(release) :], between, keys)


def image_space(release: NDArray[Any], pool: NDArray[Any]) -> Space:
    """The images of both, shape (n, height, width) or with channels behind: distances are
    Euclidean, of pixels averaged to fewer than 32 by 32.
    """

    def between(left: Any, right: Any) -> NDArray[Any]:
        """Distances of every row of pixels on the left, (n, pixels), to every row on the right, (k,
        pixels), shape (n, k).
        """
        squares = (left**2).sum(axis=1)[:, None] + (right**2).sum(axis=1) - 2 * left @ right.T
        return np.sqrt(np.maximum(squares, 0))

    keys = (
        np.array([hash(image.tobytes()) for image in release]),
        np.array([hash(image.tobytes()) for image in pool]),
    )
    return Space(_averaged(release), _averaged(pool), between, keys)


def _averaged(images: NDArray[Any]) -> NDArray[Any]:
    """Means of blocks of pixels, a row of numbers for each image, float32, shape (n, numbers).

    Images have shape (n, height, width) or (n, height, width, channels). Blocks are such that 16 to
    31 of them are side by side, or as many as there are pixels if these are fewer.
    """
    pixels = images.reshape(*images.shape[:3], -1)
    block_height, block_width = (max(1, size // _SIDE) for size in pixels.shape[1:3])
    rows = pixels.shape[1] // block_height
    columns = pixels.shape[2] // block_width
    # Pixels at the end that fill no block are left out.
    cut = pixels[:, : rows * block_height, : columns * block_width].astype(np.float32)
    blocks = cut.reshape(len(cut), rows, block_height, columns, block_width, -1)
    return blocks.mean(axis=(2, 4)).reshape(len(cut), -1)


@dataclass(frozen=True, eq=False)
class Nearness:
    """Distances of each row of a pool, one row each."""

    in_pool: FloatArray  #: to its nearest other rows of the pool, nearest first, (n, NEIGHBOURS)
    away: FloatArray  #: to its nearest rows of the release, nearest first, (n, NEIGHBOURS)
    nearest: IntArray  #: place of the nearest row in the release, (n,)
    #: rows of the release that are no farther than its farthest neighbour in the pool, (n,)
    count: IntArray

    def taken(self, rows: IntArray) -> "Nearness":
        """The distances of some rows, by their numbers, shape (k,)."""
        return Nearness(self.in_pool[rows], self.away[rows], self.nearest[rows], self.count[rows])

    def signals(self) -> dict[str, FloatArray]:
        """What membership is learned from, the best by itself first, in which higher means member.

        No row's membership enters: distances in the pool are among all its rows.
        """
        # A distance of 0 has no logarithm: a little is added to all of them.
        usual = self.in_pool[self.in_pool > 0]
        floor = _FLOOR * float(np.median(usual)) if usual.size else 1.0
        in_pool = np.log(self.in_pool + floor)
        away = np.log(self.away + floor)
        return {
            "nearer than the pool": in_pool[:, 0] - away[:, 0],
            "several nearer": (in_pool - away).mean(axis=1),
            "near": -away[:, 0],
            "rows within radius": np.log1p(self.count),
            "isolation": in_pool[:, 0],
            "radius": in_pool[:, -1],
        }


def nearness(space: Space, units: Sequence[object] | None = None) -> Nearness:
    """Distances of each row of the pool to its nearest rows of the release and to its nearest other
    rows of the pool, in the unit of the space.

    ``units`` names the unit of each of the n rows of the pool: rows of one unit are no neighbours;
    None where each row is a record. Distances are computed a block of rows at a time, of at most
    ``space.block`` pairs, for memory.
    """
    unit_of_row = None if units is None else pd.factorize(np.asarray(units, dtype=object))[0]
    total = space.pool.shape[0]
    in_pool, away = np.empty((2, total, NEIGHBOURS))
    nearest, count = np.empty((2, total), dtype=np.int64)
    step = max(1, space.block // max(total, space.release.shape[0]))
    for start in range(0, total, step):
        rows = slice(start, start + step)
        left = space.pool[rows]
        inside = space.between(left, space.pool)
        if unit_of_row is None:
            np.fill_diagonal(inside[:, start:], np.inf)  # a row is no neighbour of itself
        else:
            inside[unit_of_row[rows, None] == unit_of_row] = np.inf
        in_pool[rows] = _smallest(inside)
        outside = space.between(left, space.release)
        nearest[rows] = outside.argmin(axis=1)
        away[rows] = _smallest(outside)
        count[rows] = (outside <= in_pool[rows, -1:]).sum(axis=1)
    away[space.equal, 0] = 0  # whatever rounding says
    return Nearness(in_pool, away, nearest, count)


def _smallest(distances: NDArray[Any]) -> NDArray[Any]:
    """The five smallest distances of each row of (n, k), smallest first, shape (n, NEIGHBOURS)."""
    return np.sort(np.partition(distances, NEIGHBOURS - 1, axis=1)[:, :NEIGHBOURS], axis=1)
