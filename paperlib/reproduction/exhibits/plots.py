"""General figures of the book: each takes a frame and gives a figure and its description in
words.
"""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from paperlib.report.figures import COLORS, LINES, MARKERS, WIDTH, dot_rows, legend_below, panels
from paperlib.report.tables import known_columns

Plot = tuple[Figure, str]
"""A figure and its description in words, as `show_figure` takes them."""

_DEVIATION = "sd"  # column of standard deviations that `lines_plot` computes
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
        frame: A row for each dot.
        value: Column with the place of each dot; NaN draws none.
        rows: Column with the names of the rows; several are joined by commas.
        low: Column with the lower ends of the intervals, and ``high`` with the upper ones.
        spread: Column with half the width of the intervals, in place of ``low`` and ``high``.
        by: Column that tells series apart, each with a colour and a marker.
        panel: Column with a panel for each of its values.
        printed: Column with the paper's values, drawn as crosses; NaN where it prints none.
        mark: Place of a dotted vertical line.
        height: Height of a row, inches; more where a name has several lines.

    Raises:
        KeyError: A column that the frame lacks.

    >>> rates = pd.DataFrame({"target": ["a", "b"], "share": [0.25, 0.5]})
    >>> dots_plot(rates, rows="target", value="share", xlabel="share")[1]
    'share: a 0.25, b 0.50.'
    """
    frame = frame.reset_index(drop=True)
    labels = _row_labels(frame, [rows] if isinstance(rows, str) else list(rows))
    columns = _Columns(value, low, high, spread, printed)
    groups = _groups(frame, panel)
    most_rows = max(labels[in_panel.index].nunique() for _, in_panel in groups)
    series_count = frame[by].nunique() if by else 1
    most_lines = 1 + labels.str.count("\n").max()
    # Inches: every series makes a row half as high again, and a line of its name needs 0.2; title
    # and axis of a panel need 0.9.
    row_height = max(height * (1 + series_count) / 2, 0.2 * most_lines)
    fig, all_axes = panels(len(groups), height=0.9 + row_height * most_rows, share_x=True)
    words: list[str] = []
    for axes, (title, in_panel) in zip(all_axes, groups, strict=True):
        names, drawn = _draw_dots(axes, labels[in_panel.index], in_panel, by, columns, series_count)
        words += [
            _in_words([title, series], xlabel, names, dots, columns) for series, dots in drawn
        ]
        axes.set_yticks(range(len(names))[::-1], names)
        axes.set_ylim(-0.6, len(names) - 0.4)
        axes.set_title(title, loc="left")
        axes.set_xscale(xscale)
        if mark is not None:
            axes.axvline(mark, color="black", linewidth=0.8, linestyle=":")
    all_axes[-1].set_xlabel(xlabel)
    if by is not None or printed is not None:
        legend_below(fig)
    return fig, f"{'; '.join(words)}."


@dataclass(frozen=True)
class _Columns:
    """Names of the columns that are drawn, as in `dots_plot`: values, their intervals by both ends
    or by half the width, and the paper's values.
    """

    value: str
    low: str | None = None
    high: str | None = None
    spread: str | None = None
    printed: str | None = None

    def ends(self, frame: pd.DataFrame) -> tuple[pd.Series, pd.Series] | tuple[None, None]:
        """Both ends of the intervals; None without any."""
        if self.spread is not None:
            half = frame[self.spread].fillna(0.0)
            return frame[self.value] - half, frame[self.value] + half
        if self.low is None or self.high is None:
            return None, None
        return frame[self.low], frame[self.high]

    def bars(self, frame: pd.DataFrame) -> np.ndarray | None:
        """Lengths of the bars below and above the values, shape (2, n); an infinite end has no
        bar.
        """
        low, high = self.ends(frame)
        if low is None or high is None:
            return None
        lengths = np.stack([frame[self.value] - low, high - frame[self.value]]).astype(float)
        return np.maximum(np.nan_to_num(lengths, posinf=0.0), 0.0)


def _row_labels(frame: pd.DataFrame, names: list[str]) -> pd.Series:
    """The label of each row: the cells of these columns joined by commas, in lines that a phone has
    room for.
    """
    cells = frame[names].map(lambda cell: f"{cell:g}" if isinstance(cell, float) else str(cell))
    labels: list[str] = []
    for row in cells.to_numpy():
        # No line ends at an equals sign or before a delta.
        label = ", ".join(row).replace(" = ", "\u00a0=\u00a0").replace(" δ", "\u00a0δ")
        labels.append(textwrap.fill(label, _LONGEST))
    return pd.Series(labels)


def _draw_dots(
    axes: Axes,
    labels: pd.Series,
    in_panel: pd.DataFrame,
    by: str | None,
    columns: _Columns,
    series_count: int,
) -> tuple[list[str], list[tuple[str, pd.DataFrame]]]:
    """Draw a panel.

    Args:
        labels: Name of each row of ``in_panel``, by the index of that frame.
        by: Column that tells the series apart, drawn side by side; None for a single one.
        columns: Which columns hold the value and its ends.
        series_count: Series of the whole figure, by which their dots are set apart.

    Returns:
        The rows' names from top to bottom, and each series: its name, "" for a single one, and a
            frame with a row for each of the names.
    """
    if by is None:
        names = list(labels)
        _draw_one_series(axes, names, in_panel, columns)
        return names, [("", in_panel)]
    names = list(dict.fromkeys(labels))
    drawn: list[tuple[str, pd.DataFrame]] = []
    for series, in_series in _groups(in_panel, by):
        drawn.append((series, in_series.set_axis(labels[in_series.index]).reindex(names)))
    _draw_series_apart(axes, drawn, columns, series_count)
    return names, drawn


def _draw_one_series(axes: Axes, names: list[str], frame: pd.DataFrame, columns: _Columns) -> None:
    """A row for each name, from top to bottom, with interval and the paper's value."""
    low, high = columns.ends(frame)
    paper = None if columns.printed is None else frame[columns.printed]
    dot_rows(axes, names, frame[columns.value], low=low, high=high, printed=paper)


