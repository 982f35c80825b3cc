"""Figures: one look for all, and `show_figure`: numbered, with alt text in the book, and its data
as CSV.
"""

import base64
import html
import io
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.rcsetup import cycler
from matplotlib.text import Text

from paperlib.report.display import Bundle, check_name, folded_origin, keep_csv, one_line, show

WIDTH = 4.5  # of a figure, inches
PHONE = 342.0  # width of a figure on a phone of 390 pixels, CSS pixels
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
"""Colours that colour-blind readers tell apart (Okabe and Ito, 2008), blue first."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
"""Markers of the series, in the order of `COLORS`."""
LINES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1, 1, 1)), (0, (1, 3)))
"""Dashes of the series, in the order of `COLORS`."""
_STYLE = Path(__file__).with_suffix(".mplstyle")
SMALLEST_TEXT = "smallest text on a phone, pt:"  # the description inside an SVG; its size follows


def show_figure(
    figure: Figure | tuple[Figure, str],
    *,
    name: str,
    caption: str,
    alt: str = "",
    data: pd.DataFrame | None = None,
    invert: bool = True,
    origin: str = "",
) -> None:
    """Show a figure, which the book numbers and names ``fig-<name>``, with its description, and
    close it.

    Args:
        figure: A figure, or a figure and its description, as the functions of `plots` give them.
        name: Slug, unique within the notebook: lower-case words joined by hyphens.
        caption: Caption in MyST Markdown.
        alt: Description, for readers who cannot see the figure; follows the figure's own. It may be
            left out only where ``figure`` brings its own.
        data: Numbers that the figure draws, kept as CSV and linked under it.
        invert: True to turn light to dark in dark mode; False for heat maps and photographs.
        origin: Where and when the numbers were measured, if not in this run; folded under the
            caption, which says what is seen.

    Raises:
        ValueError: No words in the caption, or no description: a figure without its own, and no
            ``alt``.
    """
    check_name(name)
    if isinstance(figure, Figure):
        fig = figure
        description = alt
    else:
        fig, own_description = figure
        description = f"{own_description} {alt}"
    caption = one_line("caption", caption)
    alt = one_line("alt", description)
    uri = svg_uri(fig)
    plt.close(fig)
    link, download = ("", "") if data is None else keep_csv(name, data.to_csv(index=False))
    page_origin, folded = folded_origin(origin)
    page = (
        f"<figure><img src='{uri}' alt='{html.escape(alt, quote=True)}' style='background: white'>"
        f"<figcaption>{html.escape(caption)} {link}{page_origin}</figcaption></figure>"
    )
    # Alt text as JSON: without the quotes a '#' would cut it short.
    options = [f":alt: {json.dumps(alt, ensure_ascii=False)}", f":name: fig-{name}"]
    if invert:
        # In dark mode, dark-light: the theme neither dims the image nor puts a background behind
        # it; themed: book/_static/custom.css turns light to dark.
        options += [":class: dark-light", ":figclass: themed"]
    body = "\n\n".join(filter(None, [caption, download, folded]))
    markdown = f"````{{figure}} {uri}\n" + "\n".join(options) + f"\n\n{body}\n````\n"
    show(Bundle(html=page, markdown=markdown, text=f"{caption}\n[{alt}]"))


def svg_text(fig: Figure) -> str:
    """The figure as transparent SVG; the same figure gives the same text.

    Its description holds the size of its smallest text, which a test of the notebooks reads:
    letters are outlines, so that the SVG itself no longer tells it.
    """
    buffer = io.StringIO()
    # Letters become outlines: inside an <img> no font of the page can be used.
    with mpl.rc_context({"svg.hashsalt": "paperlib", "svg.fonttype": "path"}):
        description = f"{SMALLEST_TEXT} {points_on_a_phone(fig):.2f}"
        metadata = {"Date": None, "Description": description}  # no date: it would differ each time
        # The layout of the drawing that measured the text stays, in place of a second one.
        fig.set_layout_engine("none")
        fig.savefig(buffer, format="svg", transparent=True, bbox_inches="tight", metadata=metadata)
    return "<svg" + buffer.getvalue().partition("<svg")[2]


def svg_uri(fig: Figure) -> str:
    """The figure as a ``data:`` address, which needs no file and no network."""
    return "data:image/svg+xml;base64," + base64.b64encode(svg_text(fig).encode()).decode()


def panels(
    count: int = 1, *, height: float = 2.8, share_x: bool = False
) -> tuple[Figure, list[Axes]]:
    """A figure of ``count`` panels of this height (inches), and its panels from top to bottom, in
    the book's style, which stays set for later figures; ``share_x`` gives all the same x axis.

    >>> figure, (upper, lower) = panels(2)
    >>> figure.get_size_inches().tolist()
    [4.5, 5.6]
    >>> plt.close(figure)
    """
    plt.style.use([_STYLE, {"axes.prop_cycle": cycler(color=COLORS) + cycler(linestyle=LINES)}])
    fig, axes = plt.subplots(
        count,
        1,
        figsize=(WIDTH, height * count),
        layout="constrained",
        squeeze=False,
        sharex=share_x,
    )
    return fig, list(axes[:, 0])


def legend_below(fig: Figure, *, columns: int = 2) -> None:
    """Give a figure of `panels` one legend for all of them, below them; equal labels are named
    once.
    """
    entries: dict[str, Any] = {}
    for axes in fig.axes:
        handles, labels = axes.get_legend_handles_labels()
        entries |= dict(zip(labels, handles, strict=True))
    for legend in list(fig.legends):
        legend.remove()
    if entries:
        fig.legend(list(entries.values()), list(entries), loc="outside lower center", ncols=columns)


def dot_rows(
    axes: Axes,
    labels: Sequence[str],
    values: pd.Series | Sequence[float],
    *,
    low: pd.Series | Sequence[float] | None = None,
    high: pd.Series | Sequence[float] | None = None,
    printed: pd.Series | Sequence[float] | None = None,
) -> None:
    """Draw a row for each value, from top to bottom, with its interval, and the paper's value as a
    cross.

    Args:
        labels: Name of each row.
        values, low, high: Each value and the ends of its interval, shape (rows,); NaN draws
            nothing. Without both ends there are no intervals.
        printed: The paper's values, shape (rows,), NaN for none.
    """
    rows = np.arange(len(labels))[::-1]
    middle = np.asarray(values, dtype=float)
    if low is not None and high is not None:
        below = middle - np.asarray(low, dtype=float)
        above = np.asarray(high, dtype=float) - middle
        bars = np.maximum(np.stack([below, above]), 0)  # an interval may lie beside its value
        axes.errorbar(middle, rows, xerr=bars, fmt="o", color=COLORS[0], label="here")
    else:
        axes.plot(middle, rows, marker="o", linestyle="", color=COLORS[0], label="here")
    if printed is not None:
        paper = np.asarray(printed, dtype=float)
        axes.plot(
            paper, rows, marker="x", ms=7, mew=2, linestyle="", color=COLORS[1], label="the paper"
        )
    axes.set_yticks(rows, list(labels))
    axes.set_ylim(-0.6, len(labels) - 0.4)


def points_on_a_phone(fig: Figure) -> float:
    """Size of the smallest text of a figure on a phone of 390 pixels, in points; infinite without
    text.
    """
    fig.draw_without_rendering()
    texts: list[Any] = fig.findobj(Text)
    visible = [text for text in texts if text.get_visible() and text.get_text().strip()]
    sizes = [float(text.get_fontsize()) for text in visible]
    box = fig.get_tightbbox()  # inches, of 96 CSS pixels each; a phone shrinks a wider figure
    scale = min(1.0, PHONE / (96 * box.width)) if box is not None and box.width > 0 else 1.0
    return min((size * scale for size in sizes), default=math.inf)
