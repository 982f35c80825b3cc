"""General figures of the book: each takes a frame and gives a figure and its description in
words.
"""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from paperlib.report.figures import COLORS, LINES, MARKERS, WIDTH, dot_rows, legend_below, panels
from paperlib.report.tables import known_columns

Plot = tuple[Figure, str]
"""A figure and its description in words, as `show_figure` takes them."""

_LONGEST = 26  # letters of a row's name in a line, so that a phone shows them large enough

Scale = Literal["linear", "log", "symlog", "logit"]


def dots_plot(
    frame: pd.DataFrame,
    *,
    rows: str | Sequence[str],
    value: str,
    xlabel: str,
    low: str | None = None,
    high: str | None = None,
    spread: str | None = None,
    by: str | None = None,
    panel: str | None = None,
    printed: str | None = None,
    mark: float | None = None,
    xscale: Scale = "linear",
    height: float = 0.25,
) -> Plot:
    """A row of dots for each name, with intervals, in place of a long table.

    Args:
        rows: Column with the names of the rows; several are joined by commas.
        low: Column with the lower ends of the intervals, and ``high`` with the upper ones.
        spread: Column with half the width of the intervals, in place of ``low`` and ``high``.
        by: Column that tells series apart, each with a colour and a marker.
        panel: Column with a panel for each of its values.
        printed: Column with the paper's values, drawn as crosses; NaN where it prints none.
        mark: Place of a dotted vertical line.
        height: Height of a row, inches; more where a name has several lines.

    >>> rates = pd.DataFrame({"target": ["a", "b"], "share": [0.25, 0.5]})
    >>> dots_plot(rates, rows="target", value="share", xlabel="share")[1]
    'share: a 0.25, b 0.50.'
    """
    names, frame = [rows] if isinstance(rows, str) else list(rows), frame.reset_index(drop=True)
    labels = frame[names].map(lambda one: f"{one:g}" if isinstance(one, float) else str(one))
    whole = (", ".join(row).replace(" = ", "\u00a0=\u00a0") for row in labels.to_numpy())
    labels = pd.Series([textwrap.fill(name.replace(" δ", "\u00a0δ"), _LONGEST) for name in whole])
    groups = _groups(frame, panel)
    most = max(labels[part.index].nunique() for _, part in groups)
    several = frame[by].nunique() if by else 1
    row = max(height * (1 + several) / 2, 0.2 * (1 + labels.str.count("\n").max()))
    fig, all_axes = panels(len(groups), height=0.9 + row * most, share_x=True)
    words = []
    for axes, (title, part) in zip(all_axes, groups, strict=True):
        order = list(labels[part.index] if by is None else dict.fromkeys(labels[part.index]))
        for at, (series, here) in enumerate(_groups(part, by)):
            if by is not None:
                here = here.set_axis(labels[here.index]).reindex(order)
            ends = _ends(here, value, low, high, spread)
            if by is None:
                paper = None if printed is None else here[printed]
                dot_rows(axes, order, here[value], low=ends[0], high=ends[1], printed=paper)
            else:
                # A little apart from the other series, so that no bar hides another.
                places = np.arange(len(here))[::-1] + min(0.22, 0.7 / several) * (
                    (several - 1) / 2 - at
                )
                look: dict[str, Any] = {"ls": "", "ms": 4, "label": series, **_look(at)}
                axes.errorbar(here[value], places, xerr=_bars(here[value], ends), **look)
                if printed is not None:
                    look = {"color": COLORS[at], "ms": 7, "mew": 2, "label": f"the paper, {series}"}
                    axes.plot(here[printed], places, "x", **look)
            words.append(_in_words([title, series], xlabel, order, here, value, printed))
        axes.set_yticks(range(len(order))[::-1], order)
        axes.set_ylim(-0.6, len(order) - 0.4)
        axes.set_title(title, loc="left")
        axes.set_xscale(xscale)
        if mark is not None:
            axes.axvline(mark, color="black", linewidth=0.8, linestyle=":")
    all_axes[-1].set_xlabel(xlabel)
    if by is not None or printed is not None:
        legend_below(fig)
    return fig, f"{'; '.join(words)}."


def _groups(frame: pd.DataFrame, column: str | None) -> list[tuple[str, pd.DataFrame]]:
    """Parts of a frame by their names; a name that ``columns.csv`` has is shown by its heading."""
    if column is None:
        return [("", frame)]
    parts = frame.groupby(column, sort=False)
    return [(known_columns().get(str(name), (str(name),))[0], part) for name, part in parts]


def _ends(
    frame: pd.DataFrame, value: str, low: str | None, high: str | None, spread: str | None
) -> tuple[pd.Series, pd.Series] | tuple[None, None]:
    """Both ends of the intervals; None without any."""
    if spread is not None:
        half = frame[spread].fillna(0.0)
        return frame[value] - half, frame[value] + half
    return (None, None) if low is None or high is None else (frame[low], frame[high])


