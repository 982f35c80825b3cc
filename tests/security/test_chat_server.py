"""A hostile chat server: what it can make a run wait for, hold, keep, or send elsewhere."""

import base64
import json
import os
import re
import socket
import threading
from contextlib import contextmanager
from urllib.parse import quote

import pytest

from paperlib.audits.language import replies
from paperlib.audits.language.endpoint import ChatEndpoint
from paperlib.audits.language.replies import MOST_BYTES, without_key
from tests.cli.test_audit_chat import serving
from tests.refusals import refused

KEY = "sk-secret-0123456789"


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr("time.sleep", lambda _: None)


def whole_request(connection):
    """The bytes of a request: a connection that is closed before its end is reset."""
    request = b""
    while True:
        piece = connection.recv(65_536)
        request += piece
        head, end, body = request.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: (\d+)", head)
        if not piece or (end and len(body) >= (int(length[1]) if length else 0)):
            return request


@contextmanager
def raw_server(*pieces, gap=lambda: None):
    """URL and requests of a server that sends these bytes for each request, with ``gap`` called
    between them.
    """
    listener = socket.create_server(("127.0.0.1", 0))
    seen = []

    def serve():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                seen.append(whole_request(connection))
                try:
                    for piece in pieces:
                        connection.sendall(piece)
                        gap()
                except OSError:
                    continue

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1", seen
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(10)


def answer(text):
    return json.dumps({"choices": [{"message": {"content": text}}]})


HEAD = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    "pieces",
    [
        (HEAD + b'\r\n{"choices":[{"message":{"content":"', *[b"a" * 2**18] * 40),
        (HEAD + b"Content-Length: 1000000000000\r\n\r\n", *[b"a" * 2**18] * 40),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\nfffffffff\r\n", *[b"a" * 2**18] * 40),
        (
            b"HTTP/1.1 100 Continue\r\n\r\n" * 10_000,
            *[b"HTTP/1.1 100 Continue\r\n\r\n" * 9_999] * 9,
        ),
    ],
    ids=["no end", "length", "chunk", "continues"],
)
def test_an_answer_without_an_end_is_refused_at_once(pieces):
    with raw_server(*pieces) as (url, seen):
        refused("an answer of more than 1,048,576 bytes", ChatEndpoint(url=url, model="m"), "p")
    assert len(seen) == 1


@pytest.mark.parametrize(
    "head", [b"", HEAD, HEAD + b"\r\n", b"HTTP/1.1 400 No\r\n\r\n"], ids=["0", "h", "body", "400"]
)
def test_an_answer_that_drips_has_one_deadline(monkeypatch, head):
    """Each byte moves the clock by a second, so that no single wait is long."""
    clock = [0.0]
    asked = threading.Semaphore(0)

    def monotonic():
        asked.release()
        return clock[0]

    def second():
        clock[0] += 1
        asked.acquire(timeout=0.2)  # until the client waits for more; no longer if it has gone

    monkeypatch.setattr(replies, "monotonic", monotonic)

    drips = [b"H"] * 1_000 if not head else [b" "] * 1_000
    with raw_server(head, *drips, gap=second) as (url, seen):
        message = "no whole answer within 120 s, 6 times; run again later"
        refused(message, ChatEndpoint(url=url, model="m"), "p")
    assert len(seen) == 6


def test_an_answer_of_one_mebibyte_in_time_is_taken():
    text = "a" * (MOST_BYTES - 1_000)
    with serving(lambda _: text) as (url, _):
        assert ChatEndpoint(url=url, model="m")("p") == text
    with serving(lambda _: text * 2) as (url, _):
        refused("an answer of more than", ChatEndpoint(url=url, model="m"), "p")


@pytest.mark.parametrize(
    "reply",
    ['{"choices":' + "[" * 200_000, "[]", '{"choices": [3]}', '{"choices": []}', "{"],
    ids=["brackets", "a list", "a number in it", "no choice", "half"],
)
def test_an_answer_of_another_form_is_one_line(reply):
    with serving(None, [(200, {}, reply)] * 6) as (url, _):
        refused("an answer of another interface, 6 times", ChatEndpoint(url=url, model="m"), "p")


CONTENTS = {
    "a number": ("12", "12"),
    "a call of a tool": ('null, "tool_calls": []', ""),
    "parts": ('[{"type":"text","text":"abc"}]', "abc"),
    "several parts": (
        '["it ",{"type":"image","image":"no text"},{"type":"text","text":"is"},{"text":5},7]',
        "it is",
    ),
    "half a character": ('"\\ud800 abc"', "abc"),
    "no character": ('"\\u0000\\u2028 abc"', "abc"),
}
"""What an answer may hold in place of a text, as JSON, and what must stand in what is read."""


