"""Reading one file of a corpus in pieces: plain text, JSON lines, Parquet and WARC."""

import codecs
import io
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from paperlib.data.text import streams
from paperlib.data.text.pieces import SEPARATOR, Decoder, Piece, Reading, ReadLog

_LONGEST_HEADER = 18
_RUN = 1  # type of a block that holds one byte to be repeated
_SKIPPABLE = b"\x2a\x4d\x18"


def ends_within_frame(path: Path, zstandard: Any) -> bool:
    """Whether the last frame of a file lacks its end, by its headers alone (RFC 8878, section
    3.1).
    """
    size, at = path.stat().st_size, 0
    with path.open("rb") as file:
        while at < size:
            file.seek(at)
            head = file.read(_LONGEST_HEADER)
            if head[1:4] == _SKIPPABLE:
                at += 8 + int.from_bytes(head[4:8], "little")
                continue
            at, last = at + zstandard.frame_header_size(head), False
            while not last:
                file.seek(at)
                if len(raw := file.read(3)) < 3:
                    return True
                block = int.from_bytes(raw, "little")
                last, kind, length = bool(block & 1), block >> 1 & 3, block >> 3
                at += 3 + (1 if kind == _RUN else length)
            at += 4 if zstandard.get_frame_parameters(head).has_checksum else 0
    return at > size


_REPLACED = "invalid UTF-8, its bytes replaced"


def read_pieces(path: Path, subset: str, reading: Reading, log: ReadLog) -> Iterator[Piece]:
    """Pieces of about a mebibyte; a damaged, binary or unreadable file goes to the log and raises
    nothing.
    """
    reader, unfinished = _Reader(subset, reading, log, streams.printable(path.name)), False
    try:
        kind, packed = streams.format_of(path)
        head = streams.first_bytes(path, packed)
        if path.stat().st_size == 0:
            reader.skip("empty file")
        elif kind == "parquet":
            yield from reader.parquet(path)
        elif reason := streams.not_text(head):
            reader.skip(reason)
        else:
            if kind == "text" and (head.lstrip()[:1] in (b"{", b"[") or path.suffix == ".ipynb"):
                kind = "json"
            with streams.open_packed(path, packed) as stream:
                for piece in getattr(reader, kind)(stream):
                    yield piece
                    unfinished = piece.more
            if packed == ".zst" and ends_within_frame(path, streams.corpus_package("zstandard")):
                raise EOFError("the file ends within a frame")
    except streams.damages() as error:
        if unfinished:
            yield Piece(subset, b"", 1, 0)  # what came before the damage is a document
        said = " ".join(str(error).split()) or type(error).__name__
        log.add("damaged or unreadable file", f"{reader.where}: {said}")


