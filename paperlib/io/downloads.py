"""Downloads: over https, checked against a known checksum, in one piece or not at all."""

import hashlib
import http.client
import urllib.request
from collections.abc import Callable, Iterator
from os import PathLike
from typing import Any

from paperlib.io.files import atomic_file

CHUNK = 1 << 20


class DownloadError(RuntimeError):
    """A file could not be fetched, or is not the file that was asked for; nothing was kept."""


def fetch(
    url: str,
    path: str | PathLike[str],
    *,
    sha256: str | None = None,
    timeout: float = 30.0,
    opener: Callable[..., Any] = urllib.request.urlopen,
) -> str:
    """Download ``url`` to ``path``.

    Guarantee:
        ``path`` holds the whole file, with the checksum asked for, or is what it was before.

    Args:
        url: An https address.
        path: File to write; missing folders are made.
        sha256: The checksum it must have, 64 hexadecimal digits; None accepts any content.
        timeout: Seconds without an answer after which to give up.
        opener: Opens the address; `urllib.request.urlopen` honours the usual proxy variables.

    Returns:
        The SHA-256 of the file.

    Raises:
        DownloadError: No https, no answer, a file cut short, or another checksum.
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
    received = 0
    try:
        with opener(url, timeout=timeout) as answer:
            length = answer.headers.get("Content-Length") or ""
            while chunk := answer.read(CHUNK):
                received += len(chunk)
                yield chunk
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise DownloadError(f"{url} cannot be fetched: {error}") from error
    if length.isdigit() and received != int(length):
        raise DownloadError(f"{url}: the answer was cut short after {received} of {length} bytes")
