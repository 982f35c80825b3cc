"""`show_text`: a sentence that a run computed, set as text of the page."""

import hashlib
import html
from collections.abc import Sequence

import numpy as np

from paperlib.report.display import Bundle, keep_line, one_line, show


def show_text(text: str) -> None:
    """Show a computed sentence, or several paragraphs, as text of the page.

    What ``print`` writes stands in a box of code in the book, with lines that do not break.

    Args:
        text: MyST Markdown; paragraphs are set apart by an empty line.

    Raises:
        ValueError: No words.

    >>> show_text("Two of three intervals hold.")
    Two of three intervals hold.
    """
    if not text.strip():
        raise ValueError(f"text: expected words, got {text!r}")
    paragraphs = "".join(f"<p>{html.escape(one)}</p>" for one in text.strip().split("\n\n"))
    show(Bundle(html=paragraphs, markdown=f"{text.strip()}\n", text=text.strip()))


USED_DATA_FILE = "used_data.jsonl"
"""Name of the file in the run's folder to which `used_data` adds one line per data set."""


def used_data(name: str, content: bytes | np.ndarray | Sequence[np.ndarray]) -> str:
    """Note in the result file which data a run used, by checksum.

    Args:
        name: Name of the data set.
        content: Bytes of the data, or the array or arrays they were read into.

    Returns:
        The SHA-256 as 64 hexadecimal digits.

    >>> used_data("nothing", b"")[:8]
    'e3b0c442'
    """
    whole = hashlib.sha256()
    for part in [content] if isinstance(content, bytes | np.ndarray) else content:
        whole.update(
            part if isinstance(part, bytes) else np.ascontiguousarray(part).reshape(-1).view(np.uint8).data
        )
    digest = whole.hexdigest()
    keep_line(USED_DATA_FILE, {"name": one_line("name", name), "sha256": digest})
    return digest
