"""Generated rows of a table: a tree over its columns, after Chow and Liu or with noise as in
MST.
"""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree

from paperlib.core import FloatArray, IntArray
from paperlib.core.checks import check_at_least, check_in, check_nonnegative
from paperlib.core.packages import optional_package


class FittedTable(Protocol):
    """Draws rows like those of the table it was fitted on."""

    def sample(self, n: int, seed: int) -> pd.DataFrame:
        """``n`` rows, 1 or more, with the columns and types of the fitted table; equal seeds give
        equal rows.
        """
        ...


class TableGenerator(Protocol):
    """Settings of a generator, before it has seen data."""

    def fit(self, table: pd.DataFrame) -> FittedTable:
        """Learn from the rows of ``table``; a ValueError for one that it cannot learn from."""
        ...


def is_name_like(values: NDArray[Any]) -> bool:
    """Whether a column of text, shape (n,), names rows rather than describes them: it has more than
    50 different values, and more than 2,000 or more than one for every four rows.
    """
    distinct = 0 if values.dtype.kind != "U" else np.unique(values).size
    return distinct > 50 and (4 * distinct > values.size or distinct > 2_000)


@dataclass(frozen=True, eq=False)
class ColumnCodes:
    """One column as whole numbers: a word or a frequent number each its own, other numbers by
    quantile.
    """

    values: NDArray[Any]  # the fitted values as numbers or text, sorted
    starts: IntArray  # where the values of each code start, and their number at the end, (K + 1,)
    floors: NDArray[Any]  # least value of each code, (K,)
    distinct: NDArray[Any]  # different values, sorted
    # Each different value as it was given, of the column's name and type.
    originals: "pd.Series[Any]"

    @classmethod
    def fit(cls, column: "pd.Series[Any]", plain: NDArray[Any], bins: int) -> "ColumnCodes":
        """Learn the codes of a column, shape (n,), from its values as numbers or text, ``plain``.

        ``bins`` are the quantiles that a column of numbers with more different values is cut at.
        """
        ordered = np.sort(plain)
        distinct, first, counts = np.unique(plain, return_index=True, return_counts=True)
        if plain.dtype.kind in "biuf" and distinct.size > bins:
            # Quantiles, and a code of its own for each value that fills a bin alone: it ends where
            # the next larger value begins.
            quantiles = ordered[(np.arange(bins) * ordered.size) // bins]
            frequent = np.flatnonzero(counts * bins >= ordered.size)  # indices into ``distinct``
            following = frequent[frequent + 1 < distinct.size] + 1
            floors = np.unique(np.concatenate([quantiles, distinct[frequent], distinct[following]]))
        else:
            # A code for each value; one for all names of rows, as counts of pairs with them would
            # tell nothing, at a quadratic cost.
            floors = distinct[:1] if is_name_like(ordered) else distinct
        starts = np.append(np.searchsorted(ordered, floors), ordered.size).astype(np.int64)
        return cls(ordered, starts, floors, distinct, column.iloc[first].reset_index(drop=True))

    def __len__(self) -> int:
        return self.floors.size

    def encode(self, column: NDArray[Any]) -> IntArray:
        """Code of each value, shape (n,); a value below all floors gets the first code."""
        return np.maximum(np.searchsorted(self.floors, column, side="right") - 1, 0)

    def decode(self, codes: IntArray, rng: np.random.Generator) -> "pd.Series[Any]":
        """A fitted value of each code, shape (n,), drawn uniformly among those that share it, of
        the column's type.
        """
        drawn = self.values[rng.integers(self.starts[codes], self.starts[codes + 1])]
        return self.originals.take(np.searchsorted(self.distinct, drawn)).reset_index(drop=True)


@dataclass(frozen=True, kw_only=True)
class ChowLiuTree:
    """The tree of column pairs with the most mutual information, sampled from the root downwards.

    MST fits the same model with noise; this one guarantees no privacy. The information of a pair
    counts less what chance alone gives it, (K - 1)(L - 1) / 2n for K and L codes, lest columns of
    many codes attract each other.

    Attributes:
        bins: Quantiles of a column of numbers; frequent values get codes of their own.
        smoothing: Strength of the Dirichlet prior around a column's own frequencies, in rows, at
            least 0.

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
        pairs = pair_counts(joint, sizes)
        return fitted_tree(
            codecs,
            corrected_information(joint, sizes, len(table)),
            single=lambda column: np.diag(pairs[column][column]),
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
    """The tree over d columns of largest ``weights``, with the frequencies to draw each column by.

    Args:
        codecs: Codes of each column, in the table's order.
        weights: Of each pair of columns, shape (d, d), such as their information in nats.
        single: From a column to the counts of its codes, shape (K,).
        pair: From a parent and a child to the counts of their codes, shape (K, L).
        smoothing: Rows that each row of counts gains, in the child's own frequencies, at least 0.
    """
    order, parents = spanning_tree(weights)
    conditionals: list[FloatArray] = []
    for child in order.tolist():
        child_counts = single(child)
        parent = int(parents[child])
        counts = child_counts[None] if parent < 0 else pair(parent, child)
        # Counts with noise may be negative. The least prior lets every row of counts have a sum.
        positive = np.maximum(child_counts, 1e-12)
        prior = positive / positive.sum()
        cumulative = np.cumsum(np.maximum(counts, 0) + smoothing * prior, axis=1)
        conditionals.append(cumulative / cumulative[:, -1:])
    return FittedTree(codecs=codecs, order=order, parents=parents, conditionals=tuple(conditionals))


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedTree:
    """A fitted Chow-Liu tree."""

    codecs: Mapping[str, ColumnCodes]  # of each column, in the table's order
    order: IntArray  # columns from the root downwards, shape (d,)
    parents: IntArray  # of each column, -1 for the root, shape (d,)
    # Distribution function of each column of ``order`` given its parent's code, (K, L).
    conditionals: tuple[FloatArray, ...]

    def sample(self, n: int, seed: int) -> pd.DataFrame:
        """``n`` rows, 1 or more: codes from the root downwards, then values within the codes.

        Raises:
            ValueError: ``n`` below 1.
        """
        check_at_least(1, n=n)
        rng = np.random.default_rng(seed)
        # The root's parent, -1, has one code; of the root one conditional is known.
        codes: dict[int, IntArray] = {-1: np.zeros(n, dtype=np.int64)}
        for child, conditional in zip(self.order.tolist(), self.conditionals, strict=True):
            distribution = conditional[codes[int(self.parents[child])]]  # of each row, (n, L)
            codes[child] = (rng.random(n)[:, None] >= distribution).sum(axis=1)
        columns: dict[Any, pd.Series[Any]] = {}
        for index, codec in enumerate(self.codecs.values()):
            columns[codec.originals.name] = codec.decode(codes[index], rng)
        return pd.DataFrame(columns)

    @property
    def edges(self) -> pd.DataFrame:
        """The tree: columns parent and child, from the root downwards."""
        names = list(self.codecs)
        edges: list[tuple[str, str]] = []
        for child in self.order.tolist():
            parent = self.parents[child]
            if parent >= 0:
                edges.append((names[parent], names[child]))
        return pd.DataFrame(edges, columns=["parent", "child"])


@dataclass(frozen=True)
class IndependentColumns:
    """Each column by itself, redrawn from its own values: a weak generator, to compare with."""

    def fit(self, table: pd.DataFrame) -> "FittedColumns":
        """Keep the columns; refuses what `ChowLiuTree.fit` does."""
        checked_columns("table", table)
        return FittedColumns(table.reset_index(drop=True))


@dataclass(frozen=True, eq=False)
class FittedColumns:
    """The fitted columns."""

    columns: pd.DataFrame

    def sample(self, n: int, seed: int) -> pd.DataFrame:
        """``n`` rows whose columns know nothing of each other; equal seeds give equal rows."""
        rng = np.random.default_rng(seed)
        drawn: dict[Any, pd.Series[Any]] = {}
        for name, column in self.columns.items():
            drawn[name] = column.take(rng.choice(len(column), n)).reset_index(drop=True)
        return pd.DataFrame(drawn)


def checked_columns(name: str, table: pd.DataFrame) -> dict[str, NDArray[Any]]:
    """Columns of a table as arrays of numbers or of text, shape (n,) by name, by which their values
    can be told apart.

    Raises:
        ValueError: Fewer than two rows, no column, names that repeat, or missing values; the
            message begins with ``name``.
    """
    if len(table) < 2 or not len(table.columns):
        raise ValueError(
            f"{name}: expected two rows and one column at least, got shape {table.shape}"
        )
    if not table.columns.is_unique or len(set(map(str, table.columns))) < len(table.columns):
        raise ValueError(f"{name}: expected different column names, got {list(table.columns)}")
    missing = table.isna().sum()
    if missing.any():
        worst: Any = missing.idxmax()
        raise ValueError(
            f"{name}: column {worst!r} misses {missing[worst]} values; make them values of "
            "their own"
        )
    return {str(label): _plain_values(column) for label, column in table.items()}


def _plain_values(column: "pd.Series[Any]") -> NDArray[Any]:
    """The values as numbers or text, different ones different; times as whole nanoseconds."""
    if isinstance(column.dtype, pd.DatetimeTZDtype):
        column = column.dt.tz_convert(None)
    values = column.to_numpy()
    if values.dtype.kind in "mM":  # in one unit, whatever a file had
        return values.astype(f"{values.dtype.kind}8[ns]").astype(np.int64)
    if values.dtype.kind in "biuf":
        return values
    keys: list[str] = []
    for value in column:
        # What is no text has its type in its key: 1 is not "1", and True is not "True".
        keys.append(value if isinstance(value, str) else f"{value!r} {type(value).__name__}")
    return np.array(keys, dtype=np.str_)


def coded(table: pd.DataFrame, bins: int) -> tuple[dict[str, ColumnCodes], FloatArray]:
    """The codes of each column, and joint counts of all pairs of columns as blocks of one
    matrix, shape (codes of all columns, codes of all columns).

    Raises:
        ValueError: A table that `checked_columns` refuses.
    """
    plain = checked_columns("table", table)
    codecs: dict[str, ColumnCodes] = {}
    codes: list[IntArray] = []
    for (name, values), (_, column) in zip(plain.items(), table.items(), strict=True):
        codecs[name] = ColumnCodes.fit(column, values, bins)
        codes.append(codecs[name].encode(values))
    ends = np.cumsum([len(codec) for codec in codecs.values()])
    starts = np.append(0, ends[:-1])  # of each column's block
    one_hot = np.zeros((len(table), ends[-1]), dtype=np.float32)
    one_hot[np.arange(len(table))[:, None], np.stack(codes, axis=1) + starts] = 1
    # Single precision counts exactly up to 2^24 rows.
    return codecs, (one_hot.T @ one_hot).astype(np.float64)


def pair_counts(joint: FloatArray, sizes: Sequence[int]) -> list[list[FloatArray]]:
    """The counts of each pair of columns, shape (K, L), by the first column and the second.

    ``joint`` are the blocks that `coded` returns, ``sizes`` the number of codes of each column.
    """
    ends = np.cumsum(sizes)[:-1]
    return [np.split(rows, ends, axis=1) for rows in np.split(joint, ends)]


def corrected_information(joint: FloatArray, sizes: list[int], rows: int) -> FloatArray:
    """Mutual information of each pair less its bias (Miller, 1955), nats, shape (d, d).

    ``joint`` are the blocks of counts that `coded` returns, ``sizes`` the number of codes of each
    of d columns, ``rows`` those of the table.
    """
    single = np.diag(joint)  # rows of each code
    with np.errstate(divide="ignore", invalid="ignore"):  # pairs of codes that no row has add 0
        terms = joint / rows * np.log(joint * rows / np.outer(single, single))
    # The sum over each block is the information of a pair of columns.
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    by_row = np.add.reduceat(np.nan_to_num(terms), starts, axis=0)
    information = np.add.reduceat(by_row, starts, axis=1)
    degrees_of_freedom = np.array(sizes) - 1
    return information - np.outer(degrees_of_freedom, degrees_of_freedom) / (2 * rows)


def spanning_tree(weights: FloatArray) -> tuple[IntArray, IntArray]:
    """The tree of largest ``weights``, (d, d): columns from the root downwards, shape (d,), and the
    parent of each column, or -1, shape (d,).
    """
    # scipy looks for the least cost, so weights change their sign. Zero means no edge to it, so all
    # costs are made positive; that changes no spanning tree.
    costs = np.max(weights) + 1 - np.asarray(weights, dtype=np.float64)
    np.fill_diagonal(costs, 0)
    order, parents = breadth_first_order(minimum_spanning_tree(costs), 0, directed=False)
    return order.astype(np.int64), np.where(parents < 0, -1, parents).astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class NoisyTree:
    """MST of McKenna et al. (2021), whose graphical model comes from ``mbi`` (the extra ``mst``).

    A third of the budget each goes to the counts of single columns, to the choice of the tree and
    to the counts of its edges. Each edge joins two parts of the tree so far, drawn by the
    exponential mechanism; its quality is the distance of the pair's counts from what independence
    would give.

    Guarantee:
        Counts and tree are (epsilon, delta)-DP for adding or removing one row, in exact arithmetic,
        by zero-concentrated DP. The rows drawn are not: values and quantiles come from the table
        without noise. PANORAMIA needs no such guarantee: the generator's table holds no member.

    Attributes:
        epsilon: Privacy budget in nats; the paper's is 1000.
        bins: Quantiles of a column of numbers.
        iterations: Steps of mirror descent.

    Source:
        McKenna, Miklau and Sheldon (2021), Winning the NIST Contest, Algorithm 2; PANORAMIA,
        appendix C.3.
    """

    epsilon: float = 1000.0
    delta: float = 1e-9
    bins: int = 20
    iterations: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse (ValueError) numbers out of range."""
        check_in("(0, inf)", "epsilon", self.epsilon)
        check_in("(0, 1)", "delta", self.delta)
        check_at_least(2, bins=self.bins)
        check_at_least(1, iterations=self.iterations)

    @property
    def rho(self) -> float:
        """Budget of zero-concentrated DP that gives (epsilon, delta)-DP (Bun and Steinke, 2016)."""
        log = math.log(1 / self.delta)
        return (math.sqrt(log + self.epsilon) - math.sqrt(log)) ** 2

    def fit(self, table: pd.DataFrame) -> FittedTree:
        """Measure counts, grow the tree, and fit the graphical model.

        Raises:
            ValueError: A table that `ChowLiuTree.fit` would refuse, or one of a single column.
            ModuleNotFoundError: ``mbi`` is not installed.
        """
        mbi = import_mbi()
        codecs, joint = coded(table, self.bins)
        names = list(codecs)
        sizes = [len(codec) for codec in codecs.values()]
        if len(names) < 2:
            raise ValueError(f"table: expected two columns or more, got {names}")
        exact = pair_counts(joint, sizes)
        rng = np.random.default_rng(self.seed)
        third = self.rho / 3
        count = len(sizes)
        # One row moves one count of every column (or edge) by 1: the counts of k of them by
        # sqrt(k) in all, and noise of deviation sqrt(k / (2 rho)) spends rho.
        column_noise = math.sqrt(count / 2 / third)
        edge_noise = math.sqrt((count - 1) / 2 / third)
        singles: list[FloatArray] = []
        for index, size in enumerate(sizes):
            singles.append(np.diag(exact[index][index]) + rng.normal(0, column_noise, size))
        # An exponential mechanism of epsilon spends epsilon^2 / 8 of rho, once for each edge.
        epsilon_of_an_edge = math.sqrt(8 * third / (count - 1))
        edges = grow_tree(exact, singles, epsilon_of_an_edge, rng)
        measured = [
            mbi.LinearMeasurement(values, (name,), column_noise)
            for name, values in zip(names, singles, strict=True)
        ]
        for i, j in edges:
            noisy = exact[i][j] + rng.normal(0, edge_noise, exact[i][j].shape)
            measured.append(mbi.LinearMeasurement(noisy.ravel(), (names[i], names[j]), edge_noise))
        domain = mbi.Domain(names, sizes)
        model = mbi.estimation.MirrorDescent().estimate(domain, measured, iters=self.iterations)
        weights = np.zeros((count, count))  # of which the tree of ``edges`` is the largest
        for first, second in edges:
            weights[first, second] = weights[second, first] = 1.0

        def counts(*columns: int) -> FloatArray:
            """Estimated numbers of rows by the codes of these columns, an axis for each."""
            projected = model.project(tuple(names[column] for column in columns))
            return np.asarray(projected.datavector(flatten=False), dtype=np.float64)

        # Sampled as a tree, from our own random numbers.
        return fitted_tree(codecs, weights, single=counts, pair=counts, smoothing=1e-6)


def grow_tree(
    exact: Any, singles: Sequence[FloatArray], epsilon: float, rng: np.random.Generator
) -> list[tuple[int, int]]:
    """Edges that join all d columns, each drawn with ``epsilon`` nats among those that close no
    cycle.

    Args:
        exact: Counts of the codes of each pair of columns, (K, L), by the first and the second.
        singles: Counts of each column's codes, with noise, shape (K,) each.
        epsilon: Of each draw, by the exponential mechanism.

    Source:
        McKenna, Miklau and Sheldon (2021), Algorithm 2.
    """
    quality = _distances_from_independence(exact, singles)
    group = list(range(len(singles)))  # of each column; those that edges join have one label
    edges: list[tuple[int, int]] = []
    while len(edges) < len(singles) - 1:
        open_edges = [edge for edge in quality if group[edge[0]] != group[edge[1]]]
        scores = np.array([quality[edge] for edge in open_edges]) * epsilon / 2
        # The largest of scores with Gumbel noise is a draw of the exponential mechanism.
        first, second = open_edges[int(np.argmax(scores + rng.gumbel(size=scores.size)))]
        edges.append((first, second))
        joined, other = group[first], group[second]
        group = [joined if label == other else label for label in group]
    return edges


def _distances_from_independence(
    exact: Any, singles: Sequence[FloatArray]
) -> dict[tuple[int, int], float]:
    """For each pair of columns the distance of its counts (``exact``, (K, L)) from what independent
    columns with the noisy counts ``singles``, (K,), would give: a sum of absolute differences.

    Adding a row moves one count by 1, and with it the distance by 1 at most.
    """
    frequencies: list[FloatArray] = []
    for values in singles:
        counts = np.maximum(values, 0)
        frequencies.append(counts / max(counts.sum(), 1.0))
    # The number of rows, as the counts with noise tell it.
    total = max(1.0, float(np.mean([values.sum() for values in singles])))
    distances: dict[tuple[int, int], float] = {}
    for i, j in combinations(range(len(singles)), 2):
        independent = total * np.outer(frequencies[i], frequencies[j])
        distances[i, j] = float(np.abs(exact[i][j] - independent).sum())
    return distances


def import_mbi() -> Any:
    """The package ``mbi``, which brings JAX; a ModuleNotFoundError that names the extra ``mst``
    where it is not installed.
    """
    purpose = "MST (a Chow-Liu tree needs no further package)"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of float32 and of a cache of JAX, whatever is done
        optional_package("mbi.estimation", "mst", purpose)
        return optional_package("mbi", "mst", purpose)
