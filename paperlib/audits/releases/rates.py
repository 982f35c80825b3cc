"""How often a release gives rows of members away, beside how often it seems to for rows it never
saw.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import betainccinv, betaincinv

from paperlib.audits.releases.distances import Flags, Nearness, Space
from paperlib.core import FloatArray, IntArray
from paperlib.core.intervals import share_interval

Tables = tuple[pd.DataFrame, pd.DataFrame]
"""The release and the pool."""
Hits = dict[str, "tuple[Tally, Tally]"]
"""By the name of a rate, how often it holds for members, and for non-members."""

_ATTACKS = 2_000  # rows of a side that are attacked at most
_PREDICATES, _TRIES = 1_000, 10_000  # predicates at most, and how often one is drawn
_TOLERANCE = 0.05  # share of a true number, within which a guess of it is right
_COLUMNS = 3  # of a predicate


@dataclass(frozen=True)
class Tally:
    """How often an attack held on one side.

    Attributes:
        hits: Attacks that held.
        total: Attacks that were made.
        trials: Number of independent attacks whose share of hits would vary as much, at most
            ``total``; a fraction in general.
    """

    hits: int
    total: int
    trials: float

    @classmethod
    def of(cls, flags: Flags) -> "Tally":
        """Of attacks on single rows, which are independent: ``flags``, shape (n,), say which
        succeeded.
        """
        return cls(int(flags.sum()), flags.size, float(flags.size))

    def interval(self, confidence: float) -> tuple[float, float]:
        """Clopper-Pearson interval of the rate, in [0, 1], from counts scaled to the independent
        trials.
        """
        if self.trials == self.total:
            return share_interval(self.hits, self.total, confidence=confidence)
        # The scaled counts may be fractions, which `share_interval` refuses: by the beta quantiles
        # that its interval is for whole numbers.
        level = (1 - confidence) / 2
        held = self.trials * self.hits / self.total
        failed = self.trials - held
        low = float(betaincinv(held, failed + 1, level)) if held else 0.0
        high = float(betainccinv(held + 1, failed, level)) if failed else 1.0
        return low, high


def disclosure_rates(
    space: Space,
    near: Nearness,
    member: Flags,
    tables: Tables | None,
    *,
    secret: str | None,
    confidence: float,
    rng: np.random.Generator,
) -> pd.DataFrame:
    """One row for each rate: its name as "rate"; hits, total, rate, low and high of members and of
    control, such as "member_hits"; excess, the difference of the two rates, with excess_low and
    excess_high.

    The intervals take the rows of the release and of both sides as independent draws. Attacks on
    single rows count as independent trials; predicates that share rows do not.

    Args:
        space: Rows of the release and of the pool, as numbers.
        near: Distances of the n rows of the pool.
        member: Whether each of these is a member, shape (n,).
        tables: Release and pool as tables; None, or one column, leaves copies of rows alone.
        secret: Column that is inferred; None draws one for each row.
        confidence: Of each interval, in (0, 1).
        rng: Draws the rows, columns and predicates that are attacked.
    """
    # Half as far from the release as from the rest of the pool, or less.
    nearly = near.away[:, 0] <= near.in_pool[:, 0] / 2
    hits: Hits = {
        "reproduced": (Tally.of(space.equal[member]), Tally.of(space.equal[~member])),
        "nearly reproduced": (Tally.of(nearly[member]), Tally.of(nearly[~member])),
    }
    if tables is not None and tables[0].shape[1] > 1:
        hits |= _hits_of_tables(space, member, tables, secret, rng)
    rows: list[dict[str, Any]] = []
    for name, (members, others) in hits.items():
        if members.total:
            rows.append({"rate": name, **_compared(members, others, confidence)})
    return pd.DataFrame(rows)


def _hits_of_tables(
    space: Space, member: Flags, tables: Tables, secret: str | None, rng: np.random.Generator
) -> Hits:
    """How many of the rows of each side that are attacked are singled out, linked and inferred."""
    sides = [rng.permutation(np.flatnonzero(side)) for side in (member, ~member)]
    predicates = _isolating(space, sides, rng)
    attacked = [side[:_ATTACKS] for side in sides]
    halves = np.array_split(rng.permutation(tables[0].shape[1]), 2)
    order = rng.permutation(space.release.shape[0])  # of equally near rows one at random
    # A row is linked where the same row of the release is the nearest in both halves of the
    # columns.
    linked: list[Tally] = []
    for rows in attacked:
        first, second = (_closest(space, rows, half.tolist(), order) for half in halves)
        linked.append(Tally.of(np.equal(first, second)))
    inferred = [Tally.of(_inferred(space, tables, rows, secret, order, rng)) for rows in attacked]
    return {
        "singled out": (predicates.tally(0), predicates.tally(1)),
        "linked": (linked[0], linked[1]),
        "inferred": (inferred[0], inferred[1]),
    }


def _compared(members: Tally, others: Tally, confidence: float) -> dict[str, Any]:
    """Both rates with their intervals, and an interval of their difference that holds with both.

    Args:
        confidence: In (0, 1), of each interval alone; the difference is of two intervals that each
            miss with half of the error, so that both hold with this confidence.
    """
    row: dict[str, Any] = {}
    wide: list[tuple[float, float]] = []
    for name, tally in (("member", members), ("control", others)):
        low, high = tally.interval(confidence)
        wide.append(tally.interval((1 + confidence) / 2))  # misses with half of the error
        rate = tally.hits / tally.total
        values = {"hits": tally.hits, "total": tally.total, "rate": rate, "low": low, "high": high}
        row |= {f"{name}_{what}": value for what, value in values.items()}
    return row | {
        "excess": row["member_rate"] - row["control_rate"],
        "excess_low": wide[0][0] - wide[1][1],
        "excess_high": wide[0][1] - wide[1][0],
    }


def _closest(space: Space, rows: IntArray, columns: Sequence[int], order: IntArray) -> IntArray:
    """For each of k rows of the pool the number of the row of the release that is nearest in these
    columns, shape (k,).

    Args:
        rows: Numbers of the rows of the pool, shape (k,).
        columns: Numbers of the columns.
        order: Numbers of all rows of the release; of equally near ones the first counts.
    """
    release = np.asfortranarray(space.release[order])
    # In batches of about 50 rows, for memory.
    batches = np.array_split(rows, max(1, rows.size // 50))
    nearest = [space.between(space.pool[rows], release, columns).argmin(axis=1) for rows in batches]
    return order[np.concatenate(nearest)]


def _inferred(
    space: Space,
    tables: Tables,
    rows: IntArray,
    secret: str | None,
    order: IntArray,
    rng: np.random.Generator,
) -> Flags:
    """Whether the nearest row of the release, in all columns but one, has the value of that one,
    for each of ``rows``, shape (k,).

    Numbers count as the same within `_TOLERANCE`, a share of the true one.

    Args:
        secret: The column that is inferred; None draws one for each row.
        order: Numbers of all rows of the release in random order: of equally near ones the first
            counts.
    """
    release, pool = tables
    # Columns in the order of a `Space`, which puts numbers and times in front.
    names = sorted(release, key=lambda name: release[name].dtype.kind not in "iufmM")
    drawn = rng.integers(len(names), size=rows.size)
    if secret is not None:
        drawn[:] = names.index(secret)
    right = np.zeros(rows.size, dtype=bool)
    for hidden in np.unique(drawn).tolist():
        asked = np.flatnonzero(drawn == hidden)  # of ``rows``, those whose secret is this column
        name = names[hidden]
        others = [column for column in range(len(names)) if column != hidden]
        nearest = _closest(space, rows[asked], others, order)
        right[asked] = space.release[nearest, hidden] == space.pool[rows[asked], hidden]
        if release[name].dtype.kind in "iuf":
            guess = release[name].iloc[nearest].to_numpy(float, na_value=np.nan)
            truth = pool[name].iloc[rows[asked]].to_numpy(float, na_value=np.nan)
            right[asked] |= np.abs(guess - truth) <= _TOLERANCE * np.abs(truth)
    return right


@dataclass(frozen=True, eq=False)
class _Predicates:
    """Predicates that hold for one or two rows of the release, one row each."""

    source: IntArray  # row of the release that it was drawn from, (n,)
    other: IntArray  # the second row of the release that it holds for, -1 where there is none, (n,)
    counts: IntArray  # rows that it holds for, of each side, 3 for three and more, (sides, n)
    rows: IntArray  # these rows where they are one or two, else -1, (sides, n, 2)
    released: int  # rows of the release
    size: int  # rows of each side

    def tally(self, side: int) -> Tally:
        """How many predicates single a row of a side out: of those that hold for one row of the
        release alone, which are the attacks, the hits hold for one row of the side.

        ``side`` is 0 or 1, the first index of ``counts``.
        """
        alone = self.other < 0
        hit = self.counts[side] == 1
        hits, total = int((alone & hit).sum()), int(alone.sum())
        return Tally(hits, total, self._trials(side, hits, total) if total else 0.0)

    def _trials(self, side: int, hits: int, total: int) -> float:
        """Number of independent trials whose share of hits would vary as much as that of these
        ``total`` attacks, of which ``hits`` succeeded: predicates that share rows do not vary
        independently.
        """
        # The variance of a mean of dependent indicators: theirs, and the covariances of two that
        # share a row. The jackknife, which leaves out a row at a time, sums the products of what
        # this changes over all pairs of predicates; those of a predicate with itself are taken off.
        rate = hits / total
        alone_variance = rate * (1 - rate) / total
        rows_covary = max(0.0, self._covariance_by_side(side, total))
        released_covary = max(0.0, self._covariance_by_release(side, hits, total))
        if alone_variance == 0:  # nothing varied: one trial a row at most
            return float(min(total, self.size, np.unique(self.source[self.other < 0]).size))
        share = alone_variance / (alone_variance + rows_covary + released_covary)
        return total * share

    def _covariance_by_side(self, side: int, total: int) -> float:
        """The covariance that predicates which hold for the same row of the side add to the
        variance of the share of hits among ``total`` attacks.
        """
        alone, counts, rows = self.other < 0, self.counts[side], self.rows[side]
        # For each row of the side, how many hits are lost and gained without it: a predicate that
        # held for it alone is no hit any more, and one that held for two rows becomes a hit.
        lost = _times(rows[alone & (counts == 1), 0], self.size)
        gained = _times(rows[alone & (counts == 2)].ravel(), self.size)
        # Each change of a predicate by itself is 1 / total: the squares are taken off.
        return _jackknife((gained - lost) / total) - float((gained + lost).sum()) / total**2

    def _covariance_by_release(self, side: int, hits: int, total: int) -> float:
        """The covariance that predicates which hold for the same row of the release add to the
        variance of the share of ``hits`` among ``total`` attacks.
        """
        alone = self.other < 0
        hit = self.counts[side] == 1
        # For each row of the release, what remains without it: a predicate drawn from it is gone,
        # and one that holds for it and another one now holds for that one alone, and counts.
        attacks = total + _times(self.other[~alone], self.released)
        attacks = attacks - _times(self.source[alone], self.released)
        successes = hits + _times(self.other[~alone & hit], self.released)
        successes = successes - _times(self.source[alone & hit], self.released)
        # The share of hits without each row. A predicate by itself varies by its own square, which
        # is taken off, so that the covariances of different ones are left.
        rates = np.where(attacks > 0, successes / np.maximum(attacks, 1), hits / total)
        return _jackknife(rates) - float(((hit - hits / total) ** 2).sum()) / total**2


def _times(rows: IntArray, size: int) -> IntArray:
    """How often each of the numbers 0 to ``size`` - 1 is in ``rows``, shape (size,)."""
    return np.bincount(rows, minlength=size)


def _jackknife(values: FloatArray) -> float:
    """The variance of a statistic from its values, or their changes, without each of the rows."""
    return float((values.size - 1) * values.var())


@dataclass(frozen=True, eq=False)
class _Predicate:
    """A row of the release, the columns in which others are to be like it, and the one other row of
    the release that is, -1 for none.
    """

    source: int
    columns: IntArray
    other: int


def _drawn(space: Space, middle: FloatArray, rng: np.random.Generator) -> Iterator[_Predicate]:
    """Different predicates that hold for one or two rows of the release, until 1,000 of them hold
    for one, or 10,000 were tried. ``middle`` are the medians of the columns, shape (columns,).
    """
    seen: set[tuple[float, ...]] = set()
    alone = 0
    for _ in range(_TRIES):
        source = int(rng.integers(len(space.release)))
        row = space.release[source]
        columns = np.sort(rng.permutation(space.release.shape[1])[:_COLUMNS])
        values = (*columns.tolist(), *row[columns].tolist())
        if values in seen:
            continue
        others = _holds(space, space.release, row, columns, middle)
        others = others[others != source]
        if others.size > 1:
            continue
        seen.add(values)
        yield _Predicate(source, columns, int(others[0]) if others.size else -1)
        alone += others.size == 0
        if alone == _PREDICATES:
            return


def _isolating(space: Space, sides: Sequence[IntArray], rng: np.random.Generator) -> _Predicates:
    """Predicates that hold for one or two rows of the release, and for which rows of each side.

    Args:
        sides: Numbers of the rows of each side in the pool, shape (k,) each; as many of each are
            looked at as the smaller side has.
    """
    size = min(map(len, sides))
    middle = np.median(space.release, axis=0)
    predicates = list(_drawn(space, middle, rng))
    # Until fewer are seen, 3 stands for three rows and more, and -1 for no row.
    counts = np.full((len(sides), len(predicates)), 3)
    rows = np.full((len(sides), len(predicates), 2), -1)
    for side, members in enumerate(sides):
        table = np.asfortranarray(space.pool[members[:size]])
        for number, predicate in enumerate(predicates):
            row = space.release[predicate.source]
            held = _holds(space, table, row, predicate.columns, middle)
            if held.size <= 2:
                counts[side, number] = held.size
                rows[side, number, : held.size] = held
    return _Predicates(
        np.array([predicate.source for predicate in predicates], dtype=np.int64),
        np.array([predicate.other for predicate in predicates], dtype=np.int64),
        counts,
        rows,
        len(space.release),
        size,
    )


def _holds(
    space: Space, rows: FloatArray, row: FloatArray, columns: IntArray, middle: FloatArray
) -> IntArray:
    """Numbers of the ``rows`` that are like a row in some columns: they have its category, or a
    number at least as far on the same side of the median.

    Args:
        rows: Shape (n, columns).
        row: Shape (columns,).
        columns: Numbers of the columns that are compared, shape (k,).
        middle: Median of each column, shape (columns,).
    """
    holds = np.ones(len(rows), dtype=bool)
    for column in columns.tolist():
        values, value = rows[:, column], row[column]
        if column >= space.numbers or value < 0:  # a category, or a missing number
            holds &= values == value
        elif value > middle[column]:
            holds &= values >= value
        else:
            holds &= (values <= value) & (values >= 0)
    return np.flatnonzero(holds)
