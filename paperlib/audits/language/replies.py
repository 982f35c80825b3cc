"""What a server that nobody vouches for sends back: a reply of limited size and time, and its text
without a key.
"""

import base64
import http.client
import io
import re
import socket
import urllib.request
from functools import lru_cache
from time import monotonic
from typing import Any

MOST_BYTES = 1 << 20
"""Bytes of a reply with its headers, at most."""
LONGEST = 120.0
"""Seconds for a whole reply, and for a connection, at most."""
_SHORT = 8  # characters; a shorter key, such as "none", may be a part of any word


class ReplyTooLong(Exception):
    """A reply has more than `MOST_BYTES`."""


class ReplyTooSlow(Exception):
    """A reply took longer than `LONGEST`."""


class _LimitedSocket(io.RawIOBase):
    """The bytes that come from a socket: so many at most, and all of them before one deadline,
    however slowly they drip.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._raw: Any = connection.makefile("rb", buffering=0)
        self._deadline = monotonic() + LONGEST
        self._received = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int | None:
        """Read what has arrived into the buffer, and return its number of bytes.

        Raises:
            ReplyTooSlow: The time of the whole reply is over, however steadily its bytes come.
            ReplyTooLong: The reply has more than `MOST_BYTES`.
        """
        seconds = self._deadline - monotonic()
        if seconds <= 0:
            raise ReplyTooSlow
        self._connection.settimeout(seconds)
        try:
            count = self._raw.readinto(buffer)
        except TimeoutError:
            raise ReplyTooSlow from None
        self._received += count or 0
        if self._received > MOST_BYTES:
            raise ReplyTooLong
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()


class _LimitedResponse(http.client.HTTPResponse):
    """A response whose status line and headers count, too."""

    def __init__(self, sock: socket.socket, *rest: Any, **options: Any) -> None:
        super().__init__(sock, *rest, **options)
        self.fp.close()
        self.fp = io.BufferedReader(_LimitedSocket(sock))


class _HTTP(http.client.HTTPConnection):
    response_class = _LimitedResponse


class _HTTPS(http.client.HTTPSConnection):
    response_class = _LimitedResponse


class _LimitedHTTP(urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> Any:
        return self.do_open(_HTTP, req)


class _LimitedHTTPS(urllib.request.HTTPSHandler):
    def https_open(self, req: urllib.request.Request) -> Any:
        return self.do_open(_HTTPS, req)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirected request would carry the key to another place."""

    def redirect_request(
        self, req: Any, fp: Any, code: Any, msg: Any, headers: Any, newurl: Any
    ) -> None:
        return None


def limited_opener(*, local: bool) -> urllib.request.OpenerDirector:
    """What opens a URL: with limited replies, no redirects, and, for a ``local`` server, no proxy,
    which would see the key of a request without TLS.

    Reading a reply may raise `ReplyTooLong` and `ReplyTooSlow` beside the usual errors.
    """
    handlers: list[Any] = [_LimitedHTTP, _LimitedHTTPS, _NoRedirect]
    if local:
        handlers.append(urllib.request.ProxyHandler({}))
    return urllib.request.build_opener(*handlers)


def without_key(text: str, key: str) -> str:
    """A text in which ... stands for the key, in whatever usual form the text repeats it.

    These are its letters, small or large, with spaces between, percent-encoded, escaped or in
    reverse order, and its bytes in hexadecimal digits or Base64. A key of fewer than eight
    characters is taken out where it is a word of its own. An empty key changes nothing.

    >>> without_key("bad key sk-12345678", "sk-12345678")
    'bad key ...'
    >>> without_key("sk%2D12345678, 87654321-ks", "sk-12345678")
    '..., ...'
    """
    return _forms(key).sub("...", text) if key else text


@lru_cache
def _forms(key: str) -> re.Pattern[str]:
    """The pattern of all forms of a key in a text: spelled as it is, in reverse order, as
    hexadecimal digits or as Base64; of a short key, the key as a word of its own.
    """
    if len(key) < _SHORT:
        return re.compile(rf"(?<![0-9A-Za-z]){re.escape(key)}(?![0-9A-Za-z])", re.IGNORECASE)
    forms = [_spelled(key), _spelled(key[::-1]), key.encode().hex()]
    # Base64 writes three bytes as four characters, so that a key looks different by how many bytes
    # of its first group of three stand before it.
    for before in range(3):
        padded = base64.b64encode(bytes(before) + key.encode()).decode().rstrip("=")
        # A character holds six bits: the outer ones also depend on the bytes around the key.
        forms.append(re.escape(padded[(8 * before + 5) // 6 : -1]))
    return re.compile("|".join(forms), re.IGNORECASE)


def _spelled(key: str) -> str:
    """A pattern of the characters of a key, each as it is, percent-encoded or escaped, with any
    white space between.
    """
    characters: list[str] = []
    for character in key:
        number = ord(character)
        characters.append(rf"(?:{re.escape(character)}|%{number:02x}|\\u{number:04x})")
    return r"\s*".join(characters)
