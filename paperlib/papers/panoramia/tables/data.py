"""Real tables for PANORAMIA: raw columns, and disjoint parts of their rows."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from paperlib.core import check_at_least


@dataclass(frozen=True, kw_only=True)
class PartSizes:
    """Rows of each part; the parts share no row."""

    generator: int  # D_G: the generator, the discriminator and the real-data helper learn from these
    members: int  # D_in: targets train on these
    null: int  # other real rows, which targets that are not to see the members train on
    nonmembers: int  # real rows that nothing is trained on

    def __post_init__(self) -> None:
        check_at_least(10, **vars(self))


def split_table(table: pd.DataFrame, sizes: PartSizes, seed: int) -> dict[str, pd.DataFrame]:
    """Disjoint parts in random order, by the names of `PartSizes`.

    >>> parts = split_table(pd.DataFrame({"a": range(40)}), PartSizes(
    ...     generator=10, members=10, null=10, nonmembers=10), seed=0)
    >>> len(set().union(*(part["a"] for part in parts.values())))
    40
    """
    wanted = vars(sizes)
    if sum(wanted.values()) > len(table):
        raise ValueError(
            f"sizes: {' + '.join(f'{size} {name}' for name, size in wanted.items())} are "
            f"{sum(wanted.values())} rows, and the table has {len(table)}"
        )
    order = np.random.default_rng(seed).permutation(len(table))
    ends = np.cumsum(list(wanted.values()))
    parts = np.split(order[: ends[-1]], ends[:-1])
    return {name: table.iloc[rows].reset_index(drop=True) for name, rows in zip(wanted, parts, strict=True)}
