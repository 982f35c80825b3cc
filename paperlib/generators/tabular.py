"""Generated rows of a table: a Chow-Liu tree over its columns, and rejection by a discriminator."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree

from paperlib.core import FloatArray, IntArray, check_at_least, check_nonnegative


class FittedTable(Protocol):
    """Draws rows like those of the table it was fitted on."""

    def sample(self, n: int, seed: int) -> pd.DataFrame:
        """``n`` rows with the columns and types of the fitted table; equal seeds give equal rows."""
        ...


class TableGenerator(Protocol):
    """Settings of a generator, before it has seen data."""

    def fit(self, table: pd.DataFrame) -> FittedTable:
        """Learn from the rows of ``table``."""
        ...


@dataclass(frozen=True, eq=False)
class Original:
    """The values of a column as they were given, so that drawn ones have their type to the last detail.

    Attributes:
        name: Name of the column.
        keys: Its different values as numbers or text, sorted.
        values: The value of each key, of the column's type.
    """

    name: Any
    keys: NDArray[Any]
    values: "pd.Series[Any]"

    @classmethod
    def of(cls, name: Any, column: "pd.Series[Any]") -> "Original":
        """Keep one value of each key."""
        keys, first = np.unique(_plain(column), return_index=True)
        return cls(name, keys, column.iloc[first].reset_index(drop=True))

    def restore(self, keys: NDArray[Any]) -> "pd.Series[Any]":
        """The values of keys, shape (n,)."""
        return self.values.take(np.searchsorted(self.keys, keys)).reset_index(drop=True)


def is_name_like(values: NDArray[Any]) -> bool:
    """Whether a column of text names rows rather than describes them: most values stand a few times alone."""
    distinct = 0 if values.dtype.kind != "U" else np.unique(values).size
    return distinct > 50 and (4 * distinct > values.size or distinct > 2_000)


@dataclass(frozen=True, eq=False)
class ColumnCodes:
    """One column as whole numbers: a word or a frequent number each its own, other numbers by quantile.

    A column of text that names rows has one code: pairs with it would tell nothing, at a quadratic cost.

    Attributes:
        values: The fitted values, sorted by code; sampling within a code draws from these.
        starts: Start of the values of each code in ``values``, and their number at the end, (K + 1,).
        floors: Least value of each code, (K,): a value belongs to the last floor not above it.
        original: The column's own values; None where they are the fitted ones.
    """

    values: NDArray[Any]
    starts: IntArray
    floors: NDArray[Any]
    original: Original | None = None

    @classmethod
    def fit(cls, column: NDArray[Any], bins: int) -> "ColumnCodes":
        """Learn the codes of a column, at most about 2 ``bins`` of them where it holds numbers.

        >>> ColumnCodes.fit(np.array([0, 0, 0, 0, 1, 2, 3, 9]), bins=3).floors.tolist()
        [0, 1, 2]
        """
        ordered = np.sort(column)
        distinct, counts = np.unique(ordered, return_counts=True)
        if column.dtype.kind in "biuf" and distinct.size > bins:
            floors = _number_floors(ordered, distinct, counts, bins)
        elif is_name_like(ordered):
            floors = distinct[:1]
        else:
            floors = distinct
        starts = np.append(np.searchsorted(ordered, floors), ordered.size)
        return cls(values=ordered, starts=starts.astype(np.int64), floors=floors)

    def __len__(self) -> int:
        return self.floors.size

    def encode(self, column: NDArray[Any]) -> IntArray:
        """Code of each value, shape (n,); a value below all floors gets the first code."""
        return np.maximum(np.searchsorted(self.floors, column, side="right") - 1, 0)

    def decode(self, codes: IntArray, rng: np.random.Generator) -> Any:
        """A fitted value of each code, drawn uniformly among those that share it, of the column's type."""
        low, high = self.starts[codes], self.starts[codes + 1]
        drawn = self.values[rng.integers(low, high)]
        return drawn if self.original is None else self.original.restore(drawn)


