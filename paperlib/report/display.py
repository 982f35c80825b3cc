"""How a table or figure reaches both Jupyter and the book: one MIME bundle, and a CSV beside the result."""

import base64
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

RESULTS_VARIABLE = "PAPERLIB_RESULTS"
"""Folder the runner collects a notebook's CSVs and records from; unset in plain Jupyter."""

NOTEBOOK_VARIABLE = "PAPERLIB_NOTEBOOK"
"""Stem of the notebook being run; unset in plain Jupyter."""

COMMAND_VARIABLE = "PAPERLIB_COMMAND"
"""The command that repeats the run; unset in plain Jupyter."""

RECORDS_FILE = "records.jsonl"
"""File in the run's folder that gets one line per table or figure of a paper."""

DATA_FOLDER = "_generated/data"
"""Folder of the CSVs below the book's source folder."""

_SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


class Bundle:
    """Something to show: HTML for Jupyter, MyST Markdown for the book, text for a terminal.

    The book prefers the Markdown, so that captions are numbered and can be referred to.
    """

    def __init__(self, *, html: str, markdown: str, text: str) -> None:
        self.html, self.markdown, self.text = html, markdown, text

    def __repr__(self) -> str:
        return self.text

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/html": self.html, "text/markdown": self.markdown, "text/plain": self.text}


def show(bundle: Bundle) -> None:
    """Display a bundle in the running notebook; outside one, print its text."""
    ipython: Any = sys.modules.get("IPython")  # loaded wherever a notebook runs
    if ipython is None or ipython.get_ipython() is None:
        print(bundle.text)
    else:
        ipython.display.display(bundle)


def check_name(name: str) -> str:
    """Return a slug that can serve as file name and as label.

    Raises:
        ValueError: Anything but lower-case words joined by hyphens.

    >>> check_name("gain-by-m")
    'gain-by-m'
    """
    if not _SLUG.fullmatch(name):
        raise ValueError(
            f"name: expected lower-case words joined by hyphens, such as 'gain-by-m', got {name!r}"
        )
    return name


def one_line(name: str, text: str) -> str:
    """Return ``text`` with its white space folded to single spaces.

    Raises:
        ValueError: Nothing is left.
    """
    folded = " ".join(text.split())
    if not folded:
        raise ValueError(f"{name}: expected words, got {text!r}")
    return folded


def notebook_name() -> str:
    """Stem of the notebook being run; "notebook" in plain Jupyter."""
    return os.environ.get(NOTEBOOK_VARIABLE, "notebook")


def results_folder() -> Path | None:
    """The folder a run collects its CSVs and records in, or None outside a run."""
    folder = os.environ.get(RESULTS_VARIABLE)
    return Path(folder) if folder else None


def keep_line(file_name: str, line: dict[str, Any]) -> None:
    """Add a line of JSON to a file of the run's folder; outside a run nothing is written."""
    folder = results_folder()
    if folder is not None:
        with (folder / file_name).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, sort_keys=True, ensure_ascii=False) + "\n")


def kept_lines(file_name: str) -> list[dict[str, Any]]:
    """The lines that `keep_line` has added to a file of the run's folder; none outside a run."""
    folder = results_folder()
    path = folder / file_name if folder is not None else None
    if path is None or not path.is_file():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def keep_csv(name: str, text: str) -> tuple[str, str]:
    """Write ``<name>.csv`` beside the result and return its link as HTML and as MyST.

    Outside a run nothing is written: the HTML link carries the table itself, and the MyST link is empty.

    Raises:
        ValueError: A second table or figure of this run has the same name.
    """
    folder = results_folder()
    data = base64.b64encode(text.encode()).decode()
    link = f"<a download='{name}.csv' href='data:text/csv;base64,{data}'>{name}.csv</a>"
    if folder is None:
        return link, ""
    path = folder / f"{name}.csv"
    if path.exists():
        raise ValueError(f"name: {name!r} is taken by another table or figure of this notebook")
    path.write_text(text, encoding="utf-8")
    return link, f"{{download}}`{name}.csv </{DATA_FOLDER}/{notebook_name()}/{name}.csv>`"
