"""`show_table`: a numbered, captioned table in the book, an HTML table in Jupyter, and its CSV."""

import csv
import html
import math
import numbers
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from paperlib.core import round_down
from paperlib.report.display import Bundle, check_name, folded_origin, keep_csv, one_line, show

if TYPE_CHECKING:
    import pandas as pd

_MISSING = ("NoneType", "NAType", "NaTType")
"""Types of a missing value: None, and those of pandas, which is not loaded to know them."""


def show_table(
    frame: "pd.DataFrame",
    *,
    name: str,
    caption: str,
    columns: str | Mapping[str, str] | None = None,
    lower_bounds: Iterable[str] = (),
    digits: int = 2,
    origin: str = "",
) -> None:
    """Show a table, which the book numbers and names ``tbl-<name>``, and keep its CSV, with every
    digit.

    Args:
        name: Slug, unique within the notebook: lower-case words joined by hyphens.
        caption: Caption in MyST Markdown.
        columns: Columns that the page shows, by default all, such as ``"target, m, eps_tilde"``.
            Several may share a cell, as in ``"rate (low to high)"``, under the first one's heading;
            where another one is missing, the first stands alone. A mapping gives names and
            headings.
        lower_bounds: Columns that hold lower bounds, beside those of ``columns.csv``: shown rounded
            down.
        digits: Number of decimals shown, 1 or more; numbers below 0.1 have as many significant
            digits.
        origin: Where and when the numbers were measured, if not in this run; folded under the
            table.

    Raises:
        ValueError: A bad or taken name, an empty caption, an empty frame, an unknown column.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"m": [100, 400], "epsilon": [0.5, 1.638], "sd": 0.25})
    >>> columns = "m, epsilon ± sd"
    >>> show_table(frame, name="gain", caption="Means", columns=columns, lower_bounds=["epsilon"])
    Means
    | m   | ε           |
    | --- | ----------- |
    | 100 | 0.50 ± 0.25 |
    | 400 | 1.63 ± 0.25 |
    """
    import pandas as pd  # slow to load; the cells of a report need no frame

    check_name(name)
    caption = one_line("caption", caption)
    if frame.empty:
        raise ValueError(f"frame: the table {name!r} has no cells")
    bounds = _known_columns(frame, "lower_bounds", lower_bounds)
    bounds |= {str(column) for column in frame.columns if _is_lower_bound(str(column))}
    shown_columns = _shown_columns(frame, columns)
    _known_columns(frame, "columns", [name for column in shown_columns for name in column.names])
    texts = {
        column.pattern: _column_texts(frame, column, bounds, digits=digits)
        for column in shown_columns
    }
    table = pd.DataFrame(texts)
    table = table.set_axis([column.heading for column in shown_columns], axis=1)
    link, download = keep_csv(name, frame.to_csv(index=False))
    pipes = pipe_table(table)
    markdown = f"````{{table}} {caption}\n:name: tbl-{name}\n\n{pipes}\n````\n"
    page_origin, folded = folded_origin(origin)
    markdown += "".join(f"\n{block}\n" for block in (download, folded) if block)
    page = _html_table(table, caption, link) + page_origin
    show(Bundle(html=page, markdown=markdown, text=f"{caption}\n{pipes}"))


@dataclass(frozen=True)
class _ShownColumn:
    """A column of the page: its heading, and the columns of the frame that share its cells.

    In each cell the names in the pattern, such as "rate (low to high)", become their values.
    """

    heading: str
    pattern: str
    names: list[str]


def _shown_columns(
    frame: "pd.DataFrame", columns: str | Mapping[str, str] | None
) -> list[_ShownColumn]:
    """The columns of the page, as the argument ``columns`` of `show_table` says: None shows all, a
    mapping gives names and headings, and a text names columns or patterns of them, by commas.
    """
    if isinstance(columns, Mapping):
        return [_ShownColumn(title, name, [name]) for name, title in columns.items()]
    in_frame = list(map(str, frame.columns))
    patterns = in_frame if columns is None else map(str.strip, columns.split(","))
    shown_columns: list[_ShownColumn] = []
    for pattern in dict.fromkeys(patterns):
        # Of a pattern such as "rate (low to high)", the words that are columns.
        words = [pattern] if pattern in in_frame else re.findall(r"\w+", pattern)
        names = [word for word in words if word in in_frame] or [pattern]
        shown_columns.append(_ShownColumn(heading(names[0]), pattern, names))
    return shown_columns


def _column_texts(
    frame: "pd.DataFrame", column: _ShownColumn, bounds: set[str], *, digits: int
) -> list[str]:
    """The cells of a column of the page as text, shape (rows,), each number with ``digits``
    decimals; lower bounds, whose names are ``bounds``, are rounded down.
    """
    cells: list[list[str]] = []
    for name in column.names:
        values = frame[name].tolist()
        whole = not any(map(_has_decimals, values))  # shown so where all numbers are
        down = name in bounds
        cells.append([format_cell(cell, digits=digits, down=down, whole=whole) for cell in values])
    rows = zip(*cells, strict=True)
    return [_shared(column.pattern, dict(zip(column.names, row, strict=True))) for row in rows]


