"""Docstrings here are plain words with `code` in backquotes: keep reStructuredText from reading
more.
"""

import re
from typing import Any

from sphinx.application import Sphinx

CODE = re.compile(r"(``.+?``(?!`)|`[^`]*`)")
MARKUP = re.compile(r"(?<!\\)(?:\*(?!\s)|\*$|\||(?<=\w)_(?!\w))")


def escape(line: str) -> str:
    r"""Escape asterisks, bars and closing underscores outside code.

    >>> escape("A *star of `a*b` is |x|")
    'A \\*star of `a*b` is \\|x\\|'
    """
    if line.lstrip().startswith((">>>", "...")):
        return line
    parts = CODE.split(line)
    return "".join(
        _code(part) if part.startswith("`") else MARKUP.sub(r"\\\g<0>", part) for part in parts
    )


def _code(text: str) -> str:
    """Code as it is; Markdown's space before closing backquotes is not allowed in
    reStructuredText.
    """
    return text[:-3] + "``" if text.endswith(" ``") else text


def escape_docstring(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Escape a docstring in place, before napoleon reads its sections."""
    lines[:] = map(escape, lines)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("autodoc-process-docstring", escape_docstring, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
