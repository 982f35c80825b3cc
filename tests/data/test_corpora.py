"""Corpora: every format, packed in every way; what is damaged is counted, and memory is bounded."""

import bz2
import gzip
import json
import lzma
import os
import tracemalloc
from pathlib import Path

import pyarrow as pa
import pytest
import zstandard
from pyarrow import parquet

from paperlib.data import DataUnavailableError
from paperlib.data.text import corpora, streams
from paperlib.data.text.corpora import corpus_files, installed_text, read_documents
from paperlib.data.text.formats import ends_within_frame, read_pieces
from paperlib.data.text.pieces import Reading, ReadLog
from paperlib.reproduction.data.text.dialogues import persona_chat
from tests.refusals import refused

RECORDS = [
    {"text": "one\nline", "subset": "a"},
    {"text": "zwei – Größe", "subset": "b"},
    {"text": "three"},
]
DOCUMENTS = [("a", "one\nline"), ("b", "zwei – Größe"), ("file", "three")]
JSONL = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in RECORDS).encode()
PACKERS = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
PACKERS[".zst"] = zstandard.ZstdCompressor().compress


def skipped(path, **reading):
    """What reading a file in pieces leaves out."""
    log = ReadLog()
    for _ in read_pieces(path, "s", Reading(**reading), log):
        pass
    return log


def read(path, **reading):
    """Documents as pairs of subset and text, and the numbers of what was skipped, by reason."""
    log = ReadLog()
    found = read_documents(path, reading=Reading(**reading), log=log)
    return [(document.subset, document.text) for document in found], log.counts


@pytest.mark.parametrize("packed", list(PACKERS))
@pytest.mark.parametrize("block", [7, 2**23])
def test_json_lines_packed_in_every_way(tmp_path, monkeypatch, packed, block):
    monkeypatch.setattr(streams, "BLOCK", block)
    path = tmp_path / f"file.jsonl{packed}"
    for parts in (1, 2):  # one after the other
        path.write_bytes(PACKERS[packed](JSONL) * parts)
        assert sorted(read(path)[0]) == sorted(DOCUMENTS * parts)


def test_a_zstandard_file_cut_off_anywhere_is_seen_as_such(tmp_path):
    """The library itself reads up to the cut and says nothing."""
    path = tmp_path / "a.zst"
    for options in ({}, {"write_checksum": True}, {"write_content_size": False}):
        packer = zstandard.ZstdCompressor(**options)
        flushed = packer.compressobj()
        last = b"".join(
            [flushed.compress(b"x" * 300_000), flushed.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)]
        )
        last += flushed.flush()
        whole = packer.compress(JSONL) + b"\x50\x2a\x4d\x18\x02\0\0\0ab" + last
        path.write_bytes(whole)
        assert not ends_within_frame(path, zstandard)
        for cut in range(1, len(last)):
            path.write_bytes(whole[:-cut])
            assert skipped(path).counts["damaged or unreadable file"] == 1, cut


def test_parquet_of_any_name_and_with_texts_that_are_not_valid(tmp_path):
    path = tmp_path / "file.parquet"
    rows = [{"body": record["text"], "meta": {"set": record.get("subset")}} for record in RECORDS]
    parquet.write_table(pa.Table.from_pylist(rows), path)
    assert sorted(read(path, text_field="body", subset_field="meta.set")[0]) == DOCUMENTS
    with pytest.raises(
        ValueError, match=r"bytes of this corpus were not read .*without a column 'text'"
    ):
        read(path)[0]
    path.rename(tmp_path / "part-0")  # needs no suffix
    assert len(read(tmp_path / "part-0", text_field="body")[0]) == 3
    path = tmp_path / "a.parquet"
    data, edges = b"a\xffbc", b"".join(n.to_bytes(4, "little") for n in (0, 3, 4))
    text = pa.Array.from_buffers(pa.string(), 2, [None, pa.py_buffer(edges), pa.py_buffer(data)])
    for column in (text, text.cast(pa.binary())):
        parquet.write_table(pa.table({"text": column}), path)
        texts = [("a", "a\ufffdb"), ("a", "c")]
        assert read(path) == (texts, {"invalid UTF-8, its bytes replaced": 1})


def warc(*records):
    def one(kind, body):
        head = f"WARC/1.0\r\nWARC-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
        return head.encode() + body + b"\r\n\r\n"

    return b"".join(one(kind, body.encode()) for kind, body in records)