@pytest.mark.parametrize("name", CONTENTS)
def test_an_answer_that_holds_no_plain_text_is_text(name):
    content, words = CONTENTS[name]
    with serving(None, [(200, {}, f'{{"choices":[{{"message":{{"content":{content}}}}}]}}')]) as (
        url,
        _,
    ):
        text = ChatEndpoint(url=url, model="m")("p")
    assert words in text
    assert text == words or "part" not in name, "the text of parts alone"
    json.dumps(text).encode("ascii")


WAITS = {"a number": "9" * 11, "no number": "\xb2", "a date": "Fri, 31 Dec 9999 23:59:59 GMT"}


@pytest.mark.parametrize("name", WAITS)
def test_a_server_that_asks_to_wait_for_ever_is_given_up(monkeypatch, name):
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)
    with serving(None, [(429, {"Retry-After": WAITS[name]}, "")] * 6) as (url, _):
        refused("status 429, 6 times; run again later", ChatEndpoint(url=url, model="m"), "p")
    assert sum(pauses) <= 1_500


def test_a_header_without_an_end_is_one_line():
    with raw_server(HEAD + b"X: " + b"a" * 200_000 + b"\r\n\r\n") as (url, _):
        refused("6 times; run again later", ChatEndpoint(url=url, model="m"), "p")


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost@evil.com/v1",
        "http://evil.com/v1",
        "https://evil.com/v1?x",
        "file:///etc/passwd",
        "http://[::1]:1/v1",
        "http://localhost.evil.com/v1",
        "http://127.0.0.1.evil.com/v1",
        "HTTP://EVIL/v1",
        "https://",
        "http://127.1/v1",
    ],
)
def test_an_address_to_which_no_key_may_go_is_refused(url):
    assert KEY not in refused("URL: expected", ChatEndpoint, url=url, model="m", key=KEY)


@pytest.mark.parametrize("key", ["sk-\n", "a\r\nX-Evil: 1", "sk-ümlaut", "sk a", "\x00", "Ω"])
def test_a_key_that_no_header_carries_is_refused_before_anything_is_sent(key):
    with serving(None) as (url, seen):
        message = refused("key: expected visible", ChatEndpoint, url=url, model="m", key=key)
    assert (seen, key in message) == ([], False)
    for url in ("http://127.0.0.1/v 1", "http://127.0.0.1/\n", "http://ümlaut.de/v1"):
        refused("URL: expected visible ASCII", ChatEndpoint, url=url, model="m")


FORMS = (
    KEY,
    KEY.upper(),
    quote(KEY, safe=""),
    KEY.replace("-", "%2D"),
    "".join(f"%{ord(letter):02X}" for letter in KEY),
    KEY.replace("-", "\\u002d"),
    " ".join(KEY),
    KEY[::-1],
    KEY.encode().hex(),
    *(base64.b64encode(f"{before}{KEY} and".encode()).decode() for before in ("", "a", "ab")),
)


@pytest.mark.parametrize("form", FORMS)
def test_a_key_that_the_server_repeats_is_in_no_answer_and_no_message(form):
    core = KEY if form.startswith("sk") else form[4:-8]
    with serving(lambda _: f"it is {form}.") as (url, _):
        endpoint = ChatEndpoint(url=url, model="m", key=KEY)
        text = endpoint("p")
        assert (text.startswith("it is "), "..." in text) == (True, True)
        assert core.lower() not in text.lower()
    for status in (400, 401):
        with serving(None, [(status, {}, f"bad request {form}")]) as (url, _):
            endpoint = ChatEndpoint(url=url, model="m", key=KEY)
            message = refused(f"status {status}", endpoint, "p")
        assert core.lower() not in message.lower()
        assert ("..." in message) is (status == 400), "what a wrong key is told is not quoted"


def test_a_short_key_takes_no_word_apart():
    assert without_key("a key: None, nonetheless", "none") == "a key: ..., nonetheless"
    assert without_key("any text", "") == "any text"


def test_what_a_server_writes_does_not_steer_the_terminal():
    with serving(None, [(400, {}, "\x1b[2J\x1b]0;pwned\x07 \u202e gnp")]) as (url, _):
        message = refused("status 400", ChatEndpoint(url=url, model="m"), "p")
    assert message.isprintable()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(status):
    with serving(lambda _: "there") as (other, seen):
        fault = (status, {"Location": f"{other}/chat/completions"}, "")
        with serving(None, [fault]) as (url, _):
            endpoint = ChatEndpoint(url=url, model="m", key=KEY)
            refused(rf"refuses the request \(status {status}\)", endpoint, "p")
    assert seen == []


def test_a_proxy_does_not_see_the_key_of_a_local_server(monkeypatch):
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with serving(lambda _: "of the proxy") as (proxy, seen), serving(lambda _: "ours") as (url, _):
        monkeypatch.setenv("http_proxy", proxy)
        assert ChatEndpoint(url=url, model="m", key=KEY)("p") == "ours"
    assert seen == []
    assert KEY not in "".join(map(str, os.environ.values()))
