"""The identifiers of a corpus, each with what stands before it."""

import base64
import binascii
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from paperlib.audits.language.lists import SORTED, CorpusLists
from paperlib.data.text.corpora import Document, read_documents
from paperlib.data.text.pieces import ReadLog
from paperlib.generators.identifiers import Identifier, find_identifiers, generate_identifiers

WHOLE = "file that was read as one document with all its lines; if each is a text, write JSON lines"
UNFAIR = "identifier behind a text that holds it, or a part of it"
_PART = 6  # letters and digits in a row that an identifier and the text before it may not share
_BYTE_MARKS = re.compile(r"(?:\\x|%|0x)(?=[0-9a-f]{2})")
_BASE64 = re.compile(r"sha\d+[-=]([\w+/=-]+)")


@dataclass(frozen=True)
class FoundIdentifier:
    """An identifier of a corpus, with what stands before it at its first fair place."""

    kind: str  #: as in `find_identifiers`
    value: str
    before: str  #: characters before it in its document, which share no part with it
    document: int  #: number of the document
    occurrences: int  #: in the whole corpus
    subset: str = ""  #: its part of the corpus


def corpus_identifiers(
    documents: Iterable[str | Document],
    *,
    kinds: Sequence[str] | None = None,
    before: int = 200,
    limit: int | None = None,
    seed: int = 0,
    log: ReadLog | None = None,
) -> list[FoundIdentifier]:
    """Different identifiers of a corpus, each at the first place behind a text that tells nothing
    of it.

    Notations of one value (letter case, hyphens, base64 or hexadecimal digits, an abbreviated hash)
    are one identifier. In each document only the first place of a value counts.

    Where lists of a kind are sorted, as of hashes in lock files, neighbours tell of an identifier,
    and those in lists of this kind are left out. On random identifiers this happens with
    probability 1e-6 at most, by which the error of an audit rises. A few sorted lists among many
    others are not seen (`CorpusLists`).

    Args:
        kinds: Kinds to look for; None for all.
        before: Characters to keep before an identifier, 0 or more.
        limit: If there are more, a random sample of this size.
        log: Counts the identifiers that are left out.

    Raises:
        ValueError: No such identifier.

    >>> corpus_identifiers(["md5: 83a5ef2c9d0b3e71f6a8c3d25b190e47 ok"])[0].before
    'md5: '
    """
    fair: dict[str, FoundIdentifier | None] = {}
    times: Counter[str] = Counter()
    lists, count = CorpusLists(), 0
    for number, document in enumerate(documents):
        text, subset = (
            (document, "") if isinstance(document, str) else (document.text, document.subset)
        )
        count += 1
        seen: set[str] = set()
        places = list[tuple[Identifier, str]]()
        for one in find_identifiers(text, kinds=kinds):
            packed = _BASE64.fullmatch(one.value)  # a key that all notations of a value share
            key = (
                _hexadecimal(packed[1])
                if packed
                else _plain(one.value.rpartition(" ")[2] or one.value)
            )
            times[key] += 1
            places.append((one, key))
            if key not in seen and fair.get(key) is None:
                place = text[max(0, one.start - before) : one.start]
                candidate = FoundIdentifier(one.kind, one.value, place, number, 1, subset)
                fair[key] = candidate if is_fair(one.value, place) else None
            seen.add(key)
        lists.add(text, places)
    ordered = sorted(fair)

    def begins(key: str) -> bool:  # a longer value
        at = bisect_right(ordered, key)
        return at < len(ordered) and ordered[at].startswith(key)

    for key in filter(lambda key: len(key) <= 12 and begins(key), ordered):  # an abbreviation
        times[ordered[bisect_right(ordered, key)]] += times[key]
    whole = {key: one for key, one in fair.items() if one and not (len(key) <= 12 and begins(key))}
    told = lists.sorted_values & set(whole)
    identifiers = [
        replace(one, occurrences=times[key]) for key, one in whole.items() if key not in told
    ]
    unfair = [key for key, one in fair.items() if one is None]
    if log is not None:
        for reason, keys in ((UNFAIR, unfair), (SORTED, sorted(told))):
            for key in keys:
                log.add(reason, key)
    if not identifiers:
        reason = f"; {len(unfair)} stand behind a text that holds a part of them" if unfair else ""
        reason += f"; {len(told)} stand in lists that are sorted" if told else ""
        raise ValueError(
            "documents: found no identifier of "
            f"{'any kind' if kinds is None else ', '.join(kinds)} in {count} documents{reason}; "
            "without one there is nothing to audit"
        )
    if limit is not None and len(identifiers) > limit:
        chosen = np.sort(np.random.default_rng(seed).choice(len(identifiers), limit, replace=False))
        identifiers = [identifiers[index] for index in chosen]
    return identifiers


def is_fair(value: str, before: str) -> bool:
    """Whether a text shares no six letters or digits in a row with a value behind it, in any
    notation.
    """
    shown = _parts(_plain(before))
    shared = set[str]().union(*map(_parts, _notations(value))) & shown
    if not shared:
        return True
    # A model that copies from its context would prefer the true value without training, unless
    # other values of the kind have these parts, too.
    others = [
        set[str]().union(*map(_parts, _notations(other)))
        for other in generate_identifiers(value, 3, 0)
    ]
    return shared <= set.intersection(*others)


def _plain(text: str) -> str:
    """Small letters and digits alone, without the marks of bytes such as backslash x."""
    return re.sub("[^0-9a-z]", "", _BYTE_MARKS.sub("", text.lower()))


def _parts(text: str) -> set[str]:
    return {text[at : at + _PART] for at in range(len(text) - _PART + 1)}


def _notations(value: str) -> list[str]:
    """The value in small letters and digits; a digest also in base64, or in hexadecimal digits."""
    plain, packed = _plain(value), _BASE64.fullmatch(value)
    if packed:
        return [plain, _hexadecimal(packed[1])]
    if len(plain) >= 32 and len(plain) % 2 == 0 and re.fullmatch("[0-9a-f]+", plain):
        return [plain, _plain(base64.b64encode(bytes.fromhex(plain)).decode())]
    return [plain]


def _hexadecimal(packed: str) -> str:
    text = packed.rstrip("=").translate(str.maketrans("-_", "+/"))
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4)).hex()
    except binascii.Error:
        return ""


def open_corpus(corpus: str, *, log: ReadLog | None = None) -> Iterator[Document]:
    """Documents of a known corpus by name ("nid_corpus"), a file or a folder; ``log`` counts
    skipped ones.

    A file of plain text is one document, which the log says where it is all there is; a table is
    refused.
    """
    if (
        corpus.lower().removesuffix(".gz").endswith((".csv", ".tsv"))
        and Path(corpus).expanduser().is_file()
    ):
        raise ValueError(
            f"{corpus}: a table would be read as one text, commas and all; write each text as a "
            "line of JSON "
            'lines (.jsonl), such as {"text": "..."}, or as a file of its own in a folder'
        )
    count, text = 0, ""
    for document in read_documents(corpus, log=log):
        count, text = count + 1, document.text
        yield document
    if log is not None and count == 1 and "\n" in text.strip():
        log.add(WHOLE, corpus)


def skipped_table(log: ReadLog) -> pd.DataFrame:
    """What was not read, or with a loss: columns reason, number, example."""
    return pd.DataFrame(log.rows, columns=["reason", "number", "example"])
