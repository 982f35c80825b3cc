"""`paperlib audit-chat` against servers on this machine: answers, faults, resumption, and the
book's page.
"""

import json
import re
import threading
import time
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from paperlib.audits.language.endpoint import ChatEndpoint
from paperlib.generators.identifiers import generate_identifiers
from tests.cli.conftest import blocks

DIGESTS = generate_identifiers("83a5ef2c9d0b3e71f6a8c3d25b190e47", 12, 0)
TEXTS = [f"Part {at} has sum {value}." for at, value in enumerate(DIGESTS)]
KEY = "sk-never-shown"


def knows(texts):
    """A box that goes on with these texts."""
    return lambda asked: next(
        (one.removeprefix(asked) for one in texts if one.startswith(asked)), "Sorry."
    )


@contextmanager
def serving(box, faults=()):
    """URL and requests of a server of ``box``; each fault (status, headers, body) answers one
    request.
    """
    left, seen = list(faults), []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            seen.append((self.path, dict(self.headers), body))
            chat = "messages" in body
            if left:
                status, headers, reply = left.pop(0)
            else:
                text = box(body["messages"][-1]["content"] if chat else body["prompt"])
                choice = {"message": {"content": text}} if chat else {"text": text}
                status, headers, reply = 200, {}, json.dumps({"choices": [choice]})
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(reply.encode())

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    with server:
        yield f"http://127.0.0.1:{server.server_port}/v1", seen
        server.shutdown()


@pytest.fixture
def audit(here, monkeypatch, command):
    """The command on a folder of these texts."""
    monkeypatch.setenv("BOX_KEY", KEY)
    monkeypatch.setattr("time.sleep", lambda _: None)
    Path("my_documents").mkdir()
    for at, text in enumerate(TEXTS):
        Path("my_documents", f"{at:02}.txt").write_text(text)
    return lambda url, words="": command.of(
        "audit-chat", url, "my_documents", "--model", "box"
    ).line(words)


def test_it_prints_the_answer_keeps_the_key_to_itself_and_serves_the_gate(audit, command):
    with serving(knows(TEXTS[::2])) as (url, seen):
        code, out, err = audit(url, "--key-variable BOX_KEY --yes --junit a.xml --fail-above 3")
        words = f"audit-chat {url} my_documents --model box --yes --claimed-epsilon 2 --delta 1e-6"
        document = command.document(words)
    assert (code, len(seen)) == (3, 12)
    path, headers, body = seen[0]
    assert (path, headers["Authorization"]) == ("/v1/chat/completions", f"Bearer {KEY}")
    assert (body["model"], body["temperature"]) == ("box", 0.0)
    assert body["messages"][1]["content"] in TEXTS[0]
    host = url.split("/")[2]
    for text in (
        "6 of 12 identifiers completed",
        f"of box at {host} (20",
        "answers without search",
    ):
        assert text in out
    assert (err.startswith("12 requests"), "gate failed" in err) == (True, True)
    assert "Digits right" in Path("my_documents-audit.html").read_text()
    written = "".join(path.read_text() for path in Path().iterdir() if path.is_file())
    assert KEY not in f"{out}{err}{document}{written}"
    assert (document["verdict"]["refuted"], document["audits"][0]["result"]["hits"]) == (True, 6)
    assert document["inputs"]["model"] == f"box at {host}"


def test_faults_are_waited_out_and_a_base_model_is_asked_as_such(audit, monkeypatch):
    pauses = []
    monkeypatch.setattr("time.sleep", pauses.append)
    wrong = [
        (200, {}, reply)
        for reply in ("no JSON", '{"choices": []}', '{"choices": [{"text": null}]}')
    ]
    faults = [(429, {"Retry-After": "7"}, "slow down"), (500, {}, "oops"), *wrong]
    with serving(knows(TEXTS), faults) as (url, seen):
        code, out, _ = audit(f"{url}/completions", "--yes")
    assert (code, len(seen)) == (0, 16)
    assert "11 of 12 identifiers completed" in out  # the empty answer is none
    assert list(filter(None, pauses)) == [7, 2, 4, 8]
    assert seen[0][2]["prompt"] in TEXTS[0]


@pytest.mark.parametrize(("ahead", "least", "most"), [(40, 40, 42), (9999, 300, 300), (-40, 1, 1)])
def test_an_hour_to_wait_for_is_waited_for(monkeypatch, ahead, least, most):
    """`Retry-After` as a date: not beyond five minutes, and one gone by is none."""
    pauses = []
    monkeypatch.setattr("time.sleep", pauses.append)
    fault = (429, {"Retry-After": formatdate(time.time() + ahead, usegmt=True)}, "")
    with serving(knows(TEXTS), [fault]) as (url, _):
        assert TEXTS[0].endswith(ChatEndpoint(url=url, model="box")(TEXTS[0][:30]))
    assert least <= pauses[1] <= most


