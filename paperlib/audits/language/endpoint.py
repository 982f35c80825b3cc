"""A model behind an OpenAI-compatible address, and its answers kept so that a killed run goes
on.
"""

import http.client
import json
import os
import time
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit

ANSWER_TOKENS = 100  # in an answer, at most: room for a whole identifier
_ATTEMPTS = 6
_TIMEOUT = 120.0  # seconds
_LONGEST_WAIT = 300.0  # seconds
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


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirected request would carry the key to another place."""

    def redirect_request(
        self, req: Any, fp: Any, code: Any, msg: Any, headers: Any, newurl: Any
    ) -> None:
        return None


@dataclass(frozen=True, kw_only=True)
class ChatEndpoint:
    """Prompt to answer, over HTTP; a ValueError for a bad URL, and where no answer comes.

    Args:
        url: Used as it stands if it ends in /completions; else /chat/completions is added.
        key: Sent to this host alone, and part of no message.
    """

    url: str
    model: str
    key: str = field(default="", repr=False)
    temperature: float = 0.0

    def __post_init__(self) -> None:
        address = urlsplit(self.url)
        url = self.url.rstrip("/")
        if address.scheme not in ("http", "https") or not address.hostname:
            raise ValueError("URL: expected one such as https://host/v1")
        if "@" in address.netloc or "?" in self.url or "#" in self.url:
            raise ValueError(
                "URL: expected no password, ? or #; a key goes into a variable: --key-variable"
            )
        if (
            self.key
            and address.scheme == "http"
            and address.hostname not in ("localhost", "127.0.0.1")
        ):
            raise ValueError("URL: expected https, as a key is sent there")
        if not url.endswith("/completions"):
            url += "/chat/completions"
        object.__setattr__(self, "url", url)

    @property
    def host(self) -> str:
        """Name and port of the server, for messages."""
        return urlsplit(self.url).netloc

    def __call__(self, prompt: str) -> str:
        """The text with which the model goes on from ``prompt``."""
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
        headers = {"Content-Type": "application/json", "User-Agent": "paperlib"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        request = urllib.request.Request(self.url, json.dumps(body).encode(), headers)
        return self._answer(request)

    def _answer(self, request: urllib.request.Request) -> str:
        """The answer to a request, which is sent again, with longer and longer pauses, while it
        fails for a reason that may pass.
        """
        opener = urllib.request.build_opener(_NoRedirect)
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
        """The answer to one attempt; `_TryAgain` where another one may succeed."""
        try:
            with opener.open(request, timeout=_TIMEOUT) as reply:
                choice = json.loads(reply.read())["choices"][0]
                text = choice["message"]["content"] if "message" in choice else choice["text"]
                return str(text or "")  # a model may refuse
        except HTTPError as error:
            with error:
                explanation = " ".join(error.read(2_000).decode("utf-8", "replace").split())
            if error.code < 500 and error.code not in (408, 409, 429):
                raise ValueError(self._refusal(error.code, explanation)) from None
            wait = _asked_wait(error.headers.get("Retry-After") or "")
            raise _TryAgain(f"status {error.code}", wait) from None
        except (OSError, http.client.HTTPException):
            raise _TryAgain("no connection") from None
        except (ValueError, LookupError, TypeError):
            raise _TryAgain("an answer of another interface") from None

    def _refusal(self, status: int, explanation: str) -> str:
        """The message for a request that the server refuses, without the key."""
        if status in (401, 403):
            explanation = "see --key-variable"
        elif self.key:
            explanation = explanation.replace(self.key, "...")
        return f"{self.host}: refuses the request (status {status}) {explanation[:300]}"


def _asked_wait(retry_after: str) -> float:
    """Seconds to wait by a header that holds them, or a date; 0 if it holds neither."""
    with suppress(ValueError):
        seconds = parsedate_to_datetime(retry_after).timestamp() - time.time() + 1
        retry_after = f"{seconds:.0f}"
    return float(retry_after) if retry_after.isdecimal() else 0.0


class KeptAnswers:
    """Answers in a file of JSON lines, in the order of the prompts; only those that it lacks are
    asked for.

    A new file holds ``settings`` and ``notes`` in its ``first`` line; one of other settings is a
    ValueError.
    """

    def __init__(self, path: Path, settings: Mapping[str, str], **notes: str) -> None:
        self._path = path
        self._asked = 0  # prompts so far
        self.answers: list[str] = []
        self.first: dict[str, Any] = {**settings, **notes}
        if not path.exists():
            return
        data = path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]  # a killed run leaves a part of a line
        try:
            self.first, *lines = map(json.loads, whole.splitlines())
            other = [name for name in settings if self.first[name] != settings[name]]
            self.answers = [str(line["answer"]) for line in lines]
        except (ValueError, LookupError, TypeError):
            raise ValueError(
                f"{path}: holds no kept answers; name another file (--answers)"
            ) from None
        if other:
            what = " and another ".join(other)
            raise ValueError(
                f"{path}: holds answers with another {what}; name another file (--answers)"
            )
        os.truncate(path, len(whole))

    def through(self, ask: Callable[[str], str]) -> Callable[[str], str]:
        """``ask``, but for answers that the file holds."""

        def complete(prompt: str) -> str:
            if self._asked == len(self.answers):
                self.answers.append(ask(prompt))
                self._keep(self.answers[-1])
            self._asked += 1
            return self.answers[self._asked - 1]

        return complete

    def _keep(self, answer: str) -> None:
        """Add an answer to the file, whose first line is written with the first answer."""
        lines: list[dict[str, Any]] = [] if self._path.exists() else [self.first]
        lines.append({"answer": answer})
        with self._path.open("a", encoding="utf-8") as file:
            file.write("".join(json.dumps(line) + "\n" for line in lines))
