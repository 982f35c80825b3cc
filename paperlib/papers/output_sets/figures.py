"""Names and looks of the methods, and bounds drawn over anything: what the paper's pages share."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from paperlib.report import COLORS, LINES, MARKERS

NAMES = {
    "printed": "Algorithm 1 as printed",
    "optimal": "this package's set",
    "cautious": "this package's set, error divided by 20",
    "top_bottom": "top and bottom",
    "dp_sniper": "DP-Sniper",
    "whole": "whole line",
    "adaptive": "adaptive order, all records",
    "learned": "learned order, all records",
}
"""Names of the methods in tables and figures."""

_DRAWN = ("printed", "top_bottom", "dp_sniper", "whole", "optimal", "adaptive", "learned")
"""Methods of figures, in the order of colours and markers."""
_APART = 0.09
"""Distance of two methods at one place, so that no bar hides another."""


def look(method: str) -> dict[str, Any]:
    """Colour, marker, dash and label of a method's line.

    >>> look("adaptive")["label"], look("printed")["marker"]
    ('adaptive order', 'o')
    """
    at = _DRAWN.index(method)
    label = NAMES[method].partition(",")[0]
    return {"color": COLORS[at], "marker": MARKERS[at], "linestyle": LINES[at], "label": label}


def draw_lines(
    axes: Axes,
    table: pd.DataFrame,
    x: str,
    *,
    middle: str = "mean",
    spread: str = "std",
    methods: str = "method",
    label: Callable[[float], str] = "{:g}".format,
) -> list[float]:
    """Draw a line with bars for each method over evenly spaced places, the methods a little apart."""
    places = sorted(table[x].unique())
    shown = [method for method in _DRAWN if method in set(table[methods])]
    for at, method in enumerate(shown):
        part = table[table[methods] == method].sort_values(x)
        moved = part[x].map(places.index) + _APART * (at - (len(shown) - 1) / 2)
        axes.errorbar(moved, part[middle], part[spread].fillna(0), elinewidth=1, **look(method))
    axes.set_xticks(range(len(places)), [label(place).replace("inf", "∞") for place in places])
    return places


def in_words(table: pd.DataFrame, x: str) -> str:
    """Mean of each method at the first and the last place, in words.

    >>> rows = {"method": ["whole"] * 2, "m": [100, 200], "mean": [0.5, 0.75]}
    >>> in_words(pd.DataFrame(rows), "m")
    'whole line from 0.50 to 0.75'
    """
    shown = [method for method in _DRAWN if method in set(table["method"])]
    parts = [table[table["method"] == method].sort_values(x)["mean"].to_numpy() for method in shown]
    return "; ".join(
        f"{NAMES[method]} from {part[0]:.2f} to {part[-1]:.2f}"
        for method, part in zip(shown, parts, strict=True)
    )


def joined(words: Iterable[str]) -> str:
    """Words as a list in a sentence.

    >>> joined(["a"]), joined(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def half_width(row: pd.Series) -> float:
    """Half the length of the interval in a row of `interval`; NaN where there is none."""
    half = float(row["high"] - row["low"]) / 2
    return half if np.isfinite(half) else float("nan")
