"""Files: where they stand, written or downloaded so that a reader never sees half of one; result
files.
"""

import errno
import hashlib
import http.client
import json
import os
import stat
import sys
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, BinaryIO

from paperlib.core.results import json_ready
from paperlib.io.temporary import temporary_file, temporary_folder

DATA_VARIABLE = "PAPERLIB_DATA"
SCHEMA = 1
_CHECKSUM = "records_sha256"  # of the records of a result file, which are judged
_CHUNK = 1 << 20  # bytes of a download at a time
_REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the file would be larger than is allowed",
    errno.EROFS: "the disk is read-only",
    errno.EACCES: "no permission to write there",
    errno.EPERM: "no permission to write there",
    errno.ENOTDIR: "a part of the path is a file, not a folder",
    errno.EISDIR: "the path is a folder",
}


class OutputError(OSError):
    """A file could not be written; what stood there before is untouched."""


class DownloadError(RuntimeError):
    """A file could not be fetched, or is not the file that was asked for; nothing was kept."""


def user_cache_folder() -> Path:
    """The folder of this user's caches, which need not exist: ``XDG_CACHE_HOME`` says where, else
    the habit of the operating system.
    """
    base = os.environ.get("XDG_CACHE_HOME")
    if base:
        return Path(base) / "paperlib"
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA", str(Path.home() / "AppData" / "Local"))
        return Path(local) / "paperlib"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "paperlib"
    return Path.home() / ".cache" / "paperlib"


def data_folder() -> Path:
    """First place to look for data sets: ``PAPERLIB_DATA``, else a folder in the user's cache."""
    folder = os.environ.get(DATA_VARIABLE)
    return Path(folder).expanduser() if folder else user_cache_folder() / "data"


@contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file for writing that takes its place only when all of it is on disk; missing folders
    are made. A device or pipe, such as /dev/null, is written to: a file must not take its place.

    Guarantee:
        After a crash, a full disk or an exception in the block, ``path`` is what it was before.

    Raises:
        OutputError: It cannot be written; the message says where and why.
    """
    target = Path(path)
    if is_device(target):
        try:
            with target.open("wb") as file:
                yield file
        except OSError as error:
            raise output_error(target, error) from error
        return
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = temporary_file(target.parent, target.name)
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


@contextmanager
def atomic_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A folder to fill, which takes its place at ``path``, where none may be, when the block ends;
    missing folders around it are made.

    Guarantee:
        After a crash, a full disk or an exception in the block, nothing is at ``path``.

    Raises:
        OutputError: It cannot be written; the message says where and why.
    """
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with temporary_folder(target.parent, f".{target.name[:40]}.") as folder:
            yield folder
            folder.chmod(0o777 & ~_umask())
            folder.replace(target)
    except OSError as error:
        raise output_error(target, error) from error


def is_device(target: Path) -> bool:
    """Whether a path is that of a device, a pipe or a name of one in /dev, such as /dev/stdout."""
    try:
        mode = target.stat().st_mode
    except (OSError, ValueError):  # not there, or no path: the writing says which
        return False
    is_in_dev = os.name == "posix" and target.parent.resolve() == Path("/dev")
    return not stat.S_ISDIR(mode) and (is_in_dev or not stat.S_ISREG(mode))


def _umask() -> int:
    """Permissions that new files and folders do not get."""
    umask = os.umask(0)
    os.umask(umask)
    return umask


def output_error(target: Path, error: OSError) -> OutputError:
    """What to raise when ``target`` cannot be written: where, and why."""
    return OutputError(f"cannot write {target}: {reason_of(error)}; nothing was changed there")


def reason_of(error: OSError) -> str:
    """Why a file cannot be written, in words."""
    return _REASONS.get(error.errno or 0, error.strerror or str(error))


