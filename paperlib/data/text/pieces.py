"""Pieces of documents: how they are read, and what was skipped."""

import codecs
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

SEPARATOR = b"\n\0\n"  # between documents that share a piece: no identifier can lie across it


@dataclass(frozen=True)
class Reading:
    """Settings of reading documents."""

    text_field: str = "text"  # field (JSON lines) or column (Parquet) of the text
    # field that names the subset, with dots for fields in fields, such as "meta.pile_set_name";
    # documents without it are of the file's subset
    subset_field: str = "subset"
    # bytes of the longest line of JSON that is parsed; longer ones are skipped, so that memory
    # stays bounded. Plain text has no such limit
    longest_line: int = 64 * 2**20


class Piece(NamedTuple):
    """Some documents of one subset, or a part of one."""

    subset: str
    data: bytes  # UTF-8
    documents: int  # that end here
    characters: int
    more: bool = False  # the last document goes on in the next piece
    separator: bytes = b""  # between documents, empty where the data are of one document


@dataclass
class ReadLog:
    """Parts that were skipped or read with a loss, with the first example of each reason."""

    # reason to number of files, documents or lines
    counts: Counter[str] = field(default_factory=Counter[str])
    examples: dict[str, str] = field(default_factory=dict[str, str])  # reason to the first place

    def add(self, reason: str, where: str) -> None:
        """Count something that was skipped."""
        self.counts[reason] += 1
        self.examples.setdefault(reason, where)

    @property
    def rows(self) -> list[tuple[str, int, str]]:
        """Reason, number and example of each, sorted."""
        return [
            (reason, self.counts[reason], self.examples[reason]) for reason in sorted(self.counts)
        ]

    @property
    def lines(self) -> list[str]:
        """What a report says of each reason."""
        return [f"{reason}: {count} (such as {example})" for reason, count, example in self.rows]


class Decoder:
    """Counts characters of bytes that come in pieces, and makes invalid UTF-8 valid."""

    def __init__(self) -> None:
        self._strict = codecs.getincrementaldecoder("utf-8")("strict")
        self.valid = True

    def feed(self, data: bytes, *, final: bool) -> tuple[bytes, int]:
        """The bytes as valid UTF-8, and how many characters end in them.

        A character may begin in one piece and end in the next, where it counts. Invalid bytes are
        replaced, and `valid` is False from then on.

        Args:
            data: The next bytes of the stream.
            final: Whether these are the last, so that an unfinished character is invalid.
        """
        unfinished = self._strict.getstate()[0]  # the first bytes of a character
        if data.isascii() and not unfinished:
            return data, len(data)
        try:
            return data, len(self._strict.decode(data, final))
        except UnicodeDecodeError:
            self.valid = False
            self._strict.reset()
            text = data.decode("utf-8", "replace")
            return text.encode(), len(text)