@dataclass(frozen=True)
class _Reader:
    """Reads one file: the subset of documents that name none, settings, and a log with the file's
    name.
    """

    subset: str
    reading: Reading
    log: ReadLog
    where: str

    def skip(self, reason: str) -> None:
        """Count what is not read, or not as it is."""
        self.log.add(reason, self.where)

    def _part(self, decoder: Decoder, data: bytes) -> Piece:
        valid, characters = decoder.feed(data, final=False)
        return Piece(self.subset, valid, 0, characters, more=True)

    def text(self, stream: Any) -> Iterator[Piece]:
        """A file is one document."""
        decoder, last, blank = Decoder(), b"", True
        if (start := stream.read(2)) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            stream = io.BytesIO((start + stream.read()).decode("utf-16", "replace").encode())
        else:
            stream = _Resumed(start, stream)
        try:
            for number, block in enumerate(streams.blocks(stream)):
                if number == 0 and b"\0" in block[: 2**16]:
                    self.skip("binary file")
                    return
                if last:
                    yield self._part(decoder, last)
                last = block
                blank = number == 0 and not block.strip()
        except streams.damages():
            if last:
                yield self._part(decoder, last)
            raise
        if blank:
            self.skip("empty file")
            return
        data, characters = decoder.feed(last, final=True)
        yield Piece(self.subset, data, 1, characters)
        if not decoder.valid:
            self.skip(_REPLACED)

    def json(self, stream: Any) -> Iterator[Piece]:
        """A JSON file: its records with a text, the cells of a notebook, lines of JSON, or else one
        text.
        """
        data, field = stream.read(self.reading.longest_line + 1), self.reading.text_field
        texts: dict[str, list[str]] = {}
        with suppress(ValueError, RecursionError):
            parsed = json.loads(data)
            if isinstance(parsed, list):
                parsed = [{field: value} if isinstance(value, str) else value for value in parsed]
            elif isinstance(parsed, dict) and isinstance(parsed.get(field), str):
                parsed = [parsed]
            for record in _records(parsed, field):
                self._collect(record, texts, self.where)
        if texts:
            yield from _joined(texts)
            return
        lines = False
        with suppress(ValueError, RecursionError):
            first = json.loads(data.lstrip().partition(b"\n")[0])
            lines = isinstance(first, dict) and isinstance(first.get(field), str)
        yield from (self.jsonl if lines else self.text)(_Resumed(data, stream))

    def jsonl(self, stream: Any) -> Iterator[Piece]:
        """A line is a document; documents of one subset in a block share a piece."""
        parse: Callable[[bytes], Any] = json.loads
        with suppress(ModuleNotFoundError):
            import orjson  # optional, five times faster

            parse = orjson.loads
        number = 0
        for lines in _lines(stream, self.reading.longest_line):
            if lines is None:
                self.skip(f"line of more than {self.reading.longest_line} bytes")
                continue
            texts: dict[str, list[str]] = {}
            for line in lines:
                number += 1
                if number == 1:
                    line = line.removeprefix(codecs.BOM_UTF8)
                if line.strip():
                    place = f"{self.where}, line {number}"
                    self._collect(self._parsed(line, parse, place), texts, place)
            yield from _joined(texts)

    def _parsed(self, line: bytes, parse: Callable[[bytes], Any], place: str) -> Any:
        with suppress(ValueError):
            return parse(line)
        with suppress(ValueError, RecursionError):
            # Takes lone surrogates, NaN and endless integers, which orjson refuses.
            return json.loads(self._decoded(line, place), parse_int=float)
        return None

    def _decoded(self, data: bytes, place: str) -> str:
        text = data.decode("utf-8", "replace")
        if "\ufffd" in text and text.encode() != data:
            self.log.add(_REPLACED, place)
        return text

    def _collect(self, record: Any, texts: dict[str, list[str]], place: str) -> None:
        if not isinstance(record, dict):
            self.log.add("line that is no JSON object", place)
            return
        if not isinstance(text := record.get(self.reading.text_field), str):
            self.log.add(f"document without text in the field {self.reading.text_field!r}", place)
        elif not text.strip():
            self.log.add("empty document", place)
        else:
            named = record
            for part in self.reading.subset_field.split("."):
                named = named.get(part) if isinstance(named, dict) else None
            texts.setdefault(named if isinstance(named, str) and named else self.subset, []).append(
                text
            )

    def parquet(self, path: Path) -> Iterator[Piece]:
        """A row is a document."""
        arrow, field = streams.corpus_package("pyarrow"), self.reading.text_field
        with streams.corpus_package("pyarrow.parquet").ParquetFile(path) as file:
            if field not in (names := file.schema_arrow.names):
                self.skip(f"file without a column {field!r}")
                return
            top = self.reading.subset_field.split(".")[0]
            columns = [field, *([top] if top in names and top != field else [])]
            for batch in file.iter_batches(batch_size=64, columns=columns):  # texts may be long
                texts: dict[str, list[str]] = {}
                at = batch.schema.get_field_index(field)
                if batch.schema.field(at).type in (
                    arrow.string(),
                    arrow.large_string(),
                ):  # may be invalid
                    batch = batch.set_column(at, field, batch.column(at).cast(arrow.large_binary()))
                for row in batch.to_pylist():
                    if isinstance(data := row[field], bytes):
                        row[field] = self._decoded(data, self.where)
                    self._collect(row, texts, self.where)
                yield from _joined(texts)

    def warc(self, stream: BinaryIO) -> Iterator[Piece]:
        """Records of extracted text (type "conversion"), as in Common Crawl's WET files."""
        while (version := stream.readline(2**16)) != b"":
            if not version.strip():
                continue
            if not version.startswith(b"WARC/"):
                self.skip("no WARC record where one should start")
                return
            fields = dict[str, str]()
            while (line := stream.readline(2**16)).strip():
                name, _colon, value = line.decode("utf-8", "replace").partition(":")
                fields[name.strip().lower()] = value.strip()
            length, kind = fields.get("content-length", ""), fields.get("warc-type", "")
            if not length.isdigit():
                self.skip("WARC record without a length")
                return
            wanted = kind == "conversion"
            if not wanted and kind != "warcinfo":
                self.skip(f"WARC record of type {kind!r}, not extracted text")
            yield from self._warc_body(stream, int(length), wanted=wanted)

    def _warc_body(self, stream: BinaryIO, length: int, *, wanted: bool) -> Iterator[Piece]:
        decoder, left = Decoder(), length
        if wanted and not length:
            self.skip("empty document")
            return
        while left:
            if not (data := stream.read(min(left, streams.BLOCK))):
                raise EOFError("the file ends within a record")
            left -= len(data)
            if wanted:
                valid, characters = decoder.feed(data, final=not left)
                yield Piece(self.subset, valid, int(not left), characters, more=bool(left))
        if not decoder.valid:
            self.skip(_REPLACED)


