"""MST: a noisy tree of column pairs, fitted to noisy counts of single columns and of the tree's edges."""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from paperlib.core import FloatArray, check_at_least, check_in
from paperlib.core.packages import optional_package
from paperlib.generators.tabular import FittedTree, blocks, coded, fitted_tree


@dataclass(frozen=True, kw_only=True)
class NoisyTree:
    """MST of McKenna et al. (2021), whose graphical model comes from ``mbi`` (the extra ``mst``).

    A third of the budget each goes to the counts of single columns, to the choice of the tree and to the
    counts of its edges. Each edge joins two parts of the tree so far, drawn by the exponential mechanism; its
    quality is the distance of the pair's counts from what independence would give.

    Guarantee:
        Counts and tree are (epsilon, delta)-DP for adding or removing one row, in exact arithmetic, by
        zero-concentrated DP. The rows drawn are not: values and quantiles come from the table without noise.
        PANORAMIA needs no such guarantee: the generator's table holds no member.

    Attributes:
        epsilon: Privacy budget in nats; the paper's is 1000.
        bins: Quantiles of a column of numbers.
        iterations: Steps of mirror descent.

    Source:
        McKenna, Miklau and Sheldon (2021), Winning the NIST Contest, Algorithm 2; PANORAMIA, appendix C.3.
    """

    epsilon: float = 1000.0
    delta: float = 1e-9
    bins: int = 20
    iterations: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
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
        names, sizes = list(codecs), [len(codec) for codec in codecs.values()]
        if len(names) < 2:
            raise ValueError(f"table: expected two columns or more, got {names}")
        exact = blocks(joint, sizes)
        rng, third, count = np.random.default_rng(self.seed), self.rho / 3, len(sizes)
        # One row moves one count of every column (or edge) by 1.
        noise = {"columns": math.sqrt(count / 2 / third), "edges": math.sqrt((count - 1) / 2 / third)}
        singles = [np.diag(exact[at][at]) + rng.normal(0, noise["columns"], sizes[at]) for at in range(count)]
        edges = grow_tree(exact, singles, math.sqrt(8 * third / (count - 1)), rng)
        measured = [
            mbi.LinearMeasurement(values, (names[at],), noise["columns"]) for at, values in enumerate(singles)
        ]
        for i, j in edges:
            noisy = exact[i][j] + rng.normal(0, noise["edges"], exact[i][j].shape)
            measured.append(mbi.LinearMeasurement(noisy.ravel(), (names[i], names[j]), noise["edges"]))
        model = mbi.estimation.MirrorDescent().estimate(
            mbi.Domain(names, sizes), measured, iters=self.iterations
        )
        weights = np.zeros((count, count))
        for first, second in edges:
            weights[first, second] = weights[second, first] = 1.0

        def counts(*columns: int) -> FloatArray:
            projected = model.project(tuple(names[at] for at in columns))
            return np.asarray(projected.datavector(flatten=False), dtype=np.float64)

        # Sampled as a tree, from our own random numbers.
        return fitted_tree(codecs, weights, single=counts, pair=counts, smoothing=1e-6)


def grow_tree(
    exact: Any, singles: Sequence[FloatArray], epsilon: float, rng: np.random.Generator
) -> list[tuple[int, int]]:
    """Edges that join all columns, each drawn with ``epsilon`` nats among those that close no cycle."""
    frequencies = [np.maximum(values, 0) / max(np.maximum(values, 0).sum(), 1.0) for values in singles]
    total = max(1.0, float(np.mean([values.sum() for values in singles])))
    # Adding a row moves one count by 1, and with it the distance by 1 at most.
    quality = {
        (i, j): float(np.abs(exact[i][j] - total * np.outer(frequencies[i], frequencies[j])).sum())
        for i, j in combinations(range(len(singles)), 2)
    }
    group = list(range(len(singles)))
    edges: list[tuple[int, int]] = []
    while len(edges) < len(singles) - 1:
        open_edges = [edge for edge in quality if group[edge[0]] != group[edge[1]]]
        scores = np.array([quality[edge] for edge in open_edges]) * epsilon / 2
        # The largest of scores with Gumbel noise is a draw of the exponential mechanism.
        first, second = open_edges[int(np.argmax(scores + rng.gumbel(size=scores.size)))]
        edges.append((first, second))
        old, new = group[second], group[first]
        group = [new if one == old else one for one in group]
    return edges


def import_mbi() -> Any:
    """The package ``mbi``, which brings JAX."""
    purpose = "MST (a Chow-Liu tree needs no further package)"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of float32 and of a cache of JAX, whatever is done
        optional_package("mbi.estimation", "mst", purpose)
        return optional_package("mbi", "mst", purpose)