def write_bytes(path: str | os.PathLike[str], data: bytes) -> None:
    """Write ``data`` in one piece, or not at all with an OutputError."""
    with atomic_file(path) as file:
        file.write(data)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write text in UTF-8, in one piece, or not at all with an OutputError."""
    write_bytes(path, text.encode("utf-8"))


def write_json(path: str | os.PathLike[str], value: Any) -> None:
    """Write a value as `canonical_json` of several lines, in one piece, or not at all with an
    OutputError; a ValueError for what is no JSON.
    """
    write_text(path, canonical_json(value, indent=1) + "\n")


def canonical_json(value: Any, *, indent: int | None = None, is_ascii: bool = False) -> str:
    """JSON that is the same text for equal values: sorted keys; infinities and NaN as strings.

    Args:
        value: Numbers, text, lists, mappings, arrays and dataclasses.
        indent: Spaces of each level; None for one line.
        is_ascii: Whether other characters are escaped, for any terminal.

    Raises:
        ValueError: Other values.

    >>> canonical_json({"b": (1, 2.5), "a": float("inf")})
    '{"a": "inf", "b": [1, 2.5]}'
    """
    try:
        return json.dumps(
            json_ready(value), sort_keys=True, ensure_ascii=is_ascii, indent=indent, allow_nan=False
        )
    except TypeError as error:
        raise ValueError(f"value: expected numbers, text, lists and mappings; {error}") from None


def config_hash(config: Mapping[str, Any]) -> str:
    """32 hexadecimal digits that change when any value of ``config`` changes, and not with their
    order.
    """
    return hashlib.sha256(canonical_json(config).encode("utf-8")).hexdigest()[:32]


def file_sha256(path: str | os.PathLike[str]) -> str:
    """The SHA-256 of a file, as 64 hexadecimal digits."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fetch(
    url: str,
    path: str | os.PathLike[str],
    *,
    sha256: str | None = None,
    timeout: float = 30.0,
    opener: Callable[..., Any] = urllib.request.urlopen,
) -> str:
    """Download an https address to a file, whose folders are made, and return the SHA-256 of the
    file.

    Guarantee:
        ``path`` holds the whole file, with the checksum asked for, or is what it was before.

    Args:
        url: Address, with https.
        path: Where the file is put.
        sha256: The checksum that it must have, 64 hexadecimal digits; None for any.
        timeout: Seconds to wait for an answer, and for each piece of it.
        opener: Opens the address, as ``urllib.request.urlopen`` does.

    Raises:
        DownloadError: No https, no answer for ``timeout`` seconds, a file cut short, or another
            checksum.
        OutputError: The file cannot be written.
    """
    if not url.startswith("https://"):
        raise DownloadError(f"url: expected an https address, got {url!r}")
    digest = hashlib.sha256()
    with atomic_file(path) as file:
        for chunk in _chunks(url, timeout, opener):
            digest.update(chunk)
            file.write(chunk)
        if sha256 is not None and digest.hexdigest() != sha256:
            raise DownloadError(
                f"{url}: expected SHA-256 {sha256}, got {digest.hexdigest()}; the file was not kept"
            )
    return digest.hexdigest()


def _chunks(url: str, timeout: float, opener: Callable[..., Any]) -> Iterator[bytes]:
    """The bytes behind a URL, piece after piece.

    Raises:
        DownloadError: No answer within ``timeout`` seconds, or fewer bytes than it announced.
    """
    received = 0
    try:
        with opener(url, timeout=timeout) as answer:
            length = answer.headers.get("Content-Length") or ""
            while chunk := answer.read(_CHUNK):
                received += len(chunk)
                yield chunk
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise DownloadError(f"{url} cannot be fetched: {error}") from error
    if length.isdigit() and received != int(length):
        raise DownloadError(f"{url}: the answer was cut short after {received} of {length} bytes")


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """The content of a result file.

    Attributes:
        records: One mapping per paper table or figure: its evidence and scale, as `record` keeps
            them.
        data: Names of the CSVs written beside it.
        provenance: Date, commit, versions, hardware, wall time, checksums.

    The file also holds ``records_sha256``, the checksum of its records.
    """

    notebook: str
    profile: str
    parameters: dict[str, Any] = field(default_factory=dict)
    records: list[dict[str, Any]] = field(default_factory=list)
    data: list[str] = field(default_factory=list)
    provenance: dict[str, Any] = field(default_factory=dict)


def write_result(path: str | os.PathLike[str], result: RunResult) -> None:
    """Write a result file in one piece, or not at all with an OutputError."""
    content = {"schema": SCHEMA, **vars(result), _CHECKSUM: _records_checksum(result.records)}
    write_json(path, content)


def read_result(path: str | os.PathLike[str]) -> RunResult:
    """Read a result file; a ValueError for other text, another schema, a missing key, and records
    that were changed after they were written.
    """
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{path}: not a result file ({error})") from None
    schema = content.get("schema") if isinstance(content, dict) else None
    if schema != SCHEMA:
        raise ValueError(f"{path}: expected a result file of schema {SCHEMA}, got {schema!r}")
    keys = [field.name for field in fields(RunResult)]
    missing = [key for key in (*keys, _CHECKSUM) if key not in content]
    if missing:
        raise ValueError(f"{path}: the result file lacks {', '.join(missing)}; run it again")
    if content[_CHECKSUM] != _records_checksum(content["records"]):
        raise ValueError(f"{path}: its records were changed after the run; run it again")
    return RunResult(**{key: content[key] for key in keys})


def _records_checksum(records: list[dict[str, Any]]) -> str:
    """SHA-256 of the records of a result file, which its layout does not change."""
    return hashlib.sha256(canonical_json(records).encode("utf-8")).hexdigest()
