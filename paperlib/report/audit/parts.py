"""Pieces of HTML that the sections of a report are built from; every text is escaped here."""

import html
import re
from collections.abc import Collection, Iterable, Sequence

from paperlib.core import round_down
from paperlib.core.results import round_up

_ADDRESS = re.compile(r"https?://[^\s<>\"']+")


def escape(text: object) -> str:
    """Text that is safe between tags and in quoted attributes.

    >>> escape("a < b")
    'a &lt; b'
    """
    return html.escape(str(text), quote=True)


def linked(text: str) -> str:
    """Escaped text with its web addresses as links; what is shown is the address itself.

    >>> linked("see https://example.org/a?b=1&c")
    "see <a href='https://example.org/a?b=1&amp;c'>https://example.org/a?b=1&amp;c</a>"
    """
    parts, end = [], 0
    for found in _ADDRESS.finditer(text):
        address = escape(found[0])
        parts += [escape(text[end : found.start()]), f"<a href='{address}'>{address}</a>"]
        end = found.end()
    return "".join([*parts, escape(text[end:])])


def paragraphs(texts: Iterable[str], style: str = "") -> str:
    """One paragraph for each text that is not empty."""
    opening = f"<p class='{style}'>" if style else "<p>"
    return "".join(f"{opening}{escape(text)}</p>" for text in texts if text)


def items(texts: Iterable[str], tag: str = "ul") -> str:
    """A list of texts; ``tag`` is "ul" or "ol"."""
    return f"<{tag}>{''.join(f'<li>{escape(text)}</li>' for text in texts)}</{tag}>"


def section(title: str, *body: str, name: str = "") -> str:
    """A section with its heading; "" where there is nothing to show."""
    content = "\n".join(filter(None, body))
    return (
        f"<section class='{name or 'part'}'>\n<h2>{escape(title)}</h2>\n{content}\n</section>"
        if content
        else ""
    )


def data_table(
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    name: str,
    values: Collection[int] = (),
    wide: bool = False,
) -> str:
    """A table whose first column names the row.

    Args:
        headings: One heading per column.
        rows: Cells as text.
        name: What a screen reader calls the table.
        values: Positions of columns whose cells stay on one line where there is room.
        wide: True for many columns, which a phone scrolls sideways.
    """
    head = "".join(f"<th scope='col'>{escape(one)}</th>" for one in headings)
    body = "".join(
        f"<tr><th scope='row'>{escape(first)}</th>"
        + "".join(_cell(one, at in values) for at, one in enumerate(rest, 1))
        + "</tr>"
        for first, *rest in rows
    )
    return (
        f"<div class='scroll' tabindex='0' role='region' aria-label='{escape(name)}'>"
        f"<table class='data{' wide' if wide else ''}'><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


def _cell(text: str, one_line: bool) -> str:
    return f"<td{' class=value' if one_line else ''}>{escape(text)}</td>"


def pairs_table(rows: Iterable[tuple[str, str]], *, links: bool = False) -> str:
    """A table of names and texts, in two columns."""
    shown = linked if links else escape
    body = "".join(
        f"<tr><th scope='row'>{escape(name)}</th><td>{shown(text)}</td></tr>" for name, text in rows
    )
    return f"<table class='pairs'><tbody>{body}</tbody></table>"


def with_interval(value: float, low: float, high: float, digits: int = 3) -> str:
    """A value with its interval, whose ends are rounded outwards.

    >>> with_interval(0.81234, 0.80189, 0.82211)
    '0.812 [0.801, 0.823]'
    """
    ends = round_down(low, digits), min(1.0, round_up(high, digits))
    return f"{value:.{digits}f} [{ends[0]:.{digits}f}, {ends[1]:.{digits}f}]"
