"""Tables of counts that are written row by row, so that a run that ended early goes on."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pandas as pd

from paperlib.core.intervals import share_interval

SEED = 20261130
FIRST = 10  # files whose outcome stands beside that of all, so that a test can draw them again

Cells = dict[str, object]
"""A row of a table, by the names of its columns."""


def count_rows(path: Path, heading: str, rows: Mapping[str, Callable[[], Cells]]) -> None:
    """Write the rows that the table at ``path`` does not have yet, each as soon as it is counted.

    Args:
        path: The CSV; the rows that it has are kept as they stand.
        heading: Column of the names of the rows.
        rows: For each name a function that counts the other cells of its row.
    """
    counted: list[Cells] = []
    if path.exists():
        counted = [
            {str(key): value for key, value in row.items()}
            for row in pd.read_csv(path).to_dict("records")
        ]
    known = {row[heading] for row in counted}
    for name, count in rows.items():
        if name in known:
            continue
        counted.append({heading: name, **count()})
        pd.DataFrame(counted).to_csv(path, index=False)
        print(counted[-1], file=sys.stderr, flush=True)


def interval_cells(count: int, total: int) -> Cells:
    """Ends of the Clopper-Pearson 95 % interval of the share of ``count`` in ``total``."""
    low, high = share_interval(count, total)
    return {"low": round(low, 4), "high": round(high, 4)}