def test_the_progress_is_shown_unless_it_is_switched_off(audit, monkeypatch):
    monkeypatch.delenv("PAPERLIB_PROGRESS", raising=False)
    with serving(knows(TEXTS)) as (url, _):
        shown = audit(url, "--yes")[2]
        monkeypatch.setenv("PAPERLIB_PROGRESS", "0")
        assert "questions:" not in audit(url, "--yes")[2]
    assert re.search("questions:.*0/12", shown)


def test_a_killed_run_goes_on_and_answers_of_others_are_refused(audit, monkeypatch):
    def killed(pause):
        if pause:
            raise KeyboardInterrupt

    kept = Path("my_documents-answers.jsonl")
    five = [(200, {}, '{"choices": [{"text": "x"}]}')] * 5
    with serving(knows(TEXTS), [*five, (503, {}, "")]) as (other, seen):
        with monkeypatch.context() as patched:
            patched.setattr("time.sleep", killed)
            assert audit(other, "--yes")[:2] == (130, "")
        assert len(kept.read_text().splitlines()) == 6
        with kept.open("a") as file:
            file.write('{"answ')  # killed while it wrote
        assert "another address" in audit(other.replace("127.0.0.1", "localhost"), "--yes")[2]
        assert audit(other, "--dry-run")[:2] == (0, "")
        seen.clear()
        code, out, err = audit(other, "--yes")
        assert (code, len(seen)) == (0, 7)
        assert re.search("^7 requests to .* .5 answers kept", err)
        assert "7 of 12 identifiers completed" in out
        assert "to ask the model again, delete" in audit(other, "--yes")[1]
        for words, message in (
            ("--model other", "holds answers with another model; name"),
            ("--shown 4", "another corpus or option"),
            ("--tries 2", "another corpus or option"),
        ):
            code, out, err = audit(other, f"--yes {words}")
            assert (code, out, err.count("\n"), message in err) == (2, "", 1, True)
        Path("my_documents", "00.txt").write_text("another text")
        assert "another corpus" in audit(other, "--yes")[2]
        kept.write_text("a file of mine")
        assert "holds no kept answers" in audit(other, "--yes")[2]
        assert kept.read_text() == "a file of mine"


def test_a_mistake_is_one_line_before_anything_is_sent(audit):
    for words, message in (
        ("ftp://host/v1", "URL: expected one such as"),
        ("https://me:secret@host/v1", "URL: expected no password"),
        ("http://example.com/v1 --key-variable BOX_KEY", "URL: expected https"),
        ("https://host/v1 --key-variable NONE", "--key-variable: expected the name"),
        ("https://host/v1", "--yes: needed to send these requests"),
        ("https://host/v1 --output my_documents-answers.jsonl", "--output: .* is the input"),
    ):
        code, out, err = audit(*words.split(maxsplit=1))
        assert (code, out, "secret" in err) == (2, "", False)
        assert re.search(message, err.splitlines()[-1])
        assert not Path("my_documents-answers.jsonl").exists()


def test_an_endpoint_that_does_not_answer_is_named_in_one_line(monkeypatch):
    monkeypatch.setattr("time.sleep", lambda _: None)
    for fault, message in (
        ((400, {}, f"bad {KEY}"), r"refuses the request \(status 400\) bad \.\.\.$"),
        ((401, {}, f"bad key {KEY}"), r"\(status 401\) see --key-variable"),
        (
            (307, {"Location": "http://127.0.0.1:9/elsewhere"}, ""),
            r"refuses the request \(status 307\)",
        ),
        ((503, {}, ""), "status 503, 6 times; run again later"),
        ((200, {}, "[]"), "an answer of another interface, 6 times"),
    ):
        with serving(None, [fault] * 6) as (url, _):
            endpoint = ChatEndpoint(url=url, model="box", key=KEY)
            with pytest.raises(ValueError, match=message) as error:
                endpoint("text")
        with pytest.raises(ValueError, match="no connection, 6 times"):
            endpoint("text")
        assert KEY not in f"{error.value}{endpoint}"


def test_the_page_runs_as_it_is_printed(audit, command, capsys):
    exec(blocks("audit_a_chat.md", "python")[0], {})
    assert "20 of 40 identifiers completed" in capsys.readouterr().out
    with serving(knows(TEXTS)) as (url, seen):
        for line in blocks("audit_a_chat.md", "sh"):
            assert command.line(line.replace("http://localhost:8000/v1", url))[0] == 0
    assert len(seen) == 12  # of the second command alone
    assert Path("my_documents-answers.jsonl").exists()