def _bars(values: pd.Series, ends: tuple[Any, Any]) -> np.ndarray | None:
    """Lengths of the bars below and above the values, shape (2, n); an infinite end has no bar."""
    if ends[0] is None:
        return None
    lengths = np.stack([values - ends[0], ends[1] - values]).astype(float)
    return np.maximum(np.nan_to_num(lengths, posinf=0.0), 0.0)


def _look(at: int) -> dict[str, Any]:
    return {"color": COLORS[at % len(COLORS)], "marker": MARKERS[at % len(MARKERS)]}


def number(value: float) -> str:
    """A number in a description: two decimals, or two digits where it is small."""
    return f"{value:z.2f}" if abs(value) >= 0.05 or value == 0 else f"{value:.2g}"


def _in_words(
    titles: list[str],
    what: str,
    order: list[str],
    here: pd.DataFrame,
    value: str,
    printed: str | None,
) -> str:
    cells = []
    for name, row in zip(order, here.to_dict("records"), strict=True):
        if pd.isna(row[value]):
            continue
        paper = (
            ""
            if printed is None or pd.isna(row[printed])
            else f" (the paper {number(row[printed])})"
        )
        cells.append(f"{name} {number(row[value])}{paper}")
    return f"{', '.join(filter(None, titles)) or what}: {', '.join(cells)}".replace("\n", " ")


def lines_plot(
    frame: pd.DataFrame,
    *,
    x: str,
    y: str,
    xlabel: str,
    ylabel: str,
    by: str | None = None,
    panel: str | None = None,
    low: str | None = None,
    high: str | None = None,
    spread: str | None = None,
    band: bool = False,
    dots: bool = True,
    even: bool = False,
    marks: Mapping[str, float] | None = None,
    xscale: Scale = "linear",
    yscale: Scale = "linear",
    height: float = 2.6,
) -> Plot:
    """A line for each series, with bars or a band.

    Of several rows at one place it shows the mean and the standard deviation. Columns of series,
    panels and intervals are as in `dots_plot`.

    Args:
        band: Draw the intervals as a band and not as bars.
        dots: Mark the points; without, a curve of every row.
        even: Points at even distances, whatever the values of ``x`` in a panel, which become its
            labels.
        marks: Label and height of dotted horizontal lines.

    >>> sizes = pd.DataFrame({"m": [100, 200], "bound": [0.25, 0.5]})
    >>> lines_plot(sizes, x="m", y="bound", xlabel="m", ylabel="bound (nats)")[1]
    'bound (nats) over m from 100 to 200: from 0.25 to 0.50.'
    """
    groups, names = _groups(frame, panel), [name for name, _ in _groups(frame, by)]
    fig, all_axes = panels(len(groups), height=height, share_x=not even)
    words = []
    for axes, (title, part) in zip(all_axes, groups, strict=True):
        places = sorted(part[x].dropna().unique())
        for series, here in _groups(part, by):
            here, at, bars = here.sort_values(x, kind="stable"), names.index(series), spread
            if dots and here[x].duplicated().any():
                here = (
                    here.groupby(x)[y]
                    .agg(["mean", "std"])
                    .reset_index()
                    .set_axis([x, y, "sd"], axis=1)
                )
                bars = "sd"
            across = (
                here[x].map(places.index) + 0.09 * (at - (len(names) - 1) / 2) if even else here[x]
            )
            ends = _ends(here, y, low, high, bars)
            look: dict[str, Any] = _look(at) if dots else {"color": COLORS[at % len(COLORS)]}
            look |= {"linestyle": LINES[at % len(LINES)], "label": series or None}
            if band and ends[0] is not None:
                axes.plot(across, here[y], **look)
                axes.fill_between(across, *ends, alpha=0.15, color=look["color"], lw=0)
            else:
                axes.errorbar(across, here[y], yerr=_bars(here[y], ends), elinewidth=1, **look)
            values = here[y].dropna()
            ends_in_words = f"from {number(values.iloc[0])} to {number(values.iloc[-1])}"
            words.append(", ".join(filter(None, [title, series, ends_in_words])))
        for label, height_of_mark in (marks or {}).items():
            axes.axhline(height_of_mark, color="black", linewidth=1, linestyle=":", label=label)
        axes.set_title(title, loc="left")
        axes.set(ylabel=ylabel, yscale=yscale)
        if even:
            axes.set_xticks(range(len(places)), [f"{one:g}".replace("inf", "∞") for one in places])
        else:
            axes.set_xscale(xscale)
    all_axes[-1].set_xlabel(xlabel)
    if len(names) > 1 or marks:
        legend_below(fig)
    return (
        fig,
        (
            f"{ylabel} over {xlabel} from {frame[x].min():g} to {frame[x].max():g}: "
            f"{'; '.join(words)}."
        ),
    )


