"""The identifiers of a corpus, each with what stands before it."""

import base64
import binascii
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from paperlib.audits.language.lists import CorpusLists
from paperlib.data.text.corpora import Document, read_documents
from paperlib.data.text.pieces import ReadLog
from paperlib.generators.identifiers import Identifier, find_identifiers, generate_identifiers
from paperlib.words.audits import corpus as words

_LONGEST_ABBREVIATION = 12  # letters and digits of a hash such as git shows it
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
        documents: Texts, or documents with their part of the corpus.
        kinds: Kinds to look for; None for all.
        before: Characters to keep before an identifier, 0 or more.
        limit: If there are more, a random sample of this size; None for all.
        seed: Seed of the sample, 0 or more.
        log: Counts the identifiers that are left out.

    Raises:
        ValueError: No such identifier, or a document that is no text.

    >>> corpus_identifiers(["md5: 83a5ef2c9d0b3e71f6a8c3d25b190e47 ok"])[0].before
    'md5: '
    """
    corpus = _CorpusIdentifiers(kinds, before)
    for number, document in enumerate(documents):
        if isinstance(document, Mapping):
            raise ValueError(
                f"documents[{number}] is a mapping; write chats as texts first, with written_texts "
                "of paperlib.audits.language.chat_templates, or give them to audit_language_model"
            )
        if isinstance(document, str):
            corpus.add(number, document)
        else:
            corpus.add(number, document.text, document.subset)
    fair = corpus.whole_values()
    unfair = corpus.unfair_values()
    in_sorted_lists = sorted(corpus.lists.sorted_values & set(fair))
    if log is not None:
        _log_left_out(log, unfair, in_sorted_lists)
    for key in in_sorted_lists:
        del fair[key]
    identifiers = list(fair.values())
    if not identifiers:
        what = "any kind" if kinds is None else ", ".join(kinds)
        reasons = _reasons(len(unfair), len(in_sorted_lists))
        raise ValueError(
            f"documents: found no identifier of {what} in {corpus.documents} documents{reasons}; "
            "without one there is nothing to audit"
        )
    if limit is not None and len(identifiers) > limit:
        chosen = np.sort(np.random.default_rng(seed).choice(len(identifiers), limit, replace=False))
        identifiers = [identifiers[index] for index in chosen]
    return identifiers


def _log_left_out(log: ReadLog, unfair: list[str], in_sorted_lists: list[str]) -> None:
    """Count the identifiers that are left out, by reason."""
    for key in unfair:
        log.add(words.UNFAIR, key)
    for key in in_sorted_lists:
        log.add(words.SORTED, key)


def _reasons(unfair: int, in_sorted_lists: int) -> str:
    """Why identifiers were left out, for an error message; "" if there were none."""
    reasons = ""
    if unfair:
        reasons += f"; {unfair} stand behind a text that holds a part of them"
    if in_sorted_lists:
        reasons += f"; {in_sorted_lists} stand in lists that are sorted"
    return reasons


class _CorpusIdentifiers:
    """The identifiers of the documents so far.

    Each value has a key that all of its notations share.

    Attributes:
        documents: Number of documents.
        lists: The lists that the values stand in.
    """

    def __init__(self, kinds: Sequence[str] | None, before: int) -> None:
        """Look for these kinds, None for all, and keep so many characters before each."""
        self.documents = 0
        self.lists = CorpusLists()
        self._kinds = kinds
        self._before = before
        self._times: Counter[str] = Counter()  # in the whole corpus, by key
        # By key: the value at its first fair place, None while it has none.
        self._first_fair: dict[str, FoundIdentifier | None] = {}

    def add(self, number: int, text: str, subset: str = "") -> None:
        """Take the identifiers of a document, its ``text``; ``number`` is that of the document in
        the corpus, ``subset`` its part of it.
        """
        self.documents += 1
        with_keys: list[tuple[Identifier, str]] = []
        in_document: set[str] = set()
        for identifier in find_identifiers(text, kinds=self._kinds):
            key = _key(identifier.value)
            self._times[key] += 1
            with_keys.append((identifier, key))
            is_first = key not in in_document
            in_document.add(key)
            # A later place in the same document may be a quotation of the first one, which the
            # text before it would then tell.
            if is_first and self._first_fair.get(key) is None:
                self._first_fair[key] = self._found_fair(identifier, text, number, subset)
        self.lists.add(text, with_keys)

    def _found_fair(
        self, identifier: Identifier, text: str, number: int, subset: str
    ) -> FoundIdentifier | None:
        """The identifier with the text before it, up to so many characters as are kept; None where
        that text tells a part of it. ``number`` is that of the document.
        """
        context = text[max(0, identifier.start - self._before) : identifier.start]
        if not is_fair(identifier.value, context):
            return None
        # The occurrences are counted after the last document.
        return FoundIdentifier(
            identifier.kind, identifier.value, context, number, occurrences=1, subset=subset
        )

    def whole_values(self) -> dict[str, FoundIdentifier]:
        """Fair values by key with their occurrences, an abbreviation counted as the longer value.

        To be called once, after the last document.
        """
        ordered = sorted(self._first_fair)
        abbreviations = set[str]()
        for key in ordered:
            longer = _longer(key, ordered)
            if longer is not None:
                self._times[longer] += self._times[key]
                abbreviations.add(key)
        return {
            key: replace(identifier, occurrences=self._times[key])
            for key, identifier in self._first_fair.items()
            if identifier is not None and key not in abbreviations
        }

    def unfair_values(self) -> list[str]:
        """Keys of the values without a fair place, in the order of the corpus."""
        return [key for key, identifier in self._first_fair.items() if identifier is None]


def _key(value: str) -> str:
    """What all notations of a value share: its digits in hexadecimal, or its letters and digits."""
    packed = _BASE64.fullmatch(value)
    if packed:
        return _hexadecimal(packed[1])
    return _plain(value.rpartition(" ")[2] or value)


def _longer(key: str, ordered: Sequence[str]) -> str | None:
    """The key that ``key`` abbreviates; None where it is too long for an abbreviation, or no other
    key begins with it. ``ordered`` are all keys, sorted, of which the next one begins with it.
    """
    if len(key) > _LONGEST_ABBREVIATION:
        return None
    following = bisect_right(ordered, key)
    if following == len(ordered) or not ordered[following].startswith(key):
        return None
    return ordered[following]


def is_fair(value: str, before: str) -> bool:
    """Whether the text ``before`` an identifier tells nothing of its value: it shares no six
    letters or digits in a row with it, in any notation, but for such as other values of the kind
    have, too.
    """
    shared = _parts_of_all(_notations(value)) & _parts(_plain(before))
    if not shared:
        return True
    # A model that copies from its context would prefer the true value without training, unless
    # other values of the kind, of which three are drawn, have these parts, too.
    return all(
        shared <= _parts_of_all(_notations(other)) for other in generate_identifiers(value, 3, 0)
    )


def _parts_of_all(texts: Iterable[str]) -> set[str]:
    """Every six characters in a row of each text."""
    return set[str]().union(*map(_parts, texts))


def _plain(text: str) -> str:
    """The letters and digits of a text, in small letters, without the marks of bytes such as
    backslash x.
    """
    return re.sub("[^0-9a-z]", "", _BYTE_MARKS.sub("", text.lower()))


def _parts(text: str) -> set[str]:
    """Every six characters in a row of a text."""
    return {text[start : start + _PART] for start in range(len(text) - _PART + 1)}


def _notations(value: str) -> list[str]:
    """The value in small letters and digits; a digest also in base64, or in hexadecimal digits."""
    plain = _plain(value)
    packed = _BASE64.fullmatch(value)
    if packed:
        return [plain, _hexadecimal(packed[1])]
    if len(plain) >= 32 and len(plain) % 2 == 0 and re.fullmatch("[0-9a-f]+", plain):
        return [plain, _plain(base64.b64encode(bytes.fromhex(plain)).decode())]
    return [plain]


def _hexadecimal(packed: str) -> str:
    """The bytes of a base64 text, with either of its two alphabets, as digits; "" if it is none."""
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
    is_table = corpus.lower().removesuffix(".gz").endswith((".csv", ".tsv"))
    if is_table and Path(corpus).expanduser().is_file():
        raise ValueError(
            f"{corpus}: a table would be read as one text, commas and all; write each text as a "
            'line of JSON lines (.jsonl), such as {"text": "..."}, or as a file of its own in a '
            "folder"
        )
    count = 0
    text = ""
    for document in read_documents(corpus, log=log):
        count += 1
        text = document.text
        yield document
    if log is not None and count == 1 and "\n" in text.strip():
        log.add(words.WHOLE, corpus)


def skipped_table(log: ReadLog) -> pd.DataFrame:
    """What was not read, or with a loss: columns reason, number, example."""
    return pd.DataFrame(log.rows, columns=["reason", "number", "example"])
