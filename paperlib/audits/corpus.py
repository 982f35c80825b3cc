"""The identifiers of a corpus, each with what stands before it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from paperlib.data.text.corpora import Document, read_documents
from paperlib.data.text.pieces import ReadLog
from paperlib.generators.identifiers import find_identifiers


@dataclass(frozen=True)
class FoundIdentifier:
    """An identifier of a corpus, with what stands before its first occurrence.

    Attributes:
        kind: Kind of identifier, as in `find_identifiers`.
        value: Text of the identifier.
        before: Up to the asked number of characters before it in its document.
        document: Number of the document.
        occurrences: Number of occurrences in the whole corpus.
        subset: Part of the corpus it was found in; may be empty.
    """

    kind: str
    value: str
    before: str
    document: int
    occurrences: int
    subset: str = ""


def corpus_identifiers(
    documents: Iterable[str | Document],
    *,
    kinds: Sequence[str] | None = None,
    before: int = 200,
    limit: int | None = None,
    seed: int = 0,
) -> list[FoundIdentifier]:
    """Different identifiers of a corpus, each where it occurs first.

    Args:
        documents: Texts, or documents with a subset.
        kinds: Kinds to look for; None for all.
        before: Characters kept before an identifier, 0 or more.
        limit: If there are more, a random sample of this size.
        seed: Seed of the sample, 0 or more.

    Raises:
        ValueError: No identifier in any document.

    >>> corpus_identifiers(["md5: 9e107d9d372bb6826bd81d3542a419d6 ok"])[0].before
    'md5: '
    """
    first: dict[str, FoundIdentifier] = {}
    times: dict[str, int] = {}
    count = 0
    for number, document in enumerate(documents):
        text, subset = (document, "") if isinstance(document, str) else (document.text, document.subset)
        count += 1
        for one in find_identifiers(text, kinds=kinds):
            times[one.value] = times.get(one.value, 0) + 1
            if one.value not in first:
                start = max(0, one.start - before)
                first[one.value] = FoundIdentifier(
                    one.kind, one.value, text[start : one.start], number, 1, subset
                )
    if not first:
        raise ValueError(
            f"documents: found no identifier of {'any kind' if kinds is None else ', '.join(kinds)} in "
            f"{count} documents; without one there is nothing to audit"
        )
    found = [replace(one, occurrences=times[one.value]) for one in first.values()]
    if limit is not None and len(found) > limit:
        chosen = np.sort(np.random.default_rng(seed).choice(len(found), limit, replace=False))
        found = [found[index] for index in chosen]
    return found


def open_corpus(corpus: str, *, log: ReadLog | None = None) -> Iterator[Document]:
    """Documents of a known corpus by name ("nid_corpus"), or of a file or folder.

    Args:
        corpus: Name, file or folder.
        log: Counts what was skipped and why.

    Raises:
        ValueError: Nothing of that name.
        DataUnavailableError: A known corpus that is not in the data folder.
    """
    yield from read_documents(corpus, log=log)


def skipped_table(log: ReadLog) -> pd.DataFrame:
    """What was not read, or with a loss: columns reason, number, example.

    >>> log = ReadLog()
    >>> log.add("binary file", "a.bin")
    >>> skipped_table(log).values.tolist()
    [['binary file', 1, 'a.bin']]
    """
    return pd.DataFrame(log.rows, columns=["reason", "number", "example"])
