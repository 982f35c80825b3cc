"""Real text as documents: what ships with Python, WikiText, and any corpus or folder."""

import ast
import sysconfig
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType

from paperlib.data.text.corpora import read_documents
from paperlib.data.text.wikitext import wikitext, wikitext2_held_out

_SHORTEST = 200  # letters of the shortest docstring that counts as a document
_PARAGRAPHS = 6  # paragraphs of a help topic that make a document


def help_topics() -> list[str]:
    """Python's help topics in pieces of six paragraphs, 0.46 million characters in all.

    >>> len(help_topics()) > 400
    True
    """
    from pydoc_data.topics import topics  # half a megabyte of text

    documents: list[str] = []
    for name in sorted(topics):
        parts = topics[name].split("\n\n")
        documents += ["\n\n".join(parts[at : at + _PARAGRAPHS]) for at in range(0, len(parts), _PARAGRAPHS)]
    return documents


def docstrings() -> list[str]:
    """Docstrings of Python's standard library, each a document, about 1.2 million characters in all.

    Those of fewer than 200 characters are left out; tests and installed packages are not read.
    """
    return [text for tree in _library() for text in _docstrings_in(tree) if len(text) >= _SHORTEST]


def _library() -> Iterator[ast.Module]:
    """Modules of the standard library and of its packages, one level deep."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    for path in [*sorted(folder.glob("*.py")), *sorted(folder.glob("*/*.py"))]:
        if path.parent.name not in ("site-packages", "test", "tests", "idlelib"):
            with suppress(SyntaxError, ValueError, OSError):  # templates, or of another version
                yield ast.parse(path.read_bytes())


def _docstrings_in(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        if text := ast.get_docstring(node):
            yield text
        for child in node.body:
            yield from _docstrings_in(child)


TEXTS: Mapping[str, Callable[[], list[str]]] = MappingProxyType(
    {
        "help_topics": help_topics,
        "documentation": lambda: help_topics() + docstrings(),
        "wikitext2_held_out": wikitext2_held_out,
        "wikitext2": lambda: wikitext("wikitext2"),
        "wikitext103": lambda: wikitext("wikitext103"),
    }
)
"""Texts known by name: the first two ship with Python, the others lie in the data folder."""


def text_documents(text: str) -> list[str]:
    """The documents of a text.

    Args:
        text: A name in ``TEXTS``, a known corpus ("pile_test_subsets"), or a file or folder of documents.

    Raises:
        ValueError: Nothing of that name.
        DataUnavailableError: A known text whose files are not in the data folder.
    """
    if text in TEXTS:
        return TEXTS[text]()
    return [document.text for document in read_documents(text)]
