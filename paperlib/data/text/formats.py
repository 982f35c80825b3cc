"""Reading one file of a corpus in pieces: plain text, JSON lines, Parquet and WARC."""

import codecs
import json
import mmap
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from paperlib.data.text import streams
from paperlib.data.text.pieces import SEPARATOR, Decoder, Piece, Reading, ReadLog
from paperlib.reading.parquet import largest_page

_LONGEST_HEADER = 18  # bytes, of a frame
_RUN = 1  # type of a block that holds one byte to be repeated
_ROWS_AT_ONCE = 64  # of a Parquet file, whose texts may be long
_BATCH = 1 << 28  # bytes that these may have, where each is as long as what is stored
_SKIPPABLE = b"\x2a\x4d\x18"  # mark of a frame that holds no data, behind a byte of any value


def ends_within_frame(path: Path, zstandard: Any) -> bool:
    """Whether the last frame of a file lacks its end, by its headers alone (RFC 8878, section
    3.1).
    """
    size = path.stat().st_size
    offset = 0  # where the next frame starts
    with path.open("rb") as file:
        while offset < size:
            end = _frame_end(file, offset, zstandard)
            if end is None:
                return True
            offset = end
    return offset > size  # the last frame should end behind the file's end


def _frame_end(file: BinaryIO, start: int, zstandard: Any) -> int | None:
    """The byte behind the frame that starts at byte ``start``, by its headers; None if the file
    ends before its last block.
    """
    file.seek(start)
    head = file.read(_LONGEST_HEADER)
    if head[1:4] == _SKIPPABLE:  # four bytes of mark, four of the length of what follows
        return start + 8 + int.from_bytes(head[4:8], "little")
    offset = start + zstandard.frame_header_size(head)
    is_last = False
    while not is_last:
        file.seek(offset)
        header = file.read(3)
        if len(header) < 3:
            return None
        # From the lowest bit: 1 for the last block, 2 for its type, 21 for its length.
        bits = int.from_bytes(header, "little")
        is_last = bool(bits & 1)
        kind = bits >> 1 & 3
        length = bits >> 3
        offset += 3 + (1 if kind == _RUN else length)
    checksum = 4 if zstandard.get_frame_parameters(head).has_checksum else 0
    return offset + checksum


_REPLACED = "invalid UTF-8, its bytes replaced"


