"""Generated rows: the tree is the right one, its rows have its distribution, the filters do what
they say.
"""

import itertools
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import mutual_info_score

from paperlib.generators import tabular
from paperlib.generators.table_filter import (
    ConfidentlySynthetic,
    FilteredGenerator,
    RejectionByOdds,
    RowCoder,
)
from paperlib.generators.tabular import (
    ChowLiuTree,
    ColumnCodes,
    IndependentColumns,
    NoisyTree,
    coded,
    corrected_information,
    grow_tree,
    spanning_tree,
)
from tests.refusals import refused


def chain(n=4000, seed=0):
    """a -> b -> c: each a noisy copy of the one before; d stands alone."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 4, n)
    b = np.where(rng.random(n) < 0.8, a, rng.integers(0, 4, n))
    c = np.where(rng.random(n) < 0.7, b, rng.integers(0, 4, n))
    words = np.array(["north", "east", "south", "west"])
    return pd.DataFrame({"c": c, "a": words[a], "b": b * 1.5, "d": rng.normal(size=n)})


def edges_of(fitted):
    return {frozenset(edge) for edge in fitted.edges.itertuples(index=False, name=None)}


def pairs_of(table):
    """Shares of the pairs of a and b."""
    return pd.crosstab(table["a"], table["b"], normalize=True)


def test_pair_information_is_a_slow_reference_s_and_the_spanning_tree_the_heaviest_of_all():
    rng = np.random.default_rng(0)
    sizes, rows = [3, 4, 2], 50
    table = pd.DataFrame({size: rng.integers(0, size, rows) for size in sizes})
    found = corrected_information(coded(table, 9)[1], sizes, rows)
    for i, j in itertools.combinations(range(3), 2):
        bias = (sizes[i] - 1) * (sizes[j] - 1) / (2 * rows)
        assert found[i, j] == pytest.approx(
            mutual_info_score(table.iloc[:, i], table.iloc[:, j]) - bias
        )
    weights = np.random.default_rng(1).normal(size=(5, 5))
    weights = weights + weights.T
    pairs = list(itertools.combinations(range(5), 2))

    def joins_all(edges):
        group = list(range(5))
        for i, j in edges:
            group = [group[i] if one == group[j] else one for one in group]
        return len(set(group)) == 1

    trees = (edges for edges in itertools.combinations(pairs, 4) if joins_all(edges))
    best = max(trees, key=lambda edges: sum(weights[edge] for edge in edges))
    _, parents = spanning_tree(weights)
    found = {
        tuple(sorted((child, int(parent)))) for child, parent in enumerate(parents) if parent >= 0
    }
    assert found == set(best)


def test_chow_liu_finds_the_chain_and_draws_from_it():
    table = chain()
    fitted = ChowLiuTree(bins=10).fit(table)
    assert {frozenset("ab"), frozenset("bc")} <= edges_of(fitted)
    drawn = fitted.sample(40_000, seed=1)
    assert list(drawn.columns) == list(table.columns)
    assert (drawn.dtypes == table.dtypes).all() or drawn["a"].dtype == table["a"].dtype
    assert np.abs(pairs_of(table) - pairs_of(drawn)).to_numpy().max() < 0.01
    assert set(drawn["d"]) <= set(table["d"])
    weak = IndependentColumns().fit(table).sample(40_000, seed=1)
    assert np.abs(pairs_of(table) - pairs_of(weak)).to_numpy().max() > 0.05


def test_smoothing_gives_unseen_pairs_a_chance_draws_repeat_and_an_empty_filter_is_named():
    table = pd.DataFrame({"a": [0, 1] * 20, "b": [0, 1] * 20})
    without = ChowLiuTree(smoothing=0).fit(table).sample(4000, 0)
    smoothed = ChowLiuTree(smoothing=5).fit(table).sample(4000, 0)
    assert (without["a"] == without["b"]).all()
    # Each parent has 20 rows, and 5 more are spread by the child's own halves: 2.5 of 25 go astray.
    assert np.mean(smoothed["a"] != smoothed["b"]) == pytest.approx(0.1, abs=0.02)
    fitted = FilteredGenerator(rounds=5).fit(chain(300))
    assert fitted.sample(50, 3).equals(fitted.sample(50, 3))
    assert not fitted.sample(50, 3).equals(fitted.sample(50, 4))
    fitted = FilteredGenerator(rounds=3, rule=ConfidentlySynthetic(1e-6)).fit(chain(300))
    refused("kept 0 rows", fitted.sample, 10, 0, error=RuntimeError)


def test_codes_keep_frequent_values_apart_and_words_not_seen_from_words_seen():
    column = np.concatenate([np.zeros(90), np.arange(1, 101)])
    codec = ColumnCodes.fit(pd.Series(column), column, bins=5)
    rng = np.random.default_rng(0)
    assert (codec.decode(codec.encode(np.zeros(50)), rng) == 0).all()
    again = codec.decode(codec.encode(column), rng)
    assert (codec.encode(again) == codec.encode(column)).all()
    assert codec.encode(np.array([-5.0]))[0] == 0
    coder = RowCoder.fit(chain(300))
    row = chain(300).iloc[:2].assign(a=["up", "west"])
    assert coder.numbers(row)[:, 1].tolist() == [-1.0, 3.0]


def test_rejection_comes_closer_to_the_real_rows():
    apart, real = IndependentColumns(), pairs_of(chain(seed=5))
    rejected, filtered, plain = (
        np.abs(real - pairs_of(generator.fit(chain()).sample(8000, 1))).to_numpy().sum()
        for generator in (
            FilteredGenerator(generator=apart, rule=RejectionByOdds()),
            FilteredGenerator(generator=apart, rule=ConfidentlySynthetic(0.6)),
            apart,
        )
    )
    assert rejected < plain / 2
    assert filtered < plain


def test_bad_tables_and_settings_and_a_missing_package_are_named(monkeypatch):
    fit = ChowLiuTree().fit
    refused("two rows and one column", fit, pd.DataFrame({"a": [1]}))
    refused("column 'a' misses 1 values", fit, pd.DataFrame({"a": [1.0, np.nan]}))
    refused("different column names", fit, pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"]))
    refused("bins", ChowLiuTree, bins=1)
    refused("smoothing", ChowLiuTree, smoothing=-1)
    refused("cap", RejectionByOdds, 1.0)
    refused("confidence", ConfidentlySynthetic, 0.0)
    refused("epsilon", NoisyTree, epsilon=0)
    refused("delta", NoisyTree, delta=0)
    refused("bins", NoisyTree, bins=1)
    refused("n: expected 1", fit(chain(50)).sample, 0, 0)
    monkeypatch.setitem(sys.modules, "mbi", None)
    refused("install the extra 'mst'", NoisyTree().fit, chain(50), error=ModuleNotFoundError)


def test_tree_is_drawn_by_the_exponential_mechanism():
    """Three columns, three trees: the shares of first edges are those of exp(epsilon quality /
    2).
    """
    counts = {(0, 1): [[30, 0], [0, 30]], (0, 2): [[25, 5], [5, 25]], (1, 2): [[15, 15], [15, 15]]}
    singles = [np.full(2, 30.0)] * 3
    exact = {i: {j: np.array(counts[i, j], float) for j in range(i + 1, 3)} for i in range(2)}
    epsilon, quality = 0.05, np.array([60.0, 40.0, 0.0])
    rng = np.random.default_rng(0)
    first = [grow_tree(exact, singles, epsilon, rng)[0] for _ in range(2000)]
    wanted = np.exp(epsilon * quality / 2)
    found = [np.mean([edge == pair for edge in first]) for pair in counts]
    np.testing.assert_allclose(found, wanted / wanted.sum(), atol=0.04)


def test_noise_is_that_of_the_budget(monkeypatch):
    """Gaussian noise in units of the budget's thirds, measured on what the model is given."""
    given = []

    class Descent:
        def estimate(self, domain, measured, iters):
            given.extend(measured)
            raise StopIteration

    fake = SimpleNamespace(
        LinearMeasurement=lambda values, clique, stddev: (values, clique, stddev),
        Domain=lambda names, sizes: (names, sizes),
        estimation=SimpleNamespace(MirrorDescent=Descent),
    )
    monkeypatch.setattr(tabular, "import_mbi", lambda: fake)
    generator, table = NoisyTree(epsilon=1.0, bins=50), chain(2000)
    with pytest.raises(StopIteration):
        generator.fit(table)
    singles, pairs = ([one for one in given if len(one[1]) == size] for size in (1, 2))
    assert (len(singles), len(pairs)) == (4, 3)
    # zCDP of Gaussians: sensitivity squared over twice the variance, and the thirds join to rho.
    spent = 4 / (2 * singles[0][2] ** 2) + 3 / (2 * pairs[0][2] ** 2) + generator.rho / 3
    assert spent == pytest.approx(generator.rho)
    exact = table["d"].size / 50
    column = next(values for values, clique, _ in singles if clique == ("d",))
    assert np.std(column - exact) == pytest.approx(singles[0][2], rel=0.4)
    log = np.log(1 / generator.delta)
    assert generator.rho + 2 * np.sqrt(generator.rho * log) == pytest.approx(generator.epsilon)


@pytest.mark.slow
def test_real_mst_draws_from_the_chain():
    pytest.importorskip("mbi")
    table = chain()
    fitted = NoisyTree(epsilon=1000.0, bins=5, iterations=100).fit(table)
    assert {frozenset("ab"), frozenset("bc")} <= edges_of(fitted)
    drawn = fitted.sample(20_000, seed=1)
    assert np.abs(pairs_of(table) - pairs_of(drawn)).to_numpy().max() < 0.02
