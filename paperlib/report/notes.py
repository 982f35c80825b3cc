"""`show_text`: a sentence that a run computed, set as text of the page."""

import html

from paperlib.report.display import Bundle, show


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
