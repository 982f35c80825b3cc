"""`show_table`: a numbered, captioned table in the book, an HTML table in Jupyter, and its CSV."""

import html
import math
import numbers
import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from typing import Any

import pandas as pd

from paperlib.core import round_down
from paperlib.report.display import Bundle, check_name, keep_csv, one_line, show


def show_table(
    frame: pd.DataFrame,
    *,
    name: str,
    caption: str,
    columns: str | Mapping[str, str] | None = None,
    lower_bounds: Iterable[str] = (),
    digits: int = 2,
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

    Raises:
        ValueError: A bad or taken name, an empty caption, an empty frame, an unknown column.

    >>> frame = pd.DataFrame({"m": [100, 400], "epsilon": [0.5, 1.638], "sd": 0.25})
    >>> columns = "m, epsilon ± sd"
    >>> show_table(frame, name="gain", caption="Means", columns=columns, lower_bounds=["epsilon"])
    Means
    | m   | ε           |
    | --- | ----------- |
    | 100 | 0.50 ± 0.25 |
    | 400 | 1.63 ± 0.25 |
    """
    check_name(name)
    caption = one_line("caption", caption)
    if frame.empty:
        raise ValueError(f"frame: the table {name!r} has no cells")
    bounds = _known_columns(frame, "lower_bounds", lower_bounds)
    bounds |= {str(one) for one in frame.columns if known_columns().get(str(one), ("", False))[1]}
    if isinstance(columns, Mapping):
        titles = dict(columns)
        items = {name: [name] for name in titles}
    else:
        known = set(map(str, frame.columns))
        wanted = map(str, frame.columns) if columns is None else map(str.strip, columns.split(","))
        items = dict[str, list[str]]()
        for one in wanted:
            parts = [one] if one in known else re.findall(r"\w+", one)
            items[one] = [name for name in parts if name in known] or [one]
        titles = {item: heading(names[0]) for item, names in items.items()}
    _known_columns(frame, "columns", [name for names in items.values() for name in names])
    texts: dict[str, list[str]] = {}
    for item, parts in items.items():
        cells = []
        for part in parts:  # whole where all its numbers are
            values = frame[part].tolist()
            whole = not any(
                isinstance(one, float) and math.isfinite(one) and one % 1 for one in values
            )
            down = part in bounds
            cells.append(
                [format_cell(one, digits=digits, down=down, whole=whole) for one in values]
            )
        texts[item] = [
            _shared(item, dict(zip(parts, row, strict=True))) for row in zip(*cells, strict=True)
        ]
    shown = pd.DataFrame(texts).rename(columns=titles)
    link, download = keep_csv(name, frame.to_csv(index=False))
    pipes = pipe_table(shown)
    markdown = f"````{{table}} {caption}\n:name: tbl-{name}\n\n{pipes}\n````\n"
    markdown += f"\n{download}\n" if download else ""
    head = "".join(f"<th>{html.escape(str(name))}</th>" for name in shown.columns)
    rows = "".join(
        "<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>"
        for row in shown.itertuples(index=False)
    )
    page = (
        f"<table><caption>{html.escape(caption)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{rows}</tbody></table><p>{link}</p>"
    )
    show(Bundle(html=page, markdown=markdown, text=f"{caption}\n{pipes}"))


@cache
def known_columns() -> dict[str, tuple[str, bool]]:
    """Heading of each column that ``columns.csv`` names, and whether it holds lower bounds."""
    file = resources.files("paperlib.report").joinpath("columns.csv")
    with file.open(encoding="utf-8") as lines:
        rows = pd.read_csv(lines, dtype=str, keep_default_na=False).to_dict("records")
    return {row["name"]: (row["heading"], row["lower_bound"] == "yes") for row in rows}


def heading(name: str) -> str:
    """The heading of a column: that of ``columns.csv``, or the name itself, as words."""
    if name in known_columns():
        return known_columns()[name][0]
    words = name.replace("_", " ")
    return words[:1].upper() + words[1:] if len(words) > 1 and words.islower() else words


def _known_columns(frame: pd.DataFrame, argument: str, wanted: Iterable[str]) -> set[str]:
    chosen = set(wanted)
    if unknown := chosen - set(map(str, frame.columns)):
        raise ValueError(
            f"{argument}: no column {', '.join(map(repr, sorted(unknown)))}; "
            f"the columns are {', '.join(map(repr, frame.columns))}"
        )
    return chosen


def _shared(item: str, cells: Mapping[str, str]) -> str:
    """One cell of several columns: their texts in place of their names."""
    first, *others = cells.values()
    if "–" in (first, *others):
        return first
    return re.sub(r"\w+", lambda name: cells.get(name[0], name[0]), item) if others else first


def format_cell(value: Any, *, digits: int = 2, down: bool = False, whole: bool = True) -> str:
    """One cell as text: whole numbers in full, others with ``digits`` decimals, "–" for missing.

    Numbers below 0.1 have ``digits`` significant digits in place of decimals. ``whole=False`` gives
    whole floats decimals too, as in a column with others.

    >>> format_cell(1.23456), format_cell(0.000126), format_cell(51200), format_cell(float("nan"))
    ('1.23', '0.00013', '51200', '–')
    >>> format_cell(1.63989, down=True), format_cell(True)
    ('1.63', 'yes')
    """
    if value is None or value is pd.NA or value is pd.NaT:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, numbers.Real):
        return str(value)
    number = float(value)
    if math.isnan(number):
        return "–"
    if math.isinf(number):
        return "∞" if number > 0 else "−∞"
    if number.is_integer() and abs(number) < 1e9 and (whole or isinstance(value, numbers.Integral)):
        return str(int(number))
    places = digits - 1 - math.floor(math.log10(abs(number))) if 0 < abs(number) < 0.1 else digits
    if down:
        number = round_down(number, places)
    if abs(number) >= 1e6 or 0 < abs(number) < 1e-4:
        return f"{number:.{digits}e}"
    return f"{number:z.{places}f}"


def pipe_table(shown: pd.DataFrame) -> str:
    """A Markdown pipe table of text cells."""
    escaped = [[_escape(name) for name in shown.columns]]
    escaped += [[_escape(cell) for cell in row] for row in shown.itertuples(index=False)]
    widths = [max(3, *(len(row[at]) for row in escaped)) for at in range(len(escaped[0]))]
    escaped.insert(1, ["-" * width for width in widths])
    rows = ([cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in escaped)
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _escape(cell: Any) -> str:
    # Not str.split(), which would also break at a no-break space.
    return re.sub(r"[ \t\r\n]+", " ", str(cell)).strip(" ").replace("|", "\\|")