def _draw_series_apart(
    axes: Axes, drawn: list[tuple[str, pd.DataFrame]], columns: _Columns, count: int
) -> None:
    """Rows of several series, a little apart from each other, so that no bar hides another.

    Every frame has the same rows from top to bottom, and ``count`` is the number of series of the
    whole figure.
    """
    gap = min(0.22, 0.7 / count)  # of the distance between rows, which is 1
    for index, (series, frame) in enumerate(drawn):
        heights = np.arange(len(frame))[::-1] + gap * ((count - 1) / 2 - index)
        look: dict[str, Any] = {"ls": "", "ms": 4, "label": series, **_look(index)}
        axes.errorbar(frame[columns.value], heights, xerr=columns.bars(frame), **look)
        if columns.printed is not None:
            look = {
                "color": COLORS[index % len(COLORS)],
                "ms": 7,
                "mew": 2,
                "label": f"the paper, {series}",
            }
            axes.plot(frame[columns.printed], heights, "x", **look)


def _groups(frame: pd.DataFrame, column: str | None) -> list[tuple[str, pd.DataFrame]]:
    """The rows of each value of a column, in the order of the frame, under a name to show: the
    value, or its heading where it is a column in ``columns.csv``. Without a column all rows are one
    group, "".
    """
    if column is None:
        return [("", frame)]
    groups: list[tuple[str, pd.DataFrame]] = []
    for value, group in frame.groupby(column, sort=False):
        name = str(value)
        heading, _ = known_columns().get(name, (name, False))
        groups.append((heading, group))
    return groups


def _look(index: int) -> dict[str, Any]:
    """Colour and marker of a series."""
    return {"color": COLORS[index % len(COLORS)], "marker": MARKERS[index % len(MARKERS)]}


def number(value: float) -> str:
    """A number in a description: two decimals, or two digits where it is small."""
    return f"{value:z.2f}" if abs(value) >= 0.05 or value == 0 else f"{value:.2g}"


