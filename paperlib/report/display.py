"""How a table or figure reaches both Jupyter and the book: one MIME bundle, and a CSV beside the
result.
"""

import base64
import hashlib
import html
import json
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

# Set by the runner, unset in plain Jupyter.
RESULTS_VARIABLE = "PAPERLIB_RESULTS"  # folder in which a run's CSVs and records are collected
NOTEBOOK_VARIABLE = "PAPERLIB_NOTEBOOK"  # stem of the notebook being run

# Files in that folder.
RECORDS_FILE = "records.jsonl"  # one line per table or figure of a paper
USED_DATA_FILE = "used_data.jsonl"  # one line per data set

DATA_FOLDER = "_generated/data"  # of the CSVs, below the book's source folder

_ORIGIN = "Where and when this was measured"  # beside what is seen, which a caption says
_SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


@dataclass(frozen=True, kw_only=True, repr=False)
class Bundle:
    """Something to show: HTML for Jupyter, MyST Markdown for the book, text for a terminal."""

    html: str
    markdown: str  # which the book prefers, so that captions are numbered and can be referred to
    text: str

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


def show_text(text: str) -> None:
    """Show a computed sentence, or paragraphs of MyST, as text of the page and not in a box as of
    ``print``.

    Raises:
        ValueError: No words.

    >>> show_text("Two of three intervals hold.")
    Two of three intervals hold.
    """
    if not text.strip():
        raise ValueError(f"text: expected words, got {text!r}")
    paragraphs = [f"<p>{html.escape(words)}</p>" for words in text.strip().split("\n\n")]
    show(Bundle(html="".join(paragraphs), markdown=f"{text.strip()}\n", text=text.strip()))


def used_data(name: str, content: bytes | np.ndarray | Sequence[np.ndarray]) -> str:
    """Note in the result file which data a run used, and return the SHA-256 of their bytes or
    arrays, 64 hexadecimal digits; arrays count by their values, in order, and not by their shape.

    Raises:
        ValueError: A name without words.

    >>> used_data("nothing", b"")[:8]
    'e3b0c442'
    """
    pieces = [content] if isinstance(content, bytes | np.ndarray) else content
    whole = hashlib.sha256()
    for piece in pieces:
        if not isinstance(piece, bytes):
            piece = np.ascontiguousarray(piece).reshape(-1).view(np.uint8).data
        whole.update(piece)
    digest = whole.hexdigest()
    keep_line(USED_DATA_FILE, {"name": one_line("name", name), "sha256": digest})
    return digest


def check_name(name: str) -> str:
    """Return a slug that can serve as file name and as label; refuse (ValueError) anything else."""
    if not _SLUG.fullmatch(name):
        raise ValueError(
            f"name: expected lower-case words joined by hyphens, such as 'gain-by-m', got {name!r}"
        )
    return name


def one_line(name: str, text: str) -> str:
    """Return ``text`` with its white space folded to single spaces; refuse (ValueError) one without
    words, by the ``name`` of the argument.
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
    if folder is None:
        return []
    path = folder / file_name
    if not path.is_file():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def folded_origin(origin: str) -> tuple[str, str]:
    """Where and when a table or figure was measured, to be unfolded by a click, as HTML and as
    MyST; two empty texts for no words.

    >>> folded_origin("")
    ('', '')
    """
    if not origin.strip():
        return "", ""
    words = one_line("origin", origin)
    page = f"<details><summary>{_ORIGIN}</summary>{html.escape(words)}</details>"
    return page, f":::{{dropdown}} {_ORIGIN}\n:class-container: origin\n\n{words}\n:::"


def keep_csv(name: str, text: str) -> tuple[str, str]:
    """Write ``<name>.csv`` with this text beside the result of a run, and return the links to it as
    HTML and as MyST.

    The HTML link holds the text itself; outside a run no file is written, and the MyST is "".

    Raises:
        ValueError: A name that another table or figure of the notebook has.
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
