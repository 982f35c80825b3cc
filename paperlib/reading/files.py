"""Bytes of a file: a regular one alone, or an open pipe, and never more than may be read."""

import gzip
import io
import stat
import sys
import zlib
from pathlib import Path
from typing import Any

from paperlib.reading.limits import check_size, check_text, in_bytes

STANDARD_INPUT = "standard input"
_PIECE = 1 << 20  # bytes that are read at a time
_OPEN_FILES = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")
_NO_FILE = {
    stat.S_IFIFO: "a named pipe, which may never end; write it to a file first, or pipe it to - "
    "(standard input) where the command takes that",
    stat.S_IFSOCK: "a socket; give a file",
    stat.S_IFCHR: "a device; write what it holds to a file first",
    stat.S_IFBLK: "a device; write what it holds to a file first",
}


def regular_file(path: str | Path) -> Path:
    """The path of a regular file, or of a pipe that is open already, such as /dev/stdin.

    Raises:
        ValueError: A folder, a named pipe (which would wait for ever), a socket or a device, in one
            line.
        OSError: There is no such file, as the system says it.
    """
    file = user_path(path)
    mode = file.stat().st_mode
    if stat.S_ISDIR(mode):
        raise ValueError(f"{path}: this is a folder; give one of its files")
    is_open = stat.S_ISFIFO(mode) and str(path).startswith(_OPEN_FILES)
    if not stat.S_ISREG(mode) and not is_open:
        kind = _NO_FILE.get(stat.S_IFMT(mode), "no regular file; give one")
        raise ValueError(f"{path}: this is {kind}")
    return file


def user_path(path: str | Path) -> Path:
    """The path with the user's own folder for a ``~`` in front, which a shell puts there only where
    it stands in front of a word; as it is, where a file is called so or there is no such user.
    """
    file = Path(path)
    if file.exists():
        return file
    try:
        return file.expanduser()
    except RuntimeError:
        return file


def read_file(path: str | Path) -> bytes:
    """All bytes of a regular file or an open pipe.

    Raises:
        ValueError: No regular file, in one line that names it; a `TooLargeError` for one beyond the
            limit of memory.
        OSError: There is no such file, or it cannot be read.
    """
    file = regular_file(path)
    size = file.stat().st_size
    try:
        check_size(size, f"{size:,} bytes")
        with file.open("rb") as stream:
            # A pipe, and a file that the system makes up, say 0.
            return stream.read() if size else read_stream(stream)
    except ValueError as error:
        raise type(error)(f"{path}: {error}") from None


def read_standard_input() -> bytes:
    """All bytes of the text of standard input; a `TooLargeError` where they pass the limit."""
    return read_stream(sys.stdin.buffer, is_text=True)


def read_stream(stream: Any, *, is_text: bool = False) -> bytes:
    """All bytes of a stream, read in pieces; a `TooLargeError` where they pass the limit.

    Args:
        stream: What has ``read(size)``.
        is_text: Whether the bytes will be cut into lines, which take more memory.
    """
    held = io.BytesIO()
    lines = 0
    while piece := stream.read(_PIECE):
        held.write(piece)
        if is_text:
            lines += piece.count(b"\n")
            check_text(held.tell(), lines, start="more than ")
        else:
            check_size(held.tell(), f"more than {in_bytes(held.tell())}")
    return held.getvalue()


def unpacked(data: bytes) -> bytes:
    """Text out of gzip, in pieces, within the limit; other bytes as they are.

    Raises:
        ValueError: The packed data are damaged.
        TooLargeError: There is more text than may be read.
    """
    if data[:2] != b"\x1f\x8b":
        return data
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
            return read_stream(stream, is_text=True)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"cannot be read: the gzip file is damaged ({error})") from None