def _in_words(
    titles: list[str], subject: str, names: list[str], frame: pd.DataFrame, columns: _Columns
) -> str:
    """A series in words: its titles, or else the subject, and each name with its value and that of
    the paper; ``names`` has one for each row of ``frame``, and missing values are left out.
    """
    cells: list[str] = []
    for name, row in zip(names, frame.to_dict("records"), strict=True):
        if pd.isna(row[columns.value]):
            continue
        cell = f"{name} {number(row[columns.value])}"
        if columns.printed is not None and not pd.isna(row[columns.printed]):
            cell += f" (the paper {number(row[columns.printed])})"
        cells.append(cell)
    title = ", ".join(filter(None, titles)) or subject
    return f"{title}: {', '.join(cells)}".replace("\n", " ")


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

    Of several rows at one place it shows the mean and the standard deviation.

    Args:
        x, y: Columns with the places of the points.
        by, panel: Columns with a line, and a panel, for each of their values.
        low, high, spread: Columns with both ends of the intervals, or with half their width.
        band: Draw the intervals as a band and not as bars.
        dots: Mark the points; without, a curve of every row.
        even: Points at even distances, whatever the values of ``x`` in a panel, which become its
            labels.
        marks: Label and height of dotted horizontal lines.
        height: Height of a panel, inches.

    Raises:
        KeyError: A column that the frame lacks.

    >>> sizes = pd.DataFrame({"m": [100, 200], "bound": [0.25, 0.5]})
    >>> lines_plot(sizes, x="m", y="bound", xlabel="m", ylabel="bound (nats)")[1]
    'bound (nats) over m from 100 to 200: from 0.25 to 0.50.'
    """
    groups = _groups(frame, panel)
    names = [name for name, _ in _groups(frame, by)]
    lines = _Lines(x, _Columns(y, low, high, spread), names, band=band, dots=dots, even=even)
    fig, all_axes = panels(len(groups), height=height, share_x=not even)
    words: list[str] = []
    for axes, (title, in_panel) in zip(all_axes, groups, strict=True):
        ticks = sorted(in_panel[x].dropna().unique())
        for series, in_series in _groups(in_panel, by):
            lines.draw(axes, in_series, series, ticks)
            words.append(", ".join(filter(None, [title, series, lines.in_words(in_series)])))
        for label, mark in (marks or {}).items():
            axes.axhline(mark, color="black", linewidth=1, linestyle=":", label=label)
        axes.set_title(title, loc="left")
        axes.set(ylabel=ylabel, yscale=yscale)
        if even:
            axes.set_xticks(range(len(ticks)), [f"{tick:g}".replace("inf", "∞") for tick in ticks])
        else:
            axes.set_xscale(xscale)
    all_axes[-1].set_xlabel(xlabel)
    if len(names) > 1 or marks:
        legend_below(fig)
    range_of_x = f"{xlabel} from {frame[x].min():g} to {frame[x].max():g}"
    return fig, f"{ylabel} over {range_of_x}: {'; '.join(words)}."


@dataclass(frozen=True)
class _Lines:
    """How the lines of a figure are drawn: arguments of `lines_plot`, and the names of series."""

    x: str
    columns: _Columns
    names: list[str]
    band: bool
    dots: bool
    even: bool

    def draw(self, axes: Axes, frame: pd.DataFrame, name: str, ticks: list[Any]) -> None:
        """Draw one series, with a band or bars where it has intervals.

        ``ticks`` are the different x of the panel; points at even distances stand at their numbers.
        """
        line, columns = self._line(frame)
        index = self.names.index(name)
        across = line[self.x]
        if self.even:  # with the series a little apart
            across = across.map(ticks.index) + 0.09 * (index - (len(self.names) - 1) / 2)
        look: dict[str, Any] = _look(index) if self.dots else {"color": COLORS[index % len(COLORS)]}
        look |= {"linestyle": LINES[index % len(LINES)], "label": name or None}
        low, high = columns.ends(line)
        if self.band and low is not None and high is not None:
            axes.plot(across, line[columns.value], **look)
            axes.fill_between(across, low, high, alpha=0.15, color=look["color"], lw=0)
        else:
            bars = columns.bars(line)
            axes.errorbar(across, line[columns.value], yerr=bars, elinewidth=1, **look)

    def in_words(self, frame: pd.DataFrame) -> str:
        """The first and the last value of a series, by x, leaving out NaN."""
        line, columns = self._line(frame)
        numbers = line[columns.value].dropna()
        return f"from {number(numbers.iloc[0])} to {number(numbers.iloc[-1])}"

    def _line(self, frame: pd.DataFrame) -> tuple[pd.DataFrame, _Columns]:
        """A series by x, and its columns: its rows, or mean and standard deviation at each x where
        points are marked and several rows have one x.
        """
        ordered = frame.sort_values(self.x, kind="stable")
        if not (self.dots and ordered[self.x].duplicated().any()):
            return ordered, self.columns
        value = self.columns.value
        means = ordered.groupby(self.x)[value].agg(["mean", "std"]).reset_index()
        means = means.set_axis([self.x, value, _DEVIATION], axis=1)
        return means, _Columns(value, spread=_DEVIATION)


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
    """A point for each row, at the columns ``x`` and ``y``, in the colour and marker of its series,
    which the column ``by`` names; ``diagonal`` adds the line on which both are equal. A KeyError
    for a column that the frame lacks.

    >>> rows = pd.DataFrame({"kind": ["a", "a"], "x": [1.0, 2.0], "y": [2.0, 3.0]})
    >>> points_plot(rows, x="x", y="y", by="kind", xlabel="x", ylabel="y")[1]
    'Median of x and of y: a 1.50 and 2.50.'
    """
    fig, (axes,) = panels(height=height)
    words = []
    for index, (series, in_series) in enumerate(_groups(frame, by)):
        across, up = in_series[x], in_series[y]
        axes.plot(across, up, linestyle="", alpha=0.7, label=series, **_look(index))
        words.append(f"{series} {number(across.median())} and {number(up.median())}")
    if diagonal:
        points = frame[[x, y]].to_numpy(dtype=float)
        ends = [np.nanmin(points), np.nanmax(points)]
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
        values = {kind: np.asarray(numbers, dtype=float) for kind, numbers in kinds.items()}
        edges = np.histogram_bin_edges(np.concatenate(list(values.values())), bins=bins)
        medians: list[str] = []
        for index, (kind, numbers) in enumerate(values.items()):
            shares = np.histogram(numbers, edges)[0] / numbers.size
            look: dict[str, Any] = {"color": COLORS[index], "linestyle": LINES[index]}
            axes.stairs(shares, edges, label=kind, linewidth=1.6, **look)
            medians.append(f"{kind} {number(float(np.median(numbers)))}")
        axes.set_title(title, loc="left")
        axes.set_ylabel("share")
        words.append(f"{title}: {', '.join(medians)}")
    all_axes[-1].set_xlabel(xlabel)
    legend_below(fig)
    return fig, f"Median {xlabel}: {'; '.join(words)}."


def shares_plot(
    frame: pd.DataFrame, *, value: str, by: str, xlabel: str, panel: str | None = None
) -> Plot:
    """The share of values at or below each point of [0, 1], as of p-values, with the diagonal: a
    line for each value of the column ``by``, a panel for each of ``panel``.

    >>> tests = pd.DataFrame({"test": ["a", "a"], "p": [0.01, 0.5]})
    >>> shares_plot(tests, value="p", by="test", xlabel="p-value")[1]
    'Share of values up to 0.05: a 0.50.'
    """
    groups = _groups(frame, panel)
    fig, all_axes = panels(len(groups), share_x=True)
    words = []
    for axes, (title, in_panel) in zip(all_axes, groups, strict=True):
        for index, (series, in_series) in enumerate(_groups(in_panel, by)):
            ordered = in_series[value].sort_values()
            shares = np.arange(1, len(ordered) + 1) / len(ordered)
            axes.plot(ordered, shares, color=COLORS[index], ls=LINES[index], label=series)
            name = ", ".join(filter(None, [title, series]))
            words.append(f"{name} {number((ordered <= 0.05).mean())}")
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
        gap = max(1, images.shape[-1] // 7)  # white pixels behind each image but the last
        padded = np.pad(images[:columns], ((0, 0), (0, 0), (0, 0), (0, gap)), constant_values=255)
        side_by_side = np.concatenate(list(padded), axis=2)[:, :, :-gap]
        strip = np.moveaxis(side_by_side, 0, 2)
        axes.imshow(strip, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
        axes.set(xticks=[], yticks=[])
        axes.grid(visible=False)
        axes.set_title(name, loc="left", pad=3)
        axes.spines[:].set_visible(False)
    means = ", ".join(f"{name} {images.mean():.0f}" for name, images in rows.items())
    return fig, f"Rows of small images, with the mean grey value out of 255: {means}."
