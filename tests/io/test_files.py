"""Files are written whole or not at all, and result files are read back as written."""

import errno
import json
import os
from pathlib import Path

import pytest

from paperlib import io
from paperlib.io.files import (
    OutputError,
    RunResult,
    atomic_file,
    canonical_json,
    config_hash,
    file_sha256,
    is_device,
    write_json,
    write_result,
    write_text,
)
from tests.refusals import refused


def test_a_file_is_replaced_whole_with_the_usual_permissions(tmp_path):
    target = tmp_path / "new" / "result.json"
    write_text(target, "old")
    write_text(target, "new")
    assert target.read_text() == "new"
    assert [path.name for path in target.parent.iterdir()] == ["result.json"]
    ordinary = tmp_path / "ordinary"
    ordinary.touch()
    write_text(tmp_path / "ours", "x")
    assert (tmp_path / "ours").stat().st_mode == ordinary.stat().st_mode
    refused(
        r"is a file, not a folder|File exists",
        write_text,
        ordinary / "a",
        "x",
        error=OutputError,
    )


def test_an_exception_while_writing_leaves_the_old_file(tmp_path):
    target = tmp_path / "a"
    write_text(target, "old")

    def write_half():
        with atomic_file(target) as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_half()
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize(
    ("call", "code", "words"),
    [
        ("fsync", errno.ENOSPC, "the disk is full"),
        ("fsync", errno.EROFS, "the disk is read-only"),
        ("replace", errno.EACCES, "no permission"),
    ],
)
def test_a_full_disk_or_read_only_folder_is_named_and_loses_nothing(
    tmp_path, monkeypatch, call, code, words
):
    target = tmp_path / "a"
    write_text(target, "old")

    def fail(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, call, fail)
    assert str(target) in refused(words, write_text, target, "new", error=OutputError)
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_no_file_takes_the_place_of_a_pipe_or_a_device(tmp_path):
    """Nobody but the administrator of a computer can lose /dev/null; a pipe is lost by all."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_text(pipe, "all of it")
        assert os.read(reader, 100) == b"all of it"
    finally:
        os.close(reader)
    assert (pipe.is_fifo(), list(tmp_path.iterdir())) == (True, [pipe])
    for name in ("/dev/null", "/dev/stdout"):
        assert is_device(Path(name))
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "file")
    (tmp_path / "file").touch()
    assert [is_device(path) for path in (link, tmp_path / "none", tmp_path)] == [False] * 3


def test_json_has_sorted_keys_and_its_hash_changes_with_every_value(tmp_path):
    write_json(tmp_path / "a.json", {"b": float("-inf"), "a": [1]})
    assert (tmp_path / "a.json").read_text().split() == [
        "{",
        '"a":',
        "[",
        "1",
        "],",
        '"b":',
        '"-inf"',
        "}",
    ]
    refused("value: expected", canonical_json, {"a": {1, 2}})
    base = {"m": 100, "seed": 0, "delta": 1e-5}
    assert config_hash(base) == config_hash(dict(reversed(base.items())))
    others = [{**base, name: 7} for name in base] + [{**base, "more": 1}, {**base, "seed": 0.0}]
    hashes = {config_hash(config) for config in [base, *others]}
    assert len(hashes) == 1 + len(others)
    (tmp_path / "a").write_bytes(b"abc")
    assert file_sha256(tmp_path / "a").startswith("ba7816bf8f01cfea")


def test_a_result_comes_back_as_written(tmp_path):
    result = RunResult(
        notebook="demo", profile="smoke", parameters={"m": 3}, records=[{"target": "x"}]
    )
    write_result(tmp_path / "a.json", result)
    assert io.read_result(tmp_path / "a.json") == result
    content = json.loads((tmp_path / "a.json").read_text())
    names = ["data", "notebook", "parameters", "profile", "provenance", "records"]
    assert list(content) == [*names, "records_sha256", "schema"]
    for changed, words in (
        ({**content, "records": [{"target": "y"}]}, "records were changed after the run"),
        ({**content, "records": []}, "records were changed after the run"),
        ({key: content[key] for key in [*names, "schema"]}, "lacks records_sha256; run it again"),
    ):
        (tmp_path / "a.json").write_text(json.dumps(changed))
        refused(words, io.read_result, tmp_path / "a.json")
    (tmp_path / "a.json").write_text(json.dumps(content))  # another layout is no change
    assert io.read_result(tmp_path / "a.json") == result


def test_anything_else_is_refused(tmp_path):
    for text, words in (
        ("", "not a result file"),
        ('{"schema": 1', "not a result file"),
        ("[" * 200_000, "not a result file"),
        ("[]", "expected a result file of schema 1"),
        ('{"schema": 2}', "got 2"),
        ('{"schema": 1, "notebook": "a"}', "lacks profile"),
    ):
        (tmp_path / "a.json").write_text(text)
        refused(words, io.read_result, tmp_path / "a.json")


def test_data_is_looked_for_where_the_variable_says(monkeypatch):
    monkeypatch.setenv("PAPERLIB_DATA", "/some/where")
    assert io.data_folder() == Path("/some/where")
    monkeypatch.delenv("PAPERLIB_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert io.data_folder() == Path("/cache/paperlib/data")