def read_pieces(path: Path, subset: str, reading: Reading, log: ReadLog) -> Iterator[Piece]:
    """Pieces of about a mebibyte; a damaged, binary or unreadable file goes to the log and raises
    nothing.
    """
    reader = _Reader(subset, reading, log, streams.printable(path.name))
    is_unfinished = False  # the last document so far
    try:
        for piece in reader.pieces(path):
            yield piece
            is_unfinished = piece.more
    except streams.damages() as error:
        if is_unfinished:
            yield Piece(subset, b"", 1, 0)  # what came before the damage is a document
        message = " ".join(str(error).split()) or type(error).__name__
        log.add("damaged or unreadable file", f"{reader.where}: {message}")


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

    def pieces(self, path: Path) -> Iterator[Piece]:
        """All pieces of the file by its format; an error of `streams.damages` for a damaged one."""
        kind, packed = streams.format_of(path)
        head = streams.first_bytes(path, packed)
        if path.stat().st_size == 0:
            self.skip("empty file")
            return
        if kind == "parquet":
            yield from self.parquet(path)
            return
        reason = streams.not_text(head)
        if reason:
            self.skip(reason)
            return
        # Of other names JSON is told by its first letter; `json` reads it as text if it is none.
        if kind == "text" and (head.lstrip()[:1] in (b"{", b"[") or path.suffix == ".ipynb"):
            kind = "json"
        readers: dict[str, Callable[[Any], Iterator[Piece]]] = {
            "text": self.text,
            "json": self.json,
            "jsonl": self.jsonl,
            "warc": self.warc,
        }
        with streams.open_packed(path, packed) as stream:
            yield from readers[kind](stream)
        if packed == ".zst" and ends_within_frame(path, streams.corpus_package("zstandard")):
            raise EOFError("the file ends within a frame")

    def text(self, stream: Any) -> Iterator[Piece]:
        """Pieces of a text file, which is one document; none of a binary or an empty file, which
        goes to the log.
        """
        decoder = Decoder()
        held = b""  # the last block so far, which ends the document unless another one follows
        is_blank = True
        try:
            for number, block in enumerate(streams.blocks(_as_utf8(stream))):
                if number == 0 and b"\0" in block[: 2**16]:
                    self.skip("binary file")
                    return
                if held:
                    yield self._unfinished(decoder, held)
                held = block
                is_blank = number == 0 and not block.strip()
        except streams.damages():
            if held:
                yield self._unfinished(decoder, held)
            raise
        if is_blank:
            self.skip("empty file")
            return
        data, characters = decoder.feed(held, final=True)
        yield Piece(self.subset, data, 1, characters)
        if not decoder.valid:
            self.skip(_REPLACED)

    def _unfinished(self, decoder: Decoder, data: bytes) -> Piece:
        """A piece of a document that goes on in the next one."""
        valid, characters = decoder.feed(data, final=False)
        return Piece(self.subset, valid, 0, characters, more=True)

    def json(self, stream: Any) -> Iterator[Piece]:
        """A JSON file: its records with a text, the cells of a notebook, lines of JSON, or else one
        text.
        """
        stream = _as_utf8(stream)
        data = _read_up_to(stream, self.reading.longest_line + 1)
        texts = self._json_texts(data)
        if texts:
            yield from _joined(texts)
        elif _is_json_lines(data, self.reading.text_field):
            yield from self.jsonl(_Resumed(data, stream))
        else:
            yield from self.text(_Resumed(data, stream))

    def _json_texts(self, data: bytes) -> dict[str, list[str]]:
        """Texts of the records of a whole JSON file, by subset; none where ``data`` are not one
        value of JSON, or hold no record. Strings of a list are texts themselves.
        """
        field = self.reading.text_field
        texts: dict[str, list[str]] = {}
        with suppress(ValueError, RecursionError):
            parsed = json.loads(data)
            if isinstance(parsed, list):
                parsed = [{field: value} if isinstance(value, str) else value for value in parsed]
            elif _has_text(parsed, field):
                parsed = [parsed]
            for record in _records(parsed, field):
                self._collect(record, texts, self.where)
        return texts

    def jsonl(self, stream: Any) -> Iterator[Piece]:
        """Pieces of JSON lines, of which each is a document; documents of one subset in a block
        share a piece. Lines that hold no text go to the log.
        """
        parse = _json_parser()
        count = 0  # lines so far
        for lines in _lines(stream, self.reading.longest_line):
            if lines is None:
                self.skip(f"line of more than {self.reading.longest_line} bytes")
                continue
            texts: dict[str, list[str]] = {}
            for number, line in enumerate(lines, count + 1):
                content = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
                if content.strip():
                    where = f"{self.where}, line {number}"
                    self._collect(self._parsed(content, parse, where), texts, where)
            count += len(lines)
            yield from _joined(texts)

    def _parsed(self, line: bytes, parse: Callable[[bytes], Any], where: str) -> Any:
        """The value of a line of JSON by ``parse``, or by the standard library where that refuses
        it; None where it is no JSON.
        """
        with suppress(ValueError):
            return parse(line)
        with suppress(ValueError, RecursionError):
            # Takes lone surrogates, NaN and endless integers, which orjson refuses.
            return json.loads(self._decoded(line, where), parse_int=float)
        return None

    def _decoded(self, data: bytes, where: str) -> str:
        """The text of UTF-8; invalid bytes are replaced, which is counted."""
        text = data.decode("utf-8", "replace")
        if "\ufffd" in text and text.encode() != data:  # else the text itself has that character
            self.log.add(_REPLACED, where)
        return text

    def _collect(self, record: Any, texts: dict[str, list[str]], where: str) -> None:
        """Add the record's text to those of its subset in ``texts``; one without a text goes to the
        log with its place, ``where``.
        """
        field = self.reading.text_field
        if not isinstance(record, dict):
            self.log.add("line that is no JSON object", where)
            return
        text = record.get(field)
        if not isinstance(text, str):
            self.log.add(f"document without text in the field {field!r}", where)
        elif not text.strip():
            self.log.add("empty document", where)
        else:
            texts.setdefault(self._subset_of(record), []).append(text)

    def _subset_of(self, record: dict[str, Any]) -> str:
        """The subset that a record names, by a field or a field within fields; else the file's."""
        value: Any = record
        for name in self.reading.subset_field.split("."):
            value = value.get(name) if isinstance(value, dict) else None
        return value if isinstance(value, str) and value else self.subset

    def parquet(self, path: Path) -> Iterator[Piece]:
        """Pieces of a Parquet file, of which each row is a document; a few rows are in memory at a
        time. An OSError where the file's pages are damaged.
        """
        field = self.reading.text_field
        with (
            streams.corpus_package("pyarrow.parquet").ParquetFile(path) as file,
            path.open("rb") as opened,
            mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data,
        ):
            names = file.schema_arrow.names
            if field not in names:
                self.skip(f"file without a column {field!r}")
                return
            columns = [field]
            subset_column = self.reading.subset_field.split(".")[0]
            if subset_column in names and subset_column != field:
                columns.append(subset_column)
            try:
                longest = largest_page(data, file.metadata, field)
            except ValueError as error:
                raise OSError(str(error)) from None
            # Repeated texts are stored once: each row may be as long as the largest page.
            rows = max(1, min(_ROWS_AT_ONCE, _BATCH // longest))
            for batch in file.iter_batches(batch_size=rows, columns=columns):
                texts: dict[str, list[str]] = {}
                for row in _with_bytes(batch, field).to_pylist():
                    if isinstance(row[field], bytes):
                        row[field] = self._decoded(row[field], self.where)
                    self._collect(row, texts, self.where)
                yield from _joined(texts)

    def warc(self, stream: BinaryIO) -> Iterator[Piece]:
        """Pieces of text from the records of extracted text (type "conversion") of a WARC file, as
        in Common Crawl's WET files; what is skipped goes to the log.
        """
        while True:
            version = stream.readline(2**16)
            if version == b"":
                return
            if not version.strip():
                continue
            if not version.startswith(b"WARC/"):
                self.skip("no WARC record where one should start")
                return
            fields = _warc_fields(stream)
            length = fields.get("content-length", "")
            if not length.isdigit():
                self.skip("WARC record without a length")
                return
            kind = fields.get("warc-type", "")
            if kind not in ("conversion", "warcinfo"):
                self.skip(f"WARC record of type {kind!r}, not extracted text")
            yield from self._warc_body(stream, int(length), is_text=kind == "conversion")

    def _warc_body(self, stream: BinaryIO, length: int, *, is_text: bool) -> Iterator[Piece]:
        """Read the body of a record, of so many bytes: of a text its pieces, which make one
        document; any other is read over.

        Raises:
            EOFError: The stream ends before the body does.
        """
        if is_text and not length:
            self.skip("empty document")
            return
        decoder = Decoder()
        left = length
        while left:
            data = stream.read(min(left, streams.BLOCK))
            if not data:
                raise EOFError("the file ends within a record")
            left -= len(data)
            if is_text:
                utf8, characters = decoder.feed(data, final=not left)
                yield Piece(self.subset, utf8, int(not left), characters, more=bool(left))
        if not decoder.valid:
            self.skip(_REPLACED)


def _read_up_to(stream: Any, size: int) -> bytes:
    """So many bytes of a stream, or all that it has."""
    held = bytearray()
    while len(held) < size:
        data = stream.read(size - len(held))
        if not data:
            break
        held += data
    return bytes(held)


class _Resumed:
    """A stream of which the first bytes were read, from its start; packed streams cannot go
    back.
    """

    def __init__(self, start: bytes, stream: Any) -> None:
        self._start = start
        self._read_on = getattr(stream, "read1", stream.read)

    def read(self, size: int) -> bytes:
        """At most ``size`` bytes, first of the start; none at the end."""
        data = self._start[:size]
        self._start = self._start[size:]
        return data or self._read_on(size)


class _FromUtf16:
    """A stream of UTF-16 with its mark, from its start, as UTF-8."""

    def __init__(self, start: bytes, stream: Any) -> None:
        self._stream = _Resumed(start, stream)
        self._decoder = codecs.getincrementaldecoder("utf-16")("replace")
        self._held = b""
        self._is_over = False

    def read(self, size: int) -> bytes:
        """At most ``size`` bytes, none at the end."""
        while not self._held and not self._is_over:
            data = self._stream.read(streams.BLOCK)
            self._is_over = not data
            self._held = self._decoder.decode(data, final=self._is_over).encode("utf-8", "replace")
        data = self._held[:size]
        self._held = self._held[size:]
        return data


def _as_utf8(stream: Any) -> Any:
    """The stream of a text from its start, in UTF-8 where a mark says that it is UTF-16."""
    start = stream.read(2)
    if start in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return _FromUtf16(start, stream)
    return _Resumed(start, stream)


def _json_parser() -> Callable[[bytes], Any]:
    """What parses a line of JSON; orjson's is five times faster, and optional."""
    try:
        import orjson
    except ModuleNotFoundError:
        return json.loads
    return orjson.loads


def _with_bytes(batch: Any, field: str) -> Any:
    """Rows of a Parquet file with the column ``field`` as bytes in place of text, since a text may
    not be valid UTF-8; a column of another type stays as it is.
    """
    arrow = streams.corpus_package("pyarrow")
    index = batch.schema.get_field_index(field)
    if batch.schema.field(index).type not in (arrow.string(), arrow.large_string()):
        return batch
    return batch.set_column(index, field, batch.column(index).cast(arrow.large_binary()))


def _warc_fields(stream: BinaryIO) -> dict[str, str]:
    """The values of a WARC record's header by names in lower case; the stream is left behind the
    empty line that ends it.
    """
    fields: dict[str, str] = {}
    while True:
        line = stream.readline(2**16)
        if not line.strip():
            return fields
        name, _colon, value = line.decode("utf-8", "replace").partition(":")
        fields[name.strip().lower()] = value.strip()


def _has_text(value: Any, field: str) -> bool:
    """Whether a JSON value is a record with a text in this field."""
    return isinstance(value, dict) and isinstance(value.get(field), str)


def _is_json_lines(data: bytes, field: str) -> bool:
    """Whether the first line of the data is a record with a text."""
    with suppress(ValueError, RecursionError):
        return _has_text(json.loads(data.lstrip().partition(b"\n")[0]), field)
    return False


def _records(parsed: Any, field: str) -> list[Any]:
    """The records of a JSON value at any depth: all values of a list in which one has a text in
    ``field``, and a notebook's cells as one record.
    """
    if isinstance(parsed, dict):
        cells = parsed.get("cells")
        if isinstance(cells, list) and "nbformat" in parsed:
            return [{field: _text_of_cells(cells)}]
        values = list(parsed.values())
    elif isinstance(parsed, list):
        if any(_has_text(value, field) for value in parsed):
            return parsed
        values = parsed
    else:
        return []
    return [record for value in values for record in _records(value, field)]


def _text_of_cells(cells: list[Any]) -> str:
    """The sources of a notebook's cells, each a text or a list of lines, one below the other."""
    sources = (cell.get("source", "") for cell in cells if isinstance(cell, dict))
    return "\n".join("".join(source) for source in sources)


def _lines(stream: Any, longest: int) -> Iterator[list[bytes] | None]:
    """Lines in groups, without their ends, each group those that end in one block; None for a line
    of more than ``longest`` bytes, which is not kept.
    """
    held = b""  # the start of a line whose end has not been read
    skipping = False  # within a line that was too long to be kept
    for block in streams.blocks(stream):
        head, newline, rest = block.rpartition(b"\n")
        if newline:
            lines = (held + head).split(b"\n")
            if skipping:
                yield None
                lines = lines[1:]
                skipping = False
            yield from _short_lines(lines, longest)
            held = rest
        elif not skipping:
            held += block
            if len(held) > longest:
                held = b""
                skipping = True
    if skipping or len(held) > longest:
        yield None
    elif held:
        yield [held]


def _short_lines(lines: list[bytes], longest: int) -> Iterator[list[bytes] | None]:
    """None for each line that is longer than ``longest``, then the others."""
    short = [line for line in lines if len(line) <= longest]
    for _ in range(len(lines) - len(short)):
        yield None
    yield short


def _joined(texts: dict[str, list[str]]) -> Iterator[Piece]:
    """The texts of each subset as one piece, or as one each where a text holds the separator."""
    for subset, group in texts.items():
        # Each by itself: one rare letter would make every character of a joined text four bytes
        # wide.
        encoded = [text.encode("utf-8", "replace") for text in group]
        data = SEPARATOR.join(encoded)
        if data.count(b"\0") != len(encoded) - 1:  # more than stand in the separators
            for text, text_data in zip(group, encoded, strict=True):
                yield Piece(subset, text_data, 1, len(text))
        else:
            yield Piece(subset, data, len(group), sum(map(len, group)), separator=SEPARATOR)