def _has_decimals(value: Any) -> bool:
    return isinstance(value, float) and math.isfinite(value) and value % 1 != 0


def _html_table(table: "pd.DataFrame", caption: str, link: str) -> str:
    """A table of texts in HTML, with its caption and the link to its CSV."""
    head = "".join(f"<th>{html.escape(str(name))}</th>" for name in table.columns)
    rows: list[str] = []
    for row in table.itertuples(index=False):
        cells = "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row)
        rows.append(f"<tr>{cells}</tr>")
    return (
        f"<table><caption>{html.escape(caption)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table><p>{link}</p>"
    )


@cache
def known_columns() -> dict[str, tuple[str, bool]]:
    """The columns that ``columns.csv`` names, by name: the heading of each, and whether it holds
    lower bounds.
    """
    file = resources.files("paperlib.report").joinpath("columns.csv")
    with file.open(encoding="utf-8") as lines:
        return {
            row["name"]: (row["heading"], row["lower_bound"] == "yes")
            for row in csv.DictReader(lines)
        }


def _is_lower_bound(name: str) -> bool:
    return name in known_columns() and known_columns()[name][1]


def heading(name: str) -> str:
    """The heading of a column: that of ``columns.csv``, or the name itself, as words."""
    if name in known_columns():
        return known_columns()[name][0]
    words = name.replace("_", " ")
    return words[:1].upper() + words[1:] if len(words) > 1 and words.islower() else words


def _known_columns(frame: "pd.DataFrame", argument: str, names: Iterable[str]) -> set[str]:
    """The names as a set; a ValueError, which begins with ``argument``, where the frame
    lacks one.
    """
    known = set(names)
    unknown = known - set(map(str, frame.columns))
    if unknown:
        raise ValueError(
            f"{argument}: no column {', '.join(map(repr, sorted(unknown)))}; "
            f"the columns are {', '.join(map(repr, frame.columns))}"
        )
    return known


def _shared(pattern: str, cells: Mapping[str, str]) -> str:
    """One cell of several columns: in the pattern, such as "rate (low to high)", each name becomes
    its text in ``cells``; where a text is missing ("–"), the first stands alone.
    """
    first, *others = cells.values()
    if not others or "–" in (first, *others):
        return first
    return re.sub(r"\w+", lambda name: cells.get(name[0], name[0]), pattern)


def format_cell(value: Any, *, digits: int = 2, down: bool = False, whole: bool = True) -> str:
    """One cell as text: whole numbers in full, others with ``digits`` decimals, "–" for missing.

    Numbers below 0.1 have ``digits`` significant digits in place of decimals. ``whole=False`` gives
    whole floats decimals too, as in a column with others.

    >>> format_cell(1.23456), format_cell(0.000126), format_cell(51200), format_cell(float("nan"))
    ('1.23', '0.00013', '51200', '–')
    >>> format_cell(1.63989, down=True), format_cell(True)
    ('1.63', 'yes')
    """
    if type(value).__name__ in _MISSING:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, numbers.Real):
        return str(value)
    number = float(value)
    in_full = whole or isinstance(value, numbers.Integral)
    if in_full and number.is_integer() and abs(number) < 1e9:
        return str(int(number))
    return _format_number(number, digits, down=down)


def _format_number(number: float, digits: int, *, down: bool) -> str:
    """A number with ``digits`` decimals, below 0.1 with as many significant digits, and with a
    power of ten where it is large or tiny; ``down`` rounds toward minus infinity.
    """
    if math.isnan(number):
        return "–"
    if math.isinf(number):
        return "∞" if number > 0 else "−∞"
    decimals = digits
    if 0 < abs(number) < 0.1:
        decimals = digits - 1 - math.floor(math.log10(abs(number)))
    if down:
        number = round_down(number, decimals)
    if abs(number) >= 1e6 or 0 < abs(number) < 1e-4:
        return f"{number:.{digits}e}"
    return f"{number:z.{decimals}f}"


def pipe_table(table: "pd.DataFrame") -> str:
    """A Markdown pipe table of text cells, its columns' names as headings, padded to one width.

    Runs of spaces and line ends become one space, and "|" is escaped.
    """
    rows = [list(map(_escape, table.columns))]
    rows += [list(map(_escape, row)) for row in table.itertuples(index=False)]
    widths = [max(3, *map(len, column)) for column in zip(*rows, strict=True)]
    rows.insert(1, ["-" * width for width in widths])
    return "\n".join(_pipe_row(row, widths) for row in rows)


def _pipe_row(cells: list[str], widths: list[int]) -> str:
    padded = [cell.ljust(width) for cell, width in zip(cells, widths, strict=True)]
    return f"| {' | '.join(padded)} |"


def _escape(cell: Any) -> str:
    # Not str.split(), which would also break at a no-break space.
    return re.sub(r"[ \t\r\n]+", " ", str(cell)).strip(" ").replace("|", "\\|")
