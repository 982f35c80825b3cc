"""Writing files so that a reader sees the old file or the new one, and never half of either."""

import errno
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from paperlib.core import json_ready

_REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EROFS: "the disk is read-only",
    errno.EACCES: "no permission to write there",
    errno.EPERM: "no permission to write there",
    errno.ENOTDIR: "a part of the path is a file, not a folder",
    errno.EISDIR: "the path is a folder",
}


class OutputError(OSError):
    """A file could not be written; what stood there before is untouched."""


@contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file for writing that takes its place only when all of it is on disk.

    Guarantee:
        After a crash, a full disk or an exception in the block, ``path`` is what it was before.

    Args:
        path: File to write; missing folders are made.

    Raises:
        OutputError: It cannot be written; the message says where and why.
    """
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    except OSError as error:
        raise output_error(target, error) from error
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, target)
    except OSError as error:
        raise output_error(target, error) from error
    finally:
        Path(name).unlink(missing_ok=True)


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


def output_error(target: Path, error: OSError) -> OutputError:
    """What to raise when ``target`` cannot be written: where, and why."""
    reason = _REASONS.get(error.errno or 0, error.strerror or str(error))
    return OutputError(f"cannot write {target}: {reason}; nothing was changed there")


def write_bytes(path: str | os.PathLike[str], data: bytes) -> None:
    """Write ``data`` in one piece or not at all.

    Raises:
        OutputError: It cannot be written.
    """
    with atomic_file(path) as file:
        file.write(data)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write UTF-8 text in one piece or not at all.

    Raises:
        OutputError: It cannot be written.
    """
    write_bytes(path, text.encode("utf-8"))


def write_json(path: str | os.PathLike[str], value: Any) -> None:
    """Write JSON with sorted keys, in one piece or not at all.

    Raises:
        OutputError: It cannot be written.
        ValueError: ``value`` holds something JSON has no word for.
    """
    write_text(path, canonical_json(value, indent=1) + "\n")


def canonical_json(value: Any, *, indent: int | None = None) -> str:
    """The same text for equal values: sorted keys; infinities and NaN as strings.

    Raises:
        ValueError: ``value`` holds something JSON has no word for.

    >>> canonical_json({"b": (1, 2.5), "a": float("inf")})
    '{"a": "inf", "b": [1, 2.5]}'
    """
    try:
        return json.dumps(
            json_ready(value), sort_keys=True, ensure_ascii=False, indent=indent, allow_nan=False
        )
    except TypeError as error:
        raise ValueError(f"value: expected numbers, text, lists and mappings; {error}") from None


def config_hash(config: Mapping[str, Any]) -> str:
    """32 hexadecimal digits that change when any value of ``config`` changes.

    >>> config_hash({"m": 100, "seed": 0}) == config_hash({"seed": 0, "m": 100})
    True
    """
    return hashlib.sha256(canonical_json(config).encode("utf-8")).hexdigest()[:32]


def file_sha256(path: str | os.PathLike[str]) -> str:
    """The SHA-256 of a file, as 64 hexadecimal digits."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
