"""A model behind an OpenAI-compatible address."""

import http.client
import json
import re
import time
import urllib.request
from contextlib import suppress
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any, cast
from urllib.error import HTTPError
from urllib.parse import urlsplit

from paperlib.audits.language.replies import (
    LONGEST,
    MOST_BYTES,
    ReplyTooLong,
    ReplyTooSlow,
    limited_opener,
    without_key,
)
from paperlib.core.visible import visible_text

ANSWER_TOKENS = 100  # in an answer, at most: room for a whole identifier
_ATTEMPTS = 6
_LONGEST_WAIT = 300.0  # seconds
_LOCAL = ("localhost", "127.0.0.1")
_VISIBLE = re.compile("[!-~]*")
_TASK = (
    "You see the beginning of a text. Go on with it from where it ends; write only what follows."
)


class _TryAgain(Exception):
    """No answer this time, for a reason that may pass; ``wait`` is what the server asks, in
    seconds.
    """

    def __init__(self, reason: str, wait: float = 0.0) -> None:
        super().__init__(reason)
        self.wait = wait


@dataclass(frozen=True, kw_only=True)
class ChatEndpoint:
    """Prompt to answer, over HTTP; a ValueError for a bad URL, and where no answer comes.

    Args:
        url: Used as it stands if it ends in /completions; else /chat/completions is added.
        key: Visible ASCII characters. Sent to this host alone, and part of no message and no
            answer, even if the server repeats it.
    """

    url: str
    model: str
    key: str = field(default="", repr=False)
    temperature: float = 0.0

    def __post_init__(self) -> None:
        """Refuse (ValueError) an address that a key must not be sent to or that is no address of an
        API, and complete its path.
        """
        address = urlsplit(self.url)
        url = self.url.rstrip("/")
        if address.scheme not in ("http", "https") or not address.hostname:
            raise ValueError("URL: expected one such as https://host/v1")
        if not _VISIBLE.fullmatch(self.url):
            raise ValueError("URL: expected visible ASCII characters alone")
        if "@" in address.netloc or "?" in self.url or "#" in self.url:
            raise ValueError(
                "URL: expected no password, ? or #; a key goes into a variable: --key-variable"
            )
        if self.key and address.scheme == "http" and address.hostname not in _LOCAL:
            raise ValueError("URL: expected https, as a key is sent there")
        if not _VISIBLE.fullmatch(self.key):
            raise ValueError(
                "key: expected visible ASCII characters, without spaces and line breaks; no "
                "header can carry another one"
            )
        if not url.endswith("/completions"):
            url += "/chat/completions"
        object.__setattr__(self, "url", url)

    @property
    def host(self) -> str:
        """Name and port of the server, for messages."""
        return urlsplit(self.url).netloc

    def body(self, prompt: str) -> dict[str, Any]:
        """What is sent for ``prompt``, beside the key."""
        body: dict[str, Any] = {
            "model": self.model,
            "temperature": self.temperature,
            "max_tokens": ANSWER_TOKENS,
        }
        if self.url.endswith("/chat/completions"):
            body["messages"] = [
                {"role": "system", "content": _TASK},
                {"role": "user", "content": prompt},
            ]
        else:
            body["prompt"] = prompt
        return body

    def __call__(self, prompt: str) -> str:
        """The text with which the model goes on from ``prompt``; its reply has 1 MiB at most, and
        must be there within 120 s.
        """
        headers = {"Content-Type": "application/json", "User-Agent": "paperlib"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        data = json.dumps(self.body(prompt)).encode()
        return self._answer(urllib.request.Request(self.url, data, headers))

    def _answer(self, request: urllib.request.Request) -> str:
        """The answer to a request, which is sent up to six times while it fails for a reason that
        may pass, after pauses of 1, 2, 4 ... seconds, or of what the server asks; else a
        ValueError.
        """
        opener = limited_opener(local=urlsplit(self.url).hostname in _LOCAL)
        reason = ""
        pause = 0.0
        for attempt in range(_ATTEMPTS):
            time.sleep(pause)
            try:
                return self._answer_once(opener, request)
            except _TryAgain as error:
                reason = str(error)
                pause = min(max(2.0**attempt, error.wait), _LONGEST_WAIT)
        raise ValueError(f"{self.host}: {reason}, {_ATTEMPTS} times; run again later")

    def _answer_once(
        self, opener: urllib.request.OpenerDirector, request: urllib.request.Request
    ) -> str:
        """The answer to one attempt.

        Raises:
            _TryAgain: None came, for a reason that may pass.
            ValueError: The server refuses, or its answer is too long.
        """
        try:
            return self._sent(opener, request)
        except ReplyTooLong:
            raise ValueError(
                f"{self.host}: an answer of more than {MOST_BYTES:,} bytes, which no model writes"
            ) from None
        except ReplyTooSlow:
            raise _TryAgain(f"no whole answer within {LONGEST:.0f} s") from None
        except (OSError, http.client.HTTPException):
            raise _TryAgain("no connection") from None

    def _sent(self, opener: urllib.request.OpenerDirector, request: urllib.request.Request) -> str:
        """The answer to a request, without the key.

        Raises:
            ValueError: The server refuses the request.
            _TryAgain: It may answer later: states 408, 409, 429 and from 500 on, or an answer of
                another interface.
        """
        try:
            with opener.open(request, timeout=LONGEST) as reply:
                content = reply.read(MOST_BYTES)
        except HTTPError as error:
            with error:
                explanation = error.read(MOST_BYTES).decode("utf-8", "replace")
            if error.code < 500 and error.code not in (408, 409, 429):
                raise ValueError(self._refusal(error.code, explanation)) from None
            wait = _asked_wait(error.headers.get("Retry-After") or "")
            raise _TryAgain(f"status {error.code}", wait) from None
        return without_key(_text_in(content), self.key)

    def _refusal(self, status: int, explanation: str) -> str:
        """The message for a request that the server refuses, without the key."""
        explanation = without_key(explanation, self.key)
        if status in (401, 403):
            explanation = "see --key-variable"
        words = visible_text(" ".join(explanation.split()), 300)
        return f"{self.host}: refuses the request (status {status}) {words}"


def _text_in(content: bytes) -> str:
    """The text of the first choice of an answer in JSON; empty where a model refuses; `_TryAgain`
    for an answer without one.
    """
    try:
        choice = json.loads(content)["choices"][0]
        text = choice["message"]["content"] if "message" in choice else choice["text"]
    except (ValueError, LookupError, TypeError, RecursionError):
        raise _TryAgain("an answer of another interface") from None
    if isinstance(text, list):
        # Parts, such as {"type": "text", "text": "..."}; an image has no text.
        return "".join(map(_part, cast(list[Any], text)))
    return str(text or "")


def _part(part: Any) -> str:
    """The text of one part of an answer; empty for a part without text."""
    text = part.get("text") if isinstance(part, dict) else part
    return text if isinstance(text, str) else ""


def _asked_wait(retry_after: str) -> float:
    """Seconds to wait by a header Retry-After, which holds them, or a date; 0 if it holds neither,
    or a date that is over.
    """
    with suppress(ValueError):
        seconds = parsedate_to_datetime(retry_after).timestamp() - time.time() + 1
        retry_after = f"{seconds:.0f}"
    return float(retry_after) if retry_after.isdecimal() else 0.0
