"""Types in the reference by the names their users know, such as ``ArrayLike`` and
``array of float64``.
"""

import re
from typing import Any, get_origin

from sphinx.application import Sphinx

_NAME = r"~?(?:[\w]+\.)*"
_SUPPORTS = rf"{_NAME}_SupportsArray\[{_NAME}dtype\[{_NAME}Any\]\]"
_ARRAY_LIKE = re.compile(
    rf"{_NAME}_Buffer \| {_SUPPORTS} \| {_NAME}_NestedSequence\[{_SUPPORTS}\] \| complex"
    r" \| bytes(?: \| str)?"
    rf" \| {_NAME}_NestedSequence\[complex \| bytes \| str\]"
)  # beside a str of its own, a union of numpy's ArrayLike has lost the other one
_TYPE_FIELD = re.compile(r"\s*:(?:var)?type ")
# Sphinx shows the last part of a name after ~
_QUALIFIED = re.compile(r"(?<![~\w.])(?=(?:\w+\.)+[A-Z])")
_ARRAY = re.compile(rf"{_NAME}ndarray\[tuple\[{_NAME}Any, \.\.\.\], {_NAME}dtype\[{_NAME}(\w+)\]\]")


def short(annotation: str) -> str:
    """A type as Sphinx writes it, with arrays by their short names.

    >>> from numpy.typing import ArrayLike
    >>> from sphinx.util.typing import stringify_annotation
    >>> short("~numpy.ndarray[tuple[~typing.Any, ...], ~numpy.dtype[~numpy.float64]] | None")
    'array of float64 | None'
    >>> modes = ("smart", "fully-qualified")
    >>> [short(stringify_annotation(ArrayLike | None, mode)) for mode in modes]
    ['ArrayLike | None', 'ArrayLike | None']
    >>> short(stringify_annotation(str | ArrayLike, "smart"))
    'str | ArrayLike'
    """
    return _ARRAY.sub(r"array of \1", _ARRAY_LIKE.sub("ArrayLike", annotation))


def shorten(app: Sphinx, what: str, name: str, *_: Any) -> None:
    """Shorten the types that autodoc has just recorded for this object."""
    recorded: dict[str, str] = app.env.temp_data.get("annotations", {}).get(name, {})
    for argument, annotation in recorded.items():
        recorded[argument] = short(annotation)


def shorten_lines(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Shorten the types of attributes, which napoleon writes into the docstring."""
    for index, line in enumerate(lines):
        shortened = short(line)
        lines[index] = _QUALIFIED.sub("~", shortened) if _TYPE_FIELD.match(line) else shortened


def skip_long_alias(
    app: Sphinx, what: str, name: str, obj: Any, skip: bool, options: Any
) -> bool | None:
    """Leave out names of types that hold an ArrayLike: autodoc would spell it out after "alias
    of".
    """
    return True if get_origin(obj) is not None and "_SupportsArray" in str(obj) else None


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("autodoc-process-signature", shorten, priority=900)  # after autodoc's own handler
    app.connect("autodoc-process-docstring", shorten_lines, priority=900)  # after napoleon
    app.connect("autodoc-skip-member", skip_long_alias)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
