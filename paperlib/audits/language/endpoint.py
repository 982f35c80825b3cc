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
_ATTEMPTS, _TIMEOUT, _LONGEST_WAIT = 6, 120.0, 300.0  # times, seconds, seconds
_TASK = (
    "You see the beginning of a text. Go on with it from where it ends; write only what follows."
)


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
        parts, whole = urlsplit(self.url), self.url.rstrip("/")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("URL: expected one such as https://host/v1")
        if "@" in parts.netloc or "?" in self.url or "#" in self.url:
            raise ValueError(
                "URL: expected no password, ? or #; a key goes into a variable: --key-variable"
            )
        if self.key and parts.scheme == "http" and parts.hostname not in ("localhost", "127.0.0.1"):
            raise ValueError("URL: expected https, as a key is sent there")
        chat = "" if whole.endswith("/completions") else "/chat/completions"
        object.__setattr__(self, "url", whole + chat)

    @property
    def host(self) -> str:
        return urlsplit(self.url).netloc

    def __call__(self, prompt: str) -> str:
        own: dict[str, Any] = {"prompt": prompt}
        if self.url.endswith("/chat/completions"):
            roles = {"system": _TASK, "user": prompt}
            own = {"messages": [{"role": role, "content": text} for role, text in roles.items()]}
        body = {
            "model": self.model,
            "temperature": self.temperature,
            "max_tokens": ANSWER_TOKENS,
            **own,
        }
        headers = {"Content-Type": "application/json", "User-Agent": "paperlib"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        request = urllib.request.Request(self.url, json.dumps(body).encode(), headers)
        return self._answer(request)

    def _answer(self, request: urllib.request.Request) -> str:
        opener, reason, pause = urllib.request.build_opener(_NoRedirect), "", 0.0
        for attempt in range(_ATTEMPTS):
            time.sleep(pause)
            pause = 2.0**attempt
            try:
                with opener.open(request, timeout=_TIMEOUT) as reply:
                    choice = json.loads(reply.read())["choices"][0]
                    text = choice["message"]["content"] if "message" in choice else choice["text"]
                    return str(text or "")  # a model may refuse
            except HTTPError as error:
                with error:
                    said = " ".join(error.read(2_000).decode("utf-8", "replace").split())
                reason = f"status {error.code}"
                if error.code < 500 and error.code not in (408, 409, 429):
                    said = said.replace(self.key, "...") if self.key else said
                    said = "see --key-variable" if error.code in (401, 403) else said[:300]
                    raise ValueError(
                        f"{self.host}: refuses the request ({reason}) {said}"
                    ) from None
                asked = error.headers.get("Retry-After") or ""
                with suppress(ValueError):  # seconds, or no wait named
                    asked = f"{parsedate_to_datetime(asked).timestamp() - time.time() + 1:.0f}"
                pause = min(max(pause, float(asked) if asked.isdecimal() else 0.0), _LONGEST_WAIT)
            except (OSError, http.client.HTTPException):
                reason = "no connection"
            except (ValueError, LookupError, TypeError):
                reason = "an answer of another interface"
        raise ValueError(f"{self.host}: {reason}, {_ATTEMPTS} times; run again later")


class KeptAnswers:
    """Answers in a file of JSON lines, in the order of the prompts; only those that it lacks are
    asked for.

    A new file holds ``settings`` and ``more`` in its ``first`` line; one of other settings is a
    ValueError.
    """

    def __init__(self, path: Path, settings: Mapping[str, str], **more: str) -> None:
        self._path, self._at, self.answers = path, 0, list[str]()
        self.first: dict[str, Any] = {**settings, **more}
        if not path.exists():
            return
        data = path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]  # a killed run leaves a part of a line
        try:
            self.first, *lines = map(json.loads, whole.splitlines())
            other = [name for name in settings if self.first[name] != settings[name]]
            self.answers = [str(one["answer"]) for one in lines]
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
            if self._at == len(self.answers):
                self.answers.append(ask(prompt))
                lines = [] if self._path.exists() else [self.first]
                with self._path.open("a", encoding="utf-8") as file:
                    lines.append({"answer": self.answers[-1]})
                    file.write("".join(json.dumps(line) + "\n" for line in lines))
            self._at += 1
            return self.answers[self._at - 1]

        return complete
