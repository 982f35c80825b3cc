"""Which generated rows to keep: a discriminator trained on the generator's own data and rows it
made.
"""

from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier

from paperlib.core import FloatArray
from paperlib.core.checks import check_confidence, check_in
from paperlib.generators.tabular import ChowLiuTree, FittedTable, TableGenerator, checked_columns

_BATCHES = 100  # of n rows, and 1,000 at least, before sampling fails; chosen


class RowRule(Protocol):
    """Probability that a row is kept, given its odds of being real."""

    def limit(self, odds: FloatArray) -> float:
        """The threshold learned from the odds of generated rows, shape (n,)."""
        ...

    def chance(self, odds: FloatArray, limit: float) -> FloatArray:
        """Chance of each row to be kept, shape (n,)."""
        ...


@dataclass(frozen=True)
class RejectionByOdds:
    """Keep a row with a chance in proportion to its odds of being real, always above a quantile of
    them.
    """

    # With a perfect discriminator and no cap this is rejection sampling: rows are distributed as
    # real ones.
    cap: float = 0.95

    def __post_init__(self) -> None:
        check_in("(0, 1)", "cap", self.cap)

    def limit(self, odds: FloatArray) -> float:
        """The odds at the quantile ``cap`` of those of generated rows, (n,)."""
        return float(np.quantile(odds, self.cap))

    def chance(self, odds: FloatArray, limit: float) -> FloatArray:
        """Odds, (n,), in units of the limit, at most 1."""
        return np.minimum(1.0, odds / limit)


@dataclass(frozen=True)
class ConfidentlySynthetic:
    """Remove rows that look generated with high confidence: PANORAMIA, appendix C.3, without a
    threshold.
    """

    confidence: float = 0.8  # probability of being generated above which a row goes

    def __post_init__(self) -> None:
        check_confidence(self.confidence)

    def limit(self, odds: FloatArray) -> float:
        """The odds of a row that is generated with probability ``confidence``; no data matter."""
        return (1 - self.confidence) / self.confidence

    def chance(self, odds: FloatArray, limit: float) -> FloatArray:
        """1 where the odds, (n,), reach the limit, else 0."""
        return (odds >= limit).astype(np.float64)


@dataclass(frozen=True, kw_only=True)
class FilteredGenerator:
    """A generator with a discriminator behind it, boosted trees; the rule says which rows are kept.

    Attributes:
        seed: Seed of the rows that the discriminator is trained on; they are used for nothing else.

    >>> table = pd.DataFrame({"a": [0.0, 1.0] * 40, "b": [0.0, 1.0] * 40})
    >>> FilteredGenerator(rounds=5).fit(table).sample(3, seed=0).shape
    (3, 2)
    """

    generator: TableGenerator = field(default_factory=ChowLiuTree)
    rule: RowRule = field(default_factory=RejectionByOdds)
    rounds: int = 50
    leaves: int = 8
    learning_rate: float = 0.1
    seed: int = 0

    def fit(self, table: pd.DataFrame) -> "FilteredTable":
        """Fit the generator, and train the discriminator on ``table`` and as many generated
        rows.

        Raises:
            ValueError: A table that the generator refuses.
        """
        fitted = self.generator.fit(table)
        coder = RowCoder.fit(table)
        generated = fitted.sample(2 * len(table), self.seed)
        train = generated[: len(table)]
        # Never seen by the discriminator: the rule learns from them.
        fresh = generated[len(table) :]
        stop: Any = False  # scikit-learn's own annotation has only the default, "auto"
        model = HistGradientBoostingClassifier(
            max_iter=self.rounds,
            max_leaf_nodes=self.leaves,
            learning_rate=self.learning_rate,
            early_stopping=stop,
            random_state=self.seed,
        )
        x = np.concatenate([coder.numbers(table), coder.numbers(train)])
        is_real = np.arange(2 * len(table)) < len(table)
        model.fit(x, is_real)
        unlimited = FilteredTable(
            generator=fitted, coder=coder, model=model, rule=self.rule, limit=0.0
        )
        return replace(unlimited, limit=self.rule.limit(unlimited.odds(fresh)))


@dataclass(frozen=True, kw_only=True, eq=False)
class FilteredTable:
    """A fitted generator, its discriminator, and the rule with the threshold that it learned."""

    generator: FittedTable
    coder: "RowCoder"
    model: Any
    rule: RowRule
    limit: float

    def odds(self, rows: pd.DataFrame) -> FloatArray:
        """Odds of each row to be real, shape (n,).

        Raises:
            ValueError: A table that `checked_columns` refuses, or of another number of columns.
        """
        log_odds = self.model.decision_function(self.coder.numbers(rows))
        return np.exp(np.asarray(log_odds, dtype=np.float64))

    def sample(self, n: int, seed: int) -> pd.DataFrame:
        """``n`` rows that the rule kept, with the columns and types of the fitted table.

        Raises:
            ValueError: ``n`` below 1.
            RuntimeError: The rule keeps fewer in 100 batches of n rows, and 1,000 at least.
        """
        rng = np.random.default_rng([seed, 1])  # 1: what `fit` draws by this seed is other rows
        kept: list[pd.DataFrame] = []
        for _ in range(_BATCHES):
            # What an n below 1 means is left to the generator.
            rows = self.generator.sample(max(n, 1000) if n > 0 else n, int(rng.integers(2**31)))
            chance = self.rule.chance(self.odds(rows), self.limit)
            kept.append(rows[rng.random(len(rows)) < chance])
            if sum(map(len, kept)) >= n:
                return pd.concat(kept, ignore_index=True)[:n]
        count = sum(map(len, kept))
        raise RuntimeError(
            f"the discriminator kept {count} rows of {_BATCHES} batches, {n} were asked for"
        )


@dataclass(frozen=True, eq=False)
class RowCoder:
    """Rows as numbers for trees: numbers unchanged, words by their place among a column's fitted
    words.
    """

    words: dict[str, NDArray[Any]]  # different words of each column of text, sorted

    @classmethod
    def fit(cls, table: pd.DataFrame) -> "RowCoder":
        """Learn which words there are; a ValueError for a table that `checked_columns` refuses."""
        columns = checked_columns("table", table)
        texts = {name: values for name, values in columns.items() if values.dtype.kind == "U"}
        return cls({name: np.unique(values) for name, values in texts.items()})

    def numbers(self, table: pd.DataFrame) -> FloatArray:
        """The rows as numbers, shape (n, columns); a word not seen while fitting is -1.

        Raises:
            ValueError: A table that `checked_columns` refuses.
        """
        columns: list[NDArray[Any]] = []
        for name, values in checked_columns("table", table).items():
            if name in self.words:
                columns.append(pd.Index(self.words[name]).get_indexer(pd.Index(values)))
            else:
                columns.append(values)
        return np.stack(columns, axis=1, dtype=np.float64)
