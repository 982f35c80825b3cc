"""WikiText articles, one document each, from the official files or from copies packed with gzip."""

import gzip
import re

from paperlib.core import check_choice
from paperlib.data.files import data_file

SOURCE = "Merity et al. (2016), Salesforce Research: articles of Wikipedia rated good or featured"
LICENCE = "CC BY-SA 3.0"
SHA256S = {
    "wikitext2_valid.txt.gz": "3ac34ae2b6509075d52302c50a04a8a1970739ffe1a904f2cd374fefbea3cbf2",
    "wikitext2_test.txt.gz": "a2b26b5d2619cc1f6cd34c8e116a451aed09af51479346aadfbf508ceb8b192e",
}
FOLDERS = {"wikitext2": "wikitext-2", "wikitext103": "wikitext-103"}
"""Official folders; each holds wiki.train.tokens, wiki.valid.tokens and wiki.test.tokens."""

PARTS = ("train", "valid", "test")

_TITLE = re.compile(r"^ = (?!= )(.+?)(?<! =) = $")


def wikitext2_held_out() -> list[str]:
    """The articles of WikiText-2's validation and test parts, 2.4 million characters."""
    documents: list[str] = []
    for name, digest in SHA256S.items():
        path = data_file("WikiText-2", name, digest, SOURCE)
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            documents += articles(lines.read())
    return documents


def wikitext(name: str, part: str = "train") -> list[str]:
    """The articles of one part of WikiText in the official layout: wikitext-103/wiki.train.tokens.

    Args:
        name: "wikitext2" or "wikitext103".
        part: "train", "valid" or "test".
    """
    check_choice("name", name, FOLDERS)
    check_choice("part", part, PARTS)
    path = data_file(name, f"{FOLDERS[name]}/wiki.{part}.tokens", None, SOURCE)
    documents = articles(path.read_text(encoding="utf-8"))
    if not documents:
        raise ValueError(f"{path}: expected articles that start with a line ' = Title = ', found none")
    return documents


def articles(text: str) -> list[str]:
    """Cut WikiText at its titles; an article keeps its title and its headings.

    >>> articles(" = A = \\n first \\n = = Part = = \\n more \\n = B = \\n second \\n")
    [' = A = \\n first \\n = = Part = = \\n more ', ' = B = \\n second ']
    """
    documents: list[list[str]] = []
    for line in text.splitlines():
        if _TITLE.match(line):
            documents.append([line])
        elif documents:
            documents[-1].append(line)
    return ["\n".join(lines) for lines in documents]