def points_plot(
    frame: pd.DataFrame,
    *,
    x: str,
    y: str,
    by: str,
    xlabel: str,
    ylabel: str,
    diagonal: bool = False,
    xscale: Scale = "linear",
    yscale: Scale = "linear",
    height: float = 3.6,
) -> Plot:
    """A point for each row, in the colour and marker of its series, with a diagonal where both are
    equal.

    >>> rows = pd.DataFrame({"kind": ["a", "a"], "x": [1.0, 2.0], "y": [2.0, 3.0]})
    >>> points_plot(rows, x="x", y="y", by="kind", xlabel="x", ylabel="y")[1]
    'Median of x and of y: a 1.50 and 2.50.'
    """
    fig, (axes,) = panels(height=height)
    words = []
    for at, (series, here) in enumerate(_groups(frame, by)):
        axes.plot(here[x], here[y], linestyle="", alpha=0.7, label=series, **_look(at))
        words.append(f"{series} {number(here[x].median())} and {number(here[y].median())}")
    if diagonal:
        shown = frame[[x, y]].to_numpy(dtype=float)
        ends = [np.nanmin(shown), np.nanmax(shown)]
        axes.plot(ends, ends, "k:", label="equal")
    axes.set(xscale=xscale, yscale=yscale, xlabel=xlabel, ylabel=ylabel)
    legend_below(fig, columns=3)
    return fig, f"Median of {xlabel} and of {ylabel}: {', '.join(words)}."


def histograms_plot(
    groups: Mapping[str, Mapping[str, ArrayLike]], *, xlabel: str, bins: int = 40
) -> Plot:
    """Outlines of histograms, a panel for each outer name and an outline for each inner one.

    >>> histograms_plot({"model": {"members": [1.0, 2.0]}}, xlabel="loss (nats)")[1]
    'Median loss (nats): model: members 1.50.'
    """
    fig, all_axes = panels(len(groups), height=2.2)
    words = []
    for axes, (title, kinds) in zip(all_axes, groups.items(), strict=True):
        values = {kind: np.asarray(given, dtype=float) for kind, given in kinds.items()}
        edges = np.histogram_bin_edges(np.concatenate(list(values.values())), bins=bins)
        for at, (kind, given) in enumerate(values.items()):
            shares = np.histogram(given, edges)[0] / given.size
            axes.stairs(
                shares, edges, label=kind, color=COLORS[at], linestyle=LINES[at], linewidth=1.6
            )
        axes.set_title(title, loc="left")
        axes.set_ylabel("share")
        medians = ", ".join(
            f"{kind} {number(float(np.median(given)))}" for kind, given in values.items()
        )
        words.append(f"{title}: {medians}")
    all_axes[-1].set_xlabel(xlabel)
    legend_below(fig)
    return fig, f"Median {xlabel}: {'; '.join(words)}."


def shares_plot(
    frame: pd.DataFrame, *, value: str, by: str, xlabel: str, panel: str | None = None
) -> Plot:
    """The share of values at or below each point of [0, 1], as of p-values, with the diagonal.

    >>> tests = pd.DataFrame({"test": ["a", "a"], "p": [0.01, 0.5]})
    >>> shares_plot(tests, value="p", by="test", xlabel="p-value")[1]
    'Share of values up to 0.05: a 0.50.'
    """
    groups = _groups(frame, panel)
    fig, all_axes = panels(len(groups), share_x=True)
    words = []
    for axes, (title, part) in zip(all_axes, groups, strict=True):
        for turn, (series, here) in enumerate(_groups(part, by)):
            ordered = here[value].sort_values()
            shares = np.arange(1, len(ordered) + 1) / len(ordered)
            axes.plot(ordered, shares, color=COLORS[turn], ls=LINES[turn], label=series)
            words.append(
                f"{', '.join(filter(None, [title, series]))} {number((ordered <= 0.05).mean())}"
            )
        axes.plot([0, 1], [0, 1], color="black", ls=":", lw=1, label="uniform")
        axes.set_title(title, loc="left")
        axes.set_ylabel("share")
    all_axes[-1].set_xlabel(xlabel)
    legend_below(fig, columns=3)
    return fig, f"Share of values up to 0.05: {', '.join(words)}."


def images_plot(rows: Mapping[str, NDArray[np.uint8]], *, columns: int = 12) -> Plot:
    """The first images of each kind side by side, uint8 of shape (n, 1 or 3, side, side), without
    smoothing.

    >>> images_plot({"members": np.zeros((2, 1, 4, 4), dtype=np.uint8)})[1]
    'Rows of small images, with the mean grey value out of 255: members 0.'
    """
    fig, all_axes = panels(len(rows), height=WIDTH / columns + 0.25)
    for axes, (name, images) in zip(all_axes, rows.items(), strict=True):
        gap = max(1, images.shape[-1] // 7)
        padded = np.pad(images[:columns], ((0, 0), (0, 0), (0, 0), (0, gap)), constant_values=255)
        strip = np.moveaxis(np.concatenate(list(padded), axis=2)[:, :, :-gap], 0, 2)
        axes.imshow(strip, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
        axes.set(xticks=[], yticks=[])
        axes.grid(visible=False)
        axes.set_title(name, loc="left", pad=3)
        axes.spines[:].set_visible(False)
    means = ", ".join(f"{name} {images.mean():.0f}" for name, images in rows.items())
    return fig, f"Rows of small images, with the mean grey value out of 255: {means}."