def _number_floors(
    ordered: NDArray[Any], distinct: NDArray[Any], counts: IntArray, bins: int
) -> NDArray[Any]:
    """Quantiles, and a code of its own for each value that fills a bin alone."""
    quantiles = ordered[(np.arange(bins) * ordered.size) // bins]
    frequent = np.flatnonzero(counts * bins >= ordered.size)
    following = frequent[frequent + 1 < distinct.size] + 1
    return np.unique(np.concatenate([quantiles, distinct[frequent], distinct[following]]))


@dataclass(frozen=True, kw_only=True)
class ChowLiuTree:
    """The tree of column pairs with the most mutual information, sampled from the root downwards.

    MST fits the same model, with noise: at the paper's privacy budget of 1000 hardly any. This one adds
    none and guarantees no privacy. The information of a pair counts less what chance alone gives it,
    (K - 1)(L - 1) / 2n for K and L codes, without which columns of many codes attract each other.

    Attributes:
        bins: Quantiles of a column of numbers, 2 or more; frequent values get codes of their own.
        smoothing: Strength of the Dirichlet prior around a column's own frequencies, in rows, at least 0.

    Raises:
        ValueError: A value is out of range.

    Source:
        Chow and Liu (1968); PANORAMIA, appendix C.3, uses MST of McKenna et al. (2021).

    >>> table = pd.DataFrame({"size": [1.0, 2.0, 3.0, 4.0] * 5, "word": ["a", "a", "b", "b"] * 5})
    >>> drawn = ChowLiuTree(smoothing=0).fit(table).sample(100, seed=0)
    >>> bool(((drawn["size"] > 2) == (drawn["word"] == "b")).all())
    True
    """

    bins: int = 20
    smoothing: float = 1.0

    def __post_init__(self) -> None:
        check_nonnegative("smoothing", self.smoothing)
        check_at_least(2, bins=self.bins)

    def fit(self, table: pd.DataFrame) -> "FittedTree":
        """Learn codes, tree and conditional frequencies.

        Raises:
            ValueError: Fewer than two rows, no columns, names that repeat, or missing values.
        """
        codecs, joint = coded(table, self.bins)
        sizes = [len(codec) for codec in codecs.values()]
        pairs = blocks(joint, sizes)
        return fitted_tree(
            codecs,
            corrected_information(joint, sizes, len(table)),
            single=lambda at: np.diag(pairs[at][at]),
            pair=lambda parent, child: pairs[parent][child],
            smoothing=self.smoothing,
        )


def fitted_tree(
    codecs: Mapping[str, ColumnCodes],
    weights: FloatArray,
    *,
    single: Callable[[int], FloatArray],
    pair: Callable[[int, int], FloatArray],
    smoothing: float,
) -> "FittedTree":
    """The tree of largest ``weights``, shape (d, d), with smoothed conditional distributions.

    ``single`` counts a column's codes, shape (K,), ``pair`` those of a parent and a child, shape (K, L).
    """
    order, parents = spanning_tree(weights)
    conditionals = []
    for child in order.tolist():
        own, parent = single(child), int(parents[child])
        counts = np.maximum(own[None] if parent < 0 else pair(parent, child), 0)
        prior = np.maximum(own, 1e-12) / np.maximum(own, 1e-12).sum()
        totals = np.cumsum(counts + smoothing * prior, axis=1)
        conditionals.append(totals / totals[:, -1:])
    return FittedTree(codecs=codecs, order=order, parents=parents, conditionals=tuple(conditionals))


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedTree:
    """A fitted Chow-Liu tree.

    Attributes:
        codecs: The codes of each column, in the table's order.
        order: Columns from the root downwards, shape (d,).
        parents: Parent of each column, -1 for the root, shape (d,).
        conditionals: Distribution functions of each column of ``order`` given the parent's code.
    """

    codecs: Mapping[str, ColumnCodes]
    order: IntArray
    parents: IntArray
    conditionals: tuple[FloatArray, ...]

    def sample(self, n: int, seed: int) -> pd.DataFrame:
        """``n`` rows: codes from the root downwards, then values within the codes."""
        check_at_least(1, n=n)
        rng = np.random.default_rng(seed)
        codes: dict[int, IntArray] = {-1: np.zeros(n, dtype=np.int64)}
        for child, below in zip(self.order.tolist(), self.conditionals, strict=True):
            rows = below[codes[int(self.parents[child])]]
            codes[child] = (rng.random(n)[:, None] >= rows).sum(axis=1)
        drawn = [codec.decode(codes[at], rng) for at, codec in enumerate(self.codecs.values())]
        names = [codec.original.name if codec.original else name for name, codec in self.codecs.items()]
        return pd.DataFrame(dict(zip(names, drawn, strict=True)))

    @property
    def edges(self) -> pd.DataFrame:
        """The tree: columns parent and child, from the root downwards."""
        names = list(self.codecs)
        pairs = [(names[self.parents[at]], names[at]) for at in self.order.tolist() if self.parents[at] >= 0]
        return pd.DataFrame(pairs, columns=["parent", "child"])


@dataclass(frozen=True)
class IndependentColumns:
    """Each column by itself, redrawn from its own values: a weak generator, to compare with.

    >>> IndependentColumns().fit(pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})).sample(5, seed=0).shape
    (5, 2)
    """

    def fit(self, table: pd.DataFrame) -> "FittedColumns":
        """Keep the columns.

        Raises:
            ValueError: The cases of `ChowLiuTree.fit`.
        """
        check_table("table", table)
        return FittedColumns(table.reset_index(drop=True))


@dataclass(frozen=True, eq=False)
class FittedColumns:
    """The fitted columns."""

    columns: pd.DataFrame

    def sample(self, n: int, seed: int) -> pd.DataFrame:
        """``n`` rows whose columns know nothing of each other."""
        rng = np.random.default_rng(seed)
        drawn = {
            name: values.take(rng.choice(len(values), n)).reset_index(drop=True)
            for name, values in self.columns.items()
        }
        return pd.DataFrame(drawn)


def check_table(name: str, table: pd.DataFrame) -> dict[str, NDArray[Any]]:
    """Columns of a table as arrays of numbers or of text, by which their values can be told apart.

    >>> check_table("table", pd.DataFrame({"a": [1, 2]}))
    {'a': array([1, 2])}
    """
    if len(table) < 2 or not len(table.columns):
        raise ValueError(f"{name}: expected two rows and one column at least, got shape {table.shape}")
    if not table.columns.is_unique or len(set(map(str, table.columns))) < len(table.columns):
        raise ValueError(f"{name}: expected different column names, got {list(table.columns)}")
    missing = table.isna().sum()
    if missing.any():
        worst: Any = missing.idxmax()
        raise ValueError(
            f"{name}: column {worst!r} misses {missing[worst]} values; make them values of their own"
        )
    return {str(column): _plain(values) for column, values in table.items()}


def _plain(column: "pd.Series[Any]") -> NDArray[Any]:
    if isinstance(column.dtype, pd.DatetimeTZDtype):
        column = column.dt.tz_convert(None)
    values = column.to_numpy()
    if values.dtype.kind in "mM":
        return values.astype(np.int64)
    if values.dtype.kind in "biuf":
        return values
    # What is no text has its type in its key: 1 is not "1", and True is not "True".
    keys = [value if isinstance(value, str) else f"{value!r} {type(value).__name__}" for value in column]
    return np.array(keys, dtype=np.str_)


def coded(table: pd.DataFrame, bins: int) -> tuple[dict[str, ColumnCodes], FloatArray]:
    """The codes of each column of a table that passes `check_table`, and joint counts (`pair_counts`)."""
    columns = check_table("table", table)
    own = {str(name): Original.of(name, values) for name, values in table.items()}
    codecs = {
        name: replace(ColumnCodes.fit(values, bins), original=own[name]) for name, values in columns.items()
    }
    codes = [codecs[name].encode(values) for name, values in columns.items()]
    return codecs, pair_counts(codes, [len(codec) for codec in codecs.values()])


def pair_counts(codes: list[IntArray], sizes: list[int]) -> FloatArray:
    """Joint counts of all pairs of columns as blocks of one matrix, shape (sum(sizes), sum(sizes))."""
    rows, width = codes[0].size, sum(sizes)
    hot = np.zeros((rows, width), dtype=np.float32)
    offsets = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    hot[np.arange(rows)[:, None], np.stack(codes, axis=1) + offsets] = 1
    return (hot.T @ hot).astype(np.float64)


def blocks(joint: FloatArray, sizes: Sequence[int]) -> list[list[FloatArray]]:
    """The counts of each pair of columns, shape (K, L): ``blocks(joint, sizes)[first][second]``."""
    ends = np.cumsum(sizes)[:-1]
    return [np.split(rows, ends, axis=1) for rows in np.split(joint, ends)]


def corrected_information(joint: FloatArray, sizes: list[int], rows: int) -> FloatArray:
    """Mutual information of each pair less its expectation under independence, nats, shape (d, d).

    Source:
        (K - 1)(L - 1) / 2n is the first term of the bias of the plug-in estimate (Miller, 1955).
    """
    single = np.diag(joint)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = joint / rows * np.log(joint * rows / np.outer(single, single))
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    blocks = np.add.reduceat(np.add.reduceat(np.nan_to_num(terms), starts, axis=0), starts, axis=1)
    free = np.array(sizes) - 1
    return blocks - np.outer(free, free) / (2 * rows)


def spanning_tree(weights: FloatArray) -> tuple[IntArray, IntArray]:
    """The spanning tree of largest total weight, read from column 0.

    Weights are symmetric, shape (d, d); the diagonal is not used.

    Returns:
        Columns from the root downwards and the parent of each column (-1 for the root), both (d,).

    >>> order, parents = spanning_tree(np.array([[0, 1, 3], [1, 0, 2], [3, 2, 0]]))
    >>> order.tolist(), parents.tolist()
    ([0, 2, 1], [-1, 2, 0])
    """
    # Zero means no edge to scipy, so all costs are made positive; that changes no spanning tree.
    costs = np.max(weights) + 1 - np.asarray(weights, dtype=np.float64)
    np.fill_diagonal(costs, 0)
    tree = minimum_spanning_tree(costs)
    order, parents = breadth_first_order(tree, 0, directed=False)
    return order.astype(np.int64), np.where(parents < 0, -1, parents).astype(np.int64)
