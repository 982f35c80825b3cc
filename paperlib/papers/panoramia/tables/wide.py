"""Tables with a row for each target."""

from collections.abc import Sequence

import pandas as pd


def widened(long: pd.DataFrame, *, rows: Sequence[str], by: str, values: Sequence[str]) -> pd.DataFrame:
    """A row for each group, and a column for each pair of a group and a value.

    >>> long = pd.DataFrame({"target": ["a", "a"], "audit": ["x", "y"], "bound": [1.0, 2.0]})
    >>> widened(long, rows=["target"], by="audit", values=["bound"])
      target  x: bound  y: bound
    0      a       1.0       2.0
    """
    order = list(long[list(rows)].drop_duplicates().itertuples(index=False, name=None))
    parts = {
        f"{group}: {value}": part.set_index(list(rows))[value]
        for value in values
        for group, part in long.groupby(by, sort=False)
    }
    wide = pd.DataFrame(parts).loc[order if len(rows) > 1 else [one for (one,) in order]]
    return wide.rename_axis(list(rows)).reset_index()


def counted(games: int) -> str:
    """A number of games in words.

    >>> counted(1), counted(5)
    ('1 game', '5 games')
    """
    return f"{games} game{'' if games == 1 else 's'}"