class _Resumed:
    """A stream of which the first bytes were read, from its start; packed streams cannot go
    back.
    """

    def __init__(self, start: bytes, stream: Any) -> None:
        self._start, self._more = start, getattr(stream, "read1", stream.read)

    def read(self, size: int) -> bytes:
        part, self._start = self._start[:size], self._start[size:]
        return part or self._more(size)


def _records(parsed: Any, field: str) -> list[Any]:
    """The records of a JSON value at any depth, and those without a text beside them."""
    if isinstance(parsed, dict):
        if isinstance(cells := parsed.get("cells"), list) and "nbformat" in parsed:
            sources = (cell.get("source", "") for cell in cells if isinstance(cell, dict))
            return [{field: "\n".join("".join(source) for source in sources)}]
        return [record for value in parsed.values() for record in _records(value, field)]
    if not isinstance(parsed, list):
        return []
    if any(isinstance(value, dict) and isinstance(value.get(field), str) for value in parsed):
        return parsed
    return [record for value in parsed for record in _records(value, field)]


def _lines(stream: Any, longest: int) -> Iterator[list[bytes] | None]:
    """Lines in groups; None for a line that is longer than ``longest``, which is not kept."""
    held, skipping = b"", False
    for block in streams.blocks(stream):
        head, newline, rest = block.rpartition(b"\n")
        if not newline:
            held = b"" if skipping else held + block
            if len(held) > longest:
                held, skipping = b"", True
            continue
        lines = (held + head).split(b"\n")
        if skipping:
            yield None
            lines, skipping = lines[1:], False
        short = [line for line in lines if len(line) <= longest]
        yield from [None] * (len(lines) - len(short))
        yield short
        held = rest
    if skipping or len(held) > longest:
        yield None
    elif held:
        yield [held]


def _joined(texts: dict[str, list[str]]) -> Iterator[Piece]:
    for subset, group in texts.items():
        # Each by itself: one rare letter would make every character of a joined text four bytes
        # wide.
        parts = [text.encode("utf-8", "replace") for text in group]
        data = SEPARATOR.join(parts)
        if data.count(b"\0") != len(parts) - 1:  # a text may hold the separator itself
            yield from (
                Piece(subset, part, 1, len(text)) for part, text in zip(parts, group, strict=True)
            )
        else:
            yield Piece(subset, data, len(group), sum(map(len, group)), separator=SEPARATOR)
