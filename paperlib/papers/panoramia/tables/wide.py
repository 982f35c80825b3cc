"""Tables with a row for each target, and the default audit of today shown in one."""

from collections.abc import Sequence

import pandas as pd

from paperlib.papers.panoramia.strongest import BOTH_ENDS, LEARNED, LOSSES, THRESHOLDS, TRAINED
from paperlib.report import show_table

_HEADS = {
    TRAINED: "RM;RN, trained attack",
    THRESHOLDS: "O(1), thresholds",
    LOSSES: "losses, one end learned",
    BOTH_ENDS: "losses, both ends",
    LEARNED: "order learned",
}
_VALUES = ("mean", "bound", "m", "range", "seconds")


def widened(long: pd.DataFrame, *, rows: Sequence[str], by: str, values: Sequence[str]) -> pd.DataFrame:
    """A row for each group, and a column for each pair of a group and a value.

    Returns:
        ``rows``, then "group: value" for each.

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


def show_strongest(strongest: pd.DataFrame, *, name: str, kind: str) -> None:
    """Show the audits of members against real non-members, a row for each target."""
    wide = widened(strongest, rows=["target"], by="audit", values=_VALUES)
    heads = {f"{audit}: mean": head for audit, head in _HEADS.items() if f"{audit}: mean" in wide}
    show_table(
        wide,
        name=name,
        caption=f"Audits of members against real non-members: lower bounds on $\\varepsilon$ for replacing a "
        f"{kind}, nats, means over games. RM;RN and O(1) are the paper's. The CSV has the bound of the first "
        "game, the range over games, the number m of judged examples and the seconds of a game.",
        columns={"target": "target", **heads},
        lower_bounds=heads,
    )
