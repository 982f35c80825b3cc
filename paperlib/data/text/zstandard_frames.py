"""Checks that a Zstandard file is complete: the library reads a truncated one without an error."""

from pathlib import Path
from typing import Any, BinaryIO

_LONGEST_HEADER = 18
_RUN = 1  # type of a block that holds one byte to be repeated
_SKIPPABLE = b"\x2a\x4d\x18"


def ends_within_frame(path: Path, zstandard: Any) -> bool:
    """Whether the last frame of a file lacks its end. Only headers are read, three bytes per block.

    Source:
        RFC 8878, section 3.1.

    >>> import tempfile, zstandard
    >>> path = Path(tempfile.mkdtemp()) / "a.zst"
    >>> _ = path.write_bytes(zstandard.compress(b"hello")[:-1])
    >>> ends_within_frame(path, zstandard)
    True
    """
    size, at = path.stat().st_size, 0
    with path.open("rb") as file:
        while at < size:
            at = _frame_end(file, at, zstandard)
    return at > size


def _frame_end(file: BinaryIO, at: int, zstandard: Any) -> int:
    """End of the frame that starts at ``at``, as its header states."""
    file.seek(at)
    head = file.read(_LONGEST_HEADER)
    if head[1:4] == _SKIPPABLE:
        return at + 8 + int.from_bytes(head[4:8], "little")
    frame = zstandard.get_frame_parameters(head)
    at, last = at + zstandard.frame_header_size(head), False
    while not last:
        file.seek(at)
        raw = file.read(3)
        if len(raw) < 3:
            return at + 3  # beyond the end of the file
        block = int.from_bytes(raw, "little")
        last, kind, length = bool(block & 1), block >> 1 & 3, block >> 3
        at += 3 + (1 if kind == _RUN else length)
    return at + (4 if frame.has_checksum else 0)