@pytest.mark.parametrize("block", [5, 2**23])
def test_extracted_text_of_warc_files(tmp_path, monkeypatch, block):
    monkeypatch.setattr(streams, "BLOCK", block)
    path = tmp_path / "web.warc.wet.gz"
    text = ("conversion", "zwei – Größe")
    content = warc(("warcinfo", "x"), text, ("response", "<html>"), ("conversion", ""))
    path.write_bytes(gzip.compress(content))
    skips = {"WARC record of type 'response', not extracted text": 1, "empty document": 1}
    assert read(path) == ([("web", "zwei – Größe")], skips)


def test_folders_name_subsets_and_packed_json_is_read_by_its_lines(tmp_path):
    for name in ("web/x/one.txt", "web/two.md", "code/three.jsonl", "top.txt", ".hidden/four.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text('{"text": "t"}')
    found = [(file.path.name, file.subset) for file in corpus_files(tmp_path)]
    assert found == [
        ("three.jsonl", "code"),
        ("top.txt", "top"),
        ("two.md", "web"),
        ("one.txt", "web"),
    ]
    folder = tmp_path / "dolma-v1_7" / "pes2o"
    folder.mkdir(parents=True)
    (folder / "pes2o-0000.json.gz").write_bytes(
        gzip.compress(b'{"text": "one"}\n{"text": "two"}\n')
    )
    (folder / "notes.json").write_text('{"text": "three"}')
    assert read(tmp_path / "dolma-v1_7")[0] == [
        ("pes2o", "three"),
        ("pes2o", "one"),
        ("pes2o", "two"),
    ]


def test_what_is_skipped_is_counted_with_a_reason(tmp_path):
    for name, content, reason in (
        ("a.txt", b"", "empty file"),
        ("a.txt.gz", gzip.compress(b"", mtime=0), "empty file"),
        ("a.bin", b"\x7fELF\0\0", "binary file"),
        ("a.jsonl.gz", gzip.compress(JSONL, mtime=0)[:-9], "damaged or unreadable file"),
        ("a.jsonl.gz", b"no gzip", "damaged or unreadable file"),
        ("a.jsonl.zst", b"no zstandard", "damaged or unreadable file"),
        ("a.parquet", b"no parquet", "damaged or unreadable file"),
        ("a.jsonl", b"{oops\n[1]\n", "line that is no JSON object"),
        ("a.jsonl", b'{"body": "x"}\n{"text": 3}\n', "document without text in the field 'text'"),
        ("a.jsonl", b'{"text": " "}\n', "empty document"),
        ("a.warc", b"hello", "no WARC record where one should start"),
        ("a.warc", b"WARC/1.0\r\nA: b\r\n\r\n", "WARC record without a length"),
        ("a.warc", warc(("conversion", "abc"))[:-6], "damaged or unreadable file"),
    ):
        path = tmp_path / name
        path.write_bytes(content)
        log = skipped(path)
        assert list(log.counts) == [reason]
        assert name in log.examples[reason]


@pytest.mark.parametrize("packed", [".gz", ".bz2", ".xz", ".zst"])
def test_what_came_before_the_damage_is_read(tmp_path, packed):
    path = tmp_path / f"file.jsonl{packed}"
    path.write_bytes(PACKERS[packed](JSONL) + PACKERS[packed](JSONL * 2)[:-4])
    found, skips = read(path)
    assert set(DOCUMENTS) <= set(found) | {("file", "three")}  # the second part may give some again
    assert skips["damaged or unreadable file"] == 1


def test_text_before_the_damage_is_a_document(tmp_path, monkeypatch):
    monkeypatch.setattr(streams, "BLOCK", 1_000)
    path = tmp_path / "sums.txt.gz"
    text = "".join(f"{value}\n" for value in range(2_000))
    path.write_bytes(gzip.compress(text.encode())[:-8])  # without checksum and length
    assert read(path) == ([("sums", text)], {"damaged or unreadable file": 1})
    assert "gone.txt" in skipped(tmp_path / "gone.txt").examples["damaged or unreadable file"]


@pytest.mark.parametrize("block", [4, 2**23])
@pytest.mark.parametrize("name", ["a.txt", "a.jsonl"])
def test_invalid_utf8_is_read_with_its_bytes_replaced(tmp_path, monkeypatch, name, block):
    monkeypatch.setattr(streams, "BLOCK", block)
    text = b"before \xff after"
    path = tmp_path / name
    path.write_bytes(text if name == "a.txt" else b'{"text": "' + text + b'"}')
    assert read(path) == ([("a", "before � after")], {"invalid UTF-8, its bytes replaced": 1})


@pytest.mark.parametrize("block", [10, 1_000])
def test_a_line_too_long_is_skipped_alone(tmp_path, monkeypatch, block):
    monkeypatch.setattr(streams, "BLOCK", block)
    path = tmp_path / "a.jsonl"
    long = json.dumps({"text": "x" * 300}).encode()
    for lines in ([JSONL, long, JSONL], [long, JSONL], [JSONL, long]):
        path.write_bytes(b"\n".join(line.strip() for line in lines))
        found, skips = read(path, longest_line=100)
        assert len(found) == 3 * lines.count(JSONL)
        assert skips == {"line of more than 100 bytes": 1}


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl"])
def test_memory_does_not_grow_with_a_line_without_end(tmp_path, monkeypatch, name):
    monkeypatch.setattr(streams, "BLOCK", 2**16)
    path = tmp_path / name
    path.write_bytes(b'{"text": "' + b"x" * (4 * 2**20))
    tracemalloc.start()
    skipped(path, longest_line=2**17)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**20


def test_missing_corpora_say_which_file_goes_where(tmp_path, monkeypatch):
    monkeypatch.setenv("PAPERLIB_DATA", str(tmp_path))
    for name, read_all in (
        ("nid_corpus", corpora.nid_corpus),
        ("synthetic_persona_chat", persona_chat),
    ):
        refused(rf"{name}\.jsonl\.gz", read_all, error=DataUnavailableError)
        (tmp_path / f"{name}.jsonl.gz").write_bytes(b"something else")
        refused("expected SHA-256", read_all)
    (tmp_path / "pile_test_subsets.jsonl.gz").write_bytes(b"something else")
    (tmp_path / "empty").mkdir()
    refused("expected SHA-256", corpus_files, "pile_test_subsets")
    refused("'nid'", corpora.corpus_path, "nid")
    refused("is none", corpus_files, tmp_path / "nothing")
    refused("got an empty text", corpus_files, "")
    refused("holds no files", corpus_files, tmp_path / "empty")


def test_installed_text_lists_files_and_metadata():
    files = installed_text(("numpy",))
    names = {file.path.name for file in files}
    assert {"RECORD", "__init__.py"} <= names
    assert {file.subset for file in files} == {"numpy"}
    assert not [name for name in names if name.endswith(".so")]
    refused("'no-such-package' is not installed", installed_text, ("no-such-package",))


def test_the_real_corpora():
    folder = Path(os.environ.get("PAPERLIB_DATA", "-"))
    if not all((folder / known.file).is_file() for known in corpora.CORPORA.values()):
        pytest.skip("PAPERLIB_DATA holds no corpora")
    pile = corpora.pile_test_subsets()
    assert len(pile) == 7_396
    assert (
        sum(len(document.text) for document in pile if document.subset == "hackernews") == 5_245_222
    )


def test_a_known_corpus_may_be_a_folder_and_knows_its_subset_field(tmp_path, monkeypatch):
    monkeypatch.setenv("PAPERLIB_DATA", str(tmp_path))
    (tmp_path / "pile" / "train").mkdir(parents=True)
    rows = [
        {"text": f"text {name}", "meta": {"pile_set_name": name}} for name in ("Github", "ArXiv")
    ]
    (tmp_path / "pile" / "train" / "07.jsonl").write_text("\n".join(map(json.dumps, rows)))
    found = list(corpora.read_documents("pile_train"))
    assert [one.subset for one in found] == ["Github", "ArXiv"]
    before = corpora.corpus_content("pile_train")
    assert before.startswith(b"07.jsonl ")
    (tmp_path / "pile" / "train" / "08.jsonl").write_text(json.dumps(rows[0]))
    assert corpora.corpus_content("pile_train") != before
    with pytest.raises(DataUnavailableError, match=r"pile_test.*pile/test\.jsonl\.zst"):
        list(corpora.read_documents("pile_test"))


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"ab12" * 16 + b"\nsize 12\n"
NOTEBOOK = {
    "nbformat": 4,
    "cells": [{"source": ["a = 'x\u00e9'\n", "b"], "outputs": []}, {"source": "c"}],
}


def test_files_are_read_by_what_they_hold_and_records_without_text_counted(tmp_path):
    for name, content, texts in (
        (
            "a.json",
            json.dumps([{"text": "x\u00e9"}, {"text": "y"}], indent=1).encode(),
            ["x\u00e9", "y"],
        ),
        ("a.json", json.dumps({"data": [{"text": "x"}], "n": 1}).encode(), ["x"]),
        ("a.txt", b'{"text": "x"}\n{"text": "y"}\n', ["x", "y"]),
        ("a.json", b'["x", "y"]', ["x", "y"]),
        ("a.json", b'{"a": {"b": [[{"text": "x"}]]}, "c": [{"text": "y"}]}', ["x", "y"]),
        ("a.json", b'{"name": "n", "tags": ["x", "y"]}', ['{"name": "n", "tags": ["x", "y"]}']),
        ("a.json", b'{"name": 3}', ['{"name": 3}']),
        (
            "a.json",
            b'{"license": {"text": "MIT"}, "sum": 1}',
            ['{"license": {"text": "MIT"}, "sum": 1}'],
        ),
        ("a.txt", b"[see] this", ["[see] this"]),
        ("a.ipynb", json.dumps(NOTEBOOK).encode(), ["a = 'x\u00e9'\nb\nc"]),
        ("a.txt", "gr\u00fcn".encode("utf-16"), ["gr\u00fcn"]),
        ("a.bin", gzip.compress(b"packed", mtime=0), ["packed"]),
        ("a.txt.zst", zstandard.compress(b"packed text"), ["packed text"]),
        ("a.txt.zst", zstandard.compress(b'{"text": "x"}\n{"text": "y"}\n'), ["x", "y"]),
        ("a.txt.zst", zstandard.compress(b"{no JSON"), ["{no JSON"]),
        ("a.jsonl", b'\xef\xbb\xbf{"text": "x"}\r\n{"text": "y"}\r\n', ["x", "y"]),
        # What only the standard library takes, and a text that holds the separator of documents.
        (
            "a.jsonl",
            b'{"text": "x \\ud800 y", "score": NaN, "number": ' + b"9" * 5_000 + b"}",
            ["x ? y"],
        ),
        (
            "a.jsonl",
            b'{"text": "one\\n\\u0000\\ntwo"}\n{"text": "three"}',
            ["one\n\0\ntwo", "three"],
        ),
    ):
        (tmp_path / name).write_bytes(content)
        assert read(tmp_path / name) == ([("a", text) for text in texts], {})
    (tmp_path / "a.json").write_text(
        json.dumps({"rows": [{"text": "x"}, {"title": "y"}, {"text": None}, 3]})
    )
    skips = {"document without text in the field 'text'": 2, "line that is no JSON object": 1}
    assert read(tmp_path / "a.json") == ([("a", "x")], skips)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (POINTER, "Git LFS pointer"),
        (b"../../.git/annex/objects/ab/x", "git-annex pointer"),
        (b"PK\3\4 some archive", "archive or document"),
        (b"%PDF-1.7 x", "archive or document"),
        (b"ab\0\1", "binary file"),
    ],
)
def test_a_corpus_of_which_most_was_not_read_is_refused(tmp_path, content, reason):
    (tmp_path / "part_00.txt").write_bytes(content)
    (tmp_path / "small.md").write_text("x")
    with pytest.raises(
        ValueError, match=rf"bytes of this corpus were not read \({reason}.*part_00.txt"
    ):
        list(corpora.read_documents(tmp_path))
    (tmp_path / "large.md").write_text("x" * 500)
    log = ReadLog()
    assert len(list(corpora.read_documents(tmp_path, log=log))) == 2
    assert [number for _, number, _ in log.rows] == [1]


def test_notebooks_in_utf_16_are_read_and_the_rest_too(tmp_path):
    notebook = {"cells": [{"source": ["Grüße\n", "again"]}], "nbformat": 4}
    text = json.dumps(notebook, ensure_ascii=False)
    (tmp_path / "a.ipynb").write_text(text, encoding="utf-16")
    (tmp_path / "b.txt").write_text("beside it")
    texts = [document.text for document in read_documents(tmp_path)]
    assert texts == ["Grüße\nagain", "beside it"]


def test_a_document_larger_than_memory_and_a_pipe_are_refused_in_one_line(tmp_path, monkeypatch):
    monkeypatch.setenv("PAPERLIB_READ_LIMIT", "10MB")
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b"word " * 1_000_000))
    with pytest.raises(ValueError, match=r"a\.txt\.gz: a document of .* --read-limit"):
        list(read_documents(path))
    os.mkfifo(tmp_path / "pipe.txt")
    with pytest.raises(ValueError, match="named pipe"):
        list(read_documents(tmp_path / "pipe.txt"))
