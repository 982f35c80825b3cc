"""Types in the reference by the names their users know, such as ``ArrayLike`` and ``array of float64``."""

import re
from typing import Any

from numpy.typing import ArrayLike
from sphinx.application import Sphinx
from sphinx.util.typing import stringify_annotation

_ARRAY_LIKE = stringify_annotation(ArrayLike, "smart")
_ARRAY = re.compile(r"~numpy\.ndarray\[tuple\[~typing\.Any, \.\.\.\], ~numpy\.dtype\[(?:~[\w.]*\.)?(\w+)\]\]")


def short(annotation: str) -> str:
    """A type as Sphinx writes it, with arrays by their short names.

    >>> short("~numpy.ndarray[tuple[~typing.Any, ...], ~numpy.dtype[~numpy.float64]] | None")
    'array of float64 | None'
    >>> short(f"{_ARRAY_LIKE} | None")
    'ArrayLike | None'
    """
    return _ARRAY.sub(r"array of \1", annotation.replace(_ARRAY_LIKE, "ArrayLike"))


def shorten(app: Sphinx, what: str, name: str, *_: Any) -> None:
    """Shorten the types that autodoc has just recorded for this object."""
    recorded: dict[str, str] = app.env.temp_data.get("annotations", {}).get(name, {})
    for argument, annotation in recorded.items():
        recorded[argument] = short(annotation)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("autodoc-process-signature", shorten, priority=900)  # after autodoc's own handler
    return {"parallel_read_safe": True, "parallel_write_safe": True}
