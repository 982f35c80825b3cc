"""How often a release gives rows of members away, beside how often it seems to for rows it never
saw.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from paperlib.audits.releases.distances import Flags, Nearness, Space
from paperlib.core import FloatArray, IntArray
from paperlib.core.intervals import share_interval

Tables = tuple[pd.DataFrame, pd.DataFrame]
"""The release and the pool."""
Hits = dict[str, Sequence[Flags]]
"""By the name of a rate, whether it holds for each attacked member, and each attacked non-member.
"""

MEANING = {
    "reproduced": "the release holds the very row",
    "nearly reproduced": "the nearest row of the release is at most half as far as the nearest "
    "other row of the pool",
    "singled out": "of predicates on three columns that hold for one row of the release alone, "
    "those that hold for one row alone, of as many members as non-members",
    "linked": "the columns are dealt to two halves; both have the same row of the release as "
    "nearest",
    "inferred": "of one column, drawn for each row, the row of the release that is nearest in all "
    "others tells the value (numbers: within 5 %)",
}
"""What each rate counts."""
_ATTACKS = 2_000  # rows of a side that are attacked at most
_PREDICATES, _TRIES = 1_000, 10_000  # predicates at most, and how often one is drawn
_TOLERANCE = 0.05
_COLUMNS = 3  # of a predicate


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
    """One row for each rate: rate, hits, total, rate and interval of members and control, and the
    excess of members with its interval.

    Args:
        near: Distances of the rows of the pool, whose membership is ``member``, shape (n,).
        tables: Release and pool as tables; None, or one column, leaves copies of rows alone.
        secret: Column that is inferred; None draws one for each row.
        confidence: Of each interval, in (0, 1).
        rng: Draws the rows, columns and predicates that are attacked.
    """
    nearly = near.away[:, 0] <= near.in_pool[:, 0] / 2
    hits: Hits = {
        "reproduced": (space.equal[member], space.equal[~member]),
        "nearly reproduced": (nearly[member], nearly[~member]),
    }
    if tables is not None and tables[0].shape[1] > 1:
        hits |= _hits_of_tables(space, member, tables, secret, rng)
    rows: list[dict[str, Any]] = []
    for name, (members, others) in hits.items():
        if members.size:
            rows.append({"rate": name, **_compared(members, others, confidence)})
    return pd.DataFrame(rows)


def _hits_of_tables(
    space: Space, member: Flags, tables: Tables, secret: str | None, rng: np.random.Generator
) -> Hits:
    """Which rows of each side are singled out, linked and inferred, of those that are attacked."""
    sides = [rng.permutation(np.flatnonzero(side)) for side in (member, ~member)]
    singled_out = _singled_out(space, sides, rng)
    attacked = [side[:_ATTACKS] for side in sides]
    halves = np.array_split(rng.permutation(tables[0].shape[1]), 2)
    order = rng.permutation(space.release.shape[0])  # of equally near rows one at random
    linked: list[Flags] = []
    for rows in attacked:
        first, second = (_closest(space, rows, half.tolist(), order) for half in halves)
        linked.append(np.equal(first, second))
    inferred = [_inferred(space, tables, rows, secret, order, rng) for rows in attacked]
    return {"singled out": singled_out, "linked": linked, "inferred": inferred}


def _compared(members: Flags, others: Flags, confidence: float) -> dict[str, Any]:
    """Both rates with Clopper-Pearson intervals, and an interval of their difference that holds
    with both.
    """
    row: dict[str, Any] = {}
    wide: list[tuple[float, float]] = []
    for name, flags in (("member", members), ("control", others)):
        hits, total = int(flags.sum()), flags.size
        low, high = share_interval(hits, total, confidence=confidence)
        wide.append(share_interval(hits, total, confidence=(1 + confidence) / 2))
        values = {"hits": hits, "total": total, "rate": hits / total, "low": low, "high": high}
        row |= {f"{name}_{what}": value for what, value in values.items()}
    return row | {
        "excess": row["member_rate"] - row["control_rate"],
        "excess_low": wide[0][0] - wide[1][1],
        "excess_high": wide[0][1] - wide[1][0],
    }


def _closest(space: Space, rows: IntArray, columns: Sequence[int], order: IntArray) -> IntArray:
    """Place of the row of the release that is nearest in these columns, the first by ``order`` of
    several.
    """
    release = np.asfortranarray(space.release[order])
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
    """Whether the nearest row of the release, in all columns but one, has the value of that one."""
    release, pool = tables
    # Columns in the order of their numbers in a `Space`.
    names = sorted(release, key=lambda name: release[name].dtype.kind not in "iufmM")
    drawn = rng.integers(len(names), size=rows.size)
    if secret is not None:
        drawn[:] = names.index(secret)
    right = np.zeros(rows.size, dtype=bool)
    for hidden in np.unique(drawn).tolist():
        here, name = np.flatnonzero(drawn == hidden), names[hidden]
        others = [column for column in range(len(names)) if column != hidden]
        nearest = _closest(space, rows[here], others, order)
        right[here] = space.release[nearest, hidden] == space.pool[rows[here], hidden]
        if release[name].dtype.kind in "iuf":
            guess = release[name].iloc[nearest].to_numpy(float, na_value=np.nan)
            truth = pool[name].iloc[rows[here]].to_numpy(float, na_value=np.nan)
            right[here] |= np.abs(guess - truth) <= _TOLERANCE * np.abs(truth)
    return right


def _singled_out(
    space: Space, sides: Sequence[IntArray], rng: np.random.Generator
) -> tuple[Flags, Flags]:
    """Of the predicates that hold for one row of the release alone, those that do for one row of a
    side.
    """
    width, size = space.release.shape[1], min(map(len, sides))
    tables = [np.asfortranarray(space.pool[side[:size]]) for side in sides]
    middle = np.median(space.release, axis=0)
    alone: dict[tuple[float, ...], tuple[bool, ...]] = {}
    for _ in range(_TRIES):
        row = space.release[rng.integers(len(space.release))]
        columns = np.sort(rng.permutation(width)[:_COLUMNS])
        predicate = (*columns.tolist(), *row[columns].tolist())
        if predicate in alone or _count(space, space.release, row, columns, middle) != 1:
            continue
        alone[predicate] = tuple(_count(space, rows, row, columns, middle) == 1 for rows in tables)
        if len(alone) == _PREDICATES:
            break
    hits = np.array(list(alone.values()), dtype=bool).reshape(-1, 2)
    return hits[:, 0], hits[:, 1]


def _count(
    space: Space, rows: FloatArray, row: FloatArray, columns: IntArray, middle: FloatArray
) -> int:
    """Rows like ``row`` in some columns: of equal value, or of a number that is as far from the
    middle.
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
    return int(holds.sum())
