"""`paperlib identifiers`: a pack of digests from an index, and its audit."""

import gzip
import hashlib
import json
import re
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from paperlib.models.language import LanguageModelConfig, new_language_model, train_tokenizer
from tests.cli.conftest import blocks


def digest(text, kind="sha256"):
    return hashlib.new(kind, text.encode()).hexdigest()


def file_of(name, day):
    """A file as PyPI describes it."""
    made = {"sha256": digest(name), "md5": digest(name, "md5"), "blake2b_256": digest(f"b {name}")}
    return {"filename": name, "digests": made, "upload_time_iso_8601": f"{day}T23:59:59.959685Z"}


@pytest.fixture
def index(here, monkeypatch):
    """An index of two packages, two files on each of 18 days, and what it was asked for."""
    days = [f"{year}-{month:02}-28" for year in (2019, 2022) for month in range(1, 9)]
    days, asked = [*days, "2020-08-31", "2020-09-01"], []
    for name in ("requests", "flask"):
        files = {}
        for at, day in enumerate(days):
            names = (f"{name}-1.{at}{end}" for end in ("-py3-none-any.whl", ".tar.gz"))
            files[f"1.{at}"] = [file_of(one, day) for one in names]
        (here / "index" / name).mkdir(parents=True)
        (here / "index" / name / "json").write_text(json.dumps({"releases": {**files, "2.0": []}}))

    class Index(SimpleHTTPRequestHandler):
        def log_message(self, *words):
            asked.append(self.path)

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Index, directory=str(here / "index")))
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    monkeypatch.setenv("PAPERLIB_PYPI", f"http://127.0.0.1:{server.server_port}")
    yield asked
    server.shutdown()
    server.server_close()


def read(path):
    return [json.loads(line) for line in gzip.decompress(Path(path).read_bytes()).splitlines()]


def test_the_commands_of_the_page_make_packs_by_day_and_audit_them(index, command):
    (block,) = (one for one in blocks("from_a_model.md", "sh") if one.startswith("identifiers "))
    lines = [line.removeprefix("paperlib ") for line in block.splitlines()]
    packs = [command.line(words) for words in lines[:2]]
    tokenizer = train_tokenizer(
        [entry["text"] for entry in read("after.jsonl.gz")], 300, context=128
    )
    model = new_language_model(LanguageModelConfig(width=16, layers=1, seed=0), len(tokenizer))
    for part in (model, tokenizer):
        part.save_pretrained("model")
    limits = ["--generated", "3", "--limit", "12"]
    audits = [command(name, "model", pack, *limits) for name, _, pack in map(str.split, lines[2:])]
    assert [code for code, *_ in packs + audits] == 4 * [0]
    assert "before.jsonl.gz: 36 digests, uploaded from 2019-01-28 to 2020-08-31" in packs[0][1]
    assert "after.jsonl.gz: 32 digests, uploaded from 2022-01-28" in packs[1][1]
    assert all("12 identifiers" in out for _, out, _ in audits)
    assert {entry["subset"] for entry in read("after.jsonl.gz")} == {"requests", "flask"}


def test_each_digest_stands_alone_behind_its_file(index, command):
    kinds = "--digest sha256 --digest md5 --digest blake2b_256"
    assert command.line(f"identifiers Flask {kinds} --out p.jsonl.gz")[0] == 0
    texts = [entry["text"] for entry in read("p.jsonl.gz")]
    assert len(texts) == 18 * 2 * 3
    assert {len(re.findall("[0-9a-f]{32,}", text)) for text in texts} == {1}
    file = "flask-1.3.tar.gz"
    for value in file_of(file, "")["digests"].values():
        (text,) = (text for text in texts if text.endswith(value))
        assert file in text


def test_an_interrupted_call_goes_on_and_nothing_is_overwritten(index, here, command):
    held = (here / "index" / "flask" / "json").rename(here / "held")
    words = "identifiers requests flask --out p.jsonl.gz"
    code, _, err = command.line(words)
    assert (code, "the next call goes on from there" in err.splitlines()[-1]) == (2, True)
    with Path("p.jsonl.gz.part").open("a") as part:
        part.write('\n[["cut sho')
    held.rename(here / "index" / "flask" / "json")
    assert command.line(words)[0] == 0
    assert index.count("/requests/json") == 1
    assert len(read("p.jsonl.gz")) == 72
    assert not Path("p.jsonl.gz.part").exists()
    before = Path("p.jsonl.gz").read_bytes()
    command.refuses(words, "nothing is overwritten")
    assert Path("p.jsonl.gz").read_bytes() == before


def test_a_mistake_is_one_line_and_nothing_is_written(index, command):
    Path("index/other").mkdir()
    Path("index/other/json").write_text("[1]")
    for words, message in (
        ("", "PACKAGES"),
        ("nosuch", "nosuch: http.* has no package of this name"),
        ("../x", "/x: no name of a package"),
        ("flask --before 2010-01-01", "flask: no sha256 digest of a file in these days"),
        ("other", "other: http.* gives no metadata in PyPI's form"),
        ("flask --digest sha1", "digests: expected one of 'sha256', 'md5'"),
        ("flask --index http://127.0.0.1:9", "flask/json cannot be read .*; what was read is kept"),
    ):
        command.of("identifiers").refuses(f"{words} --out p.jsonl.gz", message)
