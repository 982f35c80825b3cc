"""`show_figure`: a numbered figure with alt text in the book, an image in Jupyter, and its data as CSV."""

import base64
import html
import io
import json

import matplotlib as mpl
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from paperlib.report.display import Bundle, check_name, keep_csv, one_line, show
from paperlib.report.style import points_on_a_phone

SMALLEST = "smallest text on a phone, pt:"  # the description inside an SVG; its number follows


def show_figure(
    figure: Figure | tuple[Figure, str],
    *,
    name: str,
    caption: str,
    alt: str = "",
    data: pd.DataFrame | None = None,
    invert: bool = True,
) -> None:
    """Show a figure, which the book numbers and names ``fig-<name>``, with its description, and close it.

    Args:
        figure: A figure, or a figure and its description, as the functions of `plots` give them.
        name, caption: As for `show_table`.
        alt: Description, for readers who cannot see the figure; follows the figure's own, if any.
        data: Numbers that the figure draws, kept as CSV and linked under it.
        invert: True to turn light to dark in dark mode; False for heat maps and photographs.
    """
    check_name(name)
    fig, words = (figure, "") if isinstance(figure, Figure) else figure
    caption, alt = one_line("caption", caption), one_line("alt", f"{words} {alt}".strip())
    uri = svg_uri(fig)
    plt.close(fig)
    link, download = ("", "") if data is None else keep_csv(name, data.to_csv(index=False))
    page = (
        f"<figure><img src='{uri}' alt='{html.escape(alt, quote=True)}' style='background: white'>"
        f"<figcaption>{html.escape(caption)} {link}</figcaption></figure>"
    )
    # Alt text as JSON: without the quotes a '#' would cut it short.
    options = [f":alt: {json.dumps(alt, ensure_ascii=False)}", f":name: fig-{name}"]
    if invert:
        options += [":class: dark-light", ":figclass: themed"]
    body = f"{caption}\n\n{download}" if download else caption
    markdown = f"````{{figure}} {uri}\n" + "\n".join(options) + f"\n\n{body}\n````\n"
    show(Bundle(html=page, markdown=markdown, text=f"{caption}\n[{alt}]"))


def svg_text(fig: Figure) -> str:
    """The figure as transparent SVG; the same figure gives the same text."""
    buffer = io.StringIO()
    # Letters become outlines: inside an <img> no font of the page can be used.
    with mpl.rc_context({"svg.hashsalt": "paperlib", "svg.fonttype": "path"}):
        about = {"Date": None, "Description": f"{SMALLEST} {points_on_a_phone(fig):.2f}"}
        fig.savefig(buffer, format="svg", transparent=True, bbox_inches="tight", metadata=about)
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def svg_uri(fig: Figure) -> str:
    """The figure as a ``data:`` address, which needs no file and no network."""
    return "data:image/svg+xml;base64," + base64.b64encode(svg_text(fig).encode()).decode()
