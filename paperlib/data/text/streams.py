"""Opening one file of a corpus: its format and compression, and its bytes block by block."""

import bz2
import gzip
import lzma
import os
import zlib
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO

from paperlib.core.packages import optional_package

corpus_package = partial(optional_package, extra="corpora", purpose="reading this corpus")
BLOCK = 2**20  # bytes read at one time
_FORMATS = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".warc": "warc",
    ".wet": "warc",
}
_PACKED = {".gz": b"\x1f\x8b", ".zst": b"\x28\xb5\x2f\xfd", ".bz2": b"BZh", ".xz": b"\xfd7zXZ\0"}
_ARCHIVES = (
    b"PK\3\4",
    b"7z\xbc\xaf\x27\x1c",
    b"Rar!",
    b"%PDF-",
    b"SQLite format 3",
    b"\xd0\xcf\x11\xe0",
    b"{\\rtf",
)


def printable(name: str) -> str:
    """A file name as text: bytes that are none become a replacement character."""
    return os.fsencode(name).decode("utf-8", "replace")


def format_of(path: Path) -> tuple[str, str]:
    """Format ("jsonl", "parquet", "warc" or "text") and compression (".gz", ".zst", ".bz2", ".xz",
    or empty for none) of a file, by its first bytes where they tell, else by its name.
    """
    name = path.name.lower()
    named = next((suffix for suffix in _PACKED if name.endswith(suffix)), "")
    magic = first_bytes(path, "")
    packed = next((suffix for suffix, mark in _PACKED.items() if magic.startswith(mark)), named)
    inner = Path(name.removesuffix(named)).suffix  # the ending of what is packed
    if magic.startswith(b"PAR1"):
        return "parquet", ""
    if packed and inner == ".json":  # as in Dolma and C4
        return "jsonl", packed
    return _FORMATS.get(inner, "text"), packed


def first_bytes(path: Path, packed: str) -> bytes:
    """The first bytes of a file, unpacked; none where it is not there or damaged."""
    with suppress(*damages()), open_packed(path, packed) as stream:
        return stream.read(512)
    return b""


def not_text(head: bytes) -> str:
    """Why a file that begins with these bytes is no text: a pointer or an archive; empty for a
    text.
    """
    is_tar = head[257:262] == b"ustar"  # the place of its mark in a tar archive
    if is_tar or head.startswith(_ARCHIVES):
        return "archive or document file, not text (unpack or convert it)"
    if head.startswith(b"version https://git-lfs.github.com/spec/"):
        return "Git LFS pointer in place of a file (run git lfs pull)"
    link = len(head) < 400 and b"\n" not in head.strip() and b".git/annex/objects/" in head
    if link or head.startswith(b"/annex/objects/"):
        return "git-annex pointer in place of a file (run git annex get)"
    return ""


def open_packed(path: Path, packed: str) -> BinaryIO:
    """Open a file, and unpack it on the way where ``packed``, as of `format_of`, is not empty."""
    if packed == ".zst":
        unpack = corpus_package("zstandard").ZstdDecompressor(max_window_size=2**31)
        return unpack.stream_reader(path.open("rb"), read_across_frames=True, closefd=True)
    openers: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
    return openers.get(packed, open)(path, "rb")


def damages() -> tuple[type[BaseException], ...]:
    """Errors that reading a damaged file may raise."""
    errors: list[type[BaseException]] = [OSError, EOFError, zlib.error, lzma.LZMAError]
    for package, name in (("zstandard", "ZstdError"), ("pyarrow", "ArrowException")):
        if find_spec(package):
            errors.append(getattr(import_module(package), name))
    return tuple(errors)


def blocks(stream: Any) -> Iterator[bytes]:
    """Blocks of ``BLOCK`` bytes, the last one shorter; of a damaged stream first what it gave
    before the damage, and then its error, one of `damages`.
    """
    # ``read1`` returns what it has before the damage, where ``read`` would raise and lose it.
    read = getattr(stream, "read1", stream.read)
    held = bytearray()
    try:
        while data := read(BLOCK - len(held)):
            held += data
            if len(held) == BLOCK:
                yield bytes(held)
                held.clear()
    except damages():
        if held:
            yield bytes(held)
        raise
    if held:
        yield bytes(held)
