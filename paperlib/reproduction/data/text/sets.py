"""Real text as documents: what ships with Python, WikiText, and any corpus or folder."""

import ast
import gzip
import re
import sysconfig
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType

from paperlib.data.files import data_file
from paperlib.data.text.corpora import read_documents

_SHORTEST = 200  # letters of the shortest docstring that counts as a document
_PARAGRAPHS = 6  # paragraphs of a help topic that make a document


def help_topics() -> list[str]:
    """Python's help topics in pieces of six paragraphs, 0.46 million characters in all."""
    from pydoc_data.topics import topics  # half a megabyte of text

    documents: list[str] = []
    for name in sorted(topics):
        paragraphs = topics[name].split("\n\n")
        for start in range(0, len(paragraphs), _PARAGRAPHS):
            documents.append("\n\n".join(paragraphs[start : start + _PARAGRAPHS]))
    return documents


def docstrings() -> list[str]:
    """Docstrings of Python's standard library, each a document, about 1.2 million characters in
    all.
    """
    folder = Path(sysconfig.get_paths()["stdlib"])
    documents: list[str] = []
    for path in [*sorted(folder.glob("*.py")), *sorted(folder.glob("*/*.py"))]:
        if path.parent.name not in ("site-packages", "test", "tests", "idlelib"):
            # Files that cannot be parsed are templates, or of another version of Python.
            with suppress(SyntaxError, ValueError, OSError):
                texts = _docstrings_in(ast.parse(path.read_bytes()))
                documents += [text for text in texts if len(text) >= _SHORTEST]
    return documents


def _docstrings_in(node: ast.AST) -> Iterator[str]:
    """Docstrings of a module, of its classes and functions, and of those within them, in their
    order.
    """
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        if text := ast.get_docstring(node):
            yield text
        for child in node.body:
            yield from _docstrings_in(child)


# Under CC BY-SA 3.0.
WIKITEXT = "Merity et al. (2016), Salesforce Research: articles of Wikipedia rated good or featured"
SHA256S = {
    "wikitext2_valid.txt.gz": "3ac34ae2b6509075d52302c50a04a8a1970739ffe1a904f2cd374fefbea3cbf2",
    "wikitext2_test.txt.gz": "a2b26b5d2619cc1f6cd34c8e116a451aed09af51479346aadfbf508ceb8b192e",
}
_TITLE = re.compile(r"^ = (?!= )(.+?)(?<! =) = $")


def wikitext2_held_out() -> list[str]:
    """The articles of WikiText-2's validation and test parts, 2.4 million characters.

    Raises:
        DataUnavailableError: A file is not in the data folder.
        ValueError: It has another content.
    """
    documents: list[str] = []
    for name, digest in SHA256S.items():
        path = data_file("WikiText-2", name, digest, WIKITEXT)
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            documents += articles(lines.read())
    return documents


def wikitext(name: str, folder: str) -> list[str]:
    """The articles of WikiText's training part in the official layout, such as
    wikitext-103/wiki.train.tokens in the data folder; ``name`` is what errors call the set.

    Raises:
        DataUnavailableError: There is no such file.
        ValueError: A file without articles.
    """
    path = data_file(name, f"{folder}/wiki.train.tokens", None, WIKITEXT)
    documents = articles(path.read_text(encoding="utf-8"))
    if not documents:
        raise ValueError(
            f"{path}: expected articles that start with a line ' = Title = ', found none"
        )
    return documents


def articles(text: str) -> list[str]:
    """The articles of a file of WikiText, cut at their titles: each keeps its title and headings,
    and lines before the first title are left out.
    """
    documents: list[list[str]] = []
    for line in text.splitlines():
        if _TITLE.match(line):
            documents.append([])
        if documents:
            documents[-1].append(line)
    return ["\n".join(lines) for lines in documents]


TEXTS: Mapping[str, Callable[[], list[str]]] = MappingProxyType(
    {
        "help_topics": help_topics,
        "documentation": lambda: help_topics() + docstrings(),
        "wikitext2_held_out": wikitext2_held_out,
        "wikitext2": lambda: wikitext("wikitext2", "wikitext-2"),
        "wikitext103": lambda: wikitext("wikitext103", "wikitext-103"),
    }
)
"""Texts known by name: the first two ship with Python, the others lie in the data folder."""


def text_documents(text: str) -> list[str]:
    """The documents of a name in ``TEXTS``, a known corpus ("pile_test_subsets"), a file or a
    folder.

    Raises:
        ValueError: Nothing of that name.
        DataUnavailableError: A known text whose files are not in the data folder.
    """
    if text in TEXTS:
        return TEXTS[text]()
    return [document.text for document in read_documents(text)]
